"""The service's list of messages: filters, pages, and iteration."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from servicing import Client, IncompleteList, InvalidInput
from servicing.sandbox import Sandbox


def add_messages(sandbox: Sandbox, count: int, event: str = "payment.succeeded", **choices: Any) -> list[str]:
    """Add messages and return their UUIDs, newest first."""
    start = datetime(2026, 5, 1, 12, tzinfo=UTC)
    messages = [
        sandbox.world.message(event, {"number": number}, at=start + timedelta(minutes=number), **choices)
        for number in range(count)
    ]
    return [message["uuid"] for message in reversed(messages)]


def test_a_page_has_messages_and_pagination(service_client: Client, sandbox: Sandbox) -> None:
    uuids = add_messages(sandbox, 7)
    page = service_client.messages.list(limit=3, offset=1)

    assert [message.uuid for message in page] == uuids[3:6]
    assert (page.pagination.offset, page.pagination.limit, page.pagination.total) == (1, 3, 7)


def test_a_message_has_event_payload_and_time(service_client: Client, sandbox: Sandbox) -> None:
    borrower = sandbox.world.borrower()
    payment = sandbox.world.repayment(sandbox.world.loan(borrower["uuid"])["uuid"])
    sandbox.world.message("payment.succeeded", payment, at=datetime(2026, 5, 1, 17, tzinfo=UTC), zone="PDT")
    (message,) = service_client.messages.list()

    assert (message.event, message.status, message.payload) == ("payment.succeeded", "SUCCESS", payment)
    assert message.created_at is not None
    assert message.created_at.text == "2026-05-01 10:00:00 PDT"
    assert message.created_at.at == datetime(2026, 5, 1, 17, tzinfo=UTC)


@pytest.mark.parametrize("filters", ["query", "body"])
def test_the_service_filters_by_day_and_event(sandbox: Sandbox, filters: Any) -> None:
    add_messages(sandbox, 2, "payment.succeeded")
    (wanted,) = add_messages(sandbox, 1, "payment.failed")
    with Client(
        sandbox.url, client_id=sandbox.client_id, secret=sandbox.secret, message_filters=filters
    ) as client:
        day = date(2026, 5, 1)
        found = client.messages.list(start_date=day, end_date=day, event="payment.failed", limit=5)
        later = client.messages.list(start_date=day + timedelta(days=1))

    assert [message.uuid for message in found] == [wanted]
    assert later.data == []


WITHOUT_FILTERS = {"ignored_parameters": ["start_date", "end_date", "event"]}


@pytest.mark.parametrize(
    ("filters", "found", "is_ignored"),
    [
        ({}, 4, False),
        ({"start_date": date(2026, 5, 1)}, 4, False),
        ({"start_date": date(2026, 5, 2)}, 1, True),
        ({"end_date": date(2026, 4, 30)}, 1, True),
        ({"event": "Payment.Failed"}, 1, True),
        ({"event": "payment.failed", "start_date": date(2026, 4, 1)}, 1, True),
    ],
)
def test_iterating_applies_filters_that_the_service_ignores(
    service_client: Client, sandbox: Sandbox, filters: dict[str, Any], found: int, is_ignored: bool
) -> None:
    """The last message has a time in an ambiguous zone, which fits any day."""
    add_messages(sandbox, 2)
    add_messages(sandbox, 1, "payment.failed")
    add_messages(sandbox, 1, zone="IST")
    sandbox.fail_next("messages.list", times=None, **WITHOUT_FILTERS)

    page = service_client.messages.list(**filters)
    assert (len(page), page.filters_ignored) == (4, is_ignored)
    assert len(list(service_client.messages.iterate(**filters, limit=3))) == found


def test_date_filters_use_the_service_time_zone(sandbox: Sandbox) -> None:
    evening = datetime(2026, 5, 2, 3, tzinfo=UTC)
    sandbox.world.message("payment.failed", {}, at=evening)  # The evening of May 1 in California.
    for zone, is_ignored in {"US/Pacific": False, "UTC": True}.items():
        with Client(
            sandbox.url, client_id=sandbox.client_id, secret=sandbox.secret, time_zone=zone
        ) as client:
            assert client.messages.list(end_date=date(2026, 5, 1)).filters_ignored is is_ignored


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [{"ignored_parameters": ["offset"]}, {"ignored_parameters": ["offset", "limit"]}, {"total": 99}]
)
def test_an_incomplete_list_raises_an_error(service: Sandbox, fault: dict[str, Any]) -> None:
    add_messages(service, 90)
    service.fail_next("messages.list", times=None, **fault)
    with Client(service.url, auth="none") as client, pytest.raises(IncompleteList, match=r"of 9\d records"):
        list(client.messages.iterate(limit=20))


@pytest.mark.slow
@pytest.mark.parametrize("total", [1, 20, 25, 50, 89])
def test_a_total_that_is_too_low_drops_no_messages(service: Sandbox, total: int) -> None:
    uuids = add_messages(service, 90)
    service.fail_next("messages.list", times=None, total=total)
    with Client(service.url, auth="none") as client:
        assert [message.uuid for message in client.messages.iterate(limit=25)] == uuids


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"limit": True}, "limit"),
        ({"offset": -1}, "offset"),
        ({"event": ""}, "event"),
        ({"event": 5}, "event"),
        ({"start_date": "2026-05-01"}, "start_date"),
        ({"end_date": datetime(2026, 5, 1, tzinfo=UTC)}, "end_date"),
        ({"start_date": date(2026, 5, 2), "end_date": date(2026, 5, 1)}, "end_date"),
    ],
)
def test_an_invalid_filter_is_rejected(
    service_client: Client, sandbox: Sandbox, filters: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        service_client.messages.list(**filters)

    assert list(caught.value.problems) == [field]
    assert sandbox.calls == []


@pytest.fixture(params=["pages", "pages-from-1", "rows"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sandbox]:
    """A service for each of the three offset units."""
    with Sandbox(tmp_path / "messages.sqlite3", auth="none", offset=request.param) as sandbox:
        yield sandbox


def test_iterating_yields_every_message_once_for_any_offset_unit(service: Sandbox) -> None:
    uuids = add_messages(service, 23)
    with Client(service.url, auth="none") as client:
        found = [message.uuid for message in client.messages.iterate(limit=5)]

    assert found == uuids


def test_iterating_finds_older_messages_while_new_ones_arrive(service: Sandbox) -> None:
    uuids = add_messages(service, 23)
    found = []
    with Client(service.url, auth="none") as client:
        for message in client.messages.iterate(limit=5):
            found.append(message.uuid)
            if len(found) % 4 == 0 and len(found) < 20:
                service.world.message("payment.failed", {})

    assert len(found) == len(set(found))
    assert set(uuids) <= set(found)


@pytest.mark.parametrize("page", [{"pagination": {"total": "7"}, "data": []}, {"data": []}, []])
def test_a_page_without_valid_pagination_can_be_read(
    service_client: Client, sandbox: Sandbox, page: Any
) -> None:
    sandbox.fail_next("messages.list", body=page)

    assert service_client.messages.list().data == []


def test_a_payload_may_have_any_shape(service_client: Client, sandbox: Sandbox) -> None:
    sandbox.fail_next("messages.list", changes={"payload": ["odd", None]})
    add_messages(sandbox, 1)
    (message,) = service_client.messages.list()

    assert message.payload == ["odd", None]
