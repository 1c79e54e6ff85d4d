"""Outgoing mail, stored in the database until a worker sends it. Each message has a key and is sent at most once.

Hides that the server may be slow or down. A message that was certainly not sent is retried for a day, unless the
server refused it for good. A message with an unknown outcome, because the server or the worker went silent while
sending it, is not sent again.
"""

import json
import re
import smtplib
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from ssl import SSLCertVerificationError
from traceback import walk_tb

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db.models import Count, QuerySet
from django.utils import timezone

from portal.accounts.encryption import CannotDecrypt, decrypt, encrypt
from portal.accounts.models import OutgoingMail
from portal.jobs.execution import Progress
from portal.jobs.kinds import job
from portal.jobs.queue import start_job
from servicing.masking import masked_text

State = OutgoingMail.State
MAX_AGE = timedelta(days=1)
MIN_PAUSE, MAX_PAUSE = timedelta(minutes=1), timedelta(hours=1)
# Longer than all steps of sending one message may take.
MAX_HANDOVER = timedelta(seconds=15 * settings.EMAIL_TIMEOUT)
KEPT = timedelta(days=30)
REPORTED = timedelta(days=7)
MAX_WORDS = 200
"""The longest part of an error that is stored, in characters."""
CLOSING = 421
"""The server ends the connection, whatever is sent."""
MAX_REASONS = 5
"""How many reasons are reported for each outcome."""
# What differs from message to message in a server's sentence: addresses, links and queue IDs. Also status codes like
# 5.1.1, which say the same as the reply code.
_PARTICULARS = re.compile(
    r"<?[^\s<>]+@[^\s<>]+>?:?|\S+://\S+|(?<!\S)[245]\.\d{1,3}\.\d{1,3}(?!\S)"
    r"|(?<!\S)(?=\S*\d)(?=\S*[A-Za-z])[\w.-]{10,}(?!\S)"
)
# The steps before a message's text is sent.
_BEFORE_TEXT = {
    step.__code__ for step in (smtplib.SMTP.ehlo_or_helo_if_needed, smtplib.SMTP.mail, smtplib.SMTP.rcpt)
}


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
    due = OutgoingMail.objects.exclude(due_at__gt=timezone.now()).filter(state=State.WAITING)
    server = get_connection()
    for pk in list(due.values_list("pk", flat=True)):
        claimed = OutgoingMail.objects.filter(pk=pk, state=State.WAITING)
        if not claimed.update(state=State.SENDING, due_at=timezone.now()):
            continue
        mail = OutgoingMail.objects.get(pk=pk)
        try:
            server.open()
        except OSError as error:
            postpone(mail, error)
            break
        if not send_one(mail, server):
            break
        progress.step()
    close(server)


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
    except ValueError:
        finish(mail, State.REFUSED, "the address or subject isn’t valid")
    except OSError as error:
        code = reply_code(error)
        if 500 <= code < 600:
            finish(mail, State.REFUSED, describe_error(error))
        elif 400 <= code < 500 or is_unsent(error):
            postpone(mail, error)
        else:
            finish(mail, State.UNKNOWN, describe_error(error))
        close(server)  # The server may have closed its end, or still expect the rest of this message.
        return 400 <= code < 600 and code != CLOSING
    else:
        finish(mail, State.SENT)
    return True


def close(server: BaseEmailBackend) -> None:
    with suppress(OSError):  # What was sent is sent.
        server.close()


def reply_code(error: OSError) -> int:
    """The code with which the server answered one message; 0 without an answer about it."""
    match error:
        case smtplib.SMTPRecipientsRefused():
            return int(next(iter(error.recipients.values()))[0])
        case smtplib.SMTPSenderRefused() | smtplib.SMTPDataError():
            return int(error.smtp_code)
    return 0


def is_unsent(error: OSError) -> bool:
    """Whether it happened before the text of the message was sent."""
    if isinstance(error, smtplib.SMTPSenderRefused | smtplib.SMTPRecipientsRefused):
        return True
    return any(frame.f_code in _BEFORE_TEXT for frame, _ in walk_tb(error.__traceback__))


def postpone(mail: OutgoingMail, error: OSError) -> None:
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


def describe_error(error: OSError) -> str:
    """Describe an error in one line, the same for each message. Addresses in the server's text are left out."""
    reply: str | bytes
    match error:
        case smtplib.SMTPRecipientsRefused():
            code, reply = next(iter(error.recipients.values()))
        case smtplib.SMTPResponseException():
            code, reply = error.smtp_code, error.smtp_error
        case SSLCertVerificationError():
            return f"the server’s certificate isn’t trusted, {error.verify_message}"
        case TimeoutError():
            return "the server didn’t respond in time"
        case smtplib.SMTPServerDisconnected():
            return "the server closed the connection or didn’t respond"
        case _:
            return (error.strerror or str(error) or "the connection failed")[:MAX_WORDS]
    text = reply if isinstance(reply, str) else reply.decode(errors="replace")
    text = " ".join(_PARTICULARS.sub(" ", text).split())
    return f"{code} {masked_text(text)[:MAX_WORDS]}".strip().rstrip(".")


def give_up() -> None:
    """Close messages that could not be sent for a day or whose worker died while sending them."""
    old = OutgoingMail.objects.filter(state=State.WAITING, created_at__lt=timezone.now() - MAX_AGE)
    old.update(state=State.FAILED, sealed="")
    left = OutgoingMail.objects.exclude(due_at__gte=timezone.now() - MAX_HANDOVER).filter(state=State.SENDING)
    left.update(state=State.UNKNOWN, sealed="", problem="the worker stopped")


def forget_old_mail() -> int:
    """Delete messages that were sent or given up long ago."""
    return OutgoingMail.objects.filter(created_at__lt=timezone.now() - KEPT).delete()[0]


def problems() -> Iterator[str]:
    """Report mail that is waiting, was refused or given up, or may not have arrived: a sentence for each reason."""
    yield from describe_reasons(
        "to be retried", OutgoingMail.objects.filter(state=State.WAITING, attempts__gt=0)
    )
    recent = OutgoingMail.objects.filter(created_at__gt=timezone.now() - REPORTED)
    ended = {State.REFUSED: "refused", State.FAILED: "given up", State.UNKNOWN: "possibly not delivered"}
    for state, outcome in ended.items():
        found = recent.filter(state=state)
        yield from describe_reasons(outcome, found, f" (last {REPORTED.days} days)")


def describe_reasons(outcome: str, mails: QuerySet[OutgoingMail], period: str = "") -> Iterator[str]:
    """Count the messages for each reason, most frequent first."""
    counts = mails.order_by().values_list("problem").annotate(count=Count("pk")).order_by("-count", "problem")
    reasons = list(counts)
    for problem, count in reasons[:MAX_REASONS]:
        yield f"{count:,} {outcome}: {problem or 'not tried yet'}{period}."
    if rest := sum(count for _, count in reasons[MAX_REASONS:]):
        yield f"{rest:,} {outcome} for other reasons{period}."
