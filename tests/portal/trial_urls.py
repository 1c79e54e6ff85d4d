"""The portal's URLs plus views for tests, which leave all errors to the gateway."""

from datetime import date
from decimal import Decimal

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils import timezone

from portal.accounts.roles import requires
from portal.audit.writes import Write
from portal.gateway.client import StaffRequest, client_for_write
from portal.urls import handler400, handler403, handler404, handler500
from portal.urls import urlpatterns as portal_urls

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]


@requires("borrowers.create")
def submit_application(request: StaffRequest) -> HttpResponse:
    """Submit an application; with ``once``, reject an identical one while its outcome is open."""
    typed = request.POST
    write = Write(
        submit_id=typed["submit_id"],
        label="Application of Harbor Street Bakery LLC",
        reason="asked by phone",
        borrower_uuid=typed["borrower"],
        identity={"amount": typed["amount"]} if "once" in typed else {},
    )
    service_client = client_for_write(request, write)
    return HttpResponse(
        service_client.applications.submit(typed["borrower"], amount=Decimal(typed["amount"])).uuid
    )


@requires("borrowers.create")
def submit_in_transaction(request: StaffRequest) -> HttpResponse:
    with transaction.atomic():
        return submit_application(request)


@requires("borrowers.create")
def submit_without_form(request: StaffRequest) -> HttpResponse:
    application = request.servicing.applications.submit(request.POST["borrower"], amount=Decimal(1200))
    request.servicing.loans.get(request.POST["borrower"], request.POST["loan"])
    return HttpResponse(application.uuid)


@requires("borrowers.create")
def give_ssn(request: StaffRequest) -> HttpResponse:
    """Send an SSN, which must not be stored, and raise an error before or after it on request."""
    typed = request.POST
    if "before" in typed:
        raise LookupError(f"no person has the SSN {typed['ssn']}")
    service_client = client_for_write(
        request, Write(submit_id=typed["submit_id"], label="SSN of Maya Lindqvist")
    )
    service_client.borrowers.update_key_person(
        typed["borrower"], typed["person"], ssn=typed["ssn"], dob=date(1987, 4, 19)
    )
    if "after" in typed:
        raise LookupError(f"the SSN {typed['ssn']} was sent")
    return HttpResponse("sent")


@requires("loans.index")
def read_loan(request: StaffRequest, borrower: str, loan: str) -> HttpResponse:
    return HttpResponse(request.servicing.loans.get(borrower, loan).uuid)


@requires("loans.index")
def show_time_zone(request: HttpRequest) -> HttpResponse:
    return HttpResponse(timezone.get_current_timezone_name())


@requires("loans.index")
def raise_error(request: HttpRequest) -> HttpResponse:
    raise LookupError("a defect of ours")


urlpatterns = [
    path("trial/submit/", submit_application),
    path("trial/submit-in-a-transaction/", submit_in_transaction),
    path("trial/submit-without-a-form/", submit_without_form),
    path("trial/give-ssn/", give_ssn),
    path("trial/read/<borrower>/<loan>/", read_loan),
    path("trial/zone/", show_time_zone),
    path("trial/breaks/", raise_error),
    *portal_urls,
]
