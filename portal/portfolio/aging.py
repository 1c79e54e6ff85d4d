"""The figures of a day: how much is on file, how much of it is past due, and the accounts by aging and product."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from portal.portfolio.models import LATE, OPEN, Bucket, BucketSum
from portal.records.models import Kind
from servicing.figures import NOTHING

PRODUCTS: Final = {Kind.LOAN.value: "Loans", Kind.LINE.value: "Lines of credit", "": "All accounts"}
NO_PAST_DUE: Final = (Bucket.CURRENT, Bucket.DUE_SINCE)
AT_LEAST: Final = {"late": LATE, "late_30": LATE[1:], "late_90": LATE[3:]}
"""The buckets of each share, by the name of the filter that lists them."""


@dataclass
class Sum:
    """Some accounts."""

    number: int = 0
    principal: Decimal = NOTHING
    principal_known: int = 0
    past_due: Decimal = NOTHING
    past_due_known: int = 0
    due_since: Decimal = NOTHING

    def add(self, one: "BucketSum | Sum") -> None:
        self.number += one.number
        self.principal += one.principal
        self.principal_known += one.principal_known
        self.past_due += one.past_due
        self.past_due_known += one.past_due_known
        self.due_since += one.due_since


@dataclass(frozen=True)
class AgingCell:
    """The accounts of a product in a bucket."""

    kind: str
    sum: Sum
    has_past_due: bool
    """Whether its past due is shown: what is current has none."""

    @property
    def is_not_known(self) -> bool:
        return bool(self.sum.number) and not self.sum.past_due_known


@dataclass(frozen=True)
class AgingRow:
    """A bucket, or all of them."""

    label: str
    bucket: str
    cells: Sequence[AgingCell]


@dataclass(frozen=True)
class Share:
    """A part of the principal and of the accounts; of those only whose past due is known."""

    label: str
    bucket: str
    number: int
    known: int
    percent: Decimal | None
    """Of the principal; None if there is none."""
    before: Decimal | None

    @property
    def percent_of_accounts(self) -> Decimal | None:
        return percent(self.number, self.known)


@dataclass(frozen=True)
class Figures:
    """The sums of a day, with those of the day that its roll begins with."""

    rows: Sequence[AgingRow]
    total: Sum
    late: Sum
    known: int
    """The accounts whose bucket is known."""
    shares: Sequence[Share]
    before: Sum | None


def percent(part: Decimal | int, whole: Decimal | int) -> Decimal | None:
    return Decimal(part) * 100 / whole if whole else None


def read(day: date, since: date | None, sums: Iterable[BucketSum]) -> Figures:
    """The figures of a day, from sums that include those of the two days."""
    by_bucket: dict[tuple[date, str, str], Sum] = defaultdict(Sum)
    for one in sums:
        if one.bucket in OPEN:
            by_bucket[one.day, one.kind, one.bucket].add(one)
            by_bucket[one.day, "", one.bucket].add(one)

    def total(of_day: date, kind: str, buckets: Iterable[str]) -> Sum:
        found = Sum()
        for bucket in buckets:
            found.add(by_bucket[of_day, kind, bucket])
        return found

    def share(of_day: date, buckets: Iterable[str]) -> Decimal | None:
        known = total(of_day, "", [one for one in OPEN if one != Bucket.NOT_KNOWN])
        return percent(total(of_day, "", buckets).principal, known.principal)

    rows = [
        AgingRow(
            str(bucket.label),
            bucket,
            [AgingCell(kind, by_bucket[day, kind, bucket], bucket not in NO_PAST_DUE) for kind in PRODUCTS],
        )
        for bucket in OPEN
    ]
    rows.append(
        AgingRow("Total", "open", [AgingCell(kind, total(day, kind, OPEN), True) for kind in PRODUCTS])
    )
    everything = total(day, "", OPEN)
    known = everything.number - by_bucket[day, "", Bucket.NOT_KNOWN].number
    labels = {"late": "Past due", "late_30": "30+ days", "late_90": "90+ days"}
    shares = [
        Share(
            f"{labels[name]}, of principal",
            name,
            total(day, "", buckets).number,
            known,
            share(day, buckets),
            share(since, buckets) if since else None,
        )
        for name, buckets in AT_LEAST.items()
    ]
    before = total(since, "", OPEN) if since else None
    return Figures(rows, everything, total(day, "", LATE), known, shares, before)
