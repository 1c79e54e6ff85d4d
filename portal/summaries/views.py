"""The summary of a borrower on screen and as a PDF to hand out. Both draw the same template from the same object."""

import hashlib
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.text import slugify

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.sightings import saw
from portal.gateway import StaffRequest
from portal.readings import Freshness, Reading, show
from portal.registry.models import Kind, Record
from portal.summaries.assemble import accounts_of, assemble
from portal.summaries.pdf import NotDrawn, render
from portal.ui.htmx import render_page


@requires("summaries.borrower")
def borrower(request: StaffRequest, borrower_uuid: str) -> HttpResponse:
    """The summary as it would be printed, from copies at first, then from what the service says."""
    record = get_object_or_404(Record, kind=Kind.BORROWER, uuid=borrower_uuid)
    readings = show(request, {"summary": accounts_of(record)})["summary"]
    if not request.htmx:
        who, name = Actor.of(request), str(record)
        saw(
            who,
            "summaries.borrower",
            kind=record.kind,
            uuid=record.uuid,
            label=name,
            borrower_uuid=record.uuid,
        )
    return _screen(request, record, readings)


@requires("summaries.borrower")
def pdf(request: StaffRequest, borrower_uuid: str) -> HttpResponse:
    """The same as a PDF, from copies, with what was handed out in the audit."""
    record = get_object_or_404(Record, kind=Kind.BORROWER, uuid=borrower_uuid)
    readings = [Reading(one) for one in accounts_of(record)]
    html = render_to_string("summaries/borrower_print.html", _context(request, record, readings), request)
    try:
        document = render(html)
    except NotDrawn as reason:
        return _screen(request, record, readings, failure=str(reason))
    detail = {"sha256": hashlib.sha256(document).hexdigest(), "bytes": len(document)}
    append(
        Actor.of(request),
        "summaries.print",
        detail=detail,
        subject_kind=record.kind,
        subject_uuid=record.uuid,
        subject_label=str(record),
        borrower_uuid=record.uuid,
    )
    answer = HttpResponse(document, content_type="application/pdf")
    name = f"borrower-summary-{slugify(str(record))[:60] or record.uuid}-{timezone.localdate()}.pdf"
    answer["Content-Disposition"] = f'inline; filename="{name}"'
    answer["Cache-Control"] = "no-store"
    return answer


def _screen(
    request: StaffRequest, record: Record, readings: Sequence[Reading], failure: str = ""
) -> HttpResponse:
    context = _context(request, record, readings) | {"fresh": Freshness(readings), "failure": failure}
    status = HTTPStatus.SERVICE_UNAVAILABLE if failure else HTTPStatus.OK
    return render_page(request, "summaries/borrower.html", context, partial="summary", status=status)


def _context(request: StaffRequest, record: Record, readings: Sequence[Reading]) -> dict[str, Any]:
    by = request.user.display_name()
    now = timezone.now()
    summary = assemble(record, readings, today=timezone.localdate(), at=now, by=by)
    return {"summary": summary, "organisation": settings.ORGANISATION}
