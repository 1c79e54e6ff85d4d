"""The admin site in a browser: it has the product's frame, passes axe, and filters audit entries."""

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.models import Entry, RemoteCall
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import LAYOUT_SHIFT
from tests.conftest import browser_of
from tests.portal.borrowers.editor import Editor

pytestmark = pytest.mark.browser


@pytest.fixture
def admin_page(page: Page, portal_service: Sandbox) -> Page:
    """A page signed in as an administrator, after a borrower was changed."""
    borrower = given.borrower(portal_service, first_name="Harbor Bakery of the Pacific Northwest LLC")
    Editor(browser_of(Role.SERVICER), borrower).send(email="new@bakery.example")
    session = browser_of(Role.ADMIN).cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": session, "domain": "localhost", "path": "/"}]
    )
    return page


def test_admin_pages_do_not_shift(admin_page: Page) -> None:
    entry, call = Entry.objects.filter(action="borrowers.update").first(), RemoteCall.objects.first()
    assert entry
    assert call
    for url in (
        "/admin/",
        "/admin/audit/entry/",
        f"/admin/audit/entry/{entry.pk}/change/",
        "/admin/audit/pageview/",
        "/admin/audit/remotecall/",
        f"/admin/audit/remotecall/{call.pk}/change/",
        "/admin/audit/writeintent/",
        "/admin/accounts/user/",
        "/admin/accounts/user/add/",
        "/admin/accounts/user/1/password/",
        f"/admin/accounts/user/{entry.actor_id}/change/",
    ):
        admin_page.set_viewport_size({"width": 1440, "height": 900})
        admin_page.goto(url)
        expect(admin_page.get_by_role("link", name=settings.PRODUCT_NAME, exact=True)).to_be_visible()
        expect(admin_page.locator(".sd-band")).to_be_visible()
        assert (url, admin_page.evaluate(LAYOUT_SHIFT) < 0.01) == (url, True)


def test_entries_are_filtered_by_action_borrower_and_time(admin_page: Page) -> None:
    admin_page.goto("/admin/audit/entry/")
    row = admin_page.get_by_role("row", name="changed email of Harbor Bakery")
    expect(row).to_be_visible()
    admin_page.get_by_label("Actions").select_option("Sign-ins")
    expect(row).to_be_hidden()
    admin_page.get_by_label("Actions").select_option("Changes at the service")
    expect(row).to_be_visible()
    admin_page.get_by_label("Borrower").fill("bakery of")
    admin_page.get_by_label("Borrower").press("Enter")
    admin_page.wait_for_url("**borrower=bakery**")
    expect(row).to_be_visible()
    admin_page.get_by_label("To", exact=True).fill("2020-01-31T10:00")
    expect(admin_page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    admin_page.get_by_role("link", name="Clear filters").click()
    row.get_by_role("link", name="changed email").click()
    entry = Entry.objects.get(action="borrowers.update", phase="outcome")
    admin_page.wait_for_url(f"**/audit/{entry.pk}/")


def test_the_response_of_a_call_is_shown_line_by_line(admin_page: Page) -> None:
    call = RemoteCall.objects.filter(operation="borrowers.update").latest("id")
    admin_page.goto(f"/admin/audit/remotecall/{call.pk}/change/")
    lines = admin_page.get_by_role("region", name="Response, masked").locator("[data-path]")
    assert lines.count() > 10
    expect(lines.filter(has_text='"email": ').first).to_contain_text("new@bakery.example")
    call.answer_body = call.answer_body[:100]
    call.save()
    admin_page.reload()
    cut = admin_page.get_by_role("region", name="Response, masked")
    expect(cut).to_have_text(call.answer_body)
    expect(admin_page.get_by_text("Only the beginning is kept")).to_be_visible()


def test_an_error_stands_below_its_field(admin_page: Page) -> None:
    admin_page.goto("/admin/accounts/user/add/")
    admin_page.get_by_role("button", name="Add account").click()
    for name, words in (
        ("username", "Enter a username."),
        ("password1", "Enter a password."),
        ("password2", "Enter the password again."),
    ):
        field, error = admin_page.locator(f"[name={name}]"), admin_page.locator(f"#id_{name}_error")
        expect(error).to_have_text(words)
        boxes = field.bounding_box(), error.bounding_box()
        assert boxes[0]
        assert boxes[1]
        assert boxes[1]["y"] >= boxes[0]["y"] + boxes[0]["height"]


def test_an_account_has_a_time_zone_by_name(admin_page: Page) -> None:
    user = User.objects.get(username=Role.SERVICER)
    admin_page.goto(f"/admin/accounts/user/{user.pk}/change/")
    zone = admin_page.get_by_label("Time zone")
    expect(zone.locator("option:checked")).to_have_text("Company time zone (Eastern)")
    zone.select_option("Pacific")
    admin_page.get_by_role("button", name="Save").click()
    expect(admin_page.get_by_text("Account saved.")).to_be_visible()
    user.refresh_from_db()
    assert user.time_zone == "America/Los_Angeles"
