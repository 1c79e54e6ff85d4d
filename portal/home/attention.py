"""Everything that needs attention, most urgent first: the items of all areas without snoozed ones.

Everything is read from saved records; nothing calls the service.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter

from django.core.cache import cache
from django.db.models import QuerySet
from django.urls import reverse

from portal.accounts.models import User
from portal.approvals.attention import all_open_approvals, pending_approvals
from portal.audit.attention import trail_problem, unknown_writes
from portal.borrowers.attention import incomplete_onboardings, old_drafts, owners_of_old_drafts
from portal.collections.attention import broken_promises, promises_due_today
from portal.home.models import Snooze
from portal.jobs.status import jobs_status, live_workers
from portal.messaging.attention import undelivered_messages
from portal.registry.attention import (
    COUNT_VALID_FOR,
    MAX_SHOWN,
    SHARED_COUNT,
    SHARED_ITEMS,
    Amount,
    Item,
    ItemGroup,
    Items,
    Snoozed,
    forget_shared_items,
    save_count,
    saved_count,
)
from portal.registry.models import Kind
from portal.registry.recalculation import AccountState, account_state
from portal.repayments.attention import (
    DUE_DAYS,
    accounts_not_known,
    due_payments,
    due_since_copy,
    past_due_accounts,
    returned_payments,
    unscheduled_payments,
)
from portal.runtime.business_date import business_date

SYSTEM_COUNT, STAFF_ITEMS = "attention.system", "attention.staff"
CACHE_SECONDS = 10
COUNT_CACHE_SECONDS = 30
GROUPS = {
    "system": "System",
    "approvals": "Approvals",
    "promised": "Promises due today",
    "broken": "Broken promises",
    "returned": "Returned payments",
    "past_due": "Past due",
    "not_known": "Past due not known",
    "due_since": "Due since the copy",
    "unscheduled": "Autopay without a scheduled payment",
    "due": f"Due in {DUE_DAYS} days",
    "onboarding": "Onboarding",
    "drafts": "Drafts",
}
"""The kinds of items, most urgent first."""


def stopped_worker(snoozed: Snoozed) -> Items:
    """An item if no worker is running although one was, or a job waits for one."""
    if workers := live_workers():
        return Items()
    jobs = jobs_status(workers)
    since = jobs.silent_since or jobs.oldest
    if since is None:
        return Items()
    return snoozed.only(
        Item(
            key=f"worker:{since.timestamp():.0f}",
            fact="Background jobs are stopped:",
            rest="no worker is running",
            meta=f"{jobs.waiting:,} waiting" if jobs.waiting else "new messages are not fetched",
            when=since,
            url=reverse("operations:status"),
            verb="Open status",
        ),
        "system",
    )


IN_ORDER: Sequence[Callable[..., Items]] = [
    trail_problem,
    stopped_worker,
    unknown_writes,
    pending_approvals,
    promises_due_today,
    broken_promises,
    returned_payments,
    partial(past_due_accounts, Kind.LOAN),
    partial(past_due_accounts, Kind.LINE),
    accounts_not_known,
    due_since_copy,
    unscheduled_payments,
    undelivered_messages,
    partial(due_payments, Kind.LINE),
    partial(due_payments, Kind.LOAN),
    incomplete_onboardings,
    old_drafts,
]
PERSONAL = {unknown_writes, pending_approvals, old_drafts}
"""These depend on the viewer; of the unknown writes only the links do, so their number is the same for everyone."""
SYSTEM: set[Callable[..., Items]] = {trail_problem, stopped_worker, unknown_writes}
"""These don't depend on accounts."""
READ_ANEW = PERSONAL | SYSTEM
SHARED = [source for source in IN_ORDER if source not in READ_ANEW]
"""These are the same for everyone, and cached for a few seconds."""


@dataclass(frozen=True)
class Group:
    """The items of one kind, most urgent first, with their total."""

    name: str
    title: str
    sources: Sequence[ItemGroup]

    @cached_property
    def items(self) -> list[Item]:
        """The first items; if several kinds of accounts are mixed, the worst of all."""
        items = [item for source in self.sources for item in source.items]
        return sorted(items, key=attrgetter("rank"), reverse=True)[:MAX_SHOWN]

    @cached_property
    def total(self) -> int:
        return sum(source.total for source in self.sources)

    @cached_property
    def amount(self) -> Amount | None:
        """The sum; None for a group without amounts."""
        amounts = [source.amount for source in self.sources if source.amount]
        return sum(amounts, Amount()) if amounts else None

    @property
    def amount_words(self) -> str:
        return self.amount.words if self.amount else ""

    @property
    def links(self) -> list[ItemGroup]:
        """The lists behind items that aren't shown."""
        return [source for source in self.sources if source.url] if self.total > len(self.items) else []


@dataclass(frozen=True)
class Attention:
    """The whole list with the number of items in each group."""

    sources: Sequence[ItemGroup]
    user_id: int
    snoozed: Sequence[Snooze]

    @cached_property
    def groups(self) -> list[Group]:
        """The groups that have items."""
        of_groups = {name: [one for one in self.sources if one.group == name] for name in GROUPS}
        return [Group(name, GROUPS[name], sources) for name, sources in of_groups.items() if sources]

    @property
    def items(self) -> list[Item]:
        """The first items of all groups."""
        return [item for group in self.groups for item in group.items]

    @property
    def total(self) -> int:
        return sum(source.total for source in self.sources)

    @property
    def mine(self) -> int:
        return sum(item.owner_id == self.user_id for item in self.items)

    @property
    def pills(self) -> list[tuple[str, str, int]]:
        """Name, label and count of each filter."""
        groups = [(one.name, one.title, one.total) for one in self.groups]
        return [("", "All", self.total), ("mine", "Mine", self.mine), *groups]

    @property
    def headline(self) -> list[str]:
        """The total number, the past due amount, and the returned payments."""
        found = {group.name: group for group in self.groups}
        parts = [
            f"{self.total:,} item{'' if self.total == 1 else 's'} need{'s' if self.total == 1 else ''} attention"
        ]
        if late := found.get("past_due"):
            known, unknown = late.amount or Amount()
            accounts = f"{late.total:,} account{'' if late.total == 1 else 's'}"
            words = f"{Amount(known).words} past due on {accounts}" if known else f"{accounts} past due"
            parts.append(f"{words} ({unknown:,} not known)" if unknown else words)
        if back := found.get("returned"):
            parts.append(f"{back.total:,} returned payment{'' if back.total == 1 else 's'}")
        return parts


def attention(user: User, state: AccountState) -> Attention:
    """Collect everything that needs this person's attention."""
    snoozes = list(_snoozes())
    snoozed = Snoozed(one.key for one in snoozes)
    saved_state, groups = cache.get(SHARED_ITEMS) or (None, [])
    if saved_state != state:
        groups = [source(snoozed).load() for source in SHARED]
        cache.set(SHARED_ITEMS, (state, groups), CACHE_SECONDS)
    shared = dict(zip(SHARED, groups, strict=True))
    found = {
        source: _items(source, snoozed, user).load() if source in READ_ANEW else shared[source]
        for source in IN_ORDER
    }
    for key, sources in _counted(user).items():
        _cache_count(key, state, sum(group.total for source in sources if (group := found[source])))
    return Attention([group for group in found.values() if group], user.pk, snoozes)


def count_waiting_items(user: User, state: AccountState) -> dict[str, int]:
    """The number of items by area for the navigation, cached for a few seconds.

    The number that everyone shares is also counted again when accounts change.
    """
    parts = _counted(user)
    known = {
        key: number
        for key, (saved_state, number) in cache.get_many(parts).items()
        if saved_state == state or key != SHARED_COUNT
    }
    missing = parts.keys() - known.keys()
    for key in missing & {SHARED_COUNT, SYSTEM_COUNT}:
        number = saved_count(state) if key == SHARED_COUNT else None
        known[key] = _count(parts[key], user) if number is None else number
        _cache_count(key, state, known[key])
    if missing - {SHARED_COUNT, SYSTEM_COUNT}:
        known = _personal_counts(user) | known
    return {"home:index": sum(known.values()), "approvals:index": known[_approval_count(user)]}


def _personal_counts(user: User) -> dict[str, int]:
    """This person's numbers. They are read at once for all staff, because each page shows them."""
    approvals, draft_owners = cache.get(STAFF_ITEMS) or ((), None)
    if draft_owners is None:
        snoozed = _snoozed()
        approvals, draft_owners = all_open_approvals(snoozed), owners_of_old_drafts(snoozed)
        cache.set(STAFF_ITEMS, (approvals, draft_owners), CACHE_SECONDS)
    return {
        _approval_count(user): sum(one.concerns(user) for one in approvals),
        _draft_count(user): draft_owners.count(user.pk),
    }


def renew_shared_count() -> None:
    """Count everyone's items again if the saved number is outdated or soon will be."""
    state = account_state()
    if saved_count(state, COUNT_VALID_FOR / 2) is None:
        save_count(state, lambda: _count(SHARED))


def _count(sources: Iterable[Callable[..., Items]], user: User | None = None) -> int:
    snoozed = _snoozed()
    return sum(_items(source, snoozed, user).total for source in sources)


def _cache_count(key: str, state: AccountState, number: int) -> None:
    cache.set(key, (state, number), COUNT_CACHE_SECONDS if key == SHARED_COUNT else CACHE_SECONDS)


def _snoozes() -> QuerySet[Snooze]:
    return Snooze.objects.filter(until__gt=business_date())


def _snoozed() -> Snoozed:
    return Snoozed(_snoozes().values_list("key", flat=True))


def forget_items(user: User) -> None:
    """Drop this person's cached items after they act."""
    forget_shared_items()
    cache.delete_many([*_counted(user), STAFF_ITEMS])


def _counted(user: User) -> dict[str, Collection[Callable[..., Items]]]:
    """The sources that are counted together, by the cache key of their number."""
    return {
        SHARED_COUNT: SHARED,
        SYSTEM_COUNT: SYSTEM,
        _draft_count(user): {old_drafts},
        _approval_count(user): {pending_approvals},
    }


def _approval_count(user: User) -> str:
    return f"attention.approvals:{user.pk}"


def _draft_count(user: User) -> str:
    return f"attention.drafts:{user.pk}"


def _items(source: Callable[..., Items], snoozed: Snoozed, user: User | None) -> Items:
    return source(snoozed, user) if source in PERSONAL else source(snoozed)
