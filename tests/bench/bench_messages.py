"""Measures the message list with a million messages: filters, pairs of filters, search, sync and a full export.

It is compared with Django's admin, bare queries and a bare bulk_create. BENCH_MESSAGES sets the number of messages,
BENCH_ADDRESSES how many combinations of filters are measured. BENCH_EACH=1 prints the medians of each address. With
BENCH_KEPT the messages are generated once.
"""

import gc
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import partial
from itertools import combinations
from multiprocessing import get_context
from typing import Any
from urllib.parse import urlencode

from tests.bench.bench_registry import signed_in_browser
from tests.bench.memory import resident
from tests.bench.messages import MESSAGES, NOW, bank, bodies, generated_messages
from tests.bench.plain import bare, change_list
from tests.bench.table import Row, at_most, bounded, compared, p95, timed

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
ADDRESSES = int(os.environ.get("BENCH_ADDRESSES", "1000"))
DEEP = 5_000
TABLE = 100_000
MAX_PAGE_RATIO = 1.1
"""Two runs of the same page differ by up to this factor."""
MANY = 100_000
"""With fewer messages the admin's page is faster, because it shows less."""
WRITTEN = min(5_000, MESSAGES)
PAGE = 100
"""Messages in one answer of the service."""
Filters = dict[str, Any]

TODAY = NOW.date()
SINGLE: dict[str, list[Filters]] = {
    "event": [
        {"event": ["payment.failed", "payment.scheduled"]},
        {"event": "payment.failed", "source": "copy"},
    ],
    "status": [{"status": "SUCCESS"}, {"status": ["FAILED", "PENDING"]}],
    "product": [{"product": "LOC"}],
    "payment": [{"payment": "FAILED_AFTER_SUCCESS"}, {"payment": ["SUCCEEDED", "FAILED"]}],
    "days": [
        {"start_date": TODAY - timedelta(days=200), "end_date": TODAY - timedelta(days=150), "source": "copy"}
    ],
    "times": [{"start_date": TODAY - timedelta(days=30), "start_time": "09:30"}],
    "amount": [{"least": 100, "most": 101}, {"least": 4900}, {"most": 2500}],
    "borrower": [{"borrower": "busy"}, {"borrower": "quiet"}],
    "id": [{"id": bank(7)}],
    "link": [{"link": "unlinked"}],
    "order": [{"order": "oldest"}],
}
TEXT: dict[str, list[Filters]] = {
    "q": [
        {"q": text}
        for text in ("succeeded", "failed_after", "nowhere", bank(7), '{"payload": {"status": "FAILED"}}')
    ]
}

RICHER = (
    "both find the rows in a few milliseconds, so this compares the pages around them; ours also shows borrowers,"
    " filters with their values and what needs attention."
)


def rows() -> list[Row]:
    with generated_messages() as engine:
        admin = admin_list()
        link_bank_accounts()
        size = f"{MESSAGES:,} messages, {engine}"
        return [*pages(size), *compare_with_admin(admin), *compare_sync(), memory()]


def link_bank_accounts() -> None:
    """Link two bank accounts to borrowers, as staff do."""
    from portal.messaging.models import BankAccount
    from portal.records.models import Borrower

    for number, name in enumerate(("busy", "quiet")):
        Borrower.objects.get_or_create(uuid=name, defaults={"name": name.title()})
        BankAccount.objects.get_or_create(uuid=bank(number), borrower_uuid=name, linked_by="Ana")


# --- Pages ---


def pages(size: str) -> list[Row]:
    """Measure the list with its counts and filters: the first page, and one far down."""
    browser = signed_in_browser()
    first, later = measure(browser, sample_filters([{"source": "copy"}, *filter_pairs(SINGLE, SINGLE)]))
    text, text_later = measure(browser, sample_filters([*TEXT["q"], *filter_pairs(TEXT, SINGLE)]))
    return [
        at_most(f"first page, one or two filters, {size}, p95", first, 100),
        compared("a page far down, times the first, p95", later, first, MAX_PAGE_RATIO),
        at_most(f"first page, text or JSON, alone or with a filter, {size}, p95", text, 300),
        compared("a page of results far down, times the first, p95", text_later, text, MAX_PAGE_RATIO),
    ]


def filter_pairs(ones: dict[str, list[Filters]], others: dict[str, list[Filters]]) -> Iterator[Filters]:
    """Yield pairs of filters of two kinds; if both arguments are the same, also each filter alone."""
    pairs = combinations(ones, 2) if ones is others else ((one, other) for one in ones for other in others)
    if ones is others:
        yield from (one for kind in ones.values() for one in kind)
    for kind, other in pairs:
        if {kind, other} != {"days", "times"}:
            yield from (one | another for one in ones[kind] for another in others[other])


def sample_filters(asked: list[Filters]) -> list[Filters]:
    """Return a sample of ADDRESSES filters, the same each time."""
    return random.Random(20261121).sample(asked, min(len(asked), ADDRESSES))


def measure(browser: Any, asked: Iterable[Filters]) -> tuple[list[float], list[float]]:
    """Return the 95th percentile of each round, of first pages and of pages far down.

    Both are requested in turns; an extra first round only warms the cache.
    """
    first, later = [], []
    for one in asked:
        address = f"/messages/?{urlencode(one, doseq=True)}"
        deep = f"{address}&page={place(one)}"
        times = [(ask(browser, address), ask(browser, deep)) for _ in range(ROUNDS + 1)][1:]
        first.append([each[0] for each in times])
        later.append([each[1] for each in times])
        if os.environ.get("BENCH_EACH"):
            medians = [statistics.median(each) for each in (first[-1], later[-1])]
            sys.stderr.write(f"{medians[0]:9.1f} {medians[1]:9.1f}  {one}\n")
    return [p95(seconds) for seconds in zip(*first, strict=True)], [
        p95(seconds) for seconds in zip(*later, strict=True)
    ]


def place(asked: Filters) -> str:
    """Return the page after 5,000 messages, or from the middle if there are fewer."""
    from django.http import QueryDict

    from portal.messaging.explorer import Explorer

    explorer = Explorer(QueryDict(urlencode(asked, doseq=True)))
    order = ("recorded_at", "id") if explorer.is_oldest_first else ("-recorded_at", "-id")
    keys = list(explorer.matches.order_by(*order).values_list("pk", flat=True)[:DEEP])
    number = len(keys) if len(keys) == DEEP else len(keys) // 2
    return f"beyond_{keys[number - 1]}_{number + 1}" if number else ""


def ask(browser: Any, address: str) -> float:
    started = time.perf_counter()
    answer = browser.get(address, headers={"HX-Request": "true", "HX-Target": "messages"})
    seconds = (time.perf_counter() - started) * 1000
    assert answer.status_code == 200, f"{address}: {answer.status_code}"
    return seconds


# --- Compared with Django ---

PLAIN: list[dict[str, str]] = [
    {},
    {"event": "payment.failed"},
    {"status": "FAILED"},
    {"product": "LOC"},
    {"payment_status": "FAILED_AFTER_SUCCESS"},
    {"status": "FAILED", "product": "LOC"},
    {"event": "payment.scheduled", "status": "PENDING"},
]


SHOWN = ["uuid", "event", "status", "product", "amount", "payment_status", "day"]


def admin_list() -> Callable[..., None]:
    """Return a function that renders the list of messages in Django's admin."""
    from portal.messaging.models import Message

    return change_list(Message, SHOWN, list_filter=["event", "status", "product", "payment_status"])


def compare_with_admin(admin: Callable[..., None]) -> list[Row]:
    """Compare our page with the admin's and a bare view, and our query with a bare one."""
    from portal.messaging.models import Message
    from portal.messaging.query import COLUMNS, capped_count, matching_messages, page_of

    browser, names = signed_in_browser(), {column: name for name, column in COLUMNS.items()}
    # Without JavaScript the page would wait for the service's count.
    browser.cookies["js"] = "1"
    runs = []
    for one in PLAIN:
        asked = {names[column]: [value] for column, value in one.items()}
        rows = Message.objects.filter(**one)
        works = (
            partial(browser.get, f"/messages/?{urlencode(asked, doseq=True)}&source=copy"),
            partial(admin, {f"{name}__exact": value for name, value in one.items()}),
            bare(rows.values_list(*SHOWN)),
            lambda asked=asked: (
                page_of(matching_messages(asked).listed(), 26),
                capped_count(matching_messages(asked)),
            ),
            lambda rows=rows: list(rows.all()[:26]),
        )
        runs.append(timed(*works, rounds=ROUNDS))
    # For each round, take the mean of all filters.
    portal_times, admin_times, plain, queried, queries = (
        [statistics.mean(each) for each in zip(*seconds, strict=True)] for seconds in zip(*runs, strict=True)
    )
    limit = 1 if MESSAGES >= MANY else None
    return [
        compared(
            "list of messages, times Django's admin, mean of seven filters",
            portal_times,
            admin_times,
            limit,
            why=RICHER,
        ),
        compared("list of messages, times a bare query in a bare template", portal_times, plain, None),
        compared("query of a page and its count, times the bare query of its rows", queried, queries, 10),
    ]


# --- Sync and export ---


def compare_sync() -> list[Row]:
    """Compare decoding and saving the service's answers with a bare bulk_create of the same rows."""
    from portal.messaging.models import Message
    from portal.messaging.store import message_row, save_messages
    from servicing import Message as RemoteMessage
    from servicing import codec

    new = list(bodies(range(MESSAGES, MESSAGES + WRITTEN), MESSAGES))
    answers = [json.dumps(new[start : start + PAGE]) for start in range(0, WRITTEN, PAGE)]

    def read(answer: str) -> list[RemoteMessage]:
        return codec.read_list(RemoteMessage, codec.parse(answer))

    def sync() -> None:
        for answer in answers:
            save_messages(read(answer))

    ready = [message_row(one) for answer in answers for one in read(answer)]
    uuids = [row.uuid for row in ready]
    portal_times: list[float] = []
    plain: list[float] = []
    for work, seconds in ((sync, portal_times), (lambda: Message.objects.bulk_create(ready), plain)) * ROUNDS:
        started = time.perf_counter()
        work()
        seconds.append((time.perf_counter() - started) * 1000)
        Message.objects.filter(uuid__in=uuids).delete()
    return [
        compared(f"sync: {WRITTEN:,} messages read and saved, times `bulk_create`", portal_times, plain, 2)
    ]


def memory() -> Row:
    """Measure the extra memory of exporting all messages as JSON Lines, then many of them as CSV."""
    from django.db import connection

    with get_context("spawn").Pool(1) as pool:
        before, highest = pool.apply(measure_export, (connection.settings_dict["NAME"],))
    what = f"export of all as JSON Lines, and {min(MESSAGES, TABLE):,} as CSV: memory above idle"
    return bounded(what, highest, before, 50, unit="MB")


def measure_export(database: str) -> tuple[float, float]:
    """Return the megabytes before the exports and at their peak, for a process that does nothing else."""
    import django
    from django.test.utils import override_settings

    django.setup()
    from django.db import connection

    connection.settings_dict["NAME"] = database
    with override_settings(DEBUG=False, ALLOWED_HOSTS=["testserver"]):
        browser = signed_in_browser()
        ask(browser, "/messages/?source=copy")
        gc.collect()
        before = highest = resident()
        for form, wanted in (("jsonl", MESSAGES), ("csv", min(MESSAGES, TABLE))):
            lines, started = 0, time.perf_counter()
            answer = browser.get(f"/messages/export/?source=copy&all=1&format={form}")
            for number, part in enumerate(answer.streaming_content):
                lines += part.count(b"\n")
                if number % 1000 == 0:
                    highest = max(highest, resident())
                if lines >= wanted:
                    break
            assert lines == wanted, (form, lines)
            answer.close()
            sys.stderr.write(f"{lines:,} lines of {form} in {time.perf_counter() - started:.0f} s\n")
    connection.close()
    if connection.vendor == "postgresql":
        connection.close_pool()  # type: ignore[attr-defined]  # only on PostgreSQL
    return before, highest
