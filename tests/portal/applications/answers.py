"""Applications as the service sends them, saved without a call to it."""

from typing import Any

import servicing
from portal.records import store
from portal.records.models import Application, Borrower, Source
from servicing import codec
from servicing.sandbox.wire import dumps

UUID = "c40e91d7-0000-4000-8000-00000000000{}"
OFFER_UUID = "51aa7f2{0}-0000-4000-8000-00000000000{0}"


def offer(n: int = 0, **fields: Any) -> dict[str, Any]:
    """Return an offer with every figure; ``n`` is the digit that varies in its ID."""
    return {
        "uuid": OFFER_UUID.format(n),
        "product": "LOAN",
        "apr": 14.92,
        "amount": 40000,
        "term": 24,
        "term_frequency": "MONTHLY",
        "interest_rate": 12.90,
        "origination_fee": 800,
        "interest_only_period": None,
        "interest_only_installment": None,
        "interest_amount": 5594.96,
        "installment": 1899.79,
        "start_date": "2026-12-01",
        "explanation": None,
        "maturity_date": "2028-12-01",
    } | fields


def application_data(*offers: dict[str, Any], n: int = 0, **fields: Any) -> dict[str, Any]:
    """Return an approved loan application for $40,000.00."""
    return {
        "uuid": UUID.format(n),
        "product": "LOAN",
        "amount": 40000,
        "term": None,
        "purpose": None,
        "details": None,
        "credit_score_consent": True,
        "created_at": "2026-11-20 10:31:07 PST",
        "credit_report_id": 88214,
        "offers": list(offers),
        "status": {"decision": "APPROVED", "details": None},
    } | fields


def decode_application(*offers: dict[str, Any], **fields: Any) -> servicing.Application:
    return codec.decode(servicing.Application, dumps(application_data(*offers, **fields)))


def saved_application(owner: Borrower, *offers: dict[str, Any], **fields: Any) -> Application:
    """Save an application with these offers and fields, and return its record."""
    return save_application(owner, application_data(*offers, **fields))


def save_application(owner: Borrower, application: dict[str, Any]) -> Application:
    """Save an application as if the service had just sent it, and return its record."""
    items = store.observe(codec.decode(servicing.Application, dumps(application)), borrower_uuid=owner.uuid)
    return store.save(items, source=Source.SERVICE, by="Ana Reyes")[0]
