"""The component page in a browser: keyboard shortcuts, focus, themes, narrow screens, and checks by axe."""

import re

import pytest
from django.conf import settings
from django.urls import include, path
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from portal import urls
from portal.accounts.roles import Role
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import find_problems
from tests.conftest import browser_of

# The portal has the component page only in DEBUG, so these tests add it.
urlpatterns = [*urls.urlpatterns, path("components/", include("portal.ui.urls"))]
pytestmark = [pytest.mark.browser, pytest.mark.urls(__name__)]


def test_the_page_passes_axe(page: Page) -> None:
    page.goto("/components/")
    assert find_problems(page) == []


@pytest.mark.parametrize("width", [1024, 320])
def test_the_page_does_not_scroll_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/components/")
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_controls_are_at_least_24_pixels(page: Page) -> None:
    page.goto("/components/")
    small = """() => [...document.querySelectorAll('button, summary, .sd-btn, .sd-tabs a, .sd-nav a, select')]
        .map(e => [e, e.getBoundingClientRect()])
        .filter(([, box]) => box.width && (box.width < 24 || box.height < 24))
        .map(([e]) => e.outerHTML.slice(0, 120))"""
    assert page.evaluate(small) == []


def test_the_first_tab_stop_skips_to_the_content(page: Page) -> None:
    page.goto("/loans/")
    page.keyboard.press("Tab")
    expect(page.locator(".sd-skip")).to_be_focused()
    expect(page.locator(".sd-skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_a_rejected_form_focuses_its_error_summary(page: Page) -> None:
    page.goto("/components/")
    summary = page.locator("[data-focus]").first
    expect(summary).to_be_focused()
    summary.get_by_role("link", name="Phone").click()
    expect(page.get_by_label("Phone").first).to_be_focused()


def test_slash_focuses_search_and_question_mark_opens_shortcuts(page: Page) -> None:
    page.goto("/components/")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()
    expect(page.get_by_text("Next account of the worklist")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()
    page.keyboard.type("?/")
    expect(page.get_by_role("combobox", name="Search")).to_have_value("?/")


def test_shortcuts_can_be_turned_off(page: Page) -> None:
    page.goto("/components/")
    page.evaluate("document.body.dataset.shortcuts = 'off'")
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Search")).not_to_be_focused()


def test_j_and_k_move_between_rows(page: Page) -> None:
    page.goto("/components/")
    rows = page.locator("[data-row] a")
    page.keyboard.press("j")
    expect(rows.first).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(rows.first).to_be_focused()


def test_escape_closes_a_menu_and_restores_the_focus(page: Page) -> None:
    page.goto("/components/")
    menu = page.locator(".sd-header summary")
    menu.click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
    expect(menu).to_be_focused()


def test_copying_an_id_is_announced(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/components/")
    page.locator("[data-copy^='3f2b8c1e']").first.click()
    expect(page.locator("#live")).to_have_text("Copied")
    # Scripts can't read the clipboard, so the ID is pasted as a user would do it.
    search = page.locator("input[name=q]").first
    search.click()
    page.keyboard.press("Control+V")
    expect(search).to_have_value("3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364")


def test_toasts_are_shown_as_text(page: Page) -> None:
    page.goto("/components/")
    toast = {"text": "<b>Saved</b>", "url": "/audit/", "link": "Open the audit entry"}
    page.evaluate("toast => htmx.trigger(document.body, 'toasts', {value: [toast]})", toast)
    shown = page.locator("#toasts .sd-toast")
    expect(shown).to_contain_text("<b>Saved</b>")
    expect(shown.get_by_role("link")).to_have_attribute("href", "/audit/")
    shown.get_by_role("button", name="Close").click()
    expect(shown).to_have_count(0)


def test_closing_a_dialog_restores_the_focus(page: Page) -> None:
    page.goto("/components/")
    opener = page.locator("main .sd-btn-primary").first
    opener.focus()
    page.evaluate(
        """() => {
            htmx.trigger(document.body, 'htmx:beforeRequest', {target: document.querySelector('#dialog')});
            htmx.swap('#dialog', "<div id='dialog'><dialog class='sd-dialog' aria-label='Sure?'>"
                + "<a href='/' data-close autofocus>Don’t send</a></dialog></div>", {swapStyle: 'outerHTML'});
        }"""
    )
    expect(page.get_by_role("link", name="Don’t send")).to_be_focused()
    page.get_by_role("link", name="Don’t send").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(opener).to_be_focused()


def background_color(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_a_chosen_theme_applies_at_once_and_persists(page: Page) -> None:
    page.goto("/components/")
    page.locator(".sd-header summary").click()
    with page.expect_response("**/theme/"):
        page.get_by_role("button", name="Dark", exact=True).click()
    assert background_color(page) == "rgb(14, 17, 21)"
    page.reload()
    assert background_color(page) == "rgb(14, 17, 21)"


def test_the_automatic_theme_follows_the_system(page: Page) -> None:
    page.goto("/components/")
    page.evaluate("document.documentElement.dataset.theme = 'auto'")
    assert background_color(page) == "rgb(245, 246, 248)"
    page.emulate_media(color_scheme="dark")
    assert background_color(page) == "rgb(14, 17, 21)"


def test_navigation_is_behind_a_button_on_a_narrow_screen(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/components/")
    areas = page.get_by_role("navigation", name="Areas")
    expect(areas).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(areas).to_be_visible()
    page.keyboard.press("Escape")
    expect(areas).to_be_hidden()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SERVICER])
def test_the_header_does_not_overlap_on_a_narrow_screen(
    page: Page, live_server: LiveServer, role: Role
) -> None:
    session = browser_of(role).cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}]
    )
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/")
    brand = page.locator(".sd-header .sd-brand").bounding_box()
    button = page.locator(".sd-tools > .sd-btn").first.bounding_box()
    assert brand
    assert button
    assert brand["x"] + brand["width"] < button["x"]
    assert page.get_by_role("link", name="New borrower").count() == (role == Role.SERVICER)


def test_the_page_works_without_javascript(page: Page, chromium: Browser, live_server: LiveServer) -> None:
    signed_in = page.context.storage_state()
    plain_page = chromium.new_context(java_script_enabled=False, storage_state=signed_in).new_page()
    plain_page.goto(f"{live_server.url}/components/")
    plain_page.locator(".sd-header summary").click()
    expect(plain_page.get_by_role("button", name="Sign out")).to_be_visible()
    expect(plain_page.locator(".sd-copy").first).to_be_hidden()
    plain_page.context.close()


def test_the_current_tab_is_visible_on_a_phone(page: Page, portal_service: Sandbox) -> None:
    page.set_viewport_size({"width": 390, "height": 3000})
    page.goto(f"{given.borrower(portal_service).get_absolute_url()}?tab=history")
    current = page.locator(".sd-tabs [aria-current]")
    expect(current).to_have_text(re.compile("History"))
    expect(current).to_be_in_viewport(ratio=0.9)
