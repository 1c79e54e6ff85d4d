"""Lines of credit that this dashboard knows, across borrowers."""

from django.http import HttpRequest, HttpResponse

from portal.accounts.roles import requires
from portal.registry.lists import known, listing, with_borrowers
from portal.registry.models import Kind
from portal.ui.htmx import render_page

SORTS = {"created": "-created_at", "limit": "amount", "past_due": "past_due", "due": "due_date"}
ORDERS = {"created": "Newest", "limit": "Limit", "past_due": "Past due", "due": "Payment due"}


@requires("credit_lines.index")
def index(request: HttpRequest) -> HttpResponse:
    """The list with search, filters and paging, from the registry."""
    found = listing(known(Kind.LINE), request.GET, sorts=SORTS, filters=[])
    context = {"listing": found, "rows": with_borrowers(found.page), "orders": ORDERS}
    return render_page(request, "credit_lines/index.html", context, partial="line-rows")
