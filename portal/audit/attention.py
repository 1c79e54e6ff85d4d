"""Audit trail problems and writes that need attention."""

from datetime import timedelta

from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import can
from portal.audit.integrity import find_failed_check, last_check
from portal.audit.models import Entry, WriteIntent
from portal.audit.writes import close_stale_writes
from portal.ui.attention import Item, Items, Snoozed

MAX_SINCE_CHECK = timedelta(days=2)


def trail_problem(snoozed: Snoozed, _user: User) -> Items:
    """An item if the audit trail failed its last check, or the check can't finish or no longer runs."""
    checked = last_check()
    last = checked or Entry.objects.order_by("pk").first()
    if failed := find_failed_check(checked):
        problem, when = "failed its check" if failed.is_recorded else "could not be checked", failed.at
    elif last and timezone.now() - last.at > MAX_SINCE_CHECK:
        problem, when = "was not checked on schedule", last.at
    else:
        return Items()
    return snoozed.only(
        Item(
            key=f"trail:{last.pk if last else 0}",
            fact=f"The audit trail {problem}.",
            meta=failed.problem[:300] if failed else "",
            when=when,
            url=reverse("operations:status"),
            verb="Open status",
        ),
        "system",
    )


def unknown_writes(snoozed: Snoozed, user: User) -> Items:
    close_stale_writes()
    may_resolve = can(user, "audit.resolve")

    def item(intent: WriteIntent) -> Item:
        is_change = intent.method == "PUT"
        # The sender of a change can send it again.
        blocked = "Don’t resend" if is_change else "Duplicates are blocked"
        return Item(
            key=f"write:{intent.pk}",
            icon="help-circle",
            fact="Outcome unknown:",
            rest=f"change to {intent.label}" if is_change else intent.label,
            meta=f"sent by {intent.actor_name}. {blocked} until this is resolved.",
            borrower_uuid=intent.borrower_uuid,
            when=intent.created_at,
            url=reverse("audit:resolve", args=[intent.pk]) if may_resolve else intent.get_absolute_url(),
            verb="Resolve" if may_resolve else "Open request",
            owner_id=intent.actor_id,
        )

    unknown = WriteIntent.objects.filter(state=WriteIntent.State.UNKNOWN)
    return Items(unknown.exclude(pk__in=snoozed.ids("write:")), item, group="system")
