"""Finds a message's borrower: by the payload's subject if that is on file, else by a link that staff made."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from portal.messaging.models import BankAccount, Message
from portal.registry.models import SEARCHED_KINDS, Kind, Record
from portal.registry.records import records_by_uuid


@dataclass(frozen=True)
class LinkedMessage:
    """A message with the records it belongs to."""

    message: Message
    subject: Record | None = None
    """The repayment or other record that the payload is about, if on file."""
    account: Record | None = None
    borrower: Record | None = None
    manual_link: BankAccount | None = None
    """The link that staff made, if nothing else identifies the borrower."""

    @property
    def local_time(self) -> datetime:
        """When it was recorded, in the viewer's time zone."""
        return timezone.localtime(self.message.recorded_at)

    @property
    def kind(self) -> tuple[str, str]:
        """Event and delivery status, which all messages of a burst in the list share."""
        return self.message.event, self.message.status.lower()

    @property
    def borrower_uuid(self) -> str:
        return self.borrower.uuid if self.borrower else ""

    @property
    def can_be_linked(self) -> bool:
        """Whether its borrower is unknown and staff can link its bank account."""
        return not self.borrower and bool(self.message.bank_account)


def link_messages(messages: Iterable[Message]) -> list[LinkedMessage]:
    """Find the records that messages belong to, in four queries."""
    shown = list(messages)
    subjects = records_by_uuid(SEARCHED_KINDS, (message.subject_uuid for message in shown))
    manual_links = BankAccount.objects.in_bulk({one.bank_account for one in shown if one.bank_account})
    accounts = records_by_uuid(SEARCHED_KINDS, (subject.parent_uuid for subject in subjects.values()))
    records = [*subjects.values(), *accounts.values()]
    owners = {one.borrower_uuid for one in records} | {one.borrower_uuid for one in manual_links.values()}
    borrowers = records_by_uuid([Kind.BORROWER], owners)
    rows = []
    for message in shown:
        subject, manual_link = subjects.get(message.subject_uuid), None
        account = accounts.get(subject.parent_uuid) if subject else None
        if subject and subject.kind in (Kind.LOAN, Kind.LINE):
            account = subject
        if subject and subject.kind == Kind.BORROWER:
            rows.append(LinkedMessage(message, subject, None, subject))
            continue
        owner = (subject and subject.borrower_uuid) or (account and account.borrower_uuid) or ""
        if not owner and (manual_link := manual_links.get(message.bank_account)):
            owner = manual_link.borrower_uuid
        borrower = borrowers.get(owner) or _placeholder_borrower(owner) if owner else None
        rows.append(LinkedMessage(message, subject, account, borrower, manual_link))
    return rows


def _placeholder_borrower(uuid: str) -> Record:
    """A borrower that is not on file, with only an ID."""
    return Record(kind=Kind.BORROWER, uuid=uuid, label=uuid[:8])
