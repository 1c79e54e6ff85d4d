"""Whether a document is what it says: who printed what, when, from data of which time, and byte for byte."""

import hashlib
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_http_methods

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor, Entry
from portal.audit.sightings import log_page
from portal.gateway import StaffRequest
from portal.summaries.models import Printed
from portal.ui.htmx import render_page
from portal.ui.uploads import takes_files


@dataclass(frozen=True)
class Verdict:
    """What came of a file that was dropped on the page."""

    is_same: bool
    words: str


@takes_files(1)
@require_http_methods(["GET", "HEAD", "POST"])
@requires("summaries.verify")
def verify(request: StaffRequest, code: str = "") -> HttpResponse:
    """What is known of a code; with a file, whether it is that very document."""
    code = (code or request.GET.get("code", "")).replace("\0", "\ufffd").strip().upper()
    printed = Printed.objects.select_related("entry").filter(code=code).first() if code else None
    if printed:
        entry = printed.entry
        log_page(
            request,
            kind=entry.subject_kind,
            uuid=entry.subject_uuid or f"document {code}",
            label=f"document {code}",
            borrower_uuid=entry.borrower_uuid,
        )
    verdict = _check(request, printed.entry) if printed and request.method == "POST" else None
    context = {
        "code": code[:40],
        "printed": printed,
        "told": {name: _told(printed.entry.detail.get(name)) for name in ("data_from", "data_to")}
        if printed
        else {},
        "verdict": verdict,
    }
    status = HTTPStatus.NOT_FOUND if code and not printed else HTTPStatus.OK
    return render_page(request, "summaries/verify.html", context, status=status)


def _check(request: StaffRequest, entry: Entry) -> Verdict:
    file = request.FILES.get("document")
    if file is None:
        return Verdict(False, "No file was chosen.")
    verdict = _verdict(file, entry.detail)
    append(
        Actor.of(request),
        "summaries.verify",
        result="same" if verdict.is_same else "different",
        subject_kind=entry.subject_kind,
        subject_uuid=entry.subject_uuid,
        subject_label=str(entry.detail.get("code", "")),
        borrower_uuid=entry.borrower_uuid,
    )
    return verdict


def _verdict(file: Any, detail: dict[str, Any]) -> Verdict:
    """A file of another length is not even read."""
    if file.size != detail.get("bytes"):
        return Verdict(False, f"It has {file.size:,} bytes; the document has {detail.get('bytes'):,}.")
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    if digest.hexdigest() != detail.get("sha256"):
        return Verdict(False, "It has the same length, but at least one byte is another.")
    return Verdict(True, f"All {file.size:,} bytes are those that were handed out.")


def _told(value: Any) -> Any:
    return parse_datetime(value) if isinstance(value, str) else value
