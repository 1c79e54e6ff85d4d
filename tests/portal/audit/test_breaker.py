"""The circuit breaker: while the service is down, pages show saved copies and nothing is sent."""

from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.test import Client as Browser

from portal.audit.models import Actor, Entry, Outage, RemoteCall, WriteIntent
from portal.audit.service_health import MAX_UNANSWERED_TRIES, PAUSE, CircuitBreaker, current_outage
from portal.gateway.client import client_for
from portal.records.models import Account, Kind
from servicing import Unavailable
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import allow_refresh, page, panel, visible_text


@pytest.fixture
def loan(portal_service: Sandbox) -> Account:
    return given.loan(portal_service, given.borrower(portal_service), amount="12345.00")


@pytest.fixture
def calls_before_pause(portal_service: Sandbox, viewer: Browser, loan: Account) -> int:
    """Open the breaker with calls that fail, and return the number of calls so far."""
    panel(viewer, loan.get_absolute_url(), "loan")
    portal_service.fail_next("*", times=None, status=503)
    client = client_for(Actor.system("hurry")).with_time_limit(0.4)  # Too short for a retry.
    while not current_outage():
        with pytest.raises(Unavailable):
            client.loans.get(loan.borrower_uuid, loan.uuid)
    cache.clear()
    return len(portal_service.calls)


def end_pause() -> None:
    past = Outage.objects.get().ask_again_at - 2 * PAUSE
    Outage.objects.update(ask_again_at=past)


def test_panels_show_saved_copies_during_a_pause(
    calls_before_pause: int, viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    allow_refresh(loan)
    shown = panel(viewer, loan.get_absolute_url(), "loan")
    assert "Failing since" in shown
    assert "The service isn’t responding. Try again in a moment. Showing copy of" in visible_text(shown)
    assert "$12,345.00" in shown
    assert (len(portal_service.calls), calls_before_pause) == (
        calls_before_pause,
        len(given.reads_of(Kind.LOAN)) + MAX_UNANSWERED_TRIES,
    )


def test_skipped_calls_are_not_recorded(calls_before_pause: int, viewer: Browser, loan: Account) -> None:
    before = RemoteCall.objects.count()
    allow_refresh(loan)
    panel(viewer, loan.get_absolute_url(), "loan")
    assert RemoteCall.objects.count() == before


@pytest.mark.parametrize("address", ["/", "/loans/", "/borrowers/", "/messages/", "/status/"])
def test_every_page_shows_the_outage(
    calls_before_pause: int, viewer: Browser, portal_service: Sandbox, address: str
) -> None:
    assert "No response since" in page(viewer, address)
    assert len(portal_service.calls) == calls_before_pause


def test_the_status_page_explains_the_pause(calls_before_pause: int, viewer: Browser) -> None:
    assert f"Paused after {MAX_UNANSWERED_TRIES} failed tries since" in page(viewer, "/status/")


def test_a_write_during_a_pause_is_recorded_as_not_sent(
    calls_before_pause: int, servicer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    typed = {"submit_id": str(uuid4()), "amount": "25,170.00", "confirmed": "yes"}
    answer = servicer.post(f"/borrowers/{loan.borrower_uuid}/applications/new/", typed)
    intent = WriteIntent.objects.get()
    assert (answer.status_code, intent.state, len(portal_service.calls)) == (
        503,
        "not_sent",
        calls_before_pause,
    )
    assert "Nothing was sent" in answer.content.decode()
    trail = Entry.objects.filter(intent_id=intent.pk).order_by("id").values_list("phase", "result")
    assert list(trail) == [("attempt", ""), ("outcome", "not_sent")]


def test_only_one_request_is_allowed_after_a_pause(calls_before_pause: int) -> None:
    end_pause()
    assert [CircuitBreaker().allows_request() for _ in range(3)] == [True, False, False]


def test_the_first_answer_ends_the_outage(
    calls_before_pause: int, viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    portal_service.heal()
    end_pause()
    allow_refresh(loan)
    assert "Not responding" not in panel(viewer, loan.get_absolute_url(), "loan")
    assert current_outage() is None
    assert "Paused after" not in page(viewer, "/status/")


@pytest.mark.slow
def test_a_failed_retry_starts_another_pause(
    calls_before_pause: int, viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    end_pause()
    for _ in range(3):
        allow_refresh(loan)
        panel(viewer, loan.get_absolute_url(), "loan")
    assert len(portal_service.calls) == calls_before_pause + 1


def test_an_answer_resets_the_failure_count(viewer: Browser, loan: Account) -> None:
    for _ in range(MAX_UNANSWERED_TRIES - 1):
        CircuitBreaker().record_result(answered=False)
    panel(viewer, loan.get_absolute_url(), "loan")
    assert not Outage.objects.exists()


def test_metrics_report_the_pause(calls_before_pause: int, viewer: Browser, settings: LazySettings) -> None:
    settings.METRICS_TOKEN = "m" * 32
    metrics = viewer.get("/metrics", headers={"Authorization": f"Bearer {'m' * 32}"}).content.decode()
    assert "desk_remote_left_alone 1.0\n" in metrics
