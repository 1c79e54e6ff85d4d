"""Walking a paged list whole, whatever its offsets count, also while new records arrive."""

from collections.abc import Iterable
from itertools import chain, repeat
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicing import IncompleteList, Page, Pagination
from servicing.codec import Record
from servicing.resource import Counts, iterate, read_page

READINGS: list[Counts] = ["rows", "pages0", "pages1"]


class Shelf:
    """A list that counts its offsets in one of the three ways, and to whose front records are added."""

    def __init__(self, size: int, limit: int, reading: Counts, arrivals: Iterable[int] = ()) -> None:
        self.old = [f"old-{number}" for number in range(size)]
        self.rows, self.limit, self.reading = list(self.old), limit, reading
        self.arrivals = chain(arrivals, repeat(0))
        self.asked: list[int] = []
        self.tells_total = True
        self.total: int | None = None
        """What the list says instead of how many it has."""

    def fetch(self, offset: int) -> Page[Record]:
        new = [f"new-{len(self.asked)}-{number}" for number in range(next(self.arrivals))]
        self.rows = new + self.rows
        self.asked.append(offset)
        start = {"rows": offset, "pages0": offset * self.limit, "pages1": max(offset - 1, 0) * self.limit}
        data = self.rows[start[self.reading] :][: self.limit]
        return Page(
            pagination=Pagination(
                offset=offset,
                limit=self.limit,
                total=(self.total or len(self.rows)) if self.tells_total else None,
            ),
            data=[Record(uuid=uuid) for uuid in data],
        )

    def walked(self, counts: Counts | None = None) -> list[str]:
        return [record.uuid for record in iterate(self.fetch, counts)]


@given(
    size=st.integers(0, 40),
    limit=st.integers(1, 7),
    reading=st.sampled_from(READINGS),
    arrivals=st.lists(st.integers(0, 4), max_size=20),
    told=st.booleans(),
)
def test_every_record_is_found_once_while_others_arrive(
    size: int, limit: int, reading: Counts, arrivals: list[int], told: bool
) -> None:
    shelf = Shelf(size, limit, reading, arrivals)
    found = shelf.walked(reading if told else None)

    assert len(found) == len(set(found))
    assert set(shelf.old) <= set(found)


@given(size=st.integers(0, 40), limit=st.integers(1, 7), reading=st.sampled_from(READINGS))
def test_every_record_is_found_once_even_when_no_total_is_told(
    size: int, limit: int, reading: Counts
) -> None:
    shelf = Shelf(size, limit, reading)
    shelf.tells_total = False

    assert shelf.walked() == shelf.old


@pytest.mark.parametrize(
    ("reading", "asked"),
    [("rows", [0, 1, 11, 21]), ("pages0", [0, 1, 2]), ("pages1", [0, 1, 2, 3])],
)
def test_one_page_more_is_enough_to_learn_what_offsets_count(reading: Counts, asked: list[int]) -> None:
    shelf = Shelf(29, 10, reading)

    assert shelf.walked() == shelf.old
    assert shelf.asked == asked


@pytest.mark.parametrize(
    ("reading", "asked"), [("rows", [0, 10, 20]), ("pages0", [0, 1, 2]), ("pages1", [1, 2, 3])]
)
def test_who_knows_what_offsets_count_asks_for_no_page_twice(reading: Counts, asked: list[int]) -> None:
    shelf = Shelf(29, 10, reading)

    assert shelf.walked(reading) == shelf.old
    assert shelf.asked == asked


def test_a_list_that_fits_on_a_page_is_asked_for_once() -> None:
    shelf = Shelf(9, 10, "pages0")

    assert shelf.walked() == shelf.old
    assert shelf.asked == [0]


@pytest.mark.parametrize("reading", READINGS)
def test_a_full_last_page_is_followed_by_one_more_call(reading: Counts) -> None:
    """A total that is too small looks the same up to there."""
    shelf = Shelf(30, 10, reading)
    shelf.total = 10

    assert shelf.walked() == shelf.old


def records(*numbers: int, total: int | None = 99) -> Page[Record]:
    return Page(
        pagination=Pagination(limit=len(numbers), total=total),
        data=[Record(uuid=f"m-{number}") for number in numbers],
    )


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        ([records(1, 2)], "repeats its pages: 2 of 99"),
        ([records(1, 2, total=None)], "repeats its pages: 2 records"),
        ([records(1, 2), records(3), records()], "ends early: 3 of 99"),
        ([records()], "ends early: 0 of 99"),
        ([records(1, 2, total=3), records(1, 2, total=3), records(total=3)], "ends early: 2 of 3"),
    ],
)
def test_a_list_that_cannot_be_read_whole_says_so_at_its_end(pages: list[Page[Record]], words: str) -> None:
    found: list[str] = []
    walk = iterate(lambda offset: pages[min(offset, len(pages) - 1)])
    with pytest.raises(IncompleteList, match=words):
        found.extend(record.uuid for record in walk)

    assert found == list(dict.fromkeys(record.uuid for page in pages for record in page))


@pytest.mark.parametrize("reading", READINGS)
def test_a_page_that_repeats_once_costs_no_record(reading: Counts) -> None:
    shelf = Shelf(40, 10, reading)
    pages = [shelf.fetch(0)]

    def fetch(offset: int) -> Page[Record]:
        page = shelf.fetch(offset)
        pages.append(pages[-1] if len(pages) == 3 else page)
        return pages[-1]

    assert {record.uuid for record in iterate(fetch)} == set(shelf.old)


@given(
    size=st.integers(0, 40),
    limit=st.integers(1, 7),
    reading=st.sampled_from(READINGS),
    removals=st.lists(st.integers(0, 3), max_size=12),
    chance=st.randoms(use_true_random=False),
)
def test_every_record_that_stays_is_found_while_others_are_removed(
    size: int, limit: int, reading: Counts, removals: list[int], chance: Random
) -> None:
    shelf = Shelf(size, limit, reading)
    waiting = iter(removals)

    def fetch(offset: int) -> Page[Record]:
        for _ in range(min(next(waiting, 0), len(shelf.rows))):
            shelf.rows.pop(chance.randrange(len(shelf.rows)))
        return shelf.fetch(offset)

    found: list[str] = []
    try:
        found += (record.uuid for record in iterate(fetch))
    except IncompleteList:
        return  # Records were removed in every pass, and the caller knows.
    assert len(found) == len(set(found))
    assert set(shelf.rows) <= set(found)


def test_pages_are_only_read_as_they_are_needed() -> None:
    shelf = Shelf(30, 10, "pages0")
    next(iterate(shelf.fetch))

    assert shelf.asked == [0]


@pytest.mark.parametrize("value", [[{"uuid": "m-1"}], {"data": [{"uuid": "m-1"}], "pagination": "none"}])
def test_a_page_may_not_tell_where_it_stands(value: Any) -> None:
    page = read_page(Record, value)

    assert page.pagination == Pagination()
    assert [record.uuid for record in page] == ["m-1"]
    assert len(page) == 1
