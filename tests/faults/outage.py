"""Opens every page while the service is down: each must quickly show saved copies and say so.

The portal runs in two processes. People with and without JavaScript open the pages. When the service is back, pages
must refresh without help.
"""

import time
from collections.abc import Iterator
from typing import Any

import requests
from django.conf import settings
from django.db import connection
from django.test import Client as Browser

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.service_health import PAUSE, current_outage
from portal.registry.models import Record
from tests import given
from tests.faults.killing import Portal
from tests.faults.proxy import ProxiedSandbox
from tests.faults.writes import Verdict

PAGE_SECONDS = 1.0
"""The limit for any page, in seconds."""
TIMEOUT_SECONDS = 5
"""The portal's timeout for calls, in seconds; short to shorten the run."""
NOTICE_SECONDS = 40.0
RECOVERY_SECONDS = 30.0
LISTS = [
    "/",
    "/borrowers/",
    "/applications/",
    "/loans/",
    "/lines/",
    "/repayments/",
    "/messages/",
    "/approvals/",
]
LISTS += ["/search/?q=bakery", "/status/", "/audit/"]
NOTICES = ("No response since", "Loading…")


WAYS: dict[str, dict[str, Any]] = {"silent": {"delay": 60}, "away": {"cut_before": True}}
"""The service never answers, or it closes every connection."""
OUTAGE_SECONDS = 40.0


class Staff:
    """A session in the portal, which runs in other processes."""

    def __init__(self, url: str, *, scripts: bool) -> None:
        user, _ = User.objects.get_or_create(username="away", role=Role.SUPERVISOR)
        browser = Browser()
        browser.force_login(user, backend=settings.AUTHENTICATION_BACKENDS[-1])
        self.url = url
        self.session = requests.Session()
        self.session.cookies[settings.SESSION_COOKIE_NAME] = browser.cookies[
            settings.SESSION_COOKIE_NAME
        ].value
        if scripts:
            self.session.cookies["js"] = "1"

    def get(self, address: str, panel: str = "") -> tuple[str, int, float]:
        """Return the text of a page or panel, its status and its seconds."""
        headers = {"HX-Request": "true", "HX-Target": panel} if panel else {}
        began = time.monotonic()
        answer = self.session.get(self.url + address, headers=headers, timeout=60)
        return answer.text, answer.status_code, time.monotonic() - began


def open_pages(service: ProxiedSandbox, way: str) -> tuple[Verdict, list[float]]:
    """Open every page while the service is down; return the findings and the seconds of each page."""
    records = records_with_copies(service)
    portal = Portal(service.url, SERVICING_TIMEOUT=str(TIMEOUT_SECONDS), WEB_CONCURRENCY="2")
    staff = [Staff(portal.url, scripts=True), Staff(portal.url, scripts=False)]
    connection.close()
    portal.start()
    try:
        service.fail_next("*", times=None, **WAYS[way])
        found, took = Verdict(), []
        for page, person, needs_notice in pages_in_turn(staff, records, OUTAGE_SECONDS):
            took.append(check_page(page, person, found, needs_notice=needs_notice))
        _check_call_rate(service, found)
        service.heal()
        _check_recovery(staff[0], records, found)
    finally:
        portal.kill()
    return found, took


def records_with_copies(service: ProxiedSandbox) -> list[Record]:
    """Return a borrower, a loan and a line with saved copies."""
    owner = given.borrower(service)
    loan, line = given.loan(service, owner, paid=3), given.line(service, owner)
    browser = Browser(SERVER_NAME="localhost")
    user, _ = User.objects.get_or_create(username="away", role=Role.SUPERVISOR)
    browser.force_login(user, backend=settings.AUTHENTICATION_BACKENDS[-1])
    for record in (loan, line):
        browser.get(record.get_absolute_url())
    return [owner, loan, line]


def pages_in_turn(
    staff: list[Staff], records: list[Record], seconds: float
) -> Iterator[tuple[str, Staff, bool]]:
    """Yield pages in turn for this long, each with a person and whether it must show a notice."""
    end, waited_until = time.monotonic() + seconds, time.monotonic() + NOTICE_SECONDS
    details = [record.get_absolute_url() for record in records]
    while time.monotonic() < end or (current_outage() is None and time.monotonic() < waited_until):
        Record.objects.update(asked_at=None)
        is_known = current_outage() is not None
        for person in staff:
            for page in [*LISTS, *details]:
                yield page, person, is_known


def check_page(page: str, person: Staff, found: Verdict, *, needs_notice: bool) -> float:
    """Check a page; return its seconds."""
    text, status, seconds = person.get(page)
    if status != 200:
        found.lost.append(f"{page} answers {status}")
    if seconds > PAGE_SECONDS:
        found.untrue.append(f"{page} took {seconds:.1f} s")
    if needs_notice and not any(words in text for words in NOTICES):
        found.untrue.append(f"{page} does not say that the service is away")
    return seconds


def _check_call_rate(service: ProxiedSandbox, found: Verdict) -> None:
    """Check that the service is called about once per pause."""
    before, began = service.proxy.request_count, time.monotonic()
    time.sleep(3 * PAUSE.total_seconds())
    tries, pauses = service.proxy.request_count - before, (time.monotonic() - began) / PAUSE.total_seconds()
    if current_outage() is None or tries > pauses + 1:
        found.doubled.append(f"the service was asked {tries} times in {pauses:.0f} pauses")


def _check_recovery(person: Staff, records: list[Record], found: Verdict) -> None:
    """Check that the first answer ends the outage."""
    end = time.monotonic() + RECOVERY_SECONDS
    while current_outage() and time.monotonic() < end:
        Record.objects.update(asked_at=None)
        person.get(records[1].get_absolute_url(), panel="loan")
        time.sleep(0.5)
    if current_outage():
        found.stuck.append(f"{RECOVERY_SECONDS:.0f} s after the service was back it is still not called")
