"""How the connection to the lending service is doing, and the platform's health check."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse

from portal.accounts.roles import requires
from portal.audit.health import health
from portal.audit.models import RemoteCall
from portal.gateway import StaffRequest
from portal.ui.htmx import render_page

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


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; no data."""
    return HttpResponse("ok\n", content_type="text/plain")
