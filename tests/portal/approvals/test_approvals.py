"""Changes of name, SSN or date of birth, which need approval by a supervisor other than the requester."""

import logging
import re
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.approvals.models import Approval
from portal.audit.models import Entry, WriteIntent
from portal.records.models import Account, Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.databases import forget_connections, stored_bytes
from tests.drills.answers import RemoteBrowser
from tests.drills.killing import Portal
from tests.portal.borrowers.editor import BORN, SSN, TWICE, UPDATE, WITH_SSN, Editor, fields, html, sent

pytestmark = pytest.mark.postgres

NAME = {"first_name": "Bay Bakery LLC"}
REASON = {"reason": "Articles of amendment"}
AGAIN = {"again": "on"}


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service)


@pytest.fixture
def editor(servicer: Browser, borrower: Borrower) -> Editor:
    return Editor(servicer, borrower)


@pytest.fixture
def person_editor(servicer: Browser, portal_service: Sandbox) -> Editor:
    return Editor(servicer, given.individual(portal_service))


def request_approval(editor: Editor, **typed: str) -> Approval:
    answer = editor.post(editor.review_fields(**typed or NAME) | REASON, "ask")
    assert answer.status_code == 303
    return Approval.objects.get(state="waiting")


def decide(browser: Browser, approval: Approval, decision: str = "approve", comment: str = "") -> Any:
    return browser.post(f"{approval.get_absolute_url()}decide/", {"decision": decision, "comment": comment})


def send(editor: Editor, approval: Approval, typed: dict[str, str] | None = None) -> Any:
    """Open the approved change by its link, and send it."""
    preview = fields(html(editor.browser.get(approval.send_url)))
    return editor.post(preview | (typed or {}), "send")


def steps() -> list[str]:
    entries = Entry.objects.filter(action__startswith="approvals.").exclude(
        action__in=["approvals.detail", "approvals.index"]
    )
    return [entry.action.removeprefix("approvals.") for entry in entries.order_by("id")]


@pytest.mark.slow
def test_a_name_change_is_requested_approved_and_sent(
    editor: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    page = html(editor.check(**NAME))
    assert "Needs approval." in page
    assert 'value="send"' not in page
    approval = request_approval(editor)
    assert not portal_service.calls
    assert "Articles of amendment" in html(supervisor.get(approval.get_absolute_url()))
    assert decide(supervisor, approval, comment="Seen the filing").status_code == 303
    assert not portal_service.calls
    assert "Seen the filing" in html(editor.browser.get(approval.send_url))
    assert send(editor, approval)["Location"] == f"{editor.url}?sent={WriteIntent.objects.get().pk}"
    assert sent(portal_service) == NAME
    assert steps() == ["ask", "approve", "send"]
    approval.refresh_from_db()
    assert (approval.state, approval.sealed) == ("sent", "")
    assert Entry.objects.get(action="approvals.ask").changes == {
        "first_name": ["Harbor Street Bakery LLC", "Bay Bakery LLC"]
    }


def test_other_changes_need_no_approval(editor: Editor, portal_service: Sandbox) -> None:
    editor.send(email="new@bakery.example", line_2="Suite 4")
    assert sent(portal_service).keys() == {"email", "address"}
    assert not Approval.objects.exists()


def test_the_setting_selects_the_fields_that_need_approval(
    editor: Editor, portal_service: Sandbox, settings: LazySettings
) -> None:
    settings.APPROVAL_ACTS = ["email"]
    editor.send(**NAME)
    assert sent(portal_service) == NAME
    assert request_approval(editor, email="new@bakery.example").acts == ["Email"]


@pytest.mark.slow
def test_a_change_cannot_be_sent_without_approval(
    editor: Editor, portal_service: Sandbox, supervisor: Browser
) -> None:
    assert editor.post(editor.review_fields(**NAME) | REASON, "send").status_code == 422
    approval = request_approval(editor)
    assert editor.post(editor.review_fields(**NAME) | REASON, "send").status_code == 422
    decide(supervisor, approval, "refuse", "The filing is of last year")
    assert editor.post(editor.review_fields(**NAME) | REASON, "send").status_code == 422
    assert not portal_service.calls
    assert steps() == ["ask", "refuse"]


@pytest.mark.slow
def test_an_approval_covers_only_the_approved_change(
    editor: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    decide(supervisor, request_approval(editor))
    for other in ({"first_name": "Gulf Bakery LLC"}, NAME | {"email": "new@bakery.example"}):
        assert editor.post(editor.review_fields(**other) | REASON, "send").status_code == 422
    assert not portal_service.calls
    assert editor.send(**NAME).status_code == 303
    assert (
        editor.post(editor.review_fields(first_name="Harbor Street Bakery LLC") | REASON, "send").status_code
        == 422
    )


@pytest.mark.slow
def test_only_the_requester_can_send_an_approved_change(
    editor: Editor, supervisor: Browser, borrower: Borrower, portal_service: Sandbox
) -> None:
    approval = request_approval(editor)
    decide(supervisor, approval)
    other = Editor(supervisor, borrower)
    assert other.post(other.review_fields(**NAME) | REASON, "send").status_code == 422
    assert supervisor.get(approval.send_url).status_code == 404
    assert not portal_service.calls


def test_a_supervisor_cannot_approve_their_own_request(
    supervisor: Browser, borrower: Borrower, portal_service: Sandbox
) -> None:
    approval = request_approval(Editor(supervisor, borrower))
    assert "You can’t approve your own request" in html(supervisor.get(approval.get_absolute_url()))
    assert decide(supervisor, approval).status_code == 403
    second = User.objects.create_user("second", role=Role.SUPERVISOR)
    browser = Browser()
    browser.force_login(second)
    assert decide(browser, approval).status_code == 303


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SERVICER, Role.AUDITOR, Role.ADMIN])
def test_other_roles_cannot_approve(editor: Editor, role: Role) -> None:
    approval = request_approval(editor)
    assert decide(browser_of(role), approval).status_code == 403
    assert steps() == ["ask"]


@pytest.mark.slow
def test_a_rejection_requires_a_comment_without_an_ssn(editor: Editor, supervisor: Browser) -> None:
    approval = request_approval(editor)
    for comment in ("", f"SSN is {SSN}"):
        assert decide(supervisor, approval, "refuse", comment).status_code == 422
    assert decide(supervisor, approval, "refuse", "No document").status_code == 303
    assert "No document" in html(editor.browser.get(approval.get_absolute_url()))


@pytest.mark.parametrize("end", ["refuse", "withdraw", "replace", "expire", "send"])
def test_every_end_of_a_request_erases_what_was_typed(
    person_editor: Editor, supervisor: Browser, end: str
) -> None:
    approval = request_approval(person_editor, **WITH_SSN, **BORN)
    assert approval.sealed
    if end == "refuse":
        decide(supervisor, approval, "refuse", "No document")
    elif end == "withdraw":
        person_editor.browser.post(f"{approval.get_absolute_url()}withdraw/")
    elif end == "replace":
        answer = person_editor.post(person_editor.review_fields(first_name="Ana") | REASON, "ask")
        assert answer.status_code == 303
    elif end == "expire":
        Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        supervisor.get("/approvals/")
    else:
        decide(supervisor, approval)
        assert send(person_editor, approval, TWICE).status_code == 303
    approval.refresh_from_db()
    assert (approval.is_open, approval.sealed) == (False, "")


def test_a_request_is_decided_only_once(editor: Editor, supervisor: Browser) -> None:
    approval = request_approval(editor)
    assert [decide(supervisor, approval).status_code for _ in range(2)] == [303, 409]
    assert decide(supervisor, approval, "refuse", "Too late").status_code == 409
    assert steps() == ["ask", "approve"]


@pytest.mark.slow
def test_an_ssn_is_entered_only_after_approval(
    person_editor: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    page = html(person_editor.check(**WITH_SSN, **BORN))
    assert 'name="ssn"' not in page
    approval = request_approval(person_editor, **WITH_SSN, **BORN)
    assert "Apr 19, 1987" in html(supervisor.get(approval.get_absolute_url()))
    decide(supervisor, approval)
    assert send(person_editor, approval).status_code == 422
    assert send(person_editor, approval, TWICE).status_code == 303
    assert sent(portal_service).keys() == {"ssn", "dob"}
    assert portal_service.world.received_ssn(person_editor.record.uuid) == "219099999"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_pending_date_of_birth_is_never_in_plain_text(
    person_editor: Editor, caplog: pytest.LogCaptureFixture, portal_service: Sandbox
) -> None:
    caplog.set_level(logging.DEBUG)
    request_approval(person_editor, **WITH_SSN, **BORN)
    stored = stored_bytes() + caplog.text.encode()
    assert [birth for birth in (b"1987-04-19", b"Apr 19, 1987", b"dob_year") if birth in stored] == []


@pytest.mark.slow
def test_an_approval_is_void_after_the_borrower_changes(
    editor: Editor, supervisor: Browser, borrower: Borrower, portal_service: Sandbox
) -> None:
    approval = request_approval(editor)
    decide(supervisor, approval)
    preview = fields(html(editor.browser.get(approval.send_url)))
    Editor(supervisor, borrower).send(email="moved@bakery.example")
    calls = len(portal_service.calls)
    assert editor.post(preview, "send").status_code == 409
    assert "changed since" in html(editor.browser.get(approval.get_absolute_url()))
    assert len(portal_service.calls) == calls
    assert editor.post(editor.review_fields(**NAME) | REASON, "send").status_code == 422


@pytest.mark.slow
def test_a_request_for_a_changed_borrower_cannot_be_approved(
    editor: Editor, supervisor: Browser, borrower: Borrower
) -> None:
    approval = request_approval(editor)
    Editor(supervisor, borrower).send(email="moved@bakery.example")
    assert decide(supervisor, approval).status_code == 409
    assert steps() == ["ask"]


@pytest.mark.slow
@pytest.mark.parametrize("is_approved", [False, True])
def test_a_request_expires(
    editor: Editor,
    supervisor: Browser,
    portal_service: Sandbox,
    settings: LazySettings,
    is_approved: bool,
) -> None:
    approval = request_approval(editor)
    if is_approved:
        decide(supervisor, approval)
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert editor.post(editor.review_fields(**NAME) | REASON, "send").status_code == 422
    approval.refresh_from_db()
    assert (approval.state, approval.sealed) == ("expired", "")
    assert steps()[-1] == "expire"
    assert not portal_service.calls


def test_expiry_erases_the_proposal_left_by_a_crash(editor: Editor, supervisor: Browser) -> None:
    approval = request_approval(editor)
    Approval.objects.update(state="sent", expires_at=timezone.now() - timedelta(seconds=1))
    supervisor.get("/approvals/")
    approval.refresh_from_db()
    assert (approval.state, approval.sealed) == ("sent", "")


@pytest.mark.slow
def test_the_requester_can_withdraw_or_replace_a_request(editor: Editor, supervisor: Browser) -> None:
    first = request_approval(editor)
    second = request_approval(editor, first_name="Gulf Bakery LLC")
    assert supervisor.post(f"{second.get_absolute_url()}withdraw/").status_code == 404
    assert editor.browser.post(f"{second.get_absolute_url()}withdraw/")["Location"] == editor.url
    assert set(Approval.objects.values_list("state", flat=True)) == {"withdrawn"}
    assert decide(supervisor, first).status_code == 409
    assert steps() == ["ask", "withdraw", "ask", "withdraw"]


def test_a_request_leaves_that_of_a_colleague_open(
    editor: Editor, supervisor: Browser, borrower: Borrower
) -> None:
    first = request_approval(editor)
    second = Editor(supervisor, borrower)
    answer = second.post(second.review_fields(first_name="Gulf Bakery LLC") | REASON, "ask")
    assert answer.status_code == 303
    assert set(Approval.objects.values_list("maker_name", "state")) == {
        ("Servicer", "waiting"),
        ("Supervisor", "waiting"),
    }
    assert steps() == ["ask", "ask"]
    assert decide(supervisor, first).status_code == 303
    assert send(editor, first).status_code == 303
    first.refresh_from_db()
    assert first.state == "sent"


@pytest.mark.slow
def test_a_change_rejected_by_the_service_can_be_sent_again(
    editor: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    approval = request_approval(editor)
    decide(supervisor, approval)
    portal_service.fail_next(UPDATE, status=422, message="no")
    assert send(editor, approval).status_code == 422
    approval.refresh_from_db()
    assert (approval.state, approval.intent_id) == ("approved", None)
    assert send(editor, approval).status_code == 303
    assert steps() == ["ask", "approve", "send"]


@pytest.mark.slow
def test_an_unknown_outcome_is_sent_again_only_after_confirmation(
    editor: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    approval = request_approval(editor)
    decide(supervisor, approval)
    portal_service.fail_next(UPDATE, cut_after_commit=True)
    lost = send(editor, approval)
    intent = WriteIntent.objects.get()
    assert (lost.status_code, lost["Location"]) == (303, intent.get_absolute_url())
    check_unknown(approval, intent, editor, supervisor)
    # A rejection of the second attempt doesn't reveal the outcome of the first.
    portal_service.fail_next(UPDATE, status=422, message="no")
    assert send(editor, approval, AGAIN).status_code == 422
    check_unknown(approval, intent, editor, supervisor)
    assert send(editor, approval, AGAIN).status_code == 303
    approval.refresh_from_db()
    assert (approval.state, approval.sealed) == ("sent", "")
    assert steps() == ["ask", "approve", "send"]


@pytest.mark.slow
@pytest.mark.parametrize(("found", "state"), [("yes", "sent"), ("no", "approved")])
def test_resolving_the_write_updates_its_approval(
    editor: Editor, supervisor: Browser, portal_service: Sandbox, found: str, state: str
) -> None:
    approval = request_approval(editor)
    decide(supervisor, approval)
    portal_service.fail_next(UPDATE, cut_after_commit=True)
    send(editor, approval)
    typed = {"found": found, "reason": "Asked the service"}
    supervisor.post(f"{WriteIntent.objects.get().get_absolute_url()}resolve/", typed)
    supervisor.get(approval.get_absolute_url())
    approval.refresh_from_db()
    assert approval.state == state


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_approval_stays_tied_to_its_write_after_a_crash(
    supervisor: Browser, portal_service: Sandbox
) -> None:
    record, portal = given.borrower(portal_service), Portal(portal_service.url)
    forget_connections()
    portal.start()
    remote: Any = RemoteBrowser(portal)
    approval = request_approval(Editor(remote, record))
    decide(supervisor, approval)
    portal_service.fail_next(UPDATE, delay=60)
    preview = fields(html(remote.get(approval.send_url)))

    def send_form() -> None:
        with pytest.raises(OSError, match=r"aborted|reset"):
            Editor(remote, record).post(preview, "send")

    sender = threading.Thread(target=send_form)
    sender.start()
    while not portal_service.calls:
        time.sleep(0.02)
    portal.kill()
    sender.join()
    intent = WriteIntent.objects.get()
    page = html(supervisor.get(approval.get_absolute_url()))
    assert "Being sent" in page
    assert intent.get_absolute_url() in page
    check_being_sent(approval, record)
    WriteIntent.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    requester = Browser()
    requester.force_login(User.objects.get(pk=approval.maker_id))
    Approval.objects.update(decided_at=timezone.now() - timedelta(minutes=6))
    check_unknown(approval, intent, Editor(requester, record), supervisor)


def check_being_sent(approval: Approval, record: Account) -> None:
    """Check that the requester is redirected to its page, and can't request the same change again."""
    requester = Browser()
    requester.force_login(User.objects.get(pk=approval.maker_id))
    assert requester.get(approval.send_url)["Location"] == approval.get_absolute_url()
    editor = Editor(requester, record)
    checked = editor.review_fields(**NAME)
    assert "This change is being sent." in html(editor.check(**NAME))
    assert editor.post(checked | REASON, "ask").status_code == 422
    assert Approval.objects.count() == 1


def check_unknown(approval: Approval, intent: WriteIntent, editor: Editor, supervisor: Browser) -> None:
    """Check that each page shows the unknown outcome, and that sending again needs confirmation."""
    places = {
        approval.get_absolute_url(): "Sent, outcome unknown",
        approval.send_url: "Unclear whether an earlier change went through",
        editor.url: "Unclear whether the change by",
    }
    for place, words in places.items():
        page = html(editor.browser.get(place))
        assert words in page
        assert intent.get_absolute_url() in page
        assert "Nothing has been sent yet" not in page
    assert "Outcome unknown" in html(supervisor.get("/approvals/"))
    assert "Confirm that you want to send it again." in html(send(editor, approval))
    approval.refresh_from_db()
    assert (approval.state, approval.intent_id) == ("unknown", intent.pk)


@pytest.mark.slow
def test_posting_a_form_twice_sends_it_once(
    editor: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    approval = request_approval(editor)
    decide(supervisor, approval)
    preview = fields(html(editor.browser.get(approval.send_url)))
    first, second = (editor.post(preview, "send") for _ in range(2))
    assert first["Location"] == second["Location"]
    assert len(portal_service.calls) == 1


@pytest.mark.slow
def test_the_requester_and_supervisors_see_the_request(
    editor: Editor, supervisor: Browser, borrower: Borrower, read_home: Callable[[Browser], str]
) -> None:
    approval = request_approval(editor)
    assert "Pending approval:" in read_home(supervisor)
    assert "Pending approval:" in read_home(editor.browser)
    assert "Pending approval." in html(supervisor.get(borrower.get_absolute_url()))
    assert "Pending approval." in html(editor.browser.get(editor.url))
    assert "Harbor Street Bakery LLC" in html(supervisor.get("/approvals/"))
    decide(supervisor, approval)
    assert "Approved, to be sent:" in read_home(editor.browser)
    assert "Approved, to be sent:" not in read_home(supervisor)
    assert approval.send_url in html(editor.browser.get(borrower.get_absolute_url()))
    send(editor, approval)
    assert "Approved, to be sent:" not in read_home(editor.browser)
    assert "Sent" in html(supervisor.get("/approvals/"))


@pytest.fixture
def read_home() -> Callable[[Browser], str]:
    """Return a function that reads the home page, which lists a person's tasks."""
    return lambda browser: html(browser.get("/"))


def test_the_navigation_counts_pending_approvals(editor: Editor, supervisor: Browser) -> None:
    def number(browser: Browser) -> str | None:
        found = re.search(r'id="waiting-v"[^>]*>\s*(\d*)', html(browser.get("/attention/waiting/")))
        return found and found[1]

    assert number(supervisor) == ""
    request_approval(editor)
    assert number(supervisor) == "1"
    assert number(browser_of(Role.VIEWER)) is None


def test_viewers_cannot_list_and_auditors_cannot_decide(
    viewer: Browser, auditor: Browser, editor: Editor
) -> None:
    approval = request_approval(editor)
    assert viewer.get("/approvals/").status_code == 403
    page = html(auditor.get(approval.get_absolute_url()))
    decision = page.partition('aria-label="Decision"')[2].partition("</section>")[0]
    assert "Requires the supervisor role" in decision
    assert "Approve" not in decision
