"""One application's page: the decision, the offers side by side, and what colleagues think of them.

An application for a line is read again by the page's panel. One for a loan cannot be: what is shown is the one answer
that the service gave when it was sent.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.roles import reason_for, requires
from portal.applications import services
from portal.applications.details import Details, as_text, details
from portal.applications.forms import PreferForm
from portal.applications.models import Preference
from portal.applications.offers import Column, View, compare, every_line, told
from portal.audit.models import Actor
from portal.audit.sightings import last_look, log_record, saw, shows
from portal.gateway import StaffRequest
from portal.notes.models import Note
from portal.readings import Freshness, Reading, show
from portal.registry import changes, memory
from portal.registry.models import Kind, Record
from portal.ui import wording
from portal.ui.exports import list_file
from portal.ui.htmx import done, render_page, toast
from servicing import Application, sense
from servicing.values import exact, same_word

PANELS = ("application", "offers")
MAX_UUID = 64
MAX_ISSUES = 10
CONSENT = {True: "Given", False: "Not given", None: None}


@dataclass(frozen=True)
class Head:
    """What stands above an offer: what does not add up in it, whether colleagues prefer it, what it has become."""

    column: Column
    checks: Sequence[sense.Rule]
    is_named: bool
    """Whether its identifier is one that nothing else here has."""
    is_preferred: bool
    account: Record | None


@require_safe
@requires("applications.detail")
def detail(request: StaffRequest, borrower_uuid: str, application_uuid: str) -> HttpResponse:
    """The page, or one of its parts."""
    record = known_application(borrower_uuid, application_uuid)
    is_readable = not same_word(record.product, "LOAN")
    readings = show(request, {"application": [record]} if is_readable else {})
    reading = readings["application"][0] if is_readable else Reading(record)
    actor, shown = Actor.of(request), changes.digest(reading.record)
    look = last_look(actor, record.uuid)
    context = {
        "record": reading.record,
        "owner": memory.find(Kind.BORROWER, borrower_uuid),
        "fresh": Freshness([reading]) if is_readable else None,
        "look": look,
        "changes": changes.since(reading.record, look.shown) if look else [],
        "notes": Note.objects.filter(subject_kind=record.kind, subject_uuid=record.uuid)[:20],
        "may_note": request.can("notes.add"),
        "why_no_note": reason_for("notes.add"),
        "follow_why_not": "" if request.can("applications.open") else reason_for("applications.open"),
        "prefer_why_not": "" if request.can("applications.prefer") else reason_for("applications.prefer"),
    }
    if isinstance(reading.answer, Application):
        context |= answer_context(request, record, reading.answer)
    saw(
        actor,
        "applications.detail",
        kind=record.kind,
        uuid=record.uuid,
        label=services.name_of(record),
        borrower_uuid=record.borrower_uuid,
        shown=shown,
        is_repeat=bool(request.htmx),
    )
    if request.htmx.target == "application":
        shows(actor, record.uuid, shown)
    return render_page(request, "applications/detail.html", context, partial=PANELS)


def known_application(borrower_uuid: str, application_uuid: str) -> Record:
    """The application, if it is known and this borrower's."""
    return get_object_or_404(
        Record, kind=Kind.APPLICATION, uuid=application_uuid, borrower_uuid=borrower_uuid
    )


# --- What the service answered ---


def answer_context(request: StaffRequest, record: Record, application: Application) -> dict[str, Any]:
    """Facts, offers, and on demand the object as it came."""
    comparison = compare(application, View.of(request.GET))
    preference = Preference.objects.filter(application_uuid=record.uuid).first()
    preferred = preference.offer_uuid if preference else ""
    heads = heads_of(comparison.columns, application, preferred)
    return {
        "application": application,
        "checks": sense.of_application(application),
        "facts": facts(application),
        "further": further(application),
        "decision_details": decision_details(application),
        "issues": application.issues[:MAX_ISSUES],
        "comparison": comparison,
        "heads": heads,
        "has_checks": any(each.checks for each in heads),
        "cards": list(zip(heads, comparison.cards, strict=True)),
        "preference": preference,
        "preferred": next((c for c in comparison.everyone if c.offer.uuid == preferred), None),
        "is_raw_shown": "raw" in request.GET,
    }


def heads_of(columns: Sequence[Column], application: Application, preferred: str) -> list[Head]:
    """What stands above each shown offer."""
    named = names(application)
    shown = {column.offer.uuid for column in columns} & named
    accounts = Record.objects.filter(kind__in=[Kind.LOAN, Kind.LINE], uuid__in=shown)
    account_of = {account.uuid: account for account in accounts}
    return [
        Head(
            column=column,
            checks=sense.of_offer(column.offer, application),
            is_named=column.offer.uuid in named,
            is_preferred=column.offer.uuid in named and column.offer.uuid == preferred,
            account=account_of.get(column.offer.uuid),
        )
        for column in columns
    ]


def names(application: Application) -> set[str]:
    """The identifiers by which an offer can be spoken of: those that one offer has, and no other."""
    counts = Counter(offer.uuid for offer in application.offers)
    return {uuid for uuid, count in counts.items() if count == 1 and 0 < len(uuid) <= MAX_UUID}


def facts(application: Application) -> list[tuple[str, str | None]]:
    """What was applied for; what could not be read is shown as it came."""
    requested = exact(told(application, "amount"))
    consent = application.credit_score_consent
    return [
        ("Product", wording.human(application.product)),
        ("Requested", wording.money(requested) or as_text(told(application, "amount"))),
        ("Term requested", as_text(told(application, "term"))),
        ("Credit-score consent", CONSENT.get(consent) or as_text(told(application, "credit_score_consent"))),
        ("Credit report", as_text(told(application, "credit_report_id"))),
    ]


def further(application: Application) -> list[tuple[str, Details | None]]:
    """Texts of any shape, and fields that the interface does not describe, under the names they came with."""
    return [
        ("Purpose", details(application.purpose)),
        ("Application details", details(application.details)),
        ("Decision details", decision_details(application)),
        *((name, details(value)) for name, value in application.extra.items()),
    ]


def decision_details(application: Application) -> Details | None:
    """What the service said about its decision."""
    return details(application.status.details) if application.status else None


# --- Acts on offers ---


@requires("applications.prefer")
def prefer(request: StaffRequest, borrower_uuid: str, application_uuid: str) -> HttpResponse:
    """Which offer colleagues would take, and why; or none any more. A note of this desk, sent to nobody."""
    record = known_application(borrower_uuid, application_uuid)
    application = memory.last(record, Application)
    if application is None:
        raise Http404
    typed = request.POST if request.method == "POST" else None
    offer_uuid = (request.GET if typed is None else typed).get("offer", "")
    form = PreferForm(typed, offers=names(application), initial={"offer": offer_uuid})
    address = record.get_absolute_url()
    if form.is_valid():
        services.prefer(Actor.of(request), record, offer_uuid=offer_uuid, reason=form.cleaned_data["reason"])
        toast(request, "The preferred offer was noted." if offer_uuid else "No offer is preferred any more.")
        return done(request, address, event="application:preferred")
    log_record(request, record)
    context = {
        "record": record,
        "crumb": "Preferred offer",
        "title": f"Mark offer {offer_uuid[:8]} as preferred?"
        if offer_uuid
        else "Withdraw the preferred mark?",
        "text": "A note for colleagues, with your name. Nothing is sent to the lending service.",
        "action": reverse("applications:prefer", args=[borrower_uuid, application_uuid]),
        "act": "Mark as preferred" if offer_uuid else "Withdraw the mark",
        "safe": "Leave as it is",
        "back": address,
        "form": form,
    }
    status = 422 if form.is_bound else 200
    return render_page(request, "applications/question.html", context, partial="dialog", status=status)


@require_POST
@requires("applications.open")
def follow(request: StaffRequest, borrower_uuid: str, application_uuid: str) -> HttpResponse:
    """Whether an offer has become a loan or a line, by one look under its identifier."""
    record = known_application(borrower_uuid, application_uuid)
    application = memory.last(record, Application)
    uuid = request.POST.get("offer", "")
    if application is None or uuid not in names(application):
        raise Http404
    account = services.follow(request.servicing, Actor.of(request), record, uuid)
    if account is None:
        toast(
            request,
            f"The service has neither a loan nor a line under {uuid[:8]}; it may have another identifier.",
        )
        return done(request, record.get_absolute_url())
    toast(
        request,
        f"A {account.get_kind_display().lower()} exists under the offer’s identifier. It is known here now.",
    )
    return done(request, account.get_absolute_url())


# --- Export ---


@require_safe
@requires("applications.detail")
def export_offers(request: StaffRequest, borrower_uuid: str, application_uuid: str) -> StreamingHttpResponse:
    """The offers that are shown, or with ``all`` every one of them: the rows of the screen as columns."""
    record = known_application(borrower_uuid, application_uuid)
    application = memory.last(record, Application)
    if application is None:
        raise Http404
    comparison = compare(application, View.of(request.GET))
    columns = comparison.everyone if "all" in request.GET else comparison.columns
    services.note(Actor.of(request), "applications.export_offers", record, detail={"rows": len(columns)})
    lines = every_line()
    titles = [f"{line.name} (calculated here)" if line.formula else line.name for line in lines]
    return list_file(
        request,
        f"offers-{record.uuid[:8]}",
        ["Offer", "Identifier", "Product", *titles, "Term frequency"],
        (csv_row(column, [line.key for line in lines]) for column in columns),
    )


def csv_row(column: Column, keys: Sequence[str]) -> list[Any]:
    """One offer with exact numbers; what is no number or day in the text of the screen."""
    offer, figures = column.offer, [column.figures[key] for key in keys]
    values = [each.value if isinstance(each.value, Decimal | date) else each.text for each in figures]
    return [column.letter, offer.uuid, offer.product, *values, offer.term_frequency]
