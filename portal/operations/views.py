"""The status page, background jobs, and the platform's health checks."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from portal.accounts import outbox
from portal.accounts.roles import RoleMissing, reason_not_to_cancel, requires
from portal.audit.chain import append
from portal.audit.integrity import last_check
from portal.audit.models import Actor, Entry
from portal.audit.service_health import current_outage, measure_health, with_durations
from portal.audit.view_log import log_list
from portal.gateway.client import StaffRequest
from portal.jobs.models import Job
from portal.jobs.status import jobs_status, scheduled_jobs
from portal.operations import bundle, calls, readiness
from portal.operations.metrics import registry
from portal.ui.exports import file_headers
from portal.ui.htmx import finish_action, render_page
from portal.ui.logo import icon_url, logo
from servicing import __version__


@requires("operations.status")
def status(request: StaffRequest) -> HttpResponse:
    """Service health, failures, calls, background work, and the deployment's settings."""
    groups = with_durations(measure_health())
    context: dict[str, Any] = {
        "groups": groups,
        "has_failures": any(group.last_failure for group in groups),
        "outage": current_outage(),
        "mail_problems": list(outbox.problems()),
        "failures": calls.failures(),
        "calls": calls.find_calls(request.GET),
        "patterns": calls.operation_paths(),
        "choices": {"methods": calls.METHODS, "statuses": calls.STATUSES, "outcomes": calls.OUTCOMES},
        "work": jobs_status(),
        "repeated": scheduled_jobs(),
        "chain": {"last": Entry.objects.first(), "checked": last_check()},
        # Names of settings mean something only to administrators.
        "configuration": readiness.configuration() if request.can("accounts.staff") else (),
        "may_read_audit": request.can("audit.index"),
        "version": __version__,
    }
    if not request.htmx or request.htmx.target == "call-rows":
        log_list(request, count=len(context["calls"]["rows"]))
    return render_page(request, "operations/status.html", context, partial=("groups", "work", "call-rows"))


@requires("operations.support_bundle")
def support_bundle(request: StaffRequest) -> HttpResponse:
    """Download the support bundle as text."""
    append(Actor.of(request), "operations.support_bundle", subject_label="a support bundle")
    headers = file_headers(f"support-{timezone.now():%Y%m%d-%H%M%S}.txt")
    return HttpResponse(join_lines(bundle.lines()), content_type="text/plain; charset=utf-8", headers=headers)


def join_lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@requires("operations.job")
def job(request: StaffRequest, job_id: UUID) -> HttpResponse:
    """Show the progress or the result of a background job."""
    return job_page(request, get_object_or_404(Job, pk=job_id))


@require_POST
@requires("operations.cancel")
def cancel(request: StaffRequest, job_id: UUID) -> HttpResponse:
    """Cancel a job, one's own or by role anyone's: at once if it is waiting, at its next step if it is running."""
    found = get_object_or_404(Job, pk=job_id)
    if reason := reason_not_to_cancel(request.user, found.actor_id):
        raise RoleMissing("operations.cancel", reason)
    if found.cancel():
        append(Actor.of(request), "operations.cancel", subject_label=found.label)
    found.refresh_from_db()
    return job_page(request, found) if request.htmx else finish_action(request, found.get_absolute_url())


def job_page(request: StaffRequest, job: Job) -> HttpResponse:
    """The page of a job or its panel. Once it has ended, an event refreshes the parts of the page that wait for it."""
    template = "ui/panels.html#job" if request.htmx else "operations/job.html"
    response = render_page(request, template, {"job": job})
    if request.htmx and not job.is_open:
        trigger_client_event(response, "job:ended")
    return response


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """Report that the process answers; no data, and no version for strangers."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
def readyz(request: HttpRequest) -> HttpResponse:
    """Report whether this process may receive requests: its database answers and is migrated. No data.

    A missing worker is reported too, but doesn't take a web process out of service.
    """
    is_ready, lines = readiness.readiness()
    return HttpResponse(join_lines(lines), status=200 if is_ready else 503, content_type="text/plain")


@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics page for monitoring with the token; not found if no token is configured."""
    if not settings.METRICS_TOKEN:
        raise Http404
    given = request.headers.get("Authorization", "")
    if not constant_time_compare(given, f"Bearer {settings.METRICS_TOKEN}"):
        words, headers = "Send METRICS_TOKEN as a bearer token.\n", {"WWW-Authenticate": "Bearer"}
        return HttpResponse(words, status=401, content_type="text/plain", headers=headers)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


@login_not_required
@require_safe
def logo_file(request: HttpRequest) -> HttpResponse:
    """The organization's logo. The policy keeps an SVG that is opened directly from running or loading anything."""
    found = logo()
    if not found:
        raise Http404
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    return HttpResponse(found.content, content_type=found.media_type, headers=headers)


@login_not_required
def favicon(request: HttpRequest) -> HttpResponse:
    """The icon that browsers request beside documents that name none, such as a PDF."""
    return redirect(icon_url())
