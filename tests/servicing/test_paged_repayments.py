"""Repayments in an envelope that says that there are more than it holds."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from servicing import Call, Client, IncompleteList, Outcome, Page, ProtocolError
from tests.servicing.wire import Handler, Wire, response

Envelope = Callable[[list[Any], int], dict[str, Any]]
ENVELOPES: dict[str, Envelope] = {
    "pagination": lambda rows, total: {"data": rows, "pagination": {"total": total, "limit": 3, "offset": 0}},
    "total as text": lambda rows, total: {"items": rows, "pagination": {"total": str(total)}},
    "total beside data": lambda rows, total: {"data": rows, "total": total},
    "other name": lambda rows, total: {"data": rows, "meta": {"totalCount": total}},
    "pagination in meta": lambda rows, total: {"data": rows, "meta": {"pagination": {"total": total}}},
    "more": lambda rows, total: {"data": rows, "pagination": {"has_more": rows[-1:] != [row(total)]}},
    "next": lambda rows, total: {"data": rows, "next": None if rows[-1:] == [row(total)] else "/page"},
}


def row(number: int) -> dict[str, Any]:
    return {"uuid": f"r-{number}", "amount": number}


class Answers:
    """Records the answer of each call."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def before(self, call: Call) -> None: ...

    def after(self, call: Call, outcome: Outcome) -> None:
        self.answers.append(outcome.answer)


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire() as wire:
        yield wire


def serve(wire: Wire, envelope: Envelope, counts: str, number: int = 7, total: int | None = None) -> None:
    """Serve pages of three repayments; `counts` says what an offset counts."""

    def reply(handler: Handler) -> None:
        asked = re.search(r"[?&]offset=(\d+)", wire.requests[-1].decode())
        offset = int(asked[1]) if asked else 0
        start = {"rows": offset, "pages0": offset * 3, "pages1": max(offset - 1, 0) * 3, "nothing": 0}[counts]
        rows = [row(each) for each in range(1, number + 1)][start : start + 3]
        handler.wfile.write(response(json.dumps(envelope(rows, number if total is None else total))))

    wire.answer(reply)


@pytest.mark.slow
@pytest.mark.parametrize("counts", ["rows", "pages0", "pages1"])
@pytest.mark.parametrize("envelope", ENVELOPES.values(), ids=ENVELOPES)
@pytest.mark.parametrize("number", [4, 6, 7])
def test_every_page_is_read(wire: Wire, envelope: Envelope, counts: str, number: int) -> None:
    serve(wire, envelope, counts, number)
    watcher = Answers()
    with Client(wire.url, auth="none").with_watcher(watcher) as client:
        found = client.repayments.of_loan("b-1", "l-1")

    assert [each.amount for each in found] == list(range(1, number + 1))
    assert watcher.answers[-1] == found
    assert len(watcher.answers) > 1
    assert all(isinstance(answer, Page) for answer in watcher.answers[:-1])
    assert "?" not in wire.heads[0].splitlines()[0]
    assert not any("content-type" in head for head in wire.heads)


@pytest.mark.parametrize(("limit", "fits"), [(7, True), (6, False)])
def test_the_records_of_all_pages_count_once(wire: Wire, limit: int, fits: bool) -> None:
    serve(wire, ENVELOPES["pagination"], "rows", number=7)
    with Client(wire.url, auth="none", max_records=limit) as client:
        if fits:
            assert len(client.repayments.of_loan("b-1", "l-1")) == 7
        else:
            with pytest.raises(ProtocolError, match="more than 6 records"):
                client.repayments.of_loan("b-1", "l-1")


@pytest.mark.parametrize("number", [0, 3])
def test_a_whole_list_is_read_once(wire: Wire, number: int) -> None:
    serve(wire, ENVELOPES["pagination"], "rows", number)
    with Client(wire.url, auth="none") as client:
        assert len(client.repayments.of_line("b-1", "c-1")) == number
    assert len(wire.requests) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "number", "words"), [("nothing", 7, "3 of 9"), ("pages0", 7, "7 of 9"), ("rows", 0, "0 of 9")]
)
def test_a_list_that_stays_incomplete_is_an_error(wire: Wire, counts: str, number: int, words: str) -> None:
    serve(wire, ENVELOPES["pagination"], counts, number, total=9)
    with (
        Client(wire.url, auth="none") as client,
        pytest.raises(IncompleteList, match=f"incomplete.* {words}"),
    ):
        client.repayments.of_loan("b-1", "l-1")
    assert len(wire.requests) < 12


def test_a_rejected_second_page_means_incomplete(wire: Wire) -> None:
    first = response(json.dumps({"data": [row(1)], "total": 2}))
    wire.answer(first, response('{"message": "Unknown parameter"}', 400))
    with Client(wire.url, auth="none") as client, pytest.raises(IncompleteList, match="1 of 2"):
        client.repayments.of_loan("b-1", "l-1")
