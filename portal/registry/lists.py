"""Lists of known records: filters, sorting and paging from the query string, and what a borrower has, in one query."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.core.exceptions import EmptyResultSet
from django.core.paginator import Page, Paginator
from django.db.models import F, OrderBy, Q, QuerySet
from django.http import QueryDict

from portal.registry.models import SEARCHED_KINDS, Kind, Record
from portal.registry.query import NotUnderstood, Query, calendar_day, read
from portal.registry.search import narrowed, of_borrowers
from portal.ui import wording

if TYPE_CHECKING:
    from django_stubs_ext import ValuesQuerySet

SIZES = [25, 50, 100]
# A list that is narrowed is counted only so far: beyond it nobody pages, and counting would be the slowest part.
COUNTED = 10_000
COUNTED_AGAIN = 60  # seconds
DECIDED = ("APPROVED", "REJECTED")
OPEN = "OPEN"
_OPTIONAL = {each.name for each in Record._meta.concrete_fields if each.null}


@dataclass(frozen=True)
class Ends:
    """That a filter ends what another one begins, and is left out where it lies before it."""

    begun_by: str
    read: Callable[[str], Any]
    """What the values of both come to."""
    otherwise: str


DAYS = Ends("from", calendar_day, wording.DAYS_TURNED_ROUND)


@dataclass(frozen=True)
class Filter:
    """One filter of a list: its name in the query string, and what it means."""

    name: str
    label: str
    keep: Callable[[str], Q]
    """The condition for a value; raises :class:`NotUnderstood`."""
    words: Callable[[str], str] = str
    """A value as its chip says it."""
    ends: Ends | None = None


@dataclass(frozen=True)
class Chip:
    """An active filter in words, and the query string without it."""

    label: str
    words: str
    remove: str


@dataclass(frozen=True)
class SortLink:
    """What the head of a column says and does."""

    direction: str
    """For ``aria-sort``; empty unless the list is in this order."""
    query_string: str


class Counted(Paginator):  # type: ignore[type-arg]  # Django's own cannot be subscripted
    """Pages of records, with a count that stops where counting would be the slowest part of the list."""

    object_list: QuerySet[Record]

    def __init__(
        self, found: QuerySet[Record], size: int, *, counted: QuerySet[Record], exact: bool, ahead: Q | None
    ) -> None:
        super().__init__(found, size)
        self.counted = counted.order_by()
        self.exact = exact
        self.ahead = ahead

    @cached_property
    def count(self) -> int:
        """How many: at most :data:`COUNTED`, or to the last one where that is wanted, of many as of a minute ago."""
        many = f"registry.many.{_digest(self.counted)}"
        if cache.get(many):
            count = COUNTED
        elif (count := self.counted[:COUNTED].count()) == COUNTED:
            cache.set(many, True, COUNTED_AGAIN)
        return _counted_lately(self.counted) if self.exact and count == COUNTED else count

    def page(self, number: int | str) -> Page[Record]:
        """Its keys come from an index alone, and from whichever end is nearer; then its records."""
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        keys = self._keys(start, min(start + self.per_page, self.count))
        rows = Record.objects.in_bulk(keys)
        return Page([rows[key] for key in keys if key in rows], number, self)

    def _keys(self, start: int, end: int) -> list[int]:
        """What stands ahead, its order turned round, then the rest: they are asked apart, each along its index."""
        ordered = self.object_list.values_list("pk", flat=True)
        if self.ahead is None:
            return self._between(ordered, start, end, self.count)
        first = ordered.filter(self.ahead).reverse()
        number = first.count()
        keys = list(first[start : min(end, number)]) if start < number else []
        start, end = max(start - number, 0), max(end - number, 0)
        return keys + self._between(ordered.exclude(self.ahead), start, end, self.count - number)

    def _between(self, ordered: "ValuesQuerySet[Record, int]", start: int, end: int, count: int) -> list[int]:
        if start > count // 2 and (self.exact or self.count < COUNTED):
            return list(ordered.reverse()[count - end : count - start])[::-1]
        return list(ordered[start:end])


@dataclass(frozen=True)
class Listing:
    """One page of a list and the state that made it."""

    page: Page[Record]
    query: str
    sort: str
    size: int
    filters: Mapping[str, str]
    records: QuerySet[Record]
    found: QuerySet[Record]
    """All that match, in order."""
    chips: Sequence[Chip] = ()
    problems: Sequence[str] = ()
    sort_links: Mapping[str, SortLink] = field(default_factory=dict)
    size_links: Mapping[int, str] = field(default_factory=dict)
    query_string: str = ""
    sizes: Sequence[int] = field(default_factory=lambda: SIZES)

    @property
    def total(self) -> int:
        """How many match; of a filtered list at most :data:`COUNTED`."""
        return self.page.paginator.count

    @property
    def has_more(self) -> bool:
        """Whether more match than were counted."""
        return self.filtered and self.total >= COUNTED

    @property
    def total_words(self) -> str:
        """The same as it is shown."""
        return f"{self.total:,}{'+' if self.has_more else ''}"

    @property
    def filtered(self) -> bool:
        """Whether anything hides rows."""
        return bool(self.query or any(self.filters.values()))

    @cached_property
    def known(self) -> int:
        """How many there are without any filter; behind filters as of a minute ago."""
        return _counted_lately(self.records) if self.filtered else self.total

    @property
    def known_words(self) -> str:
        """The same as it is shown."""
        return f"{self.known:,}"


def _counted_lately(records: QuerySet[Record]) -> int:
    """How many there are or were: it takes a while to count very many."""
    return cache.get_or_set(f"registry.count.{_digest(records)}", records.count, COUNTED_AGAIN) or 0


def _digest(records: QuerySet[Record]) -> str:
    try:
        asked = str(records.query)
    except EmptyResultSet:  # Nothing can match, and nothing is asked.
        asked = ""
    return hashlib.sha256(asked.encode()).hexdigest()


def known(kind: str) -> QuerySet[Record]:
    """Every record of a kind that is not archived."""
    return Record.objects.filter(kind=kind, archived_at__isnull=True)


def occurring(kind: str, column: str, most: int | None = None) -> list[str]:
    """The values of a column, in order, with one step along its index each: reading every row would take too long."""
    found = [""]
    values = known(kind).order_by(column).values_list(column, flat=True)
    while most is None or len(found) <= most:
        if (value := values.filter(**{f"{column}__gt": found[-1]}).first()) is None:
            break
        found.append(value)
    return found[1:]


def listing(
    records: QuerySet[Record],
    state: QueryDict,
    *,
    sorts: Mapping[str, str],
    filters: Iterable[str | Filter] = (),
    kinds: Sequence[Kind] = SEARCHED_KINDS,
    ahead: Q | None = None,
    by_borrower: bool = False,
) -> Listing:
    """The page that the query string asks for.

    ``sorts`` maps the words of ``?sort=`` to columns, the first is the default. ``filters`` are columns that may be
    equal to a value, or filters with a meaning of their own. ``kinds`` are those the records can be of. What
    ``ahead`` says stands first in the default order, turned round: the soonest of what is to come before the newest of
    what was. ``by_borrower`` lets the text find what belongs to a borrower, too. Whatever is not understood falls back
    to the default, and is said in ``problems`` where that widens the list.
    """
    asked = read(state.get("q", ""))
    chosen, conditions, problems = _chosen([_filter(one) for one in filters], state)
    sort, columns = _order(state.get("sort", ""), sorts)
    size = next((size for size in SIZES if str(size) == state.get("size")), SIZES[0])
    theirs, too_many = of_borrowers(asked, kinds) if by_borrower else (Q(), "")
    narrow = narrowed(records, asked, kinds, counted=COUNTED, besides=theirs)
    found = narrow.found.filter(conditions).order_by(*columns)
    only_text = len(kinds) == 1 and not conditions
    is_default = sort == next(iter(sorts))
    pages = Counted(
        found,
        size,
        counted=narrow.counted if only_text else found,
        exact=not (asked.text or chosen),
        ahead=ahead if is_default else None,
    )
    if chosen and pages.count < COUNTED and not is_default:
        # Few enough to be put in order; by itself SQLite would look for them along the whole order.
        pages.object_list = records.filter(pk__in=found.order_by().values("pk")).order_by(*columns)
    return Listing(
        page=pages.get_page(state.get("page")),
        query=asked.text,
        sort=sort,
        size=size,
        filters={one.name: value for one, value in chosen.items()},
        records=records,
        found=pages.object_list,
        chips=_chips(asked, chosen, state),
        problems=[*asked.problems, *filter(None, [too_many]), *problems],
        sort_links={name: _sort_link(name, sort, sorts, state) for name in sorts},
        size_links={one: query_string(state, size=str(one)) for one in SIZES},
        query_string=query_string(state, page=state.get("page")),
    )


def query_string(state: QueryDict, /, **changes: str | None) -> str:
    """The state with some changes, on its first page unless they say another; nothing that is empty."""
    values = {name: state.get(name, "") for name in state} | {"page": None} | changes
    kept = QueryDict(mutable=True)
    for name, value in values.items():
        if value:
            kept[name] = value
    return f"?{kept.urlencode()}"


def _filter(one: str | Filter) -> Filter:
    return one if isinstance(one, Filter) else Filter(one, one.capitalize(), lambda value: Q(**{one: value}))


def _chosen(filters: Iterable[Filter], state: QueryDict) -> tuple[dict[Filter, str], Q, list[str]]:
    chosen: dict[Filter, str] = {}
    conditions, problems = Q(), []
    for one in filters:
        if not (value := read(state.get(one.name, ""), operators=False).text[:64]):
            continue
        try:
            condition = one.keep(value)
            _must_follow({each.name: begun for each, begun in chosen.items()}, one.ends, value)
            conditions &= condition
            chosen[one] = value
        except NotUnderstood as reason:
            problems.append(f"{one.label} “{value}” was left out. {reason}")
    return chosen, conditions, problems


def _must_follow(chosen: Mapping[str, str], ends: Ends | None, value: str) -> None:
    if ends and ends.begun_by in chosen and ends.read(value) < ends.read(chosen[ends.begun_by]):
        raise NotUnderstood(ends.otherwise)


def _order(wanted: str, sorts: Mapping[str, str]) -> tuple[str, list[OrderBy]]:
    """The order as it is named, and its columns; a leading dash turns it round.

    What has no value stands last either way. The id settles what is equal, in the same direction: an index can be read
    backwards only as a whole.
    """
    name = wanted.removeprefix("-")
    if name not in sorts:
        wanted = name = next(iter(sorts))
    column = sorts[name].removeprefix("-")
    falling = sorts[name].startswith("-") != wanted.startswith("-")
    last = True if column in _OPTIONAL else None
    return wanted, [OrderBy(F(column), falling, nulls_last=last), OrderBy(F("id"), falling)]


def _chips(asked: Query, chosen: Mapping[Filter, str], state: QueryDict) -> list[Chip]:
    text = [Chip("Text", f"“{asked.text}”", query_string(state, q=None))] if asked.text else []
    rest = [
        Chip(one.label, one.words(value), query_string(state, **{one.name: None}))
        for one, value in chosen.items()
    ]
    return text + rest


def _sort_link(name: str, sort: str, sorts: Mapping[str, str], state: QueryDict) -> SortLink:
    if sort.removeprefix("-") != name:
        return SortLink("", query_string(state, sort=name))
    _, columns = _order(sort, sorts)
    direction = "descending" if columns[0].descending else "ascending"
    return SortLink(direction, query_string(state, sort=name if sort.startswith("-") else f"-{name}"))


@dataclass
class Position:
    """What one borrower has, as far as it is known here."""

    people: list[str] = field(default_factory=list)
    loans: int = 0
    lines: int = 0
    past_due: Decimal | None = None
    decision: str = ""
    has_open_application: bool = False
    flagged: bool = False


def positions(borrower_uuids: Sequence[str]) -> dict[str, Position]:
    """The position of each of these borrowers."""
    found = {uuid: Position() for uuid in borrower_uuids}
    kinds = [Kind.KEY_PERSON, Kind.APPLICATION, Kind.LOAN, Kind.LINE]
    related = Record.objects.filter(borrower_uuid__in=found, archived_at__isnull=True, kind__in=kinds)
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
                position.has_open_application |= status.upper() not in DECIDED
        if past_due is not None:
            position.past_due = (position.past_due or Decimal(0)) + past_due
        position.flagged = position.flagged or flagged
    return found


def roll_up(borrower_uuids: Iterable[str]) -> None:
    """Write each borrower's position onto its own row, where lists can filter and sort by it.

    The row's past due is the sum of its lines', and nothing where none tells one; its flag is any account's, its status
    the latest decision or ``OPEN``.
    """
    uuids = set(borrower_uuids)
    if not uuids:
        return
    owners = Record.objects.filter(kind=Kind.BORROWER, uuid__in=uuids)
    borrowers = list(owners.select_for_update().order_by("id").only("uuid", "past_due", "flagged", "status"))
    has = positions([borrower.uuid for borrower in borrowers])
    changed = [borrower for borrower in borrowers if _stands_otherwise(borrower, has[borrower.uuid])]
    Record.objects.bulk_update(changed, ["past_due", "flagged", "status"], batch_size=100)


def _stands_otherwise(borrower: Record, position: Position) -> bool:
    """Take the position into the row; whether that says anything new."""
    before = borrower.past_due, borrower.flagged, borrower.status
    borrower.past_due, borrower.flagged = position.past_due, position.flagged
    borrower.status = OPEN if position.has_open_application else position.decision
    return before != (borrower.past_due, borrower.flagged, borrower.status)


def with_borrowers(records: Iterable[Record]) -> list[tuple[Record, Record | None]]:
    """Each record with its borrower, where that is known, in one more query."""
    rows = list(records)
    owners = {row.borrower_uuid for row in rows}
    borrowers = {r.uuid: r for r in Record.objects.filter(kind=Kind.BORROWER, uuid__in=owners)}
    return [(row, borrowers.get(row.borrower_uuid)) for row in rows]
