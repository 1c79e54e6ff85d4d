"""How the connection to the lending service is doing, from the calls this desk made."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.health import GROUPS, health
from portal.audit.models import RemoteCall
from servicing.sandbox import Sandbox
from servicing.sandbox.endpoints import OPERATIONS
from tests.conftest import SECRET


def call(operation: str = "loans.get", *, outcome: str = "confirmed", ms: int = 5, hours: float = 0) -> None:
    made = RemoteCall.objects.create(
        operation=operation, outcome=outcome, duration_ms=ms, actor_name="Maya Chen"
    )
    RemoteCall.objects.filter(pk=made.pk).update(at=timezone.now() - timedelta(hours=hours))


def group(browser: Browser, name: str) -> Any:
    return next(one for one in browser.get("/status/").context["groups"] if one.name == name)


def test_before_the_first_call_it_says_so(viewer: Browser) -> None:
    page = viewer.get("/status/").content.decode()
    assert "Nothing was asked yet" in page
    assert page.count("Not asked") == len(GROUPS)


def test_a_real_call_is_listed_with_its_outcome(viewer: Browser, desk: Sandbox) -> None:
    viewer.get("/messages/")
    page = viewer.get("/status/").content.decode()
    assert "messages.list" in page
    assert page.count(">Answering<") == 1


@pytest.mark.parametrize("outcome", ["unavailable", "unknown", "not_sent", "protocol", "forbidden"])
def test_a_call_without_a_usable_answer_is_a_failure(viewer: Browser, outcome: str) -> None:
    call(outcome=outcome)
    assert (group(viewer, "Loans").state, group(viewer, "Loans").failures) == ("bad", 1)
    assert ">Failing<" in viewer.get("/status/").content.decode()


def test_a_refusal_is_an_answer(viewer: Browser) -> None:
    call("applications.submit", outcome="rejected")
    assert group(viewer, "Applications").state == "ok"


def test_wrong_credentials_show_as_failing(viewer: Browser, desk: Sandbox) -> None:
    desk.fail_next("messages.list", status=401)
    viewer.get("/messages/")
    assert group(viewer, "Messages").state == "bad"


def test_the_latest_call_decides(viewer: Browser) -> None:
    call(outcome="unavailable", hours=2)
    call(hours=1)
    assert group(viewer, "Loans").state == "ok"
    call(outcome="unavailable")
    assert group(viewer, "Loans").state == "bad"


def test_it_tells_calls_median_and_failures(viewer: Browser) -> None:
    for ms in (3, 900, 5):
        call(ms=ms)
    call(outcome="unavailable", ms=40)
    found = group(viewer, "Loans")
    assert (found.calls, found.median, found.failures) == (4, 40, 1)
    assert "4 calls, median 40 ms, 1 failed" in viewer.get("/status/").content.decode()


def test_yesterday_does_not_count(viewer: Browser) -> None:
    call(outcome="unavailable", hours=25)
    assert group(viewer, "Loans").state == "neutral"


def test_every_operation_belongs_to_a_group() -> None:
    grouped = {operation for operations in GROUPS.values() for operation in operations}
    assert set(OPERATIONS) - grouped <= {"documents.fetch"}


def test_a_call_of_no_group_counts_for_none(desk: Sandbox) -> None:
    call("documents.fetch", outcome="unavailable")
    assert not any(one.calls for one in health())


def test_settings_are_set_or_not_and_never_shown(viewer: Browser, settings: LazySettings) -> None:
    settings.SERVICING_TOKEN = ""
    page = viewer.get("/status/").content.decode()
    assert "SERVICING_SECRET</code></dt><dd>set<" in page
    assert "SERVICING_TOKEN</code></dt><dd>not set<" in page
    assert SECRET not in page


class TestHealthz:
    def test_it_answers_without_signing_in_and_tells_nothing(self, anonymous: Browser) -> None:
        answer = anonymous.get("/healthz")
        assert (answer.status_code, answer.content) == (200, b"ok\n")

    def test_it_needs_no_database(self, client: Browser) -> None:
        assert client.get("/healthz").status_code == 200
