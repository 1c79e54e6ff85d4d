"""The list of known borrowers, and one borrower's page."""

from django.http import HttpResponse

from portal.accounts.roles import requires
from portal.gateway import StaffRequest
from portal.registry.lists import known, listing, positions
from portal.registry.models import Kind
from portal.ui.htmx import render_page
from servicing import rules

SORTS = {"activity": "-updated_at", "name": "label", "created": "-created_at", "city": "city"}
ORDERS = {"activity": "Last activity", "name": "Name", "created": "Newest", "city": "City"}
FILTERS = ["entity", "state", "product"]


@requires("borrowers.index")
def index(request: StaffRequest) -> HttpResponse:
    """Borrowers known to this dashboard, with what each one has."""
    found = listing(known(Kind.BORROWER), request.GET, sorts=SORTS, filters=FILTERS)
    has = positions([row.uuid for row in found.page])
    context = {
        "listing": found,
        "rows": [(row, has[row.uuid]) for row in found.page],
        "entities": rules.ENTITIES,
        "states": rules.US_STATES,
        "sorts": ORDERS,
    }
    return render_page(request, "borrowers/index.html", context, partial="borrower-rows")
