"""The message explorer over a million messages: filters, pages, search, the sync's writing, and a whole export.

BENCH_MESSAGES makes it smaller; BENCH_EACH=1 prints every query with its median.
"""

import gc
import json
import os
import random
import resource
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.bench.database import hurry, own, settle
from tests.bench.table import Row, bounded, compared

MESSAGES = int(os.environ.get("BENCH_MESSAGES", "1000000"))
ASKED_EACH = 5
BATCH = 5_000
WRITTEN = 5_000
NOW = datetime(2026, 11, 20, tzinfo=UTC)
STATES = (["SUCCEEDED", "SCHEDULED", "FAILED", "FAILED_AFTER_SUCCESS"], [80, 15, 4, 1])
DELIVERIES = (["SUCCESS", "FAILED", "PENDING"], [95, 4, 1])
FILTERS: list[dict[str, Any]] = [
    {},
    {"event": ["payment.failed"]},
    {"status": ["FAILED"]},
    {"product": ["LOC"]},
    {"payment": ["FAILED_AFTER_SUCCESS"]},
    {"status": ["FAILED", "PENDING"]},
    {"status": ["FAILED"], "payment": ["SUCCEEDED"]},
    {"event": ["payment.scheduled", "payment.failed"], "product": ["LOAN", "LOC"]},
    {"event": ["payment.failed"], "payment": ["SUCCEEDED"]},  # None is both.
    {"start_date": NOW.date() - timedelta(days=40), "end_date": NOW.date() - timedelta(days=30)},
    {"start_date": NOW.date() - timedelta(days=40), "status": ["FAILED"]},
    {"least": 4900, "status": ["SUCCESS"]},
    {"least": 100, "most": 101},
]
TEXTS = ("succeeded", "build_credit", "failed_after", '{"payload": {"status": "FAILED"}}', "nowhere")


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, own(Path(folder) / "messages.sqlite3") as engine:
        sown = Messages(random.Random(20261120))
        sown.sow(MESSAGES)
        return [*queries(sown, engine), *writing(sown), memory()]


def queries(sown: "Messages", engine: str) -> list[Row]:
    """The first page with its count, a page in the middle, search: beside the bare query and Django's own list."""
    from portal.messaging.models import Message
    from portal.messaging.query import Found

    def first(asked: dict[str, Any]) -> None:
        found = Found(asked)
        found.page(26)
        _ = found.count

    def later(asked: dict[str, Any]) -> None:
        Found(asked).page(26, beyond=sown.middle)

    def bare(asked: dict[str, Any]) -> None:
        list(Found(asked).parts[0].order_by("-pk")[:26])

    def change_list(_: object) -> None:
        list(Message.objects.order_by("-pk")[:100])
        Message.objects.count()

    texts = [{"q": text} for text in (*TEXTS, sown.sample)]
    size = f"{MESSAGES:,} messages, {engine}"
    page, middle = p95(first, FILTERS), p95(later, FILTERS)
    admin, plain = p95(change_list, [{}]), p95(bare, FILTERS)
    return [
        bounded(f"filters: first page and count, {size}, p95", page, 0, 100),
        compared("the same, times Django's change list of all", page, admin, 20),
        compared("the same, times the bare query of the page", page, plain, 10),
        compared("a page in the middle, times the first", middle, page, 1),
        bounded(f"text and JSON: first page and count, {size}, p95", p95(first, texts), 0, 300),
    ]


def p95(ask: Callable[[dict[str, Any]], object], asked: list[dict[str, Any]]) -> float:
    """Over all of them, in milliseconds; the first look at each is left out, it warms the cache."""
    took = []
    for one in asked:
        times = [_timed(ask, one) for _ in range(ASKED_EACH + 1)][1:]
        took += times
        if os.environ.get("BENCH_EACH"):
            sys.stderr.write(f"{statistics.median(times):9.1f}  {ask.__name__} {one}\n")
    return statistics.quantiles(took, n=20, method="inclusive")[-1]


def _timed(ask: Callable[[dict[str, Any]], object], one: dict[str, Any]) -> float:
    started = time.perf_counter()
    ask(one)
    return (time.perf_counter() - started) * 1000


def writing(sown: "Messages") -> list[Row]:
    """What the sync keeps in a second, beside a bare bulk_create of the same rows."""
    from portal.messaging.keeping import keep, row_of
    from portal.messaging.models import Message
    from portal.messaging.sync import BATCH as KEPT

    told = sown.told(range(MESSAGES, MESSAGES + WRITTEN))
    ready = [row_of(one) for one in told]
    ready.sort(key=lambda row: row.pk)
    times: dict[str, list[float]] = {"keep": [], "bare": []}
    for _ in range(3):
        started = time.perf_counter()
        for start in range(0, WRITTEN, KEPT):
            keep(told[start : start + KEPT])
        times["keep"].append(time.perf_counter() - started)
        _forget(Message, ready)
        started = time.perf_counter()
        Message.objects.bulk_create(ready)
        times["bare"].append(time.perf_counter() - started)
        _forget(Message, ready)
    ours, bare = (min(times[name]) * 1000 for name in ("keep", "bare"))
    return [compared(f"sync: keeping {WRITTEN:,} messages, times `bulk_create`", ours, bare, 2)]


def _forget(model: Any, ready: list[Any]) -> None:
    model.objects.filter(pk__gte=min(row.pk for row in ready), pk__lte=max(row.pk for row in ready)).delete()


def memory() -> Row:
    """How much more memory the process needs while it exports all messages as CSV."""
    from portal.messaging.files import cells
    from portal.messaging.links import rows_of
    from portal.messaging.query import Found

    gc.collect()
    before = highest = _resident()
    for batch in Found({}).batches():
        for row in rows_of(batch):
            cells(row)
        highest = max(highest, _resident())
    return bounded("export of all: memory above the idle process", highest, before, 50, unit="MB")


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


class Messages:
    """Payments told over a year, as the service tells them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.middle = 0
        self.sample = ""

    def sow(self, number: int) -> None:
        """Oldest first: so the tables are written as they grow over a year."""
        from portal.messaging.keeping import row_of
        from portal.messaging.models import Message

        hurry()
        for start in range(0, number, BATCH):
            rows = [row_of(one) for one in self.told(range(start, min(start + BATCH, number)))]
            Message.objects.bulk_create(sorted(rows, key=lambda row: row.pk))
            if start <= number // 2 < start + BATCH:
                self.middle, self.sample = rows[0].pk, rows[0].bank_account
        settle()

    def told(self, numbers: range) -> list[Any]:
        """So many messages, as the library reads them."""
        from servicing import Message, codec

        return [codec.decode(Message, json.dumps(one)) for one in self._bodies(numbers)]

    def _bodies(self, numbers: range) -> Iterator[dict[str, Any]]:
        step = 365 * 86400 // (MESSAGES + WRITTEN)
        for number in numbers:
            at = NOW - timedelta(seconds=(MESSAGES + WRITTEN - number) * step)
            (state,) = self.chance.choices(*STATES)
            (status,) = self.chance.choices(*DELIVERIES)
            yield {
                "uuid": self._uuid(),
                "event": f"payment.{state.lower()}",
                "payload": self._payment(at, state),
                "status": status,
                "created_at": f"{at:%Y-%m-%d %H:%M:%S} UTC",
            }

    def _payment(self, at: datetime, state: str) -> dict[str, Any]:
        return {
            "uuid": self._uuid(),
            "product": self.chance.choice(["LOAN", "LOC", "BUILD_CREDIT"]),
            "payment_type": "SINGLE_PAYMENT",
            "effective_date": f"{at:%Y-%m-%d}",
            "amount": self.chance.randint(1_000, 500_000) / 100,
            **dict.fromkeys(("principal", "interest", "fees", "suspense", "ending_balance")),
            "should_commit_to_servicing": True,
            "borrower_bank_account_uuid": self._uuid(),
            "ach_batch_id": f"{at:%Y%m%d}",
            "ach_id": self._uuid()[-12:],
            "completion_date": None,
            "error_description": "",
            "initiation_date": f"{at:%Y-%m-%d %H:%M:%S} PST",
            "status": state,
        }

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
