"""The first page: what needs somebody, worst first, and where a person left off."""

import re
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.chain import append
from portal.audit.models import Actor, WriteIntent
from portal.borrowers.models import Draft
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.borrowers.wizard import BUSINESS, Wizard

MAYA = Actor(name="Maya Chen", role="servicer")


def home(browser: Browser) -> str:
    return browser.get("/").content.decode()


def open_write(label: str, state: str = "unknown") -> WriteIntent:
    known = {"submit_id": uuid4().hex, "operation": "borrowers.create_commercial", "actor_name": "Maya Chen"}
    return WriteIntent.objects.create(label=label, state=state, **known)


def flagged(sandbox: Sandbox, kind: Kind, past_due: str | None, name: str) -> Record:
    record = given.account(kind, given.borrower(sandbox, first_name=name), uuid4().hex)
    Record.objects.filter(pk=record.pk).update(flagged=True, past_due=past_due and Decimal(past_due))
    return record


def test_an_empty_desk_says_what_will_appear(viewer: Browser) -> None:
    page = home(viewer)
    assert "0 items need someone." in page
    for sentence in ("Nothing needs attention", "No draft is open", "Onboard a borrower", "Nothing yet"):
        assert sentence in page


def test_unknown_outcomes_come_first_and_lead_to_their_record(viewer: Browser, desk: Sandbox) -> None:
    flagged(desk, Kind.LINE, "310.00", "Acme Farms LLC")
    write = open_write("Northwind LLC")
    page = home(viewer)
    assert page.index("Outcome unknown:") < page.index("$310.00 past due")
    assert f'href="{write.get_absolute_url()}"' in page
    assert "2 items need someone." in page


def test_settled_writes_need_nobody(viewer: Browser) -> None:
    for state in ("sending", "confirmed", "rejected", "not_sent"):
        open_write("Northwind LLC", state)
    assert "0 items need someone." in home(viewer)


def test_a_write_cut_off_by_a_crash_turns_up_as_unknown(viewer: Browser) -> None:
    write = open_write("Northwind LLC", "sending")
    WriteIntent.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    assert "Outcome unknown:</b> Northwind LLC" in home(viewer)
    write.refresh_from_db()
    assert write.state == "unknown"


def test_accounts_come_by_what_is_past_due(viewer: Browser, desk: Sandbox) -> None:
    flagged(desk, Kind.LOAN, None, "Delinquent Loan LLC")
    flagged(desk, Kind.LINE, "12.50", "Small Debt LLC")
    flagged(desk, Kind.LINE, "9000.00", "Large Debt LLC")
    names = re.findall(r"(Delinquent Loan|Small Debt|Large Debt) LLC</a>, ", home(viewer))
    assert names == ["Large Debt", "Small Debt", "Delinquent Loan"]


def test_an_archived_account_needs_nobody(viewer: Browser, desk: Sandbox) -> None:
    record = flagged(desk, Kind.LINE, "310.00", "Acme Farms LLC")
    Record.objects.filter(pk=record.pk).update(archived_at=timezone.now())
    assert "0 items need someone." in home(viewer)


def test_a_draft_is_waiting_for_whoever_began_it(servicer: Browser, supervisor: Browser) -> None:
    Wizard(servicer).post("business", BUSINESS, act="save")
    draft = Draft.objects.get(owner=User.objects.get(username="servicer"))
    assert f'href="{draft.get_absolute_url()}"' in home(servicer)
    assert "No draft is open" in home(supervisor)


def test_the_teams_work_reads_as_sentences_without_sign_ins(viewer: Browser) -> None:
    append(MAYA, "lookup.archive", subject_label="Northwind LLC")
    append(MAYA, "accounts.sign_in")
    page = home(viewer)
    assert "Maya Chen archived Northwind LLC" in page
    assert "signed in" not in page


def test_recent_borrowers_lead_to_their_pages(viewer: Browser, desk: Sandbox) -> None:
    borrower = given.borrower(desk)
    assert f'<a href="{borrower.get_absolute_url()}">{borrower}</a>' in home(viewer)


def test_it_asks_the_service_nothing(viewer: Browser, desk: Sandbox) -> None:
    flagged(desk, Kind.LINE, "310.00", "Acme Farms LLC")
    home(viewer)
    assert desk.calls == []
