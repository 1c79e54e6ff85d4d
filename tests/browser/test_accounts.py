"""A line of credit and a loan in a real browser: statements by key, a schedule without leaving the page."""

from datetime import date

import pytest
from django.conf import LazySettings
from playwright.sync_api import Page, expect

from portal.credit_lines import documents
from servicing.sandbox import Sandbox
from tests import given

pytestmark = pytest.mark.browser


def test_statements_are_flipped_by_key_without_leaving_the_page(
    page: Page, desk: Sandbox, settings: LazySettings
) -> None:
    settings.DEBUG = True
    documents._fetcher.cache_clear()
    line = given.line(desk, given.borrower(desk), opened=date(2026, 1, 1))
    for day in ("2026-02-15", "2026-03-15"):
        desk.world.statement(line.uuid, day)
    page.goto(line.get_absolute_url())
    title = page.locator(".sd-viewer h3")
    expect(page.get_by_text("2 listed by the service")).to_be_visible()
    page.evaluate("window.stayed = true")
    for key, words in (("[", "15 Mar 2026"), ("[", "15 Feb 2026"), ("]", "15 Mar 2026")):
        page.keyboard.press(key)
        expect(title).to_have_text(f"Statement of {words}")
    expect(page.frame_locator(".sd-paper").locator("embed, body")).to_have_count(1)
    assert page.url.endswith("?statement=2026-03-15")
    assert page.evaluate("window.stayed")


def test_a_long_schedule_opens_in_place(page: Page, desk: Sandbox) -> None:
    loan = given.loan(desk, given.borrower(desk), installments=36, paid=5)
    page.goto(loan.get_absolute_url())
    rows = page.locator(".sd-schedule tbody th[scope=row]:not([colspan])")
    expect(rows).to_have_count(12)
    page.get_by_role("link", name="later installments").click()
    expect(rows).to_have_count(36)
    page.get_by_label("Without yearly subtotals").check()
    expect(page.locator(".sd-schedule .sd-sum")).to_have_count(0)
    expect(rows).to_have_count(36)
