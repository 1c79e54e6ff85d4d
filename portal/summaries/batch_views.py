"""Batches of summaries on screen: choosing, watching, fetching."""

from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.sightings import log_list
from portal.borrowers.views import listed_borrowers
from portal.gateway import StaffRequest
from portal.summaries.batches import MOST, open_batch
from portal.summaries.bundles import documents, zipped
from portal.summaries.joining import joined
from portal.summaries.models import Batch, Item
from portal.summaries.options import CHOICES, MODES, PAPERS, SECTIONS, Mode, Options
from portal.summaries.tasks import draw_batch
from portal.summaries.turns import Busy, turn
from portal.ui.htmx import done, render_page
from servicing.masking import masked_text

SHOWN_FAILURES = 200
RECENT = 20


@require_http_methods(["GET", "HEAD", "POST"])
@requires("summaries.batch")
def create(request: StaffRequest) -> HttpResponse:
    """A batch of all borrowers that the filters in the address leave."""
    found = listed_borrowers(request)
    if request.method == "POST" and found.total:
        form = request.POST.get("form", "")
        options = {name: list(map(masked_text, request.POST.getlist(name))) for name in CHOICES}
        try:
            with turn(request.user.pk, Batch):
                opened = open_batch(
                    draw_batch,
                    Actor.of(request),
                    found,
                    form=form if form in Batch.Form.values else Batch.Form.ZIP,
                    options=urlencode(options, doseq=True),
                    zone=timezone.get_current_timezone_name(),
                )
        except Busy as busy:
            return busy.page(request)
        return done(request, opened.get_absolute_url())
    context = {
        "listing": found,
        "most": MOST,
        "too_many": found.total > MOST or found.has_more,
        "choices": {"modes": MODES, "papers": PAPERS, "sections": SECTIONS},
        "options": Options(mode=Mode.BORROWER),
        "forms": Batch.Form.choices,
        "recent": Batch.objects.select_related("job")[:RECENT],
    }
    return render_page(request, "summaries/batch_new.html", context)


@require_safe
@requires("summaries.batch")
def batch(request: StaffRequest, batch_id: UUID) -> HttpResponse:
    """How far it is, who failed and why, and its file once it is there."""
    found = get_object_or_404(Batch.objects.select_related("job"), pk=batch_id)
    failed = found.items.filter(state=Item.State.FAILED).defer("document")
    log_list(request, count=failed.count())
    context = {
        "batch": found,
        "job": found.job,
        "total": found.items.count(),
        "ready": found.items.filter(state=Item.State.DONE).count(),
        "failed": failed[:SHOWN_FAILURES],
        "failed_number": failed.count(),
    }
    return render_page(request, "summaries/batch.html", context, partial="batch")


@require_safe
@requires("summaries.batch")
def download(request: StaffRequest, batch_id: UUID) -> HttpResponseBase:
    """What is finished of it, as one file."""
    found = get_object_or_404(Batch, pk=batch_id, removed_at__isnull=True)
    ready = found.items.filter(state=Item.State.DONE).count()
    if not ready:
        raise Http404
    append(
        Actor.of(request),
        "summaries.download",
        subject_label=f"{ready:,} summaries",
        detail={"batch": str(found.pk), "rows": ready},
    )
    is_joined = found.form == Batch.Form.JOINED
    content = joined(documents(found)) if is_joined else zipped(found)
    answer = StreamingHttpResponse(
        content, content_type="application/pdf" if is_joined else "application/zip"
    )
    name = f"summaries-{timezone.localtime(found.created_at):%Y-%m-%d-%H%M}.{'pdf' if is_joined else 'zip'}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["Cache-Control"] = "no-store"
    return answer
