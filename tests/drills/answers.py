"""Locks or fills the database, or kills the portal, while the answer of a write arrives.

The service runs in this process, the portal in another. The database goes away once the service has the request.
Afterwards ``save_answer`` runs twice. If the portal was killed, the outcome is unknown.
"""

import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import requests
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit import unsaved, writes
from portal.audit.models import Entry, RemoteCall, WriteIntent
from portal.borrowers.models import Draft
from portal.records.models import NAMED_KINDS
from portal.records.rows import records_of
from servicing.sandbox import Sandbox
from tests import databases
from tests.drills.killing import TOKEN, Portal
from tests.drills.writes import WRITES, PreparedWrite, Verdict

ANSWER_SECONDS = 1.5
"""The service's delay, so that the database is away when the answer arrives."""
PAGE_SECONDS = 10.0
"""The limit of a page besides the service's delay."""
CREATIONS = {"borrowers.create_commercial": "user", "applications.submit": "loan_application"}


class RemoteBrowser:
    """A session in the portal of the other process, with the methods of Django's test client."""

    def __init__(self, portal: Portal, name: str = "durable") -> None:
        user, _ = User.objects.get_or_create(username=name, role=Role.SUPERVISOR)
        browser = Browser()
        browser.force_login(user, backend=settings.AUTHENTICATION_BACKENDS[-1])
        self.portal, self.session = portal, requests.Session()
        cookies = {name: morsel.value for name, morsel in browser.cookies.items()}
        self.session.cookies.update(cookies | {settings.CSRF_COOKIE_NAME: TOKEN})
        self.session.headers["X-CSRFToken"] = TOKEN

    def get(self, path: str) -> Any:
        return self.session.get(f"{self.portal.url}{path}", timeout=90)

    def post(self, path: str, data: Any, content_type: str = "", **headers: Any) -> Any:
        given = {"Content-Type": content_type} if content_type else {}
        address = f"{self.portal.url}{path}"
        return self.session.post(address, data=data, headers=given, timeout=90, allow_redirects=False)


@dataclass
class Loss:
    """One way to lose the database or the portal."""

    name: str
    take_away: Callable[[], Any]
    """Returns a context manager for the time of the loss."""
    is_killed: bool = False


@contextmanager
def locked() -> Iterator[None]:
    """Hold a write lock."""
    holder = connections["default"].copy()
    if holder.vendor == "postgresql":
        holder.settings_dict["OPTIONS"].pop("pool", None)
    with holder.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE" if holder.vendor == "sqlite" else "BEGIN")
        if holder.vendor == "postgresql":
            cursor.execute("LOCK TABLE audit_writeintent, audit_entry IN EXCLUSIVE MODE")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")
    holder.close()


@contextmanager
def full() -> Iterator[None]:
    """Make the database reject outcomes, as a full disk would."""
    new = "NEW.phase = 'outcome'"
    databases.reject_inserts("audit_entry", new)
    connection.close()
    try:
        yield
    finally:
        databases.allow_inserts("audit_entry")
        connection.close()


LOSSES = [
    Loss("locked", locked),
    Loss("full", full),
    Loss("killed", locked, is_killed=True),
]


def check_write(operation: str, loss: Loss, service: Sandbox) -> Verdict:
    """Send one write under a loss, then compare the portal with the service."""
    portal, found = Portal(service.url, APPROVAL_ACTS="none"), Verdict()
    databases.forget_connections()
    portal.start()
    try:
        sending = WRITES[operation](RemoteBrowser(portal), service)  # type: ignore[arg-type]
        drafts = Draft.objects.count()
        _send_under_loss(portal, sending, loss, service, found)
        if loss.is_killed:
            portal.start()
        if Draft.objects.count() < drafts:
            found.lost.append("the draft was deleted before its outcome was saved")
        for _ in range(2):
            call_command("save_answer", stdout=io.StringIO())
        if unsaved.answers_file().exists():
            found.stuck.append("answers are unsaved afterwards")
        if loss.is_killed:
            WriteIntent.objects.update(created_at=timezone.now() - timedelta(hours=1))
            writes.close_stale_writes()
        _compare(operation, sending, service, found, "unknown" if loss.is_killed else "confirmed")
    finally:
        portal.kill()
        service.heal()
    return found


def _send_under_loss(
    portal: Portal, sending: PreparedWrite, loss: Loss, service: Sandbox, found: Verdict
) -> None:
    """Send a write, take the database away before the answer arrives, and check the page, if any."""
    service.fail_next("*", delay=ANSWER_SECONDS)
    answers: list[Any] = []

    def send() -> None:
        try:
            answers.append(sending.send())
        except requests.RequestException:
            pass

    before, sender = len(service.calls), threading.Thread(target=send)
    sender.start()
    while len(service.calls) == before and sender.is_alive():
        time.sleep(0.01)
    with ExitStack() as stack:
        stack.enter_context(loss.take_away())
        began = time.monotonic()
        if loss.is_killed:
            time.sleep(ANSWER_SECONDS + 0.5)
            portal.kill()
        sender.join()
        waited = time.monotonic() - began
        if waited > ANSWER_SECONDS + PAGE_SECONDS:
            found.stuck.append(f"the page took {waited:.1f} s")
    if not loss.is_killed:
        _check_page(answers, sending, found)


def _check_page(answers: list[Any], sending: PreparedWrite, found: Verdict) -> None:
    """Check that the page says what was done, and that the file is private and holds no secret."""
    if not answers:
        found.stuck.append("no page came")
        return
    page, status = answers[0].content.decode(), answers[0].status_code
    [entry] = unsaved.kept_answers() or [{"uuid": "nothing"}]
    if status != 503 or "Done at the service, not saved here yet" not in page:
        found.untrue.append(f"the page answers {status} and does not say what was done")
    if entry["uuid"] not in page:
        found.lost.append("the page does not show the uuid")
    file = unsaved.answers_file()
    if file.stat().st_mode & 0o777 != 0o600:
        found.lost.append("others may read the answer")
    text = file.read_bytes()
    found.lost += [f"a secret is stored: {secret}" for secret in sending.secrets if secret.encode() in text]


def _compare(operation: str, sending: PreparedWrite, service: Sandbox, found: Verdict, state: str) -> None:
    intent = WriteIntent.objects.filter(operation=operation).order_by("-created_at")[0]
    rows = list(Entry.objects.filter(intent_id=intent.pk).order_by("id").values_list("phase", "result"))
    if (intent.state, rows) != (state, [("attempt", ""), ("outcome", state)]):
        found.lost.append(f"the write is {intent.state}, its trail {rows}")
    if state == "unknown":
        if sending.done() != 1:
            found.doubled.append(f"done {sending.done()} times")
        return
    if RemoteCall.objects.filter(intent_id=intent.pk).count() != 1:
        found.doubled.append("the answer was not recorded exactly once")
    if not any(records_of(one).filter(uuid=intent.subject_uuid).exists() for one in NAMED_KINDS):
        found.lost.append("the new record is not on file")
    kind = CREATIONS.get(operation, "")
    if kind and intent.subject_uuid not in [one.uuid for one in service.world.store.all(kind)]:
        found.untrue.append("the uuid is not that of the service")
    again = sending.send()
    if again.status_code not in (303, 409) or sending.done() != 1:
        found.doubled.append(f"sent again it answers {again.status_code}, done {sending.done()} times")
