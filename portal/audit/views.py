"""The trail as a list of sentences and as files, one entry with its proof, and the history of one record."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.accounts.roles import can, requires
from portal.audit import filters
from portal.audit.chain import append
from portal.audit.intents import settle_stale
from portal.audit.models import Actor, Entry, RemoteCall
from portal.audit.reading import Line, Pages, history, lines, neighbours, streamed
from portal.audit.sightings import log_list, log_page
from portal.audit.verification import holds
from portal.registry.memory import find
from portal.ui.exports import list_file
from portal.ui.htmx import render_page

PAGE_SIZE = 50
COLUMNS = [
    *("Number", "Time (UTC)", "Person", "Role", "Address", "Browser", "Act", "Step", "Sentence", "Result"),
    *("Object", "Object id", "Object name", "Borrower id", "Reason", "Reference", "Changes", "Detail"),
    *("Previous hash", "Hash"),
]


@require_safe
@requires("audit.index")
def index(request: HttpRequest) -> HttpResponse:
    """The entries that the filters ask for, newest first."""
    settle_stale()
    found = filters.asked(request.GET)
    pages = Pages(found.entries, PAGE_SIZE)
    page = pages.get_page(request.GET.get("page"))
    context = {
        "asked": found,
        "page": page,
        "pages": pages,
        "lines": lines(page),
        "people": filters.people(),
        "groups": [(name, words) for name, (words, _) in filters.GROUPS.items()],
        "kinds": filters.KINDS,
        "results": filters.RESULTS,
        "when": filters.WHEN,
        "shown": filters.SHOWN,
        "zone": f"{timezone.localtime():%Z}",
        "may_read": True,
    }
    log_list(request, count=pages.count)  # Once the rows are read: this entry is none of them.
    return render_page(request, "audit/index.html", context, partial="audit-rows")


@require_safe
@requires("audit.export")
def export(request: HttpRequest) -> StreamingHttpResponse:
    """The shown page, or with ``all`` everything that the filters leave up to the entry of this very export."""
    found = filters.asked(request.GET)
    is_whole = "all" in request.GET
    page = list(Pages(found.entries, PAGE_SIZE).get_page(request.GET.get("page")))
    form = "JSON Lines" if request.GET.get("format") == "jsonl" else "CSV"
    mine = append(
        Actor.of(request),
        "audit.export",
        subject_label=form,
        detail={"filters": found.words, "rows": found.entries.count() if is_whole else len(page)},
    )
    shown = streamed(found.entries.filter(pk__lt=mine.pk)) if is_whole else lines(page)
    return list_file(request, "audit", COLUMNS, map(cells, shown))


@require_safe
@requires("audit.detail")
def detail(request: HttpRequest, entry_id: int) -> HttpResponse:
    """One entry: what changed, what was sent and answered, how long it took, its neighbours, and that it holds."""
    entry = get_object_or_404(Entry, pk=entry_id)
    log_page(
        request,
        kind=entry.subject_kind,
        uuid=entry.subject_uuid or f"entry {entry.pk}",
        label=f"audit entry {entry.pk}",
        borrower_uuid=entry.borrower_uuid,
    )
    (line,) = lines([entry])
    before, after = neighbours(entry)
    context: dict[str, Any] = {
        "line": line,
        "entry": entry,
        "subject": find(entry.subject_kind, entry.subject_uuid),
        "borrower": find("borrower", entry.borrower_uuid),
        "before": before,
        "after": after,
        "holds": holds(entry),
        "checked": Entry.objects.filter(action="audit.verify").first(),
        "calls": calls_of(entry),
    }
    return render_page(request, "audit/detail.html", context | parts(entry))


@require_safe
@requires("audit.history")
def record_history(request: HttpRequest, kind: str, uuid: str) -> HttpResponse:
    """What happened to one record, as a page and as the panel of the record's own page."""
    page = Pages(history(kind, uuid), PAGE_SIZE).get_page(request.GET.get("page"))
    record = find(kind, uuid)
    context = {
        "page": page,
        "lines": lines(page),
        "record": record,
        "uuid": uuid,
        "may_read": can(request.user, "audit.detail"),
    }
    log_page(
        request,
        kind=kind,
        uuid=uuid,
        label=f"the history of {record or uuid}",
        borrower_uuid=(record.borrower_uuid if record else "") or uuid,
    )
    return render_page(request, "audit/history.html", context, partial="history")


def parts(entry: Entry) -> dict[str, Any]:
    """What a write sent and was answered, wherever of its two entries it stands; what else an entry tells."""
    told = dict(entry.detail)
    if entry.intent_id:
        for detail in Entry.objects.filter(intent_id=entry.intent_id).values_list("detail", flat=True):
            told = detail | told
    sent, answer, took = (told.pop(name, None) for name in ("request", "answer", "duration_ms"))
    return {"request_body": sent, "answer": answer, "duration_ms": took, "told": told}


def calls_of(entry: Entry) -> list[RemoteCall]:
    """The calls of the lending service that the same click made."""
    if not entry.request_id:
        return []
    click = RemoteCall.objects.filter(request_id__gte=entry.request_id, request_id__lt=f"{entry.request_id}~")
    return list(click.order_by("id")[:20])


def cells(line: Line) -> list[Any]:
    """One entry as a row of a file."""
    entry = line.entry
    changes = {change.label: [change.old, change.new] for change in line.changes}
    return [
        *(entry.pk, f"{entry.at:%Y-%m-%dT%H:%M:%S.%fZ}", entry.actor_name, entry.actor_role, entry.ip),
        *(entry.user_agent, entry.action, entry.phase, line.sentence, entry.result),
        *(entry.subject_kind, entry.subject_uuid, entry.subject_label, entry.borrower_uuid, entry.reason),
        *(entry.request_id, as_text(changes), as_text(entry.detail), entry.previous_hash, entry.hash),
    ]


def as_text(value: dict[str, Any]) -> str:
    """An object as compact JSON, nothing where there is nothing."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""
