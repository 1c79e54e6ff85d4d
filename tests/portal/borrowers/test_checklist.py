"""What is left to do after onboarding, what was sent that is never told back, and reading everything again."""

import re
from html import unescape

import pytest
from django.test import Client as Browser

from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx, wait_for_reads
from tests.portal.borrowers.editor import BORN, TWICE, WITH_SSN, Editor
from tests.portal.borrowers.wizard import SSN, Wizard
from tests.portal.pages import load_panels, page, panel, words

pytestmark = pytest.mark.django_db(transaction=True)  # the service is asked in other threads


def onboarded(servicer: Browser) -> Record:
    """Two key people; of the first the SSN was given, of the second the date of birth."""
    Wizard(servicer).fill().send({"ssn_0": SSN, "ssn_0_again": SSN})
    return Record.objects.filter(kind=Kind.BORROWER).latest("pk")


def test_each_line_is_ticked_with_date_and_person_or_leads_to_where_it_is_done(servicer: Browser) -> None:
    record = onboarded(servicer)
    shown = words(page(servicer, record.get_absolute_url()))
    assert "0 of 4 done" in shown
    for line in (
        "No asset report sent from here Send",
        "No SSN of Priya Raman sent from here Send",
        "No date of birth of Elena O'Neil sent from here Send",
        "No application yet Start",
    ):
        assert line in shown


def test_what_is_sent_later_is_ticked_too(servicer: Browser) -> None:
    record = onboarded(servicer)
    elena = Record.objects.get(kind=Kind.KEY_PERSON, label="Elena O'Neil")
    Editor(servicer, elena).send(**BORN)
    shown = words(page(servicer, f"{record.get_absolute_url()}?tab=people"))
    assert len(re.findall(r"Date of birth sent .+? by Servicer", shown)) == 2
    # One line for all, then one mark or one link for each.
    assert shown.count("The service never returns SSN or date of birth, and neither is stored here.") == 1
    assert shown.count("SSN and date of birth Sent ") == 1
    assert shown.count("SSN and date of birth No SSN sent from here Send") == 1
    done = words(page(servicer, record.get_absolute_url()))
    assert "1 of 4 done" in done
    assert re.search(r"SSN and date of birth of Elena O'Neil sent [^,]+, Servicer \(servicer\)", done)


def test_the_ssn_of_an_individual_is_on_its_profile(servicer: Browser, of_person: Editor) -> None:
    address = of_person.record.get_absolute_url()
    assert "No SSN or date of birth sent from here Send" in words(page(servicer, address))
    of_person.send(TWICE, **WITH_SSN)
    assert re.search(
        r"No date of birth sent from here Send.{0,30} SSN sent .+? by Servicer \(servicer\)",
        words(page(servicer, address)),
    )


def test_consent_that_was_not_given_is_a_line_and_looking_changes_no_date(
    servicer: Browser, portal_service: Sandbox
) -> None:
    borrower = onboarded(servicer)
    application = portal_service.world.line_application(
        borrower.uuid, credit_score_consent=False, created_at="2026-10-09 10:15:00 US/Pacific"
    )["uuid"]
    address = given.account(Kind.APPLICATION, borrower, application).get_absolute_url()
    for _ in range(2):
        servicer.get(address)
        shown = words(page(servicer, borrower.get_absolute_url()))
        assert "No credit-check consent" in shown
        assert re.search(r"First application sent (9 Oct|Oct 9)", shown)


def test_a_borrower_that_was_not_onboarded_here_has_no_checklist(viewer: Browser, borrower: Record) -> None:
    assert "No application yet" not in page(viewer, borrower.get_absolute_url())


def test_a_list_has_the_incomplete_ones(servicer: Browser, portal_service: Sandbox) -> None:
    given.borrower(portal_service, first_name="Imported LLC")
    onboarded(servicer)
    found = servicer.get("/borrowers/?onboarding=incomplete").context["listing"]
    assert [record.label for record in found.page] == ["O'Neil & Daughters, LLC"]


def test_who_may_not_change_anything_sees_why(
    viewer: Browser, portal_service: Sandbox, borrower: Record
) -> None:
    for tab in ("overview", "people", "notes"):
        shown = page(viewer, f"{borrower.get_absolute_url()}?tab={tab}")
        main = shown[shown.index('id="borrower-tab"') :]
        assert 'title="Requires the servicer or supervisor role"' in main
        assert not re.search(r'href="[^"]+/(edit|new)/', main)


def test_everything_is_read_again_and_said_how_far(
    servicer: Browser, portal_service: Sandbox, borrower: Record
) -> None:
    given.loan(portal_service, borrower)
    given.line(portal_service, borrower)
    address = borrower.get_absolute_url()
    assert "?panel=refresh-all" in page(servicer, address)
    wait_for_reads()
    before = len(portal_service.calls)
    begun = panel(servicer, f"{address}?panel=refresh-all", "refresh-all")
    assert "Refreshing: 0 of 4" in begun
    since = re.search(r"since=([^\"]+)", unescape(begun))
    assert since
    portal_service.fail_next("loans.get", status=500)
    load_panels(servicer, begun)
    ended = panel(servicer, f"{address}?panel=refresh-progress&since={since[1]}", "refresh-progress")
    assert "4 of 4 refreshed, 1 failed" in ended
    assert "hx-trigger" not in ended
    assert len(portal_service.calls) - before == 4


@pytest.mark.parametrize("since", ["", "x", "2026-13-45T00:00:00Z", "2026-01-01", "\0"])
def test_a_strange_beginning_begins_now(
    servicer: Browser, portal_service: Sandbox, borrower: Record, since: str
) -> None:
    given.loan(portal_service, borrower)
    answer = servicer.get(borrower.get_absolute_url(), {"since": since}, headers=htmx("refresh-progress"))
    assert "Refreshing: 0 of 2" in answer.content.decode()


def test_what_does_not_add_up_is_a_notice(
    servicer: Browser, portal_service: Sandbox, borrower: Record
) -> None:
    line = given.line(portal_service, borrower, past_due_balance="5.00", days_past_due=0)
    panel(servicer, f"{borrower.get_absolute_url()}?panel=position", "position")
    shown = words(page(servicer, borrower.get_absolute_url()))
    assert f"Data check on line of credit {line.uuid[:8]}" in shown
