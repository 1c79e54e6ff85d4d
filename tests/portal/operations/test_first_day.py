"""The first day with a lender: the page, its form, and the page that the command writes."""

from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Entry, RemoteCall
from portal.records.models import Account
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import page, visible_text

ADDRESS = "/status/first-day/"


@pytest.mark.slow
def test_a_supervisor_reads_the_report(portal_service: Sandbox, supervisor: Browser) -> None:
    owner = given.borrower(portal_service)
    loan = given.loan(portal_service, owner)
    portal_service.fail_next("loans.get", changes={"grade": "A", "status": "CHARGED_OFF"}, times=None)
    answer = supervisor.post(ADDRESS, {"borrower_id": owner.uuid, "loan_id": loan.uuid})
    shown = visible_text(answer.content.decode())
    assert "Ready, as far as it was tried. Left: application, statement, line repayments." in shown
    assert "Unknown grade" in shown
    assert "Values not in the interface status: CHARGED_OFF" in shown
    assert Entry.objects.latest("id").action == "operations.first_day"
    assert not RemoteCall.objects.exists()


def test_records_on_file_are_filled_in(portal_service: Sandbox, supervisor: Browser) -> None:
    owner = given.borrower(portal_service)
    line = given.line(portal_service, owner)
    Account.objects.filter(uuid=line.uuid).update(checked_at=timezone.now())
    shown = page(supervisor, ADDRESS)
    assert f'value="{owner.uuid}"' in shown
    assert f'value="{line.uuid}"' in shown


@pytest.mark.parametrize("typed", [{"loan_id": "a/b"}, {"borrower_id": "../x"}, {"loan_id": "abc"}])
def test_what_is_no_id_is_refused(
    portal_service: Sandbox, supervisor: Browser, typed: dict[str, str]
) -> None:
    assert supervisor.post(ADDRESS, typed).status_code == 422
    assert portal_service.calls == []


@pytest.mark.slow
@pytest.mark.parametrize("role", ["viewer", "servicer", "auditor"])
def test_other_roles_may_not_run_it(
    portal_service: Sandbox, role: str, request: pytest.FixtureRequest
) -> None:
    browser = request.getfixturevalue(role)
    assert browser.post(ADDRESS, {}).status_code == 403
    assert ADDRESS not in page(browser, "/status/")
    assert portal_service.calls == []


def test_the_command_writes_a_page(portal_service: Sandbox, tmp_path: Path) -> None:
    call_command("first_day", html=tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text()
    assert report.startswith("<!doctype html>")
    assert "The service accepts these credentials." in report
