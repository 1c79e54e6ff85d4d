"""The list of borrowers, on screen and as a file."""

from django.http import HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.roles import requires
from portal.borrowers.list_page import BORROWERS
from portal.gateway import StaffRequest


@require_http_methods(["GET", "HEAD", "POST"])
@requires("borrowers.index")
def index(request: StaffRequest) -> HttpResponse:
    """The list; a POST saves which columns to show."""
    return BORROWERS.index(request)


@require_safe
@requires("borrowers.index")
def export(request: StaffRequest) -> StreamingHttpResponse:
    """The list as a file, in the chosen columns."""
    return BORROWERS.export(request)
