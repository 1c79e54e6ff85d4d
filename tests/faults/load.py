"""Measures errors, response times and memory while fifty people work on two web processes.

The portal runs as deployed: without DEBUG, with hashed static files and second factors.
"""

import html
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from uuid import uuid4

import requests
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db import connection
from django.test import Client as Browser

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.live.panels import LOADER
from portal.registry.models import Record
from servicing.sandbox import Sandbox
from tests import given
from tests.faults.killing import TOKEN, Portal

STAFF = 50
PAUSE_SECONDS = (2.0, 10.0)
"""Seconds between two clicks of one person."""
COOKIES = ("__Host-sessionid", "__Host-csrftoken")
MAX_PAGE_MS = 300
MAX_GROWTH_MB = 16
"""Megabytes that both processes together may grow by in 10,000 requests."""
LOADER_TAG = re.compile(rf'<div id="{LOADER}"[^>]* hx-get="([^"]*)" hx-headers="([^"]*)"[^>]*>')
REQUEST = b'"logger": "portal.requests"'
WARM_UP_SHARE = 0.4
"""The share of the run before memory counts: caches fill first."""


class Load(NamedTuple):
    """The results of a run."""

    requests: int
    errors: list[str]
    median: int
    p95: int
    growth: float
    """Megabytes per 10,000 requests."""
    views: dict[str, str]
    """For each view, the 95th percentile, the CPU of a request, and the CPU of a page with its panels."""
    cpu: float
    """Milliseconds of CPU of both processes for a page with its panels, including calls of the service."""

    def __str__(self) -> str:
        return (
            f"server time median {self.median} ms, p95 {self.p95} ms (at most {MAX_PAGE_MS}), "
            f"CPU of a page with its panels {self.cpu:.0f} ms, "
            f"memory {self.growth:+.1f} MB in 10,000 requests (at most {MAX_GROWTH_MB})"
        )

    @property
    def missed(self) -> list[str]:
        """The limits that were missed."""
        limits = {
            f"p95 is {self.p95} ms": self.p95 < MAX_PAGE_MS,
            f"memory grows by {self.growth:.1f} MB": self.growth < MAX_GROWTH_MB,
        }
        return [words for words, is_met in limits.items() if not is_met]


def run_load(service: Sandbox, seconds: float) -> Load:
    """Run the scripted day for this long."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "portal.log"
        options = {"LOG_LEVEL": "INFO", "LOG_FORMAT": "json", "WEB_CONCURRENCY": "2"}
        # Recycling would hide a leak.
        portal = Portal(
            service.url, "--max-requests", "0", log=log, **options, **deployment_settings(service)
        )
        people = [_person(service, portal.url, number) for number in range(STAFF)]
        connection.close()
        portal.start()
        try:
            errors, memory = _run_day(portal, people, log, seconds)
            cpu_seconds = portal.cpu_seconds
        finally:
            portal.kill()
        answers = _answers(log)
    pages = {reference for one in people for reference in one.pages}
    views = {view: _view_times(answers, view, pages) for view in sorted({one.view for one in answers})}
    times = [one.ms for one in answers]
    cpu = cpu_seconds * 1000 / max(len(pages), 1)
    return Load(
        len(times), errors, _percentile(times, 50), _percentile(times, 95), _growth(memory), views, cpu
    )


def deployment_settings(service: Sandbox) -> dict[str, str]:
    """Collect static files; return the settings of a deployment without a TLS proxy."""
    deployment = {
        "DEBUG": "off",
        "SECRET_KEY": settings.SECRET_KEY,
        "ALLOWED_HOSTS": "127.0.0.1",
        "SERVICING_ENVIRONMENT": "sandbox",
        "SECURE_SSL_REDIRECT": "off",
    }
    command = [sys.executable, "manage.py", "collectstatic", "--no-input", "--verbosity", "0"]
    environment = os.environ | deployment | {"SERVICING_URL": service.url}
    subprocess.run(command, env=environment, cwd=settings.BASE_DIR, check=True)
    return deployment


class Answer(NamedTuple):
    """One request in the portal's log."""

    reference: str
    view: str
    ms: int
    cpu_ms: int


def _view_times(answers: list[Answer], view: str, pages: set[str]) -> str:
    """Return the times of a view. Panels use the address of their page, so the CPU is also divided by its pages."""
    asked = [one for one in answers if one.view == view]
    cpu, whole = sum(one.cpu_ms for one in asked), sum(one.reference in pages for one in asked)
    of_page = f", {cpu / whole:.0f} a page" if whole and whole < len(asked) else ""
    return f"{_percentile([one.ms for one in asked], 95)} (CPU {cpu / len(asked):.0f}{of_page})"


def _percentile(times: list[int], share: int) -> int:
    """Return a percentile of the times."""
    return sorted(times)[len(times) * share // 100]


class Person:
    """A signed-in person who repeats the same steps."""

    def __init__(self, session: requests.Session, url: str, loan: Record, line: Record) -> None:
        self.session, self.url, self.loan, self.line = session, url, loan, line
        self.errors: list[str] = []
        self.pages: list[str] = []
        """The request IDs of whole pages, without those of their panels."""

    def work(self, end: float, chance: random.Random) -> None:
        """Do the steps in turn, with pauses. Each person is at another point of the day."""
        steps = [self.home, self.borrower, self.account, self.line_of_credit, self.messages, self.apply]
        first = chance.randrange(len(steps))
        steps = steps[first:] + steps[:first]
        time.sleep(chance.uniform(0, PAUSE_SECONDS[1]))
        while time.monotonic() < end:
            for step in steps:
                step()
                time.sleep(chance.uniform(*PAUSE_SECONDS))

    def home(self) -> None:
        self.get("/")
        self.get("/search/?q=bakery")

    def borrower(self) -> None:
        self.get(f"/borrowers/?q={self.loan.borrower_uuid[:8]}")
        self.open(f"/borrowers/{self.loan.borrower_uuid}/")

    def account(self) -> None:
        self.open(self.loan.get_absolute_url())

    def line_of_credit(self) -> None:
        self.open(self.line.get_absolute_url())

    def messages(self) -> None:
        self.get("/messages/")
        self.get("/messages/", {"HX-Request": "true", "HX-Target": "messages"})

    def apply(self) -> None:
        address = f"/borrowers/{self.loan.borrower_uuid}/applications/new/"
        self.get(address)
        typed = {"submit_id": str(uuid4()), "amount": "1,250.00", "confirmed": "yes"}
        self.check_status(
            self.session.post(self.url + address, typed, allow_redirects=False, timeout=60), 303
        )

    def open(self, address: str) -> None:
        """Get a page, then its panels until none is left to load, as a browser does."""
        page = self.get(address)
        while loader := LOADER_TAG.search(page):
            url, headers = (html.unescape(found) for found in loader.groups())
            time.sleep(1 if "delay:1s" in loader[0] else 0)
            page = self.get(url, {"HX-Request": "true", "HX-Target": LOADER, **json.loads(headers)})

    def get(self, address: str, headers: dict[str, str] | None = None) -> str:
        answer = self.session.get(self.url + address, headers=headers, timeout=60)
        self.check_status(answer, 200)
        self.pages += [answer.headers["X-Request-ID"]] if headers is None else []
        return answer.text

    def check_status(self, answer: requests.Response, expected: int) -> None:
        if answer.status_code != expected:
            self.errors.append(f"{answer.request.method} {answer.request.path_url}: {answer.status_code}")


def _person(service: Sandbox, url: str, number: int) -> Person:
    owner = given.borrower(service)
    user = User.objects.create(username=f"load-{number}", role=Role.SERVICER)
    Authenticator.objects.create(user=user, type=Authenticator.Type.TOTP, data={})
    browser = Browser()
    browser.force_login(user, backend=settings.AUTHENTICATION_BACKENDS[-1])
    session = requests.Session()
    session.cookies[COOKIES[0]] = browser.cookies[settings.SESSION_COOKIE_NAME].value
    session.cookies[COOKIES[1]] = TOKEN
    session.cookies["js"] = "1"
    session.headers["X-CSRFToken"] = TOKEN
    return Person(session, url, given.loan(service, owner, paid=3), given.line(service, owner))


def _run_day(
    portal: Portal, people: list[Person], log: Path, seconds: float
) -> tuple[list[str], list[tuple[int, float]]]:
    """Run the day; return all errors, and samples of the requests so far and the megabytes."""
    began = time.monotonic()
    threads = [
        threading.Thread(target=one.work, args=[began + seconds, random.Random(number)])
        for number, one in enumerate(people)
    ]
    for thread in threads:
        thread.start()
    memory = []
    while any(thread.is_alive() for thread in threads):
        time.sleep(2)
        if time.monotonic() - began > seconds * WARM_UP_SHARE:
            memory.append((log.read_bytes().count(REQUEST), portal.megabytes))
    return [error for one in people for error in one.errors], memory


def _answers(log: Path) -> list[Answer]:
    """Return each request of the portal's log."""
    lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
    return [
        Answer(line["request_id"], line["view"], line["ms"], line["cpu_ms"])
        for line in lines
        if line.get("logger") == "portal.requests"
    ]


def _growth(memory: list[tuple[int, float]]) -> float:
    """Return the slope of a least-squares line, per 10,000 requests."""
    count = len(memory)
    mean_x, mean_y = sum(x for x, _ in memory) / count, sum(y for _, y in memory) / count
    spread = sum((x - mean_x) ** 2 for x, _ in memory)
    return 10_000 * sum((x - mean_x) * (y - mean_y) for x, y in memory) / spread if spread else 0.0
