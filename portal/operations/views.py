"""How the connection to the lending service is doing, and the platform's health check."""

from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.health import health
from portal.audit.models import Actor, RemoteCall
from portal.gateway import StaffRequest
from portal.jobs.models import Job
from portal.ui.htmx import done, render_page

CONFIGURATION = [
    "SERVICING_URL",
    "SERVICING_CLIENT_ID",
    "SERVICING_SECRET",
    "SERVICING_TOKEN",
    "SERVICING_FIELD_KEY",
]


@requires("operations.status")
def status(request: StaffRequest) -> HttpResponse:
    """Each group of calls, the latest calls, and which settings are set."""
    context = {
        "groups": health(),
        "calls": RemoteCall.objects.all()[:50],
        "configuration": [(name, bool(getattr(settings, name))) for name in CONFIGURATION],
        "auth": settings.SERVICING_AUTH,
    }
    return render_page(request, "operations/status.html", context)


@requires("operations.job")
def job(request: StaffRequest, job_id: UUID) -> HttpResponse:
    """One piece of background work: how far it is, or how it ended."""
    return job_page(request, get_object_or_404(Job, pk=job_id))


@require_POST
@requires("operations.cancel")
def cancel(request: StaffRequest, job_id: UUID) -> HttpResponse:
    """Take a job back: at once if it waits, at its next step if it runs."""
    found = get_object_or_404(Job, pk=job_id)
    if found.cancel():
        append(Actor.of(request), "operations.cancel", subject_label=found.label)
    found.refresh_from_db()
    return (
        job_page(request, found) if request.htmx else done(request, reverse("operations:job", args=[job_id]))
    )


def job_page(request: StaffRequest, job: Job) -> HttpResponse:
    """The page of a job, or the region that shows it; whatever waits for its end is told of it."""
    context = {"job": job, "may_cancel": request.can("operations.cancel")}
    response = render_page(request, "ui/_job.html" if request.htmx else "operations/job.html", context)
    if request.htmx and not job.is_open:
        response["HX-Trigger"] = "job:ended"
    return response


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; no data."""
    return HttpResponse("ok\n", content_type="text/plain")
