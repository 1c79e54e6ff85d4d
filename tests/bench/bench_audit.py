"""Measures the audit trail: appending an entry, checking a million of them, and recording views.

BENCH_ENTRIES sets the number of entries.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.urls import include, path

from tests.bench.database import benchmark_database, gather_statistics, skip_disk_waits
from tests.bench.memory import measure_growth
from tests.bench.table import Row, at_most, compared, timed

ENTRIES = int(os.environ.get("BENCH_ENTRIES", "1000000"))
APPENDS, ROUND = 500, 100
VIEWS, VIEW_ROUNDS = 20, 15
BATCH = 5_000
START = datetime(2026, 1, 1, tzinfo=UTC)


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, benchmark_database(Path(folder) / "audit.sqlite3") as name:
        insert_entries(ENTRIES)
        return [
            measure_appends(name),
            *measure_verification(name),
            *compare_views(name),
            compare_admin_list(name),
        ]


def measure_appends(name: str) -> Row:
    """Measure appending an entry in its own transaction, which is on the disk when it returns."""
    from portal.audit.chain import append
    from portal.audit.models import Actor

    actor, rounds = Actor.system("bench"), []
    for first in range(0, APPENDS, ROUND):
        took = []
        for number in range(first, first + ROUND):
            started = time.perf_counter()
            append(actor, "borrowers.update", **entry_content(number))
            took.append((time.perf_counter() - started) * 1000)
        rounds.append(statistics.median(took))
    return at_most(f"append an audit entry, {name}, median", rounds, 3)


def compare_views(name: str) -> list[Row]:
    """Compare the CPU of a view that is recorded with the same view unrecorded."""
    from django.conf import settings
    from django.test import Client

    from portal.accounts.models import User

    settings.ROOT_URLCONF = __name__
    browser, numbers = Client(), count()
    user, _ = User.objects.get_or_create(username="viewer", defaults={"role": "viewer"})
    browser.force_login(user, backend=settings.AUTHENTICATION_BACKENDS[-1])

    def ask(address: Callable[[], str]) -> None:
        for _ in range(VIEWS):
            assert browser.get(address()).status_code == 200

    requests = [
        partial(ask, lambda: "/bare/"),
        partial(ask, lambda: "/list/"),
        partial(ask, lambda: f"/list/?page={next(numbers)}"),
    ]
    for each in requests:
        each()
    bare, repeated, first = (
        [took / VIEWS for took in runs]
        for runs in timed(*requests, rounds=VIEW_ROUNDS, clock=time.process_time)
    )
    beside = f"CPU beside the same view unrecorded, {name}"
    return [
        compared(f"a signed-in view that is recorded as a list, {beside}", first, bare, 4),
        compared(f"the same view again, which is only counted, {beside}", repeated, bare, 2),
    ]


def compare_admin_list(name: str) -> Row:
    """Compare the first page of entries in the administration with a bare view of the same rows."""
    from django.conf import settings
    from django.test import Client

    import portal.urls
    from portal.accounts.models import User

    addresses: list[Any] = portal.urls.urlpatterns
    addresses.insert(0, path("bench/rows/", rows_view))
    settings.ROOT_URLCONF = "portal.urls"
    user, _ = User.objects.get_or_create(username="auditor", defaults={"role": "auditor"})
    browser = Client()
    browser.force_login(user, backend=settings.AUTHENTICATION_BACKENDS[-1])

    def ask(address: str) -> None:
        for _ in range(VIEWS):
            assert browser.get(address).status_code == 200

    requests = [partial(ask, "/admin/audit/entry/"), partial(ask, "/bench/rows/")]
    for each in requests:
        each()
    ours, least = timed(*requests, rounds=VIEW_ROUNDS, clock=time.process_time)
    what = f"a page of {ENTRIES:,} entries in the administration, CPU beside a bare view of its rows, {name}"
    return compared(what, ours, least, 5)


def rows_view(request: Any) -> HttpResponse:
    """Show the newest entries without frame, wording or counts."""
    from portal.audit.models import Entry
    from tests.bench.plain import bare

    columns = ("at", "actor_name", "action", "subject_label", "reason", "result", "request_id")
    return HttpResponse(bare(Entry.objects.values_list(*columns), 50)())


def bare_view(request: Any) -> HttpResponse:
    return HttpResponse("ok")


def recorded_view(request: Any) -> HttpResponse:
    """The bare view, recorded as a list."""
    from portal.audit.view_log import log_list

    log_list(request, count=25)
    return HttpResponse("ok")


urlpatterns = [
    path("bare/", bare_view),
    path("list/", include(([path("", recorded_view, name="index")], "loans"))),
]


def measure_verification(name: str) -> list[Row]:
    """Measure verifying the whole chain, and the memory that it adds."""
    from portal.audit.integrity import verify_chain

    started = time.perf_counter()
    done, grown = measure_growth(verify_chain)
    seconds = time.perf_counter() - started
    assert (done.entries, done.found) == (ENTRIES + APPENDS, None)
    what = f"verify {done.entries:,} audit entries, {name}"
    return [
        at_most(what, seconds, 60, unit="s"),
        at_most(f"{what}: memory that it takes", grown, 32, unit="MB"),
    ]


def insert_entries(count: int) -> None:
    """Insert a valid chain in batches, without the model."""
    from django.db import connection, transaction

    from portal.audit.chain import HASH_FORMAT, HASHED_FIELDS, entry_hash
    from portal.audit.guard import GENESIS_HASH
    from portal.audit.models import Entry

    fields: list[Any] = [Entry._meta.get_field(name) for name in HASHED_FIELDS[HASH_FORMAT]]
    columns = ", ".join(["id", *(field.column for field in fields), "hash"])
    marks = ", ".join(["%s"] * (len(fields) + 2))
    last = GENESIS_HASH
    skip_disk_waits()
    for start in range(0, count, BATCH):
        batch = []
        for number in range(start, min(start + BATCH, count)):
            values = entry(number) | {"previous_hash": last, "hash_format": HASH_FORMAT}
            last = entry_hash(Entry(**values))
            stored = [field.get_db_prep_save(values[field.attname], connection) for field in fields]
            batch.append([number + 1, *stored, last])
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO audit_entry ({columns}) VALUES ({marks})", batch)
    gather_statistics()


def entry(number: int) -> dict[str, Any]:
    """Return the fields of an entry for a change of a profile."""
    return {
        "at": START + timedelta(seconds=7 * number, microseconds=number),
        "actor_id": number % 50,
        "actor_name": f"Servicer {number % 50}",
        "actor_role": "servicer",
        "ip": f"10.0.{number % 200}.{number % 250}",
        "user_agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36",
        "request_id": f"r-{number:012x}",
        "action": "borrowers.update",
        "phase": "outcome" if number % 2 else "attempt",
        **entry_content(number),
    }


def entry_content(number: int) -> dict[str, Any]:
    """Return the fields of an entry that depend on its write."""
    uuid = str(UUID(int=number % 10_000))
    return {
        "intent_id": UUID(int=number // 2),
        "result": "confirmed",
        "subject_kind": "borrower",
        "subject_uuid": uuid,
        "subject_label": f"Borrower {number % 10_000} LLC",
        "borrower_uuid": uuid,
        "reason": "Asked by phone, identity checked",
        "changes": {"phone": ["(512) 555-0143", f"(512) 555-{number % 10_000:04}"]},
        "detail": {"request": {"phone": f"512555{number % 10_000:04}"}, "duration_ms": number % 900},
    }
