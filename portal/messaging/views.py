"""Webhook messages, read from the lending service with the filters it offers."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404

from portal.accounts.roles import requires
from portal.gateway import StaffRequest
from portal.messaging.forms import SIZES, FilterForm
from portal.messaging.models import Message
from portal.ui.htmx import render_page
from servicing import Message as Told
from servicing import Repayment, ServicingError, codec


@requires("messaging.index")
def index(request: StaffRequest) -> HttpResponse:
    """The newest messages; a service that does not answer is said, not shown as an empty list."""
    form = FilterForm(request.GET)
    context: dict[str, object] = {"form": form, "page": None, "failure": None}
    if not form.is_valid():
        return render_page(request, "messaging/index.html", context, partial="message-rows", status=422)
    wanted = form.cleaned_data
    try:
        page = request.servicing.messages.list(
            start_date=wanted["start_date"],
            end_date=wanted["end_date"],
            event=wanted["event"] or None,
            limit=wanted["limit"] or SIZES[0][0],
        )
        context |= {"page": page, "rows": [(message, repayment_in(message)) for message in page]}
    except ServicingError as error:
        context["failure"] = error
    return render_page(request, "messaging/index.html", context, partial="message-rows")


@requires("messaging.index")
def detail(request: StaffRequest, message_uuid: str) -> HttpResponse:
    """One message from the local copy."""
    message = get_object_or_404(Message, uuid=message_uuid)
    context = {"message": message, "raw": codec.parse(message.body)}
    return render_page(request, "messaging/detail.html", context)


def repayment_in(message: Told) -> Repayment | None:
    """The repayment that a payment event carries; other payloads carry none."""
    try:
        return codec.read(Repayment, message.payload)
    except ServicingError:
        return None
