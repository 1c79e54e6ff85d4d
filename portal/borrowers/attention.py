"""Onboardings that need attention: borrowers with open tasks, and old drafts."""

from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from portal.accounts.models import User
from portal.audit.models import WriteIntent
from portal.borrowers.checklist import Task, open_tasks
from portal.borrowers.duplicates import CREATION
from portal.borrowers.models import Draft
from portal.ui.attention import MAX_SHOWN, Item, Items, Snoozed

ONBOARDED_DAYS = 30


def incomplete_onboardings(snoozed: Snoozed, _user: User) -> Items:
    """Recently onboarded borrowers with open tasks."""
    since = timezone.now() - timedelta(days=ONBOARDED_DAYS)
    created = WriteIntent.objects.filter(
        operation=CREATION, state=WriteIntent.State.CONFIRMED, finished_at__gte=since
    ).exclude(borrower_uuid__in=snoozed.ids("checklist:"))[: MAX_SHOWN + 1]
    if not created:
        return Items()
    tasks = {record.uuid: left for record, left in open_tasks(one.borrower_uuid for one in created)}
    left = [(one, tasks[one.borrower_uuid]) for one in created if tasks.get(one.borrower_uuid)]
    return Items(left, _task_item, group="onboarding")


def _task_item(open_onboarding: tuple[WriteIntent, Sequence[Task]]) -> Item:
    intent, tasks = open_onboarding
    return Item(
        key=f"checklist:{intent.borrower_uuid}",
        state="waiting",
        icon="list-check",
        fact=tasks[0].title,
        rest=f"and {len(tasks) - 1} more" if len(tasks) > 1 else "",
        meta="onboarding checklist",
        borrower_uuid=intent.borrower_uuid,
        when=intent.finished_at,
        url=f"{intent.borrower_url}#checklist",
        verb="Complete",
        owner_id=intent.actor_id,
    )


def old_drafts(snoozed: Snoozed, user: User) -> Items:
    """This person's drafts from before today."""
    old = Draft.objects.filter(owner=user, updated_at__lt=timezone.now() - timedelta(days=1))
    return Items(old.exclude(pk__in=snoozed.ids("draft:")), _draft_item, group="drafts")


def _draft_item(draft: Draft) -> Item:
    return Item(
        key=f"draft:{draft.pk}",
        state="neutral",
        icon="file-pencil",
        fact="Draft not sent:",
        rest=draft.title,
        meta=f"stopped at {draft.step_label}",
        when=draft.updated_at,
        url=draft.get_absolute_url(),
        verb="Resume",
        owner_id=draft.owner_id,
    )
