"""Lines of credit: balances, due dates and statement documents (sections 2.8, 4.7)."""

from datetime import date
from decimal import Decimal

from servicing.codec import Model
from servicing.resource import Resource


class StatementDocument(Model, frozen=True, kw_only=True):
    """A monthly statement (section 2.8). Fetch the PDF at `url` only with `DocumentFetcher`."""

    billing_date: date | None = None
    url: str | None = None


class Statement(Model, frozen=True, kw_only=True):
    """The balances and due dates of a line of credit (section 2.8).

    Balances and amounts are US dollars. `statements` keep the service's order. `payment_due_date` is None while
    nothing is due.
    """

    next_billing_date: date | None = None
    principal_balance: Decimal | None = None
    interest_balance: Decimal | None = None
    payoff_balance: Decimal | None = None
    days_past_due: int | None = None
    past_due_balance: Decimal | None = None
    payment_amount_due: Decimal | None = None
    payment_due_date: date | None = None
    suspense_balance: Decimal | None = None
    statements: tuple[StatementDocument, ...] = ()
    credit_limit: Decimal | None = None
    available_credit: Decimal | None = None
    current_credit: Decimal | None = None


class CreditLinesResource(Resource):
    """Lines of credit of a borrower."""

    def statement(self, borrower_id: str, line_id: str) -> Statement:
        """Read the balances and statements of a line (section 4.7).

        Raises `NotFound`, `Rejected`, `Unavailable`, `ProtocolError` or `Unauthenticated`.
        """
        return self._get(
            "credit_lines.statement",
            "/v1/users/{borrower_id}/loc/{line_id}/statements",
            Statement,
            borrower_id=borrower_id,
            line_id=line_id,
        )
