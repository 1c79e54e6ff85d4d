"""Search, and maintenance of the registry: add by ID, import, correct, archive."""

from datetime import datetime, time
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.roles import requires
from portal.audit.chain import append, entry_subject
from portal.audit.models import Actor
from portal.audit.view_log import count_suggestions, log_list, log_page, log_view
from portal.gateway.client import StaffRequest
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.lookup import search as searches
from portal.lookup import services, tasks
from portal.lookup.forms import AddForm, ArchiveForm, CorrectForm, ImportForm, OpenAsForm
from portal.lookup.models import Upload
from portal.lookup.search import HitGroup
from portal.records import store
from portal.records.models import NAMED_KINDS, Answered, Borrower, Kind, Snapshot
from portal.records.query import Query, parse_query
from portal.records.rows import records_of, with_answers
from portal.records.sources import READS
from portal.ui.exports import list_file
from portal.ui.htmx import current_page, finish_action, render_page
from portal.ui.uploads import accepts_files
from servicing import Loan, NotFound, NotSent, Unavailable, codec

MAX_REFUSED_SHOWN = 200


@requires("lookup.search")
def search(request: StaffRequest) -> HttpResponse:
    """Show everything on file that matches, by kind, and offer to open an unknown ID."""
    query = parse_query(request.GET.get("q", ""))
    if request.htmx.target != "suggestions":
        return search_page(request, query, of=request.GET.get("of", ""))
    count_suggestions(request)
    groups = searches.suggest(query)
    # A borrower's accounts say more than the messages that name it.
    is_named = any(group.kind == Kind.BORROWER for group in groups)
    context = results(request, query, groups, searches.SUGGESTED, with_messages=not is_named)
    return render_page(request, "lookup/search.html", context, partial="suggestions")


def results(
    request: StaffRequest,
    query: Query,
    groups: list[HitGroup],
    limit: int,
    of: str = "",
    *,
    with_messages: bool = True,
) -> dict[str, Any]:
    """What the suggestions and the page show besides the matching records."""
    hits = searches.find_messages(query, limit) if with_messages else None
    notes = searches.find_notes(query, limit)
    return {
        "query": query,
        "groups": groups,
        "message_hits": hits,
        "other_messages_url": "" if hits else searches.other_messages_url(query),
        "note_hits": notes,
        "similar": () if groups or hits or notes else searches.suggest_names(query),
        "places": searches.find_destinations(query, request.can, current_page(request)),
        "unknown": searches.find_unknown_ids(query, of, hits=hits, groups=groups),
    }


@require_POST
@requires("lookup.search")
def open_as(request: StaffRequest) -> HttpResponse:
    """Ask the service for an ID as one of a borrower's accounts; its answer adds the record."""
    form = OpenAsForm(request.POST)
    if not form.is_valid():
        return search_page(request, parse_query(request.POST.get("uuid", "")), status=422)
    kind, uuid, owner = (form.cleaned_data[name] for name in ("kind", "uuid", "borrower_uuid"))
    try:
        READS[kind](request.servicing, owner.uuid, uuid)
    except NotFound:
        refusal = f"The service has no {Kind(kind).label.lower()} with this ID under “{owner}”."
        return search_page(request, parse_query(uuid), of=owner.uuid, refusal=refusal, status=404)
    except (NotSent, Unavailable):
        refusal = "The service isn’t responding. Try again in a moment."
        return search_page(request, parse_query(uuid), of=owner.uuid, refusal=refusal, status=503)
    found = get_object_or_404(records_of(kind), uuid=uuid)
    messages.success(request, f"Found at the service and added under {owner}.")
    return finish_action(request, found.get_absolute_url())


def search_page(
    request: StaffRequest, query: Query, *, of: str = "", refusal: str = "", status: int = 200
) -> HttpResponse:
    """Render the results by kind, or a page of one kind."""
    kind = request.GET.get("kind", "")
    groups = searches.find_results(query, kind=kind, page=request.GET.get("page"))
    log_list(request, count=sum(group.page.paginator.count for group in groups))
    context = results(request, query, groups, searches.SHOWN, of) | {
        "search_text": query.text,
        "chosen": next((group for group in groups if group.kind == kind), None),
        "problems": [*query.problems, *filter(None, [searches.limit_problem(query)])],
        "is_too_short": len(query.text) < searches.MIN_CHARACTERS,
        "refusal": refusal,
        "may_add": request.can("lookup.add"),
    }
    return render_page(request, "lookup/search.html", context, partial="results", status=status)


@requires("lookup.search")
def record(request: StaffRequest, kind: str, uuid: str) -> HttpResponse:
    """Show one record: its last answer and its owner."""
    if kind == Kind.REPAYMENT:  # Its own page shows all of it.
        return redirect("repayments:detail", uuid)
    found = get_object_or_404(with_answers(records_of(kind)), uuid=uuid)
    log_view(Actor.of(request), "lookup.record", **entry_subject(found))
    owner = Borrower.objects.filter(uuid=found.borrower_uuid).first()
    context = {
        "record": found,
        "owner": owner,
        "fields": answer_fields(found),
        "snapshots": Snapshot.objects.filter(answer=found.answer).defer("body")[:50],
    }
    return render_page(request, "lookup/record.html", context)


def answer_fields(record: Answered) -> list[tuple[str, Any]]:
    """The last answer's fields by name; lists and objects as counts."""
    text = store.saved_text(record)
    answer = codec.parse(text) if text else {}
    return [
        (
            name,
            f"{len(value)} entr{'y' if len(value) == 1 else 'ies'}"
            if isinstance(value, list | dict)
            else value,
        )
        for name, value in answer.items()
    ]


@requires("lookup.add")
def add(request: StaffRequest) -> HttpResponse:
    """Add a record that exists at the service, by its ID."""
    form = AddForm(request.POST or None, initial=request.GET.dict())
    if form.is_valid() and is_owner_confirmed(request, form):
        fields = {name: form.cleaned_data[name] for name in ("kind", "uuid", "borrower_uuid", "label")}
        added = services.add(Actor.of(request), **fields)
        messages.success(request, f"{added} was added.")
        return finish_action(request, added.get_absolute_url())
    return render_page(request, "lookup/add.html", {"form": form}, status=422 if form.is_bound else 200)


def is_owner_confirmed(request: StaffRequest, form: AddForm) -> bool:
    """Whether the service confirms the borrower of the given account; true if no account is given."""
    owner, proof = form.cleaned_data["borrower_uuid"], form.cleaned_data["proof"]
    if not proof or form.cleaned_data["kind"] != Kind.BORROWER:
        return True
    for kind in (Kind.LOAN, Kind.LINE):
        try:
            answer = READS[kind](request.servicing, owner, proof)
        except NotFound:
            continue
        if not isinstance(answer, Loan) or answer.user_uuid in (None, owner):
            return True
    form.add_error("proof", "The service has no loan or line with this ID for this borrower.")
    return False


def _find_correctable(kind: str, uuid: str) -> Answered:
    """The record, which is none of the repayments: those are what their list says."""
    if kind == Kind.REPAYMENT:
        raise Http404
    found: Answered = get_object_or_404(records_of(kind), uuid=uuid)
    return found


@requires("lookup.correct")
def correct(request: StaffRequest, kind: str, uuid: str) -> HttpResponse:
    """Correct the name or the owner of a record, with a reason."""
    found = _find_correctable(kind, uuid)
    form = CorrectForm(request.POST or None, record=found)
    if form.is_valid():
        if changes := form.changes():
            services.correct(Actor.of(request), found, changes=changes, reason=form.cleaned_data["reason"])
            messages.success(request, "Record corrected.")
        else:
            messages.info(request, "No changes to save.")
        return finish_action(request, found.get_absolute_url())
    log_page(request, **entry_subject(found))
    context = {"form": form, "record": found}
    return render_page(request, "lookup/correct.html", context, status=422 if form.is_bound else 200)


@requires("lookup.archive")
def archive(request: StaffRequest, kind: str, uuid: str) -> HttpResponse:
    """Remove a record from lists and search, or restore it, with a reason."""
    found = _find_correctable(kind, uuid)
    form = ArchiveForm(request.POST or None, initial={"act": "restore" if found.archived_at else "archive"})
    if form.is_valid():
        archived = form.cleaned_data["act"] == "archive"
        services.archive(Actor.of(request), found, archived=archived, reason=form.cleaned_data["reason"])
        messages.success(request, "Record archived." if archived else "Record restored.")
        return finish_action(request, found.get_absolute_url())
    stays = [
        f"{number:,} {(kind.label if number == 1 else searches.PLURALS[kind]).lower()}"
        for kind, number in ({} if found.archived_at else services.dependents(found)).items()
    ]
    log_page(request, **entry_subject(found))
    context = {"form": form, "record": found, "stays": stays}
    return render_page(request, "lookup/archive.html", context, status=422 if form.is_bound else 200)


@require_POST
@requires("lookup.refresh_portfolio")
def refresh_portfolio(request: StaffRequest) -> HttpResponse:
    """Refresh every account in the background; a second request joins the running job."""
    job = start_job(tasks.refresh_portfolio, by=Actor.of(request), older_than=0)
    return finish_action(request, reverse("operations:job", args=[job.pk]))


@accepts_files(2)
@requires("lookup.import_records")
def import_records(request: StaffRequest) -> HttpResponse:
    """Upload files of IDs and profiles, and list the latest imports."""
    form = ImportForm(request.POST or None, request.FILES or None)
    if form.is_valid():
        day = datetime.combine(form.cleaned_data["exported_on"], time(), timezone.get_current_timezone())
        uploads = [
            services.upload(Actor.of(request), what=what, file=file, exported_at=day)
            for what in Upload.What.values
            if (file := form.cleaned_data[what])
        ]
        if len(uploads) == 1:
            return finish_action(request, uploads[0].get_absolute_url())
        messages.success(request, "Both imports started. See their pages for results.")
        return finish_action(request, request.path)
    context = {"form": form, "kinds": NAMED_KINDS, "uploads": Upload.objects.all()[:10]}
    return render_page(request, "lookup/import.html", context, status=422 if form.is_bound else 200)


@requires("lookup.import_records")
def imported(request: StaffRequest, upload_id: int) -> HttpResponse:
    """Show the progress of an import, then the result of every line."""
    upload = get_object_or_404(Upload, pk=upload_id)
    log_list(request, count=len(upload.refused))
    job = Job.objects.filter(pk=upload.job_id).first() if upload.job_id else None
    context = {"upload": upload, "job": job, "shown": upload.refused[:MAX_REFUSED_SHOWN]}
    return render_page(request, "lookup/imported.html", context, partial="imported")


@require_safe
@requires("lookup.import_records")
def export_refused(request: StaffRequest, upload_id: int) -> HttpResponseBase:
    """Export the rejected lines of a file."""
    upload = get_object_or_404(Upload, pk=upload_id)
    append(
        Actor.of(request),
        "lookup.export",
        subject_label=f"import {upload.pk}",
        detail={"upload": upload.pk, "rows": len(upload.refused)},
    )
    return list_file(request, f"refused-{upload.pk}", ["Line", "Reason"], upload.refused)
