"""Borrower and people screens in a browser: by keyboard, with and without scripts, and checked by axe."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.conf import settings
from django.utils import timezone
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.models import WriteIntent
from portal.borrowers.page import TABS
from portal.lookup.models import Upload
from portal.notes.models import FollowUp, Note
from portal.records.models import Account, Borrower, KeyPerson, Kind
from portal.tables.models import SavedView
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import find_problems
from tests.browser.conftest import press, tab_to
from tests.conftest import browser_of

pytestmark = pytest.mark.browser
SSN = "219099999"
UNKNOWN = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
LONGEST = (
    "The Greater Willamette Valley Agricultural Equipment, Seed, Feed and Irrigation Cooperative Holding LP"
)
Visit = Callable[..., Page]


@pytest.fixture
def visit(chromium: Browser, live_server: LiveServer, portal_service: Sandbox) -> Iterator[Visit]:
    """Opens a page signed in with a role; the options are those of the browser context."""
    contexts = []

    def open_page(role: Role, **options: object) -> Page:
        context = chromium.new_context(base_url=live_server.url, reduced_motion="reduce", **options)
        session = browser_of(role).cookies[settings.SESSION_COOKIE_NAME].value
        cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}
        context.add_cookies([cookie])
        contexts.append(context)
        return context.new_page()

    yield open_page
    for context in contexts:
        context.close()


# --- By keyboard alone ---


def choose(page: Page, wanted: Locator, *keys: str) -> None:
    tab_to(page, wanted)
    press(page, *(keys or ("Enter",)))


def fill_field(page: Page, name: str, text: str) -> None:
    tab_to(page, page.locator(f"main [name={name}]"))
    page.keyboard.press("Control+A")
    page.keyboard.type(text)


def open_by_search(page: Page, text: str, name: str, *, scripted: bool) -> None:
    """Search for a record and open it."""
    if scripted:
        press(page, "/")
    else:
        tab_to(page, page.get_by_role("combobox", name="Search all records"))
    page.keyboard.press("Control+A")
    page.keyboard.type(text)
    if scripted:
        expect(page.get_by_role("option", name=name)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    if not scripted:
        choose(page, page.locator("main").get_by_role("link", name=name, exact=True).first)
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()


@pytest.mark.parametrize("scripted", [True, False], ids=["with scripts", "without scripts"])
def test_edits_approvals_and_lookups_work_by_keyboard_alone(
    visit: Visit, portal_service: Sandbox, scripted: bool
) -> None:
    owner = given.borrower(portal_service, first_name="Birch Farms LLC", phone="5125550144")
    maya = KeyPerson.objects.get(borrower_uuid=owner.uuid)
    page = visit(Role.SERVICER, java_script_enabled=scripted)
    page.goto("/")

    open_by_search(page, "+1 512.555-0144", "Birch Farms LLC", scripted=scripted)
    if scripted:
        press(page, "e")
    else:
        choose(page, page.locator(".sd-identity").get_by_role("link", name="Edit"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("Birch Farms LLC")
    fill_field(page, "email", "office@birch.example")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 change", exact=False).first).to_be_visible()
    choose(page, page.get_by_role("button", name="Send change"))
    expect(page.get_by_role("heading", name="Response")).to_be_visible()
    expect(page.locator("main")).to_contain_text("Confirmed")
    assert portal_service.world.user(owner.uuid)["email"] == "office@birch.example"

    open_by_search(page, "5125550144", "Birch Farms LLC", scripted=scripted)
    if scripted:
        press(page, "2")
    else:
        choose(page, page.get_by_role("link", name="People", exact=False).first)
    expect(page.get_by_role("link", name="Send SSN and date of birth")).to_be_visible()
    choose(page, page.get_by_role("link", name="Edit Maya Lindqvist"))
    type_choice(page, "title", "Director")
    choose(page, page.locator("main summary").first)
    choose(page, page.locator("[name=with_ssn]"), "Space", "Enter")
    fill_field(page, "reason", "On the phone")
    choose(page, page.get_by_role("button", name="Request approval"))
    approve(visit(Role.SUPERVISOR, java_script_enabled=scripted))
    page.reload()
    choose(page, page.get_by_role("link", name="Review and send"))
    for name in ("ssn", "ssn_again"):
        fill_field(page, name, SSN)
    choose(page, page.get_by_role("button", name="Send 2 changes"))
    expect(page.get_by_role("heading", name="Response")).to_be_visible()
    assert portal_service.world.received_ssn(maya.uuid) == SSN

    page.goto(f"{owner.get_absolute_url()}?tab=people")
    expect(page.get_by_text("by Servicer")).to_be_visible()
    look_up_unknown_id(page, scripted=scripted)


def approve(page: Page) -> None:
    """Approve the waiting request as a supervisor."""
    page.goto("/approvals/")
    choose(page, page.locator("main").get_by_role("link", name="Maya Lindqvist"))
    choose(page, page.get_by_role("button", name="Approve"))
    expect(page.locator("main").get_by_text("Approved", exact=True)).to_be_visible()


def type_choice(page: Page, name: str, text: str) -> None:
    tab_to(page, page.locator(f"main [name={name}]"))
    page.keyboard.type(text)


def look_up_unknown_id(page: Page, *, scripted: bool) -> None:
    """Search for an unknown ID and try to open it as a loan."""
    if scripted:
        press(page, "/")
    else:
        tab_to(page, page.get_by_role("combobox", name="Search all records"))
    page.keyboard.type(f"see {UNKNOWN}, please")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Not on file")).to_be_visible()
    fill_field(page, "of", "birch")
    page.keyboard.press("Enter")
    for words in ("Open as loan", "as line of credit", "as application for a line"):
        expect(page.get_by_role("button", name=words)).to_be_visible()
    choose(page, page.get_by_role("button", name="Open as loan"))
    expect(page.get_by_role("alert")).to_contain_text("The service has no loan with this ID")


# --- Checked by axe ---


@pytest.fixture
def records(portal_service: Sandbox) -> dict[str, Account]:
    """A borrower with all data and the longest name, a bare one, an archived one, and an individual."""
    owner = given.borrower(portal_service, first_name=LONGEST, email="a" * 60 + "@cooperative.example")
    loan, line = (
        given.loan(portal_service, owner, paid=3),
        given.line(portal_service, owner, drawn="2500.00", days_past_due=12),
    )
    given.account(Kind.APPLICATION, owner, portal_service.world.line_application(owner.uuid)["uuid"])
    portal_service.world.repayment(loan.uuid, amount=Decimal("310.00"))
    bare = Borrower.objects.create(uuid="b-1", name="Bare LLC")
    gone = given.borrower(portal_service, first_name="Gone LLC")
    Borrower.objects.filter(pk=gone.pk).update(archived_at=timezone.now())
    WriteIntent.objects.create(
        submit_id=uuid4().hex, label="Email", state="unknown", borrower_uuid=owner.uuid, actor_name="Ana"
    )
    day, by = timezone.localdate(), {"author_id": 1, "author_name": "Ana"}
    about = {"borrower_uuid": owner.uuid, "subject_kind": owner.kind, "subject_uuid": owner.uuid}
    Note.objects.create(**about, **by, text="Calls only after noon. " * 20, pinned_until=day)
    planned = {"borrower_uuid": owner.uuid, "owner_id": 1, "owner_name": "Ana"}
    refused = [[number, f"not a user object: {number}"] for number in range(2, 30)]
    Upload.objects.create(
        what="ids",
        name="x" * 300,
        exported_at=timezone.now(),
        by_name="Ana",
        finished_at=timezone.now(),
        refused=refused,
        refused_count=900,
    )
    FollowUp.objects.create(**planned, title="Ask for the insurance", due=day - timedelta(days=1))
    FollowUp.objects.create(**planned, title="Done", due=day, done_at=timezone.now(), done_by="Ana")
    return {
        "owner": owner,
        "loan": loan,
        "line": line,
        "bare": bare,
        "person": given.individual(portal_service),
        "gone": gone,
    }


def screen_addresses(known: dict[str, Account]) -> Iterator[str]:
    """The addresses of all people screens, full and empty."""
    yield from ("/borrowers/?q=llc&state=OR&from=2026-01-01", "/borrowers/?q=nobody+like+it", "/borrowers/")
    for tab in TABS:
        yield f"{known['owner'].get_absolute_url()}?tab={tab}"
    for name in ("bare", "person", "gone"):
        yield known[name].get_absolute_url()
        yield f"{known[name].get_absolute_url()}?tab=people"
    record = f"borrower/{known['owner'].uuid}/"
    yield from (f"/notes/new/{record}", f"/notes/follow-ups/new/{known['owner'].uuid}/")
    yield Upload.objects.get().get_absolute_url()
    yield from (
        "/registry/add/",
        "/registry/import/",
        f"/views/save/?list=borrowers:index&query=q={'x' * 90}",
    )
    yield from (f"/registry/{record}", f"/registry/{record}correct/", f"/registry/{record}archive/")
    yield from (
        "/search/?q=maya",
        f"/search/?q={UNKNOWN}&of=greater",
        "/search/?q=x:y",
        "/search/?q=nobody+like+it",
    )
    yield from (f"/search/?q={known['gone'].uuid}", "/search/?q=type:loan", "/search/")


def test_screens_pass_axe_and_do_not_scroll_sideways(visit: Visit, records: dict[str, Account]) -> None:
    page = visit(Role.SUPERVISOR)
    SavedView.objects.create(owner=User.objects.get(), list="borrowers:index", name="Texas", query="state=TX")
    problems: list[str] = []

    def check_page(where: str) -> None:
        page.set_viewport_size({"width": 1024, "height": 900})
        if page.evaluate("document.documentElement.scrollWidth") > 1024:
            problems.append(f"{where}: scrolls sideways")
        problems.extend(f"{where}: {one}" for one in find_problems(page))

    for address in screen_addresses(records):
        page.goto(address)
        # Panels load after the page.
        page.wait_for_function("() => !document.querySelector('.htmx-request')")
        check_page(address)
    page.goto("/registry/add/")
    page.get_by_role("button", name="Add record").click()
    page.locator(".sd-errors").wait_for()
    check_page("what cannot be added")
    page.goto("/borrowers/?q=nobody+like+it")
    page.get_by_text("Views", exact=True).click()
    check_page("the menu of views")
    assert not problems, "\n".join(problems)


def test_a_file_field_with_an_error_stays_in_its_column(visit: Visit) -> None:
    page = visit(Role.SUPERVISOR)
    page.goto("/registry/import/")
    page.get_by_label("IDs (CSV)").set_input_files({"name": "ids.csv", "mimeType": "text/csv", "buffer": b""})
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator(".sd-field-bad [type=file]")).to_be_visible()
    right = "one.getBoundingClientRect().right - one.parentElement.getBoundingClientRect().right"
    assert max(page.locator("[type=file]").evaluate_all(f"each => each.map(one => {right})")) <= 0
