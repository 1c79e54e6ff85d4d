"""Tests of outgoing mail: each message is sent once, only to those who want it, without borrower names."""

import asyncio
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from io import StringIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from django.conf import LazySettings
from django.core.management import call_command
from django.db import connection
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts import outbox
from portal.accounts.models import OutgoingMail, User
from portal.approvals.lifecycle import decide, request_approval
from portal.approvals.models import Approval
from portal.audit.chain import append
from portal.audit.models import Actor, Outage
from portal.collections.models import AccountOwner, Channel, Contact, Outcome, Promise
from portal.core.business_date import business_date
from portal.jobs.execution import Progress
from portal.jobs.models import Job, Worker
from portal.jobs.queue import start_job
from portal.messaging.models import Run
from portal.notes.models import FollowUp
from portal.operations import doctor
from portal.records.models import Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import existing_user
from tests.portal.jobs.test_worker import wait_until
from tests.portal.operations.test_demo import free_port
from tests.trial.deployment import certificate

ZONE = ZoneInfo("America/New_York")
MONDAY_NOON = datetime(2026, 11, 23, 12, tzinfo=ZONE)


class MailServer:
    """A real local SMTP server that can reject mail, delay its answer and be stopped."""

    def __init__(self) -> None:
        self.received: list[EmailMessage] = []
        self.refusal = ""
        self.refusals: dict[str, dict[str, str]] = {}
        """For each command the replies to some addresses."""
        self.dies_after: set[str] = set()
        """The addresses after whose text the connection is cut."""
        self.connections = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.port = free_port()

    def start(self, **options: Any) -> None:
        self.controller = Controller(self, hostname="127.0.0.1", port=self.port, **options)
        self.controller.start()

    def stop(self) -> None:
        self.controller.stop()

    async def handle_EHLO(self, server: Any, session: Any, envelope: Any, hostname: str, replies: Any) -> Any:
        self.connections += 1
        session.host_name = hostname
        return replies

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        reply = self.refusals.get("RCPT", {}).get(address, "250 OK")
        if not reply:
            server.transport.abort()
        if reply[0] != "4" and reply[0] != "5":
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if refusal := self.refusal or self.refusals.get("DATA", {}).get(envelope.rcpt_tos[0]):
            return refusal
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.received.append(message)
        if envelope.rcpt_tos[0] in self.dies_after:
            server.transport.abort()
        while not self.may_answer.is_set():
            await asyncio.sleep(0.02)
        return "250 OK"

    @property
    def subjects(self) -> list[str]:
        return sorted(one["Subject"].removeprefix("Servicing Desk: ") for one in self.received)


@pytest.fixture
def server(settings: LazySettings) -> Iterator[MailServer]:
    found = MailServer()
    found.start()
    settings.HAS_MAIL, settings.MAIL_MINUTES = True, 5
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", found.port
    settings.DEFAULT_FROM_EMAIL, settings.PORTAL_URL = "desk@desk.example", "https://desk.example"
    settings.OPERATOR_EMAILS = ["ops@desk.example"]
    yield found
    found.may_answer.set()
    if found.controller.server:
        found.stop()


def write_and_send_mail() -> None:
    """Run the worker's jobs that write mail and send it."""
    from portal.home.tasks import write_mail

    start_job(write_mail)
    call_command("work", batch=True)
    call_command("work", batch=True)


def states() -> list[str]:
    return list(OutgoingMail.objects.values_list("state", flat=True))


def send() -> None:
    start_job(outbox.send_mail)
    call_command("work", batch=True)


def queue_many(number: int) -> list[str]:
    """Queue messages to as many addresses."""
    addresses = [f"person{one}@desk.example" for one in range(number)]
    for one in addresses:
        outbox.queue_mail(one, one, "Subject", "Text")
    return addresses


@pytest.mark.django_db
class TestServer:
    def test_a_message_is_sent_once_and_its_text_is_deleted(self, server: MailServer) -> None:
        for _ in range(2):
            outbox.queue_mail("one:1", "ada@desk.example", "Two\nlines", "Text")
            send()
        (mail,) = server.received
        assert (mail["To"], mail["From"], mail["Subject"]) == (
            "ada@desk.example",
            "desk@desk.example",
            "Two lines",
        )
        assert OutgoingMail.objects.get().sealed == ""
        assert states() == ["sent"]

    @pytest.mark.slow
    def test_mail_and_password_go_only_to_a_trusted_server(
        self, server: MailServer, settings: LazySettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def check_password(_: Any, __: Any, ___: Any, mechanism: str, given: Any) -> AuthResult:
            passwords.append(given.password)
            return AuthResult(success=given.password == b"walnut", handled=False)

        own, passwords = certificate(tmp_path), list[bytes]()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(own)
        server.stop()
        server.start(
            tls_context=context, require_starttls=True, authenticator=check_password, auth_required=True
        )
        settings.EMAIL_USE_TLS, settings.EMAIL_HOST_USER = True, "desk"
        settings.EMAIL_HOST_PASSWORD = "walnut"
        outbox.queue_mail("one:1", "ada@desk.example", "One", "Text")
        send()
        assert "certificate isn’t trusted, self-signed" in OutgoingMail.objects.get().problem
        assert (states(), server.received, passwords) == (["waiting"], [], [])
        monkeypatch.setenv("SSL_CERT_FILE", str(own))
        outbox.queue_mail("two:1", "ada@desk.example", "Two", "Text")
        send()
        assert (sorted(states()), server.subjects, passwords) == (["sent", "waiting"], ["Two"], [b"walnut"])
        assert next(doctor.mail()).grade == "ok"
        settings.EMAIL_HOST_PASSWORD = "other"
        refused = next(doctor.mail())
        assert (refused.grade, "EMAIL_URL: 535 " in refused.words) == ("bad", True)

    def test_queued_text_is_encrypted(self, server: MailServer) -> None:
        outbox.queue_mail("one:1", "ada@desk.example", "Subject", "Northwind")
        assert "Northwind" not in OutgoingMail.objects.get().sealed

    def test_no_mail_is_queued_without_a_server(self, settings: LazySettings) -> None:
        settings.HAS_MAIL = False
        outbox.queue_mail("one:1", "ada@desk.example", "Subject", "Text")
        assert not OutgoingMail.objects.exists()

    @pytest.mark.slow
    def test_retries_back_off_while_the_server_is_down(self, server: MailServer) -> None:
        server.stop()
        with time_machine.travel(MONDAY_NOON, tick=False) as clock:
            outbox.queue_mail("one:1", "ada@desk.example", "One", "Text")
            outbox.queue_mail("two:1", "ada@desk.example", "Two", "Text")
            pauses = []
            for _ in range(8):
                send()
                first = OutgoingMail.objects.order_by("-attempts").first()
                assert first
                pauses.append((first.due_at - timezone.now()).total_seconds() / 60)
                OutgoingMail.objects.exclude(pk=first.pk).update(due_at=first.due_at)
                clock.move_to(first.due_at + timedelta(seconds=1))
            assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
            assert list(outbox.problems()) == ["1 to be retried: Connection refused."]
            server.start()
            OutgoingMail.objects.update(due_at=timezone.now())
            send()
        assert server.subjects == ["One", "Two"]

    def test_a_message_fails_after_a_day_and_doctor_warns(self, server: MailServer) -> None:
        server.stop()
        with time_machine.travel(MONDAY_NOON, tick=False) as clock:
            outbox.queue_mail("one:1", "ada@desk.example", "One", "Text")
            send()
            clock.shift(timedelta(days=1, seconds=1))
            send()
            mail = OutgoingMail.objects.get()
            assert (mail.state, mail.sealed, mail.attempts) == ("failed", "", 1)
            lines = [f"{one.grade}: {one.words}" for one in doctor.mail()]
        assert lines == [
            "bad: Can’t sign in to the mail server. Check EMAIL_URL: Connection refused.",
            "warn: Mail: 1 given up: Connection refused (last 7 days).",
        ]

    def test_a_rejected_message_is_retried(self, server: MailServer) -> None:
        server.refusal = "451 Later"
        outbox.queue_mail("one:1", "ada@desk.example", "One", "Text")
        send()
        assert OutgoingMail.objects.get().problem == "451 Later"
        server.refusal = ""
        OutgoingMail.objects.update(due_at=timezone.now())
        send()
        assert server.subjects == ["One"]

    @pytest.mark.slow
    def test_a_server_that_never_answers_receives_mail_once(
        self, server: MailServer, settings: LazySettings, viewer: Browser
    ) -> None:
        settings.EMAIL_TIMEOUT = 1
        server.may_answer.clear()
        outbox.queue_mail("one:1", "ada@desk.example", "One", "Text")
        for _ in range(2):
            send()
        assert (server.subjects, states()) == (["One"], ["unknown"])
        words = "Mail: 1 possibly not delivered: the server closed the connection or didn’t respond (last 7 days)."
        assert words in viewer.get("/status/").content.decode()

    @pytest.mark.slow
    @pytest.mark.parametrize("command", ["RCPT", "DATA"])
    def test_refused_messages_do_not_hold_up_the_others(
        self, server: MailServer, viewer: Browser, command: str
    ) -> None:
        addresses = queue_many(40)
        refused = {
            one: f"550 5.1.1 <{one}>: mailbox unavailable" if number % 2 else "552 5.3.4 Message too big."
            for number, one in enumerate(addresses[::3])
        }
        server.refusals[command] = refused
        send()
        assert [one["To"] for one in server.received] == [one for one in addresses if one not in refused]
        counts = Counter(OutgoingMail.objects.values_list("state", "sealed", "problem"))
        assert {key: count for key, count in counts.items() if key[0] != "sent"} == {
            ("refused", "", "552 Message too big"): 7,
            ("refused", "", "550 mailbox unavailable"): 7,
        }
        server.refusals.clear()
        OutgoingMail.objects.update(due_at=timezone.now())
        send()
        assert len(server.received) == 26
        sentences = [
            "Mail: 7 refused: 550 mailbox unavailable (last 7 days).",
            "Mail: 7 refused: 552 Message too big (last 7 days).",
        ]
        assert [one.words for one in doctor.mail()][1:] == sentences
        assert all(one in viewer.get("/status/").content.decode() for one in sentences)

    def test_a_temporary_refusal_of_one_message_does_not_hold_up_the_others(self, server: MailServer) -> None:
        one, *others = queue_many(4)
        server.refusals["RCPT"] = {one: "450 4.2.1 Greylisted"}
        send()
        assert [mail["To"] for mail in server.received] == others
        assert list(outbox.problems()) == ["1 to be retried: 450 Greylisted."]

    @pytest.mark.parametrize(
        ("reply", "states_after"),
        [
            ("", ["waiting", "waiting"]),
            ("421 Closing", ["waiting", "waiting"]),
            ("599 Never", ["refused", "sent"]),
            ("500 Never", ["refused", "sent"]),
        ],
    )
    def test_only_a_lost_connection_ends_the_run(
        self, server: MailServer, reply: str, states_after: list[str]
    ) -> None:
        first, second = queue_many(2)
        server.refusals["RCPT"] = {first: reply}
        send()
        assert (states(), server.connections) == (states_after, 2 if reply[0:1] == "5" else 1)
        server.refusals.clear()
        OutgoingMail.objects.update(due_at=timezone.now())
        send()
        assert [one["To"] for one in server.received] == ([second] if reply[0:1] == "5" else [first, second])

    def test_a_connection_lost_after_the_text_leaves_the_outcome_unknown(self, server: MailServer) -> None:
        first, second = queue_many(2)
        server.dies_after = {first}
        for _ in range(3):
            send()
        assert ([one["To"] for one in server.received], states()) == ([first, second], ["unknown", "sent"])

    def test_an_address_that_cannot_be_used_is_refused_at_once(self, server: MailServer) -> None:
        outbox.queue_mail("one:1", "ada@desk.example, eve@desk.example", "One", "Text")
        outbox.queue_mail("two:1", "ada@desk.example", "Two", "Text")
        send()
        assert (states(), server.subjects) == (["refused", "sent"], ["Two"])

    @pytest.mark.slow
    def test_only_the_most_frequent_reasons_are_reported(self, server: MailServer) -> None:
        server.refusals["RCPT"] = {one: f"55{number} No" for number, one in enumerate(queue_many(9))}
        send()
        assert [one.partition(":")[0] for one in outbox.problems()] == [
            *["1 refused"] * 5,
            "4 refused for other reasons (last 7 days).",
        ]

    def test_mail_of_a_lost_worker_is_not_sent_again(self, server: MailServer) -> None:
        outbox.queue_mail("one:1", "ada@desk.example", "One", "Text")
        OutgoingMail.objects.update(state="sending", due_at=timezone.now() - timedelta(hours=1))
        send()
        assert (server.subjects, states()) == ([], ["unknown"])


@pytest.mark.django_db(transaction=True)
def test_two_workers_send_a_message_once_to_a_slow_server(server: MailServer) -> None:
    server.may_answer.clear()
    outbox.queue_mail("one:1", "ada@desk.example", "One", "Text")

    def send_first() -> None:
        try:
            outbox.send_mail.work(Progress(job))
        finally:
            connection.close()

    job = Job.objects.get()
    Job.objects.update(state="running")
    job.refresh_from_db()
    thread = threading.Thread(target=send_first)
    thread.start()
    wait_until(lambda: server.received)
    outbox.send_mail.work(Progress(job))
    assert states() == ["sending"]
    server.may_answer.set()
    thread.join(20)
    assert (server.subjects, states()) == (["One"], ["sent"])


# --- Content and recipients ---


@pytest.fixture
def ada(portal_service: Sandbox) -> User:
    return existing_user("ada", role="servicer", first_name="Ada", email="ada@desk.example")


@pytest.fixture
def boss(portal_service: Sandbox) -> User:
    return existing_user("boss", role="supervisor", first_name="Bo", email="bo@desk.example")


def switch_on(person: User, *names: str) -> None:
    User.objects.filter(pk=person.pk).update(**dict.fromkeys((f"mail_{name}" for name in names), True))


def request_change(maker: User, owner: Any) -> Approval:
    approval = Approval(
        operation="borrowers.update",
        subject_kind="borrower",
        subject_uuid=owner.uuid,
        borrower_uuid=owner.uuid,
        label=owner.label,
        url="/",
        acts=["Legal name"],
        maker_id=maker.pk,
        maker_name=maker.audit_name(),
    )
    request_approval(Actor(id=maker.pk, name=maker.audit_name()), approval, {})
    return approval


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("names_allowed", [False, True])
def test_approvals_are_mailed_to_approvers_then_the_maker(
    server: MailServer,
    portal_service: Sandbox,
    ada: User,
    boss: User,
    settings: LazySettings,
    names_allowed: bool,
) -> None:
    settings.MAIL_NAMES = names_allowed
    switch_on(ada, "approvals")
    switch_on(boss, "approvals")
    owner = given.borrower(portal_service)
    approval = request_change(ada, owner)
    write_and_send_mail()
    write_and_send_mail()
    decide(Actor(id=boss.pk, name="Bo (boss)"), approval, approves=True, comment="")
    write_and_send_mail()
    write_and_send_mail()
    approver_mail, maker_mail = server.received
    assert (approver_mail["To"], approver_mail["Subject"]) == (
        "bo@desk.example",
        "Servicing Desk: A change needs approval",
    )
    of = f" of {owner.label}" if names_allowed else ""
    link = f"https://desk.example/approvals/{approval.pk}/"
    assert approver_mail.get_content().replace("\r", "").split("\n\n") == [
        f"Ada (ada) requested a change (legal name){of}.",
        f"{link}\n",
    ]
    assert (maker_mail["To"], maker_mail["Subject"]) == (
        "ada@desk.example",
        "Servicing Desk: Your change was approved",
    )
    assert maker_mail.get_content().replace("\r", "").split("\n\n") == [
        f"Bo (boss) approved your change (legal name){of}. Send it before the approval expires.",
        f"{link}\n",
    ]
    assert (owner.label in str(maker_mail)) == names_allowed


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("names_allowed", [False, True])
def test_daily_mail_is_sent_once_per_business_day_and_names_only_if_allowed(
    server: MailServer, portal_service: Sandbox, ada: User, settings: LazySettings, names_allowed: bool
) -> None:
    settings.MAIL_NAMES = names_allowed
    switch_on(ada, "follow_ups", "promises", "digest")
    owner = given.borrower(portal_service)
    loan = given.loan(portal_service, owner)
    with time_machine.travel(MONDAY_NOON, tick=False) as clock:
        today = business_date()
        for title, days in (("Call", -4), ("Write", 0), ("Visit", 1)):
            due = today + timedelta(days=days)
            FollowUp.objects.create(borrower_uuid=owner.uuid, title=title, due=due, owner_id=ada.pk)
        contact = Contact.objects.create(
            borrower_uuid=owner.uuid, account_kind=Kind.LOAN, account_uuid=loan.uuid, person=owner.label,
            channel=Channel.PHONE, outcome=Outcome.PROMISED, author_id=ada.pk, author_name="Ada", day=today,
        )  # fmt: skip
        Promise.objects.create(
            contact=contact, account_uuid=loan.uuid, amount="310.00", day=today, logged_on=today,
            logged_at=timezone.now(),
        )  # fmt: skip
        AccountOwner.objects.create(account_uuid=loan.uuid, owner=ada)
        clock.move_to(MONDAY_NOON.replace(hour=6))
        write_and_send_mail()
        clock.move_to(MONDAY_NOON - timedelta(days=1))
        write_and_send_mail()
        assert server.received == []
        clock.move_to(MONDAY_NOON.replace(hour=7))
        write_and_send_mail()
        clock.move_to(MONDAY_NOON)
        write_and_send_mail()
    follow_ups, promises, digest = server.received
    assert follow_ups["Subject"].endswith("2 follow-ups due")
    assert promises["Subject"].endswith("1 promise due today")
    assert digest["Subject"].endswith(" on Nov 23, 2026")
    assert "Promises due today: 1" in digest.get_content()
    lines = [
        line for one in (follow_ups, digest) for line in one.get_content().splitlines() if line[:2] == "- "
    ]
    if names_allowed:
        assert f"- {owner.label}, Nov 19, 2026: Call" in lines
        assert f"- {owner.label}, Nov 23, 2026: Write" in lines
        assert not any("Visit" in line for line in lines)
        assert [
            line
            for line in lines
            if line.startswith(f"- {owner.label}, Nov 23, 2026: Promise to pay $310.00")
        ]
    else:
        assert lines == []
        assert not any(owner.label in str(one) for one in server.received)
    links = [one.get_content().split()[-1] for one in server.received]
    assert f"https://desk.example/collections/?promise=due&owner={ada.pk}" in links


@pytest.mark.django_db
def test_mail_is_opt_in(server: MailServer, portal_service: Sandbox, ada: User, boss: User) -> None:
    request_change(ada, given.borrower(portal_service))
    with time_machine.travel(MONDAY_NOON, tick=False):
        write_and_send_mail()
    assert server.received == []


def stop_worker() -> None:
    Worker.objects.create(id="w", beat_at=timezone.now() - timedelta(minutes=6))


def fail_audit_check() -> None:
    append(Actor.system("audit"), "audit.verify", result="broken", detail={"problem": "Entry 3"})


def start_outage() -> None:
    now = timezone.now()
    Outage.objects.create(since=now - timedelta(minutes=11), tries=99, ask_again_at=now)


def delay_messages() -> None:
    then = timezone.now() - timedelta(hours=2)
    Run.objects.update_or_create(started_at=then, defaults={"ended_at": then})


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("happen", "subject"),
    [
        (stop_worker, "A worker stopped responding"),
        (fail_audit_check, "The audit check failed"),
        (start_outage, "The lending service is down"),
        (delay_messages, "Messages are behind"),
    ],
)
def test_operators_are_alerted_once(
    server: MailServer, portal_service: Sandbox, happen: Callable[[], None], subject: str
) -> None:
    write_and_send_mail()
    assert server.received == []
    happen()
    write_and_send_mail()
    write_and_send_mail()
    (mail,) = server.received
    assert (mail["To"], mail["Subject"]) == ("ops@desk.example", f"Servicing Desk: {subject}")
    assert "https://desk.example/status/" in mail.get_content()


@pytest.mark.slow
@pytest.mark.django_db
def test_the_profile_page_offers_mail_settings(server: MailServer, ada: User, boss: User) -> None:
    browser = Browser()
    browser.force_login(ada)
    assert "Email to ada@desk.example" in browser.get("/accounts/profile/").content.decode()
    preferences = {"theme": "auto", "density": "compact", "shortcuts": "on"}
    assert browser.post("/accounts/profile/", preferences | {"mail_digest": "on"}).status_code == 303
    ada.refresh_from_db()
    assert (ada.mail_digest, ada.mail_approvals) == (True, False)
    User.objects.filter(pk=ada.pk).update(email="")
    assert "Daily digest" not in browser.get("/accounts/profile/").content.decode()


@pytest.mark.django_db
def test_old_mail_is_deleted(server: MailServer) -> None:
    outbox.queue_mail("one:1", "ada@desk.example", "One", "Text")
    outbox.queue_mail("two:1", "ada@desk.example", "Two", "Text")
    OutgoingMail.objects.filter(key="one:1").update(created_at=timezone.now() - timedelta(days=31))
    call_command("forget_old", stdout=StringIO())
    assert OutgoingMail.objects.get().key == "two:1"
