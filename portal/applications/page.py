"""The page of one application: the decision, the offers side by side, and which one colleagues prefer.

The page's panel refreshes a line application. A loan application can't be refreshed: the page shows the answer that
the service gave when the application was sent.
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
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

import servicing
from portal.accounts.roles import requires
from portal.applications import services
from portal.applications.details import Details, as_text, details
from portal.applications.forms import PreferForm
from portal.applications.models import Preference
from portal.applications.offers import (
    Comparison,
    OfferColumn,
    OfferView,
    all_lines,
    column_facts,
    compare,
    offer_names,
    reported_value,
)
from portal.audit.chain import entry_subject
from portal.audit.models import Actor, WriteIntent
from portal.audit.view_log import log_page
from portal.gateway.client import StaffRequest
from portal.gateway.panels import Freshness, panel_copies
from portal.gateway.reading import LiveCopy
from portal.records import store
from portal.records.figures import copy_day
from portal.records.models import Account, Application, Kind
from portal.repayments.account_page import record_context
from portal.ui import wording
from portal.ui.exports import list_file
from portal.ui.htmx import finish_action, render_page, toast
from servicing import consistency
from servicing.values import decimal_or_none

PANEL = "application"
MAX_UUID = 64
MAX_ISSUES = 10
CONSENT = {True: "Consented", False: "Not consented", None: None}


@dataclass(frozen=True)
class ShownOffer:
    """One shown offer: its facts, failed data checks, whether it is preferred, and the account it became."""

    column: OfferColumn
    reported: SafeString
    calculated: SafeString
    checks: Sequence[consistency.Rule]
    is_named: bool
    """Whether its ID is unique within the application."""
    is_preferred: bool
    account: Account | None


@require_safe
@requires("applications.detail")
def detail(request: StaffRequest, borrower_uuid: str, application_uuid: str) -> HttpResponse:
    record = find_application(borrower_uuid, application_uuid)
    own = [LiveCopy(record)]
    (copy,) = panel_copies(request, PANEL, own) if record.can_be_read else own
    context = {
        **record_context(
            request,
            copy,
            action="applications.detail",
            label=services.application_name(record),
            panel=PANEL,
        ),
        "fresh": Freshness([copy]) if record.can_be_read else None,
        "sent": _write_as_sent(record),
    }
    if isinstance(copy.answer, servicing.Application):
        context |= answer_context(request, record, copy.answer)
    return render_page(request, "applications/detail.html", context, partial=(PANEL, "offers"))


def _write_as_sent(record: Application) -> WriteIntent | None:
    """The write that created an application and lost its answer; None if an answer is on file."""
    created = WriteIntent.objects.filter(
        operation="applications.submit", state=WriteIntent.State.CONFIRMED, subject_uuid=record.uuid
    )
    return None if record.answer_at else created.first()


def find_application(borrower_uuid: str, application_uuid: str) -> Application:
    return get_object_or_404(
        Application.objects.select_related("answer"), uuid=application_uuid, borrower_uuid=borrower_uuid
    )


def find_answered_application(
    borrower_uuid: str, application_uuid: str
) -> tuple[Application, servicing.Application]:
    record = find_application(borrower_uuid, application_uuid)
    application = store.last_answer(record, servicing.Application)
    if application is None:
        raise Http404
    return record, application


# --- What the response holds ---


def answer_context(
    request: StaffRequest, record: Application, application: servicing.Application
) -> dict[str, Any]:
    """Facts, offers and, on demand, the object as the service sent it."""
    requested, further = facts(application), other_values(application)
    comparison = compare(application, OfferView.of(request.GET))
    preference = Preference.objects.filter(application_uuid=record.uuid).first()
    preferred = preference.offer_uuid if preference else ""
    heads = shown_offers(comparison, application, preferred)
    return {
        "application": application,
        "checks": consistency.check_application(application),
        "facts": [(name, value) for name, value in requested if value],
        "further": [(name, value) for name, value in further if value],
        "not_provided": ", ".join(name.lower() for name, value in [*requested, *further] if not value),
        "decision_details": decision_details(application),
        "issues": application.issues[:MAX_ISSUES],
        "comparison": comparison,
        "heads": heads,
        "has_checks": any(each.checks for each in heads),
        "preference": preference,
        "preferred": next((c for c in comparison.everyone if c.offer.uuid == preferred), None),
        "is_raw_shown": "raw" in request.GET,
    }


def shown_offers(
    comparison: Comparison, application: servicing.Application, preferred: str
) -> list[ShownOffer]:
    """The offers side by side, each with its data checks, preference and account."""
    unique = unique_offer_ids(application)
    shown = {column.offer.uuid for column in comparison.columns} & unique
    accounts = Account.objects.filter(kind__in=[Kind.LOAN, Kind.LINE], uuid__in=shown)
    account_of = {account.uuid: account for account in accounts}
    return [
        ShownOffer(
            column=column,
            reported=column_facts(comparison.reported, index),
            calculated=column_facts(comparison.calculated, index),
            checks=consistency.check_offer(column.offer, application),
            is_named=column.offer.uuid in unique,
            is_preferred=column.offer.uuid in unique and column.offer.uuid == preferred,
            account=account_of.get(column.offer.uuid),
        )
        for index, column in enumerate(comparison.columns)
    ]


def unique_offer_ids(application: servicing.Application) -> set[str]:
    """The offer IDs that occur exactly once."""
    counts = Counter(offer.uuid for offer in application.offers)
    return {uuid for uuid, count in counts.items() if count == 1 and 0 < len(uuid) <= MAX_UUID}


def facts(application: servicing.Application) -> list[tuple[str, str | None]]:
    """The application's own fields; unreadable values are shown as sent."""
    requested = decimal_or_none(reported_value(application, "amount"))
    consent = application.credit_score_consent
    return [
        *([] if application.product else [("Product", None)]),  # Any other product is in the title line.
        ("Requested", wording.money(requested) or as_text(reported_value(application, "amount"))),
        ("Term", as_text(reported_value(application, "term"))),
        (
            "Credit check",
            CONSENT.get(consent) or as_text(reported_value(application, "credit_score_consent")),
        ),
        ("Credit report", as_text(reported_value(application, "credit_report_id"))),
    ]


def other_values(application: servicing.Application) -> list[tuple[str, Details | None]]:
    """Values of any shape and undocumented fields, under their own names.

    The purpose is always included, the others only if the service sent them. Without offers, the decision is explained
    in their place.
    """
    sent = [
        ("Application details", details(application.details)),
        ("Reasons", decision_details(application) if application.offers else None),
        *((name, details(value)) for name, value in application.extra.items()),
    ]
    return [("Purpose", details(application.purpose)), *((name, value) for name, value in sent if value)]


def decision_details(application: servicing.Application) -> Details | None:
    return details(application.status.details) if application.status else None


# --- Acts on offers ---


@requires("applications.prefer")
def prefer(request: StaffRequest, borrower_uuid: str, application_uuid: str) -> HttpResponse:
    """Mark an offer as preferred or remove the mark, with a reason. Nothing is sent to the service."""
    record, application = find_answered_application(borrower_uuid, application_uuid)
    typed = request.POST if request.method == "POST" else None
    offer_uuid = (request.GET if typed is None else typed).get("offer", "")
    form = PreferForm(typed, offers=unique_offer_ids(application), initial={"offer": offer_uuid})
    address, names = record.get_absolute_url(), offer_names(application)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        services.prefer(Actor.of(request), record, offer_uuid=offer_uuid, reason=reason, names=names)
        toast(request, "Preferred offer saved." if offer_uuid else "Preferred mark removed.")
        return finish_action(request, address, event="application:preferred")
    log_page(request, **entry_subject(record))
    context = {
        "crumbs": [("Borrowers", reverse("borrowers:index")), (str(record), address)],
        "crumb": "Preferred offer",
        "title": f"Mark offer {names.get(offer_uuid, offer_uuid[:8])} as preferred?"
        if offer_uuid
        else "Withdraw the preferred mark?",
        "text": "Internal note with your name. Nothing is sent to the service.",
        "action": reverse("applications:prefer", args=[borrower_uuid, application_uuid]),
        "act": "Mark as preferred" if offer_uuid else "Withdraw the mark",
        "safe": "Cancel",
        "back": address,
        "form": form,
    }
    status = 422 if form.is_bound else 200
    return render_page(request, "ui/question.html", context, partial="dialog", status=status)


@require_POST
@requires("applications.open")
def follow(request: StaffRequest, borrower_uuid: str, application_uuid: str) -> HttpResponse:
    """Look for the loan or line that an offer became, under the offer's ID."""
    record, application = find_answered_application(borrower_uuid, application_uuid)
    uuid = request.POST.get("offer", "")
    if uuid not in unique_offer_ids(application):
        raise Http404
    account = services.follow(request.servicing, Actor.of(request), record, uuid)
    if account is None:
        toast(
            request,
            f"The service has no loan or line with ID {uuid[:8]}. The funded account may have a different ID.",
        )
        return finish_action(request, record.get_absolute_url())
    toast(request, f"A {account.get_kind_display().lower()} with this ID exists. It’s on file now.")
    return finish_action(request, account.get_absolute_url())


# --- Export ---


@require_safe
@requires("applications.detail")
def export_offers(request: StaffRequest, borrower_uuid: str, application_uuid: str) -> StreamingHttpResponse:
    """Export the shown offers, or with ``all`` every offer, with the rows of the screen as columns."""
    record, application = find_answered_application(borrower_uuid, application_uuid)
    comparison = compare(application, OfferView.of(request.GET))
    columns = comparison.everyone if "all" in request.GET else comparison.columns
    services.append_entry(
        Actor.of(request), "applications.export_offers", record, detail={"rows": len(columns)}
    )
    lines = all_lines()
    titles = [f"{line.name} (calculated here)" if line.formula else line.name for line in lines]
    return list_file(
        request,
        f"offers-{record.uuid[:8]}",
        ["Offer", "ID", "Product", *titles, "Term frequency", "Copy of"],
        ([*csv_row(column, [line.key for line in lines]), copy_day(record)] for column in columns),
    )


def csv_row(column: OfferColumn, keys: Sequence[str]) -> list[Any]:
    """One offer with exact numbers and dates; anything else as on screen."""
    offer, figures = column.offer, [column.figure(key) for key in keys]
    values = [each.value if isinstance(each.value, Decimal | date) else each.text for each in figures]
    return [column.letter, offer.uuid, offer.product, *values, offer.term_frequency]
