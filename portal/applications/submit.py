"""Submits loan applications, each sent once, and opens line applications that the service already has.

Hides how a repeated, rejected, blocked or lost request leads back to the form.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django_htmx.http import reswap, retarget, trigger_client_event

import servicing
from portal.accounts.roles import requires
from portal.applications import services
from portal.applications.amounts import in_words
from portal.applications.forms import ConfirmForm, OpenForm, SubmitForm
from portal.audit.chain import entry_subject
from portal.audit.models import Actor, WriteIntent
from portal.audit.view_log import log_page
from portal.audit.writes import AlreadySubmitted, Blocked, Write
from portal.gateway.client import StaffRequest, client_for_write
from portal.records import store
from portal.records.models import LISTED, Application, Borrower
from portal.ui import wording
from portal.ui.htmx import finish_action, render_page, toast
from servicing import InvalidInput, NotFound, NotSent, Rejected

PAGE = "applications/submit.html"
MAX_LATEST = 10
LatestApplications = Sequence[tuple[Application, servicing.Application | None]]


@requires("applications.submit")
def submit(request: StaffRequest, borrower_uuid: str) -> HttpResponse:
    """Show the form, ask to confirm the amount, then send the application."""
    borrower = get_object_or_404(Borrower, uuid=borrower_uuid)
    if request.method != "POST":
        return show_form(request, borrower, SubmitForm(initial={"amount": request.GET.get("amount")}))
    is_confirmed = "confirmed" in request.POST
    form = ConfirmForm(request.POST) if is_confirmed else SubmitForm(request.POST)
    if not form.is_valid():
        return show_form_again(request, borrower, status=422)
    return send(request, borrower, form) if is_confirmed else show_confirmation(request, borrower, form)


# --- Pages ---


def show_form(
    request: StaffRequest, borrower: Borrower, form: SubmitForm, *, status: int = 200
) -> HttpResponse:
    """The form beside the borrower's latest applications. It replaces a rejected dialog."""
    log_page(request, **entry_subject(borrower))
    context = form_context(borrower, form)
    if request.htmx.target != "dialog":
        return render_page(request, PAGE, context, partial="amount-words", status=status)
    response = render_page(request, f"{PAGE}#application-form", context, status=status)
    reswap(retarget(response, "#application-form"), "outerHTML")
    return trigger_client_event(response, "dialog:close")


def form_context(borrower: Borrower, form: SubmitForm) -> dict[str, Any]:
    return {
        "borrower": borrower,
        "form": form,
        "words": amount_in_words(form["amount"].value()),
        "earlier": latest_applications(borrower),
        "open_writes": WriteIntent.objects.filter(
            borrower_uuid=borrower.uuid, operation="applications.submit", state__in=WriteIntent.OPEN
        ),
    }


def show_form_again(
    request: StaffRequest, borrower: Borrower, *reasons: str, quotes: Sequence[str] = (), status: int
) -> HttpResponse:
    """The form with what was typed and what is wrong: our reasons, or the service's words."""
    form = SubmitForm({"amount": request.POST.get("amount"), "submit_id": str(uuid4())})
    form.full_clean()
    for reason in reasons:
        form.add_error(None, reason)
    if quotes:
        form.add_rejection(*quotes)
        form.nothing_happened = "No application was opened."
    return show_form(request, borrower, form, status=status)


def breadcrumbs(borrower: Borrower) -> list[tuple[str, str]]:
    """The breadcrumbs of a page below the borrower's."""
    return [("Borrowers", reverse("borrowers:index")), (str(borrower), borrower.get_absolute_url())]


def show_confirmation(request: StaffRequest, borrower: Borrower, form: SubmitForm) -> HttpResponse:
    """Ask whether to send it, in a dialog or, without JavaScript, on a page of its own."""
    amount: Decimal = form.cleaned_data["amount"]
    log_page(request, **entry_subject(borrower))
    dollars, address = wording.money(amount), reverse("applications:submit", args=[borrower.uuid])
    context = {
        "crumbs": breadcrumbs(borrower),
        "crumb": "New application",
        "title": f"Send an application for {dollars}?",
        "text": f"{in_words(amount).capitalize()}, for {wording.with_full_stop(borrower)} This can’t be undone.",
        "note": describe_possible_repeat(latest_applications(borrower), amount),
        "action": address,
        "act": f"Send application for {dollars}",
        "busy": "Sending…",
        "safe": "Don’t send",
        "back": f"{address}?amount={amount}",
        "form": ConfirmForm(initial={"amount": amount, "submit_id": form.cleaned_data["submit_id"]}),
    }
    response = render_page(request, "ui/question.html", context, partial="dialog")
    if request.htmx.target == "dialog":  # The form behind it loses the errors of an earlier attempt.
        behind = form_context(borrower, form) | {"is_swapped": True}
        response.write(render_to_string(f"{PAGE}#application-form", behind, request))
    return response


def latest_applications(borrower: Borrower) -> LatestApplications:
    """The borrower's latest applications, so that nobody repeats one by mistake."""
    found = Application.objects.filter(LISTED, borrower_uuid=borrower.uuid).select_related("answer")
    return [
        (record, store.last_answer(record, servicing.Application))
        for record in found.order_by("-created_at", "-id")[:MAX_LATEST]
    ]


def describe_possible_repeat(before: LatestApplications, amount: Decimal) -> str:
    """Describe the application that this one may repeat: one for the same amount, else the latest one."""
    equal = [pair for pair in before if pair[0].amount == amount]
    for record, application in equal or before[:1]:
        opening = "An application for the same amount" if equal else "The last application"
        decision = wording.status_word(record.decision).lower() if record.decision else "decision not known"
        return f"{opening}: {wording.money(record.amount) or '—'}, {creation_day(record, application)}, {decision}."
    return "No earlier applications on file."


def creation_day(record: Application, application: servicing.Application | None) -> str:
    """The day the service created it; if unknown, the day it was added here."""
    created = application.created_at if application else None
    if created and not created.at:
        return created.text
    return wording.day(timezone.localdate(created.at if created else record.created_at)) or ""


def amount_in_words(typed: Any) -> str:
    """A typed amount in words, or what is wrong with it; empty if nothing was typed."""
    form = SubmitForm({"amount": typed})
    form.full_clean()
    if amount := form.cleaned_data.get("amount"):
        return in_words(amount).capitalize()
    return " ".join(map(str, form.errors.get("amount", []))) if typed else ""


# --- Sending ---


def send(request: StaffRequest, borrower: Borrower, form: SubmitForm) -> HttpResponse:
    """Send the request once. Failures that the form can't fix go to the error pages."""
    amount: Decimal = form.cleaned_data["amount"].quantize(Decimal("0.01"))
    dollars = wording.money(amount) or ""
    write = Write(
        submit_id=str(form.cleaned_data["submit_id"]),
        label=f"Application for {dollars} of {borrower}",
        borrower_uuid=borrower.uuid,
        identity={"amount": dollars},
    )
    try:
        application = client_for_write(request, write).applications.submit(borrower.uuid, amount=amount)
    except AlreadySubmitted as error:
        return follow_sent_form(request, borrower, error.intent)
    except Blocked:
        reason = "The same application was already sent; its outcome is unknown."
        return show_form_again(request, borrower, reason, status=409)
    except NotSent as error:
        return show_form_again(request, borrower, error.message, status=503)
    except InvalidInput as error:
        return show_form_again(request, borrower, error.message, status=422)
    except Rejected as error:
        return show_form_again(request, borrower, quotes=error.reasons or (error.message,), status=422)
    intent = WriteIntent.objects.get(submit_id=write.submit_id)
    toast(request, f"{write.label}: {describe_outcome(application)}", url=intent.get_absolute_url())
    return finish_action(request, reverse("applications:detail", args=[borrower.uuid, application.uuid]))


def follow_sent_form(request: StaffRequest, borrower: Borrower, intent: WriteIntent) -> HttpResponse:
    """Follow a form that was already sent to its application; back to the form if that had no effect."""
    application = store.find(intent.subject_kind, intent.subject_uuid)
    if intent.state == WriteIntent.State.CONFIRMED and application:
        messages.info(request, f"{intent.label} was already sent. Nothing was sent twice.")
        return finish_action(request, application.get_absolute_url())
    if intent.state in WriteIntent.WITHOUT_EFFECT:
        reason = "Already submitted; it didn’t go through. Check the amount and send again."
        return show_form_again(request, borrower, reason, status=409)
    messages.warning(request, f"{intent.label} was already sent. Nothing was sent twice.")
    return finish_action(request, intent.get_absolute_url())


def describe_outcome(application: servicing.Application) -> str:
    """The decision and the number of offers."""
    decision = application.status.decision if application.status else None
    offers = len(application.offers)
    words = wording.status_word(decision).lower() if decision else "no decision"
    return f"{words}, {offers or 'no'} offer{'' if offers == 1 else 's'}"


# --- An application for a line ---


@requires("applications.open")
def open_existing(request: StaffRequest, borrower_uuid: str) -> HttpResponse:
    """Open a line application by its ID. The service's answer puts it on file."""
    borrower = get_object_or_404(Borrower, uuid=borrower_uuid)
    typed = request.POST if request.method == "POST" else None
    form = OpenForm(typed, initial={"uuid": request.GET.get("uuid")})
    if form.is_valid():
        try:
            found = request.servicing.applications.get_for_line(borrower.uuid, form.cleaned_data["uuid"])
        except NotFound as error:
            form.add_error("uuid", f"{borrower} has no line application with this ID.")
            form.add_rejection(*(error.reasons or (error.message,)))
        else:
            record = Application.objects.get(uuid=found.uuid)
            services.append_entry(Actor.of(request), "applications.open", record)
            toast(request, "Application opened.")
            return finish_action(request, record.get_absolute_url())
    log_page(request, **entry_subject(borrower))
    context = {
        "crumbs": breadcrumbs(borrower),
        "crumb": "Open a line application",
        "title": "Open a line application",
        "text": f"{wording.with_full_stop(borrower)} The service can’t list applications, so open one by ID.",
        "note": "Loan applications can’t be opened; their response is saved when they’re sent from here.",
        "action": request.path,
        "act": "Open",
        "safe": "Cancel",
        "back": borrower.get_absolute_url(),
        "form": form,
    }
    status = 422 if form.is_bound else 200
    return render_page(request, "ui/question.html", context, partial="dialog", status=status)
