"""Repayments on loans and on lines of credit (sections 2.9, 4.8, 4.9)."""

from datetime import date
from decimal import Decimal
from typing import Any, Final

from servicing.codec import Record
from servicing.resource import Resource
from servicing.values import RemoteTime, is_same_word

SUCCEEDED: Final = ("SUCCEEDED", "COMPLETED", "SETTLED")
"""The statuses of a repayment whose money came."""
REVERSALS: Final = (
    "RETURNED", "MERCHANT_RETURN", "REVERSED", "REFUNDED", "DISPUTED", "CHARGEBACK",
)  # fmt: skip
"""The payment types of money that went back; every other type counts."""


class Repayment(Record, frozen=True, kw_only=True):
    """A repayment on a loan or a line of credit (section 2.9).

    `amount` is US dollars. `effective_date` is a calendar day. Fields typed `Any` (`principal`, `fees`, …) hold the
    JSON value as received, because the interface leaves their type open. `status` is for example `SCHEDULED`.
    """

    product: str | None = None
    payment_type: str | None = None
    effective_date: date | None = None
    amount: Decimal | None = None
    principal: Any = None
    interest: Any = None
    fees: Any = None
    suspense: Any = None
    ending_balance: Any = None
    should_commit_to_servicing: bool | None = None
    borrower_bank_account_uuid: str | None = None
    ach_batch_id: str | None = None
    ach_id: str | None = None
    completion_date: Any = None
    error_description: str | None = None
    initiation_date: RemoteTime | None = None
    status: str | None = None


def has_succeeded(repayment: Repayment) -> bool:
    """Whether the status says that the money came."""
    return any(is_same_word(repayment.status, one) for one in SUCCEEDED)


def is_reversal(repayment: Repayment) -> bool:
    """Whether the payment type says that money went back."""
    return any(is_same_word(repayment.payment_type, one) for one in REVERSALS)


def is_collected(repayment: Repayment) -> bool:
    """Whether its money came and didn't go back. An unknown amount may be any; nothing and less is no money."""
    is_amount = repayment.amount is None or repayment.amount > 0
    return has_succeeded(repayment) and is_amount and not is_reversal(repayment)


class RepaymentsResource(Resource):
    """Repayments of a borrower."""

    def of_loan(self, borrower_id: str, loan_id: str) -> list[Repayment]:
        """List the repayments on a loan (section 4.9; the path says `loans`, in the plural).

        Raises `NotFound`, `Rejected`, `Unavailable`, `ProtocolError` or `Unauthenticated`; `IncompleteList` if the
        service says that there are more, but does not return them.
        """
        return self._list(
            "repayments.of_loan",
            "/v1/users/{borrower_id}/loans/{loan_id}/payments",
            Repayment,
            borrower_id=borrower_id,
            loan_id=loan_id,
        )

    def of_line(self, borrower_id: str, line_id: str) -> list[Repayment]:
        """List the repayments on a line of credit (section 4.8).

        Raises what `of_loan` raises.
        """
        return self._list(
            "repayments.of_line",
            "/v1/users/{borrower_id}/loc/{line_id}/payments",
            Repayment,
            borrower_id=borrower_id,
            line_id=line_id,
        )
