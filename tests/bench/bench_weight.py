"""What a page weighs on its way to a browser, compressed and with its headers: at the first visit and at the next."""

from typing import Any

from playwright.sync_api import Browser, sync_playwright

from tests.bench.bench_pages import CHROMIUM, addresses, signed_in_page
from tests.bench.deployment import Portal, running
from tests.bench.table import Row, at_most

FIRST_KB, NEXT_KB = 130, 12


def rows() -> list[Row]:
    with running() as portal, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        found = [
            row for name, path in addresses(portal).items() for row in weighed(portal, browser, name, path)
        ]
        browser.close()
        return found


def weighed(portal: Portal, browser: Browser, name: str, path: str) -> list[Row]:
    """All that is transferred until the last panel has its answer: the page, what it is made of, its panels.

    Documents are left out: a statement opens by itself, and its file is as large as the service makes it.
    """
    page = signed_in_page(portal, browser)
    watched = page.context.new_cdp_session(page)
    watched.send("Network.enable")
    received: list[float] = []
    documents: set[str] = set()

    def requested(event: dict[str, Any]) -> None:
        if event["request"]["url"].endswith("/pdf/"):
            documents.add(event["requestId"])

    def finished(event: dict[str, Any]) -> None:
        if event["requestId"] not in documents:
            received.append(event["encodedDataLength"] / 1000)

    watched.on("Network.requestWillBeSent", requested)
    watched.on("Network.loadingFinished", finished)
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
