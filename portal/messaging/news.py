"""Messages as a reason to read accounts: a new message about an account, or about a payment of one, queues a read.

Nothing is taken from a message's payload but whose it is: the account's two answers say what is true. An account is
read for news at most once in five minutes, newest news first, by the job in :mod:`portal.messaging.tasks`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils import timezone

from portal.messaging.models import BankAccount, Message, PendingRead
from portal.records.figures import ACCOUNTS
from portal.records.models import LISTED, Account, Answer, Repayment, Saved
from portal.records.rows import records_with_owners
from portal.records.sources import REPAYMENTS_OF

READ_INTERVAL: Final = timedelta(minutes=5)
"""The shortest time between two reads of an account for news."""
MAX_ACCOUNTS_OF_BANK: Final = 5
MESSAGES_AT_ONCE: Final = 1_000
MAX_CLOCK_ERROR: Final = timedelta(minutes=1)
"""How much later than its time a message may be: times come in whole seconds, by another clock."""
MAX_ERROR_OF_GUESS: Final = timedelta(days=2)
"""How much later than its guessed time a message of an uncertain time may be: more than any two time zones differ."""


def queue_reads(messages: Iterable[Message]) -> None:
    """Queue a read of each account that these messages are about, unless its copy is newer than they are."""
    newest: dict[int, Message] = {}
    by_message = list(_accounts_of(messages))
    times = _oldest_answers({account.pk: account for _, accounts in by_message for account in accounts})
    for message, accounts in by_message:
        is_certain = message.created_at is not None and message.created_at.at is not None
        for account in accounts:
            read_at = times.get(account.pk)
            latest = message.recorded_at + (MAX_CLOCK_ERROR if is_certain else MAX_ERROR_OF_GUESS)
            if read_at and latest <= read_at:
                continue
            if account.pk not in newest or message.recorded_at > newest[account.pk].recorded_at:
                newest[account.pk] = message
    subjects = {one.subject_uuid for one in newest.values()}
    own = set(Account.objects.filter(kind__in=ACCOUNTS, uuid__in=subjects).values_list("uuid", flat=True))
    _queue(
        {
            pk: (one.recorded_at, "" if one.subject_uuid in own else one.subject_uuid)
            for pk, one in newest.items()
        }
    )


def queue_reads_since(start: datetime) -> None:
    """Queue reads for the messages saved since then."""
    messages = Message.objects.listed().filter(stored_at__gte=start).order_by("pk")
    for page in Paginator(messages, MESSAGES_AT_ONCE):
        queue_reads(page)


def request_reads(accounts: QuerySet[Account]) -> int:
    """Queue a read of these accounts because a person asked for it; return their number."""
    now = timezone.now()
    pks = accounts.exclude(borrower_uuid="").values_list("pk", flat=True)
    wanted = dict.fromkeys(pks, (now, ""))
    _queue(wanted, is_at_once=True)
    return len(wanted)


def due_reads() -> QuerySet[PendingRead]:
    """The reads whose time has come, newest news first."""
    return PendingRead.objects.filter(due_at__lte=timezone.now()).order_by("-news_at", "-pk")


def forget_finished_reads() -> None:
    """Delete what is read and may be read again at once."""
    limit = timezone.now() - READ_INTERVAL
    PendingRead.objects.filter(due_at=None, read_at__lt=limit).delete()


def _queue(wanted: Mapping[int, tuple[datetime, str]], *, is_at_once: bool = False) -> None:
    """Queue reads: for each account the time of its newest message, and the payment that is about."""
    now = timezone.now()
    before = {one.account_id: one for one in PendingRead.objects.filter(account__in=wanted)}
    rows = []
    for pk, (news_at, payment) in sorted(wanted.items()):  # In one order, so that no two writers deadlock.
        one = before.get(pk) or PendingRead(account_id=pk, news_at=news_at, payment_uuid=payment)
        if one.due_at is None or one.news_at < news_at:
            one.news_at, one.payment_uuid = news_at, payment
        one.noticed_at, one.tries = now, 0
        one.due_at = max(now, one.read_at + READ_INTERVAL) if one.read_at and not is_at_once else now
        rows.append(one)
    PendingRead.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["account"],
        update_fields=["news_at", "payment_uuid", "noticed_at", "due_at", "tries"],
    )


def _accounts_of(messages: Iterable[Message]) -> Iterable[tuple[Message, Sequence[Account]]]:
    """Each message with the active accounts it may be about.

    Those are the account it names or the account of its payment; else those with payments of the same bank account, at
    most five; else all of the borrower that staff linked the bank account to.
    """
    found = list(messages)
    subjects = records_with_owners(one.subject_uuid for one in found)
    named = {uuid: _account_uuid(subject, account) for uuid, (subject, account, _) in subjects.items()}
    unknown = {one.bank_account for one in found if one.bank_account and not named.get(one.subject_uuid)}
    of_banks = _accounts_of_banks(unknown)
    uuids = {*filter(None, named.values()), *(uuid for of_bank in of_banks.values() for uuid in of_bank)}
    accounts: dict[str, list[Account]] = {}
    for account in _readable().filter(uuid__in=uuids):
        accounts.setdefault(account.uuid, []).append(account)
    for message in found:
        own = named.get(message.subject_uuid)
        wanted = [own] if own else of_banks.get(message.bank_account, ())
        yield message, [account for uuid in wanted for account in accounts.get(uuid, ())]


def _account_uuid(subject: Saved, account: Account | None) -> str:
    """The ID of the account that a message's subject is or belongs to; empty without one."""
    if subject.kind in ACCOUNTS:
        return subject.uuid
    return account.uuid if account else ""


def _accounts_of_banks(banks: Collection[str]) -> dict[str, list[str]]:
    if not banks:
        return {}
    repayments = Repayment.objects.filter(bank_account__in=banks, account__isnull=False)
    found: dict[str, list[str]] = {}
    for bank, account_uuid in repayments.values_list("bank_account", "account__uuid").distinct():
        found.setdefault(bank, []).append(account_uuid)
    of_banks = {bank: uuids[:MAX_ACCOUNTS_OF_BANK] for bank, uuids in found.items()}
    linked = dict(BankAccount.objects.filter(pk__in=banks - found.keys()).values_list("pk", "borrower_uuid"))
    of_borrowers: dict[str, list[str]] = {}
    owned = _readable().filter(borrower_uuid__in=linked.values()) if linked else Account.objects.none()
    for uuid, owner in owned.values_list("uuid", "borrower_uuid"):
        of_borrowers.setdefault(owner, []).append(uuid)
    return of_banks | {bank: of_borrowers.get(owner, []) for bank, owner in linked.items()}


def _readable() -> QuerySet[Account]:
    """The active loans and lines whose borrower is known, as the service needs it to find them."""
    return Account.objects.filter(LISTED, kind__in=ACCOUNTS).exclude(borrower_uuid="")


def _oldest_answers(accounts: Mapping[int, Account]) -> dict[int, datetime]:
    """When both answers of each account were last read: the account and its list of repayments."""
    uuids = {account.uuid for account in accounts.values()}
    lists = Answer.objects.filter(kind__in=REPAYMENTS_OF.values(), uuid__in=uuids)
    listed = {(kind, uuid): at for kind, uuid, at in lists.values_list("kind", "uuid", "last_at")}
    times = {}
    for pk, account in accounts.items():
        at = listed.get((REPAYMENTS_OF[account.kind], account.uuid))
        if account.checked_at and at:
            times[pk] = min(account.checked_at, at)
    return times
