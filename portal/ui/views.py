"""The component page: every piece of the interface in all its states, in both themes."""

from datetime import date
from decimal import Decimal

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse

from portal.ui.htmx import render_page


@login_not_required
def components(request: HttpRequest) -> HttpResponse:
    return render_page(
        request, "ui/components.html", {"day": date(2026, 11, 24), "amount": Decimal("-1234.5")}
    )
