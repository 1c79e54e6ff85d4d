"""Measures the web server: requests per second compared with another server, start time and memory.

The clients run on the same cores as the servers, so only the ratio matters.
"""

import http.client
import os
import re
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.deployment import (
    DEPLOYED,
    GUNICORN,
    HOST,
    Portal,
    environment,
    free_port,
    prepare,
    process,
    running_portal,
)
from tests.bench.table import Row, at_most, compared

PROCESSES, THREADS = 2, 16
"""The processes of each server, and the threads of each process."""
PEOPLE = 8
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
SECONDS = int(os.environ.get("BENCH_SECONDS", "4"))
WORKER_MB = 200
GRANIAN = [str(Path(sys.executable).with_name("granian")), "--interface", "wsgi", "portal.wsgi:application"]
GRANIAN += ["--host", HOST, "--port", "{}", "--workers", str(PROCESSES), "--blocking-threads", str(THREADS)]
GRANIAN += ["--log-level", "warning"]
BARE = """
import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="bare")
urlpatterns = [path("healthz", lambda request: HttpResponse("well"))]
application = get_wsgi_application()
"""


def rows() -> list[Row]:
    with running_portal(processes=PROCESSES) as portal, portal.served(*GRANIAN) as other:
        path = f"/borrowers/{portal.owners_by_accounts()[0]}/"
        cookies = "; ".join(f"{each.name}={each.value}" for each in portal.session.cookies)
        servers = (portal.address, other)
        rounds = [
            [pages_per_second(address, path, cookies) for address in servers] for _ in range(ROUNDS + 1)
        ][1:]
        sizes = worker_megabytes(portal)
    gunicorn, granian = (list(each) for each in zip(*rounds, strict=True))
    name = f"signed-in page of a borrower, {PROCESSES} processes"
    beside = f"{name}: Granian's requests a second, times gunicorn's"
    return [
        at_most(f"{name}: requests a second with gunicorn", gunicorn, None, unit="/s"),
        compared(beside, granian, gunicorn, None, unit="/s"),
        at_most(f"{name}: largest process of gunicorn after it", max(sizes), WORKER_MB, unit="MB"),
        compare_start(),
    ]


def pages_per_second(address: str, path: str, cookies: str) -> float:
    """Return the pages per second of several people who request the next page at once."""
    until = time.monotonic() + SECONDS
    with ThreadPoolExecutor(PEOPLE) as people:
        counts = [people.submit(count_pages, address, path, cookies, until) for _ in range(PEOPLE)]
    return sum(one.result() for one in counts) / SECONDS


def count_pages(address: str, path: str, cookies: str, until: float) -> int:
    connection, number = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30), 0
    headers = {"Cookie": f"{cookies}; js=1", "Accept-Encoding": "gzip"}
    while time.monotonic() < until:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        number += 1
    connection.close()
    return number


def worker_megabytes(portal: Portal) -> list[float]:
    """Return the resident megabytes of each worker process, shared memory included."""
    children = Path(f"/proc/{portal.pid}/task/{portal.pid}/children").read_text().split()
    statuses = [Path(f"/proc/{child}/status").read_text() for child in children]
    return [int(re.findall(r"VmRSS:\s+(\d+) kB", one)[0]) / 1024 for one in statuses]


def compare_start() -> Row:
    """Compare the time from start to the first answer with that of a Django project with a single view."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        local = environment(folder, free_port()) | {"PYTHONPATH": name, "WEB_CONCURRENCY": "1"}
        (folder / "bare.py").write_text(BARE)
        (folder / "settings_of_server.py").write_text(f'worker_class, threads = "gthread", {THREADS}')
        prepare(folder)
        other = {"portal.wsgi": "bare:application", "python:portal.gunicorn": "python:settings_of_server"}
        bare = [other.get(word, word) for word in GUNICORN]
        seconds = [
            (seconds_until_answer(GUNICORN, local | DEPLOYED), seconds_until_answer(bare, local))
            for _ in range(ROUNDS)
        ]
    portal_seconds, bare_seconds = ([pair[which] for pair in seconds] for which in (0, 1))
    return compared(
        "start until the first answer, times a bare project", portal_seconds, bare_seconds, None, unit="s"
    )


def seconds_until_answer(command: list[str], settings: dict[str, str]) -> float:
    """Return the seconds from starting a server to its first healthy answer."""
    port, began = free_port(), time.perf_counter()
    with process([word.format(port) for word in command], settings, port) as server:
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        seconds = time.perf_counter() - began
        server.send_signal(signal.SIGQUIT)  # Stop it at once, because no request is open.
        return seconds
