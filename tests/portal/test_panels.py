"""Panels of a page whose copies were still being read come with one answer."""

import re
from datetime import timedelta

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Entry, RecordView
from portal.live.panels import LOADER, SHOWN_HEADER
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal.pages import load_panels, page, panel, words

pytestmark = pytest.mark.django_db(transaction=True)  # the service is asked in other threads


@pytest.fixture
def loan(portal_service: Sandbox) -> Record:
    return given.loan(portal_service, given.borrower(portal_service), amount="12000.00")


def panels_of(shown: str) -> list[str]:
    """The id of each region that the answer replaces."""
    return re.findall(r'id="([\w-]+)"[^>]*hx-swap-oob="true"', shown)


def slow_page(browser: Browser, service: Sandbox, record: Record) -> str:
    """The page of a record that was last asked for a while ago, while the service is slow."""
    Record.objects.update(asked_at=timezone.now() - timedelta(minutes=5))
    service.fail_next("*", delay=0.5, times=2)
    return page(browser, record.get_absolute_url())


def test_all_panels_of_a_page_come_with_one_answer(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    shown = slow_page(viewer, portal_service, loan)
    assert "$12,000.00" not in shown
    answer = load_panels(viewer, shown)
    assert panels_of(answer) == ["loan", "loan-repayments", "health"]
    assert "$12,000.00" in answer
    assert "aria-busy" not in answer
    assert 'hx-get="' + loan.get_absolute_url() + "?panel=panels" not in answer
    assert sorted(call.operation for call in portal_service.calls) == ["loans.get", "repayments.of_loan"]
    assert Entry.objects.filter(action="loans.detail").count() == 1


def test_what_depends_on_a_panel_comes_with_it(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    borrower = Record.objects.get(kind=Kind.BORROWER)
    answer = load_panels(viewer, slow_page(viewer, portal_service, borrower))
    assert panels_of(answer) == ["position", "position-age", "health"]


def test_the_cards_of_a_borrower_say_once_how_old_they_are(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    given.line(portal_service, borrower := Record.objects.get(kind=Kind.BORROWER))
    shown = page(viewer, borrower.get_absolute_url())
    assert re.findall(r'id="([\w-]+-age)"', shown) == ["position-age"]
    portal_service.fail_next("credit_lines.statement", status=500, times=None)
    Record.objects.update(asked_at=timezone.now() - timedelta(minutes=5))
    answer = panel(viewer, borrower.get_absolute_url(), "position")
    assert words(answer).count("Not responding since") == 1
    assert "$12,000.00" in answer


def test_of_a_panel_that_did_not_change_only_the_age_is_sent(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    panel(viewer, loan.get_absolute_url(), "loan")
    panel(viewer, loan.get_absolute_url(), "loan-repayments")
    before = Record.objects.get(pk=loan.pk).checked_at
    answer = load_panels(viewer, slow_page(viewer, portal_service, loan))
    assert panels_of(answer) == ["loan-age", "loan-repayments-age", "health"]
    assert words(answer).count("Updated") == 2
    assert "$12,000.00" not in answer
    checked = Record.objects.get(pk=loan.pk).checked_at
    assert before
    assert checked
    assert checked > before
    assert RecordView.objects.get(subject_uuid=loan.uuid).shown


def test_a_panel_that_fails_says_so_in_the_header_too(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    panel(viewer, loan.get_absolute_url(), "loan")
    assert "All systems responding" in page(viewer, loan.get_absolute_url())
    Record.objects.update(asked_at=timezone.now() - timedelta(minutes=5))
    portal_service.fail_next("loans.get", status=500, delay=0.5)
    answer = load_panels(viewer, page(viewer, loan.get_absolute_url()))
    assert "loan" in panels_of(answer)
    assert "Not responding since" in words(answer)
    assert "Loans failing since" in words(answer.partition('id="health"')[2])


@pytest.mark.parametrize("shown", ["", "loan", "loan.", "x.y,,.", "loan.\0", "loan-repayments.ab,loan.cd"])
def test_strange_words_about_what_is_shown_are_no_error(
    viewer: Browser, portal_service: Sandbox, loan: Record, shown: str
) -> None:
    answer = viewer.get(loan.get_absolute_url(), headers=htmx(LOADER) | {SHOWN_HEADER: shown})
    assert answer.status_code == 200


def test_links_of_a_panel_carry_nothing_of_the_request_that_drew_it(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    given.line(portal_service, Record.objects.get(kind=Kind.BORROWER))
    for record in Record.objects.all():
        answer = load_panels(viewer, slow_page(viewer, portal_service, record))
        refreshing = re.sub(r'<[^>]*(panel=[\w-]+&amp;refresh=1|id="panels")[^>]*>', "", answer)
        assert not re.findall(r'(?:href|hx-get)="[^"]*(?:panel=|refresh=)[^"]*"', refreshing)
