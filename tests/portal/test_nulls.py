"""Tests that a missing value shows which call or file omitted it and when, or that it was never requested."""

import re
from datetime import datetime
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone
from django.utils.html import strip_tags

import servicing
from portal.messaging.models import Message
from portal.records import store
from portal.records.models import Kind, Repayment, Source
from portal.ui import wording
from servicing import Application, Borrower, Loan, Statement, codec
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps
from tests import given
from tests.portal.pages import page

ACCOUNT, OWNER = "loan-or-line", "borrower-1"
OFFER = {"uuid": "offer-1", "amount": None, "apr": None, "term": None}
FACT = re.compile(r"<dt[^>]*>(.*?)</dt>\s*<dd[^>]*>(.*?)</dd>", re.DOTALL)
HOVER = re.compile(r'<span class="sd-null" title="([^"]*)">—</span>')
ONE_LINE = re.compile(r'<dt>Not provided</dt><dd[^>]* title="([^"]*)">(.*?)</dd>')


def save_answer(
    model: Any, answer: dict[str, Any], source: str = Source.SERVICE
) -> tuple[str, datetime | None]:
    """Save an answer that has almost no values; return the address of what it is about, and its time."""
    read = codec.decode(model, dumps(answer))
    if isinstance(read, servicing.Repayment):
        whole = store.Observation(kind=Kind.LOAN_REPAYMENTS, uuid=ACCOUNT, answer=[read])
        store.save([whole], source=source)
        repayment = Repayment.objects.get()
        return repayment.get_absolute_url(), repayment.last_listed_at
    uuid = ACCOUNT if model is Statement else ""
    record = store.save(store.observe(read, uuid=uuid, borrower_uuid=OWNER), source=source)[0]
    return record.get_absolute_url(), record.answer_at


def at(moment: datetime | None) -> str:
    """Return a time as staff see it."""
    assert moment
    with timezone.override("America/New_York"):
        return wording.moment(moment)


def null_hints(shown: str) -> dict[str, str]:
    """Return the hover text of each fact without a value; one line may name several facts."""
    facts = ((strip_tags(name).strip(), HOVER.search(value)) for name, value in FACT.findall(shown))
    in_one_line = {
        name.capitalize(): hover for hover, names in ONE_LINE.findall(shown) for name in names.split(", ")
    }
    return in_one_line | {name: hover[1] for name, hover in facts if hover}


LOAN_FACTS = (
    "Amount, Interest rate, APR, Term, Interest-only period, Autopay, Origination fee, Finance charge, "
    "Interest amount, Total repayment, Opened, First repayment, Final repayment, Maturity, State, Risk grade, "
    "External ID, Origin loan"
)
LINE_FACTS = "Principal, Interest, Suspense, Credit limit, Past due balance, Days past due"
BORROWER_FACTS = "Citizenship, Start date, Phone, Email, Address, Website, Industry"
PERSON_FACTS = "Phone, Email, Citizenship, Address"
APPLICATION_FACTS = "Product, Requested, Term, Credit check, Credit report, Created, Purpose"
CREATION = "borrowers.create_commercial"


@pytest.mark.parametrize(
    ("model", "answer", "query", "facts", "call"),
    [
        (Loan, {"uuid": ACCOUNT}, "", LOAN_FACTS, "loans.get"),
        (Statement, {}, "", LINE_FACTS, "credit_lines.statement"),
        (Borrower, {"uuid": OWNER}, "", BORROWER_FACTS, f"{CREATION} or borrowers.update"),
        (
            Borrower,
            {"uuid": OWNER, "user_type": "BUSINESS", "key_people": [{"uuid": "person-1"}]},
            "?tab=people",
            PERSON_FACTS,
            f"{CREATION}, borrowers.update or borrowers.update_key_person",
        ),
        (
            Application,
            {"uuid": "application-1", "offers": [OFFER]},
            "",
            APPLICATION_FACTS,
            "applications.get_for_line",
        ),
        (
            servicing.Repayment,
            {"uuid": "repayment-1"},
            "",
            "Amount, Principal, Interest, Fees, Suspense, Ending balance, Type, Initiated, Completed",
            "repayments.of_loan or repayments.of_line",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_missing_values_name_the_call_and_the_time(
    viewer: Browser, model: Any, answer: dict[str, Any], query: str, facts: str, call: str
) -> None:
    address, moment = save_answer(model, answer)
    shown = page(viewer, f"{address}{query}")
    found = null_hints(shown)
    assert set(facts.split(", ")) <= set(found)
    assert set(found.values()) == {f"Not provided by the service ({call}, {at(moment)})"}


@pytest.mark.parametrize("area", ["loans", "lines", "applications", "repayments"])
def test_missing_values_in_lists_name_the_time(viewer: Browser, area: str) -> None:
    answers = {"loans": Loan, "lines": Statement, "applications": Application}
    answer = {} if area == "lines" else {"uuid": ACCOUNT}
    _, moment = save_answer(answers.get(area, servicing.Repayment), answer)
    hovers = HOVER.findall(page(viewer, f"/{area}/"))
    assert any(hover.endswith(f", {at(moment)})") for hover in hovers)


def test_missing_values_from_a_file_name_the_file(viewer: Browser) -> None:
    address, moment = save_answer(Loan, {"uuid": ACCOUNT}, Source.FILE)
    words = f"Not in the file of {at(moment)}"
    assert set(null_hints(page(viewer, address)).values()) == {words}


@pytest.mark.slow
def test_values_are_unknown_before_the_first_answer(viewer: Browser, portal_service: Sandbox) -> None:
    record = given.account(Kind.LOAN, given.borrower(portal_service), ACCOUNT)
    assert "Unknown: never asked" in HOVER.findall(page(viewer, "/loans/"))
    portal_service.fail_next("loans.get", status=503, times=9)
    viewer.get(record.get_absolute_url(), headers={"HX-Request": "true", "HX-Target": "loan"})
    assert "Unknown: never answered" in HOVER.findall(page(viewer, "/loans/"))


def test_missing_values_of_a_message_name_the_time(viewer: Browser, portal_service: Sandbox) -> None:
    message = Message.objects.create(id=1, uuid="message-1", day="2026-07-01", body='{"uuid": "message-1"}')
    shown = null_hints(page(viewer, message.get_absolute_url()))
    words = f"Not provided by the service (messages.list, {at(message.stored_at)})"
    assert shown["Event"] == shown["Status"] == words
