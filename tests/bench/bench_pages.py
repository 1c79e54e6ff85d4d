"""Pages while the lending service is slow or silent, beside the same pages while it answers at once."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.deployment import Portal, running
from tests.bench.table import Row, at_most, bounded

DELAYS = [float(each) for each in os.environ.get("BENCH_DELAYS", "0,0.1,0.5,1").split(",")]
"""Seconds of silence before each answer of the service."""
SILENCE = 60
PAGE_WAIT_MS = 40
"""So long a page waits for the service: ``PAGE_WAIT_SECONDS`` of portal.live.panels."""
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ITSELF = (
    "the page takes longer than that without any delay, although all its panels come in one answer, and a page waits up"
    " to 40 ms for answers before it is drawn."
)
COMPLETE = "() => !document.querySelector('[aria-busy=true]') && document.documentElement?.dataset.ready !== undefined"


def rows() -> list[Row]:
    with running() as portal:
        pages = addresses(portal)
        needing = {name: pages[name] for name in ("borrower", "loan", "line of credit")}
        found = [row for name, path in pages.items() for row in first_paint(portal, name, path)]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
            )
            found += [
                complete(portal, browser, name, path, delay)
                for name, path in needing.items()
                for delay in DELAYS
            ]
            browser.close()
        found += [without_javascript(portal, *page, delay) for page in needing.items() for delay in DELAYS]
        found += [silent(portal, name, path) for name, path in needing.items()]
        return [*found, home_alone(portal)]


def addresses(portal: Portal) -> dict[str, str]:
    """The pages that are measured: of the borrower with the most accounts, and of every list."""
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
    """The page itself, whose panels load by themselves later."""
    undelayed = _taken(portal, path, js=True)
    rows = [at_most(f"first paint of {name}, calls not delayed", undelayed, None)]
    for delay in DELAYS[1:]:
        with _slow(portal, delay):
            delayed = _taken(portal, path, js=True)
        label = f"first paint of {name}, calls delayed by {_words(delay)}, beside undelayed"
        rows.append(bounded(label, delayed, undelayed, PAGE_WAIT_MS + 25))
    return rows


def complete(portal: Portal, browser: Browser, name: str, path: str, delay: float) -> Row:
    """Until the last panel of the page has its answer, in a real browser."""
    page = signed_in_page(portal, browser)
    page.goto(path)

    def load() -> None:
        page.goto(path, wait_until="commit")
        page.wait_for_function(COMPLETE, polling=10)

    with _slow(portal, delay):
        took = [_timed(portal, load) for _ in range(ROUNDS)]
    page.context.close()
    return _beside_slowest(f"{name} complete, calls delayed by {_words(delay)}", took, delay, 120)


def signed_in_page(portal: Portal, browser: Browser) -> Page:
    """A tab of a browser that has nothing in its cache yet."""
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
    """The whole page, for which the server waits: its calls go side by side."""
    with _slow(portal, delay):
        took = _taken(portal, path, js=False)
    label = f"{name} without JavaScript, calls delayed by {_words(delay)}"
    return _beside_slowest(label, took, delay, delay * 1000 * 0.2 + 50)


def _beside_slowest(name: str, took: list[float], delay: float, limit: float) -> Row:
    """Beside the slowest call; without a delay only how long it took."""
    if not delay:
        return at_most(name.replace("delayed by 0 ms", "not delayed"), took, None)
    slowest = [delay * 1000] * len(took)
    return bounded(f"{name}, beside the slowest call", took, slowest, limit, why=ITSELF)


def silent(portal: Portal, name: str, path: str) -> Row:
    """How long a page without JavaScript waits for a service that says nothing."""
    copies = _taken(portal, path, js=True)
    with _slow(portal, SILENCE):
        took = _taken(portal, path, js=False)
    return bounded(f"{name} without JavaScript, service silent, beside with copies", took, copies, 850)


def home_alone(portal: Portal) -> Row:
    """The first page while the service is silent: what needs somebody is known from saved copies."""
    with _slow(portal, SILENCE):
        took = _taken(portal, "/", js=False)
    return at_most("home without JavaScript, service silent", took, 1000)


def _taken(portal: Portal, path: str, *, js: bool) -> list[float]:
    """Each run in milliseconds."""
    portal.session.cookies.set("js", "1" if js else "")

    def load() -> None:
        assert portal.session.get(f"{portal.address}{path}", timeout=60).status_code == 200, path

    load()
    return [_timed(portal, load) for _ in range(ROUNDS)]


def _words(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _timed(portal: Portal, load: Callable[[], None]) -> float:
    """One run in milliseconds, with every record due to be asked for."""
    portal.forget_asking()
    started = time.perf_counter()
    load()
    return (time.perf_counter() - started) * 1000


@contextmanager
def _slow(portal: Portal, seconds: float) -> Iterator[None]:
    portal.slow(seconds)
    yield
    portal.slow(0)
