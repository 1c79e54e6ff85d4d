"""The trail as a list of sentences, and what is known about one write."""

import json
from datetime import UTC
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from portal.accounts.roles import can, requires
from portal.audit.models import Entry, RemoteCall, WriteIntent
from portal.audit.sentences import sentence
from portal.ui.htmx import render_page

PAGE_SIZE = 50


@requires("audit.index")
def index(request: HttpRequest) -> HttpResponse:
    """The newest entries, filtered by text, person, action and result."""
    entries = Entry.objects.all()
    query = request.GET.get("q", "").replace("\0", "").strip()[:200]
    if query:
        entries = entries.filter(
            Q(actor_name__icontains=query)
            | Q(subject_label__icontains=query)
            | Q(subject_uuid__icontains=query)
            | Q(request_id__icontains=query)
            | Q(reason__icontains=query)
        )
    chosen = {}
    for name in ("action", "result"):
        if value := request.GET.get(name, "").replace("\0", "")[:60]:
            chosen[name] = value
    page = Paginator(entries.filter(**chosen), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": [(entry, sentence(entry)) for entry in page],
        "query": query,
        "chosen": chosen,
        "actions": Entry.objects.order_by("action").values_list("action", flat=True).distinct(),
        "results": WriteIntent.State.choices,
    }
    return render_page(request, "audit/index.html", context, partial="audit-rows")


@requires("audit.write")
def write(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """One write: its state, when, by whom, what was sent (masked), what the service said, and what to do."""
    intent = get_object_or_404(WriteIntent, pk=intent_id)
    context: dict[str, Any] = {
        "intent": intent,
        "calls": RemoteCall.objects.filter(intent_id=intent.pk),
        "body": json.dumps(intent.request_body, indent=2, ensure_ascii=False, default=str),
        "question": question(intent),
    }
    if can(request.user, "audit.index"):
        entries = Entry.objects.filter(intent_id=intent.pk).order_by("id")
        context["rows"] = [(entry, sentence(entry)) for entry in entries]
    return render_page(request, "audit/write.html", context)


def question(intent: WriteIntent) -> str:
    """What to ask the lender about a write whose answer was lost, ready to copy."""
    sent = intent.created_at.astimezone(UTC)
    return (
        f"On {sent:%Y-%m-%d} at {sent:%H:%M:%S} UTC we sent {intent.method} {intent.path} and received no answer.\n"
        f"It concerned: {intent.label}. Our reference is {intent.request_id}.\n"
        "Was it carried out? If it was, which identifier did it create or change?"
    )
