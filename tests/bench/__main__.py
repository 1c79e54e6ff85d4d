"""Measures pages of a large invented portfolio: ``python -m tests.bench [--accounts N] [--save]``.

The database is SQLite's in a temporary folder, or made on the server of DATABASE_URL; BENCH_KEPT names a folder or a
database to use again. With ``--save`` the table in README.md beside this file is replaced.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.bench.database import close_connections
from tests.bench.generate import generate

README = Path(__file__).with_name("README.md")
ROUNDS = 5
LIST_MS, ORDER_MS = 150, 1_000
MAX_CHOICES = 3
"""So many choices of each filter are measured."""
TEXTS = (
    "northwind cedar",
    "ortiz",
    "llc",
    "austin",
    "no",
    "$25000",
    "past_due:>500",
    "state:TX llc",
    "city:austin",
)
MESSAGE_FILTERS = (
    "event=payment.failed",
    "status=FAILED",
    "product=LOAN",
    "payment=FAILED",
    "least=1000",
    "q=zebrawood",
)
MISTYPED = ("northwynd", "summitt baking", "ortis", "linqvist")


class Row(NamedTuple):
    """Pages of one sort: their addresses, and the limit of their 95th percentile in milliseconds."""

    name: str
    addresses: list[str]
    limit: int | None = LIST_MS
    target: str = ""
    """The part of the page that is requested, if not all."""


class Result(NamedTuple):
    """What one row took, in milliseconds; ``times_help`` is CPU as a multiple of the start page of Help."""

    row: Row
    median: float
    p95: float
    times_help: float

    def __str__(self) -> str:
        met = "" if self.row.limit is None else "yes" if self.p95 <= self.row.limit else "**no**"
        return (
            f"| {self.row.name} | {len(self.row.addresses)} | {self.median:.0f} | {self.p95:.0f} "
            f"| {self.row.limit or ''} | {met} | {self.times_help:.1f} × |"
        )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.bench", description=__doc__)
    parser.add_argument("--accounts", type=int, default=100_000, metavar="N")
    parser.add_argument("--save", action="store_true")
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, benchmark_database(Path(folder)) as engine:
        from portal.records.models import Account

        if not Account.objects.exists():
            generate(wanted.accounts * 2 // 3, wanted.accounts)  # Two borrowers have three accounts.
        load = os.getloadavg()[0]
        results = measure()
        title = f"{engine}, {Account.objects.count():,} accounts and as many messages, {datetime.now(UTC):%Y-%m-%d}"
    table = "\n".join(
        [
            f"### {title}",
            "",
            f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load before {load:.1f}.",
            "",
            "| What | Pages | Median, ms | 95 %, ms | Limit, ms | Met | CPU, times the start page of Help |",
            "|---|--:|--:|--:|--:|---|--:|",
            *map(str, results),
        ]
    )
    print(table)  # noqa: T201 - a command line tool
    if wanted.save:
        save(engine, table)
    return 0 if all(one.row.limit is None or one.p95 <= one.row.limit for one in results) else 1


@contextmanager
def benchmark_database(folder: Path) -> Iterator[str]:
    """Create the portal's tables for the block; yield the name of the engine."""
    os.environ |= {"DEBUG": "on", "ENV_FILE": os.devnull, "DJANGO_SETTINGS_MODULE": "portal.settings"}
    import django
    from django.test.utils import override_settings

    django.setup()
    from django.db import connection

    kept, before = os.environ.get("BENCH_KEPT", ""), connection.settings_dict["NAME"]
    file, database = str(Path(kept or folder) / "bench.sqlite3"), kept or f"bench_{os.getpid()}"
    connection.settings_dict["TEST"]["NAME"] = file if connection.vendor == "sqlite" else database
    with override_settings(DEBUG=False, ALLOWED_HOSTS=["testserver"]):  # With DEBUG every query is stored.
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False, keepdb=bool(kept))
        try:
            yield connection.display_name
        finally:
            close_connections()
            connection.creation.destroy_test_db(before, verbosity=0, keepdb=bool(kept))


def measure() -> list[Result]:
    browser = signed_in_browser()
    help_cpu = statistics.median(request(browser, "/help/")[1] for _ in range(20))
    return [measure_row(browser, row, help_cpu) for row in rows()]


def measure_row(browser: Any, row: Row, help_cpu: float) -> Result:
    """Request each address in turns; an extra first round only warms the caches."""
    times = [[request(browser, address, row.target) for address in row.addresses] for _ in range(ROUNDS + 1)][
        1:
    ]
    walls = [wall for each in times for wall, _ in each]
    if os.environ.get("BENCH_EACH"):
        for address, *found in zip(row.addresses, *times, strict=True):
            sys.stderr.write(f"{statistics.median(wall for wall, _ in found):9.1f}  {address}\n")
    p95 = statistics.quantiles(walls, n=20)[-1]
    cpu = statistics.median(cpu for each in times for _, cpu in each)
    return Result(row, statistics.median(walls), p95, cpu / help_cpu)


def request(browser: Any, address: str, target: str = "") -> tuple[float, float]:
    """The milliseconds of a page, and those of this thread's CPU."""
    headers = {"HX-Request": "true", "HX-Target": target} if target else {}
    wall, cpu = time.perf_counter(), time.thread_time()
    answer = browser.get(address, headers=headers)
    assert answer.status_code == 200, f"{address}: {answer.status_code}"
    return (time.perf_counter() - wall) * 1000, (time.thread_time() - cpu) * 1000


def rows() -> list[Row]:
    from portal.applications.list_page import APPLICATIONS
    from portal.borrowers.list_page import BORROWERS
    from portal.collections.list_page import WORKLIST
    from portal.credit_lines.list_page import LINES
    from portal.loans.list_page import LOANS
    from portal.repayments.list_page import REPAYMENTS

    found = []
    for page in (BORROWERS, LOANS, LINES, APPLICATIONS, REPAYMENTS, WORKLIST):
        found += [
            Row(f"{page.title}: first page", [page.url]),
            Row(f"{page.title}: each filter alone", list(filtered(page))),
            Row(f"{page.title}: other orders", list(ordered(page)), ORDER_MS),
        ]
    return [
        *found,
        Row("Messages: first page", ["/messages/?source=copy"], target="messages"),
        Row(
            "Messages: each filter alone",
            [f"/messages/?source=copy&{one}" for one in MESSAGE_FILTERS],
            target="messages",
        ),
        Row("Search", [search(text) for text in TEXTS]),
        Row("Search, mistyped", [search(text) for text in MISTYPED]),
        Row("Suggestions", [search(text) for text in TEXTS], target="suggestions"),
        Row("Home", ["/"], None),
        Row("A borrower, a loan, a line", record_addresses(), None),
    ]


def search(text: str) -> str:
    return f"/search/?{urlencode({'q': text})}"


def filtered(page: Any) -> Iterator[str]:
    """A list with each filter alone."""
    samples = {"date": (datetime.now(UTC) - timedelta(days=30)).date().isoformat(), "amount": "1000"}
    for one in page.filters:
        choices = [value for value, _ in one.options() if value][:MAX_CHOICES] or [
            samples.get(one.control, "")
        ]
        yield from (f"{page.url}?{urlencode({one.name: choice})}" for choice in choices if choice)


def ordered(page: Any) -> Iterator[str]:
    """The first page of a list in each order but the default, both ways."""
    default, *others = page.sorts
    yield f"{page.url}?sort=-{default}"
    yield from (f"{page.url}?sort={dash}{name}" for name in others for dash in ("", "-"))


def record_addresses() -> list[str]:
    from portal.records.models import Account, Borrower

    records = [
        Borrower.objects.first(),
        *(Account.objects.filter(kind=kind).first() for kind in ("loan", "line")),
    ]
    return [record.get_absolute_url() for record in records if record]


def signed_in_browser() -> Any:
    """A browser with a signed-in supervisor."""
    from django.test import Client

    from portal.accounts.models import User

    user, _ = User.objects.get_or_create(username="bench", defaults={"role": "supervisor"})
    browser = Client()
    browser.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return browser


def save(engine: str, table: str) -> None:
    """Replace the table of this engine in README.md."""
    start, end = f"<!-- {engine} -->\n", f"<!-- end of {engine} -->"
    before, _, rest = README.read_text().partition(start)
    README.write_text(f"{before}{start}\n{table}\n\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
