"""Kills the portal at random moments while staff send forms, and checks the outcome of each write.

The service runs in this process, the portal in another, which is killed and restarted. Eight people send forms, and
send them again if no answer came. Afterwards each form is compared with both databases.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import requests
from django.conf import settings
from django.db import connection
from django.test import Client as Browser

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.integrity import verify_chain
from portal.audit.models import Entry, WriteIntent
from portal.audit.writes import close_stale_writes
from portal.records.models import Account, Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.databases import database_url
from tests.drills.writes import Verdict

HOST = "127.0.0.1"
STAFF = 8
TOKEN = "t" * 32
ANSWER_SECONDS = 5.0
"""Seconds to wait for an answer, which never comes from a killed portal."""


@dataclass
class Form:
    """One form, which is sent until the portal answers."""

    borrower: str
    cents: int
    submit_id: str = field(default_factory=lambda: str(uuid4()))
    answers: list[int] = field(default_factory=list)

    @property
    def amount(self) -> Decimal:
        return Decimal(self.cents) / 100


class Portal:
    """The portal in its own process group."""

    def __init__(self, service: str, *options: str, log: str | Path = os.devnull, **overrides: str) -> None:
        self.options, self.log = options, log
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self.port = int(probe.getsockname()[1])
        self.environment = os.environ | {
            "DATABASE_URL": database_url(),
            "SERVICING_URL": service,
            "SERVICING_CLIENT_ID": settings.SERVICING_CLIENT_ID,
            "SERVICING_SECRET": settings.SERVICING_SECRET,
            **overrides,
        }
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "--config",
            "python:portal.gunicorn",
            "portal.wsgi",
            "--bind",
            f"{HOST}:{self.port}",
        ]
        command += ["--log-level", "critical"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.options],
                env=self.environment,
                cwd=settings.BASE_DIR,
                start_new_session=True,
                stderr=log,
            )
        for _ in range(1200):
            try:
                requests.get(f"{self.url}/healthz", timeout=5)
                return
            except requests.RequestException:
                time.sleep(0.05)
        raise RuntimeError("the portal did not start")

    def kill(self) -> None:
        """Kill all of its processes."""
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    @property
    def megabytes(self) -> float:
        """Anonymous memory of the portal's processes, without mapped files."""
        return _anonymous_megabytes(self.process.pid) if self.process else 0.0

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the portal's processes."""
        return _cpu_ticks(self.process.pid) / os.sysconf("SC_CLK_TCK") if self.process else 0.0


def _cpu_ticks(pid: int) -> int:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(user) + int(system) + sum(_cpu_ticks(int(child)) for child in children)


def _anonymous_megabytes(pid: int) -> float:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(fields["RssAnon"].split()[0]) / 1024 + sum(
        _anonymous_megabytes(int(child)) for child in children
    )


def kill_portal(service: Sandbox, times: int) -> tuple[Verdict, int]:
    """Kill the portal ``times`` times under load; return the verdict and the number of forms sent."""
    portal, stopping = Portal(service.url), threading.Event()
    staff = [_new_staff_member(service, number) for number in range(STAFF)]
    connection.close()
    portal.start()
    threads = [
        threading.Thread(target=_send_forms, args=[portal, cookie, owner, number, forms, stopping])
        for number, (cookie, owner, forms) in enumerate(staff)
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(times):
            time.sleep(random.uniform(0.05, 1.5))
            portal.kill()
            portal.start()
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
        portal.kill()
    sent = [form for _, _, forms in staff for form in forms]
    return _compare_all(service, sent), len(sent)


def _new_staff_member(service: Sandbox, number: int) -> tuple[str, Account, list[Form]]:
    """Return the session of a new servicer, a borrower, and an empty list of forms."""
    user = User.objects.create(username=f"staff-{number}", role=Role.SERVICER)
    browser = Browser()
    browser.force_login(user, backend=settings.AUTHENTICATION_BACKENDS[-1])
    return browser.cookies[settings.SESSION_COOKIE_NAME].value, given.borrower(service), []


def _send_forms(
    portal: Portal, cookie: str, owner: Borrower, number: int, forms: list[Form], stopping: threading.Event
) -> None:
    """Send forms one by one, repeating each until it is answered."""
    while not stopping.is_set():
        form = Form(owner.uuid, 100_000 + number + STAFF * len(forms))
        forms.append(form)
        while not form.answers and not stopping.is_set():
            if answer := _send_form(portal, cookie, form):
                form.answers.append(answer)


def _send_form(portal: Portal, cookie: str, form: Form) -> int | None:
    """Send a form; return the status of the answer, if any."""
    typed = {"submit_id": form.submit_id, "amount": f"{form.amount:.2f}", "confirmed": "yes"}
    cookies = {settings.SESSION_COOKIE_NAME: cookie, settings.CSRF_COOKIE_NAME: TOKEN}
    address = f"{portal.url}/borrowers/{form.borrower}/applications/new/"
    try:
        answer = requests.post(
            address,
            data=typed,
            cookies=cookies,
            headers={"X-CSRFToken": TOKEN},
            timeout=ANSWER_SECONDS,
            allow_redirects=False,
        )
    except requests.RequestException:
        time.sleep(0.1)
        return None
    return answer.status_code


def _compare_all(service: Sandbox, forms: list[Form]) -> Verdict:
    """Compare each form with the service and the audit trail."""
    WriteIntent.objects.filter(state=WriteIntent.State.SENDING).update(created_at="2020-01-01T00:00:00Z")
    close_stale_writes()
    found, applications = Verdict(), _applications(service)
    intents = {intent.submit_id: intent for intent in WriteIntent.objects.all()}
    for form in forms:
        count = applications.get((form.borrower, form.amount), 0)
        _compare(form, intents.get(form.submit_id), count, found)
    if broken := verify_chain().found:
        found.lost.append(str(broken))
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA integrity_check")
            if (answer := cursor.fetchone()[0]) != "ok":
                found.lost.append(f"the database: {answer}")
    return found


def _compare(form: Form, intent: WriteIntent | None, count: int, found: Verdict) -> None:
    """Check that a form created at most one application, both audit entries, and a consistent state."""
    if count > 1:
        found.doubled.append(f"{form.amount} was created {count} times")
    if intent is None:
        if count or 303 in form.answers:
            found.lost.append(f"{form.amount} was sent and left no intent")
        return
    rows = list(Entry.objects.filter(intent_id=intent.pk).order_by("id").values_list("phase", "result"))
    if rows != [("attempt", ""), ("outcome", intent.state)]:
        found.lost.append(f"{form.amount} is {intent.state}, its trail {rows}")
    if intent.state == WriteIntent.State.SENDING:
        found.stuck.append(f"{form.amount} is still being sent")
    is_consistent = {"confirmed": count == 1, "unknown": True}.get(intent.state, count == 0)
    if not is_consistent or (303 in form.answers and intent.state == "rejected"):
        found.untrue.append(f"{form.amount} is {intent.state}, and the service has it {count} times")


def _applications(service: Sandbox) -> dict[tuple[str, Decimal], int]:
    """Count the applications at the service by borrower and amount."""
    applications: dict[tuple[str, Decimal], int] = {}
    for record in service.world.store.all("loan_application"):
        key = (record.owner, Decimal(str(record.body["amount"])))
        applications[key] = applications.get(key, 0) + 1
    return applications
