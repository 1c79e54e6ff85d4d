"""What the areas of the interface have in common: reading a record, reading a list, writing, and paging.

Hides how a result is decoded, and how every record of a paged list is found once although the interface does
not make clear what its `offset` counts.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct

from servicing.codec import Model, Record, read, read_list, unwrapped
from servicing.transport import Payload, Transport

M = TypeVar("M", bound=Model)
R = TypeVar("R", bound=Record)

Counts = Literal["rows", "pages0", "pages1"]
"""What an offset counts: rows, pages from 0, or pages from 1."""


class Resource:
    """Base of the areas."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _get(self, operation: str, path: str, model: type[M], **ids: str) -> M:
        return self._transport.call(operation, "GET", path, ids=ids, read=partial(read, model))

    def _list(self, operation: str, path: str, model: type[M], **ids: str) -> list[M]:
        def read_all(value: Any) -> list[M]:
            return read_list(model, unwrapped(value))

        return self._transport.call(operation, "GET", path, ids=ids, read=read_all)

    def _write(
        self, operation: str, method: str, path: str, model: type[M], payload: Payload, **ids: str
    ) -> M:
        return self._transport.call(
            operation, method, path, ids=ids, payload=payload, read=partial(read, model)
        )


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

    def __iter__(self) -> Iterator[R]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


def read_page(model: type[R], value: Any) -> Page[R]:
    """A page from parsed JSON; a bare array is a page that does not tell where it stands."""
    place = value.get("pagination") if isinstance(value, dict) else None
    return Page(
        pagination=read(Pagination, place if isinstance(place, dict) else {}),
        data=read_list(model, unwrapped(value)),
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
    """Every record of a paged list once, whatever offsets count, while new ones may arrive at its front."""
    for step in walk(fetch, counts):
        yield from step.new


def walk(
    fetch: Callable[[int], Page[R]], counts: Counts | None = None, *, start: Place | None = None
) -> Iterator[Step[R]]:
    """The pages of a list, one after the other, from its front or from the place where a walk was cut off.

    `fetch` gives the page at an offset. Unless `counts` tells what offsets count, two neighbouring answers
    show it. While that is in doubt the walk goes on by 1: slow if it is rows, and right in every case.
    """
    seen: set[str] = set()
    offset, barren = (1 if counts == "pages1" else 0), 0
    if start:
        offset, counts = start.offset, counts or start.counts
    first = page = fetch(offset)
    while True:
        new = {record.uuid: record for record in page if record.uuid not in seen}
        seen.update(new)
        yield Step(list(new.values()), page, Place(offset, counts))
        barren = 0 if new else barren + 1
        if not page.data or len(seen) == page.pagination.total or barren > 1 + _arrived(first, page):
            return
        step = len(page) if counts == "rows" else 1
        offset, previous, page = offset + step, page, fetch(offset + step)
        counts = counts or _what_counts(previous, page)


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
