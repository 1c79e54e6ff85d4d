"""A change of name, SSN or date of birth waits for a supervisor other than its maker; nothing is sent before."""

import logging
import re
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.approvals.models import Approval
from portal.audit.models import Entry, WriteIntent
from portal.registry.models import Record
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.databases import everything, forget_connections
from tests.faults.answers import RemoteBrowser
from tests.faults.killing import Portal
from tests.portal.borrowers.editor import BORN, SSN, TWICE, UPDATE, WITH_SSN, Editor, fields, html, sent

NAME = {"first_name": "Bay Bakery LLC"}
REASON = {"reason": "Articles of amendment"}
AGAIN = {"again": "on"}


@pytest.fixture
def borrower(portal_service: Sandbox) -> Record:
    return given.borrower(portal_service)


@pytest.fixture
def editor(servicer: Browser, borrower: Record) -> Editor:
    return Editor(servicer, borrower)


@pytest.fixture
def of_person(servicer: Browser, portal_service: Sandbox) -> Editor:
    return Editor(servicer, given.individual(portal_service))


def ask(editor: Editor, **typed: str) -> Approval:
    answer = editor.post(editor.checked(**typed or NAME) | REASON, "ask")
    assert answer.status_code == 303
    return Approval.objects.get(state="waiting")


def decide(browser: Browser, approval: Approval, decision: str = "approve", comment: str = "") -> Any:
    return browser.post(f"{approval.get_absolute_url()}decide/", {"decision": decision, "comment": comment})


def send(editor: Editor, approval: Approval, given: dict[str, str] | None = None) -> Any:
    """Go on from the approval, as its link does."""
    preview = fields(html(editor.browser.get(approval.send_url)))
    return editor.post(preview | (given or {}), "send")


def steps() -> list[str]:
    entries = Entry.objects.filter(action__startswith="approvals.").exclude(
        action__in=["approvals.detail", "approvals.index"]
    )
    return [one.action.removeprefix("approvals.") for one in entries.order_by("id")]


def test_a_name_is_asked_for_approved_and_sent_by_its_maker(
    editor: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    page = html(editor.check(**NAME))
    assert "Needs approval." in page
    assert 'value="send"' not in page
    approval = ask(editor)
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


def test_other_changes_do_not_wait(editor: Editor, portal_service: Sandbox) -> None:
    editor.send(email="new@bakery.example", line_2="Suite 4")
    assert sent(portal_service).keys() == {"email", "address"}
    assert not Approval.objects.exists()


def test_the_setting_says_what_waits(editor: Editor, portal_service: Sandbox, settings: LazySettings) -> None:
    settings.APPROVAL_ACTS = ["email"]
    editor.send(**NAME)
    assert sent(portal_service) == NAME
    assert ask(editor, email="new@bakery.example").acts == ["Email"]


def test_nothing_is_sent_by_pressing_send_before_approval(
    editor: Editor, portal_service: Sandbox, supervisor: Browser
) -> None:
    assert editor.post(editor.checked(**NAME) | REASON, "send").status_code == 422
    approval = ask(editor)
    assert editor.post(editor.checked(**NAME) | REASON, "send").status_code == 422
    decide(supervisor, approval, "refuse", "The filing is of last year")
    assert editor.post(editor.checked(**NAME) | REASON, "send").status_code == 422
    assert not portal_service.calls
    assert steps() == ["ask", "refuse"]


def test_an_approval_holds_for_the_very_change(
    editor: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    decide(supervisor, ask(editor))
    for other in ({"first_name": "Gulf Bakery LLC"}, NAME | {"email": "new@bakery.example"}):
        assert editor.post(editor.checked(**other) | REASON, "send").status_code == 422
    assert not portal_service.calls
    assert editor.send(**NAME).status_code == 303
    assert (
        editor.post(editor.checked(first_name="Harbor Street Bakery LLC") | REASON, "send").status_code == 422
    )


def test_it_holds_for_its_maker_alone(
    editor: Editor, supervisor: Browser, borrower: Record, portal_service: Sandbox
) -> None:
    approval = ask(editor)
    decide(supervisor, approval)
    other = Editor(supervisor, borrower)
    assert other.post(other.checked(**NAME) | REASON, "send").status_code == 422
    assert supervisor.get(approval.send_url).status_code == 404
    assert not portal_service.calls


def test_a_supervisor_does_not_approve_their_own(
    supervisor: Browser, borrower: Record, portal_service: Sandbox
) -> None:
    approval = ask(Editor(supervisor, borrower))
    assert "You can’t approve your own request" in html(supervisor.get(approval.get_absolute_url()))
    assert decide(supervisor, approval).status_code == 403
    second = User.objects.create_user("second", role=Role.SUPERVISOR)
    browser = Browser()
    browser.force_login(second)
    assert decide(browser, approval).status_code == 303


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SERVICER, Role.AUDITOR, Role.ADMIN])
def test_nobody_else_decides(editor: Editor, role: Role) -> None:
    approval = ask(editor)
    assert decide(browser_of(role), approval).status_code == 403
    assert steps() == ["ask"]


def test_a_refusal_says_why(editor: Editor, supervisor: Browser) -> None:
    approval = ask(editor)
    for comment in ("", f"SSN is {SSN}"):
        assert decide(supervisor, approval, "refuse", comment).status_code == 422
    assert decide(supervisor, approval, "refuse", "No document").status_code == 303
    assert "No document" in html(editor.browser.get(approval.get_absolute_url()))


def test_it_is_decided_once(editor: Editor, supervisor: Browser) -> None:
    approval = ask(editor)
    assert [decide(supervisor, approval).status_code for _ in range(2)] == [303, 409]
    assert decide(supervisor, approval, "refuse", "Too late").status_code == 409
    assert steps() == ["ask", "approve"]


def test_an_ssn_is_given_after_approval_and_waits_nowhere(
    of_person: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    page = html(of_person.check(**WITH_SSN, **BORN))
    assert 'name="ssn"' not in page
    approval = ask(of_person, **WITH_SSN, **BORN)
    assert "Apr 19, 1987" in html(supervisor.get(approval.get_absolute_url()))
    decide(supervisor, approval)
    assert send(of_person, approval).status_code == 422
    assert send(of_person, approval, TWICE).status_code == 303
    assert sent(portal_service).keys() == {"ssn", "dob"}
    assert portal_service.world.received_ssn(of_person.record.uuid) == "219099999"


@pytest.mark.django_db(transaction=True)
def test_what_waits_is_readable_nowhere(
    of_person: Editor, caplog: pytest.LogCaptureFixture, portal_service: Sandbox
) -> None:
    caplog.set_level(logging.DEBUG)
    ask(of_person, **WITH_SSN, **BORN)
    stored = everything() + caplog.text.encode()
    assert [birth for birth in (b"1987-04-19", b"Apr 19, 1987", b"dob_year") if birth in stored] == []


def test_a_copy_that_moved_is_looked_at_again(
    editor: Editor, supervisor: Browser, borrower: Record, portal_service: Sandbox
) -> None:
    approval = ask(editor)
    decide(supervisor, approval)
    preview = fields(html(editor.browser.get(approval.send_url)))
    Editor(supervisor, borrower).send(email="moved@bakery.example")
    calls = len(portal_service.calls)
    assert editor.post(preview, "send").status_code == 409
    assert "changed since" in html(editor.browser.get(approval.get_absolute_url()))
    assert len(portal_service.calls) == calls
    assert editor.post(editor.checked(**NAME) | REASON, "send").status_code == 422


def test_what_moved_before_the_word_cannot_be_approved(
    editor: Editor, supervisor: Browser, borrower: Record
) -> None:
    approval = ask(editor)
    Editor(supervisor, borrower).send(email="moved@bakery.example")
    assert decide(supervisor, approval).status_code == 409
    assert steps() == ["ask"]


@pytest.mark.parametrize("is_set_back", [False, True])
@pytest.mark.parametrize("is_approved", [False, True])
def test_time_ends_it_and_so_does_a_clock_set_back(
    editor: Editor,
    supervisor: Browser,
    portal_service: Sandbox,
    settings: LazySettings,
    is_approved: bool,
    is_set_back: bool,
) -> None:
    approval = ask(editor)
    if is_approved:
        decide(supervisor, approval)
    hours = timedelta(hours=settings.APPROVAL_HOURS)
    Approval.objects.update(expires_at=timezone.now() + (hours * 2 if is_set_back else -timedelta(seconds=1)))
    assert editor.post(editor.checked(**NAME) | REASON, "send").status_code == 422
    approval.refresh_from_db()
    assert (approval.state, approval.sealed) == ("expired", "")
    assert steps()[-1] == "expire"
    assert not portal_service.calls


def test_what_a_crash_left_of_a_sending_goes_in_time(editor: Editor, supervisor: Browser) -> None:
    approval = ask(editor)
    Approval.objects.update(state="sent", expires_at=timezone.now() - timedelta(seconds=1))
    supervisor.get("/approvals/")
    approval.refresh_from_db()
    assert (approval.state, approval.sealed) == ("sent", "")


def test_its_maker_takes_it_back_or_asks_anew(editor: Editor, supervisor: Browser) -> None:
    first = ask(editor)
    second = ask(editor, first_name="Gulf Bakery LLC")
    assert supervisor.post(f"{second.get_absolute_url()}withdraw/").status_code == 404
    assert editor.browser.post(f"{second.get_absolute_url()}withdraw/")["Location"] == editor.url
    assert set(Approval.objects.values_list("state", flat=True)) == {"withdrawn"}
    assert decide(supervisor, first).status_code == 409
    assert steps() == ["ask", "withdraw", "ask", "withdraw"]


def test_a_sending_that_was_refused_may_be_repeated(
    editor: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    approval = ask(editor)
    decide(supervisor, approval)
    portal_service.fail_next(UPDATE, status=422, message="no")
    assert send(editor, approval).status_code == 422
    approval.refresh_from_db()
    assert (approval.state, approval.intent_id) == ("approved", None)
    assert send(editor, approval).status_code == 303
    assert steps() == ["ask", "approve", "send"]


def test_a_lost_answer_is_unknown_and_is_sent_again_only_on_purpose(
    editor: Editor, supervisor: Browser, portal_service: Sandbox
) -> None:
    approval = ask(editor)
    decide(supervisor, approval)
    portal_service.fail_next(UPDATE, cut_after_commit=True)
    assert send(editor, approval).status_code == 504
    intent = WriteIntent.objects.get()
    is_unknown(approval, intent, editor, supervisor)
    portal_service.fail_next(
        UPDATE, status=422, message="no"
    )  # A refusal of the second one says nothing of the first.
    assert send(editor, approval, AGAIN).status_code == 422
    is_unknown(approval, intent, editor, supervisor)
    assert send(editor, approval, AGAIN).status_code == 303
    approval.refresh_from_db()
    assert (approval.state, approval.sealed) == ("sent", "")
    assert steps() == ["ask", "approve", "send"]


@pytest.mark.parametrize(("found", "state"), [("yes", "sent"), ("no", "approved")])
def test_what_a_supervisor_finds_out_of_the_write_holds_for_the_approval(
    editor: Editor, supervisor: Browser, portal_service: Sandbox, found: str, state: str
) -> None:
    approval = ask(editor)
    decide(supervisor, approval)
    portal_service.fail_next(UPDATE, cut_after_commit=True)
    send(editor, approval)
    typed = {"found": found, "reason": "Asked the service"}
    supervisor.post(f"{WriteIntent.objects.get().get_absolute_url()}resolve/", typed)
    supervisor.get(approval.get_absolute_url())
    approval.refresh_from_db()
    assert approval.state == state


@pytest.mark.django_db(transaction=True)
def test_a_portal_that_is_killed_leaves_the_approval_tied_to_its_write(
    supervisor: Browser, portal_service: Sandbox
) -> None:
    record, portal = given.borrower(portal_service), Portal(portal_service.url)
    forget_connections()
    portal.start()
    remote: Any = RemoteBrowser(portal)
    approval = ask(Editor(remote, record))
    decide(supervisor, approval)
    portal_service.fail_next(UPDATE, delay=60)
    preview = fields(html(remote.get(approval.send_url)))

    def press() -> None:
        with pytest.raises(OSError, match=r"aborted|reset"):
            Editor(remote, record).post(preview, "send")

    sender = threading.Thread(target=press)
    sender.start()
    while not portal_service.calls:
        time.sleep(0.02)
    portal.kill()
    sender.join()
    intent = WriteIntent.objects.get()
    page = html(supervisor.get(approval.get_absolute_url()))
    assert "Being sent" in page
    assert intent.get_absolute_url() in page
    is_being_sent(approval, record)
    WriteIntent.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    maker = Browser()
    maker.force_login(User.objects.get(pk=approval.maker_id))
    Approval.objects.update(decided_at=timezone.now() - timedelta(minutes=6))
    is_unknown(approval, intent, Editor(maker, record), supervisor)


def is_being_sent(approval: Approval, record: Record) -> None:
    """The requester is led to its page, and can't ask for the same change again."""
    requester = Browser()
    requester.force_login(User.objects.get(pk=approval.maker_id))
    assert requester.get(approval.send_url)["Location"] == approval.get_absolute_url()
    editor = Editor(requester, record)
    checked = editor.checked(**NAME)
    assert "This change is being sent." in html(editor.check(**NAME))
    assert editor.post(checked | REASON, "ask").status_code == 422
    assert Approval.objects.count() == 1


def is_unknown(approval: Approval, intent: WriteIntent, editor: Editor, supervisor: Browser) -> None:
    """Every page says so, with the link, and sending again asks."""
    places = [approval.get_absolute_url(), approval.send_url, editor.url]
    for page in (html(editor.browser.get(place)) for place in places):
        assert "nknown" in page or "Unclear whether" in page
        assert intent.get_absolute_url() in page
        assert "Nothing has been sent yet" not in page
    assert "Outcome unknown" in html(supervisor.get("/approvals/"))
    assert "Confirm that you want to send it again." in html(send(editor, approval))
    approval.refresh_from_db()
    assert (approval.state, approval.intent_id) == ("unknown", intent.pk)


def test_the_same_form_sends_once(editor: Editor, supervisor: Browser, portal_service: Sandbox) -> None:
    approval = ask(editor)
    decide(supervisor, approval)
    preview = fields(html(editor.browser.get(approval.send_url)))
    first, second = (editor.post(preview, "send") for _ in range(2))
    assert first["Location"] == second["Location"]
    assert len(portal_service.calls) == 1


def test_everybody_concerned_sees_it(
    editor: Editor, supervisor: Browser, borrower: Record, tell: Callable[[Browser], str]
) -> None:
    approval = ask(editor)
    assert "Pending approval:" in tell(supervisor)
    assert "Pending approval:" in tell(editor.browser)
    assert "Pending approval." in html(supervisor.get(borrower.get_absolute_url()))
    assert "Pending approval." in html(editor.browser.get(editor.url))
    assert "Harbor Street Bakery LLC" in html(supervisor.get("/approvals/"))
    decide(supervisor, approval)
    assert "Approved, to be sent:" in tell(editor.browser)
    assert "Approved, to be sent:" not in tell(supervisor)
    assert approval.send_url in html(editor.browser.get(borrower.get_absolute_url()))
    send(editor, approval)
    assert "Approved, to be sent:" not in tell(editor.browser)
    assert "Sent" in html(supervisor.get("/approvals/"))


@pytest.fixture
def tell() -> Callable[[Browser], str]:
    """What home says needs this person."""
    return lambda browser: html(browser.get("/"))


def test_the_navigation_counts_approvals(editor: Editor, supervisor: Browser) -> None:
    counted = r'href="/approvals/"[^>]*>\s*<svg.*?</svg>Approvals\s*<span class="sd-nav-count">1<'
    assert not re.search(counted, html(supervisor.get("/loans/")), re.DOTALL)
    ask(editor)
    cache.clear()
    assert re.search(counted, html(supervisor.get("/loans/")), re.DOTALL)
    cache.clear()
    other = browser_of(Role.VIEWER)
    assert not re.search(counted, html(other.get("/loans/")), re.DOTALL)


def test_a_viewer_has_no_list(viewer: Browser, auditor: Browser, editor: Editor) -> None:
    approval = ask(editor)
    assert viewer.get("/approvals/").status_code == 403
    page = html(auditor.get(approval.get_absolute_url()))
    assert 'aria-disabled="true" title="Requires the supervisor role"' in page
