"""Tests that all panels of a page that wait for the service load with one request."""

import re
from datetime import timedelta

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import PageView
from portal.live.panels import LOADER, SHOWN_HEADER
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal.pages import load_panels, page, panel, visible_text

pytestmark = pytest.mark.django_db(transaction=True)  # other threads call the service


@pytest.fixture
def loan(portal_service: Sandbox) -> Record:
    return given.loan(portal_service, given.borrower(portal_service), amount="12000.00")


def region_ids(shown: str) -> list[str]:
    """Return the IDs of the regions that the response replaces."""
    return re.findall(r'id="([\w-]+)"[^>]*hx-swap-oob="true"', shown)


def open_page_slowly(browser: Browser, service: Sandbox, record: Record) -> str:
    """Open the page of a record with an old copy while the service is slow."""
    Record.objects.update(asked_at=timezone.now() - timedelta(minutes=5))
    service.fail_next("*", delay=0.5, times=2)
    return page(browser, record.get_absolute_url())


def test_all_panels_of_a_page_load_with_one_request(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    shown = open_page_slowly(viewer, portal_service, loan)
    assert "$12,000.00" not in shown
    answer = load_panels(viewer, shown)
    assert region_ids(answer) == ["loan", "loan-repayments", "health"]
    assert "$12,000.00" in answer
    assert "aria-busy" not in answer
    assert 'hx-get="' + loan.get_absolute_url() + "?panel=panels" not in answer
    assert sorted(call.operation for call in portal_service.calls) == ["loans.get", "repayments.of_loan"]
    assert PageView.objects.filter(page="loans.detail").count() == 1


def test_dependent_regions_load_with_their_panel(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    borrower = Record.objects.get(kind=Kind.BORROWER)
    answer = load_panels(viewer, open_page_slowly(viewer, portal_service, borrower))
    assert region_ids(answer) == ["position", "position-age", "health"]


def test_borrower_cards_show_their_age_once(viewer: Browser, portal_service: Sandbox, loan: Record) -> None:
    given.line(portal_service, borrower := Record.objects.get(kind=Kind.BORROWER))
    shown = page(viewer, borrower.get_absolute_url())
    assert re.findall(r'id="([\w-]+-age)"', shown) == ["position-age"]
    portal_service.fail_next("credit_lines.statement", status=500, times=None)
    Record.objects.update(asked_at=timezone.now() - timedelta(minutes=5))
    answer = panel(viewer, borrower.get_absolute_url(), "position")
    assert visible_text(answer).count("Failing since") == 1
    assert "$12,000.00" in answer


def test_an_unchanged_panel_sends_only_its_age(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    panel(viewer, loan.get_absolute_url(), "loan")
    panel(viewer, loan.get_absolute_url(), "loan-repayments")
    before = Record.objects.get(pk=loan.pk).checked_at
    answer = load_panels(viewer, open_page_slowly(viewer, portal_service, loan))
    assert region_ids(answer) == ["loan-age", "loan-repayments-age", "health"]
    assert visible_text(answer).count("Updated") == 2
    assert "$12,000.00" not in answer
    checked = Record.objects.get(pk=loan.pk).checked_at
    assert before
    assert checked
    assert checked > before
    assert PageView.objects.get(subject_uuid=loan.uuid).shown


def test_a_failed_panel_is_reported_in_the_header(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    panel(viewer, loan.get_absolute_url(), "loan")
    assert "All systems responding" in page(viewer, loan.get_absolute_url())
    Record.objects.update(asked_at=timezone.now() - timedelta(minutes=5))
    portal_service.fail_next("loans.get", status=500, delay=0.5)
    answer = load_panels(viewer, page(viewer, loan.get_absolute_url()))
    assert "loan" in region_ids(answer)
    assert "Failing since" in visible_text(answer)
    assert "Loans failing since" in visible_text(answer.partition('id="health"')[2])


@pytest.mark.parametrize("shown", ["", "loan", "loan.", "x.y,,.", "loan.\0", "loan-repayments.ab,loan.cd"])
def test_an_invalid_shown_header_is_ignored(
    viewer: Browser, portal_service: Sandbox, loan: Record, shown: str
) -> None:
    answer = viewer.get(loan.get_absolute_url(), headers=htmx(LOADER) | {SHOWN_HEADER: shown})
    assert answer.status_code == 200


def test_panel_links_omit_the_refresh_parameters(
    viewer: Browser, portal_service: Sandbox, loan: Record
) -> None:
    given.line(portal_service, Record.objects.get(kind=Kind.BORROWER))
    for record in Record.objects.all():
        answer = load_panels(viewer, open_page_slowly(viewer, portal_service, record))
        refreshing = re.sub(r'<[^>]*(panel=[\w-]+&amp;refresh=1|id="panels")[^>]*>', "", answer)
        assert not re.findall(r'(?:href|hx-get)="[^"]*(?:panel=|refresh=)[^"]*"', refreshing)
