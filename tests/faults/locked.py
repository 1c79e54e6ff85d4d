"""Locks the database or stops its server: pages must answer in time and say so, and no thread may stay blocked.

The portal runs in its own process. Meanwhile people read pages and send forms, and the health check is called. When
the database is back, everything must work at once.
"""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from django.conf import settings
from django.db import connection

from tests import databases, given
from tests.faults.answers import RemoteBrowser
from tests.faults.killing import TOKEN, Portal
from tests.faults.load import COOKIES, deployment_settings
from tests.faults.proxy import ProxiedSandbox
from tests.faults.writes import Verdict

PAGE_SECONDS = 5.0
HEALTH_SECONDS = 1.0
PAGES = ["/", "/borrowers/", "/loans/", "/lines/", "/applications/", "/repayments/", "/status/"]
WRITERS, READERS = 12, 12
BACK_SECONDS = 10.0


@contextmanager
def stopped() -> Iterator[None]:
    """Stop every process of the server that ``docker/postgres.py`` started, as pausing a container does."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        main = int((Path(cursor.fetchone()[0]) / "postmaster.pid").read_text().split()[0])
    databases.forget_connections()
    os.kill(main, signal.SIGSTOP)
    pids = [main, *map(int, Path(f"/proc/{main}/task/{main}/children").read_text().split())]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(pids):  # The main process is last, because it removes exited children.
            os.kill(pid, signal.SIGCONT)


def send_while_away(service: ProxiedSandbox, way: str, rounds: int) -> tuple[Verdict, int]:
    """Send requests while the database is away, ``rounds`` times; return the findings and the number of requests."""
    deployment = deployment_settings(service) | {"SECOND_FACTOR_REQUIRED": "none", "WEB_CONCURRENCY": "1"}
    portal, found = Portal(service.url, **deployment), Verdict()
    loan = given.loan(service, given.borrower(service), paid=3)
    databases.forget_connections()
    portal.start()
    sent = 0
    try:
        person = RemoteBrowser(portal)
        person.session.cookies[COOKIES[0]] = person.session.cookies[settings.SESSION_COOKIE_NAME]
        person.session.cookies[COOKIES[1]] = TOKEN
        for page in [*PAGES, loan.get_absolute_url()]:
            person.get(page)
        for _ in range(rounds):
            with databases.locked() if way == "locked" else stopped():
                sent += _send_requests(portal, person, loan.uuid, way, found)
            sent += _check_recovery(person, loan.uuid, found)
    finally:
        portal.kill()
    return found, sent


def _send_requests(portal: Portal, person: RemoteBrowser, loan: str, way: str, found: Verdict) -> int:
    def check(send: Any, seconds: float, expected: set[int], words: str) -> None:
        began = time.monotonic()
        status = send().status_code
        took = time.monotonic() - began
        if took > seconds:
            found.stuck.append(f"{way}: {words} took {took:.1f} s")
        if status not in expected:
            found.untrue.append(f"{way}: {words} answers {status}")

    cookies = {cookie.name: cookie.value or "" for cookie in person.session.cookies}

    def fetch(page: str) -> Any:
        return requests.get(portal.url + page, cookies=cookies, timeout=60)

    def healthz() -> Any:
        return fetch("/healthz")

    def write() -> Any:
        address = f"{portal.url}/notes/new/loan/{loan}/"
        headers = {"X-CSRFToken": TOKEN}
        typed = {"text": "Called the owner."}
        return requests.post(address, typed, cookies=cookies, headers=headers, timeout=60)

    readable = {200} if way == "locked" else {503}
    with ThreadPoolExecutor(WRITERS + READERS + 4) as people:
        jobs = [people.submit(check, write, PAGE_SECONDS, {503}, "a form") for _ in range(WRITERS)]
        jobs += [
            people.submit(check, lambda page=page: fetch(page), PAGE_SECONDS, readable, page)
            for page in (PAGES * READERS)[:READERS]
        ]
        for _ in range(4):
            check(healthz, HEALTH_SECONDS, {200}, "/healthz")
        for job in jobs:
            job.result()
    return len(jobs) + 4


def _check_recovery(person: RemoteBrowser, loan: str, found: Verdict) -> int:
    """Check that pages and forms work again."""
    end = time.monotonic() + BACK_SECONDS
    typed, status = {"text": f"Called again at {time.monotonic()}."}, 0
    while status != 303 and time.monotonic() < end:
        status = person.post(f"/notes/new/loan/{loan}/", typed).status_code
    if status != 303:
        found.stuck.append(f"{BACK_SECONDS:.0f} s later a form still answers {status}")
    if (status := person.get("/loans/").status_code) != 200:
        found.stuck.append(f"afterwards a page answers {status}")
    return 2
