"""Compares the CPU of each page with that of a bare view of the same rows.

Both are signed in, compressed and behind the same middleware, with deployed static files. They run in turns, and the
CPU time of the answering thread is measured, so the ratios hold on a busy machine too. Lists, messages and search are
also compared with Django's admin, plain and tuned. Each page is also measured with empty caches, and pages with panels
until the last panel is filled.

The pages run with 300 borrowers and with a million (on PostgreSQL 20,000). BENCH_BORROWERS leaves out the million;
with BENCH_KEPT they are generated once.
"""

import gc
import gzip
import html
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.deployment import DEPLOYED, ROOT, SANDBOX, environment, free_port, prepare, process
from tests.bench.plain import WAYS, add_references, admin_address
from tests.bench.table import Row, compared, timed

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "15"))
COLD_TIMES, COMPLETE_TIMES = 2, 40  # 120 ms, where a bare view takes 3 ms.
ADMIN_TIMES, COUNTING_ADMIN_TIMES = 0.8, 0.1
"""The limits beside an admin, and beside one that counts or reads a million rows."""


class Size(NamedTuple):
    """The number of records in a database."""

    borrowers: int
    messages: int
    engine: str = "SQLite"

    @property
    def is_small(self) -> bool:
        return self.borrowers < 1_000

    def __str__(self) -> str:
        return (
            f"{self.borrowers:,} borrowers"
            if self.is_small
            else f"{self.borrowers:,} borrowers, {self.engine}"
        )


SMALL, LARGE = Size(300, 5_000), Size(1_000_000, 1_000_000)
ON_POSTGRES = Size(20_000, 100_000, "PostgreSQL")


class Page(NamedTuple):
    """A page with its limit as a multiple of the bare view, and the region if only that is requested."""

    address: str
    limit: float
    target: str = ""
    kind: str = "borrower"
    """The kind of the page's rows."""
    is_listed: bool = False
    """Whether the page is compared with the admin's list."""
    text: str = ""
    """The search text."""
    has_panels: bool = False
    why: str = ""
    """The reason if the limit is missed."""


def rows() -> list[Row]:
    return [row for size in sizes() for row in rows_of_size(size)]


def sizes() -> list[Size]:
    if os.environ.get("DATABASE_URL", "").startswith("postgres"):
        return [ON_POSTGRES]
    return [SMALL] if "BENCH_BORROWERS" in os.environ else [SMALL, LARGE]


def rows_of_size(size: Size) -> list[Row]:
    """Return the rows of one size, from a new process, because settings name one database."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure_size, size).result()


def measure_size(size: Size) -> list[Row]:
    with serving(size):
        import django

        django.setup()
        gc.freeze()
        return measure_pages(size)


def measure_pages(size: Size) -> list[Row]:
    add_promises()
    add_references()
    browser, pages = signed_in_browser(), PAGES | accounts()
    return [
        *(row for name, page in pages.items() for row in compare_with_references(browser, name, page, size)),
        *(compare_cold(browser, name, page, size) for name, page in pages.items()),
        *(compare_complete(browser, name, page, size) for name, page in pages.items() if page.has_panels),
    ]


# --- Pages ---

ADDED_UP = (
    "months, statuses or aging are added up. Building those statements takes longer than running them, so the sums are"
    " cached until a record changes, for ten seconds at most."
)
WHOLE_BORROWER = (
    "every account is decoded with its repayments for the timeline and the data checks, thirteen cards and tabs are"
    " drawn, and 25 statements are built. Decoding a saved answer once in a process saved a fifth to a quarter."
)
WHOLE_SCHEDULE = (
    "the chart draws every installment, and reading the whole schedule for the figures takes a quarter of it."
)
ROWS = "a third draws the cells of 25 rows, a quarter finds them; the bare view is not much cheaper."
MESSAGES = (
    "drawing 25 rows is a tenth. Building most of the twelve statements takes longer than running them; there were"
    " twenty, before links came from one join and the counts of days were cached."
)
SEARCHED = (
    "a statement for each kind finds matches; messages and notes are searched too. Statements that Django doesn’t build"
    " saved a fifth."
)
WHOLE_LINE = (
    "the line is decoded with its statements and repayments, and the panels of all three are drawn. Links without"
    " Django’s tag for query strings, and reading no more of the borrower than its name, saved a sixth."
)
FRAME = (
    "beside the same rows, ours has filters, views, columns, exports, and a navigation with counts. Reading the names"
    " of 25 borrowers without Django’s query took 0.15 ms instead of 1.7."
)
HOME = (
    "about 26 statements for five sections take a third of the CPU to build. Shared items are cached for ten seconds."
    " Caching the trail’s state and the worker’s too would save 6 %, but show a failed check later."
)
COLD = (
    "the first page after a while measures the service’s health and counts rows, with a million borrowers along whole"
    " indexes; home also adds up everything that is due. What waits is counted by the worker, not by pages."
)


TODAY = datetime.now(UTC).date()
YEAR_AGO = TODAY - timedelta(days=365)


def added_page(days: int) -> Page:
    """Return the list of borrowers added in the last days."""
    return Page(f"/borrowers/?from={TODAY - timedelta(days=days - 1)}&to={TODAY}", 4)


PAGES = {
    "home": Page("/", 4, why=HOME),
    "borrowers": Page("/borrowers/", 4, is_listed=True),
    "borrowers, rows alone": Page("/borrowers/", 3, target="borrower-rows", why=ROWS),
    "borrowers added in a day": added_page(1),
    "borrowers added in a week": added_page(7),
    "borrowers added in a month": added_page(30),
    "borrowers added in a quarter": added_page(91),
    "borrowers added in a year": added_page(365),
    "loans": Page("/loans/", 4, kind="loan", is_listed=True),
    "lines of credit": Page("/lines/", 4, kind="line", is_listed=True),
    "applications": Page("/applications/", 4, kind="application", is_listed=True),
    "repayments": Page("/repayments/", 4, kind="repayment", is_listed=True, why=ADDED_UP),
    "repayments of a year": Page(
        f"/repayments/?from={YEAR_AGO}&to={TODAY}", 4, kind="repayment", why=ADDED_UP
    ),
    "collections": Page("/collections/", 5, kind="loan", why=ADDED_UP),
    "messages": Page("/messages/?source=copy", 4, kind="message", is_listed=True, why=MESSAGES),
    "messages, before the service answers": Page("/messages/", 4, kind="message", why=MESSAGES),
    "messages, list alone": Page(
        "/messages/?source=copy", 3, target="messages", kind="message", why=MESSAGES
    ),
    "messages of a year": Page(
        f"/messages/?source=copy&start_date={YEAR_AGO}", 4, kind="message", why=MESSAGES
    ),
    "search": Page("/search/?q=llc", 4, is_listed=True, text="llc", why=SEARCHED),
    "suggestions": Page("/search/?q=llc", 3, target="suggestions", why=SEARCHED),
}


def accounts() -> dict[str, Page]:
    """Return the pages of the borrower with the most accounts, and of the longest loan and line."""
    from django.db.models import Count
    from django.db.models.functions import Length

    from portal.records.models import Account, Kind

    read = Account.objects.filter(kind__in=[Kind.LOAN, Kind.LINE], answer_at__isnull=False).order_by()
    owner = read.values("borrower_uuid").annotate(n=Count("pk")).order_by("-n", "borrower_uuid")[0]
    loan, line = (
        read.filter(kind=kind).order_by(Length("answer__body").desc())[0].get_absolute_url()
        for kind in (Kind.LOAN, Kind.LINE)
    )
    return {
        "borrower": Page(f"/borrowers/{owner['borrower_uuid']}/", 5, has_panels=True, why=WHOLE_BORROWER),
        "loan of 360 rows": Page(loan, 6, kind="loan", has_panels=True, why=WHOLE_SCHEDULE),
        "loan with all rows": Page(f"{loan}?rows=all", 20, kind="loan"),
        "line of credit": Page(line, 5, kind="line", has_panels=True, why=WHOLE_LINE),
    }


# --- Data ---


@contextmanager
def serving(size: Size) -> Iterator[None]:
    """Run the service of a database of this size, with both in the settings."""
    with tempfile.TemporaryDirectory() as name:
        saved_folder = os.environ.get("BENCH_KEPT", "")
        folder = Path(saved_folder) / f"cpu_{size.borrowers}" if saved_folder else Path(name)
        if not (folder / "sandbox.sqlite3").exists():
            folder.mkdir(parents=True, exist_ok=True)
            prepare(folder)
            fill(folder, size)
        port = free_port()
        os.environ |= environment(folder, port) | DEPLOYED | {"ALLOWED_HOSTS": "testserver"}
        os.environ |= {"LOG_LEVEL": "ERROR", "DJANGO_SETTINGS_MODULE": "portal.settings"}
        service = [*SANDBOX, "--db", str(folder / "sandbox.sqlite3"), "--port", str(port)]
        with process(service, dict(os.environ), port):
            yield


def fill(folder: Path, size: Size) -> None:
    """Add invented borrowers and messages up to this size."""
    settings = environment(folder, free_port())
    count = (
        "from portal.records.models import Borrower; from portal.messaging.models import Message; "
        "print(Borrower.objects.count(), Message.objects.count())"
    )
    shell = [sys.executable, "manage.py", "shell", "--no-imports", "-c", count]
    counts = subprocess.run(shell, env=settings, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    borrowers, messages = (wanted - int(one) for wanted, one in zip(size[:2], counts.split(), strict=True))
    numbers = ["--borrowers", str(max(borrowers, 0)), "--messages", str(max(messages, 0))]
    command = [sys.executable, "-m", "tests.bench.generate", *numbers]
    subprocess.run(command, env=settings, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)


def add_promises() -> None:
    """Add a promise to every second account that is past due, for today or a later day."""
    from django.utils import timezone

    from portal.collections.models import Channel, Contact, Outcome, Promise
    from portal.core.business_date import business_date
    from portal.records.models import IS_LATE, Account

    if Promise.objects.exists():
        return
    today, now = business_date(), timezone.now()
    by = {"person": "Owner, (555) 010-0199", "author_id": 1, "author_name": "Sam", "day": today}
    contacts, promises = [], []
    for number, one in enumerate(Account.objects.filter(IS_LATE).order_by("pk")[::2]):
        of = {"borrower_uuid": one.borrower_uuid, "account_kind": one.kind, "account_uuid": one.uuid}
        contacts.append(Contact(channel=Channel.PHONE, outcome=Outcome.PROMISED, **of, **by))
        on = {"day": today + timedelta(days=number % 3), "logged_on": today, "logged_at": now}
        promises.append(Promise(contact=contacts[-1], account_uuid=one.uuid, amount=500, **on))
    Contact.objects.bulk_create(contacts, batch_size=500)
    Promise.objects.bulk_create(promises, batch_size=500)


def signed_in_browser() -> Any:
    """Return a browser with a signed-in servicer."""
    from django.test import Client

    from portal.accounts.models import User

    browser = Client(headers={"accept-encoding": "gzip"})
    person = User.objects.get(username="servicer")
    browser.force_login(person, backend="allauth.account.auth_backends.AuthenticationBackend")
    browser.cookies["js"] = "1"
    return browser


def get(browser: Any, page: Page) -> None:
    headers = {"HX-Request": "true", "HX-Target": page.target} if page.target else {}
    fetch(browser, page.address, headers)


def fetch(browser: Any, address: str, headers: dict[str, str]) -> str:
    answer = browser.get(address, headers=headers)
    assert answer.status_code == 200, address
    is_packed = answer.headers.get("Content-Encoding") == "gzip"
    return (gzip.decompress(answer.content) if is_packed else answer.content).decode()


def mark_refreshed(page: Page) -> None:
    """Mark the page's records as just refreshed, so that only the page is measured."""
    from django.utils import timezone

    from portal.jobs.models import Worker

    now = timezone.now()
    answers_of(page).update(asked_at=now)
    page_records(page).filter(answer_at__isnull=False).update(checked_at=now)
    Worker.objects.update_or_create(pk="bench", defaults={"beat_at": now})


def page_records(page: Page) -> Any:
    """Return the records of the page's borrower."""
    from portal.records.models import Account

    _, area, owner, *_ = [*page.address.split("/"), ""]
    return Account.objects.filter(borrower_uuid__in=[owner] if area == "borrowers" and owner else [])


def answers_of(page: Page) -> Any:
    """Return what was said about these records and their lists."""
    from portal.records.models import Answer

    return Answer.objects.filter(uuid__in=page_records(page).values("uuid"))


# --- Measurements ---


def compare_with_references(browser: Any, name: str, page: Page, size: Size) -> list[Row]:
    """Compare a page with the bare view, and a list also with the admin's."""
    ways = WAYS if page.is_listed else ()
    others = [f"/bench/bare/{page.kind}/", *(admin_address(way, page.kind, page.text) for way in ways)]
    works: list[Callable[[], object]] = [
        partial(get, browser, one) for one in (page, *(Page(address, 1) for address in others))
    ]
    mark_refreshed(page)
    for work in works:
        work()
    # Request the page before each round: the admin takes so long that the page's caches expire.
    ours, least, *admins = timed(
        *works, rounds=ROUNDS if size.is_small else max(ROUNDS // 3, 3), clock=cpu_clock(), before=works[0]
    )
    found = [compared(f"{name}, {size}, times a bare view", ours, least, page.limit, why=page.why)]
    for way, admin_times in zip(ways, admins, strict=True):
        is_counting = way == "plain" and size.borrowers >= LARGE.borrowers
        limit = COUNTING_ADMIN_TIMES if is_counting else ADMIN_TIMES
        found.append(
            compared(f"{name}, {size}, times Django's admin, {way}", ours, admin_times, limit, why=FRAME)
        )
    return found


def cpu_clock() -> Callable[[], float]:
    """Return a clock of the CPU of this thread and of PostgreSQL's processes, if used."""
    from django.db import connection

    if connection.vendor == "sqlite":
        return time.thread_time
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        files = [Path(f"/proc/{pid}/schedstat") for (pid,) in cursor.fetchall()]

    def clock() -> float:
        return time.thread_time() + sum(int(one.read_text().split()[0]) for one in files) / 1e9

    return clock


def compare_cold(browser: Any, name: str, page: Page, size: Size) -> Row:
    """Compare a page with empty caches with the same page again. The worker's count of open items stays cached."""
    from django.core.cache import cache

    from portal.records import store

    mark_refreshed(page)

    def clear() -> None:
        cache.clear()
        for decoded in (store.decode_answer, store.decode_list_answer):
            decoded.cache_clear()

    work = partial(get, browser, page)
    first, again = timed(work, work, rounds=max(ROUNDS // 3, 3), clock=cpu_clock(), before=clear)
    return compared(f"{name}, {size}, caches empty, times the same again", first, again, COLD_TIMES, why=COLD)


def compare_complete(browser: Any, name: str, page: Page, size: Size) -> Row:
    """Measure the CPU of all threads until the last panel of a page is filled; the service answers at once."""
    due = re.compile(r'id="([\w-]+)" hx-get="([^"]*)" hx-trigger="due"')

    def load() -> None:
        for name, url in due.findall(fetch(browser, page.address, {})):
            address = html.unescape(url) or page.address
            fetch(browser, address, {"HX-Request": "true", "HX-Target": name})

    bare = partial(get, browser, Page(f"/bench/bare/{page.kind}/", 1))
    forget = partial(answers_of(page).update, asked_at=None)
    ours, least = timed(load, bare, rounds=max(ROUNDS // 2, 3), clock=time.process_time, before=forget)
    name = f"{name}, {size}, complete with its panels, times a bare view"
    return compared(name, ours, least, COMPLETE_TIMES, why=page.why)
