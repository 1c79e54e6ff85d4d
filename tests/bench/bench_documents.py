"""Compares printing: a summary with Chromium, a schedule with a bare table, and two workers with one.

The figures need an idle machine with two cores. BENCH_SUMMARIES sets the number of summaries.
"""

import json
import multiprocessing
import os
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.database import benchmark_database
from tests.bench.table import Row, compared, timed

STATIC = Path(__file__).resolve().parents[2] / "static"
SUMMARIES = int(os.environ.get("BENCH_SUMMARIES", "200"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
TIME_LIMIT = 120
TODAY = date(2026, 11, 20)


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, benchmark_database(Path(folder) / "documents.sqlite3"):
        summary, schedule = pages()
        with workers(1) as pool:
            found = [
                *compare_with_chromium(pool, summary, Path(folder)),
                compare_with_bare_table(pool, schedule),
            ]
        return [*found, compare_workers(summary)]


@contextmanager
def workers(number: int) -> Iterator[ProcessPoolExecutor]:
    """Start processes that have everything loaded, like those that the portal forks."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(number, mp_context=context, initializer=_load) as pool:
        for one in [pool.submit(time.sleep, 0.5) for _ in range(number)]:
            one.result()
        yield pool


def _load() -> None:
    from portal.documents.html_to_pdf import style

    style()


def render(pool: ProcessPoolExecutor, html: str) -> bytes:
    return pool.submit(_render_here, html).result(TIME_LIMIT)


def _render_here(html: str) -> bytes:
    from portal.documents.html_to_pdf import convert

    return convert(html, lambda pages: None)


def compare_with_chromium(pool: ProcessPoolExecutor, html: str, folder: Path) -> list[Row]:
    """Compare rendering a summary with printing it in a headless Chromium that is started for it."""
    page = folder / "summary.html"
    style = (STATIC / "css" / "print.css").as_uri()
    page.write_text(html.replace("</head>", f'<link rel="stylesheet" href="{style}"></head>'))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    flags.append("--generate-pdf-document-outline")  # Chromium writes tags in any case.
    command = [
        "chromium",
        *flags,
        f"--user-data-dir={folder / 'profile'}",
        f"--print-to-pdf={folder / 'x.pdf'}",
    ]
    printing = partial(subprocess.run, [*command, page.as_uri()], check=True, capture_output=True)
    ours, chromium = timed(partial(render, pool, html), printing, rounds=ROUNDS)
    (worker,) = multiprocessing.active_children()
    status = Path(f"/proc/{worker.pid}/status").read_text()
    peak = int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    why = "the layout is done in Python, and its time is spread evenly; CONTRIBUTING says what it follows."
    return [
        compared(
            "a summary of two pages beside a headless Chromium started for it", ours, chromium, 1 / 3, why=why
        ),
        compared("its memory beside Chromium's largest process", peak, largest, 1, unit="MB"),
    ]


def compare_with_bare_table(pool: ProcessPoolExecutor, html: str) -> Row:
    """Compare rendering a schedule of 360 rows with rendering a table of the same rows without style."""
    lines = "".join(re.findall(r"<tr>.*?</tr>", html, re.DOTALL))
    table = f'<!doctype html><html lang="en"><title>Rows</title><table>{lines}</table>'
    ours, bare = timed(
        partial(render, pool, html), lambda: pool.submit(bare_pdf, table).result(), rounds=ROUNDS
    )
    return compared("a schedule of 360 rows beside a bare table of the same rows", ours, bare, 2.5)


def bare_pdf(html: str) -> int:
    from weasyprint import HTML

    return len(HTML(string=html).write_pdf())


def compare_workers(html: str) -> Row:
    """Compare printing many summaries with two workers and with one."""
    seconds = []
    for number in (2, 1):
        with workers(number) as pool:
            started = time.perf_counter()
            for one in [pool.submit(_render_length, html) for _ in range(SUMMARIES)]:
                one.result()
            seconds.append(time.perf_counter() - started)
    two_workers, one_worker = seconds
    return compared(
        f"{SUMMARIES} summaries with two workers beside one", two_workers, one_worker, 1 / 1.7, unit="s"
    )


def _render_length(html: str) -> int:
    return len(_render_here(html))


# --- Documents ---


def pages() -> tuple[str, str]:
    """Return a summary of two pages and a schedule of 360 rows."""
    from django.utils import timezone

    from portal.documents import loan_schedule
    from portal.documents.borrower_summary import account_copies_of, document
    from portal.documents.document import Stamp
    from portal.documents.options import Options
    from portal.gateway.reading import LiveCopy
    from portal.records.models import Account, Answer, Kind

    owner = save_answer(
        Kind.BORROWER, "b", {"first_name": "Northwind Baking Co LLC", "user_type": "BUSINESS"}
    )
    for number in range(3):
        save_answer(
            Kind.KEY_PERSON, f"p-{number}", {"first_name": "Elena", "last_name": "Ortiz", "title": "OWNER"}
        )
    save_answer(Kind.LOAN, "loan", {"amount": 24000, "installments": installments(24)})
    paid = [{"uuid": str(n), "amount": 765.5, "effective_date": str(TODAY)} for n in range(12)]
    Answer.objects.create(
        kind=Kind.LOAN_REPAYMENTS, uuid="loan", body=json.dumps(paid), last_at=timezone.now()
    )
    summary = document(owner, account_copies_of(owner), Options(), today=TODAY)
    long_loan = Account(kind=Kind.LOAN, uuid="long", answer_at=timezone.now())
    long_loan.answer = Answer(body=answer("long", {"installments": installments(360)}))
    schedule = loan_schedule.document(LiveCopy(long_loan), [], owner, Options(), today=TODAY)
    stamp = Stamp(timezone.now(), "Ana Reyes", "BS-20261120-7Q4MXK")
    return summary.html(stamp), schedule.html(stamp)


def save_answer(kind: str, uuid: str, content: Any) -> Any:
    from django.utils import timezone

    from portal.records.models import Account, Answer, Borrower, Kind

    said = Answer.objects.create(kind=kind, uuid=uuid, body=answer(uuid, content), last_at=timezone.now())
    if kind == Kind.BORROWER:
        return Borrower.objects.create(uuid=uuid, name="Northwind", answer=said, answer_at=said.last_at)
    return Account.objects.create(
        kind=kind, uuid=uuid, borrower_uuid="b", label="Northwind", answer=said, answer_at=said.last_at
    )


def answer(uuid: str, fields: dict[str, Any]) -> str:
    return json.dumps({"uuid": uuid, **fields})


def installments(number: int) -> list[dict[str, Any]]:
    day = TODAY - timedelta(days=240)
    amounts = {"principal": 900.5, "interest": 95.25, "fees": 0, "total": 995.75, "balance": 11100}
    return [
        {"number": n, "due_date": str(day + timedelta(days=30 * n)), "status": "SCHEDULED", **amounts}
        for n in range(1, number + 1)
    ]
