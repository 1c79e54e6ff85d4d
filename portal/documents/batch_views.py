"""Pages of batches of summaries: start, progress, download."""

from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.view_log import log_list
from portal.borrowers.list_page import BORROWERS
from portal.documents.batches import MAX_BORROWERS, finished_items, start_batch, zip_documents
from portal.documents.merge import merge_pdfs
from portal.documents.models import Batch, Item
from portal.documents.options import CHOICES, FIELDS, Mode, Options
from portal.documents.tasks import create_batch
from portal.documents.views import Busy, one_at_a_time
from portal.gateway import StaffRequest
from portal.ui.exports import file_headers
from portal.ui.htmx import finish_action, render_page
from servicing.masking import masked_text

MAX_FAILURES_SHOWN = 200
RECENT_BATCHES = 20
MAX_OPTION_CHARACTERS = 100


@require_http_methods(["GET", "HEAD", "POST"])
@requires("summaries.batch")
def create(request: StaffRequest) -> HttpResponse:
    """Start a batch of all borrowers that match the filters in the address."""
    found = BORROWERS.find(request.GET)
    if request.method == "POST" and found.total:
        form = request.POST.get("form", "")
        options = {
            name: [masked_text(one[:MAX_OPTION_CHARACTERS]) for one in request.POST.getlist(name)]
            for name in FIELDS
        }
        try:
            with one_at_a_time(request.user.pk, Batch):
                batch = start_batch(
                    create_batch,
                    Actor.of(request),
                    found,
                    form=form if form in Batch.Form.values else Batch.Form.ZIP,
                    options=urlencode(options, doseq=True),
                    zone=timezone.get_current_timezone_name(),
                )
        except Busy as busy:
            return busy.page(request)
        return finish_action(request, batch.get_absolute_url())
    context = {
        "listing": found,
        "first": f"{MAX_BORROWERS:,}" if found.total > MAX_BORROWERS or found.has_more else "",
        "choices": CHOICES,
        "options": Options.of(QueryDict(), mode=Mode.BORROWER),
        "forms": Batch.Form.choices,
        "recent": Batch.objects.select_related("job")[:RECENT_BATCHES],
    }
    return render_page(request, "documents/batch_new.html", context)


@require_safe
@requires("summaries.batch")
def batch(request: StaffRequest, batch_id: UUID) -> HttpResponse:
    """Show the progress of a batch, its failures, and its file once it is ready."""
    found = get_object_or_404(Batch.objects.select_related("job"), pk=batch_id)
    failed = found.items.filter(state=Item.State.FAILED).defer("document")
    failures = failed.count()
    log_list(request, count=failures)
    context = {
        "batch": found,
        "job": found.job,
        "total": found.items.count(),
        "ready": found.items.filter(state=Item.State.DONE).count(),
        "failed": failed[:MAX_FAILURES_SHOWN],
        "failed_number": failures,
    }
    return render_page(request, "documents/batch.html", context, partial="batch")


@require_safe
@requires("summaries.batch")
def download(request: StaffRequest, batch_id: UUID) -> HttpResponseBase:
    """Download the finished documents of a batch as one file."""
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
    if found.form == Batch.Form.JOINED:
        documents = ((item.label, bytes(item.document or b"")) for item in finished_items(found))
        content, suffix = merge_pdfs(documents), "pdf"
    else:
        content, suffix = zip_documents(found), "zip"
    headers = file_headers(f"summaries-{timezone.localtime(found.created_at):%Y-%m-%d-%H%M}.{suffix}")
    return StreamingHttpResponse(content, content_type=f"application/{suffix}", headers=headers)
