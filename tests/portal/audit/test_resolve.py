"""Resolving unknown outcomes: which writes they block, and who may resolve them or send again."""

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


def submit_application(browser: Browser, borrower: Record, amount: str = "25000") -> Any:
    typed = {"submit_id": str(uuid4()), "amount": amount, "confirmed": "yes"}
    return browser.post(f"/borrowers/{borrower.uuid}/applications/new/", typed)


def resolve_url(intent: WriteIntent) -> str:
    return f"{intent.get_absolute_url()}resolve/"


def resolution_entry() -> Entry:
    return Entry.objects.get(action="audit.resolve")


class TestApplication:
    @pytest.fixture
    def borrower(self, portal_service: Sandbox) -> Record:
        return given.borrower(portal_service)

    @pytest.fixture
    def lost(self, servicer: Browser, borrower: Record, portal_service: Sandbox) -> WriteIntent:
        portal_service.fail_next(SUBMIT, cut_after_commit=True)
        assert submit_application(servicer, borrower).status_code == 504
        return WriteIntent.objects.get()

    def test_a_found_application_goes_on_file_and_lifts_the_block(
        self, supervisor: Browser, servicer: Browser, borrower: Record, lost: WriteIntent
    ) -> None:
        assert submit_application(servicer, borrower).status_code == 409
        uuid = str(uuid4())
        answer = supervisor.post(resolve_url(lost), FOUND | {"uuid": f" uuid: {uuid} "}, follow=True)
        assert "Resolved as confirmed by Supervisor (supervisor)" in html(answer)
        known = Record.objects.get(kind=Kind.APPLICATION, uuid=uuid)
        assert (known.borrower_uuid, known.created_by) == (borrower.uuid, "Supervisor (supervisor)")
        entry = resolution_entry()
        assert (entry.reason, entry.result, entry.subject_uuid) == (FOUND["reason"], "confirmed", uuid)
        outcomes = Entry.objects.filter(intent_id=lost.pk, phase="outcome")
        assert list(outcomes.values_list("result", flat=True)) == ["unknown"]
        assert submit_application(servicer, borrower).status_code == 303

    def test_an_application_not_found_lifts_the_block(
        self, supervisor: Browser, servicer: Browser, borrower: Record, lost: WriteIntent
    ) -> None:
        page = html(supervisor.post(resolve_url(lost), NOT_FOUND, follow=True))
        assert "Resolved as not carried out by Supervisor" in page
        assert "Not in the lender’s list" in page
        assert not Record.objects.filter(kind=Kind.APPLICATION).exists()
        assert submit_application(servicer, borrower).status_code == 303

    @pytest.mark.parametrize(
        ("typed", "refusal"),
        [
            (FOUND, "Enter the ID"),
            (FOUND | {"uuid": "a/b"}, "Use up to 64 letters"),
            (FOUND | {"uuid": "u-1", "reason": ""}, "Enter the reason"),
            ({"reason": "So"}, "Choose what the service said."),
            ({"found": "maybe", "reason": "So"}, "Choose an option from the list."),
        ],
    )
    def test_invalid_input_resolves_nothing(
        self, supervisor: Browser, lost: WriteIntent, typed: dict[str, str], refusal: str
    ) -> None:
        answer = supervisor.post(resolve_url(lost), typed)
        assert answer.status_code == 422
        assert refusal in html(answer)
        lost.refresh_from_db()
        assert (lost.state, Entry.objects.filter(action="audit.resolve").count()) == ("unknown", 0)

    def test_an_id_created_by_another_write_is_rejected(
        self,
        supervisor: Browser,
        servicer: Browser,
        borrower: Record,
        portal_service: Sandbox,
        lost: WriteIntent,
    ) -> None:
        answer = submit_application(servicer, borrower, "1000")
        uuid = answer["Location"].split("/")[-2]
        page = html(supervisor.post(resolve_url(lost), FOUND | {"uuid": uuid}))
        assert "Another request created that record" in page

    def test_an_id_of_another_borrower_is_rejected(
        self, supervisor: Browser, portal_service: Sandbox, lost: WriteIntent
    ) -> None:
        other = given.account(Kind.APPLICATION, given.borrower(portal_service), "a-9")
        assert "under another borrower" in html(
            supervisor.post(resolve_url(lost), FOUND | {"uuid": other.uuid})
        )

    def test_a_write_is_resolved_only_once(self, supervisor: Browser, lost: WriteIntent) -> None:
        supervisor.post(resolve_url(lost), NOT_FOUND)
        page = html(supervisor.post(resolve_url(lost), FOUND | {"uuid": "a-9"}, follow=True))
        assert "Nothing to resolve: not carried out." in page
        assert resolution_entry().result == "released"

    def test_the_form_shows_the_evidence(self, supervisor: Browser, lost: WriteIntent) -> None:
        page = html(supervisor.get(resolve_url(lost)))
        assert f"we sent POST {lost.path} and received no response." in page
        assert f"{lost.created_at:%H:%M:%S} UTC" in page
        assert "25000.00" in page
        assert 'aria-label="Copy the question"' in page

    @pytest.mark.parametrize("role", [Role.VIEWER, Role.SERVICER, Role.AUDITOR, Role.ADMIN])
    def test_other_roles_cannot_resolve(self, lost: WriteIntent, role: Role) -> None:
        browser = browser_of(role)
        page = html(browser.get(lost.get_absolute_url()))
        assert 'disabled title="Requires the supervisor role"' in page
        assert browser.post(resolve_url(lost), NOT_FOUND).status_code == 403
        assert WriteIntent.objects.get().state == "unknown"

    def test_the_home_page_links_to_the_write(self, supervisor: Browser, lost: WriteIntent) -> None:
        page = html(supervisor.get("/"))
        assert lost.get_absolute_url() in page


class TestBorrower:
    def test_a_found_borrower_gets_a_page(
        self, servicer: Browser, supervisor: Browser, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("borrowers.create_commercial", cut_after_commit=True)
        wizard = Wizard(servicer).fill()
        assert wizard.send().status_code == 504
        uuid = portal_service.world.users()[0]["uuid"]
        supervisor.post(resolve_url(WriteIntent.objects.get()), FOUND | {"uuid": uuid})
        known = Record.objects.get(kind=Kind.BORROWER)
        assert (known.uuid, known.borrower_uuid, str(known)) == (uuid, uuid, "O'Neil & Daughters, LLC")
        assert servicer.get(f"/borrowers/{uuid}/").status_code == 200
        assert len(portal_service.world.users()) == 1

    def test_a_borrower_not_found_can_be_sent_again(
        self, servicer: Browser, supervisor: Browser, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("borrowers.create_commercial", cut_before=True)
        wizard = Wizard(servicer).fill()
        wizard.send()
        supervisor.post(resolve_url(WriteIntent.objects.get()), NOT_FOUND)
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

    def test_sending_again_resolves_the_write(self, editor: Editor, lost: WriteIntent) -> None:
        assert editor.send({"again": "on"}, email="new@bakery.example").status_code == 303
        lost.refresh_from_db()
        assert lost.state == "confirmed"
        assert "sent again as r-" in resolution_entry().detail["note"]

    def test_a_colleague_cannot_send_the_same_change(
        self, editor: Editor, lost: WriteIntent, portal_service: Sandbox, supervisor: Browser
    ) -> None:
        sent = len(portal_service.calls)
        colleague = Editor(supervisor, editor.record)
        answer = colleague.send({"again": "on"}, email="new@bakery.example")
        assert (answer.status_code, len(portal_service.calls)) == (409, sent)
        assert lost.get_absolute_url() in html(answer)
        assert colleague.send({"again": "on"}, email="other@bakery.example").status_code == 303

    def test_an_update_is_resolved_without_an_id(
        self, editor: Editor, lost: WriteIntent, supervisor: Browser
    ) -> None:
        assert 'name="uuid"' not in html(supervisor.get(resolve_url(lost)))
        supervisor.post(resolve_url(lost), NOT_FOUND)
        lost.refresh_from_db()
        assert lost.state == "released"


class TestStale:
    """A write that a crash left in the state *sending* becomes unknown with the next page view."""

    @pytest.fixture
    def stale(self, portal_service: Sandbox) -> WriteIntent:
        intent = WriteIntent.objects.create(
            submit_id="one",
            operation=SUBMIT,
            label="Application",
            actor_name="Maya",
            request_id="r-1",
            method="POST",
            path="/v1/x",
        )
        WriteIntent.objects.update(created_at=timezone.now() - timedelta(minutes=5))
        return intent

    @pytest.mark.parametrize("page", ["/", "/audit/", "write"])
    def test_viewing_a_page_makes_the_write_unknown(
        self, supervisor: Browser, stale: WriteIntent, page: str
    ) -> None:
        supervisor.get(stale.get_absolute_url() if page == "write" else page)
        stale.refresh_from_db()
        assert stale.state == "unknown"
        assert Entry.objects.get(phase="outcome").result == "unknown"


def test_a_missing_write_returns_404(supervisor: Browser) -> None:
    assert supervisor.post(f"/audit/writes/{uuid4()}/resolve/", NOT_FOUND).status_code == 404
