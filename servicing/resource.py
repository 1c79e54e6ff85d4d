"""What the areas of the interface have in common: reading a record, reading a list, writing, and paging.

Hides how a result is decoded, and how every record of a paged list is found once although the interface does
not make clear what its `offset` counts.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct

from servicing.codec import Budget, Model, Record, read, read_list, unwrapped
from servicing.errors import IncompleteList, ProtocolError
from servicing.transport import Payload, Transport

M = TypeVar("M", bound=Model)
R = TypeVar("R", bound=Record)

Counts = Literal["rows", "pages0", "pages1"]
"""What an offset counts: rows, pages from 0, or pages from 1."""

PASSES: Final = 3
"""How many times a list is read when records may have been missed."""


class Resource:
    """Base of the areas."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _get(self, operation: str, path: str, model: type[M], *, uuid: str = "", **ids: str) -> M:
        """Read one record; `uuid` is the one that its answer must carry, where it carries any."""
        return self._transport.call(operation, "GET", path, ids=ids, read=partial(_read_record, model, uuid))

    def _list(self, operation: str, path: str, model: type[M], **ids: str) -> list[M]:
        def read_all(value: Any, budget: Budget) -> list[M]:
            return read_list(model, unwrapped(value), budget)

        return self._transport.call(operation, "GET", path, ids=ids, read=read_all)

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
            operation, method, path, ids=ids, payload=payload, read=partial(_read_record, model, uuid)
        )


def _read_record(model: type[M], uuid: str, value: Any, budget: Budget) -> M:
    """The record that was asked for. Any other must not pass for it, wherever the service mixed them up."""
    record = read(model, value, budget)
    if uuid and isinstance(record, Record) and record.uuid.casefold() != uuid.casefold():
        raise ProtocolError(
            f"The answer holds the {model.__name__} {record.uuid[:60]!r}, not the one asked for."
        )
    return record


class Pagination(Model, frozen=True, kw_only=True):
    """Where a page stands in its list, as the service counts it (section 2.10).

    `limit` is records a page and `total` records in all. The interface leaves open whether `offset` counts
    records or pages.
    """

    offset: int | None = None
    limit: int | None = None
    total: int | None = None


class Page(Struct, Generic[R], frozen=True, kw_only=True):
    """One page of a list (section 2.10): its `pagination` and its `data`, the records. Iterates over them."""

    pagination: Pagination
    data: list[R]
    filters_ignored: bool = False
    """Whether a record contradicts the filters that were sent, so that the service cannot have used them."""

    def __iter__(self) -> Iterator[R]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


def read_page(model: type[R], value: Any, budget: Budget | None = None) -> Page[R]:
    """A page from parsed JSON; a bare array is a page that does not tell where it stands."""
    place = value.get("pagination") if isinstance(value, dict) else None
    return Page(
        pagination=read(Pagination, place if isinstance(place, dict) else {}),
        data=read_list(model, unwrapped(value), budget),
    )


class Place(NamedTuple):
    """Where a walk stands: the offset of a page, and what offsets count, once that is known."""

    offset: int
    counts: Counts | None = None


class Step(NamedTuple, Generic[R]):
    """One page of a walk: the records in it that this walk had not met, and where a later walk may go on."""

    new: list[R]
    page: Page[R]
    place: Place


def iterate(fetch: Callable[[int], Page[R]], counts: Counts | None = None) -> Iterator[R]:
    """Every record of a paged list once, whatever offsets count, while new ones may arrive at its front.

    A pass that may have missed records is repeated; `IncompleteList` where that does not help.
    """
    seen: set[str] = set()
    for last in range(PASSES):
        known = len(seen)
        try:
            for step in walk(fetch, counts):
                new = [record for record in step.new if record.uuid not in seen]
                seen.update(record.uuid for record in new)
                yield from new
            return
        except IncompleteList:
            if last == PASSES - 1 or (last and len(seen) == known):
                raise


def walk(
    fetch: Callable[[int], Page[R]], counts: Counts | None = None, *, start: Place | None = None
) -> Iterator[Step[R]]:
    """The pages of a list, one after the other, from its front or from the place where a walk was cut off.

    `fetch` gives the page at an offset. Unless `counts` tells what offsets count, two neighbouring answers
    show it. While that is in doubt the walk goes on by 1: slow if it is rows, and right in every case.

    Raises `IncompleteList` at its end where records may be missing: a page repeats, an empty page comes before
    the total, or the total shrinks, for then records moved to pages that were read already. A walk from the
    middle cannot know that, and its caller has to.
    """
    seen: set[str] = set()
    offset, pages_without_new = (1 if counts == "pages1" else 0), 0
    if start:
        offset, counts = start.offset, counts or start.counts
    first = previous = page = fetch(offset)
    has_shrunk, trusts_total = False, True
    while True:
        new = {record.uuid: record for record in page if record.uuid not in seen}
        seen.update(new)
        yield Step(list(new.values()), page, Place(offset, counts))
        if new:
            pages_without_new = 0
        elif len(page) >= len(
            previous
        ):  # Pages that get shorter are the end of a list whose offsets count rows.
            pages_without_new += 1
        total = page.pagination.total
        if total is not None and len(seen) > total and not has_shrunk:
            trusts_total = False
        is_counted = trusts_total and not has_shrunk and total is not None and len(seen) >= total
        if not page.data or (is_counted and _is_short(page)) or pages_without_new > 1 + _arrived(first, page):
            break
        step = len(page) if counts == "rows" else 1
        offset, previous, page = offset + step, page, fetch(offset + step)
        has_shrunk = has_shrunk or _has_shrunk(previous, page)
        counts = counts or _what_counts(previous, page)
    if not start:
        _require_all(len(seen), first.pagination.total if trusts_total else None, page, has_shrunk=has_shrunk)


def _is_short(page: Page[R]) -> bool:
    """Whether no page can follow. A full page may be the last one only by what the list says of itself."""
    limit = page.pagination.limit
    return limit is not None and len(page) < limit


def _has_shrunk(previous: Page[R], page: Page[R]) -> bool:
    before, after = previous.pagination.total, page.pagination.total
    return before is not None and after is not None and after < before


def _require_all(number: int, total: int | None, last: Page[R], *, has_shrunk: bool) -> None:
    """`total` is what the list said when the walk began, or None when that number cannot be trusted."""
    if has_shrunk:
        raise IncompleteList("Records were removed from the list while it was read, so some may be missing.")
    if total is not None and number < total:
        reason = "repeats its pages" if last.data else "ends early"
        raise IncompleteList(f"The list {reason}: {number:,} of {total:,} records were read.")
    if total is None and last.data:
        raise IncompleteList(f"The list repeats its pages: {number:,} records were read.")


def _arrived(first: Page[R], page: Page[R]) -> int:
    """How many records came since the first page; each may have pushed a known one onto a later page."""
    return max(0, (page.pagination.total or 0) - (first.pagination.total or 0))


def _what_counts(previous: Page[R], page: Page[R]) -> Counts | None:
    """What the answers to two neighbouring offsets show, provided that nothing arrived between them."""
    before, after = ([record.uuid for record in each] for each in (previous, page))
    if previous.pagination.total is None or previous.pagination.total != page.pagination.total:
        return None
    if len(before) > 1 and after[: len(before) - 1] == before[1:]:
        return "rows"
    if after == before:
        return "pages1"
    return "pages0" if not set(before) & set(after) else None
