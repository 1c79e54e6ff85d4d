"""Compares pages while the lending service is slow or silent with the same pages while it answers at once."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.deployment import Portal, running_portal
from tests.bench.table import Row, at_most, bounded

DELAYS = [float(each) for each in os.environ.get("BENCH_DELAYS", "0,0.1,0.5,1").split(",")]
"""Seconds of silence before each answer of the service."""
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
WHY = "the page takes longer than that without any delay: it is drawn first, and its panels then call the service."
COMPLETE = "() => !document.querySelector('[aria-busy=true]') && document.documentElement?.dataset.ready !== undefined"


def rows() -> list[Row]:
    with running_portal() as portal:
        pages = addresses(portal)
        panel_pages = {name: pages[name] for name in ("borrower", "loan", "line of credit")}
        found = [row for name, path in pages.items() for row in first_paint(portal, name, path)]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
            )
            found += [
                complete_page(portal, browser, name, path, delay)
                for name, path in panel_pages.items()
                for delay in DELAYS
            ]
            browser.close()
        found += [
            without_javascript(portal, *page, delay) for page in panel_pages.items() for delay in DELAYS
        ]
        return found


def addresses(portal: Portal) -> dict[str, str]:
    """Return the addresses of home, of every list, of the borrower with the most accounts, of a loan and of a line."""
    owner = portal.owners_by_accounts()[0]
    loan, line = portal.accounts("loan")[0], portal.accounts("line")[0]
    return {
        "home": "/",
        "borrowers": "/borrowers/",
        "borrower": f"/borrowers/{owner}/",
        "loans": "/loans/",
        "loan": "/borrowers/{}/loans/{}/".format(*loan),
        "lines of credit": "/lines/",
        "line of credit": "/borrowers/{}/lines/{}/".format(*line),
        "applications": "/applications/",
        "repayments": "/repayments/",
    }


def first_paint(portal: Portal, name: str, path: str) -> list[Row]:
    """Measure a page before its panels load."""
    undelayed = _page_times(portal, path)
    rows = [at_most(f"first paint of {name}, calls not delayed", undelayed, None)]
    for delay in DELAYS[1:]:
        with _delayed(portal, delay):
            delayed = _page_times(portal, path)
        label = f"first paint of {name}, calls delayed by {_words(delay)}, beside undelayed"
        rows.append(bounded(label, delayed, undelayed, 25))
    return rows


def complete_page(portal: Portal, browser: Browser, name: str, path: str, delay: float) -> Row:
    """Measure a page until its last panel is filled, in a real browser."""
    page = signed_in_page(portal, browser)
    page.goto(path)

    def load() -> None:
        page.goto(path, wait_until="commit")
        page.wait_for_function(COMPLETE, polling=10)

    with _delayed(portal, delay):
        times = [_time_run(portal, load) for _ in range(ROUNDS)]
    page.context.close()
    return _compare_with_slowest_call(f"{name} complete, calls delayed by {_words(delay)}", times, delay, 120)


def signed_in_page(portal: Portal, browser: Browser) -> Page:
    """Open a signed-in page with an empty browser cache."""
    context = browser.new_context(base_url=portal.address)
    secure = portal.address.replace("http:", "https:")
    context.add_cookies(
        [
            {"name": each.name, "value": each.value or "", "url": secure, "secure": True}
            for each in portal.session.cookies
            if each.name != "js"
        ]
    )
    context.add_cookies([{"name": "js", "value": "1", "url": portal.address}])
    return context.new_page()


def without_javascript(portal: Portal, name: str, path: str, delay: float) -> Row:
    """Measure a whole page after its Refresh button, for which the server makes its calls in parallel."""
    with _delayed(portal, delay):
        times = _page_times(portal, f"{path}?refresh=1")
    label = f"{name} refreshed without JavaScript, calls delayed by {_words(delay)}"
    return _compare_with_slowest_call(label, times, delay, delay * 1000 * 0.2 + 50)


def _compare_with_slowest_call(name: str, times: list[float], delay: float, limit: float) -> Row:
    """Compare the times with the slowest call, if calls are delayed."""
    if not delay:
        return at_most(name.replace("delayed by 0 ms", "not delayed"), times, None)
    slowest = [delay * 1000] * len(times)
    return bounded(f"{name}, beside the slowest call", times, slowest, limit, why=WHY)


def _page_times(portal: Portal, path: str) -> list[float]:
    """Return the milliseconds of each run."""

    def load() -> None:
        assert portal.session.get(f"{portal.address}{path}", timeout=60).status_code == 200, path

    load()
    return [_time_run(portal, load) for _ in range(ROUNDS)]


def _words(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _time_run(portal: Portal, load: Callable[[], None]) -> float:
    """Return the milliseconds of one run, with every record due for a refresh."""
    portal.forget_refreshes()
    started = time.perf_counter()
    load()
    return (time.perf_counter() - started) * 1000


@contextmanager
def _delayed(portal: Portal, seconds: float) -> Iterator[None]:
    portal.delay_service(seconds)
    yield
    portal.delay_service(0)
