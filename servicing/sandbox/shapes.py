"""The objects of the interface, field by field (sections 2.1 to 2.10). Hides field names and nulls.

Each function takes the known values and returns a complete object, in which everything else is null.
"""

from datetime import date
from decimal import Decimal
from typing import Any

from servicing.sandbox.amortization import Installment

Wire = dict[str, Any]
"""One JSON object of the interface."""


def address(**values: Any) -> Wire:
    """An address (section 2.1), with the country in upper case."""
    return {
        "line_1": values["line_1"],
        "line_2": values.get("line_2"),
        "line_3": values.get("line_3"),
        "zip": values["zip"],
        "city": values["city"],
        "state": values["state"],
        "country": values["country"].upper(),
    }


def business_user(uuid: str, **values: Any) -> Wire:
    """A business (section 2.2) without EIN; its key people are added when it is returned."""
    return {
        "uuid": uuid,
        "first_name": values["first_name"],
        "middle_name": None,
        "last_name": None,
        "provider_customer_url": values.get("provider_customer_url"),
        "user_type": "BUSINESS",
        "start_date": values.get("start_date"),
        "website": values.get("website"),
        "entity": values["entity"],
        "industry": values.get("industry"),
        "email": values["email"],
        "phone": values["phone"],
        "address": values["address"],
        "key_people": [],
    }


def individual_user(uuid: str, **values: Any) -> Wire:
    """An individual (section 2.2) without date of birth and SSN."""
    return {
        "uuid": uuid,
        "first_name": values["first_name"],
        "middle_name": values.get("middle_name"),
        "last_name": values["last_name"],
        "citizenship": values["citizenship"],
        "provider_customer_url": values.get("provider_customer_url"),
        "user_type": "PERSON",
        "email": values["email"],
        "phone": values["phone"],
        "address": values["address"],
    }


def key_person(uuid: str, **values: Any) -> Wire:
    """A key person (section 2.4) without date of birth and SSN."""
    return {
        "uuid": uuid,
        "first_name": values["first_name"],
        "middle_name": values.get("middle_name"),
        "last_name": values["last_name"],
        "title": values["title"],
        "citizenship": values["citizenship"],
        "email": values["email"],
        "phone": values["phone"],
        "address": values["address"],
    }


def application(uuid: str, *, product: str, amount: Decimal, created_at: str) -> Wire:
    """An application (section 2.5) before the decision."""
    return {
        "uuid": uuid,
        "product": product,
        "amount": amount,
        "term": None,
        "purpose": None,
        "details": None,
        "credit_score_consent": True,
        "created_at": created_at,
        "credit_report_id": None,
        "offers": [],
        "status": {"decision": "PENDING", "details": None},
    }


def offer(uuid: str, *, product: str, start_date: date, **terms: Any) -> Wire:
    """An offer (section 2.6). Fields that the interface shows only as null stay null."""
    return {
        "uuid": uuid,
        "product": product,
        "apr": terms["apr"],
        "amount": terms["amount"],
        "term": terms.get("term"),
        "term_frequency": "MONTHLY",
        "interest_rate": terms["interest_rate"],
        "origination_fee": terms["origination_fee"],
        "interest_only_period": None,
        "interest_only_installment": None,
        "interest_amount": None,
        "installment": None,
        "start_date": start_date.isoformat(),
        "explanation": None,
        "maturity_date": None,
    }


def loan(uuid: str, user_uuid: str, **terms: Any) -> Wire:
    """A loan (section 2.7)."""
    return {
        "user_uuid": user_uuid,
        "uuid": uuid,
        "product": "LOAN",
        "origin_loan_uuid": None,
        "external_id": None,
        "state": terms["state"],
        "amount": terms["amount"],
        "interest_rate": terms["interest_rate"],
        "apr": terms["apr"],
        "term": terms["term"],
        "term_frequency": "MONTHLY",
        "interest_only_period": None,
        "opening_date": terms["opening_date"],
        "repayments_start_date": None,
        "repayments_end_date": None,
        "maturity_date": None,
        "autopay_enabled": True,
        "origination_fee": terms["origination_fee"],
        "finance_charge": None,
        "total_repayment_amount": None,
        "interest_amount": None,
        "risk_grade": None,
        "servicing_committed_at": terms["servicing_committed_at"],
        "status": "ACTIVE",
        "delinquent": False,
        "installments": [],
    }


def line(*, limit: Decimal, next_billing_date: date) -> Wire:
    """A line without draws (section 2.8); its statement documents are added when it is returned."""
    nothing = Decimal("0.00")
    return {
        "next_billing_date": next_billing_date.isoformat(),
        "principal_balance": nothing,
        "interest_balance": nothing,
        "payoff_balance": nothing,
        "days_past_due": 0,
        "past_due_balance": nothing,
        "payment_amount_due": nothing,
        "payment_due_date": None,
        "suspense_balance": nothing,
        "statements": [],
        "credit_limit": limit,
        "available_credit": limit,
        "current_credit": limit,
    }


def snake_installment(row: Installment, *, amount: Decimal, paid_on: str | None, today: date) -> Wire:
    """An installment of a loan, named like the other fields; the interface does not show its shape."""
    status = "PAID" if paid_on else "PAST_DUE" if row.due < today else "SCHEDULED"
    return {
        "number": row.number,
        "due_date": row.due.isoformat(),
        "principal": row.principal,
        "interest": row.interest,
        "fees": Decimal("0.00"),
        "total": row.total,
        "balance": row.balance,
        "status": status,
        "paid_on": paid_on,
    }


def pascal_installment(row: Installment, *, amount: Decimal, paid_on: str | None, today: date) -> Wire:
    """An installment in the names of an older ledger; a paid row is history."""
    return {
        "PaymentNumber": row.number,
        "PaymentDate": row.due.isoformat(),
        "PrincipalAmount": row.principal,
        "InterestAmount": row.interest,
        "OtherAmount": Decimal("0.00"),
        "PaymentAmount": row.total,
        "BalanceAmount": row.balance,
        "LoanAmount": amount,
        "IsHistory": paid_on is not None,
    }


INSTALLMENTS = {"snake": snake_installment, "pascal": pascal_installment}
"""The two known shapes of an installment."""
DUE_DATES = {"due_date", "PaymentDate"}
"""The field of each shape that holds the due date."""


def repayment(uuid: str, *, product: str, amount: Decimal, effective_date: date | str, **rest: str) -> Wire:
    """A repayment (section 2.9); ``rest`` is the status and the bank account."""
    return {
        "uuid": uuid,
        "product": product,
        "payment_type": "SINGLE_PAYMENT",
        "effective_date": str(effective_date),
        "amount": amount,
        "principal": None,
        "interest": None,
        "fees": None,
        "suspense": None,
        "ending_balance": None,
        "should_commit_to_servicing": True,
        "borrower_bank_account_uuid": rest["borrower_bank_account_uuid"],
        "ach_batch_id": None,
        "ach_id": None,
        "completion_date": None,
        "error_description": None,
        "initiation_date": None,
        "status": rest["status"],
    }


def message(uuid: str, *, event: str, payload: Wire, created_at: str, status: str) -> Wire:
    """A webhook message (section 2.10)."""
    return {"uuid": uuid, "event": event, "payload": payload, "status": status, "created_at": created_at}
