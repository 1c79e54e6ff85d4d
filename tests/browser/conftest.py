"""A headless Chromium on the live portal: script errors and content policy violations fail the test."""

import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from portal.accounts.roles import Role
from servicing.sandbox import Sandbox
from tests.conftest import browser_of, wait_for_requests

# Generous, because a busy machine is slow; no test asserts how long something takes.
expect.set_options(timeout=20_000)
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium-headless-shell")
"""The headless shell, which takes half the CPU of the full browser."""

QUIET = [
    "--no-sandbox",  # Chromium refuses to run as root with its sandbox.
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def with_pdf_viewer(test: Any) -> Any:
    """Run a test in the full browser, which can show PDFs. One process runs all of these tests."""
    full = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    return pytest.mark.xdist_group("pdf viewer")(
        pytest.mark.parametrize("chromium", [full], indirect=True, scope="session")(test)
    )


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest) -> Iterator[Browser]:
    # Playwright runs its event loop in this thread, so Django treats the code as asynchronous, with its own
    # database connections. One left open here couldn't be closed later, and a forked process would use it.
    connections.close_all()
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=getattr(request, "param", CHROMIUM), args=QUIET)
        yield browser
        browser.close()


def is_unexpected_error(message: ConsoleMessage) -> bool:
    """Whether this is an error other than the status of a rejected form, a document out of reach or a lost answer."""
    return message.type == "error" and not re.search("(status of|Error Code) (409|422|502|504)", message.text)


@pytest.fixture
def page(chromium: Browser, live_server: LiveServer, portal_service: Sandbox) -> Iterator[Page]:
    """A desktop page signed in as a servicer; relative addresses lead to the live portal."""
    context = chromium.new_context(
        base_url=live_server.url, viewport={"width": 1440, "height": 900}, reduced_motion="reduce"
    )
    session = browser_of(Role.SERVICER).cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    page = context.new_page()
    errors: list[str] = []
    aborted: list[str] = []
    page.on(
        "requestfailed", lambda request: request.failure == "net::ERR_ABORTED" and aborted.append(request.url)
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: is_unexpected_error(message) and errors.append(message.text))
    yield page
    context.close()
    wait_for_requests()  # While the service that they call is there.
    # Leaving a page aborts its open requests, and htmx logs each of them twice.
    htmx_errors = [
        error
        for error in errors
        if error.startswith(("htmx:afterRequest", "htmx:sendError", "htmx:sendAbort"))
    ]
    assert len(htmx_errors) <= 2 * len(aborted)
    assert [error for error in errors if error not in htmx_errors] == []


def press(page: Page, *keys: str) -> None:
    """Press keys once the page's scripts are listening, which may be after its content is visible."""
    page.wait_for_load_state()
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until the element has the focus, as a user without a mouse would."""
    expect(wanted).to_be_visible()
    page.wait_for_load_state()
    for _ in range(150):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {wanted}")
