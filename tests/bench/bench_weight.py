"""Measures how much a browser receives for a page, compressed and with headers: at the first and the next visit."""

from typing import Any

from playwright.sync_api import Browser, sync_playwright

from tests.bench.bench_pages import CHROMIUM, addresses, signed_in_page
from tests.bench.deployment import Portal, running_portal
from tests.bench.table import Row, at_most

FIRST_KB, NEXT_KB = 130, 12


def rows() -> list[Row]:
    with running_portal() as portal, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        found = [
            row for name, path in addresses(portal).items() for row in weigh_page(portal, browser, name, path)
        ]
        browser.close()
        return found


def weigh_page(portal: Portal, browser: Browser, name: str, path: str) -> list[Row]:
    """Measure all that is transferred until the last panel is filled: the page, its files and its panels.

    Documents are left out: a statement opens automatically, and the service decides how large it is.
    """
    page = signed_in_page(portal, browser)
    devtools = page.context.new_cdp_session(page)
    devtools.send("Network.enable")
    received: list[float] = []
    documents: set[str] = set()

    def requested(event: dict[str, Any]) -> None:
        if event["request"]["url"].endswith("/pdf/"):
            documents.add(event["requestId"])

    def finished(event: dict[str, Any]) -> None:
        if event["requestId"] not in documents:
            received.append(event["encodedDataLength"] / 1000)

    devtools.on("Network.requestWillBeSent", requested)
    devtools.on("Network.loadingFinished", finished)
    weights = []
    for _ in range(2):
        received.clear()
        page.goto(path, wait_until="networkidle")
        weights.append(sum(received))
    page.context.close()
    return [
        at_most(f"{name}, first visit", weights[0], FIRST_KB, unit="kB"),
        at_most(f"{name}, next visit", weights[1], NEXT_KB, unit="kB"),
    ]
