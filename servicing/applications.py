"""Applications for loans and lines of credit, their decisions and offers (sections 2.5, 2.6, 4.1, 4.5)."""

from datetime import date
from decimal import Decimal
from typing import Any

from msgspec.structs import force_setattr

from servicing.codec import Model, Outgoing, Record, encode
from servicing.errors import InvalidInput
from servicing.resource import Resource
from servicing.rules import amount_problems
from servicing.transport import Payload
from servicing.values import RemoteTime


class Decision(Model, frozen=True, kw_only=True):
    """The `status` of an application (section 2.5): `decision`, such as `APPROVED`, and `details`.

    `details` may be None, text, a list or an object. Some answers say `name` for `decision`: both are filled.
    """

    decision: str | None = None
    details: Any = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.decision is None:
            force_setattr(self, "decision", self.name)


class Offer(Record, frozen=True, kw_only=True):
    """An offer on an application (section 2.6).

    Amounts and `origination_fee` are US dollars; `apr` and `interest_rate` are percentages as the service sends
    them; `term` counts periods of `term_frequency`. Fields typed `Any` hold the JSON value as received, because
    the interface leaves their type open.
    """

    product: str | None = None
    apr: Decimal | None = None
    amount: Decimal | None = None
    term: int | None = None
    term_frequency: str | None = None
    interest_rate: Decimal | None = None
    origination_fee: Decimal | None = None
    interest_only_period: Any = None
    interest_only_installment: Any = None
    interest_amount: Any = None
    installment: Any = None
    start_date: date | None = None
    explanation: Any = None
    maturity_date: Any = None


class Application(Record, frozen=True, kw_only=True):
    """An application for a loan or a line of credit (section 2.5).

    `amount` is the requested amount in US dollars. `offers` is empty if there are none.
    """

    product: str | None = None
    amount: Decimal | None = None
    term: int | None = None
    purpose: Any = None
    details: Any = None
    credit_score_consent: bool | None = None
    created_at: RemoteTime | None = None
    credit_report_id: int | None = None
    offers: tuple[Offer, ...] = ()
    status: Decision | None = None


class _NewApplication(Outgoing, frozen=True, kw_only=True):
    amount: Decimal


class ApplicationsResource(Resource):
    """Applications of a borrower."""

    def submit(self, borrower_id: str, *, amount: Decimal) -> Application:
        """Apply for a loan (section 4.1). Save the answer: the service cannot return it a second time.

        Raises `InvalidInput`, `Rejected`, `NotSent`, `OutcomeUnknown` or `Unauthenticated`.
        """
        if problems := _amount_problems(amount):
            raise InvalidInput({"amount": problems})
        return self._write(
            "applications.submit",
            "POST",
            "/v1/users/{borrower_id}/loans/applications",
            Application,
            Payload(encode(_NewApplication(amount=amount), cipher=None)),
            borrower_id=borrower_id,
        )

    def get_for_line(self, borrower_id: str, application_id: str) -> Application:
        """Read an application for a line of credit (section 4.5).

        Raises `NotFound`, `Rejected`, `Unavailable`, `ProtocolError` or `Unauthenticated`.
        """
        return self._get(
            "applications.get_for_line",
            "/v1/users/{borrower_id}/loc/applications/{application_id}",
            Application,
            borrower_id=borrower_id,
            application_id=application_id,
            uuid=application_id,
        )


def _amount_problems(amount: object) -> list[str]:
    if not isinstance(amount, Decimal):
        return ["The amount must be a Decimal."]
    return amount_problems(amount)
