"""Mail that people turned on, and mail to operators. It names no borrower unless ``MAIL_NAMES`` allows it.

Hides when each message is due. Each has a key that names its event, so nobody gets it twice.
"""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Q
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils import timezone

from portal.accounts import outbox
from portal.accounts.models import User
from portal.approvals.lifecycle import open_approvals, reason_against_deciding
from portal.approvals.models import Approval
from portal.audit.integrity import find_failed_check, last_check
from portal.audit.service_health import current_outage
from portal.collections.models import AccountOwner
from portal.collections.promises import due_today
from portal.core.business_date import business_date
from portal.home.attention import attention
from portal.jobs.models import Worker
from portal.messaging.models import Run
from portal.notes.models import FollowUp
from portal.records.rows import with_borrowers
from portal.ui import wording
from servicing.business_days import is_business_day

# Events from before a person turned mail on, or while none could be sent, are not mailed later.
RECENT = timedelta(days=1)
WORKER_SILENCE = timedelta(minutes=5)
MESSAGES_BEHIND = timedelta(hours=1)
OUTAGE_TO_REPORT = timedelta(minutes=10)
MAX_LINES = 20
"""How many follow-ups, or items of one kind, a message names."""
FIRST_HOUR = 7
"""Daily mail is written from this hour on, in the business time zone."""


class Notice(NamedTuple):
    """One message before it has a recipient."""

    key: str
    subject: str
    text: str
    url: str


def write_mail() -> None:
    """Write every message that is due, with days in the business time zone."""
    wanted = Q(mail_approvals=True) | Q(mail_follow_ups=True) | Q(mail_promises=True) | Q(mail_digest=True)
    with timezone.override(ZoneInfo(settings.BUSINESS_TIME_ZONE)):
        for person in User.objects.filter(wanted, is_active=True).exclude(email=""):
            for notice in notices_for(person):
                send(notice, person.email, f"{person.pk}")
        for notice in notices_for_operators():
            for address in settings.OPERATOR_EMAILS:
                send(notice, address, address.casefold())


def send(notice: Notice, address: str, recipient: str) -> None:
    text = f"{notice.text}\n\n{settings.PORTAL_URL}{notice.url}\n"
    outbox.queue_mail(
        f"{notice.key}:{recipient}", address, f"{settings.PRODUCT_NAME}: {notice.subject}", text
    )


def notices_for(person: User) -> Iterator[Notice]:
    if person.mail_approvals:
        yield from approvals_waiting(person)
        yield from approvals_decided(person)
    if timezone.localtime().hour < FIRST_HOUR or not is_business_day(business_date()):
        return
    if person.mail_follow_ups:
        yield from follow_ups_due(person)
    if person.mail_promises:
        yield from promises_due(person)
    if person.mail_digest:
        yield from digest(person)


def approvals_waiting(person: User) -> Iterator[Notice]:
    for one in open_approvals(asked_at__gt=timezone.now() - RECENT):
        if not reason_against_deciding(person, one):
            yield Notice(
                f"approval:{one.pk}",
                "A change needs approval",
                f"{one.maker_name} requested a change{describe_approval(one)}.",
                one.get_absolute_url(),
            )


def approvals_decided(person: User) -> Iterator[Notice]:
    """Decisions on this person's own requests."""
    decided = Approval.objects.filter(maker_id=person.pk, decided_at__gt=timezone.now() - RECENT)
    for one in decided:
        is_rejected = one.state == Approval.State.REFUSED
        verdict = "rejected" if is_rejected else "approved"
        yield Notice(
            f"decision:{one.pk}",
            f"Your change was {verdict}",
            f"{one.checker_name} {verdict} your change{describe_approval(one)}."
            + ("" if is_rejected else " Send it before the approval expires."),
            one.get_absolute_url(),
        )


def describe_approval(approval: Approval) -> str:
    """What an approval changes, and for which borrower if mail may name it."""
    what = f" ({', '.join(approval.acts).lower()})"
    return f"{what} of {approval.label}" if settings.MAIL_NAMES else what


def follow_ups_due(person: User) -> Iterator[Notice]:
    """The number of due follow-ups, and each of them if mail may name borrowers."""
    today = business_date()
    due = FollowUp.objects.filter(owner_id=person.pk, done_at=None, due__lte=today)
    if count := due.count():
        subject = f"{count} follow-up{pluralize(count)} due"
        lines = [f"{subject}.", *describe_each((one, one.due, one.title) for one in due[:MAX_LINES])]
        yield Notice(f"follow-ups:{today}", subject, "\n".join(lines), reverse("home:index"))


def promises_due(person: User) -> Iterator[Notice]:
    """The number of promises due today on this person's accounts."""
    today = business_date()
    own = AccountOwner.objects.filter(owner=person).values("account_uuid")
    if count := due_today().filter(account_uuid__in=own).count():
        subject = f"{count} promise{pluralize(count)} due today"
        url = f"{reverse('collections:index')}?promise=due&owner={person.pk}"
        yield Notice(f"promises:{today}", subject, f"{subject} on your accounts.", url)


def digest(person: User) -> Iterator[Notice]:
    """The number of items of each kind that need attention, and the first of them if mail may name borrowers."""
    today, found = business_date(), attention(person)
    if found.total:
        rows: list[str] = []
        for group in found.groups:
            items = group.items[:MAX_LINES]
            rows.append(f"{group.title}: {group.total:,}")
            rows += describe_each((one, one.when, one.sentence) for one in items)
        subject = f"{found.total:,} item{pluralize(found.total)} on {wording.day(today)}"
        yield Notice(f"digest:{today}", subject, "\n".join(rows), reverse("home:index"))


def describe_each(rows: Iterable[tuple[Any, date | None, str]]) -> list[str]:
    """A line for each row of ``borrower_uuid``, day and words, none unless mail may name borrowers."""
    rows = list(rows) if settings.MAIL_NAMES else []
    borrowers = [borrower for _, borrower in with_borrowers(row for row, _, _ in rows)]
    lines = []
    for borrower, (_, day, words) in zip(borrowers, rows, strict=True):
        about = ", ".join(filter(None, (borrower.name if borrower else None, wording.day(day))))
        lines.append(f"- {about}: {words}" if about else f"- {words}")
    return lines


def notices_for_operators() -> Iterator[Notice]:
    """The current problems of the deployment."""
    now, status = timezone.now(), reverse("operations:status")
    gone = Worker.objects.filter(stopped_at=None, beat_at__gt=now - RECENT, beat_at__lt=now - WORKER_SILENCE)
    for one in gone:
        since = wording.moment(one.beat_at)
        text = f"No response from a worker since {since}. Other workers are running. Run manage.py doctor."
        yield Notice(f"worker:{one.pk}", "A worker stopped responding", text, status)
    if failed := find_failed_check(last_check()):
        text = f"The audit trail failed its check at {wording.moment(failed.at)}. See the runbook."
        yield Notice(f"audit:{failed.at.isoformat()}", "The audit check failed", text, status)
    outage = current_outage()
    if outage and outage.since < now - OUTAGE_TO_REPORT:
        text = f"The lending service hasn’t responded since {wording.moment(outage.since)}."
        yield Notice(f"outage:{outage.since.isoformat()}", "The lending service is down", text, status)
    last = Run.objects.filter(failure="", ended_at__isnull=False).first()
    limit = max(MESSAGES_BEHIND, 3 * timedelta(minutes=settings.MESSAGE_SYNC_MINUTES))
    if settings.MESSAGE_SYNC_MINUTES and last and last.ended_at and last.ended_at < now - limit:
        text = f"Last full message sync: {wording.moment(last.ended_at)}."
        yield Notice(f"messages:{last.ended_at.isoformat()}", "Messages are behind", text, status)
