"""Iterating over a paged list with any offset unit, even while records are added or removed."""

from collections.abc import Iterable
from itertools import chain, repeat
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicing import IncompleteList, Page, Pagination
from servicing.codec import Record
from servicing.resource import OffsetUnit, iterate, read_page

OFFSET_UNITS: list[OffsetUnit] = ["rows", "pages0", "pages1"]


class PagedList:
    """A paged list with one of the three offset units; each read first adds new records at its front."""

    def __init__(self, size: int, limit: int, counts: OffsetUnit, arrivals: Iterable[int] = ()) -> None:
        self.old = [f"old-{number}" for number in range(size)]
        self.rows, self.limit, self.counts = list(self.old), limit, counts
        self.arrivals = chain(arrivals, repeat(0))
        self.asked: list[int] = []
        self.has_total = True
        self.total: int | None = None
        """The total that the list reports instead of its real size."""

    def fetch(self, offset: int) -> Page[Record]:
        new = [f"new-{len(self.asked)}-{number}" for number in range(next(self.arrivals))]
        self.rows = new + self.rows
        self.asked.append(offset)
        start = {"rows": offset, "pages0": offset * self.limit, "pages1": max(offset - 1, 0) * self.limit}
        data = self.rows[start[self.counts] :][: self.limit]
        return Page(
            pagination=Pagination(
                offset=offset,
                limit=self.limit,
                total=(self.total or len(self.rows)) if self.has_total else None,
            ),
            data=[Record(uuid=uuid) for uuid in data],
        )

    def iterated_uuids(self, counts: OffsetUnit | None = None) -> list[str]:
        return [record.uuid for record in iterate(self.fetch, counts)]


@given(
    size=st.integers(0, 40),
    limit=st.integers(1, 7),
    counts=st.sampled_from(OFFSET_UNITS),
    arrivals=st.lists(st.integers(0, 4), max_size=20),
    is_known=st.booleans(),
)
def test_every_record_is_found_once_while_others_are_added(
    size: int, limit: int, counts: OffsetUnit, arrivals: list[int], is_known: bool
) -> None:
    paged_list = PagedList(size, limit, counts, arrivals)
    found = paged_list.iterated_uuids(counts if is_known else None)

    assert len(found) == len(set(found))
    assert set(paged_list.old) <= set(found)


@given(size=st.integers(0, 40), limit=st.integers(1, 7), counts=st.sampled_from(OFFSET_UNITS))
def test_every_record_is_found_once_without_a_total(size: int, limit: int, counts: OffsetUnit) -> None:
    paged_list = PagedList(size, limit, counts)
    paged_list.has_total = False

    assert paged_list.iterated_uuids() == paged_list.old


@pytest.mark.parametrize(
    ("counts", "asked"),
    [("rows", [0, 1, 11, 21]), ("pages0", [0, 1, 2]), ("pages1", [0, 1, 2, 3])],
)
def test_the_offset_unit_is_detected_with_one_extra_page(counts: OffsetUnit, asked: list[int]) -> None:
    paged_list = PagedList(29, 10, counts)

    assert paged_list.iterated_uuids() == paged_list.old
    assert paged_list.asked == asked


@pytest.mark.parametrize(
    ("counts", "asked"), [("rows", [0, 10, 20]), ("pages0", [0, 1, 2]), ("pages1", [1, 2, 3])]
)
def test_a_known_offset_unit_needs_no_extra_page(counts: OffsetUnit, asked: list[int]) -> None:
    paged_list = PagedList(29, 10, counts)

    assert paged_list.iterated_uuids(counts) == paged_list.old
    assert paged_list.asked == asked


def test_a_list_of_one_page_is_read_once() -> None:
    paged_list = PagedList(9, 10, "pages0")

    assert paged_list.iterated_uuids() == paged_list.old
    assert paged_list.asked == [0]


@pytest.mark.parametrize("counts", OFFSET_UNITS)
def test_a_total_that_is_too_low_does_not_end_the_list(counts: OffsetUnit) -> None:
    """A full page may not be the last one, whatever the total, so one more is read."""
    paged_list = PagedList(30, 10, counts)
    paged_list.total = 10

    assert paged_list.iterated_uuids() == paged_list.old


def page_of(*numbers: int, total: int | None = 99) -> Page[Record]:
    return Page(
        pagination=Pagination(limit=len(numbers), total=total),
        data=[Record(uuid=f"m-{number}") for number in numbers],
    )


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        ([page_of(1, 2)], "repeats its pages: 2 of 99"),
        ([page_of(1, 2, total=None)], "repeats its pages: 2 records"),
        ([page_of(1, 2), page_of(3), page_of()], "ends early: 3 of 99"),
        ([page_of()], "ends early: 0 of 99"),
        ([page_of(1, 2, total=3), page_of(1, 2, total=3), page_of(total=3)], "ends early: 2 of 3"),
    ],
)
def test_an_incomplete_list_raises_at_its_end(pages: list[Page[Record]], words: str) -> None:
    found: list[str] = []
    iterate_pages = iterate(lambda offset: pages[min(offset, len(pages) - 1)])
    with pytest.raises(IncompleteList, match=words):
        found.extend(record.uuid for record in iterate_pages)

    assert found == list(dict.fromkeys(record.uuid for page in pages for record in page))


@pytest.mark.parametrize("counts", OFFSET_UNITS)
def test_a_page_that_repeats_once_drops_no_records(counts: OffsetUnit) -> None:
    paged_list = PagedList(40, 10, counts)
    pages = [paged_list.fetch(0)]

    def fetch(offset: int) -> Page[Record]:
        page = paged_list.fetch(offset)
        pages.append(pages[-1] if len(pages) == 3 else page)
        return pages[-1]

    assert {record.uuid for record in iterate(fetch)} == set(paged_list.old)


@given(
    size=st.integers(0, 40),
    limit=st.integers(1, 7),
    counts=st.sampled_from(OFFSET_UNITS),
    removals=st.lists(st.integers(0, 3), max_size=12),
    chance=st.randoms(use_true_random=False),
)
def test_remaining_records_are_found_while_others_are_removed(
    size: int, limit: int, counts: OffsetUnit, removals: list[int], chance: Random
) -> None:
    paged_list = PagedList(size, limit, counts)
    waiting = iter(removals)

    def fetch(offset: int) -> Page[Record]:
        for _ in range(min(next(waiting, 0), len(paged_list.rows))):
            paged_list.rows.pop(chance.randrange(len(paged_list.rows)))
        return paged_list.fetch(offset)

    found: list[str] = []
    try:
        found += (record.uuid for record in iterate(fetch))
    except IncompleteList:
        assert any(removals)
        return
    assert len(found) == len(set(found))
    assert set(paged_list.rows) <= set(found)


def test_pages_are_read_on_demand() -> None:
    paged_list = PagedList(30, 10, "pages0")
    next(iterate(paged_list.fetch))

    assert paged_list.asked == [0]


@pytest.mark.parametrize("value", [[{"uuid": "m-1"}], {"data": [{"uuid": "m-1"}], "pagination": "none"}])
def test_a_page_may_lack_pagination(value: Any) -> None:
    page = read_page(Record, value)

    assert page.pagination == Pagination()
    assert [record.uuid for record in page] == ["m-1"]
    assert len(page) == 1
