"""Writes whose answer was lost: what they block, who settles them, and what an equal one may do meanwhile."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.roles import Role
from portal.audit.models import Entry, WriteIntent
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.portal.borrowers.editor import Editor
from tests.portal.borrowers.wizard import Wizard

FOUND = {"found": "yes", "reason": "Told by Dana at the lender, 14:20"}
NOT_FOUND = {"found": "no", "reason": "Not in the lender’s list"}
SUBMIT, UPDATE = "applications.submit", "borrowers.update"


def html(answer: Any) -> str:
    text: str = answer.content.decode()
    return text


def apply(browser: Browser, borrower: Record, amount: str = "25000") -> Any:
    typed = {"submit_id": str(uuid4()), "amount": amount, "confirmed": "yes"}
    return browser.post(f"/borrowers/{borrower.uuid}/applications/new/", typed)


def address(intent: WriteIntent) -> str:
    return f"{intent.get_absolute_url()}resolve/"


def settled() -> Entry:
    return Entry.objects.get(action="audit.resolve")


class TestApplication:
    @pytest.fixture
    def borrower(self, portal_service: Sandbox) -> Record:
        return given.borrower(portal_service)

    @pytest.fixture
    def lost(self, servicer: Browser, borrower: Record, portal_service: Sandbox) -> WriteIntent:
        portal_service.fail_next(SUBMIT, cut_after_commit=True)
        assert apply(servicer, borrower).status_code == 504
        return WriteIntent.objects.get()

    def test_one_that_was_found_becomes_known_and_may_be_followed_by_an_equal_one(
        self, supervisor: Browser, servicer: Browser, borrower: Record, lost: WriteIntent
    ) -> None:
        assert apply(servicer, borrower).status_code == 409
        uuid = str(uuid4())
        answer = supervisor.post(address(lost), FOUND | {"uuid": f" uuid: {uuid} "}, follow=True)
        assert "Resolved as confirmed by Supervisor (supervisor)" in html(answer)
        known = Record.objects.get(kind=Kind.APPLICATION, uuid=uuid)
        assert (known.borrower_uuid, known.created_by) == (borrower.uuid, "Supervisor (supervisor)")
        entry = settled()
        assert (entry.reason, entry.result, entry.subject_uuid) == (FOUND["reason"], "confirmed", uuid)
        outcomes = Entry.objects.filter(intent_id=lost.pk, phase="outcome")
        assert list(outcomes.values_list("result", flat=True)) == ["unknown"]
        assert apply(servicer, borrower).status_code == 303

    def test_one_that_was_not_created_releases_the_block(
        self, supervisor: Browser, servicer: Browser, borrower: Record, lost: WriteIntent
    ) -> None:
        page = html(supervisor.post(address(lost), NOT_FOUND, follow=True))
        assert "Resolved as not carried out by Supervisor" in page
        assert "Not in the lender’s list" in page
        assert not Record.objects.filter(kind=Kind.APPLICATION).exists()
        assert apply(servicer, borrower).status_code == 303

    @pytest.mark.parametrize(
        ("typed", "refusal"),
        [
            (FOUND, "Enter the ID"),
            (FOUND | {"uuid": "a/b"}, "Use up to 64 letters"),
            (FOUND | {"uuid": "u-1", "reason": ""}, "This field is required"),
            ({"reason": "So"}, "Choose one."),
            ({"found": "maybe", "reason": "So"}, "Choose an option from the list."),
        ],
    )
    def test_half_an_answer_settles_nothing(
        self, supervisor: Browser, lost: WriteIntent, typed: dict[str, str], refusal: str
    ) -> None:
        answer = supervisor.post(address(lost), typed)
        assert answer.status_code == 422
        assert refusal in html(answer)
        lost.refresh_from_db()
        assert (lost.state, Entry.objects.filter(action="audit.resolve").count()) == ("unknown", 0)

    def test_what_another_write_created_is_not_this_one(
        self,
        supervisor: Browser,
        servicer: Browser,
        borrower: Record,
        portal_service: Sandbox,
        lost: WriteIntent,
    ) -> None:
        made = apply(servicer, borrower, "1000")
        uuid = made["Location"].split("/")[-2]
        page = html(supervisor.post(address(lost), FOUND | {"uuid": uuid}))
        assert "Another request created that record" in page

    def test_what_belongs_to_another_borrower_is_not_this_one(
        self, supervisor: Browser, portal_service: Sandbox, lost: WriteIntent
    ) -> None:
        other = given.account(Kind.APPLICATION, given.borrower(portal_service), "a-9")
        assert "under another borrower" in html(supervisor.post(address(lost), FOUND | {"uuid": other.uuid}))

    def test_it_is_settled_once(self, supervisor: Browser, lost: WriteIntent) -> None:
        supervisor.post(address(lost), NOT_FOUND)
        page = html(supervisor.post(address(lost), FOUND | {"uuid": "a-9"}, follow=True))
        assert "Nothing to resolve: not carried out." in page
        assert settled().result == "released"

    def test_the_evidence_stands_beside_it(self, supervisor: Browser, lost: WriteIntent) -> None:
        page = html(supervisor.get(address(lost)))
        assert f"we sent POST {lost.path} and received no response." in page
        assert f"{lost.created_at:%H:%M:%S} UTC" in page
        assert "25000.00" in page
        assert 'aria-label="Copy the question"' in page

    @pytest.mark.parametrize("role", [Role.VIEWER, Role.SERVICER, Role.AUDITOR, Role.ADMIN])
    def test_others_see_why_they_may_not(self, lost: WriteIntent, role: Role) -> None:
        browser = browser_of(role)
        page = html(browser.get(lost.get_absolute_url()))
        assert 'disabled title="Requires the supervisor role"' in page
        assert browser.post(address(lost), NOT_FOUND).status_code == 403
        assert WriteIntent.objects.get().state == "unknown"

    def test_home_leads_to_it_first(self, supervisor: Browser, lost: WriteIntent) -> None:
        page = html(supervisor.get("/"))
        assert lost.get_absolute_url() in page


class TestBorrower:
    def test_one_that_was_found_has_its_page_and_ends_the_draft(
        self, servicer: Browser, supervisor: Browser, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("borrowers.create_commercial", cut_after_commit=True)
        wizard = Wizard(servicer).fill()
        assert wizard.send().status_code == 504
        uuid = portal_service.world.users()[0]["uuid"]
        supervisor.post(address(WriteIntent.objects.get()), FOUND | {"uuid": uuid})
        known = Record.objects.get(kind=Kind.BORROWER)
        assert (known.uuid, known.borrower_uuid, str(known)) == (uuid, uuid, "O'Neil & Daughters, LLC")
        assert servicer.get(f"/borrowers/{uuid}/").status_code == 200
        assert len(portal_service.world.users()) == 1

    def test_one_that_was_not_created_may_be_sent_from_its_draft(
        self, servicer: Browser, supervisor: Browser, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("borrowers.create_commercial", cut_before=True)
        wizard = Wizard(servicer).fill()
        wizard.send()
        supervisor.post(address(WriteIntent.objects.get()), NOT_FOUND)
        assert wizard.send().status_code == 303
        assert len(portal_service.world.users()) == 1


class TestUpdate:
    @pytest.fixture
    def editor(self, servicer: Browser, portal_service: Sandbox) -> Editor:
        return Editor(servicer, given.borrower(portal_service))

    @pytest.fixture
    def lost(self, editor: Editor, portal_service: Sandbox) -> WriteIntent:
        portal_service.fail_next(UPDATE, cut_after_commit=True)
        editor.send(email="new@bakery.example")
        return WriteIntent.objects.get()

    def test_its_maker_sends_it_again_and_that_settles_it(self, editor: Editor, lost: WriteIntent) -> None:
        assert editor.send({"again": "on"}, email="new@bakery.example").status_code == 303
        lost.refresh_from_db()
        assert lost.state == "confirmed"
        assert "sent again as r-" in settled().detail["note"]

    def test_nobody_else_sends_the_same(
        self, editor: Editor, lost: WriteIntent, portal_service: Sandbox, supervisor: Browser
    ) -> None:
        sent = len(portal_service.calls)
        colleague = Editor(supervisor, editor.record)
        answer = colleague.send({"again": "on"}, email="new@bakery.example")
        assert (answer.status_code, len(portal_service.calls)) == (409, sent)
        assert lost.get_absolute_url() in html(answer)
        assert colleague.send({"again": "on"}, email="other@bakery.example").status_code == 303

    def test_a_supervisor_settles_it_without_an_identifier(
        self, editor: Editor, lost: WriteIntent, supervisor: Browser
    ) -> None:
        assert 'name="uuid"' not in html(supervisor.get(address(lost)))
        supervisor.post(address(lost), NOT_FOUND)
        lost.refresh_from_db()
        assert lost.state == "released"


class TestStale:
    """A crash left a write *sending*: whoever looks next finds it unknown."""

    @pytest.fixture
    def stale(self, portal_service: Sandbox) -> WriteIntent:
        made = WriteIntent.objects.create(
            submit_id="one",
            operation=SUBMIT,
            label="Application",
            actor_name="Maya",
            request_id="r-1",
            method="POST",
            path="/v1/x",
        )
        WriteIntent.objects.update(created_at=timezone.now() - timedelta(minutes=5))
        return made

    @pytest.mark.parametrize("page", ["/", "/audit/", "write"])
    def test_looking_makes_it_unknown(self, supervisor: Browser, stale: WriteIntent, page: str) -> None:
        supervisor.get(stale.get_absolute_url() if page == "write" else page)
        stale.refresh_from_db()
        assert stale.state == "unknown"
        assert Entry.objects.get(phase="outcome").result == "unknown"


def test_one_that_never_was_is_not_found(supervisor: Browser) -> None:
    assert supervisor.post(f"/audit/writes/{uuid4()}/resolve/", NOT_FOUND).status_code == 404
