"""Everything that needs attention, most urgent first: orders what areas offer, and leaves out what is snoozed.

Everything is read from saved records; nothing calls the service.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from django.core.cache import cache
from django.db.models import QuerySet
from django.urls import reverse

from portal.accounts.models import User
from portal.approvals.attention import pending_approvals
from portal.audit.attention import trail_problem, unknown_writes
from portal.borrowers.attention import incomplete_onboardings, old_drafts
from portal.home.models import Snooze
from portal.jobs.status import jobs_status, live_workers
from portal.messaging.attention import undelivered_messages
from portal.registry.attention import Item, Items, Snoozed
from portal.registry.models import Kind
from portal.repayments.attention import due_payments, past_due_accounts, returned_payments
from portal.runtime.business_date import business_date

COUNT_CACHE_SECONDS = 10
SHARED_COUNT = "attention"
GROUPS = {"payments": "Payments", "past_due": "Past due", "system": "System"}


def stopped_worker(snoozed: Snoozed) -> Items:
    """No worker runs, although one did or a job waits for one."""
    if live_workers():
        return Items()
    jobs = jobs_status()
    since = jobs.silent_since or jobs.oldest
    if since is None:
        return Items()
    return snoozed.only(
        Item(
            key=f"worker:{since.timestamp():.0f}",
            group="system",
            fact="Background jobs are stopped:",
            rest="no worker is running",
            meta=f"{jobs.waiting:,} waiting" if jobs.waiting else "new messages are not fetched",
            when=since,
            url=reverse("operations:status"),
            verb="Open status",
        )
    )


IN_ORDER: Sequence[Callable[..., Items]] = [
    trail_problem,
    stopped_worker,
    unknown_writes,
    pending_approvals,
    returned_payments,
    partial(past_due_accounts, Kind.LOAN),
    partial(past_due_accounts, Kind.LINE),
    undelivered_messages,
    partial(due_payments, Kind.LINE),
    partial(due_payments, Kind.LOAN),
    incomplete_onboardings,
    old_drafts,
]
PERSONAL = {unknown_writes, pending_approvals, old_drafts}
"""These depend on who is looking."""


@dataclass(frozen=True)
class Attention:
    """The whole list, and how much of it is in each group."""

    sources: Sequence[Items]
    user_id: int
    snoozed: Sequence[Snooze]

    def items(self, group: str) -> list[Item]:
        """The items of one group, those of this person, or all."""
        items = _worst_first([item for source in self.sources for item in source.items])
        if group == "mine":
            return [item for item in items if item.owner_id == self.user_id]
        return [item for item in items if not group or item.group == group]

    def left_out(self, group: str) -> list[Items]:
        """The sources that have more items than are shown."""
        return [one for one in self._of(group) if one.left_out]

    def _of(self, group: str) -> list[Items]:
        return [one for one in self.sources if one.items and group in ("", one.items[0].group)]

    @property
    def total(self) -> int:
        return _total(self.sources)

    @property
    def mine(self) -> int:
        return len(self.items("mine"))

    @property
    def pills(self) -> list[tuple[str, str, int]]:
        """Name, words and count of each filter."""
        groups = [(name, words, _total(self._of(name))) for name, words in GROUPS.items()]
        return [("", "All", self.total), ("mine", "Mine", self.mine), *groups]


def _worst_first(items: Sequence[Item]) -> list[Item]:
    """The items with what is past due ordered over all kinds of accounts."""
    late = [item for item in items if item.group == "past_due"]
    in_order = iter(sorted(late, key=attrgetter("rank"), reverse=True))
    return [next(in_order) if item.group == "past_due" else item for item in items]


def attention(user: User) -> Attention:
    """Everything that needs this person's attention."""
    snoozes = list(_snoozes())
    snoozed = Snoozed(one.key for one in snoozes)
    found = {source: _items(source, snoozed, user) for source in IN_ORDER}
    sources = [items for items in found.values() if items.items]
    personal = _total([found[source] for source in PERSONAL])
    counts = {SHARED_COUNT: _total(sources) - personal, _personal_count(user): personal}
    cache.set_many(counts, COUNT_CACHE_SECONDS)
    return Attention(sources, user.pk, snoozes)


def waiting(user: User) -> dict[str, int]:
    """The number of items for the navigation, from a few seconds ago: the name of an area to a number."""
    counts = [
        cache.get_or_set(key, partial(_count, user, is_personal=is_personal), COUNT_CACHE_SECONDS) or 0
        for key, is_personal in ((SHARED_COUNT, False), (_personal_count(user), True))
    ]
    approvals = cache.get_or_set(_approval_count(user), partial(_count_approvals, user), COUNT_CACHE_SECONDS)
    return {"home:index": sum(counts), "approvals:index": approvals or 0}


def _count(user: User, *, is_personal: bool) -> int:
    snoozed = Snoozed(_snoozes().values_list("key", flat=True))
    sources = [source for source in IN_ORDER if (source in PERSONAL) == is_personal]
    return _total([_items(source, snoozed, user) for source in sources])


def _count_approvals(user: User) -> int:
    return pending_approvals(Snoozed(_snoozes().values_list("key", flat=True)), user).total


def _snoozes() -> QuerySet[Snooze]:
    return Snooze.objects.filter(until__gt=business_date())


def forget_counts(user: User) -> None:
    """Count again, because an item was snoozed or brought back."""
    cache.delete_many([SHARED_COUNT, _personal_count(user), _approval_count(user)])


def _personal_count(user: User) -> str:
    return f"attention:{user.pk}"


def _approval_count(user: User) -> str:
    return f"approvals:{user.pk}"


def _items(source: Callable[..., Items], snoozed: Snoozed, user: User) -> Items:
    return source(snoozed, user) if source in PERSONAL else source(snoozed)


def _total(sources: Sequence[Items]) -> int:
    return sum(source.total for source in sources)
