"""The base of all resources: reading a record, reading a list, writing, and paging.

Hides how a result is decoded, which objects are no answer, and how paging yields every record once although the
interface does not say what `offset` counts.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct

from servicing.answers import open_envelope
from servicing.codec import Budget, Model, Record, read, read_list, to_json, unwrap_list
from servicing.errors import IncompleteList, ProtocolError, Rejected
from servicing.reasons import (
    has_content,
    has_failed_http_status,
    mentions_error,
    plain_name,
    says_error,
    says_failed_status,
    says_no,
    says_success,
)
from servicing.transport import Payload, Transport

M = TypeVar("M", bound=Model)
R = TypeVar("R", bound=Record)

OffsetUnit = Literal["rows", "pages0", "pages1"]
"""What an offset counts: rows, pages from 0, or pages from 1."""

MAX_PASSES: Final = 3
"""How often a list is read at most if records may have been missed."""
_TOTALS: Final = frozenset(
    {"total", "totalcount", "totalitems", "totalrecords", "totalelements", "totalresults"}
)
_MORE: Final = frozenset(
    {"hasmore", "hasnext", "hasnextpage", "next", "nextpage", "nextcursor", "nextpagetoken"}
)
_COMMON_FIELDS: Final = frozenset(
    {"uuid", "user_uuid", "external_id", "status", "state", "details", "created_at"}
)
"""Fields of records that an error object may have too."""
_IDENTITY: Final = frozenset({"uuid", "user_uuid"})
"""Fields that say only which record it would be."""


class Resource:
    """Base of the resources of a client, one for each area of the service."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _get(self, operation: str, path: str, model: type[M], *, uuid: str = "", **ids: str) -> M:
        """Read one record; raise `ProtocolError` if its uuid is not `uuid`."""
        return self._transport.call(
            operation,
            "GET",
            path,
            ids=ids,
            read=partial(read_record, model, uuid, self._transport.envelope),
        )

    def _list(self, operation: str, path: str, model: type[R], **ids: str) -> list[R]:
        """Read a list, further pages too if its envelope says that there are any.

        The answer of a call is the whole list or, before the last one, its `Page`. Raises `IncompleteList` if the
        service doesn't return all of it.
        """
        rows: dict[str, R] = {}
        pages: list[Page[R]] = []
        answer: list[R] | Page[R] = []

        def read_part(value: Any, budget: Budget) -> list[R] | Page[R]:
            budget.take_records(len(rows))  # Those of earlier pages; this page counts itself.
            pages.append(page := read_page(model, value, budget, self._transport.list_envelope))
            rows.update((record.uuid, record) for record in page)
            found = page.data if len(pages) == 1 else list(rows.values())
            is_part = len(found) < (page.pagination.total or 0) or (page.data and _announces_more(value))
            return page if is_part else found

        def fetch(offset: int) -> Page[R]:
            nonlocal answer
            # The interface names no parameters for these lists, so the first call has none.
            query = {"limit": str(len(pages[0])), "offset": str(offset)} if pages else None
            answer = self._transport.call(operation, "GET", path, ids=ids, query=query, read=read_part)
            return pages[-1]

        try:
            for _ in iterate_pages(fetch):
                if isinstance(answer, list):
                    return answer
        except (IncompleteList, Rejected):
            if not pages:
                raise
        total = pages[0].pagination.total
        of_total = f"{len(rows):,} of {total:,}" if total else f"only {len(rows):,}"
        raise IncompleteList(f"The list is incomplete: the service returned {of_total} records.")

    def _write(
        self,
        operation: str,
        method: str,
        path: str,
        model: type[M],
        payload: Payload,
        *,
        uuid: str = "",
        **ids: str,
    ) -> M:
        return self._transport.call(
            operation,
            method,
            path,
            ids=ids,
            payload=payload,
            read=partial(read_record, model, uuid, self._transport.envelope, is_write=True),
        )


def read_record(
    model: type[M], uuid: str, envelope: str, value: Any, budget: Budget, *, is_write: bool = False
) -> M:
    """The requested record; raise `ProtocolError` for an error, something else or another record.

    A write that says that it succeeded may have an error about something else. A write may be answered with an ID
    alone, but a read that finds nothing besides would empty the saved copy.
    """
    inner = open_envelope(value, envelope)
    for part in (value, inner):
        if isinstance(part, dict) and _is_error(part) and not (is_write and says_success(part)):
            raise ProtocolError(f"The response is an error instead of a {model.__name__}.")
    if inner is value and isinstance(value, dict) and value.get(envelope) is not None:
        raise ProtocolError(f"“{envelope}” in the response isn’t an object, as a {model.__name__} must be.")
    value = inner
    record = read(model, value, budget)
    if not has_fields(record) or not (is_write or record.raw.keys() - record.extra.keys() - _IDENTITY):
        raise ProtocolError(f"The response has no field of a {model.__name__}.")
    if uuid and isinstance(record, Record) and record.uuid.casefold() != uuid.casefold():
        raise ProtocolError(
            f"The response has the {model.__name__} {record.uuid[:60]!r}, not the one requested."
        )
    return record


def _is_error(value: Mapping[str, Any]) -> bool:
    return says_error(value) or has_failed_http_status(value)


def has_fields(record: Model) -> bool:
    """Whether an object has a field of its kind, so that it is a record and no error, envelope or empty object.

    A field may be null, but not unreadable. Fields that an error may have too count only if nothing else in the
    object belongs to an error.
    """
    unreadable = {issue.path for issue in record.issues}
    fields = record.raw.keys() - record.extra.keys() - unreadable
    return bool(fields - _COMMON_FIELDS) or (bool(fields) and not mentions_error(record.extra))


def read_records(
    model: type[M], value: Any, budget: Budget | None = None, list_envelope: str = ""
) -> list[M]:
    """The records of a list, bare or in an envelope; raise `ProtocolError` if it or one of them is an error.

    What a record says beside its fields is not looked at: a failed repayment may well name its error.
    """
    records = read_list(model, _unwrap(value, list_envelope), budget)
    if odd := [number for number, record in enumerate(records, 1) if not has_fields(record)]:
        raise ProtocolError(f"Item {odd[0]} of {len(records)} has no field of a {model.__name__}.")
    return records


def _unwrap(value: Any, list_envelope: str = "") -> list[Any]:
    if isinstance(value, dict):
        for part in (value, *_pagination_objects(value)):
            if says_error(part) or says_failed_status(part):
                raise ProtocolError("The response is an error instead of a list.")
    return unwrap_list(value, list_envelope)


class Pagination(Model, frozen=True, kw_only=True):
    """The position of a page in its list, as the service reports it (section 2.10).

    `limit` is records per page, `total` records in all. The interface leaves open whether `offset` counts records
    or pages.
    """

    offset: int | None = None
    limit: int | None = None
    total: int | None = None


class Unusable(NamedTuple):
    """An element of a list that is no record: as received, and where it is, which tells equal ones apart."""

    raw: Any
    places: frozenset[str]


class Page(Struct, Generic[R], frozen=True, kw_only=True):
    """One page of a list (section 2.10): its `pagination`, and the records in `data`, over which it iterates.

    Its length is the number of elements received, those in `unusable` included.
    """

    pagination: Pagination
    data: list[R]
    unusable: list["Unusable"] = []
    """Elements without a usable ID or without a field of their kind."""
    order: list[str] = []
    """Every element in order, with its content if it has no usable ID; empty if all are in `data`."""
    filters_ignored: bool = False
    """Whether a record does not match the filters that were sent, so the service can't have used them."""

    def __iter__(self) -> Iterator[R]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data) + len(self.unusable)


def read_page(model: type[R], value: Any, budget: Budget | None = None, list_envelope: str = "") -> Page[R]:
    """A page from parsed JSON; a bare array is a page without pagination."""
    records = read_records(model, value, budget, list_envelope)
    return Page(pagination=_read_pagination(value), data=records)


def read_usable(model: type[R], value: Any, budget: Budget | None = None) -> Page[R]:
    """A page from parsed JSON, with elements that are no records put apart instead of raising for them."""
    rows = _unwrap(value)
    with_id = [raw for raw in rows if isinstance(raw, dict) and _is_usable_id(raw.get("uuid"))]
    records = read_list(model, with_id, budget)
    usable = [record for record in records if has_fields(record)]
    if (
        isinstance(value, list)
        and not usable
        and any(isinstance(raw, dict) and says_error(raw) for raw in rows)
    ):
        raise ProtocolError("The response is an error instead of a list.")
    uuids = {id(record.raw): record.uuid for record in usable}
    order = [uuids.get(id(raw)) or to_json(raw).decode() for raw in rows]
    unusable = [
        Unusable(raw, frozenset(_places(order, number, set(uuids.values()))))
        for number, raw in enumerate(rows)
        if id(raw) not in uuids
    ]
    return Page(pagination=_read_pagination(value), data=usable, unusable=unusable, order=order)


def _places(order: list[str], number: int, uuids: set[str]) -> Iterator[str]:
    """The distances of an element from the nearest records before and after it on its page."""
    for step, end in ((-1, -1), (1, len(order))):
        found = next((place for place in range(number, end, step) if order[place] in uuids), None)
        if found is not None:
            yield f"{number - found} from {order[found]}"


def _is_usable_id(value: Any) -> bool:
    return (isinstance(value, str) and bool(value.strip())) or type(value) in (int, Decimal)


def _read_pagination(envelope: Any) -> Pagination:
    """The pagination of an envelope; some services put the total beside the data or call it otherwise."""
    if not isinstance(envelope, dict):
        return Pagination()
    pagination = next(_pagination_objects(envelope))
    found = read(Pagination, pagination)
    if found.total is not None:
        return found
    totals = (
        item
        for values in (*_pagination_objects(envelope), envelope)
        for name, item in values.items()
        if plain_name(name) in _TOTALS
    )
    return read(Pagination, pagination | {"total": next(totals, None)})


def _announces_more(value: Any) -> bool:
    """Whether an envelope says in another way than by its total that there are more pages."""
    return isinstance(value, dict) and any(
        plain_name(name) in _MORE and has_content(item) and not says_no(item)
        for values in (*_pagination_objects(value), value)
        for name, item in values.items()
    )


def _pagination_objects(envelope: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects beside the data that describe pages; the first may be empty."""
    pagination = envelope.get("pagination")
    yield pagination if isinstance(pagination, dict) else {}
    for values in (envelope.get(name) for name in ("meta", "paging", "page", "links")):
        if isinstance(values, dict):
            yield values
            if isinstance(inner := values.get("pagination"), dict):
                yield inner


class Cursor(NamedTuple):
    """A position in a list: the offset of a page, and what offsets count, once that is known."""

    offset: int
    counts: OffsetUnit | None = None


class PageStep(NamedTuple, Generic[R]):
    """One page of an iteration: its new records, and the cursor from which a later iteration can resume."""

    new: list[R]
    page: Page[R]
    cursor: Cursor
    unusable: list[Unusable]
    """The new elements that are no records."""


def iterate(fetch: Callable[[int], Page[R]], counts: OffsetUnit | None = None) -> Iterator[R]:
    """Every record of a paged list once, whatever offsets count, even while new ones arrive at its front.

    A pass that may have missed records is repeated; raises `IncompleteList` if that does not help, or at the end if
    elements had no usable ID.
    """
    seen: set[str] = set()
    for attempt in range(MAX_PASSES):
        seen_before, unusable = len(seen), 0
        try:
            for step in iterate_pages(fetch, counts):
                unusable += len(step.unusable)
                new = [record for record in step.new if record.uuid not in seen]
                seen.update(record.uuid for record in new)
                yield from new
            break
        except IncompleteList:
            if attempt == MAX_PASSES - 1 or (attempt and len(seen) == seen_before):
                raise
    if unusable:
        raise IncompleteList(f"{unusable:,} of the list’s elements have no usable ID.")


def iterate_pages(
    fetch: Callable[[int], Page[R]], counts: OffsetUnit | None = None, *, start: Cursor | None = None
) -> Iterator[PageStep[R]]:
    """The pages of a list in order, from its front or from the cursor `start` of an earlier iteration.

    `fetch` returns the page at an offset. Without `counts`, two neighboring pages show what offsets count. Until then
    the offset grows by 1, which is slow if it counts rows, but always correct.

    Raises `IncompleteList` at the end if records may be missing: pages repeat, an empty page comes before the total,
    or the total shrinks, because then records moved to pages already read. With `start` it cannot know, so the
    caller must check.
    """
    seen: set[str] = set()
    places: set[str] = set()
    number = 0
    offset, pages_without_new = (1 if counts == "pages1" else 0), 0
    if start:
        offset, counts = start.offset, counts or start.counts
    first = previous = page = fetch(offset)
    has_shrunk, trusts_total = False, True
    while True:
        new = {record.uuid: record for record in page if record.uuid not in seen}
        unusable = [one for one in page.unusable if not one.places & places]
        seen.update(new)
        places.update(*(one.places for one in unusable))
        number += len(new) + len(unusable)
        yield PageStep(list(new.values()), page, Cursor(offset, counts), unusable)
        if new or unusable:
            pages_without_new = 0
        elif len(page) >= len(previous):
            # If offsets count rows, the last pages get shorter; these don't count.
            pages_without_new += 1
        total = page.pagination.total
        if total is not None and number > total and not has_shrunk:
            trusts_total = False
        is_counted = trusts_total and not has_shrunk and total is not None and number >= total
        if (
            not len(page)
            or (is_counted and _is_short(page))
            or pages_without_new > 1 + _count_new_records(first, page)
        ):
            break
        step = len(page) if counts == "rows" else 1
        offset, previous, page = offset + step, page, fetch(offset + step)
        has_shrunk = has_shrunk or _has_shrunk(previous, page)
        counts = counts or _offset_unit(previous, page)
    if not start:
        _require_all(number, first.pagination.total if trusts_total else None, page, has_shrunk=has_shrunk)


def _is_short(page: Page[R]) -> bool:
    """Whether the page has fewer records than its limit, so that none can follow."""
    limit = page.pagination.limit
    return limit is not None and len(page) < limit


def _has_shrunk(previous: Page[R], page: Page[R]) -> bool:
    before, after = previous.pagination.total, page.pagination.total
    return before is not None and after is not None and after < before


def _require_all(number: int, total: int | None, last: Page[R], *, has_shrunk: bool) -> None:
    """Raise `IncompleteList` if records may be missing. `total` is from the first page; None if not reliable."""
    if has_shrunk:
        raise IncompleteList("Records were removed from the list while it was read, so some may be missing.")
    if total is not None and number < total:
        reason = "repeats its pages" if len(last) else "ends early"
        raise IncompleteList(f"The list {reason}: {number:,} of {total:,} records were read.")
    if total is None and len(last):
        raise IncompleteList(f"The list repeats its pages: {number:,} records were read.")


def _count_new_records(first: Page[R], page: Page[R]) -> int:
    """The number of records added since the first page; each may have pushed a known one onto a later page."""
    return max(0, (page.pagination.total or 0) - (first.pagination.total or 0))


def _offset_unit(previous: Page[R], page: Page[R]) -> OffsetUnit | None:
    """What offsets count, as two neighboring pages show it; None if they leave it open."""
    before, after = (each.order or [record.uuid for record in each] for each in (previous, page))
    if previous.pagination.total is None or previous.pagination.total != page.pagination.total:
        return None
    if len(before) > 1 and after[: len(before) - 1] == before[1:]:
        return "rows"
    if after == before:
        return "pages1"
    return "pages0" if not set(before) & set(after) else None
