"""Mail: kept in the database until a worker sent it. Each message has a key and leaves at most once.

Hides that the server may be slow or down. A message that surely did not leave is tried again for a day. One whose
outcome is unknown, because the server or the worker went silent while it was handed over, is not.
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
# Longer than the server may take for every step of one message.
MAX_HANDOVER = timedelta(seconds=15 * settings.EMAIL_TIMEOUT)
KEPT = timedelta(days=30)
REPORTED = timedelta(days=7)


def put(key: str, address: str, subject: str, text: str) -> bool:
    """Have a message sent. False if there was one with this key, or none can be sent."""
    if not (settings.HAS_MAIL and address):
        return False
    sealed = encrypt(json.dumps([" ".join(subject.split()), text]))
    is_new = OutgoingMail.objects.get_or_create(key=key, defaults={"address": address, "sealed": sealed})[1]
    if is_new:
        start_job(send_mail)
    return is_new


@job("accounts.send_mail", label="Send email", single=True, every="MAIL_MINUTES")
def send_mail(progress: Progress) -> None:
    """Send what is due; while the server is down, try only one message."""
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
            try_later(mail, error)
            break
        if not hand_over(mail, server):
            break
        progress.step()
    try:
        server.close()
    except (OSError, smtplib.SMTPException):
        pass  # What was sent is sent.


def hand_over(mail: OutgoingMail, server: BaseEmailBackend) -> bool:
    """Give one message to the server. False if the connection can't be used any more."""
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
        try_later(mail, error)
        return isinstance(error, smtplib.SMTPRecipientsRefused | ValueError)
    except (OSError, smtplib.SMTPException) as error:
        finish(mail, State.UNKNOWN, name_of(error))
        return False
    finish(mail, State.SENT)
    return True


def try_later(mail: OutgoingMail, error: Exception) -> None:
    """Wait longer after each attempt."""
    pause = min(MIN_PAUSE * 2 ** min(mail.attempts, 10), MAX_PAUSE)
    OutgoingMail.objects.filter(pk=mail.pk, state=State.SENDING).update(
        state=State.WAITING, attempts=mail.attempts + 1, due_at=timezone.now() + pause, problem=name_of(error)
    )


def finish(mail: OutgoingMail, state: str, problem: str = "") -> None:
    OutgoingMail.objects.filter(pk=mail.pk, state=State.SENDING).update(
        state=state, sealed="", problem=problem
    )


def name_of(error: Exception) -> str:
    """What happened, without the text of the server, which may repeat an address."""
    code = getattr(error, "smtp_code", "")
    return f"{type(error).__name__} {code}".strip()


def give_up() -> None:
    """End what could not be sent for a day, and what a worker left behind while it was handed over."""
    old = OutgoingMail.objects.filter(state=State.WAITING, created_at__lt=timezone.now() - MAX_AGE)
    old.update(state=State.FAILED, sealed="")
    left = OutgoingMail.objects.filter(~match_recent("due_at", MAX_HANDOVER), state=State.SENDING)
    left.update(state=State.UNKNOWN, sealed="", problem="the worker stopped")


def forget_old_mail() -> int:
    """Delete what was sent or given up long ago."""
    return OutgoingMail.objects.filter(created_at__lt=timezone.now() - KEPT).delete()[0]


def problems() -> Iterator[str]:
    """What operators should know, a sentence each: mail that waits, that was given up, that may not have arrived."""
    late = OutgoingMail.objects.filter(state=State.WAITING, attempts__gt=0)
    if count := late.count():
        yield f"{count} message{pluralize(count)} can’t be sent and will be retried: {late[0].problem}."
    recent = OutgoingMail.objects.filter(created_at__gt=timezone.now() - REPORTED)
    for state, words in ((State.FAILED, "given up after a day"), (State.UNKNOWN, "possibly not delivered")):
        if count := recent.filter(state=state).count():
            yield f"{count} message{pluralize(count)} of the last {REPORTED.days} days: {words}."
