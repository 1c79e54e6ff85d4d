"""Pages of batches of summaries: start, progress, download."""

from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q
from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.view_log import log_list
from portal.borrowers.list_page import BORROWERS
from portal.documents.batches import MAX_BORROWERS, MAX_JOINED_BORROWERS, start_batch, zip_documents
from portal.documents.models import Batch, Item
from portal.documents.options import CHOICES, FIELDS, Mode, Options
from portal.documents.pdf import MAX_JOINED_PAGES
from portal.documents.tasks import create_batch, create_joined_batch
from portal.gateway.client import StaffRequest
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
    is_joinable = found.total <= MAX_JOINED_BORROWERS
    if request.method == "POST" and found.total:
        is_joined = is_joinable and request.POST.get("form") == Batch.Form.JOINED
        options = {
            name: [masked_text(one[:MAX_OPTION_CHARACTERS]) for one in request.POST.getlist(name)]
            for name in FIELDS
        }
        batch = start_batch(
            create_joined_batch if is_joined else create_batch,
            Actor.of(request),
            found,
            form=Batch.Form.JOINED if is_joined else Batch.Form.ZIP,
            options=urlencode(options, doseq=True),
            zone=timezone.get_current_timezone_name(),
        )
        return finish_action(request, batch.get_absolute_url())
    context = {
        "listing": found,
        "first": f"{MAX_BORROWERS:,}" if found.total > MAX_BORROWERS else "",
        "choices": CHOICES,
        "options": Options.of(QueryDict(), mode=Mode.BORROWER),
        "forms": Batch.Form.choices if is_joinable else [],
        "max_joined": {"borrowers": MAX_JOINED_BORROWERS, "pages": MAX_JOINED_PAGES},
        "recent": Batch.objects.select_related("job").defer("document")[:RECENT_BATCHES],
    }
    return render_page(request, "documents/batch_new.html", context)


@require_safe
@requires("summaries.batch")
def batch(request: StaffRequest, batch_id: UUID) -> HttpResponse:
    """Show the progress of a batch, its failures, and its file once it is ready."""
    batches = Batch.objects.annotate(has_document=Q(document__isnull=False)).select_related("job")
    found = get_object_or_404(batches.defer("document"), pk=batch_id)
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
    name = f"summaries-{timezone.localtime(found.created_at):%Y-%m-%d-%H%M}"
    if found.document:
        file, headers = bytes(found.document), file_headers(f"{name}.pdf")
        return HttpResponse(file, content_type="application/pdf", headers=headers)
    headers = file_headers(f"{name}.zip")
    return StreamingHttpResponse(zip_documents(found), content_type="application/zip", headers=headers)
