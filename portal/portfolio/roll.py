"""The roll of a month: from which bucket to which its accounts went."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Final

from django.db.models import Case, CharField, Count, DecimalField, Exists, OuterRef, Subquery, Value, When
from django.db.models.functions import Coalesce

from portal.portfolio.models import OPEN, AccountState, BookDay, Bucket, RollCell
from portal.portfolio.sums import add_sums, read_sum
from portal.ui import wording
from servicing.figures import NOTHING, ONE_DAY

NEW, ARCHIVED = RollCell.NEW, RollCell.ARCHIVED
NOT_OPEN: Final = (Bucket.CLOSED, Bucket.NOT_CERTAIN)
PRINCIPAL: Final[Any] = DecimalField(max_digits=20, decimal_places=4)


def first_day_of(day: date) -> date | None:
    """The day with which the roll up to a day begins: the last of the month before, or the first that is certain."""
    certain = BookDay.objects.filter(not_certain=0, day__lt=day)
    month_before = day.replace(day=1) - ONE_DAY
    found = certain.filter(day__gte=month_before).order_by("day").values_list("day", flat=True)
    return found.first()


def with_start(states: Any, since: date) -> Any:
    """Add to each state where its account was on a day: a bucket or “new”, and its principal then."""
    start = AccountState.objects.on(since).filter(kind=OuterRef("kind"), uuid=OuterRef("uuid"))
    bucket = Subquery(start.exclude(bucket__in=NOT_OPEN).values("bucket")[:1])
    return (
        states.annotate(bucket_before=bucket)
        .annotate(
            was=Case(
                When(bucket_before=None, then=Value(NEW)), default="bucket_before", output_field=CharField()
            ),
            known_before=Subquery(start.values("principal")[:1], output_field=PRINCIPAL),
        )
        .annotate(
            # Of an open account, what isn't known on one of the days is neither paid off nor drawn.
            before=Case(
                When(bucket__in=OPEN, principal=None, then=None),
                When(bucket__in=OPEN, then=Coalesce("known_before", "principal")),
                default="known_before",
                output_field=PRINCIPAL,
            ),
        )
    )


def gone_between(since: date, day: date) -> Any:
    """The states on a day of the accounts that were archived by a later one."""
    later = AccountState.objects.on(day).filter(kind=OuterRef("kind"), uuid=OuterRef("uuid"))
    return AccountState.objects.on(since).filter(~Exists(later), bucket__in=OPEN)


def write(day: date, since: date) -> None:
    both = with_start(AccountState.objects.on(day), since).exclude(was=NEW, bucket=Bucket.CLOSED)
    cells = [
        RollCell(
            day=day,
            was=one["was"],
            now=one["bucket"],
            number=one["number"],
            before=NOTHING if one["was"] == NEW else read_sum(one, "before"),
            principal=read_sum(one, "principal"),
        )
        for one in add_sums(both.order_by().values("was", "bucket"), "before", "principal").annotate(
            number=Count("pk")
        )
    ]
    gone = add_sums(gone_between(since, day).order_by().values("bucket"), "principal")
    cells += [
        RollCell(
            day=day,
            was=one["bucket"],
            now=ARCHIVED,
            number=one["number"],
            before=read_sum(one, "principal"),
            principal=NOTHING,
        )
        for one in gone.annotate(number=Count("pk"))
    ]
    RollCell.objects.bulk_create(cells)


@dataclass
class Cell:
    """Accounts, and their principal: on the last day, of those that closed or were archived on the first."""

    number: int = 0
    principal: Decimal = NOTHING
    query: str = ""
    """The filters of its list."""
    is_stayed: bool = False
    is_edge: bool = False
    """Whether it adds up those before it."""

    def add(self, other: "Cell") -> None:
        self.number += other.number
        self.principal += other.principal


@dataclass
class Row:
    """Where the accounts of one bucket went."""

    label: str
    cells: Sequence[Cell]
    """One for each column: the open buckets, then those in total, closed and archived."""
    paid: Decimal = NOTHING
    """What was paid off less what was drawn."""
    total: Cell = field(default_factory=Cell)
    is_sum: bool = False


@dataclass
class Roll:
    """The table, whose rows and columns add up."""

    since: date
    day: date
    heads: Sequence[str]
    rows: Sequence[Row]
    later: int
    """How many moved to a later bucket."""
    earlier: int

    @property
    def day_words(self) -> str:
        return wording.short_day(self.day)

    @property
    def since_words(self) -> str:
        return wording.short_day(self.since)


SEVERITY: Final[dict[str, int]] = {one: number for number, one in enumerate(OPEN) if one != Bucket.NOT_KNOWN}


def read(written: BookDay) -> Roll | None:
    """The roll up to a day; None for the first day."""
    if not written.roll_since:
        return None
    cells = {(one.was, one.now): one for one in RollCell.objects.filter(day=written.day)}
    gone = [Bucket.CLOSED.value] + ([ARCHIVED] if any(now == ARCHIVED for _, now in cells) else [])
    starts = [*OPEN, NEW]
    rows = {was: _row(was, cells, gone, written.roll_since) for was in starts}
    before = _sum_of("", [rows[was] for was in OPEN], gone, written.roll_since, was="open")
    total = _sum_of("Total", [before, rows[NEW]], gone, written.roll_since)
    moved: dict[bool, int] = defaultdict(int)
    for (was, now), one in cells.items():
        if was in SEVERITY and now in SEVERITY and was != now:
            moved[SEVERITY[now] > SEVERITY[was]] += one.number
    return Roll(
        since=written.roll_since,
        day=written.day,
        heads=[*(str(one.label) for one in OPEN), "", *(one.capitalize() for one in gone)],
        rows=[*(rows[was] for was in OPEN), before, rows[NEW], total],
        later=moved[True],
        earlier=moved[False],
    )


def _row(was: str, cells: dict[tuple[str, str], RollCell], gone: Sequence[str], since: date) -> Row:
    still, total = Cell(query=_query(since, was, "open"), is_edge=True), _total(since, was, gone)
    found: list[Cell] = []
    paid = NOTHING
    for now in OPEN:
        one = cells.get((was, now))
        cell = Cell(query=_query(since, was, now), is_stayed=was == now)
        if one:
            cell.number, cell.principal = one.number, one.principal
            still.add(cell)
            paid += NOTHING if was == NEW else one.before - one.principal
        found.append(cell)
    left = [
        Cell(one.number, one.before, _query(since, was, now)) if (one := cells.get((was, now))) else Cell()
        for now in gone
    ]
    for cell in [still, *left]:
        total.add(cell)
    total.principal += paid
    return Row("New" if was == NEW else str(Bucket(was).label), [*found, still, *left], paid, total)


def _sum_of(label: str, rows: Sequence[Row], gone: Sequence[str], since: date, was: str = "") -> Row:
    columns = [*OPEN, "open", *gone]
    cells = [Cell(query=_query(since, was, now), is_edge=now == "open") for now in columns]
    total = Row(label, cells, total=_total(since, was, gone), is_sum=True)
    for row in rows:
        for cell, other in zip(cells, row.cells, strict=True):
            cell.add(other)
        total.paid += row.paid
        total.total.add(row.total)
    return total


def _total(since: date, was: str, gone: Sequence[str]) -> Cell:
    """The cell of a total. No list has archived accounts beside others, so with any it is no link."""
    return Cell(query="" if ARCHIVED in gone else _query(since, was))


def _query(since: date, was: str = "", now: str = "") -> str:
    parts = [f"since={since}", f"was={was}" if was else "", f"bucket={now}" if now else "bucket=any"]
    return "&".join(filter(None, parts))
