"""The offers of one application side by side. It says that it is no legal disclosure."""

from typing import Any

from portal.applications.offers import OfferView, compare
from portal.applications.page import facts
from portal.documents.document import Document, Form, account_document
from portal.documents.options import Options
from portal.gateway.reading import LiveCopy
from portal.records.models import Borrower
from portal.ui import wording
from servicing import Application

FORM = Form("OS", "Offer sheet", "documents/papers/offer_sheet.html")
MAX_UPRIGHT_OFFERS = 3
"""With more offers than this, the paper is turned to landscape."""


def document(copy: LiveCopy, owner: Borrower | None, options: Options, view: OfferView) -> Document:
    """Build the sheet with the offers chosen on the application's page, in the same order.

    It has every row with a value, even if the page shows only rows that differ.
    """
    application = copy.answer if isinstance(copy.answer, Application) else None
    content: dict[str, Any] = {"application": application, "columns": ()}
    if application:
        comparison = compare(application, view._replace(rows="all", has_empty=False))
        decision = application.status.decision if application.status else None
        content |= {
            "facts": facts(application) if options.is_internal else facts(application)[:3],
            "decision": wording.status_word(decision) if decision else None,
            "columns": comparison.columns,
            "reported": comparison.reported,
            "calculated": comparison.calculated,
            "left_out": len(comparison.everyone) - len(comparison.columns),
            "is_fee_deducted": comparison.is_fee_deducted,
        }
    is_landscape = len(content["columns"]) > MAX_UPRIGHT_OFFERS
    return account_document(FORM, [copy], owner, content, options=options, is_landscape=is_landscape)
