"""The accounts of a day behind a number of the page: exactly those that it counts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Final, NamedTuple

from django.db.models import Case, Exists, F, OuterRef, Q, When
from django.http import QueryDict

from portal.accounts.models import User
from portal.portfolio.aging import AT_LEAST, PRODUCTS
from portal.portfolio.models import OPEN, AccountState, Bucket, Correction, RollCell
from portal.portfolio.owners import cured_since, was_reached
from portal.portfolio.roll import gone_between, with_start
from portal.portfolio.sums import read_sum, total_of
from portal.records.figures import ACCOUNTS
from portal.records.models import Account, Borrower, Kind
from portal.records.query import NotUnderstood, calendar_day
from portal.records.rows import records_by_uuid, with_borrowers
from portal.ui import wording
from portal.ui.exports import amount
from portal.ui.keys import row_key
from servicing.figures import days_past_due

NEW, ARCHIVED = RollCell.NEW, RollCell.ARCHIVED
ANY, OPEN_ONES = "any", "open"
NOUNS: Final = {Kind.LOAN: "Loan", Kind.LINE: "Line"}
BUCKETS: Final[Mapping[str, tuple[str, Q]]] = {
    OPEN_ONES: ("Open accounts", Q(bucket__in=OPEN)),
    "late": ("Past due", Q(bucket__in=AT_LEAST["late"])),
    "late_30": ("30+ days past due", Q(bucket__in=AT_LEAST["late_30"])),
    "late_90": ("90+ days past due", Q(bucket__in=AT_LEAST["late_90"])),
    **{one.value: (str(one.label), Q(bucket=one)) for one in (*OPEN, Bucket.CLOSED)},
}
ROLL_BUCKETS: Final = {ANY: "Open and closed accounts", ARCHIVED: "Archived"}
WAS: Final = {
    OPEN_ONES: "any bucket",
    NEW: "not open",
    **{one.value: str(one.label).lower() for one in OPEN},
}


@dataclass(frozen=True)
class DayList:
    """Accounts of a day that meet some filters, and these in words."""

    day: date
    states: Any
    words: list[str]
    problems: list[str]
    bucket: str
    kind: str
    principal_of: str = "principal"
    """The principal that counts: in a total of a roll, and of what closed or was archived, the one on its first day."""
    since: date | None = None
    """The earlier day whose states these are, of what was cured or archived since."""
    buckets: Mapping[str, str] = field(default_factory=dict)
    """The buckets to choose from, in words; empty if these accounts can't be of another."""

    @property
    def as_of(self) -> date:
        return self.since or self.day

    def sums(self) -> dict[str, Decimal]:
        found = total_of(self.states, self.principal_of, "past_due", "due_since_amount")
        return {
            "principal": read_sum(found, self.principal_of),
            "past_due": read_sum(found, "past_due"),
            "due_since": read_sum(found, "due_since_amount"),
        }


@dataclass
class DayRow:
    """An account as it was on the day, with its record of today."""

    state: AccountState
    day: date
    record: Account | None
    borrower: Borrower | None
    owner: User | None

    @property
    def days(self) -> int | None:
        one = self.state
        if one.bucket in (Bucket.CURRENT, Bucket.DUE_SINCE, Bucket.CLOSED):
            return None
        return days_past_due(one.past_due, one.oldest_unpaid_on, one.reported_days, self.day)

    @property
    def noun(self) -> str:
        return NOUNS[Kind(self.state.kind)]

    @property
    def bucket(self) -> str:
        return str(Bucket(self.state.bucket).label)

    @property
    def copy_of(self) -> date | None:
        answered = self.state.last_answer_on
        return min(answered, self.day) if answered else None


def find(state: QueryDict, day: date) -> DayList:
    """The accounts of a day that a query string asks for. What it can't mean is named and ignored."""
    problems: list[str] = []
    since = _since(state.get("since", ""), day, problems)
    was = state.get("was", "") if since and state.get("was") in WAS else ""
    if since and state.get("cured") == "yes":
        words = f"Past due on {wording.short_day(since)}, current on {wording.short_day(day)}"
        found = _Found(cured_since(since, day), words, as_of=since)
    elif since and state.get("bucket") == ARCHIVED:
        found = _archived(since, day, was)
    elif since:
        found = _rolled(since, day, was, state.get("bucket", ""))
    else:
        bucket = _bucket(state.get("bucket", ""))
        label, condition = BUCKETS[bucket]
        found = _Found(AccountState.objects.on(day).filter(condition), label, bucket)
    buckets = {name: words for name, (words, _) in BUCKETS.items()}
    if since:
        # A roll also has these, and accounts that were cured are all current.
        buckets = {} if not found.bucket else buckets | ROLL_BUCKETS
    said = [found.words, *([f"On {wording.short_day(since)}: {WAS[was]}"] if since and was else [])]
    kind, owner = state.get("kind", ""), state.get("owner", "")
    states = found.states
    if kind in ACCOUNTS:
        states = states.filter(kind=kind)
        said.append(PRODUCTS[kind])
    if (of_owner := _owner_condition(owner)) is not None:
        states = states.filter(of_owner)
        said.append(_owner_words(owner))
    for name, (flag_words, flag) in _flags(day).items():
        if state.get(name) == "yes":
            states = states.filter(flag())
            said.append(flag_words)
    return DayList(
        day,
        states.order_by(F("past_due").desc(nulls_last=True), "pk"),
        [*filter(None, said)],
        problems,
        found.bucket,
        kind,
        found.principal_of,
        found.as_of,
        buckets,
    )


class _Found(NamedTuple):
    """Accounts before the filters by type and owner."""

    states: Any
    words: str
    bucket: str = ""
    principal_of: str = "principal"
    as_of: date | None = None


def _bucket(name: str) -> str:
    return name if name in BUCKETS else OPEN_ONES


def _rolled(since: date, day: date, was: str, name: str) -> _Found:
    """The accounts of a cell of a roll, or of a total."""
    states: Any = with_start(AccountState.objects.on(day), since)
    if was:
        states = states.exclude(was=NEW) if was == OPEN_ONES else states.filter(was=was)
    if name == ANY:
        both = states.filter(Q(bucket__in=OPEN) | Q(bucket=Bucket.CLOSED) & ~Q(was=NEW))
        counted = Case(When(was=NEW, then="principal"), default="before")
        return _Found(both.annotate(counted=counted), ROLL_BUCKETS[ANY], ANY, "counted")
    bucket = _bucket(name)
    words, condition = BUCKETS[bucket]
    if bucket == Bucket.CLOSED:
        return _Found(states.filter(condition).exclude(was=NEW), words, bucket, "before")
    return _Found(states.filter(condition), words, bucket)


def _archived(since: date, day: date, was: str) -> _Found:
    states = gone_between(since, day)
    words = f"Archived since {wording.short_day(since)}"
    return _Found(states.filter(bucket=was) if was in OPEN else states, words, ARCHIVED, as_of=since)


def _since(text: str, day: date, problems: list[str]) -> date | None:
    if not text:
        return None
    try:
        since = calendar_day(text)
    except NotUnderstood as reason:
        problems.append(f"Since “{text[:40]}” was ignored. {reason}")
        return None
    return since if since < day else None


def _owner_condition(value: str) -> Q | None:
    if value == "none":
        return Q(owner_id=None)
    key = row_key(value) if value else None
    return Q(owner_id=key) if key is not None else None


def _owner_words(value: str) -> str:
    if value == "none":
        return "Unassigned"
    owner = User.objects.filter(pk=row_key(value)).first()
    return f"Owner: {owner.display_name() if owner else value}"


def _flags(day: date) -> dict[str, tuple[str, Callable[[], Q]]]:
    """Conditions of their own, by the name of the parameter that asks for them."""
    contradicted = Correction.objects.filter(
        kind=OuterRef("kind"), uuid=OuterRef("uuid"), first_day__lte=day, last_day__gte=day
    )
    return {
        "corrected": ("Corrected by the service since", lambda: Q(Exists(contradicted))),
        "reached": ("Reached this month", lambda: Q(was_reached(day))),
        "due_since": ("Due since the copy", lambda: Q(due_since_on__isnull=False)),
    }


def rows_of(found: DayList, states: Iterable[AccountState]) -> Iterator[DayRow]:
    """The rows of states, with records, borrowers and owners, one query for each of these."""
    states = list(states)
    records = records_by_uuid(ACCOUNTS, (one.uuid for one in states))
    borrowers = {one.pk: borrower for one, borrower in with_borrowers(records.values())}
    owners = User.objects.in_bulk({one.owner_id for one in states if one.owner_id})
    for one in states:
        record = records.get(one.uuid)
        borrower = borrowers.get(record.pk) if record else None
        yield DayRow(one, found.as_of, record, borrower, owners.get(one.owner_id or 0))


COLUMNS: Final[Mapping[str, Callable[[DayRow], Any]]] = {
    "Day": lambda row: row.day,
    "Borrower": lambda row: str(row.borrower or ""),
    "Borrower ID": lambda row: row.record.borrower_uuid if row.record else "",
    "Type": lambda row: row.noun,
    "Account": lambda row: row.state.uuid,
    "Aging": lambda row: row.bucket,
    "Days past due": lambda row: row.days,
    "Past due": lambda row: amount(row.state.past_due),
    "Due since the copy": lambda row: amount(row.state.due_since_amount),
    "Principal": lambda row: amount(row.state.principal),
    "Due next": lambda row: row.state.due_next_on,
    "Amount due next": lambda row: amount(row.state.due_next_amount),
    "Status": lambda row: row.state.status,
    "Owner": lambda row: row.owner.display_name() if row.owner else "",
    "Copy of": lambda row: row.copy_of,
    "Unchanged since": lambda row: row.state.from_day,
}
