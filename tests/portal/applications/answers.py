"""Applications as the service answers them, made known here without asking it."""

from typing import Any

from portal.registry import store
from portal.registry.models import Record, Source
from servicing import Application, codec
from servicing.sandbox.wire import dumps

UUID = "c40e91d7-0000-4000-8000-00000000000{}"
OFFER_UUID = "51aa7f2{0}-0000-4000-8000-00000000000{0}"


def offer(n: int = 0, **fields: Any) -> dict[str, Any]:
    """An offer with every figure; ``n`` is one digit of its identifier."""
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


def answer(*offers: dict[str, Any], n: int = 0, **fields: Any) -> dict[str, Any]:
    """An application for a loan of $40,000.00, approved."""
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


def decoded(*offers: dict[str, Any], **fields: Any) -> Application:
    return codec.decode(Application, dumps(answer(*offers, **fields)))


def known(owner: Record, *offers: dict[str, Any], **fields: Any) -> Record:
    """An application of which the service gave this answer."""
    return told(owner, answer(*offers, **fields))


def told(owner: Record, application: dict[str, Any]) -> Record:
    """Remember an application object as if the service had just answered with it."""
    items = store.observe(codec.decode(Application, dumps(application)), borrower_uuid=owner.uuid)
    return store.save(items, source=Source.SERVICE, by="Ana Reyes")[0]
