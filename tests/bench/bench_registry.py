"""Search, every list, memory and import over a registry of a million borrowers, asked for as a browser asks.

BENCH_BORROWERS makes it smaller; BENCH_EACH=1 prints every address with its median.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.bench.database import own, settle
from tests.bench.table import Row

BORROWERS = int(os.environ.get("BENCH_BORROWERS", "1000000"))
SEARCH_MS, LIST_MS, MEMORY_MB, LINES = 50, 100, 200, 5_000
ASKED_EACH = 5
IMPORTED = 20_000


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, own(Path(folder) / "registry.sqlite3") as engine:
        sow(BORROWERS)
        return measured(Registry(random.Random(20261120)), f"{BORROWERS:,} borrowers, {engine}")


def sow(borrowers: int) -> None:
    """Another process invents them, so that this one is as large as one that serves pages."""
    from tests.databases import database_url

    command = [sys.executable, "manage.py", "make_registry", "--borrowers", str(borrowers)]
    subprocess.run(
        command, env=os.environ | {"DATABASE_URL": database_url()}, stdout=subprocess.DEVNULL, check=True
    )
    settle()


def measured(registry: "Registry", size: str) -> list[Row]:
    """The 95th percentile of each sort of request, then what they left in memory, and an import beside all that."""
    browser = signed_in()
    searches = registry.searches()
    return [
        p95(f"suggestions, {size}, p95", browser, searches, "suggestions", SEARCH_MS),
        p95(f"page of results, {size}, p95", browser, searches, "", SEARCH_MS),
        p95(f"filters of borrowers, {size}, p95", browser, registry.lists(), "borrower-rows", LIST_MS),
        *(each_order(f"{area}, any order, {size}, p95", browser, area) for area in orders()),
        memory(f"memory of the process that answered, {size}"),
        imported(f"import of ids, {size}"),
    ]


def orders() -> dict[str, tuple[str, list[str]]]:
    """Each list, the region of its rows, and its orders."""
    from portal.applications import views as applications
    from portal.borrowers import listed
    from portal.credit_lines import views as lines
    from portal.loans import views as loans
    from portal.repayments import views as repayments

    return {
        "borrowers": ("borrower-rows", list(listed.SORTS)),
        "loans": (loans.LIST.rows_id, list(loans.LIST.sorts)),
        "lines": (lines.LIST.rows_id, list(lines.LIST.sorts)),
        "applications": ("application-rows", list(applications.SORTS)),
        "repayments": ("repayment-rows", list(repayments.SORTS)),
    }


def each_order(name: str, browser: Any, area: str) -> Row:
    """The first and the last page of each order, both ways round."""
    target, sorts = orders()[area]
    states = [
        f"sort={dash}{sort}{page}" for sort in sorts for dash in ("", "-") for page in ("", "&page=9999999")
    ]
    return p95(name, browser, [f"/{area}/?{state}" for state in states], target, LIST_MS)


def memory(name: str) -> Row:
    """What this process, which has answered all of it, keeps in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    used = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return Row(name, f"{used:.0f} MB", f"{MEMORY_MB} MB", used, MEMORY_MB, used <= MEMORY_MB)


def imported(name: str) -> Row:
    """Identifiers of accounts that nobody knew yet."""
    from portal.lookup.imports import import_ids
    from portal.registry.models import Kind, Record

    owner = Record.objects.filter(kind=Kind.BORROWER).values_list("uuid", flat=True)[0]
    lines = [f"loan,{uuid.uuid4()},{owner},\n" for _ in range(IMPORTED)]
    started = time.perf_counter()
    report = import_ids(["kind,uuid,borrower_uuid,label\n", *lines], by="bench")
    rate = report.taken / (time.perf_counter() - started)
    assert report.taken == IMPORTED, report.refused[:3]
    return Row(name, f"{rate:,.0f} lines/s", f"{LINES:,} lines/s", rate, LINES, rate >= LINES)


def signed_in() -> Any:
    """A browser in which a viewer is signed in."""
    from django.test import Client

    from portal.accounts.models import User

    user, _ = User.objects.get_or_create(username="viewer", defaults={"role": "viewer"})
    browser = Client()
    browser.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return browser


def p95(name: str, browser: Any, addresses: list[str], target: str, limit: int) -> Row:
    """Over all addresses; the first request of each is left out, it warms the cache."""
    headers = {"HX-Request": "true", "HX-Target": target} if target else {}
    took = []
    for address in addresses:
        times = [_asked(browser, address, headers) for _ in range(ASKED_EACH + 1)]
        took += times[1:]
        if os.environ.get("BENCH_EACH"):
            sys.stderr.write(f"{times[0]:9.1f} {statistics.median(times[1:]):8.1f}  {target} {address}\n")
    figure = statistics.quantiles(took, n=20)[-1]
    return Row(name, f"{figure:.1f} ms", f"{limit} ms", figure, limit, figure <= limit)


def _asked(browser: Any, address: str, headers: dict[str, str]) -> float:
    started = time.perf_counter()
    answer = browser.get(address, headers=headers)
    took = (time.perf_counter() - started) * 1000
    assert answer.status_code == 200, f"{address}: {answer.status_code}"
    return took


class Registry:
    """Questions about a registry, of which some borrowers are known by heart."""

    def __init__(self, chance: random.Random) -> None:
        from portal.registry.memory import last
        from portal.registry.models import Kind, Record
        from servicing import Borrower

        self.chance = chance
        found = Record.objects.filter(kind=Kind.BORROWER, pk__in=range(1, BORROWERS, BORROWERS // 200))
        self.samples = [borrower for one in found if (borrower := last(one, Borrower))]

    def searches(self) -> list[str]:
        """What people look for: mostly what they read or hear, sometimes half a word, sometimes what is not there."""
        texts = [text for one in self.chance.sample(self.samples, 8) for text in self._asked_of(one)]
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

    def lists(self) -> list[str]:
        """The list as people turn it: each order, each filter, text, and some of them together."""
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
        filters += ["from=2026-11-01&to=2026-11-10", "state=TX&entity=CORPORATION", "past_due=yes&state=CO"]
        both = [
            "entity=CORPORATION&sort=name",
            "state=TX&sort=name",
            "past_due=yes&sort=past_due",
            "state=TX&sort=city",
        ]
        pages = ["page=400", "state=TX&page=300", "sort=name&page=4000"]
        people = [
            one for sample in self.chance.sample(self.samples, 5) for one in (sample.first_name, sample.phone)
        ]
        texts = [*people, "llc", "texas", "zzzz", "ana ortiz", "no", "n", "dental 42"]
        mixed = ["q=llc&state=TX", "q=smith&sort=name", "q=north&entity=CORPORATION"]
        queries = [*orders, *filters, *both, *pages, *(f"q={quote(text)}" for text in texts), *mixed]
        return [f"/borrowers/?{query}" for query in queries]

    def _asked_of(self, one: Any) -> list[str]:
        person, phone = one.key_people[0], one.phone
        name = f"{person.first_name} {person.last_name}"
        spoken = f"({phone[:3]}) {phone[3:6]}-{phone[6:]}"
        parts = [phone[-4:], one.email.split("@")[0], one.uuid[:8], one.first_name.split()[0]]
        return [
            one.first_name,
            phone,
            spoken,
            one.email,
            one.uuid,
            name,
            f"{name} {person.address.city}",
            *parts,
        ]
