"""The message list in a browser: by keyboard, as JSON, with live tail, on a phone, and checked by axe."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from playwright.sync_api import Page, expect

from servicing.sandbox import Sandbox
from tests import given

pytestmark = pytest.mark.browser


@pytest.fixture
def uuids(page: Page, portal_service: Sandbox) -> list[str]:
    """The IDs of three payment messages of one borrower and an odd message, newest first."""
    loan = given.loan(portal_service, given.borrower(portal_service, first_name="Harbor Bakery LLC"))
    for number, status in enumerate(("SCHEDULED", "SUCCEEDED", "FAILED_AFTER_SUCCESS")):
        at = datetime(2026, 11, 18, 15, tzinfo=UTC) + timedelta(hours=number)
        payment = portal_service.world.repayment(loan.uuid, status=status, amount=310, error_description="")
        portal_service.world.message(f"payment.{status.lower()}", payment, at=at)
    portal_service.world.message("odd.one", {"a": [{"deep": "value"}]}, status="QUEUED_RETRY")
    call_command("sync_messages", verbosity=0)
    return [str(message["uuid"]) for message in portal_service.world.messages()]


@pytest.mark.parametrize("width", [1024, 390])
def test_the_list_is_visible_until_a_message_opens(page: Page, uuids: list[str], width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto("/messages/")
    row = page.locator(".sd-message-table [data-row] a").first
    expect(row).to_be_in_viewport()
    row.click()
    expect(page.locator("#message-title")).to_be_in_viewport()


def test_messages_are_read_by_keyboard(page: Page, uuids: list[str]) -> None:
    page.goto("/messages/")
    expect(page.locator("[data-message]")).to_have_count(4)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#message-title")).to_contain_text(uuids[0][:8])
    page.keyboard.press("j")
    expect(page.locator("#message-title")).to_contain_text(uuids[1][:8])
    expect(page.locator(f"[data-message='{uuids[1]}']")).to_have_class("sd-selected")
    expect(page.get_by_text("Payment history")).to_be_visible()
    page.get_by_role("link", name="JSON", exact=True).press("Enter")
    page.get_by_role("region", name="The message as it was received").focus()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    expect(page.locator("[data-json-line]")).to_contain_text("payload")
    page.keyboard.press("Enter")
    expect(page.locator(".sd-json [data-path='payload.status']")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("#message-title")).to_have_count(0)
    expect(page.locator("[data-message]")).to_have_count(4)


def test_a_burst_opens_by_keyboard_and_with_its_message(page: Page, portal_service: Sandbox) -> None:
    at = datetime(2026, 11, 18, 15, tzinfo=UTC)
    for number in range(5):
        portal_service.world.message(
            "payment.scheduled", {"amount": number}, at=at + timedelta(minutes=number)
        )
    portal_service.world.message("odd.one", {}, at=at + timedelta(hours=1))
    page.goto("/messages/")
    rows = page.locator("[data-message]:visible")
    expect(rows).to_have_count(1)
    for key in "jjo":
        page.keyboard.press(key)
    expect(rows).to_have_count(6)
    page.keyboard.press("j")
    expect(rows.nth(1).get_by_role("link").first).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    rows.get_by_role("link").first.click()
    expect(page.locator("#message-title")).to_be_visible()
    page.keyboard.press("j")
    expect(rows).to_have_count(6)
    expect(page.locator(".sd-selected")).to_be_visible()


def test_closing_a_message_on_a_phone_returns_to_the_list(page: Page, uuids: list[str]) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/messages/")
    for uuid in uuids[:2]:
        page.locator(f"[data-message='{uuid}'] a").first.click()
        expect(page.locator("#message-title")).to_contain_text(uuid[:8])
        page.get_by_role("link", name="Close, back to the list").click()
        expect(page.locator("#message-title")).to_have_count(0)


def test_live_tail_announces_new_messages_without_adding_rows(
    page: Page, uuids: list[str], portal_service: Sandbox
) -> None:
    page.goto("/messages/")
    page.locator("summary[aria-label='Live and sync']").click()
    page.get_by_role("checkbox", name="Live").check()
    portal_service.world.message("payment.failed", {"amount": 5})
    portal_service.world.advance(2)
    news = page.get_by_role("link", name="new, show")
    expect(news).to_be_visible()
    expect(page.locator("[data-message]")).to_have_count(4)
    news.click()
    expect(page.locator(".sd-event", has_text="Payment failed").first).to_be_visible()
