"""A real headless Chromium on the live portal. What the content policy blocks, or a script throws, fails the test."""

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
from tests.conftest import browser_of

# A busy machine is slow: whoever waits for what comes waits patiently, and a test asserts no time.
expect.set_options(timeout=20_000)
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium-headless-shell")
"""The engine without the rest of the browser, which takes half of the CPU."""

QUIET = [
    "--no-sandbox",  # Chromium refuses to run as root with its sandbox.
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def with_pdf_viewer(test: Any) -> Any:
    """Run a test in the whole browser, because only that one shows PDFs. One process runs all of them."""
    whole = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    return pytest.mark.xdist_group("pdf viewer")(
        pytest.mark.parametrize("chromium", [whole], indirect=True, scope="session")(test)
    )


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest) -> Iterator[Browser]:
    # Playwright's own event loop runs in this thread from now on, which Django takes for asynchronous code with
    # connections of its own. One left open here would be out of reach, until a forked process finds it and uses it.
    connections.close_all()
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=getattr(request, "param", CHROMIUM), args=QUIET)
        yield browser
        browser.close()


def is_complaint(message: ConsoleMessage) -> bool:
    """An error on the console, but not that a form was refused or its answer lost: those are answers like others."""
    return message.type == "error" and not re.search("(status of|Error Code) (409|422|504)", message.text)


@pytest.fixture
def page(chromium: Browser, live_server: LiveServer) -> Iterator[Page]:
    """A page at desk width, signed in as a servicer; relative addresses lead to the live portal."""
    context = chromium.new_context(
        base_url=live_server.url, viewport={"width": 1440, "height": 900}, reduced_motion="reduce"
    )
    session = browser_of(Role.SERVICER).cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    page = context.new_page()
    complaints: list[str] = []
    aborted: list[str] = []
    page.on("requestfailed", lambda one: one.failure == "net::ERR_ABORTED" and aborted.append(one.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: is_complaint(message) and complaints.append(message.text))
    yield page
    context.close()
    # Leaving a page aborts what it still loads, and htmx says so twice for each request.
    lost = [
        one for one in complaints if one.startswith(("htmx:afterRequest", "htmx:sendError", "htmx:sendAbort"))
    ]
    assert len(lost) <= 2 * len(aborted)
    assert [one for one in complaints if one not in lost] == []


def press(page: Page, *keys: str) -> None:
    """Press keys once the page's scripts listen: what it shows may be there before."""
    page.wait_for_load_state()
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until it has the focus, as somebody without a mouse does."""
    expect(wanted).to_be_visible()
    page.wait_for_load_state()
    for _ in range(150):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {wanted}")
