"""Repayments that this dashboard knows, across borrowers."""

from django.http import HttpRequest, HttpResponse

from portal.accounts.roles import requires
from portal.registry.lists import known, listing, with_borrowers
from portal.registry.models import Kind
from portal.ui.htmx import render_page

SORTS = {"effective": "-due_date", "amount": "amount", "status": "status"}
ORDERS = {"effective": "Effective date", "amount": "Amount", "status": "Status"}


@requires("repayments.index")
def index(request: HttpRequest) -> HttpResponse:
    """The list with search, filters and paging, from the registry."""
    found = listing(known(Kind.REPAYMENT), request.GET, sorts=SORTS, filters=["product", "status"])
    context = {"listing": found, "rows": with_borrowers(found.page), "orders": ORDERS}
    return render_page(request, "repayments/index.html", context, partial="repayment-rows")
