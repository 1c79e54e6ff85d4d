"""A service that does not answer is left alone: pages stand on their copies, nothing is sent, and it ends by itself."""

from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.test import Client as Browser

from portal.audit.models import Actor, Entry, Outage, RemoteCall, WriteIntent
from portal.audit.service_health import MAX_UNANSWERED_TRIES, PAUSE, CircuitBreaker, current_outage
from portal.gateway import client_for
from portal.registry.models import Record
from servicing import Unavailable
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import forget, page, panel


@pytest.fixture
def loan(portal_service: Sandbox) -> Record:
    return given.loan(portal_service, given.borrower(portal_service), amount="12345.00")


@pytest.fixture
def left_alone(portal_service: Sandbox, viewer: Browser, loan: Record) -> int:
    """The service answered once and then no more; how many calls it had until it was left alone."""
    panel(viewer, loan.get_absolute_url(), "loan")
    portal_service.fail_next("*", times=None, status=503)
    hurried = client_for(Actor.system("hurry")).with_time_limit(0.4)  # Too short for a second try.
    while not current_outage():
        with pytest.raises(Unavailable):
            hurried.loans.get(loan.borrower_uuid, loan.uuid)
    cache.clear()
    return len(portal_service.calls)


def the_pause_is_over() -> None:
    past = Outage.objects.get().ask_again_at - 2 * PAUSE
    Outage.objects.update(ask_again_at=past)


def test_after_several_tries_without_an_answer_it_is_not_asked(
    left_alone: int, viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    forget(loan)
    shown = panel(viewer, loan.get_absolute_url(), "loan")
    panel(viewer, loan.get_absolute_url(), "loan-repayments")
    assert "Not responding since" in shown
    assert "left alone for a moment" in shown
    assert "$12,345.00" in shown
    assert (len(portal_service.calls), left_alone) == (left_alone, 1 + MAX_UNANSWERED_TRIES)


def test_calls_that_were_not_made_are_not_listed(left_alone: int, viewer: Browser, loan: Record) -> None:
    before = RemoteCall.objects.count()
    panel(viewer, loan.get_absolute_url(), "loan-repayments")
    assert RemoteCall.objects.count() == before


@pytest.mark.parametrize("address", ["/", "/loans/", "/borrowers/", "/messages/", "/status/"])
def test_every_page_says_so(left_alone: int, viewer: Browser, portal_service: Sandbox, address: str) -> None:
    assert "No response since" in page(viewer, address)
    assert len(portal_service.calls) == left_alone


def test_the_status_page_says_what_that_means(left_alone: int, viewer: Browser) -> None:
    assert f"Paused after {MAX_UNANSWERED_TRIES} failed tries since" in page(viewer, "/status/")


def test_nothing_is_sent_meanwhile_and_the_trail_knows_it(
    left_alone: int, servicer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    typed = {"submit_id": str(uuid4()), "amount": "25,170.00", "confirmed": "yes"}
    answer = servicer.post(f"/borrowers/{loan.borrower_uuid}/applications/new/", typed)
    intent = WriteIntent.objects.get()
    assert (answer.status_code, intent.state, len(portal_service.calls)) == (503, "not_sent", left_alone)
    assert "Nothing was sent" in answer.content.decode()
    trail = Entry.objects.filter(intent_id=intent.pk).order_by("id").values_list("phase", "result")
    assert list(trail) == [("attempt", ""), ("outcome", "not_sent")]


def test_after_the_pause_one_asks_and_the_others_wait(left_alone: int) -> None:
    the_pause_is_over()
    assert [CircuitBreaker().allows_request() for _ in range(3)] == [True, False, False]


def test_the_first_answer_ends_it_for_everybody(
    left_alone: int, viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    portal_service.heal()
    the_pause_is_over()
    forget(loan)
    assert "Not responding" not in panel(viewer, loan.get_absolute_url(), "loan")
    assert current_outage() is None
    assert "Paused after" not in page(viewer, "/status/")


def test_while_it_stays_away_it_is_asked_once_a_pause(
    left_alone: int, viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    the_pause_is_over()
    for _ in range(3):
        forget(loan)
        panel(viewer, loan.get_absolute_url(), "loan")
    assert len(portal_service.calls) == left_alone + 1


def test_an_answer_in_between_starts_the_count_anew(viewer: Browser, loan: Record) -> None:
    for _ in range(MAX_UNANSWERED_TRIES - 1):
        CircuitBreaker().record_result(answered=False)
    panel(viewer, loan.get_absolute_url(), "loan")
    assert not Outage.objects.exists()


def test_the_metrics_tell_of_it(left_alone: int, viewer: Browser, settings: LazySettings) -> None:
    settings.METRICS_TOKEN = "m" * 32
    told = viewer.get("/metrics", headers={"Authorization": f"Bearer {'m' * 32}"}).content.decode()
    assert "desk_remote_left_alone 1\n" in told
