"""Resolving unknown outcomes: which writes they block, and who may resolve them or send again."""

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.roles import Role
from portal.audit.models import Actor, Entry, WriteIntent
from portal.messaging.sync import Sync
from portal.records.models import Account, Application, Borrower, KeyPerson, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.portal.borrowers.editor import Editor
from tests.portal.borrowers.wizard import ELENA, PRIYA, Wizard
from tests.portal.pages import visible_text

pytestmark = pytest.mark.postgres

FOUND = {"found": "yes", "reason": "Told by Dana at the lender, 14:20"}
NOT_FOUND = {"found": "no", "reason": "Not in the lender’s list"}
SUBMIT, UPDATE = "applications.submit", "borrowers.update"


def html(answer: Any) -> str:
    text: str = answer.content.decode()
    return text


def submit_application(browser: Browser, borrower: Borrower, amount: str = "25000") -> Any:
    typed = {"submit_id": str(uuid4()), "amount": amount, "confirmed": "yes"}
    return browser.post(f"/borrowers/{borrower.uuid}/applications/new/", typed)


def resolve_url(intent: WriteIntent) -> str:
    return f"{intent.get_absolute_url()}resolve/"


def compared(page: str) -> dict[str, list[str]]:
    """The rows of the comparison on a write's page: the field, then what was sent and what was said since."""
    table = page.partition('aria-labelledby="sent"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr>\s*<th scope=\"row\">([^<]*)</th>(.*?)</tr>", table, re.DOTALL)
    return {
        name: [visible_text(cell) for cell in re.findall(r"<td>(.*?)</td>", cells, re.DOTALL)]
        for name, cells in rows
    }


def resolution_entry() -> Entry:
    return Entry.objects.get(action="audit.resolve")


class TestApplication:
    @pytest.fixture
    def borrower(self, portal_service: Sandbox) -> Borrower:
        return given.borrower(portal_service)

    @pytest.fixture
    def lost(self, servicer: Browser, borrower: Borrower, portal_service: Sandbox) -> WriteIntent:
        portal_service.fail_next(SUBMIT, cut_after_commit=True)
        assert submit_application(servicer, borrower).status_code == 303
        return WriteIntent.objects.get()

    @pytest.mark.slow
    def test_a_found_application_goes_on_file_and_lifts_the_block(
        self, supervisor: Browser, servicer: Browser, borrower: Borrower, lost: WriteIntent
    ) -> None:
        assert submit_application(servicer, borrower).status_code == 409
        uuid = str(uuid4())
        answer = supervisor.post(resolve_url(lost), FOUND | {"uuid": f" uuid: {uuid} "}, follow=True)
        assert "Resolved as confirmed by Supervisor (supervisor)" in html(answer)
        known = Application.objects.get(uuid=uuid)
        assert (known.borrower_uuid, known.created_by) == (borrower.uuid, "Supervisor (supervisor)")
        entry = resolution_entry()
        assert (entry.reason, entry.result, entry.subject_uuid) == (FOUND["reason"], "confirmed", uuid)
        outcomes = Entry.objects.filter(intent_id=lost.pk, phase="outcome")
        assert list(outcomes.values_list("result", flat=True)) == ["unknown"]
        assert "<h2>$25,000.00 requested, as sent</h2>" in html(servicer.get(known.get_absolute_url()))
        assert submit_application(servicer, borrower).status_code == 303

    @pytest.mark.slow
    def test_an_application_not_found_lifts_the_block(
        self, supervisor: Browser, servicer: Browser, borrower: Borrower, lost: WriteIntent
    ) -> None:
        page = html(supervisor.post(resolve_url(lost), NOT_FOUND, follow=True))
        assert "Resolved as not carried out by Supervisor" in page
        assert "Not in the lender’s list" in page
        assert not Application.objects.exists()
        assert submit_application(servicer, borrower).status_code == 303

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("typed", "refusal"),
        [
            (FOUND, "Enter the ID"),
            (FOUND | {"uuid": "a/b"}, "Enter the ID as the service writes it"),
            (FOUND | {"uuid": "app-77"}, "Enter the ID as the service writes it"),
            (FOUND | {"uuid": "25000.00"}, "Enter the ID as the service writes it"),
            (FOUND | {"uuid": str(uuid4())[:-1]}, "Enter the ID as the service writes it"),
            (FOUND | {"uuid": str(uuid4()), "reason": ""}, "Enter the reason"),
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

    @pytest.mark.slow
    def test_an_id_created_by_another_write_is_rejected(
        self,
        supervisor: Browser,
        servicer: Browser,
        borrower: Borrower,
        portal_service: Sandbox,
        lost: WriteIntent,
    ) -> None:
        answer = submit_application(servicer, borrower, "1000")
        uuid = answer["Location"].split("/")[-2]
        page = html(supervisor.post(resolve_url(lost), FOUND | {"uuid": uuid}))
        assert "Another request is about that record" in page

    @pytest.mark.slow
    def test_an_id_on_file_is_rejected_whatever_it_names(
        self, supervisor: Browser, borrower: Borrower, portal_service: Sandbox, lost: WriteIntent
    ) -> None:
        other = given.borrower(portal_service)
        loan = given.loan(portal_service, borrower)
        person = KeyPerson.objects.get(borrower_uuid=borrower.uuid)
        for record in (borrower, other, loan, person, given.account(Kind.APPLICATION, other, str(uuid4()))):
            answer = supervisor.post(resolve_url(lost), FOUND | {"uuid": record.uuid.upper()})
            assert answer.status_code == 422
            assert "This ID is on file as" in html(answer)
        unseen = given.account(Kind.LOAN, Account(uuid=str(uuid4())), str(uuid4()))
        page = html(supervisor.post(resolve_url(lost), FOUND | {"uuid": unseen.borrower_uuid}))
        assert "belong to a borrower with this ID" in page
        lost.refresh_from_db()
        assert (lost.state, lost.subject_uuid) == ("unknown", "")

    @pytest.mark.slow
    def test_a_write_is_resolved_only_once(self, supervisor: Browser, lost: WriteIntent) -> None:
        supervisor.post(resolve_url(lost), NOT_FOUND)
        page = html(supervisor.post(resolve_url(lost), FOUND | {"uuid": "a-9"}, follow=True))
        assert "Nothing to resolve: not carried out." in page
        assert resolution_entry().result == "released"

    def test_a_correction_needs_the_resolution_that_it_corrects(
        self, supervisor: Browser, lost: WriteIntent
    ) -> None:
        supervisor.post(resolve_url(lost), NOT_FOUND)
        first = resolution_entry()
        typed = FOUND | {"uuid": str(uuid4()), "corrects": str(first.pk)}
        assert supervisor.post(resolve_url(lost), typed).status_code == 303
        supervisor.post(resolve_url(lost), NOT_FOUND | {"corrects": str(first.pk)})
        lost.refresh_from_db()
        assert lost.state == "confirmed"
        assert Entry.objects.filter(action="audit.correct").count() == 1

    def test_the_form_shows_the_evidence(self, supervisor: Browser, lost: WriteIntent) -> None:
        page = html(supervisor.get(resolve_url(lost)))
        assert f"we sent POST {lost.path} and received no response." in page
        assert f"{lost.created_at:%H:%M:%S} UTC" in page
        assert "25000.00" in page
        assert 'aria-label="Copy the question"' in page

    @pytest.mark.slow
    @pytest.mark.parametrize("role", [Role.VIEWER, Role.SERVICER, Role.AUDITOR, Role.ADMIN])
    def test_other_roles_cannot_resolve(self, lost: WriteIntent, role: Role) -> None:
        browser = browser_of(role)
        page = html(browser.get(lost.get_absolute_url()))
        assert (
            '<div class="sd-form-foot"><span class="sd-meta">Requires the supervisor role</span></div>'
            in page
        )
        assert browser.post(resolve_url(lost), NOT_FOUND).status_code == 403
        assert WriteIntent.objects.get().state == "unknown"

    @pytest.mark.slow
    def test_the_home_page_links_to_the_write(self, supervisor: Browser, lost: WriteIntent) -> None:
        page = html(supervisor.get("/"))
        assert lost.get_absolute_url() in page


class TestBorrower:
    @pytest.mark.slow
    def test_a_found_borrower_gets_a_page(
        self, servicer: Browser, supervisor: Browser, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("borrowers.create_commercial", cut_after_commit=True)
        wizard = Wizard(servicer).fill()
        assert wizard.send().status_code == 303
        uuid = portal_service.world.users()[0]["uuid"]
        supervisor.post(resolve_url(WriteIntent.objects.get()), FOUND | {"uuid": uuid})
        known = Borrower.objects.get()
        assert (known.uuid, known.borrower_uuid, str(known)) == (uuid, uuid, "O'Neil & Daughters, LLC")
        assert servicer.get(f"/borrowers/{uuid}/").status_code == 200
        assert len(portal_service.world.users()) == 1

    @pytest.fixture
    def lost(self, servicer: Browser, portal_service: Sandbox) -> WriteIntent:
        """A creation with four people whose answer was lost."""
        portal_service.fail_next("borrowers.create_commercial", cut_after_commit=True)
        sam = PRIYA | {"first_name": "Sam", "email": "sam@oneil.example", "phone": "512-555-0111"}
        ada = PRIYA | {"first_name": "Ada", "email": "ada@oneil.example", "phone": "512-555-0112"}
        assert Wizard(servicer).fill(ELENA, PRIYA, sam, ada).send().status_code == 303
        return WriteIntent.objects.get()

    @pytest.mark.slow
    def test_what_was_sent_is_shown_as_sent_until_an_answer_says_more(
        self, servicer: Browser, supervisor: Browser, portal_service: Sandbox, lost: WriteIntent
    ) -> None:
        uuid = portal_service.world.users()[0]["uuid"]
        supervisor.post(resolve_url(lost), FOUND | {"uuid": uuid})
        page = html(servicer.get(f"/borrowers/{uuid}/?tab=people"))
        assert re.search(r'id="tab-people"[^>]*>People <span\s+class="sd-count">4</span>', page)
        assert re.findall(r'<h2 id="person-\d">([^<]*)</h2>', page) == [
            "Elena O&#x27;Neil",
            "Priya Raman",
            "Sam Raman",
            "Ada Raman",
        ]
        assert len(re.findall(r"<h2 id=\"person-\d\">[^<]*</h2>.*?As sent", page, re.DOTALL)) == 4
        overview = html(servicer.get(f"/borrowers/{uuid}/"))
        assert "1180 Airport Blvd" in overview
        assert "The service hasn’t returned this profile yet." in overview
        assert "(512) 555-0143" in overview
        paper = html(servicer.get(f"/borrowers/{uuid}/summary/?data=copies"))
        assert "Ada Raman" in paper
        assert "Profile and key people as sent" in paper
        given.save_answer(portal_service.world.user(uuid))
        page = html(servicer.get(f"/borrowers/{uuid}/?tab=people"))
        assert "As sent" not in page
        assert len(re.findall(r'<h2 id="person-\d">', page)) == 4

    @pytest.mark.slow
    def test_messages_and_answers_since_are_compared_field_by_field(
        self, supervisor: Browser, portal_service: Sandbox, lost: WriteIntent
    ) -> None:
        before = html(supervisor.get(lost.get_absolute_url()))
        assert "No message or answer about it since" in before
        (user,) = portal_service.world.users()
        names = ("uuid", "first_name", "email", "phone")
        payload = {name: user[name] for name in names} | {"email": "info@oneil.example"}
        portal_service.world.message("user.created", payload)
        other = {"uuid": str(uuid4()), "first_name": "Else LLC", "email": "x@else.example"}
        portal_service.world.message("user.created", other)
        Sync(Actor.system("test"), report=lambda run: None, sleep=lambda seconds: None).read_missing()
        rows = compared(html(supervisor.get(lost.get_absolute_url())))
        assert rows["First name"] == ["O'Neil & Daughters, LLC", "O'Neil & Daughters, LLC Same"]
        assert rows["Email"] == ["office@oneil.example", "info@oneil.example Different"]
        assert rows["Phone"] == ["5125550143", "5125550143 Same"]
        assert rows["Address: city"] == ["Austin", "—"]
        assert not any("1029384" in cell for cells in rows.values() for cell in cells)

    @pytest.mark.slow
    def test_an_answer_shares_the_name_the_email_or_the_phone(
        self, supervisor: Browser, portal_service: Sandbox, lost: WriteIntent
    ) -> None:
        address = portal_service.world.users()[0]["address"]
        given.borrower(portal_service, first_name="Else LLC", email="x@else.example", address=address)
        assert "No message or answer about it since" in html(supervisor.get(lost.get_absolute_url()))
        same = {"first_name": "O'Neil Holdings", "email": "new@oneil.example", "phone": "+15125550143"}
        given.borrower(portal_service, **same)
        rows = compared(html(supervisor.get(lost.get_absolute_url())))
        assert rows["Phone"] == ["5125550143", "+15125550143 Same"]

    @pytest.mark.slow
    def test_a_wrong_id_is_corrected_and_both_stay_in_the_trail(
        self, servicer: Browser, supervisor: Browser, portal_service: Sandbox, lost: WriteIntent
    ) -> None:
        wrong, right = str(uuid4()), portal_service.world.users()[0]["uuid"]
        supervisor.post(resolve_url(lost), FOUND | {"uuid": wrong})
        page = html(supervisor.get(resolve_url(lost)))
        corrects = re.findall(r'name="corrects" value="(\d+)"', page)[0]
        same = supervisor.post(resolve_url(lost), FOUND | {"uuid": wrong, "corrects": corrects})
        assert "This is what is recorded already." in html(same)
        typed = {"found": "yes", "uuid": right, "reason": "Dana misread the ID", "corrects": corrects}
        assert "Correct" not in html(servicer.get(lost.get_absolute_url())).partition("<main")[2]
        assert servicer.post(resolve_url(lost), typed).status_code == 403
        shown = html(supervisor.post(resolve_url(lost), typed, follow=True))
        assert "Corrected to confirmed by Supervisor (supervisor)" in shown
        assert "Resolved as confirmed by Supervisor (supervisor)" in shown
        lost.refresh_from_db()
        assert (lost.state, lost.subject_uuid, lost.borrower_uuid) == ("confirmed", right, right)
        archived = dict(Borrower.objects.values_list("uuid", "archived_at"))
        assert archived[wrong] is not None
        assert archived[right] is None
        about = Entry.objects.filter(intent_id=lost.pk).order_by("id")
        assert [(one.phase, one.action.rpartition(".")[2], one.result) for one in about] == [
            ("attempt", "create_commercial", ""),
            ("outcome", "create_commercial", "unknown"),
            ("event", "resolve", "confirmed"),
            ("event", "correct", "confirmed"),
        ]
        correction = about.last()
        assert correction is not None
        assert (correction.reason, correction.changes["id"]) == ("Dana misread the ID", [wrong, right])
        assert (
            len([call for call in portal_service.calls if call.operation.endswith("create_commercial")]) == 1
        )

    @pytest.mark.slow
    def test_a_creation_corrected_to_not_carried_out_can_be_sent_again(
        self, supervisor: Browser, servicer: Browser, portal_service: Sandbox
    ) -> None:
        portal_service.fail_next("borrowers.create_commercial", cut_before=True)
        wizard = Wizard(servicer).fill()
        wizard.send()
        lost = WriteIntent.objects.get()
        supervisor.post(resolve_url(lost), FOUND | {"uuid": str(uuid4())})
        supervisor.post(resolve_url(lost), NOT_FOUND | {"corrects": str(resolution_entry().pk)})
        lost.refresh_from_db()
        assert (lost.state, lost.subject_uuid, lost.borrower_uuid) == ("released", "", "")
        assert not Borrower.objects.filter(archived_at=None).exists()
        again = Wizard(servicer).fill()
        assert again.send().status_code == 303

    @pytest.mark.slow
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

    @pytest.mark.slow
    def test_sending_again_resolves_the_write(self, editor: Editor, lost: WriteIntent) -> None:
        assert editor.send({"again": "on"}, email="new@bakery.example").status_code == 303
        lost.refresh_from_db()
        assert lost.state == "confirmed"
        assert "sent again as r-" in resolution_entry().detail["note"]

    @pytest.mark.slow
    def test_a_colleague_cannot_send_the_same_change(
        self, editor: Editor, lost: WriteIntent, portal_service: Sandbox, supervisor: Browser
    ) -> None:
        sent = len(portal_service.calls)
        colleague = Editor(supervisor, editor.record)
        answer = colleague.send({"again": "on"}, email="new@bakery.example")
        assert (answer.status_code, len(portal_service.calls)) == (409, sent)
        assert lost.get_absolute_url() in html(answer)
        assert colleague.send({"again": "on"}, email="other@bakery.example").status_code == 303

    @pytest.mark.slow
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

    @pytest.mark.parametrize("page", ["/", "/admin/audit/entry/", "write"])
    def test_viewing_a_page_makes_the_write_unknown(
        self, supervisor: Browser, stale: WriteIntent, page: str
    ) -> None:
        supervisor.get(stale.get_absolute_url() if page == "write" else page)
        stale.refresh_from_db()
        assert stale.state == "unknown"
        assert Entry.objects.get(phase="outcome").result == "unknown"


def test_a_missing_write_returns_404(supervisor: Browser) -> None:
    assert supervisor.post(f"/audit/writes/{uuid4()}/resolve/", NOT_FOUND).status_code == 404
