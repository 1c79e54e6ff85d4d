"""The message list: its envelope, filters, pages and totals."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from servicing.sandbox import Sandbox
from tests.sandbox.caller import Caller

PATH = "/v1/webhooks/endpoints/messages"


@pytest.fixture
def ten_messages(service: Sandbox) -> list[str]:
    """The IDs of ten messages, newest first."""
    start = datetime(2026, 4, 10, 12, tzinfo=UTC)
    created = [
        service.world.message("payment.succeeded", {"n": n}, at=start + timedelta(minutes=n))
        for n in range(10)
    ]
    return [message["uuid"] for message in reversed(created)]


def uuids(answer: Any) -> list[str]:
    return [message["uuid"] for message in answer.json()["data"]]


def test_messages_are_newest_first_in_an_envelope(caller: Caller, ten_messages: list[str]) -> None:
    answer = caller.get(PATH)
    assert answer.json()["pagination"] == {"offset": 0, "limit": 25, "total": 10}
    assert uuids(answer) == ten_messages
    assert list(answer.json()["data"][0]) == ["uuid", "event", "payload", "status", "created_at"]


@pytest.mark.parametrize(
    ("reading", "offset", "expected"),
    [
        ("pages", 0, slice(0, 4)),
        ("pages", 1, slice(4, 8)),
        ("pages", 2, slice(8, 10)),
        ("pages", 3, slice(0, 0)),
        ("pages-from-1", 0, slice(0, 4)),
        ("pages-from-1", 1, slice(0, 4)),
        ("pages-from-1", 3, slice(8, 10)),
        ("rows", 1, slice(1, 5)),
        ("rows", 9, slice(9, 10)),
        ("rows", 1_000_000_000, slice(0, 0)),
    ],
)
def test_offset_counts_pages_or_rows_as_configured(
    tmp_path: Path, reading: str, offset: int, expected: slice
) -> None:
    with Sandbox(tmp_path / "s.db", offset=reading) as service:
        created = [service.world.message("a", {})["uuid"] for _ in range(10)][::-1]
        caller = Caller(service.url)
        assert uuids(caller.get(f"{PATH}?limit=4&offset={offset}")) == created[expected]
        caller.session.close()


def test_filters_can_be_sent_in_a_body(caller: Caller, ten_messages: list[str]) -> None:
    answer = caller.get(PATH, body=b'{"limit": 2, "offset": 1, "event": "payment.succeeded"}')
    assert uuids(answer) == ten_messages[2:4]
    assert answer.json()["pagination"] == {"offset": 1, "limit": 2, "total": 10}


def test_messages_can_be_filtered_by_event(service: Sandbox, caller: Caller, ten_messages: list[str]) -> None:
    failed = service.world.message("payment.failed", {})
    assert uuids(caller.get(f"{PATH}?event=payment.failed")) == [failed["uuid"]]
    assert uuids(caller.get(f"{PATH}?event=never.heard")) == []


def test_date_filters_are_inclusive_and_use_the_services_time_zone(service: Sandbox, caller: Caller) -> None:
    def message(moment: str) -> str:
        return str(service.world.message("a", {}, at=datetime.fromisoformat(moment))["uuid"])

    message("2026-03-09T06:59:59Z")
    first = message("2026-03-09T07:00:00Z")  # Midnight in Los Angeles, the day after clocks went forward.
    last = message("2026-03-11T06:59:59Z")
    message("2026-03-11T07:00:00Z")
    assert uuids(caller.get(f"{PATH}?start_date=2026-03-09&end_date=2026-03-10")) == [last, first]
    assert len(uuids(caller.get(f"{PATH}?start_date=2026-03-09"))) == 3
    assert uuids(caller.get(f"{PATH}?start_date=2026-03-10&end_date=2026-03-09")) == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=ten",
        "limit=1.5",
        "offset=-1",
        "offset=9999999999",
        "start_date=2026-2-1",
        "start_date=2026-02-30",
        "end_date=yesterday",
        "event=",
    ],
)
def test_an_invalid_filter_is_rejected_by_name(caller: Caller, query: str) -> None:
    answer = caller.get(f"{PATH}?{query}")
    assert (answer.status_code, answer.json()["message"].split()[0]) == (400, query.partition("=")[0])


def test_all_invalid_filters_are_reported_at_once(caller: Caller) -> None:
    body = b'{"limit": true, "offset": "x", "start_date": 5, "event": []}'
    assert caller.get(PATH, body=body).json()["message"].count(";") == 3
    assert caller.get(PATH, body=b"[]").json() == {"message": "body must be an object"}


def test_a_page_can_hold_1000_messages(service: Sandbox, caller: Caller) -> None:
    with service.world.store.write_transaction():
        for _ in range(1001):
            service.world.message("a", {})
    assert len(uuids(caller.get(f"{PATH}?limit=1000"))) == 1000


@pytest.mark.parametrize(
    ("zone", "written"),
    [
        ("US/Pacific", "2026-01-05 10:00:00 US/Pacific"),
        ("PST", "2026-01-05 10:00:00 PST"),
        ("PDT", "2026-01-05 11:00:00 PDT"),
        ("IST", "2026-01-05 23:30:00 IST"),
        ("", "2026-01-05 10:00:00"),
    ],
)
def test_times_are_written_in_their_time_zone(service: Sandbox, zone: str, written: str) -> None:
    moment = datetime(2026, 1, 5, 18, tzinfo=UTC)
    assert service.world.message("a", {}, at=moment, zone=zone)["created_at"] == written


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"ignored_parameters": ["end_date"]}, (slice(0, 4), 10)),
        ({"ignored_parameters": ["end_date", "limit"]}, (slice(0, 10), 10)),
        ({"total": 7}, (slice(0, 0), 7)),
    ],
)
def test_a_page_can_ignore_parameters_or_report_a_wrong_total(
    service: Sandbox,
    caller: Caller,
    ten_messages: list[str],
    fault: dict[str, Any],
    expected: tuple[slice, int],
) -> None:
    rows, total = expected
    for send in (
        lambda: caller.get(f"{PATH}?end_date=2026-04-09&limit=4"),
        lambda: caller.send("GET", PATH, b'{"end_date": "2026-04-09", "limit": 4}'),
    ):
        service.fail_next("messages.list", **fault)
        answer = send()
        assert (uuids(answer), answer.json()["pagination"]["total"]) == (ten_messages[rows], total)
    assert uuids(caller.get(f"{PATH}?end_date=2026-04-09&limit=4")) == []


def test_totals_follow_added_and_removed_messages(
    service: Sandbox, caller: Caller, ten_messages: list[str]
) -> None:
    service.world.remove_message(ten_messages[3])
    service.world.message("payment.failed", {}, at=datetime(2026, 4, 11, 12, tzinfo=UTC))
    for query, total in {"": 10, "?event=payment.failed": 1, "?end_date=2026-04-10": 9}.items():
        answer = caller.get(PATH + query)
        assert (answer.json()["pagination"]["total"], len(uuids(answer))) == (total, total)


def test_opening_an_older_database_counts_its_messages(tmp_path: Path) -> None:
    with Sandbox(tmp_path / "s.db") as service:
        for _ in range(3):
            service.world.message("a", {})
    with sqlite3.connect(tmp_path / "s.db") as file:
        file.executescript(
            "DROP TABLE message_counts; DROP TRIGGER message_added; DROP TRIGGER message_removed;"
        )
    file.close()
    with Sandbox(tmp_path / "s.db") as service:
        service.world.message("a", {})
        assert service.world.store.messages(start=None, end=None, event="a", skip=0, limit=1)[0] == 4
