"""Walking a paged list whole, whatever its offsets count, also while new records arrive."""

from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicing import Page, Pagination
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

    def fetch(self, offset: int) -> Page[Record]:
        new = [f"new-{len(self.asked)}-{number}" for number in range(next(self.arrivals))]
        self.rows = new + self.rows
        self.asked.append(offset)
        start = {"rows": offset, "pages0": offset * self.limit, "pages1": max(offset - 1, 0) * self.limit}
        data = self.rows[start[self.reading] :][: self.limit]
        return Page(
            pagination=Pagination(
                offset=offset, limit=self.limit, total=len(self.rows) if self.tells_total else None
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
    shelf = Shelf(30, 10, reading)

    assert shelf.walked() == shelf.old
    assert shelf.asked == asked


@pytest.mark.parametrize(
    ("reading", "asked"), [("rows", [0, 10, 20]), ("pages0", [0, 1, 2]), ("pages1", [1, 2, 3])]
)
def test_who_knows_what_offsets_count_asks_for_no_page_twice(reading: Counts, asked: list[int]) -> None:
    shelf = Shelf(30, 10, reading)

    assert shelf.walked(reading) == shelf.old
    assert shelf.asked == asked


def test_a_list_that_fits_on_a_page_is_asked_for_once() -> None:
    shelf = Shelf(10, 10, "pages0")

    assert shelf.walked() == shelf.old
    assert shelf.asked == [0]


def test_a_service_that_gives_the_same_page_for_ever_is_left() -> None:
    page = Page(pagination=Pagination(total=99), data=[Record(uuid="m-1")])

    assert len(list(iterate(lambda offset: page))) == 1


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
