"""The offers of one application side by side, to be looked at together: no disclosure, and it says so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from portal.applications.offers import Column, Row, View, compare
from portal.applications.page import facts
from portal.readings import Reading
from portal.registry.models import Record
from portal.summaries.documents import Document, Form
from portal.summaries.options import Options
from portal.ui import wording
from servicing import Application

FORM: Final = Form("OS", "Offer sheet", "summaries/papers/offer_sheet.html")
UPRIGHT: Final = 3
"""More offers than this need the long side of the paper."""


@dataclass(frozen=True)
class OfferSheet:
    """What stands in the document."""

    record: Record
    owner: Record | None
    application: Application | None
    facts: Sequence[tuple[str, str | None]]
    decision: str | None
    columns: Sequence[Column]
    reported: Sequence[Row]
    calculated: Sequence[Row]
    left_out: int
    is_fee_deducted: bool = False


def document(reading: Reading, owner: Record | None, options: Options, view: View) -> Document:
    """The offers that are chosen on the application's page, in the order chosen there."""
    record = reading.record
    application = reading.answer if isinstance(reading.answer, Application) else None
    content = _content(record, owner, application, view, options)
    return Document(
        form=FORM,
        subject=record,
        about=f"{owner or record.borrower_uuid[:8]}, application {record.uuid[:8]}",
        content=content,
        options=options,
        readings=[reading],
        is_landscape=len(content.columns) > UPRIGHT,
        missing=[] if application else ["The application was never read: only its identifier is known here."],
    )


def _content(
    record: Record, owner: Record | None, application: Application | None, view: View, options: Options
) -> OfferSheet:
    if application is None:
        return OfferSheet(record, owner, None, (), None, (), (), (), 0)
    comparison = compare(application, view)
    status = application.status.decision if application.status else None
    return OfferSheet(
        record=record,
        owner=owner,
        application=application,
        facts=facts(application) if options.is_internal else facts(application)[:3],
        decision=wording.status(status).word if status else None,
        columns=comparison.columns,
        reported=comparison.reported,
        calculated=comparison.calculated,
        left_out=len(comparison.everyone) - len(comparison.columns),
        is_fee_deducted=comparison.is_fee_deducted,
    )
