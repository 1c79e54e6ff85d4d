"""Outgoing mail, stored in the database until a worker sends it. Each message has a key and is sent at most once.

Hides that the server may be slow or down. A message that was certainly not sent is retried for a day. A message with
an unknown outcome, because the server or the worker went silent while sending it, is not.
"""

import json
import smtplib
from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.template.defaultfilters import pluralize
from django.utils import timezone

from portal.accounts.encryption import CannotDecrypt, decrypt, encrypt
from portal.accounts.models import OutgoingMail
from portal.jobs.execution import Progress
from portal.jobs.kinds import job
from portal.jobs.queue import start_job
from portal.runtime.clocks import match_future, match_recent

State = OutgoingMail.State
MAX_AGE = timedelta(days=1)
MIN_PAUSE, MAX_PAUSE = timedelta(minutes=1), timedelta(hours=1)
# Longer than all steps of sending one message may take.
MAX_HANDOVER = timedelta(seconds=15 * settings.EMAIL_TIMEOUT)
KEPT = timedelta(days=30)
REPORTED = timedelta(days=7)


def queue_mail(key: str, address: str, subject: str, text: str) -> bool:
    """Queue a message. False if there is one with this key, or mail isn't configured."""
    if not (settings.HAS_MAIL and address):
        return False
    sealed = encrypt(json.dumps([" ".join(subject.split()), text]))
    is_new = OutgoingMail.objects.get_or_create(key=key, defaults={"address": address, "sealed": sealed})[1]
    if is_new:
        start_job(send_mail)
    return is_new


@job("accounts.send_mail", label="Send email", single=True, every="MAIL_MINUTES")
def send_mail(progress: Progress) -> None:
    """Send messages that are due; while the server is down, try only one."""
    give_up()
    is_due = ~match_future("due_at", MAX_PAUSE)
    due = OutgoingMail.objects.filter(is_due, state=State.WAITING)
    server = get_connection()
    for pk in list(due.values_list("pk", flat=True)):
        claimed = OutgoingMail.objects.filter(pk=pk, state=State.WAITING)
        if not claimed.update(state=State.SENDING, due_at=timezone.now()):
            continue
        mail = OutgoingMail.objects.get(pk=pk)
        try:
            server.open()
        except (OSError, smtplib.SMTPException) as error:
            postpone(mail, error)
            break
        if not send_one(mail, server):
            break
        progress.step()
    try:
        server.close()
    except (OSError, smtplib.SMTPException):
        pass  # The messages are sent already.


def send_one(mail: OutgoingMail, server: BaseEmailBackend) -> bool:
    """Send one message to the server. False if the connection can't be used any more."""
    try:
        subject, text = json.loads(decrypt(mail.sealed))
    except CannotDecrypt:
        finish(mail, State.FAILED, "SECRET_KEY was changed")
        return True
    message_id = f"<{mail.pk}.{mail.created_at:%Y%m%d%H%M%S%f}@{settings.PORTAL_URL.partition('://')[2]}>"
    headers = {"Message-ID": message_id, "Auto-Submitted": "auto-generated"}
    try:
        EmailMessage(subject, text, to=[mail.address], headers=headers, connection=server).send()
    except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused, ValueError) as error:
        postpone(mail, error)
        return isinstance(error, smtplib.SMTPRecipientsRefused | ValueError)
    except (OSError, smtplib.SMTPException) as error:
        finish(mail, State.UNKNOWN, describe_error(error))
        return False
    finish(mail, State.SENT)
    return True


def postpone(mail: OutgoingMail, error: Exception) -> None:
    """Schedule another attempt, with a longer pause each time."""
    pause = min(MIN_PAUSE * 2 ** min(mail.attempts, 10), MAX_PAUSE)
    OutgoingMail.objects.filter(pk=mail.pk, state=State.SENDING).update(
        state=State.WAITING,
        attempts=mail.attempts + 1,
        due_at=timezone.now() + pause,
        problem=describe_error(error),
    )


def finish(mail: OutgoingMail, state: str, problem: str = "") -> None:
    OutgoingMail.objects.filter(pk=mail.pk, state=State.SENDING).update(
        state=state, sealed="", problem=problem
    )


def describe_error(error: Exception) -> str:
    """Describe an error without the server's text, which may repeat an address."""
    code = getattr(error, "smtp_code", "")
    return f"{type(error).__name__} {code}".strip()


def give_up() -> None:
    """Close messages that could not be sent for a day or whose worker died while sending them."""
    old = OutgoingMail.objects.filter(state=State.WAITING, created_at__lt=timezone.now() - MAX_AGE)
    old.update(state=State.FAILED, sealed="")
    left = OutgoingMail.objects.filter(~match_recent("due_at", MAX_HANDOVER), state=State.SENDING)
    left.update(state=State.UNKNOWN, sealed="", problem="the worker stopped")


def forget_old_mail() -> int:
    """Delete messages that were sent or given up long ago."""
    return OutgoingMail.objects.filter(created_at__lt=timezone.now() - KEPT).delete()[0]


def problems() -> Iterator[str]:
    """Report mail that is waiting, was given up or may not have arrived, a sentence each."""
    late = OutgoingMail.objects.filter(state=State.WAITING, attempts__gt=0)
    if count := late.count():
        yield f"{count} message{pluralize(count)} can’t be sent and will be retried: {late[0].problem}."
    recent = OutgoingMail.objects.filter(created_at__gt=timezone.now() - REPORTED)
    for state, words in ((State.FAILED, "given up after a day"), (State.UNKNOWN, "possibly not delivered")):
        if count := recent.filter(state=state).count():
            yield f"{count} message{pluralize(count)} of the last {REPORTED.days} days: {words}."
