"""Webhook messages as the lending service keeps them, with the filters that it offers."""

from datetime import UTC, datetime

import pytest
from django.http import HttpResponse
from django.test import Client as Browser

from portal.audit.models import RemoteCall
from servicing.sandbox import Sandbox
from tests.conftest import htmx


def message(
    sandbox: Sandbox, event: str = "payment.succeeded", day: int = 3, **payload: object
) -> dict[str, object]:
    at = datetime(2026, 11, day, 18, tzinfo=UTC)
    return sandbox.world.message(event, {"uuid": "p-1", "product": "LOC"} | payload, at=at)


def rows(browser: Browser, query: str = "") -> HttpResponse:
    return browser.get(f"/messages/{query}", headers=htmx("message-rows"))


def test_it_shows_what_the_service_keeps(viewer: Browser, desk: Sandbox) -> None:
    message(desk, amount=310, status="SUCCEEDED")
    page = viewer.get("/messages/").content.decode()
    for text in ("payment.succeeded", "$310.00", "Succeeded"):
        assert text in page


def test_a_payload_that_is_no_repayment_is_shown_all_the_same(viewer: Browser, desk: Sandbox) -> None:
    desk.world.message("user.updated", {"anything": ["at", "all"]})
    assert "user.updated" in rows(viewer).content.decode()


def test_filters_go_to_the_service(viewer: Browser, desk: Sandbox) -> None:
    rows(viewer, "?start_date=2026-11-02&end_date=2026-11-05&event=payment.failed&limit=50")
    (call,) = desk.calls
    assert call.query == {
        "start_date": "2026-11-02",
        "end_date": "2026-11-05",
        "event": "payment.failed",
        "limit": "50",
    }


def test_filters_narrow_the_list(viewer: Browser, desk: Sandbox) -> None:
    message(desk, "payment.failed", day=3)
    message(desk, "payment.succeeded", day=9)
    assert "payment.failed" not in rows(viewer, "?start_date=2026-11-08").content.decode()
    assert "payment.succeeded" not in rows(viewer, "?event=payment.failed").content.decode()


def test_no_match_says_so(viewer: Browser) -> None:
    assert "No message matches" in rows(viewer, "?event=payment.failed").content.decode()


@pytest.mark.parametrize(
    "query",
    [
        "?start_date=2026-02-30",
        "?start_date=yesterday",
        "?start_date=2026-11-05&end_date=2026-11-02",
        "?limit=7",
        "?event=" + "x" * 101,
        "?event=%00",
    ],
)
def test_what_is_no_filter_is_refused_and_not_sent(viewer: Browser, desk: Sandbox, query: str) -> None:
    answer = rows(viewer, query)
    assert (answer.status_code, desk.calls) == (422, [])
    assert "The filters cannot be used" in answer.content.decode()


@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"html": True}, {"status": 400, "message": "limit is too large"}]
)
def test_a_service_that_does_not_answer_is_said_not_shown_as_empty(
    viewer: Browser, desk: Sandbox, fault: dict[str, object]
) -> None:
    desk.fail_next("messages.list", **fault)
    page = rows(viewer).content.decode()
    assert "Messages could not be read" in page
    assert str(fault.get("message", "")) in page
    assert "No message matches" not in page


def test_a_fragment_holds_the_rows_alone(viewer: Browser) -> None:
    assert rows(viewer).content.decode().strip().startswith('<div id="message-rows"')


def test_each_look_costs_one_call(viewer: Browser, desk: Sandbox) -> None:
    viewer.get("/messages/")
    assert (len(desk.calls), RemoteCall.objects.count()) == (1, 1)
