"""Whose a message is: by what its payload is about where that is known here, else by what staff said of an account."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from django.utils import timezone

from portal.messaging.models import BankAccount, Message
from portal.registry.models import Kind, Record

OWNED: Final = (Kind.REPAYMENT, Kind.LOAN, Kind.LINE, Kind.APPLICATION, Kind.BORROWER, Kind.KEY_PERSON)
"""What a payload may be about, each with a borrower."""


@dataclass(frozen=True)
class Row:
    """A message with what it belongs to."""

    message: Message
    subject: Record | None = None
    """The repayment, or whatever else the payload is, as far as it is known here."""
    account: Record | None = None
    borrower: Record | None = None
    by_hand: BankAccount | None = None
    """What staff said, where nothing else tells whose it is."""

    @property
    def at(self) -> datetime:
        """When it was recorded, for whoever is looking."""
        return timezone.localtime(self.message.at)

    @property
    def local_day(self) -> date:
        return self.at.date()

    @property
    def can_be_linked(self) -> bool:
        """Whether nobody knows whose it is, and somebody may say so."""
        return not self.borrower and bool(self.message.bank_account)


def rows_of(messages: Iterable[Message]) -> list[Row]:
    """Messages with what they belong to, in four queries."""
    shown = list(messages)
    subjects = _known(message.subject_uuid for message in shown)
    said = BankAccount.objects.in_bulk({message.bank_account for message in shown if message.bank_account})
    accounts = _known(subject.parent_uuid for subject in subjects.values())
    records = [*subjects.values(), *accounts.values()]
    owners = {one.borrower_uuid for one in records} | {one.borrower_uuid for one in said.values()}
    borrowers = {one.uuid: one for one in Record.objects.filter(kind=Kind.BORROWER, uuid__in=owners)}
    return [_row(message, subjects, accounts, borrowers, said) for message in shown]


def _row(
    message: Message,
    subjects: dict[str, Record],
    accounts: dict[str, Record],
    borrowers: dict[str, Record],
    said: dict[str, BankAccount],
) -> Row:
    subject = subjects.get(message.subject_uuid)
    account = accounts.get(subject.parent_uuid) if subject else None
    if subject and subject.kind in (Kind.LOAN, Kind.LINE):
        account = subject
    if subject and subject.kind == Kind.BORROWER:
        return Row(message, subject, None, subject)
    owner = (subject and subject.borrower_uuid) or (account and account.borrower_uuid) or ""
    if owner:
        return Row(message, subject, account, borrowers.get(owner) or _unnamed(owner))
    by_hand = said.get(message.bank_account)
    borrower = (borrowers.get(by_hand.borrower_uuid) or _unnamed(by_hand.borrower_uuid)) if by_hand else None
    return Row(message, subject, account, borrower, by_hand)


def _known(uuids: Iterable[str]) -> dict[str, Record]:
    """Records by their identifier: lists of repayments bear that of their account, which counts."""
    wanted = {uuid for uuid in uuids if uuid}
    return {one.uuid: one for one in Record.objects.filter(uuid__in=wanted, kind__in=OWNED)}


def _unnamed(uuid: str) -> Record:
    """The borrower of whom only the identifier is known."""
    return Record(kind=Kind.BORROWER, uuid=uuid, label=uuid[:8])
