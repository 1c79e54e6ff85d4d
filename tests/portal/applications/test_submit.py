"""A new application: typed, read once more with its amount in words, and sent exactly once."""

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

from portal import gateway
from portal.accounts.roles import Role
from portal.audit.models import Entry, RemoteCall, WriteIntent
from portal.registry import store
from portal.registry.models import Kind, Record
from servicing import Application
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.conftest import browser_of, htmx
from tests.portal.applications.answers import known, offer

ACT = "applications.submit"
SEND = "Send application for $25,000.00"


@pytest.fixture
def borrower(portal_service: Sandbox) -> Record:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


def form(borrower: Record) -> str:
    return f"/borrowers/{borrower.uuid}/applications/new/"


def ask(browser: Browser, borrower: Record, amount: str = "25,000", **headers: Any) -> HttpResponse:
    """Press the button below the amount."""
    return browser.post(form(borrower), {"amount": amount, "submit_id": str(uuid4())}, **headers)


def send(
    browser: Browser, borrower: Record, amount: str = "25,000.00", submit_id: str = "", **headers: Any
) -> HttpResponse:
    """Press the button that repeats the amount."""
    typed = {"amount": amount, "submit_id": submit_id or str(uuid4()), "confirmed": "yes"}
    return browser.post(form(borrower), typed, **headers)


def html(answer: HttpResponse, status: int = 200) -> str:
    assert answer.status_code == status
    return answer.content.decode()


def sent(portal_service: Sandbox) -> list[str]:
    return [call.body.decode() for call in portal_service.calls if call.operation == ACT]


def trail() -> list[str]:
    rows = Entry.objects.filter(action=ACT).order_by("id").values_list("phase", "result")
    return [f"{phase} {result}".strip() for phase, result in rows]


def applications() -> list[Record]:
    return list(Record.objects.filter(kind=Kind.APPLICATION))


# --- It works ---


def test_it_is_sent_with_nothing_but_the_amount(
    servicer: Browser, borrower: Record, portal_service: Sandbox
) -> None:
    answer = send(servicer, borrower)
    (record,) = applications()
    assert (answer.status_code, answer["Location"]) == (303, record.get_absolute_url())
    assert sent(portal_service) == ['{"amount":25000.00}']
    assert (record.borrower_uuid, record.amount, record.status) == (borrower.uuid, 25000, "APPROVED")
    assert record.created_by == "Servicer (servicer)"


def test_the_next_page_says_what_came_of_it(servicer: Browser, borrower: Record) -> None:
    page = html(servicer.get(send(servicer, borrower)["Location"]))
    assert "Application for $25,000.00 of Northwind Baking Co LLC: approved, 4 offers" in page
    assert f'href="{WriteIntent.objects.get().get_absolute_url()}"' in page


def test_with_htmx_the_browser_is_led_there(servicer: Browser, borrower: Record) -> None:
    answer = send(servicer, borrower, headers=htmx("dialog"))
    assert (answer.status_code, answer["HX-Redirect"]) == (200, applications()[0].get_absolute_url())


def test_one_attempt_and_one_outcome_are_in_the_audit(servicer: Browser, borrower: Record) -> None:
    send(servicer, borrower)
    assert trail() == ["attempt", "outcome confirmed"]
    entry = Entry.objects.filter(action=ACT).latest("id")
    assert entry.subject_label == "Application for $25,000.00 of Northwind Baking Co LLC"
    assert (entry.subject_uuid, entry.borrower_uuid) == (applications()[0].uuid, borrower.uuid)


def test_an_individual_may_apply_as_well(servicer: Browser, portal_service: Sandbox) -> None:
    assert send(servicer, given.individual(portal_service)).status_code == 303


# --- The one answer ---


def test_the_one_answer_is_kept_with_every_offer(servicer: Browser, borrower: Record) -> None:
    send(servicer, borrower)
    application = store.last_answer(applications()[0], Application)
    assert application is not None
    assert len(application.offers) == 4
    assert Entry.objects.latest("id").detail["answer"]["offers"][3]["apr"] == str(application.offers[3].apr)


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        ("audit_entry", "NEW.phase = 'outcome'"),
        ("registry_record", "NEW.kind = 'application'"),
        ("audit_remotecall", "TRUE"),
    ],
)
def test_answer_audit_row_and_call_are_kept_together_or_not_at_all(
    servicer: Browser, borrower: Record, table: str, condition: str
) -> None:
    databases.fill_the_disk(table, condition)
    send(servicer, borrower)
    assert (applications(), trail(), RemoteCall.objects.count()) == ([], ["attempt"], 0)
    assert WriteIntent.objects.get().state == "sending"


# --- Who may ---


def test_it_needs_a_role_that_lends(portal_service: Sandbox, borrower: Record) -> None:
    for role in Role:
        expected = 200 if role in (Role.SERVICER, Role.SUPERVISOR) else 403
        assert browser_of(role).get(form(borrower)).status_code == expected
    assert send(browser_of(Role.VIEWER), borrower).status_code == 403
    assert sent(portal_service) == []


def test_a_borrower_nobody_knows_has_no_form(servicer: Browser) -> None:
    assert servicer.get("/borrowers/nobody/applications/new/").status_code == 404


# --- The form ---


def test_the_form_shows_whom_it_is_for_and_what_was_applied_for(servicer: Browser, borrower: Record) -> None:
    earlier = known(borrower, offer())
    page = html(servicer.get(form(borrower)))
    assert "Northwind Baking Co LLC" in page
    assert "Has the borrower consented to a credit check?" in page
    assert f'<a href="{earlier.get_absolute_url()}">$40,000.00</a>' in page
    assert "Nov 20, 2026, 1:31 PM" in page


def test_a_borrower_without_applications_is_told_so(servicer: Browser, borrower: Record) -> None:
    assert "None on file" in html(servicer.get(form(borrower)))


def test_the_amount_is_read_back_in_words_while_it_is_typed(servicer: Browser, borrower: Record) -> None:
    words = html(servicer.get(f"{form(borrower)}?amount=25%2C000", headers=htmx("amount-words")))
    assert words.strip().startswith('<p class="sd-words" id="amount-words"')
    assert "Twenty-five thousand dollars" in words


@pytest.mark.parametrize(
    ("typed", "words"), [("", ""), ("0", "greater than zero"), ("many", "Enter an amount")]
)
def test_what_is_no_amount_has_a_reason_instead(
    servicer: Browser, borrower: Record, typed: str, words: str
) -> None:
    shown = html(servicer.get(f"{form(borrower)}?amount={typed}", headers=htmx("amount-words")))
    assert words in shown
    assert "dollars" not in re.sub("in dollars", "", shown)


# --- The question ---


def test_the_button_repeats_the_amount(servicer: Browser, borrower: Record, portal_service: Sandbox) -> None:
    page = html(ask(servicer, borrower))
    assert "<html" in page
    assert f"{SEND}</button>" in page
    assert "Twenty-five thousand dollars, for Northwind Baking Co LLC." in page
    assert sent(portal_service) == []


def test_with_htmx_it_is_a_dialog(servicer: Browser, borrower: Record) -> None:
    fragment = html(ask(servicer, borrower, headers=htmx("dialog"))).strip()
    assert fragment.startswith('<div id="dialog">')
    assert SEND in fragment
    assert "<html" not in fragment


def test_what_it_asks_is_what_is_sent(servicer: Browser, borrower: Record, portal_service: Sandbox) -> None:
    page = html(ask(servicer, borrower, "$ 1,234.5"))
    typed = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    servicer.post(form(borrower), typed)
    assert sent(portal_service) == ['{"amount":1234.50}']


def test_it_reminds_of_an_equal_application_before_any_other(servicer: Browser, borrower: Record) -> None:
    known(borrower, n=1, amount=25000)
    known(borrower, n=2, amount=30000)
    assert "An application for the same amount: $25,000.00, Nov 20, 2026, approved." in html(
        ask(servicer, borrower)
    )
    assert "The last application: $30,000.00, Nov 20, 2026, approved." in html(ask(servicer, borrower, "9"))


def test_it_says_that_none_is_known(servicer: Browser, borrower: Record) -> None:
    assert "No earlier applications on file." in html(ask(servicer, borrower))


# --- Bad input ---


@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        ("", "This field is required"),
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
@pytest.mark.parametrize("press", [ask, send])
def test_an_amount_that_cannot_be_applied_for_is_refused_with_a_reason(
    servicer: Browser, borrower: Record, portal_service: Sandbox, press: Any, amount: str, reason: str
) -> None:
    page = html(press(servicer, borrower, amount), 422)
    assert reason in page
    assert "Nothing was sent." in page
    assert "<script>" not in page
    assert (sent(portal_service), WriteIntent.objects.count()) == ([], 0)


def test_with_htmx_the_form_comes_back_by_itself_and_the_dialog_closes(
    servicer: Browser, borrower: Record
) -> None:
    answer = ask(servicer, borrower, "0", headers=htmx("dialog"))
    assert html(answer, 422).strip().startswith('<form class="sd-card" id="application-form"')
    assert (answer["HX-Retarget"], answer["HX-Reswap"]) == ("#application-form", "outerHTML")
    assert answer["HX-Trigger"] == '{"dialog:close": {}}'


def test_a_form_that_lost_its_number_is_drawn_anew(
    servicer: Browser, borrower: Record, portal_service: Sandbox
) -> None:
    typed = {"amount": "25,000", "confirmed": "yes", "submit_id": "x"}
    assert "25,000" in html(servicer.post(form(borrower), typed), 422)
    assert sent(portal_service) == []


def test_the_services_refusal_is_quoted_and_the_amount_kept(
    servicer: Browser, borrower: Record, portal_service: Sandbox
) -> None:
    portal_service.fail_next(ACT, status=422, message="amount is <above> your limit")
    page = html(send(servicer, borrower), 422)
    assert "<q>amount is &lt;above&gt; your limit</q>" in page
    assert "No application was opened." in page
    assert 'value="25,000.00"' in page
    assert trail() == ["attempt", "outcome rejected"]


def test_after_a_refusal_the_same_page_sends_anew(
    servicer: Browser, borrower: Record, portal_service: Sandbox
) -> None:
    portal_service.fail_next(ACT, status=422, message="try later")
    page = html(send(servicer, borrower), 422)
    (submit_id,) = re.findall(r'name="submit_id" value="([^"]*)"', page)
    assert send(servicer, borrower, submit_id=submit_id).status_code == 303
    assert len(sent(portal_service)) == 2


def test_what_never_left_is_said_and_can_be_sent_again(
    servicer: Browser, borrower: Record, portal_service: Sandbox, settings: LazySettings
) -> None:
    settings.SERVICING_URL = "http://127.0.0.1:9"
    gateway.client.cache_clear()
    page = html(send(servicer, borrower), 503)
    assert "The service can’t be reached." in page
    assert "Nothing was sent." in page
    settings.SERVICING_URL = portal_service.url
    gateway.client.cache_clear()
    assert send(servicer, borrower).status_code == 303


# --- Sent once ---


def test_a_second_click_gets_the_first_result(
    servicer: Browser, borrower: Record, portal_service: Sandbox
) -> None:
    first = send(servicer, borrower, submit_id=(once := str(uuid4())))
    again = send(servicer, borrower, submit_id=once)
    assert (again.status_code, again["Location"]) == (303, first["Location"])
    assert "Nothing was sent twice" in html(servicer.get(again["Location"]))
    assert (len(sent(portal_service)), trail()) == (1, ["attempt", "outcome confirmed"])


def test_another_amount_on_the_same_page_sends_nothing(
    servicer: Browser, borrower: Record, portal_service: Sandbox
) -> None:
    send(servicer, borrower, submit_id=(once := str(uuid4())))
    send(servicer, borrower, "30,000", submit_id=once)
    assert sent(portal_service) == ['{"amount":25000.00}']


@pytest.mark.django_db(transaction=True)
def test_two_clicks_at_once_open_one_application(portal_service: Sandbox) -> None:
    borrower, once = given.borrower(portal_service), str(uuid4())
    portal_service.fail_next(ACT, delay=0.5, times=None)
    together, statuses = threading.Barrier(2), []

    def click(browser: Browser) -> None:
        together.wait()
        statuses.append(send(browser, borrower, submit_id=once).status_code)
        connections.close_all()

    threads = [threading.Thread(target=click, args=[browser_of(Role.SERVICER)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (statuses, len(sent(portal_service)), len(applications())) == ([303, 303], 1, 1)
    assert trail() == ["attempt", "outcome confirmed"]


def test_a_page_whose_sending_came_to_nothing_says_so(
    servicer: Browser, borrower: Record, portal_service: Sandbox
) -> None:
    portal_service.fail_next(ACT, status=422, message="no")
    send(servicer, borrower, submit_id=(once := str(uuid4())))
    page = html(send(servicer, borrower, submit_id=once), 409)
    assert "it didn’t go through" in page
    assert len(sent(portal_service)) == 1


class TestUnknown:
    """The answer is lost after the service did it."""

    @pytest.fixture(autouse=True)
    def cut(self, servicer: Browser, borrower: Record, portal_service: Sandbox) -> None:
        portal_service.fail_next(ACT, cut_after_commit=True)
        self.once = str(uuid4())
        self.first = send(servicer, borrower, "25000", submit_id=self.once)
        self.intent = WriteIntent.objects.get()

    def test_the_page_says_that_nobody_knows(self) -> None:
        page = html(self.first, 504)
        assert "may or may not have gone through" in page
        assert self.intent.get_absolute_url() in page
        assert (self.intent.state, trail()) == ("unknown", ["attempt", "outcome unknown"])

    @pytest.mark.parametrize("amount", ["25,000.00", "25000", "$25,000"])
    def test_an_equal_one_is_refused_with_a_link_to_the_first(
        self, servicer: Browser, borrower: Record, portal_service: Sandbox, amount: str
    ) -> None:
        page = html(send(servicer, borrower, amount), 409)
        assert "The same application was already sent" in page
        assert f'href="{self.intent.get_absolute_url()}"' in page
        assert (len(sent(portal_service)), WriteIntent.objects.count()) == (1, 1)

    def test_with_htmx_it_is_refused_on_the_form(self, servicer: Browser, borrower: Record) -> None:
        answer = send(servicer, borrower, headers=htmx("dialog"))
        assert (answer.status_code, answer["HX-Retarget"]) == (409, "#application-form")

    def test_the_same_page_leads_to_the_record_of_the_write(
        self, servicer: Browser, borrower: Record, portal_service: Sandbox
    ) -> None:
        again = send(servicer, borrower, submit_id=self.once)
        assert (again.status_code, again["Location"]) == (303, self.intent.get_absolute_url())
        assert len(sent(portal_service)) == 1

    def test_another_amount_may_be_sent(self, servicer: Browser, borrower: Record) -> None:
        assert send(servicer, borrower, "25,000.01").status_code == 303

    def test_another_borrower_may_apply_for_the_same(
        self, servicer: Browser, portal_service: Sandbox
    ) -> None:
        assert send(servicer, given.borrower(portal_service)).status_code == 303

    def test_the_form_warns_before_anything_is_typed(self, servicer: Browser, borrower: Record) -> None:
        assert "outcome unknown" in html(servicer.get(form(borrower)))


@pytest.mark.parametrize("decision", ["REJECTED", "COUNTER_OFFERED", None])
def test_any_decision_is_an_answer(
    servicer: Browser, borrower: Record, portal_service: Sandbox, decision: str | None
) -> None:
    portal_service.fail_next(
        ACT, changes={"status": {"decision": decision, "details": ["No."]}, "offers": []}
    )
    page = html(servicer.get(send(servicer, borrower)["Location"]))
    assert "No offers" in page
    assert applications()[0].amount == Decimal(25000)
