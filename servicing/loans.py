"""Loans (sections 2.7, 4.6)."""

from datetime import date
from decimal import Decimal
from typing import Any

from servicing.codec import Record
from servicing.resource import Resource
from servicing.values import RemoteTime


class Loan(Record, frozen=True, kw_only=True):
    """A loan (section 2.7).

    Amounts and fees are US dollars; rates are percentages as the service sends them; `term` counts periods of
    `term_frequency`. `user_uuid` is the borrower. `installments` are JSON values as received, because the interface
    leaves their shape open; `servicing.schedules` reads the known shapes.
    """

    user_uuid: str | None = None
    product: str | None = None
    origin_loan_uuid: Any = None
    external_id: Any = None
    state: str | None = None
    amount: Decimal | None = None
    interest_rate: Decimal | None = None
    apr: Decimal | None = None
    term: int | None = None
    term_frequency: str | None = None
    interest_only_period: Any = None
    opening_date: date | None = None
    repayments_start_date: date | None = None
    repayments_end_date: date | None = None
    maturity_date: date | None = None
    autopay_enabled: bool | None = None
    origination_fee: Decimal | None = None
    finance_charge: Any = None
    total_repayment_amount: Any = None
    interest_amount: Any = None
    risk_grade: Any = None
    servicing_committed_at: RemoteTime | None = None
    status: str | None = None
    delinquent: bool | None = None
    installments: tuple[Any, ...] = ()


class LoansResource(Resource):
    """Loans of a borrower."""

    def get(self, borrower_id: str, loan_id: str) -> Loan:
        """Read a loan (section 4.6; the path says `loan`, in the singular).

        Raises `NotFound`, `Rejected`, `Unavailable`, `ProtocolError` or `Unauthenticated`.
        """
        return self._get(
            "loans.get",
            "/v1/users/{borrower_id}/loan/{loan_id}",
            Loan,
            borrower_id=borrower_id,
            loan_id=loan_id,
            uuid=loan_id,
        )
