"""The onboarding checklist, the items sent for each person, and refreshing all accounts of a borrower."""

import re

import pytest
from django.test import Client as Browser

from portal.records.models import Account, Borrower, KeyPerson, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.borrowers.editor import BORN, TWICE, WITH_SSN, Editor
from tests.portal.borrowers.wizard import SSN, Wizard
from tests.portal.pages import load_panels, page, panel, visible_text

# Other threads call the service.
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def onboard_business(servicer: Browser) -> Account:
    """Onboard a business with two key people: the first with an SSN, the second with a date of birth."""
    Wizard(servicer).fill().send({"ssn_0": SSN, "ssn_0_again": SSN})
    return Borrower.objects.latest("pk")


def test_checklist_lists_open_items(servicer: Browser) -> None:
    record = onboard_business(servicer)
    shown = visible_text(page(servicer, record.get_absolute_url()))
    assert "0 of 4 done" in shown
    for line in (
        "No asset report Send",
        "No SSN of Priya Raman on file Send",
        "No date of birth of Elena O'Neil on file Send",
        "No application yet Start",
    ):
        assert line in shown


def test_sending_a_date_of_birth_later_completes_its_item(servicer: Browser) -> None:
    record = onboard_business(servicer)
    elena = KeyPerson.objects.get(name="Elena O'Neil")
    Editor(servicer, elena).send(**BORN)
    shown = visible_text(page(servicer, f"{record.get_absolute_url()}?tab=people"))
    assert len(re.findall(r"Date of birth sent .+? by Servicer", shown)) == 2
    # One note covers everyone; each person then has a check mark or a link.
    assert shown.count("The service never returns SSN or date of birth, and neither is stored here.") == 1
    assert shown.count("SSN and date of birth Sent ") == 1
    assert shown.count("SSN and date of birth No SSN on file Send") == 1
    overview = visible_text(page(servicer, record.get_absolute_url()))
    assert "1 of 4 done" in overview
    assert re.search(r"SSN and date of birth of Elena O'Neil sent [^,]+, Servicer \(servicer\)", overview)


def test_an_individuals_profile_shows_that_an_ssn_was_sent(servicer: Browser, person_editor: Editor) -> None:
    address = person_editor.record.get_absolute_url()
    assert "No SSN or date of birth on file Send" in visible_text(page(servicer, address))
    person_editor.send(TWICE, **WITH_SSN)
    assert re.search(
        r"No date of birth on file Send.{0,30} SSN sent .+? by Servicer \(servicer\)",
        visible_text(page(servicer, address)),
    )


def test_missing_consent_is_listed_and_viewing_changes_no_date(
    servicer: Browser, portal_service: Sandbox
) -> None:
    borrower = onboard_business(servicer)
    application = portal_service.world.line_application(
        borrower.uuid, credit_score_consent=False, created_at="2026-10-09 10:15:00 US/Pacific"
    )["uuid"]
    address = given.account(Kind.APPLICATION, borrower, application).get_absolute_url()
    for _ in range(2):
        servicer.get(f"{address}?refresh=1")
        shown = visible_text(page(servicer, borrower.get_absolute_url()))
        assert "No credit-check consent" in shown
        assert re.search(r"First application sent (9 Oct|Oct 9)", shown)
    later = portal_service.world.line_application(
        borrower.uuid, credit_score_consent=True, created_at="2026-10-12 10:15:00 US/Pacific"
    )["uuid"]
    servicer.get(f"{given.account(Kind.APPLICATION, borrower, later).get_absolute_url()}?refresh=1")
    shown = visible_text(page(servicer, borrower.get_absolute_url()))
    assert ("No credit-check consent" in shown, "Credit-check consent given" in shown) == (False, True)
    assert re.search(r"First application sent (9 Oct|Oct 9)", shown)


def test_a_borrower_not_onboarded_here_has_no_checklist(viewer: Browser, borrower: Borrower) -> None:
    assert "No application yet" not in page(viewer, borrower.get_absolute_url())


def test_list_filters_by_incomplete_onboarding(servicer: Browser, portal_service: Sandbox) -> None:
    given.borrower(portal_service, first_name="Imported LLC")
    onboard_business(servicer)
    listing = servicer.get("/borrowers/?onboarding=incomplete").context["listing"]
    assert [record.label for record in listing.page] == ["O'Neil & Daughters, LLC"]


def test_a_viewer_sees_no_links_to_change_anything(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    for tab in ("overview", "people", "notes"):
        shown = page(viewer, f"{borrower.get_absolute_url()}?tab={tab}")
        main = shown[shown.index('id="borrower-tab"') :]
        assert not re.search(r'href="[^"]+/(edit|new|add)/', main)


def test_refresh_reads_all_accounts_and_shows_failures(
    servicer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    given.loan(portal_service, borrower, amount="7000.00")
    given.line(portal_service, borrower)
    address = borrower.get_absolute_url()
    assert 'hx-vals=\'{"refresh": "1"}\'' in page(servicer, f"{address}?tab=loans")
    portal_service.fail_next("credit_lines.statement", status=500)
    shown = panel(servicer, f"{address}?tab=loans&refresh=1", "position")
    assert "Failing since" in visible_text(shown)
    assert 'id="borrower-tab"' not in shown  # It may have fields that somebody typed into.
    assert "$7,000.00" in panel(servicer, f"{address}?tab=loans", "borrower-tab")
    assert len(portal_service.calls) == 4


def test_contradictory_line_figures_show_a_data_check(
    servicer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    line = given.line(portal_service, borrower, past_due_balance="5.00", days_past_due=0)
    load_panels(servicer, borrower.get_absolute_url())
    shown = visible_text(page(servicer, borrower.get_absolute_url()))
    assert f"Data check on line of credit {line.uuid[:8]}" in shown
