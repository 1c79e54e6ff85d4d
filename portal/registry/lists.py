"""Lists of known records: filters, sorting and paging from the query string, and what a borrower has, in one query."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import QueryDict

from portal.registry.models import Kind, Record
from portal.registry.search import matching

SIZES = [25, 50, 100]


@dataclass(frozen=True)
class Listing:
    """One page of a list and the state that made it."""

    page: Page[Record]
    query: str
    sort: str
    size: int
    filters: Mapping[str, str]
    known: int
    sizes: Sequence[int] = field(default_factory=lambda: SIZES)

    @property
    def total(self) -> int:
        """How many match."""
        return self.page.paginator.count

    @property
    def filtered(self) -> bool:
        """Whether anything hides rows."""
        return bool(self.query or any(self.filters.values()))


def known(kind: str) -> QuerySet[Record]:
    """Every record of a kind that is not archived."""
    return Record.objects.filter(kind=kind, archived_at__isnull=True)


def listing(
    records: QuerySet[Record],
    state: QueryDict,
    *,
    sorts: Mapping[str, str],
    filters: Iterable[str] = (),
) -> Listing:
    """The page that the query string asks for.

    ``sorts`` maps the words of ``?sort=`` to columns, the first is the default.

    ``filters`` are columns that may be given as equal to a value. Whatever is not understood falls back to the default.
    """
    query = state.get("q", "").strip()
    chosen = {
        name: value for name in filters if (value := state.get(name, "").strip()[:64].replace("\0", ""))
    }
    found = matching(records, query).filter(**chosen)
    sort = state.get("sort", "")
    descending, name = sort.startswith("-"), sort.removeprefix("-")
    if name not in sorts:
        sort = name = next(iter(sorts))
        descending = False
    column = sorts[name]
    if descending:
        column = column.removeprefix("-") if column.startswith("-") else f"-{column}"
    size = next((size for size in SIZES if str(size) == state.get("size")), SIZES[0])
    page = Paginator(found.order_by(column, "-id"), size).get_page(state.get("page"))
    return Listing(page=page, query=query, sort=sort, size=size, filters=chosen, known=records.count())


@dataclass
class Position:
    """What one borrower has, as far as it is known here."""

    people: list[str] = field(default_factory=list)
    loans: int = 0
    lines: int = 0
    past_due: Decimal | None = None
    decision: str = ""
    flagged: bool = False


def positions(borrower_uuids: Sequence[str]) -> dict[str, Position]:
    """The position of each borrower of a page."""
    found = {uuid: Position() for uuid in borrower_uuids}
    related = Record.objects.filter(borrower_uuid__in=borrower_uuids, archived_at__isnull=True).exclude(
        kind__in=[Kind.BORROWER, Kind.REPAYMENT]
    )
    rows = related.order_by("created_at", "id").values_list(
        "borrower_uuid", "kind", "label", "past_due", "status", "flagged"
    )
    for owner, kind, label, past_due, status, flagged in rows:
        position = found[owner]
        match kind:
            case Kind.KEY_PERSON:
                position.people.append(label)
            case Kind.LOAN:
                position.loans += 1
            case Kind.LINE:
                position.lines += 1
            case Kind.APPLICATION:
                position.decision = status
        if past_due is not None:
            position.past_due = (position.past_due or Decimal(0)) + past_due
        position.flagged = position.flagged or flagged
    return found


def with_borrowers(records: Iterable[Record]) -> list[tuple[Record, Record | None]]:
    """Each record with its borrower, where that is known, in one more query."""
    rows = list(records)
    owners = {row.borrower_uuid for row in rows}
    borrowers = {r.uuid: r for r in Record.objects.filter(kind=Kind.BORROWER, uuid__in=owners)}
    return [(row, borrowers.get(row.borrower_uuid)) for row in rows]
