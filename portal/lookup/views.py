"""Search, and keeping the registry true: add by uuid, import, correct, archive."""

from datetime import datetime, time
from typing import Any

from django.contrib import messages as toasts
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.sightings import count_suggestions, log_list, log_record, saw
from portal.gateway import StaffRequest
from portal.jobs.models import Job
from portal.jobs.queue import start
from portal.lookup import searching, services, tasks
from portal.lookup.forms import AddForm, ArchiveForm, CorrectForm, ImportForm, OpenAsForm
from portal.lookup.messages import messages
from portal.lookup.models import Upload
from portal.readings import READS
from portal.registry.models import SEARCHED_KINDS, Kind, Record
from portal.registry.query import Query, read
from portal.ui.exports import list_file
from portal.ui.htmx import done, render_page
from portal.ui.uploads import takes_files
from servicing import Loan, NotFound, NotSent, Unavailable, codec

# Of a file's refused lines a page shows so many.
REASONS_SHOWN = 200


@requires("lookup.search")
def search(request: StaffRequest) -> HttpResponse:
    """Everything known that matches, by kind; what an unknown identifier may be, and whose."""
    query = read(request.GET.get("q", ""))
    if request.htmx.target != "suggestions":
        return search_page(request, query, of=request.GET.get("of", ""))
    count_suggestions(request)
    hits = messages(query, searching.SUGGESTED)
    context = {
        "query": query,
        "groups": searching.suggested(query),
        "message_hits": hits,
        "places": searching.places(query, request.can),
        "unknown": searching.unknown(query, "", told=hits),
    }
    return render_page(request, "lookup/search.html", context, partial="suggestions")


@require_POST
@requires("lookup.search")
def open_as(request: StaffRequest) -> HttpResponse:
    """Ask the service for an identifier as one of a borrower's accounts; its answer makes it known here."""
    form = OpenAsForm(request.POST)
    if not form.is_valid():
        return search_page(request, read(request.POST.get("uuid", "")), status=422)
    kind, uuid, owner = (form.cleaned_data[name] for name in ("kind", "uuid", "borrower_uuid"))
    try:
        READS[kind](request.servicing, owner.uuid, uuid)
    except NotFound:
        refusal = (
            f"The lending service has no {Kind(kind).label.lower()} with this identifier under “{owner}”."
        )
        return search_page(request, read(uuid), of=owner.uuid, refusal=refusal, status=404)
    except (NotSent, Unavailable):
        refusal = "The lending service is not answering; ask again in a moment."
        return search_page(request, read(uuid), of=owner.uuid, refusal=refusal, status=503)
    found = get_object_or_404(Record, kind=kind, uuid=uuid)
    toasts.success(request, f"The lending service knows it: it is {owner}’s, and is known here from now on.")
    return done(request, found.get_absolute_url())


def search_page(
    request: StaffRequest, query: Query, *, of: str = "", refusal: str = "", status: int = 200
) -> HttpResponse:
    """The results by kind, or a page of one kind."""
    kind = request.GET.get("kind", "")
    groups = searching.results(query, kind=kind, page=request.GET.get("page"))
    log_list(request, count=sum(group.page.paginator.count for group in groups))
    hits = messages(query, searching.SHOWN)
    context = {
        "query": query,
        "search_text": query.text,
        "groups": groups,
        "chosen": next((group for group in groups if group.kind == kind), None),
        "message_hits": hits,
        "problems": [*query.problems, *filter(None, [searching.too_many(query)])],
        "is_too_short": len(query.text) < searching.SHORTEST,
        "places": searching.places(query, request.can),
        "unknown": searching.unknown(query, of, told=hits),
        "refusal": refusal,
        "may_add": request.can("lookup.add"),
    }
    return render_page(request, "lookup/search.html", context, partial="results", status=status)


@requires("lookup.search")
def record(request: StaffRequest, kind: str, uuid: str) -> HttpResponse:
    """One known record: what was last told, when, and whose it is."""
    found = get_object_or_404(Record, kind=kind, uuid=uuid, kind__in=SEARCHED_KINDS)
    saw(
        Actor.of(request),
        "lookup.record",
        kind=kind,
        uuid=uuid,
        label=str(found),
        borrower_uuid=found.borrower_uuid,
    )
    owner = Record.objects.filter(kind=Kind.BORROWER, uuid=found.borrower_uuid).first()
    context = {
        "record": found,
        "owner": owner,
        "fields": told_fields(found),
        "snapshots": found.snapshots.all()[:50],
    }
    return render_page(request, "lookup/record.html", context)


def told_fields(record: Record) -> list[tuple[str, Any]]:
    """The last answer's plain fields by name, lists and objects as a count, until the kind has a page of its own."""
    told = codec.parse(record.answer) if record.answer else {}
    return [
        (name, f"{len(value)} entries" if isinstance(value, list | dict) else value)
        for name, value in told.items()
    ]


@requires("lookup.add")
def add(request: StaffRequest) -> HttpResponse:
    """Add a record that exists at the service, by its uuid."""
    form = AddForm(request.POST or None, initial=request.GET.dict())
    if form.is_valid() and is_proven(request, form):
        fields = {name: form.cleaned_data[name] for name in ("kind", "uuid", "borrower_uuid", "label")}
        added = services.add(Actor.of(request), **fields)
        toasts.success(request, f"{added} was added.")
        return done(request, added.get_absolute_url())
    return render_page(request, "lookup/add.html", {"form": form}, status=422 if form.is_bound else 200)


def is_proven(request: StaffRequest, form: AddForm) -> bool:
    """Whether the service knows the given account as this borrower's; true where none is given."""
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
    form.add_error(
        "proof", "The lending service knows no loan or line with this identifier of this borrower."
    )
    return False


@requires("lookup.correct")
def correct(request: StaffRequest, kind: str, uuid: str) -> HttpResponse:
    """Correct the name or the owner of a record, with a reason."""
    found = get_object_or_404(Record, kind=kind, uuid=uuid)
    form = CorrectForm(request.POST or None, record=found)
    if form.is_valid():
        if changes := form.changes():
            services.correct(Actor.of(request), found, changes=changes, reason=form.cleaned_data["reason"])
            toasts.success(request, "The registry was corrected.")
        else:
            toasts.info(request, "Nothing was changed: there was nothing to correct.")
        return done(request, found.get_absolute_url())
    log_record(request, found)
    context = {"form": form, "record": found}
    return render_page(request, "lookup/correct.html", context, status=422 if form.is_bound else 200)


@requires("lookup.archive")
def archive(request: StaffRequest, kind: str, uuid: str) -> HttpResponse:
    """Take a record out of lists and search, or bring it back, with a reason."""
    found = get_object_or_404(Record, kind=kind, uuid=uuid)
    form = ArchiveForm(request.POST or None, initial={"act": "restore" if found.archived_at else "archive"})
    if form.is_valid():
        archived = form.cleaned_data["act"] == "archive"
        services.archive(Actor.of(request), found, archived=archived, reason=form.cleaned_data["reason"])
        toasts.success(request, "The record is archived." if archived else "The record is back.")
        return done(request, found.get_absolute_url())
    stays = [
        f"{number:,} {(kind.label if number == 1 else searching.PLURALS[kind]).lower()}"
        for kind, number in ({} if found.archived_at else services.left_behind(found)).items()
    ]
    log_record(request, found)
    context = {"form": form, "record": found, "stays": stays}
    return render_page(request, "lookup/archive.html", context, status=422 if form.is_bound else 200)


@require_POST
@requires("lookup.refresh_portfolio")
def refresh_portfolio(request: StaffRequest) -> HttpResponse:
    """Read every known account again in the background, or join the one that does it already."""
    job = start(tasks.refresh_portfolio, by=Actor.of(request), older_than=0)
    return done(request, reverse("operations:job", args=[job.pk]))


@takes_files(2)
@requires("lookup.import_records")
def import_records(request: StaffRequest) -> HttpResponse:
    """Have files of ids and profiles taken in, and see what came of the latest ones."""
    form = ImportForm(request.POST or None, request.FILES or None)
    if form.is_valid():
        day = datetime.combine(form.cleaned_data["exported_on"], time(), timezone.get_current_timezone())
        kept = [
            services.upload(Actor.of(request), what=what, file=file, told_at=day)
            for what in Upload.What.values
            if (file := form.cleaned_data[what])
        ]
        if len(kept) == 1:
            return done(request, kept[0].get_absolute_url())
        toasts.success(request, "Both files are being taken in. What comes of them is told on their pages.")
        return done(request, request.path)
    context = {"form": form, "uploads": Upload.objects.all()[:10]}
    return render_page(request, "lookup/import.html", context, status=422 if form.is_bound else 200)


@requires("lookup.import_records")
def imported(request: StaffRequest, upload_id: int) -> HttpResponse:
    """How far a file is, and then what came of every line."""
    upload = get_object_or_404(Upload, pk=upload_id)
    log_list(request, count=len(upload.refused))
    job = Job.objects.filter(pk=upload.job_id).first() if upload.job_id else None
    context = {"upload": upload, "job": job, "shown": upload.refused[:REASONS_SHOWN]}
    return render_page(request, "lookup/imported.html", context, partial="imported")


@require_safe
@requires("lookup.import_records")
def export_refused(request: StaffRequest, upload_id: int) -> HttpResponseBase:
    """The refused lines of a file, all that are kept."""
    upload = get_object_or_404(Upload, pk=upload_id)
    append(
        Actor.of(request),
        "lookup.export",
        subject_label=f"import {upload.pk}",
        detail={"upload": upload.pk, "rows": len(upload.refused)},
    )
    return list_file(request, f"refused-{upload.pk}", ["Line", "Why it was refused"], upload.refused)
