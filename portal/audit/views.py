"""One entry of the audit trail with its proof, a record's history, and one write. The list is in the administration."""

import json
from datetime import UTC
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.roles import can, reason_for, requires
from portal.audit.chain import append, same_subject
from portal.audit.evidence import compare, evidence_about
from portal.audit.forms import CorrectForm, ResolveForm
from portal.audit.integrity import is_intact, last_check
from portal.audit.models import Actor, Entry, RemoteCall, WriteIntent
from portal.audit.raw_record import raw_record
from portal.audit.reading import (
    adjacent_entries,
    entry_lines,
    record_entries,
)
from portal.audit.view_log import log_page, log_subject, viewers_of
from portal.audit.writes import (
    WriteResult,
    close_stale_writes,
    correctable,
    resolutions,
    save_unsaved,
    unsaved_results,
)
from portal.records.store import find
from portal.ui.htmx import finish_action, render_page
from portal.ui.paging import CappedPaginator

State = WriteIntent.State
PAGE_SIZE = 50
MAX_VIEWERS = 20


@require_safe
@requires("audit.index")
def index(request: HttpRequest) -> HttpResponse:
    """Lead to the list in the administration, or to its file, with the filters of the address."""
    name = "export" if request.path.endswith("/export/") else "changelist"
    query = request.GET.urlencode()
    return redirect(f"{reverse(f'admin:audit_entry_{name}')}{'?' if query else ''}{query}")


@require_safe
@requires("audit.detail")
def detail(request: HttpRequest, entry_id: int) -> HttpResponse:
    """Show one entry: changes, request and response, duration, neighbors, and whether it is intact."""
    entry = get_object_or_404(Entry, pk=entry_id)
    log_subject(request, entry, label=f"audit entry {entry.pk}", otherwise=f"entry {entry.pk}")
    before, after = adjacent_entries(entry)
    facts = dict(entry.detail)
    if entry.intent_id:  # The request is on the attempt, the response on the outcome.
        for other in Entry.objects.filter(intent_id=entry.intent_id).values_list("detail", flat=True):
            facts = other | facts
    # The calls of a request have its reference with a suffix.
    first, beyond = entry.request_id, f"{entry.request_id}~"
    calls = RemoteCall.objects.filter(request_id__gte=first, request_id__lt=beyond).order_by("id")
    context: dict[str, Any] = {
        "line": entry_lines([entry])[0],
        "entry": entry,
        "subject": find(entry.subject_kind, entry.subject_uuid),
        "borrower": find("borrower", entry.borrower_uuid),
        "before": before,
        "after": after,
        "holds": is_intact(entry),
        "checked": last_check(),
        "calls": calls[:20] if entry.request_id else [],
        "request_body": facts.pop("request", None),
        "answer": facts.pop("answer", None),
        "duration_ms": facts.pop("duration_ms", None),
        "facts": facts,
        "raw": raw_record(entry),
    }
    return render_page(request, "audit/detail.html", context)


@require_safe
@requires("audit.history")
def record_history(request: HttpRequest, kind: str, uuid: str) -> HttpResponse:
    """Show a record's history, as a page or as a panel of the record's own page."""
    page = CappedPaginator(record_entries(kind, uuid), PAGE_SIZE).get_page(request.GET.get("page"))
    record = find(kind, uuid)
    if not record and not page.object_list:
        raise Http404
    context = {
        "page": page,
        "lines": entry_lines(page),
        "record": record,
        "uuid": uuid,
        "may_read": can(request.user, "audit.detail"),
        "views": viewers_of(uuid)[:MAX_VIEWERS],
    }
    label = f"the history of {record or uuid}"
    owner = (record.borrower_uuid if record else "") or uuid
    log_page(request, subject_kind=kind, subject_uuid=uuid, subject_label=label, borrower_uuid=owner)
    return render_page(request, "audit/history.html", context, partial="history")


@requires("audit.write")
def write(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """Show one write: its state, time, author, masked request, the service's response, and what to do."""
    close_stale_writes()
    intent = get_object_or_404(WriteIntent, pk=intent_id)
    form = ResolveForm(intent=intent) if intent.state == State.UNKNOWN else None
    return _write_page(request, intent, form)


@requires("audit.resolve")
def resolve(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """Resolve a write whose answer was lost, or correct that, on the page with the evidence."""
    close_stale_writes()
    intent = get_object_or_404(WriteIntent, pk=intent_id)
    typed = request.POST if request.method == "POST" else None
    resolution = correctable(intent)
    form: ResolveForm
    if intent.state == State.UNKNOWN:
        form = ResolveForm(typed, intent=intent)
    # The form of somebody who saw it unresolved, or another resolution, corrects nothing.
    elif resolution and (typed is None or typed.get("corrects") == str(resolution.pk)):
        form = CorrectForm(typed, intent=intent, resolution=resolution)
    else:
        messages.info(request, f"Nothing to resolve: {intent.get_state_display().lower()}.")
        return finish_action(request, intent.get_absolute_url())
    if form.is_valid():
        if form.apply(Actor.of(request)):
            messages.success(request, f"{intent.label}: {intent.get_state_display().lower()}.")
        return finish_action(request, intent.get_absolute_url())
    return _write_page(request, intent, form, status=422 if form.is_bound else 200)


@require_POST
@requires("audit.resolve")
def save_answer(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """Record the answer of a write from the file of unsaved answers."""
    intent = get_object_or_404(WriteIntent, pk=intent_id)
    if result := _unsaved_result(intent):
        save_unsaved(result)
        append(Actor.of(request), "audit.save_answer", **same_subject(intent, intent.label))
        messages.success(request, f"{intent.label}: answer saved.")
    return finish_action(request, intent.get_absolute_url())


def _unsaved_result(intent: WriteIntent) -> WriteResult | None:
    return next((one for one in unsaved_results() if one.intent_id == str(intent.pk)), None)


def _write_page(
    request: HttpRequest, intent: WriteIntent, form: ResolveForm | None, *, status: int = 200
) -> HttpResponse:
    """Render the evidence, with the form for those who may resolve the write."""
    log_subject(request, intent, label=intent.label, otherwise=intent.borrower_uuid or str(intent.pk))
    user: Any = request.user
    entries = Entry.objects.filter(intent_id=intent.pk)
    resolved = list(resolutions(intent))
    was_lost = bool(resolved) or intent.state == State.UNKNOWN
    evidence = evidence_about(intent) if was_lost else []
    why_not = "" if can(user, "audit.resolve") else reason_for("audit.resolve")
    context: dict[str, Any] = {
        "intent": intent,
        "form": form,
        "subject": find(intent.subject_kind, intent.subject_uuid),
        "calls": RemoteCall.objects.filter(intent_id=intent.pk),
        "question": _question_for_service(intent),
        "why_not": why_not,
        "resolutions": resolved,
        "unsaved": _unsaved_result(intent),
        "may_correct": not why_not and correctable(intent) is not None,
        "evidence": evidence,
        "comparisons": compare(intent, evidence) if was_lost else [],
    }
    if can(user, "audit.index"):
        context |= {"lines": entry_lines(entries.order_by("id")), "may_read": True, "raw": raw_record(intent)}
    return render_page(request, "audit/write.html", context, status=status)


def _question_for_service(intent: WriteIntent) -> str:
    """A question to the lender about a write whose answer was lost, ready to copy."""
    sent = intent.created_at.astimezone(UTC)
    body = json.dumps(intent.request_body, ensure_ascii=False, default=str)
    return (
        f"On {sent:%Y-%m-%d} at {sent:%H:%M:%S} UTC we sent {intent.method} {intent.path} and received no response.\n"
        f"It concerned “{intent.label}”; our reference is {intent.request_id}.\n"
        f"What we sent, sensitive values masked: {body}\n"
        f"Did it go through? If so, what is the ID of the record?"
    )
