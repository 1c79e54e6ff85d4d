"""Pages while the lending service is slow or silent, beside the same pages while it answers at once."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from tests.bench.desk import Desk, running
from tests.bench.table import Row, bounded

DELAY = 0.5
SILENCE = 60
ROUNDS = 7
CHROMIUM = "/usr/bin/chromium"
COMPLETE = "() => !document.querySelector('[aria-busy=true]') && document.documentElement.dataset.ready !== undefined"


def rows() -> list[Row]:
    with running() as desk:
        pages = addresses(desk)
        found = [first_paint(desk, name, path) for name, path in pages.items()]
        needing = {name: pages[name] for name in ("borrower", "loan", "line of credit")}
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
            )
            found += [complete(desk, browser, name, path) for name, path in needing.items()]
            browser.close()
        found += [without_javascript(desk, name, path) for name, path in needing.items()]
        found += [silent(desk, name, path) for name, path in needing.items()]
        return [*found, home_alone(desk)]


def addresses(desk: Desk) -> dict[str, str]:
    """The pages that are measured: of the borrower with the most accounts, and of every list."""
    owner = desk.owners_by_accounts()[0]
    loan, line = desk.accounts("loan")[0], desk.accounts("line")[0]
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


def first_paint(desk: Desk, name: str, path: str) -> Row:
    """The page itself, whose panels load by themselves later."""
    undelayed = _median(desk, path, js=True)
    with _slow(desk, DELAY):
        delayed = _median(desk, path, js=True)
    return bounded(
        f"first paint of {name}, calls delayed by 500 ms (ms more than undelayed)", delayed, undelayed, 25
    )


def complete(desk: Desk, browser: Browser, name: str, path: str) -> Row:
    """Until the last panel of the page has its answer, in a real browser."""
    context = browser.new_context(base_url=desk.address)
    cookies = [
        {"name": each.name, "value": each.value or "", "url": desk.address} for each in desk.session.cookies
    ]
    context.add_cookies([*cookies, {"name": "js", "value": "1", "url": desk.address}])
    page = context.new_page()
    page.goto(path)

    def load() -> None:
        page.goto(path, wait_until="commit")
        page.wait_for_function(COMPLETE, polling=10)

    with _slow(desk, DELAY):
        took = statistics.median(_timed(desk, load) for _ in range(ROUNDS))
    context.close()
    label = f"{name} complete, calls delayed by 500 ms (ms more than the slowest call)"
    return bounded(label, took, DELAY * 1000, 200)


def without_javascript(desk: Desk, name: str, path: str) -> Row:
    """The whole page, for which the server waits: its calls go side by side."""
    with _slow(desk, DELAY):
        took = _median(desk, path, js=False)
    limit = DELAY * 1000 * 0.2 + 50
    return bounded(f"{name} without JavaScript (ms more than the slowest call)", took, DELAY * 1000, limit)


def silent(desk: Desk, name: str, path: str) -> Row:
    """How long a page without JavaScript waits for a service that says nothing."""
    copies = _median(desk, path, js=True)
    with _slow(desk, SILENCE):
        took = _median(desk, path, js=False)
    return bounded(f"{name} without JavaScript, service silent (ms more than with copies)", took, copies, 850)


def home_alone(desk: Desk) -> Row:
    """The first page while the service is silent: what needs somebody is known from copies."""
    with _slow(desk, SILENCE):
        took = _median(desk, "/", js=False)
    return bounded("home without JavaScript, service silent (ms)", took, 0, 1000)


def _median(desk: Desk, path: str, *, js: bool) -> float:
    desk.session.cookies.set("js", "1" if js else "")

    def load() -> None:
        assert desk.session.get(f"{desk.address}{path}", timeout=60).status_code == 200, path

    load()
    return statistics.median(_timed(desk, load) for _ in range(ROUNDS))


def _timed(desk: Desk, load: Callable[[], None]) -> float:
    """One run in milliseconds, with every record due to be asked for."""
    desk.forget_asking()
    started = time.perf_counter()
    load()
    return (time.perf_counter() - started) * 1000


@contextmanager
def _slow(desk: Desk, seconds: float) -> Iterator[None]:
    desk.slow(seconds)
    yield
    desk.slow(0)
