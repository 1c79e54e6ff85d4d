"""Derives the columns for filtering, sorting and searching from a saved answer."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Model

import servicing
from portal.records.figures import figure_columns, figures_of, stored_amount
from portal.records.models import Account
from portal.records.query import is_uuid
from portal.records.rows import MODELS
from portal.records.sources import KIND_OF_MODEL
from portal.records.texts import search_text
from servicing import Loan, Statement, rules
from servicing.rules import known_spelling

Decoded = servicing.Borrower | servicing.KeyPerson | servicing.Application | Loan | Statement

MAX_DAYS = 10**6


def columns_from(answer: Decoded, copied_on: date | None) -> dict[str, Any]:
    """The columns of an answer in a form that every database can store."""
    model = MODELS.get(KIND_OF_MODEL[type(answer)], Account)
    return fit_columns(model, _columns_of(answer, copied_on))


def fit_columns(model: type[Model], columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a model in a form that every database can store."""
    return {name: _fit_column(model, name, value) for name, value in columns.items()}


def non_uuid_identifier(uuid: str) -> str:
    """The ID if it is not a UUID, to be searched like any other text; otherwise empty."""
    return "" if is_uuid(uuid) else uuid


def _columns_of(answer: Decoded, copied_on: date | None) -> dict[str, Any]:
    match answer:
        case servicing.Borrower():
            return _borrower_columns(answer)
        case servicing.KeyPerson():
            return _person_columns(answer) | {"title": known_spelling(answer.title)}
        case servicing.Application():
            return _application_columns(answer)
        case Loan():
            return _loan_columns(answer, copied_on)
        case Statement():
            return {"amount": answer.credit_limit, **figure_columns(figures_of(answer, copied_on))}


def _person_columns(person: servicing.Borrower | servicing.KeyPerson, *more_names: str) -> dict[str, Any]:
    address = person.address
    state, city, postal_code = (address.state, address.city, address.zip) if address else (None, None, None)
    contacts = (person.email, person.phone, city, postal_code, state, rules.US_STATES.get(state or ""))
    name = full_name(person)
    return {
        "name": name,
        "state": state or "",
        "city": city or "",
        "phone": person.phone or "",
        "email": person.email or "",
        "search_text": search_text(name, non_uuid_identifier(person.uuid), *contacts, *more_names),
    }


def _borrower_columns(borrower: servicing.Borrower) -> dict[str, Any]:
    return _person_columns(borrower, *map(full_name, borrower.key_people or ())) | {
        "type": (borrower.user_type or ("BUSINESS" if borrower.is_business else "PERSON")).upper(),
        "legal_form": known_spelling(borrower.entity),
    }


def _application_columns(application: servicing.Application) -> dict[str, Any]:
    decision = application.status.decision if application.status else None
    offers = (offer.uuid for offer in application.offers)
    return {
        "product": known_spelling(application.product),
        "decision": known_spelling(decision),
        "search_text": search_text(None, non_uuid_identifier(application.uuid), *offers),
        "amount": application.amount,
        "submitted_at": application.created_at
        and application.created_at.guess(ZoneInfo(settings.SERVICING_TIME_ZONE)),
    }


def _loan_columns(loan: Loan, copied_on: date | None) -> dict[str, Any]:
    # Their structure is undefined.
    other_ids = (str(one) for one in (loan.external_id, loan.origin_loan_uuid) if isinstance(one, str | int))
    return {
        "product": known_spelling(loan.product),
        "status": known_spelling(loan.status),
        "search_text": search_text(None, non_uuid_identifier(loan.uuid), *other_ids),
        "amount": loan.amount,
        "state": loan.state or "",
        "rate": loan.interest_rate,
        "opened_on": loan.opening_date,
        "has_autopay": loan.autopay_enabled,
        **figure_columns(figures_of(loan, copied_on)),
    }


def full_name(person: servicing.Borrower | servicing.KeyPerson) -> str:
    """First, middle and last name; for a business, the legal name."""
    parts = (person.first_name, person.middle_name, person.last_name)
    return " ".join(part for part in parts if part)


def _fit_column(model: type[Model], name: str, value: Any) -> Any:
    """The value in a form that every database can store: text cut to length, amounts out of range left out."""
    if isinstance(value, str):
        longest = getattr(model._meta.get_field(name), "max_length", None)
        return value.replace("\0", "\ufffd")[:longest]
    if isinstance(value, Decimal):
        return value if name == "past_due_rank" else stored_amount(value)
    return None if isinstance(value, int) and abs(value) >= MAX_DAYS else value
