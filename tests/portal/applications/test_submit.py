"""New applications: the form, the confirmation, and sending without duplicates."""

import re
import threading
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.db import connections
from django.http import HttpResponse
from django.test import Client as Browser

import servicing
from portal.accounts.roles import Role
from portal.audit.models import Entry, RemoteCall, WriteIntent
from portal.gateway import client as gateway
from portal.records import store
from portal.records.models import Application, Borrower
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.conftest import browser_of, htmx
from tests.portal.applications.answers import offer, saved_application

ACT = "applications.submit"
SEND = "Send application for $25,000.00"


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


def form(borrower: Borrower) -> str:
    return f"/borrowers/{borrower.uuid}/applications/new/"


def request_confirmation(
    browser: Browser, borrower: Borrower, amount: str = "25,000", **headers: Any
) -> HttpResponse:
    """Submit the form, which asks to confirm the amount."""
    return browser.post(form(borrower), {"amount": amount, "submit_id": str(uuid4())}, **headers)


def send(
    browser: Browser, borrower: Borrower, amount: str = "25,000.00", submit_id: str = "", **headers: Any
) -> HttpResponse:
    """Confirm the amount, which sends the application."""
    typed = {"amount": amount, "submit_id": submit_id or str(uuid4()), "confirmed": "yes"}
    return browser.post(form(borrower), typed, **headers)


def html(answer: HttpResponse, status: int = 200) -> str:
    assert answer.status_code == status
    return answer.content.decode()


def sent_bodies(portal_service: Sandbox) -> list[str]:
    return [call.body.decode() for call in portal_service.calls if call.operation == ACT]


def audit_phases() -> list[str]:
    rows = Entry.objects.filter(action=ACT).order_by("id").values_list("phase", "result")
    return [f"{phase} {result}".strip() for phase, result in rows]


def applications() -> list[Application]:
    return list(Application.objects.all())


# --- Success ---


def test_only_the_amount_is_sent(servicer: Browser, borrower: Borrower, portal_service: Sandbox) -> None:
    answer = send(servicer, borrower)
    (record,) = applications()
    assert (answer.status_code, answer["Location"]) == (303, record.get_absolute_url())
    assert sent_bodies(portal_service) == ['{"amount":25000.00}']
    assert (record.borrower_uuid, record.amount, record.decision) == (borrower.uuid, 25000, "APPROVED")
    assert record.created_by == "Servicer (servicer)"


def test_the_next_page_shows_the_outcome(servicer: Browser, borrower: Borrower) -> None:
    page = html(servicer.get(send(servicer, borrower)["Location"]))
    assert "Application for $25,000.00 of Northwind Baking Co LLC: approved, 4 offers" in page
    assert f'href="{WriteIntent.objects.get().get_absolute_url()}"' in page


def test_with_htmx_the_browser_is_redirected(servicer: Browser, borrower: Borrower) -> None:
    answer = send(servicer, borrower, headers=htmx("dialog"))
    assert (answer.status_code, answer["HX-Redirect"]) == (200, applications()[0].get_absolute_url())


@pytest.mark.postgres
def test_attempt_and_outcome_are_audited(servicer: Browser, borrower: Borrower) -> None:
    send(servicer, borrower)
    assert audit_phases() == ["attempt", "outcome confirmed"]
    entry = Entry.objects.filter(action=ACT).latest("id")
    assert entry.subject_label == "Application for $25,000.00 of Northwind Baking Co LLC"
    assert (entry.subject_uuid, entry.borrower_uuid) == (applications()[0].uuid, borrower.uuid)


def test_an_individual_can_apply(servicer: Browser, portal_service: Sandbox) -> None:
    assert send(servicer, given.individual(portal_service)).status_code == 303


# --- The response ---


@pytest.mark.postgres
def test_the_response_is_saved_with_all_offers(servicer: Browser, borrower: Borrower) -> None:
    send(servicer, borrower)
    application = store.last_answer(applications()[0], servicing.Application)
    assert application is not None
    assert len(application.offers) == 4
    assert Entry.objects.latest("id").detail["answer"]["offers"][3]["apr"] == str(application.offers[3].apr)


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        ("audit_entry", "NEW.phase = 'outcome'"),
        ("registry_application", "TRUE"),
        ("audit_remotecall", "TRUE"),
    ],
)
@pytest.mark.postgres
def test_record_outcome_and_call_are_saved_atomically(
    servicer: Browser, borrower: Borrower, table: str, condition: str
) -> None:
    databases.reject_inserts(table, condition)
    send(servicer, borrower)
    assert (applications(), audit_phases(), RemoteCall.objects.count()) == ([], ["attempt"], 0)
    assert WriteIntent.objects.get().state == "sending"


# --- Access ---


def test_only_lending_roles_can_apply(portal_service: Sandbox, borrower: Borrower) -> None:
    for role in Role:
        expected = 200 if role in (Role.SERVICER, Role.SUPERVISOR) else 403
        assert browser_of(role).get(form(borrower)).status_code == expected
        if expected == 403:
            assert send(browser_of(role), borrower).status_code == 403
    assert sent_bodies(portal_service) == []


def test_an_unknown_borrower_has_no_form(servicer: Browser) -> None:
    assert servicer.get("/borrowers/nobody/applications/new/").status_code == 404


# --- The form ---


def test_the_form_shows_the_borrower_and_earlier_applications(servicer: Browser, borrower: Borrower) -> None:
    earlier = saved_application(borrower, offer())
    page = html(servicer.get(form(borrower)))
    assert "Northwind Baking Co LLC" in page
    assert "Has the borrower consented to a credit check?" in page
    assert f'<a href="{earlier.get_absolute_url()}">$40,000.00</a>' in page
    assert "Nov 20, 2026, 1:31 PM" in page


def test_the_form_says_none_on_file(servicer: Browser, borrower: Borrower) -> None:
    assert "None on file" in html(servicer.get(form(borrower)))


def test_the_typed_amount_is_shown_in_words(servicer: Browser, borrower: Borrower) -> None:
    words = html(servicer.get(f"{form(borrower)}?amount=25%2C000", headers=htmx("amount-words")))
    assert words.strip().startswith('<p class="sd-words" id="amount-words"')
    assert "Twenty-five thousand dollars" in words


@pytest.mark.parametrize(("typed", "words"), [("0", "greater than zero"), ("many", "Enter an amount")])
def test_an_invalid_amount_shows_a_reason_instead(
    servicer: Browser, borrower: Borrower, typed: str, words: str
) -> None:
    shown = html(servicer.get(f"{form(borrower)}?amount={typed}", headers=htmx("amount-words")))
    assert words in shown
    assert "dollars" not in re.sub("in dollars", "", shown)


def test_an_empty_amount_shows_no_words(servicer: Browser, borrower: Borrower) -> None:
    shown = html(servicer.get(f"{form(borrower)}?amount=", headers=htmx("amount-words")))
    assert shown.strip().startswith('<p class="sd-words" id="amount-words"')
    assert re.sub(r"<[^>]+>", "", shown).strip() == ""


# --- The confirmation ---


def test_the_confirmation_repeats_the_amount(
    servicer: Browser, borrower: Borrower, portal_service: Sandbox
) -> None:
    page = html(request_confirmation(servicer, borrower))
    assert "<html" in page
    assert f"{SEND}</button>" in page
    assert "Twenty-five thousand dollars, for Northwind Baking Co LLC." in page
    assert sent_bodies(portal_service) == []


def test_with_htmx_the_confirmation_is_a_dialog(servicer: Browser, borrower: Borrower) -> None:
    fragment = html(request_confirmation(servicer, borrower, headers=htmx("dialog"))).strip()
    assert fragment.startswith('<div id="dialog">')
    assert SEND in fragment
    assert "<html" not in fragment


def test_the_confirmed_amount_is_sent(servicer: Browser, borrower: Borrower, portal_service: Sandbox) -> None:
    page = html(request_confirmation(servicer, borrower, "$ 1,234.5"))
    typed = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    servicer.post(form(borrower), typed)
    assert sent_bodies(portal_service) == ['{"amount":1234.50}']


def test_the_confirmation_shows_the_same_or_the_last_application(
    servicer: Browser, borrower: Borrower
) -> None:
    saved_application(borrower, n=1, amount=25000)
    saved_application(borrower, n=2, amount=30000)
    assert "An application for the same amount: $25,000.00, Nov 20, 2026, approved." in html(
        request_confirmation(servicer, borrower)
    )
    assert "The last application: $30,000.00, Nov 20, 2026, approved." in html(
        request_confirmation(servicer, borrower, "9")
    )


def test_the_confirmation_says_none_on_file(servicer: Browser, borrower: Borrower) -> None:
    assert "No earlier applications on file." in html(request_confirmation(servicer, borrower))


# --- Rejections ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        ("", "Enter the amount requested"),
        ("0", "greater than zero"),
        ("-5", "greater than zero"),
        ("1.005", "at most two decimal places"),
        ("1000000000", "at most $999,999,999.99"),
        ("NaN", "Enter an amount in dollars"),
        ("1e5", "Enter an amount in dollars"),
        ("25,00", "Enter an amount in dollars"),
        ("٢٥٠٠٠", "Enter an amount in dollars"),
        ("<script>", "Enter an amount in dollars"),
        ("25\x00000", "Enter an amount in dollars"),
        ("9" * 5000, "Enter an amount in dollars"),
    ],
)
@pytest.mark.parametrize("press", [request_confirmation, send])
def test_invalid_amounts_are_rejected_with_a_reason(
    servicer: Browser, borrower: Borrower, portal_service: Sandbox, press: Any, amount: str, reason: str
) -> None:
    page = html(press(servicer, borrower, amount), 422)
    assert reason in page
    assert "Nothing was sent." in page
    assert "<script>" not in page
    assert (sent_bodies(portal_service), WriteIntent.objects.count()) == ([], 0)


def test_with_htmx_a_rejection_swaps_the_form_and_closes_the_dialog(
    servicer: Browser, borrower: Borrower
) -> None:
    answer = request_confirmation(servicer, borrower, "0", headers=htmx("dialog"))
    assert html(answer, 422).strip().startswith('<form class="sd-card" id="application-form"')
    assert (answer["HX-Retarget"], answer["HX-Reswap"]) == ("#application-form", "outerHTML")
    assert answer["HX-Trigger"] == '{"dialog:close": {}}'


def test_an_invalid_submit_id_shows_the_form_again(
    servicer: Browser, borrower: Borrower, portal_service: Sandbox
) -> None:
    typed = {"amount": "25,000", "confirmed": "yes", "submit_id": "x"}
    assert "25,000" in html(servicer.post(form(borrower), typed), 422)
    assert sent_bodies(portal_service) == []


def test_a_service_rejection_is_quoted_on_the_filled_form(
    servicer: Browser, borrower: Borrower, portal_service: Sandbox
) -> None:
    portal_service.fail_next(ACT, status=422, message="amount is <above> your limit")
    page = html(send(servicer, borrower), 422)
    assert "<q>amount is &lt;above&gt; your limit</q>" in page
    assert "No application was opened." in page
    assert 'value="25,000.00"' in page
    assert audit_phases() == ["attempt", "outcome rejected"]


def test_a_rejected_application_can_be_sent_again(
    servicer: Browser, borrower: Borrower, portal_service: Sandbox
) -> None:
    portal_service.fail_next(ACT, status=422, message="try later")
    page = html(send(servicer, borrower), 422)
    (submit_id,) = re.findall(r'name="submit_id" value="([^"]*)"', page)
    assert send(servicer, borrower, submit_id=submit_id).status_code == 303
    assert len(sent_bodies(portal_service)) == 2


def test_an_unsent_application_can_be_sent_again(
    servicer: Browser, borrower: Borrower, portal_service: Sandbox, settings: LazySettings
) -> None:
    settings.SERVICING_URL = "http://127.0.0.1:9"
    gateway.client.cache_clear()
    page = html(send(servicer, borrower), 503)
    assert "Nothing was sent. The lending service can’t be reached: the connection was refused." in page
    settings.SERVICING_URL = portal_service.url
    gateway.client.cache_clear()
    assert send(servicer, borrower).status_code == 303


# --- Duplicates ---


@pytest.mark.postgres
def test_a_second_click_gets_the_first_result(
    servicer: Browser, borrower: Borrower, portal_service: Sandbox
) -> None:
    first = send(servicer, borrower, submit_id=(submit_id := str(uuid4())))
    again = send(servicer, borrower, submit_id=submit_id)
    assert (again.status_code, again["Location"]) == (303, first["Location"])
    assert "Nothing was sent twice" in html(servicer.get(again["Location"]))
    assert (len(sent_bodies(portal_service)), audit_phases()) == (1, ["attempt", "outcome confirmed"])


def test_a_sent_form_cannot_send_another_amount(
    servicer: Browser, borrower: Borrower, portal_service: Sandbox
) -> None:
    send(servicer, borrower, submit_id=(submit_id := str(uuid4())))
    send(servicer, borrower, "30,000", submit_id=submit_id)
    assert sent_bodies(portal_service) == ['{"amount":25000.00}']


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres
def test_two_clicks_at_once_open_one_application(portal_service: Sandbox) -> None:
    borrower, submit_id = given.borrower(portal_service), str(uuid4())
    portal_service.fail_next(ACT, delay=0.5, times=None)
    barrier, statuses = threading.Barrier(2), []

    def click(browser: Browser) -> None:
        barrier.wait()
        statuses.append(send(browser, borrower, submit_id=submit_id).status_code)
        connections.close_all()

    threads = [threading.Thread(target=click, args=[browser_of(Role.SERVICER)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (statuses, len(sent_bodies(portal_service)), len(applications())) == ([303, 303], 1, 1)
    assert audit_phases() == ["attempt", "outcome confirmed"]


def test_repeating_a_rejected_submission_shows_409(
    servicer: Browser, borrower: Borrower, portal_service: Sandbox
) -> None:
    portal_service.fail_next(ACT, status=422, message="no")
    send(servicer, borrower, submit_id=(submit_id := str(uuid4())))
    page = html(send(servicer, borrower, submit_id=submit_id), 409)
    assert "it didn’t go through" in page
    assert len(sent_bodies(portal_service)) == 1


@pytest.mark.postgres
class TestUnknown:
    """The response is lost after the service opened the application."""

    @pytest.fixture(autouse=True)
    def lose_response(self, servicer: Browser, borrower: Borrower, portal_service: Sandbox) -> None:
        portal_service.fail_next(ACT, cut_after_commit=True)
        self.submit_id = str(uuid4())
        self.first = send(servicer, borrower, "25000", submit_id=self.submit_id)
        self.intent = WriteIntent.objects.get()

    def test_a_page_of_its_own_says_the_outcome_is_unknown(self, servicer: Browser) -> None:
        assert (self.first.status_code, self.first["Location"]) == (303, self.intent.get_absolute_url())
        assert "may or may not have gone through" in html(servicer.get(self.intent.get_absolute_url()))
        assert (self.intent.state, audit_phases()) == ("unknown", ["attempt", "outcome unknown"])

    @pytest.mark.parametrize("amount", ["25,000.00", "25000", "$25,000"])
    def test_the_same_application_is_rejected_with_a_link(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox, amount: str
    ) -> None:
        page = html(send(servicer, borrower, amount), 409)
        assert "The same application was already sent" in page
        assert f'href="{self.intent.get_absolute_url()}"' in page
        assert (len(sent_bodies(portal_service)), WriteIntent.objects.count()) == (1, 1)

    def test_with_htmx_the_rejection_replaces_the_form(self, servicer: Browser, borrower: Borrower) -> None:
        answer = send(servicer, borrower, headers=htmx("dialog"))
        assert (answer.status_code, answer["HX-Retarget"]) == (409, "#application-form")

    def test_resubmitting_the_form_redirects_to_the_write(
        self, servicer: Browser, borrower: Borrower, portal_service: Sandbox
    ) -> None:
        again = send(servicer, borrower, submit_id=self.submit_id)
        assert (again.status_code, again["Location"]) == (303, self.intent.get_absolute_url())
        assert len(sent_bodies(portal_service)) == 1

    def test_another_amount_can_be_sent(self, servicer: Browser, borrower: Borrower) -> None:
        assert send(servicer, borrower, "25,000.01").status_code == 303

    def test_another_borrower_can_apply_for_the_same_amount(
        self, servicer: Browser, portal_service: Sandbox
    ) -> None:
        assert send(servicer, given.borrower(portal_service)).status_code == 303

    def test_a_new_form_warns_of_the_unknown_outcome(self, servicer: Browser, borrower: Borrower) -> None:
        assert "outcome unknown" in html(servicer.get(form(borrower)))


@pytest.mark.parametrize("decision", ["REJECTED", "COUNTER_OFFERED", None])
def test_applications_without_offers_are_saved(
    servicer: Browser, borrower: Borrower, portal_service: Sandbox, decision: str | None
) -> None:
    portal_service.fail_next(
        ACT, changes={"status": {"decision": decision, "details": ["No."]}, "offers": []}
    )
    page = html(servicer.get(send(servicer, borrower)["Location"]))
    assert "No offers" in page
    assert applications()[0].amount == Decimal(25000)
