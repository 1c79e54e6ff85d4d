"""What is known about one write, and settling one whose answer was lost."""

import json
from datetime import UTC
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from portal.accounts.roles import can, reason_for, requires
from portal.audit.intents import settle_stale
from portal.audit.models import Actor, Entry, RemoteCall, WriteIntent
from portal.audit.reading import lines
from portal.audit.resolving import ResolveForm, settle_as
from portal.audit.sightings import log_page
from portal.registry.memory import find
from portal.ui.htmx import done, render_page

State = WriteIntent.State


@requires("audit.write")
def write(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """One write: its state, when, by whom, what was sent (masked), what the service said, and what to do."""
    settle_stale()
    intent = get_object_or_404(WriteIntent, pk=intent_id)
    form = ResolveForm(intent=intent) if intent.state == State.UNKNOWN else None
    return page(request, intent, form)


@requires("audit.resolve")
def resolve(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """Say what became of a write whose answer was lost, on the page that holds the evidence."""
    settle_stale()
    intent = get_object_or_404(WriteIntent, pk=intent_id)
    if intent.state != State.UNKNOWN:
        messages.info(request, f"Nothing to settle: {intent.get_state_display().lower()}.")
        return done(request, intent.get_absolute_url())
    form = ResolveForm(request.POST if request.method == "POST" else None, intent=intent)
    if form.is_valid():
        if settle_as(form, intent, Actor.of(request)):
            messages.success(request, f"{intent.label}: {intent.get_state_display().lower()}.")
        return done(request, intent.get_absolute_url())
    return page(request, intent, form, status=422 if form.is_bound else 200)


def page(
    request: HttpRequest, intent: WriteIntent, form: ResolveForm | None, *, status: int = 200
) -> HttpResponse:
    """The evidence, and for whom may the form beside it."""
    log_page(
        request,
        kind=intent.subject_kind,
        uuid=intent.subject_uuid or intent.borrower_uuid or str(intent.pk),
        label=intent.label,
        borrower_uuid=intent.borrower_uuid,
    )
    user: Any = request.user
    context: dict[str, Any] = {
        "intent": intent,
        "form": form,
        "subject": find(intent.subject_kind, intent.subject_uuid),
        "is_maker": intent.actor_id == user.pk,
        "calls": RemoteCall.objects.filter(intent_id=intent.pk),
        "question": question(intent),
        "why_not": "" if can(user, "audit.resolve") else reason_for("audit.resolve"),
        "settled": Entry.objects.filter(intent_id=intent.pk, action="audit.resolve").first(),
    }
    if can(user, "audit.index"):
        context["lines"] = lines(Entry.objects.filter(intent_id=intent.pk).order_by("id"))
        context["may_read"] = True
    return render_page(request, "audit/write.html", context, status=status)


def question(intent: WriteIntent) -> str:
    """What to ask the lender about a write whose answer was lost, ready to copy."""
    sent = intent.created_at.astimezone(UTC)
    body = json.dumps(intent.request_body, ensure_ascii=False, default=str)
    what = "create" if intent.method == "POST" else "change"
    return (
        f"On {sent:%Y-%m-%d} at {sent:%H:%M:%S} UTC we sent {intent.method} {intent.path} and received no answer.\n"
        f"It concerned “{intent.label}”; our reference is {intent.request_id}.\n"
        f"What we sent, sensitive values masked: {body}\n"
        f"Was it carried out? If it was, which identifier did it {what}?"
    )
