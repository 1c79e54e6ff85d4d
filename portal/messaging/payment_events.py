"""Payment events: the messages about a repayment, an account or a borrower, newest first, for the pages of other areas.

The payment in an event is :attr:`portal.messaging.models.Message.repayment`.
"""

from collections.abc import Iterable
from typing import Final

from portal.messaging.models import Message
from portal.messaging.query import borrower_condition
from portal.records.models import Account, Borrower, Repayment

MAX_OF_REPAYMENT: Final = 200
MAX_OF_ACCOUNT: Final = 10


def messages_of_repayment(uuid: str) -> Iterable[Message]:
    return Message.objects.filter(subject_uuid=uuid)[:MAX_OF_REPAYMENT]


def messages_of_account(account: Account) -> Iterable[Message]:
    """The messages about the repayments of a loan or line."""
    repayments = Repayment.objects.filter(account=account).values("uuid")
    return Message.objects.filter(subject_uuid__in=repayments)[:MAX_OF_ACCOUNT]


def messages_of_borrower(borrower: Borrower) -> Iterable[Message]:
    """The messages about anything of a borrower, or from a bank account linked to it."""
    return Message.objects.listed().filter(borrower_condition(borrower.uuid))[:MAX_OF_ACCOUNT]
