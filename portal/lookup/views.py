"""Search, and keeping the registry true: add by uuid, import, correct, archive."""

from datetime import datetime, time
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.gateway import StaffRequest
from portal.lookup import services
from portal.lookup.forms import AddForm, ArchiveForm, CorrectForm, ImportForm
from portal.lookup.imports import Report, import_ids, import_profiles, lines_of
from portal.registry.lists import with_borrowers
from portal.registry.models import SEARCHED_KINDS, Kind, Record
from portal.registry.query import uuid_in
from portal.registry.search import matching
from portal.ui.htmx import done, render_page
from servicing import codec

PER_GROUP = {"suggestions": 5, "results": 50}


@requires("lookup.search")
def search(request: StaffRequest) -> HttpResponse:
    """Everything known that matches, grouped by kind; an unknown uuid offers to add it."""
    query = request.GET.get("q", "").strip()[:500]
    known = Record.objects.filter(archived_at__isnull=True)
    limit = PER_GROUP["suggestions" if request.htmx.target == "suggestions" else "results"]
    groups = []
    for kind in SEARCHED_KINDS if query else []:
        found = matching(known.filter(kind=kind), query).order_by("label", "-id")[: limit + 1]
        if rows := list(found):
            groups.append((kind, with_borrowers(rows[:limit]), len(rows) > limit))
    context = {
        "query": query,
        "search_text": query,
        "groups": groups,
        "unknown_uuid": None if groups else uuid_in(query),
        "may_add": request.can("lookup.add"),
    }
    return render_page(request, "lookup/search.html", context, partial=("suggestions", "results"))


@requires("lookup.search")
def record(request: StaffRequest, kind: str, uuid: str) -> HttpResponse:
    """One known record: what was last told, when, and whose it is."""
    found = get_object_or_404(Record, kind=kind, uuid=uuid)
    owner = Record.objects.filter(kind=Kind.BORROWER, uuid=found.borrower_uuid).first()
    context = {
        "record": found,
        "owner": owner,
        "fields": told_fields(found),
        "snapshots": found.snapshots.all()[:50],
        "may_correct": request.can("lookup.correct"),
        "may_archive": request.can("lookup.archive"),
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
    if form.is_valid():
        fields = {name: form.cleaned_data[name] for name in ("kind", "uuid", "borrower_uuid", "label")}
        added = services.add(Actor.of(request), **fields)
        messages.success(request, f"{added} was added.")
        return done(request, added.get_absolute_url())
    return render_page(request, "lookup/add.html", {"form": form}, status=422 if form.is_bound else 200)


@requires("lookup.correct")
def correct(request: StaffRequest, kind: str, uuid: str) -> HttpResponse:
    """Correct the name or the owner of a record, with a reason."""
    found = get_object_or_404(Record, kind=kind, uuid=uuid)
    form = CorrectForm(request.POST or None, record=found)
    if form.is_valid():
        if changes := form.changes():
            services.correct(Actor.of(request), found, changes=changes, reason=form.cleaned_data["reason"])
            messages.success(request, "The registry was corrected.")
        else:
            messages.info(request, "Nothing was changed: there was nothing to correct.")
        return done(request, found.get_absolute_url())
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
        messages.success(request, "The record is archived." if archived else "The record is back.")
        return done(request, found.get_absolute_url())
    context = {"form": form, "record": found}
    return render_page(request, "lookup/archive.html", context, status=422 if form.is_bound else 200)


@requires("lookup.import_records")
def import_records(request: StaffRequest) -> HttpResponse:
    """Import files of ids and profiles; the page tells what came of every line."""
    form = ImportForm(request.POST or None, request.FILES or None)
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        actor = Actor.of(request)
        day = datetime.combine(form.cleaned_data["exported_on"], time(), timezone.get_current_timezone())
        takers = {"ids": import_ids, "profiles": partial(import_profiles, at=day)}
        chosen = {name: form.cleaned_data[name] for name in takers if form.cleaned_data[name]}
        context["reports"] = [(file.name, _taken(actor, file, takers[name])) for name, file in chosen.items()]
        return render_page(request, "lookup/import.html", context)
    return render_page(request, "lookup/import.html", context, status=422 if form.is_bound else 200)


def _taken(actor: Actor, file: Any, take: Any) -> Report:
    report: Report = take(lines_of(file), by=actor.name)
    detail = {"taken": report.taken, "refused": len(report.refused)}
    append(actor, "lookup.import_records", subject_label=file.name[:300], detail=detail)
    return report
