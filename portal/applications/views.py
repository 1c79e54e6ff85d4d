"""The list of applications, on screen and as a file."""

from django.http import HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_safe

from portal.accounts.roles import requires
from portal.applications.list_page import APPLICATIONS
from portal.gateway import StaffRequest


@require_safe
@requires("applications.index")
def index(request: StaffRequest) -> HttpResponse:
    """The list."""
    return APPLICATIONS.index(request)


@require_safe
@requires("applications.index")
def export(request: StaffRequest) -> StreamingHttpResponse:
    """The list as a file."""
    return APPLICATIONS.export(request)
