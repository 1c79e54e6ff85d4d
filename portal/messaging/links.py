"""Finds a message's borrower: by the payload's subject if that is on file, else by a link that staff made."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import OuterRef, Subquery

from portal.messaging.models import BankAccount, Message
from portal.records.models import Account, Borrower, Kind, Saved
from portal.records.rows import records_with_owners


@dataclass(frozen=True)
class LinkedMessage:
    """A message with the records it belongs to."""

    message: Message
    subject: Saved | None = None
    """The repayment or other record that the payload is about, if on file."""
    account: Account | None = None
    borrower: Borrower | None = None
    manual_link: BankAccount | None = None
    """The link that staff made, if nothing else identifies the borrower."""

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
    """Find the records that messages belong to, in a query for each table, and one for linked bank accounts."""
    shown = list(messages)
    subjects = records_with_owners(message.subject_uuid for message in shown)
    owners = {uuid: _owner(subject, account) for uuid, (subject, account, _) in subjects.items()}
    unowned = {one.bank_account for one in shown if one.bank_account and not owners.get(one.subject_uuid)}
    labels = Borrower.objects.filter(uuid=OuterRef("borrower_uuid")).values("name")[:1]
    manual_links = BankAccount.objects.annotate(borrower_label=Subquery(labels)).in_bulk(unowned)
    rows = []
    for message in shown:
        subject, account, borrower = subjects.get(message.subject_uuid, (None, None, None))
        if isinstance(subject, Borrower):
            rows.append(LinkedMessage(message, subject, None, subject))
            continue
        if isinstance(subject, Account) and subject.kind in (Kind.LOAN, Kind.LINE):
            account = subject
        manual_link = None
        if owner := owners.get(message.subject_uuid, ""):
            borrower = borrower or _borrower(owner)
        elif manual_link := manual_links.get(message.bank_account):
            borrower = _borrower(manual_link.borrower_uuid, manual_link.borrower_label)
        rows.append(LinkedMessage(message, subject, account, borrower, manual_link))
    return rows


def _owner(subject: Saved, account: Account | None) -> str:
    """The ID of a record's borrower."""
    return subject.borrower_uuid or (account.borrower_uuid if account else "")


def _borrower(uuid: str, label: str | None = None) -> Borrower:
    """A borrower as far as a link needs it; one that is not on file, so has no label, is named by its ID."""
    return Borrower(uuid=uuid, name=uuid[:8] if label is None else label)
