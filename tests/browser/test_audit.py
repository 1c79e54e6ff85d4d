"""The audit trail in a browser: an unknown outcome is found and resolved, and each page is checked by axe."""

from uuid import uuid4

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from portal.accounts.roles import Role
from portal.audit.models import Entry, WriteIntent
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import find_problems
from tests.conftest import browser_of
from tests.portal.borrowers.editor import Editor

pytestmark = pytest.mark.browser


def test_a_supervisor_resolves_an_unknown_outcome(page: Page, portal_service: Sandbox) -> None:
    servicer, borrower = (
        browser_of(Role.SERVICER),
        given.borrower(portal_service, first_name=f"{'Donaudampfschifffahrt' * 3} LLC"),
    )
    Editor(servicer, borrower).send(email="new@bakery.example")
    portal_service.fail_next("applications.submit", cut_after_commit=True)
    typed = {"submit_id": str(uuid4()), "amount": "25000", "confirmed": "yes"}
    servicer.post(f"/borrowers/{borrower.uuid}/applications/new/", typed)
    session = browser_of(Role.SUPERVISOR).cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": session, "domain": "localhost", "path": "/"}]
    )
    checked: list[str] = []

    def check_page() -> None:
        assert (page.url, find_problems(page)) == (page.url, [])
        page.set_viewport_size({"width": 1440, "height": 900})
        checked.append(page.url)

    page.goto("/audit/")
    check_page()
    # Sentences look like text rather than links.
    color = "each => getComputedStyle(each).color"
    assert page.locator("a.sd-said").first.evaluate(color) == page.locator("h1").evaluate(color)
    # On a narrow screen the result and the reference stay in view.
    page.set_viewport_size({"width": 1024, "height": 900})
    inner, outer = page.locator(".sd-table-region").evaluate("each => [each.scrollWidth, each.clientWidth]")
    assert inner <= outer
    expect(page.get_by_role("columnheader")).to_have_text(["When", "Who and what", "Result", "Reference"])
    page.set_viewport_size({"width": 1440, "height": 900})
    with page.expect_response("**/entry/?**result=unknown**"):
        page.get_by_label("Result").select_option("unknown")
    page.get_by_role("link", name="outcome unknown").click()
    check_page()
    page.get_by_role("link", name="Open request").click()
    check_page()
    page.get_by_label("Not created").check()
    page.get_by_label("Reason").fill("Not in the lender’s list, told at 14:20")
    page.get_by_role("button", name="Resolve").click()
    expect(page.get_by_text("Resolved as not carried out by Supervisor")).to_be_visible()
    assert WriteIntent.objects.get(operation="applications.submit").state == "released"
    changed = Entry.objects.get(action="borrowers.update", phase="outcome")
    for address in (f"/audit/{changed.pk}/", f"/audit/history/borrower/{borrower.uuid}/"):
        page.goto(address)
        check_page()
    assert len(checked) == 5
