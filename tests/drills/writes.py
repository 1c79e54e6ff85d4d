"""Sends each write of the portal under each fault, then compares the portal with the service."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from django.db import connection
from django.test import Client as Browser

from portal.audit.models import Entry, WriteIntent
from portal.records.models import KeyPerson
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.borrowers.editor import SSN, TWICE, WITH_SSN, Editor
from tests.portal.borrowers.wizard import EIN, SIGNED, Wizard

TIMEOUT_SECONDS = 1
"""The portal's timeout for calls, short because of the silent fault."""


@dataclass(frozen=True)
class NetworkFault:
    """One way of losing an answer, and whether the service carries out the write."""

    name: str
    is_done: bool
    options: dict[str, Any]


NETWORK_FAULTS = [
    NetworkFault("cut before", False, {"cut_before": True}),
    NetworkFault("cut after commit", True, {"cut_after_commit": True}),
    NetworkFault("500 after commit", True, {"status": 500, "commit": True}),
    NetworkFault("silence", True, {"delay": TIMEOUT_SECONDS + 2}),
    NetworkFault("truncated", True, {"truncate": True}),
    NetworkFault("HTML", True, {"html": True, "commit": True}),
    NetworkFault("malformed", True, {"body": b'{"uuid": "3f', "commit": True}),
]


@dataclass
class PreparedWrite:
    """A form that is ready to send, with what to check afterwards."""

    send: Callable[[], Any]
    done: Callable[[], int]
    """Returns how many times the service carried out the write."""
    typed: str
    """A typed value that a page must still show."""
    found_on: Callable[[], Any] | None = None
    """Returns that page; by default it is the page of the write."""
    secrets: list[str] = field(default_factory=list)


def creation(browser: Browser, service: Sandbox) -> PreparedWrite:
    """Prepare a new borrower."""
    email = new_email()
    wizard = Wizard(browser).fill(email=email, first_name=f"Bakery {email[:8]} LLC")
    # The reason is required if an earlier borrower has the same phone.
    typed = wizard.hidden_fields() | SIGNED | {"reason": "Another branch of the same bakery."}
    return PreparedWrite(
        lambda: wizard.post("review", typed),
        lambda: [user["email"] for user in service.world.users()].count(email),
        email,
        lambda: wizard.get("review"),
        [EIN, EIN.replace("-", "")],
    )


def update(browser: Browser, service: Sandbox) -> PreparedWrite:
    """Prepare a change of a profile."""
    editor = Editor(browser, given.borrower(service))
    return _edit(editor, lambda: service.world.user(editor.record.uuid)["email"])


def person_update(browser: Browser, service: Sandbox) -> PreparedWrite:
    """Prepare a change of a key person with an SSN."""
    owner = given.borrower(service)
    person = KeyPerson.objects.filter(borrower_uuid=owner.uuid).order_by("id")[0]

    def email() -> str:
        people = service.world.user(owner.uuid)["key_people"]
        return str(next(one["email"] for one in people if one["uuid"] == person.uuid))

    return _edit(Editor(browser, person), email, secret=True)


def application(browser: Browser, service: Sandbox) -> PreparedWrite:
    """Prepare a loan application."""
    owner = given.borrower(service)
    typed = {"submit_id": str(uuid4()), "amount": "25,170.00", "confirmed": "yes"}
    return PreparedWrite(
        lambda: browser.post(f"/borrowers/{owner.uuid}/applications/new/", typed),
        lambda: len(service.world.store.all("loan_application", owner=owner.uuid)),
        "25170.00",
    )


WRITES = {
    "borrowers.create_commercial": creation,
    "borrowers.update": update,
    "borrowers.update_key_person": person_update,
    "applications.submit": application,
}


def new_email() -> str:
    """Return a unique email."""
    return f"{uuid4().hex[:8]}@typed.example"


def _edit(editor: Editor, email: Callable[[], str], *, secret: bool = False) -> PreparedWrite:
    new = new_email()
    preview = editor.review_fields(email=new, **(WITH_SSN if secret else {})) | {"reason": "On the phone"}
    if secret:
        preview |= TWICE
    return PreparedWrite(
        lambda: editor.post(preview, "send"),
        lambda: int(email() == new),
        new,
        secrets=[SSN, SSN.replace("-", "")] if secret else [],
    )


@dataclass
class Verdict:
    """Findings as sentences: lost data, doubled writes, untrue statements and stuck work."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)

    def __iadd__(self, other: "Verdict") -> "Verdict":
        for own, added in zip(self.columns, other.columns, strict=True):
            own += added
        return self

    @property
    def columns(self) -> list[list[str]]:
        return [self.lost, self.doubled, self.untrue, self.stuck]

    @property
    def words(self) -> list[str]:
        """All findings."""
        return [*self.lost, *self.doubled, *self.untrue, *self.stuck]


def check_write(operation: str, fault: NetworkFault, browser: Browser, service: Sandbox) -> Verdict:
    """Send a write under a fault, send the same form again, and compare both sides."""
    sending, found = WRITES[operation](browser, service), Verdict()
    service.fail_next(operation, **fault.options)
    answer = sending.send()
    service.heal()
    intents = list(WriteIntent.objects.filter(operation=operation).order_by("-created_at"))
    intent = intents[0]
    if (answer.status_code, answer.headers.get("Location")) != (303, intent.get_absolute_url()):
        found.untrue.append(
            f"the form answers {answer.status_code} and does not lead to the record of the write"
        )
    page = browser.get(intent.get_absolute_url()).content.decode()
    if "may or may not have gone through" not in page:
        found.untrue.append("the record of the write does not say that nobody knows")
    if intent.state != WriteIntent.State.UNKNOWN:
        found.untrue.append(f"the intent is {intent.state}")
    again = sending.send()
    if again.status_code not in (303, 409):
        found.untrue.append(f"the same form sent again answers {again.status_code}")
    if sending.done() != fault.is_done:
        found.doubled.append(f"the service has it {sending.done()} times")
    if WriteIntent.objects.filter(operation=operation).count() != len(intents):
        found.doubled.append("the same form left a second intent")
    found.lost += _find_losses(sending, intent, browser)
    return found


def _find_losses(sending: PreparedWrite, intent: WriteIntent, browser: Browser) -> list[str]:
    """Return what is missing, and the secrets that were stored."""
    lost = []
    rows = list(Entry.objects.filter(intent_id=intent.pk).order_by("id").values_list("phase", "result"))
    if rows != [("attempt", ""), ("outcome", "unknown")]:
        lost.append(f"the trail has {rows}")
    page = sending.found_on() if sending.found_on else browser.get(intent.get_absolute_url())
    if sending.typed not in page.content.decode():
        lost.append("what was typed is not found again")
    with connection.cursor() as cursor:
        cursor.execute("SELECT request_body FROM audit_writeintent")
        bodies = str(cursor.fetchall())
    return lost + [f"a secret is stored: {secret}" for secret in sending.secrets if secret in bodies]
