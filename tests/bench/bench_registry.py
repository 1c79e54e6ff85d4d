"""Measures search, lists, memory, exports and imports with a million borrowers.

Lists are compared with Django's admin on the same rows. BENCH_BORROWERS sets the number of borrowers. BENCH_EACH=1
prints the median of each address. With BENCH_KEPT the borrowers are generated once.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.bench.database import benchmark_database
from tests.bench.memory import resident
from tests.bench.plain import bare, change_list
from tests.bench.table import Row, at_least, at_most, bounded, compared, p95, timed

BORROWERS = int(os.environ.get("BENCH_BORROWERS", "1000000"))
SEARCH_MS, LIST_MS, MEMORY_MB, LINES, EXPORTED = 50, 100, 200, 8_000, 20_000
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
IMPORTED = 10_000
FIRST_MS, GROWN_MB = 1000, 50
# With few rows the admin's simpler page is faster; the limit applies to many.
MANY = 100_000
MANY_TEXTS = (
    "four digits and names of two or three words are in thousands of texts, and their trigrams in hundreds of"
    " thousands, both of borrowers and of people. Where few match, the index answers alone."
)
SPANS = (
    "a range of days scans an index of all borrowers, and a common name of two words is searched in thousands of"
    " texts. The index has the other filters’ columns, so that filters together read no rows."
)
DURABLE = (
    "most of it is writing the record to about fifteen indexes, each needed by a sort, filter or search, and waiting"
    " for the disk. One statement for a hundred records took 0.4 of the CPU of a statement for each."
)
COMPARED = (
    "each line is compared with its record, two thousand at a time; on another machine it was 16,500 lines a second"
    " (November 22)."
)
CELLS = (
    "a third of a borrower’s row is its totals, and each cell is checked for formulas. Writing a hundred rows at once,"
    " reading records without the model and only the fields of shown columns, and adding totals in one pass saved a"
    " tenth to two thirds."
)


def rows() -> list[Row]:
    with (
        tempfile.TemporaryDirectory() as folder,
        benchmark_database(Path(folder) / "registry.sqlite3") as engine,
    ):
        from portal.records.models import Account

        if not Account.objects.exists():
            insert_borrowers(BORROWERS)
        return measure(Registry(random.Random(20261120)), f"{BORROWERS:,} borrowers, {engine}")


def insert_borrowers(borrowers: int) -> None:
    """Generate borrowers in another process, so that this one stays as small as a web process."""
    from tests.databases import database_url, forget_connections

    forget_connections()
    command = [sys.executable, "-m", "tests.bench.generate", "--borrowers", str(borrowers)]
    subprocess.run(
        command, env=os.environ | {"DATABASE_URL": database_url()}, stdout=subprocess.DEVNULL, check=True
    )


def measure(registry: "Registry", size: str) -> list[Row]:
    """Measure each kind of request, then memory, an export and an import."""
    admin = admin_list()
    browser = signed_in_browser()
    searches = registry.searches()
    return [
        measure_p95(f"suggestions, {size}, p95", browser, searches, "suggestions", SEARCH_MS, MANY_TEXTS),
        measure_p95(f"page of results, {size}, p95", browser, searches, "", LIST_MS, MANY_TEXTS),
        measure_p95(f"mistyped names, {size}, p95", browser, registry.mistyped(), "", LIST_MS, MANY_TEXTS),
        measure_p95(
            f"filters of borrowers, {size}, p95", browser, registry.lists(), "borrower-rows", LIST_MS, SPANS
        ),
        *(measure_sorts(f"{area}, each sort, {size}, p95", browser, area) for area in orders()),
        *compare_with_admin(browser, admin, size),
        memory(f"private memory of the process that answered, {size}"),
        *measure_export(browser),
        *measure_import(f"import of ids, {size}"),
    ]


def orders() -> dict[str, tuple[str, list[str]]]:
    """Return each list with the ID of its rows and its sorts."""
    from portal.applications.list_page import APPLICATIONS
    from portal.borrowers.list_page import BORROWERS
    from portal.credit_lines.list_page import LINES
    from portal.loans.list_page import LOANS
    from portal.repayments.list_page import REPAYMENTS

    pages = {
        "borrowers": BORROWERS,
        "loans": LOANS,
        "lines": LINES,
        "applications": APPLICATIONS,
        "repayments": REPAYMENTS,
    }
    return {area: (one.rows_id, list(one.sorts)) for area, one in pages.items()}


def measure_sorts(name: str, browser: Any, area: str) -> Row:
    """Measure the first and the last page of each sort, in both directions."""
    target, sorts = orders()[area]
    states = [
        f"sort={dash}{sort}{page}" for sort in sorts for dash in ("", "-") for page in ("", "&page=9999999")
    ]
    return measure_p95(name, browser, [f"/{area}/?{state}" for state in states], target, LIST_MS)


COLUMNS = ["name", "legal_form", "state", "city", "past_due", "decision", "updated_at"]


def admin_list() -> Callable[..., None]:
    """Return a function that renders the list of borrowers in Django's admin."""
    from portal.records.models import Borrower

    ways = {"list_filter": ["state"], "search_fields": ["search_text"], "ordering": ["-updated_at"]}
    return change_list(Borrower, COLUMNS, **ways)


def compare_with_admin(browser: Any, admin: Callable[..., None], size: str) -> list[Row]:
    """Compare whole pages with the admin's of the same rows, and with a bare query in a bare template."""
    from portal.records.models import Kind
    from portal.records.rows import active_records

    borrowers = active_records(Kind.BORROWER).order_by("-updated_at", "-id")
    pages = {
        "list of borrowers": ("/borrowers/", {}, borrowers),
        "list of borrowers in Texas": (
            "/borrowers/?state=TX",
            {"state__exact": "TX"},
            borrowers.filter(state="TX"),
        ),
        "search": (
            "/search/?q=northwind",
            {"q": "northwind"},
            borrowers.filter(search_text__icontains="northwind"),
        ),
    }
    found = []
    for name, (address, asked, rows) in pages.items():
        portal_times, admin_times, least = timed(
            partial(browser.get, address),
            partial(admin, asked),
            bare(rows.values_list(*COLUMNS)),
            rounds=ROUNDS,
        )
        found += [
            compared(
                f"{name}, {size}, times Django's admin",
                portal_times,
                admin_times,
                1 if BORROWERS >= MANY else None,
            ),
            compared(f"{name}, {size}, times a bare query in a bare template", portal_times, least, None),
        ]
    return found


def memory(name: str) -> Row:
    """Measure the memory of this process after all requests."""
    return at_most(name, resident(), MEMORY_MB, unit="MB")


def measure_export(browser: Any) -> list[Row]:
    """Measure the CSV of all borrowers: time to the first row, CPU, and peak memory."""
    idle = resident()
    started, cpu_started = time.perf_counter(), time.thread_time()
    lines = iter(browser.get("/borrowers/export/?all=1").streaming_content)
    for _ in range(3):  # Skip the byte order mark and the headings, up to the first borrowers.
        next(lines)
    first = (time.perf_counter() - started) * 1000
    peak = max((resident() for number, _ in enumerate(lines) if number % 100 == 0), default=idle)
    name, rate = f"CSV of {BORROWERS:,} borrowers", BORROWERS / (time.thread_time() - cpu_started)
    return [
        at_least(f"{name}, rows per second of CPU", rate, EXPORTED, unit="rows/s", why=CELLS),
        at_most(f"{name}, first row", first, FIRST_MS),
        bounded(f"{name}, memory above idle", peak, idle, GROWN_MB, unit="MB"),
    ]


def measure_import(name: str) -> list[Row]:
    """Import IDs of new accounts, each of another borrower, then the same file again."""
    from portal.records.models import Borrower

    owners = list(Borrower.objects.values_list("uuid", flat=True)[:IMPORTED])
    rates: list[tuple[float, float]] = []
    for _ in range(min(ROUNDS, 3)):
        lines = [f"loan,{uuid.uuid4()},{owner},\n" for owner in owners]
        rates.append((_import_rate(lines), _import_rate(lines)))
    new, known = (list(rate) for rate in zip(*rates, strict=True))
    return [
        at_least(name, new, LINES, unit="lines/s", why=DURABLE),
        at_least(f"{name}, all on file already", known, LINES, unit="lines/s", why=COMPARED),
    ]


def _import_rate(lines: list[str]) -> float:
    """Import lines; return how many per second."""
    from portal.lookup.imports import import_ids

    started = time.perf_counter()
    report = import_ids(["kind,uuid,borrower_uuid,label\n", *lines], by="bench")
    assert report.taken == len(lines), report.refused[:3]
    return report.taken / (time.perf_counter() - started)


def signed_in_browser() -> Any:
    """Return a browser with a signed-in viewer."""
    from django.test import Client

    from portal.accounts.models import User

    user, _ = User.objects.get_or_create(username="viewer", defaults={"role": "viewer"})
    browser = Client()
    browser.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return browser


def measure_p95(name: str, browser: Any, addresses: list[str], target: str, limit: int, why: str = "") -> Row:
    """Measure the 95th percentile of each round over all addresses; an extra first round only warms the cache."""
    headers = {"HX-Request": "true", "HX-Target": target} if target else {}
    rounds = [[_time_request(browser, address, headers) for address in addresses] for _ in range(ROUNDS + 1)]
    if os.environ.get("BENCH_EACH"):
        for address, first, *times in zip(addresses, *rounds, strict=True):
            sys.stderr.write(f"{first:9.1f} {statistics.median(times):8.1f}  {target} {address}\n")
    return at_most(name, [p95(ms) for ms in rounds[1:]], limit, why=why)


def _time_request(browser: Any, address: str, headers: dict[str, str]) -> float:
    started = time.perf_counter()
    answer = browser.get(address, headers=headers)
    ms = (time.perf_counter() - started) * 1000
    assert answer.status_code == 200, f"{address}: {answer.status_code}"
    return ms


class Registry:
    """Addresses to request, made from a sample of the borrowers."""

    def __init__(self, chance: random.Random) -> None:
        import servicing
        from portal.records.models import Borrower
        from portal.records.store import last_answer

        self.chance = chance
        found = Borrower.objects.filter(pk__in=range(1, BORROWERS, BORROWERS // 200))
        self.samples = [borrower for one in found if (borrower := last_answer(one, servicing.Borrower))]

    def searches(self) -> list[str]:
        """Return searches as people type them: mostly names and numbers, some partial words, some without a match."""
        texts = [text for one in self.chance.sample(self.samples, 8) for text in self._search_texts(one)]
        texts += [
            "no",
            "llc",
            "texas",
            "austin",
            "smith",
            "example",
            "not there at all",
            str(uuid.UUID(int=7)),
        ]
        texts += ["25000", "$41,250.00", "ach-1200", "north baking", "dental 42", "new borrower"]
        texts += [
            "state:TX llc",
            "type:loan status:active",
            "past_due:>0",
            "created:last-week",
            "status:open",
        ]
        texts += ['state:CO "ana ortiz"', "state:TX past_due:>0 northwind"]
        return [f"/search/?q={quote(text)}" for text in texts]

    def mistyped(self) -> list[str]:
        """Return searches for names with one letter missing, doubled, replaced or swapped with the next."""
        texts = []
        for one in self.chance.sample(self.samples, 16):
            person = one.key_people[0]
            for name in (str(one.first_name), f"{person.first_name} {person.last_name}"):
                cut = self.chance.choice(
                    [at for at in range(1, len(name) - 2) if name[at : at + 2].isalpha()]
                )
                before, two, after = name[:cut], name[cut : cut + 2], name[cut + 2 :]
                slip = self.chance.choice([two[0], two[0] + two, "x" + two[1], two[::-1]])
                texts.append(f"{before}{slip}{after}")
        return [f"/search/?q={quote(text)}" for text in texts]

    def lists(self) -> list[str]:
        """Return addresses of the list of borrowers with each sort, each filter, text, and some combinations."""
        orders = [
            "",
            "sort=-activity",
            "sort=name",
            "sort=-name",
            "sort=created",
            "sort=city",
            "sort=past_due",
        ]
        filters = ["entity=CORPORATION", "state=TX", "past_due=yes", "application=open", "checked=never"]
        filters += ["from=2026-11-20&to=2026-11-20", "from=2026-11-01&to=2026-11-10"]
        filters += ["from=2026-10-01&to=2026-12-31", "from=2026-01-01&to=2026-12-31"]
        filters += ["state=TX&entity=CORPORATION", "past_due=yes&state=CO"]
        both = [
            "entity=CORPORATION&sort=name",
            "state=TX&sort=name",
            "past_due=yes&sort=past_due",
            "state=TX&sort=city",
        ]
        pages = ["page=400", "state=TX&page=300", "sort=name&page=4000"]
        people = [
            one
            for sample in self.chance.sample(self.samples, 5)
            for one in map(str, (sample.first_name, sample.phone))
        ]
        texts = [*people, "llc", "texas", "zzzz", "ana ortiz", "no", "n", "dental 42"]
        mixed = ["q=llc&state=TX", "q=smith&sort=name", "q=north&entity=CORPORATION"]
        queries = [*orders, *filters, *both, *pages, *(f"q={quote(text)}" for text in texts), *mixed]
        return [f"/borrowers/?{query}" for query in queries]

    def _search_texts(self, one: Any) -> list[str]:
        person, phone = one.key_people[0], one.phone
        name = f"{person.first_name} {person.last_name}"
        formatted_phone = f"({phone[:3]}) {phone[3:6]}-{phone[6:]}"
        parts = [phone[-4:], one.email.split("@")[0], one.uuid[:8], one.first_name.split()[0]]
        return [
            one.first_name,
            phone,
            formatted_phone,
            one.email,
            one.uuid,
            name,
            f"{name} {person.address.city}",
            *parts,
        ]
