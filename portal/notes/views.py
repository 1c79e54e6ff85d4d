"""Adding notes and follow-ups, and being done with them. Each leaves one audit entry in the same transaction."""

from typing import Protocol

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.sightings import log_page, log_record
from portal.notes.forms import FollowUpForm, NoteForm
from portal.notes.models import FollowUp, Note
from portal.registry.models import Record
from portal.ui.htmx import done, render_page, toast


class Subject(Protocol):
    """What a note may be on."""

    def get_absolute_url(self) -> str: ...


@requires("notes.add")
def add(request: HttpRequest, kind: str, uuid: str) -> HttpResponse:
    """A note on a record."""
    record = get_object_or_404(Record, kind=kind, uuid=uuid)
    return write(request, record, ("Borrowers", reverse("borrowers:index")), **about(record))


def write(request: HttpRequest, subject: Subject, place: tuple[str, str], **told: str) -> HttpResponse:
    """The form of a note on something that has a page; ``place`` is what lies above that page."""
    form = NoteForm(request.POST or None)
    if form.is_valid():
        actor = Actor.of(request)
        with transaction.atomic():
            Note.objects.create(author_id=actor.id or 0, author_name=actor.name, **told, **form.cleaned_data)
            append(actor, "notes.add", subject_label=str(subject), **told)
        toast(request, "The note was added.")
        return done(request, subject.get_absolute_url())
    log_page(
        request,
        kind=told["subject_kind"],
        uuid=told["subject_uuid"],
        label=str(subject),
        borrower_uuid=told["borrower_uuid"],
    )
    context = {"form": form, "record": subject, "place": place, "title": f"Note on {subject}"}
    status = 422 if form.is_bound else 200
    return render_page(request, "notes/form.html", context | {"act": "Add the note"}, status=status)


@requires("notes.add")
@require_POST
def unpin(request: HttpRequest, note_id: int) -> HttpResponse:
    """A pinned warning becomes an ordinary note."""
    note = get_object_or_404(Note, pk=note_id)
    with transaction.atomic():
        Note.objects.filter(pk=note.pk).update(pinned_until=None)
        append(Actor.of(request), "notes.unpin", borrower_uuid=note.borrower_uuid, subject_label=str(note))
    return done(request, reverse("borrowers:detail", args=[note.borrower_uuid]))


@requires("notes.add")
def add_follow_up(request: HttpRequest, borrower_uuid: str) -> HttpResponse:
    """Something to do about a borrower, owned by whoever writes it."""
    record = get_object_or_404(Record, kind="borrower", uuid=borrower_uuid)
    form = FollowUpForm(request.POST or None)
    if form.is_valid():
        actor = Actor.of(request)
        with transaction.atomic():
            FollowUp.objects.create(
                borrower_uuid=borrower_uuid,
                owner_id=actor.id or 0,
                owner_name=actor.name,
                **form.cleaned_data,
            )
            append(actor, "notes.add_follow_up", subject_label=str(record), **about(record))
        toast(request, "The follow-up was added.")
        return done(request, record.get_absolute_url())
    log_record(request, record)
    place = ("Borrowers", reverse("borrowers:index"))
    context = {"form": form, "record": record, "place": place, "title": f"Follow-up on {record}"}
    context["act"] = "Add the follow-up"
    return render_page(request, "notes/form.html", context, status=422 if form.is_bound else 200)


@requires("notes.add")
@require_POST
def finish(request: HttpRequest, follow_up_id: int) -> HttpResponse:
    """A follow-up is done."""
    follow_up = get_object_or_404(FollowUp, pk=follow_up_id)
    actor = Actor.of(request)
    with transaction.atomic():
        if FollowUp.objects.filter(pk=follow_up.pk, done_at=None).update(
            done_at=timezone.now(), done_by=actor.name
        ):
            label = str(follow_up)
            append(actor, "notes.finish", borrower_uuid=follow_up.borrower_uuid, subject_label=label)
    return done(request, reverse("borrowers:detail", args=[follow_up.borrower_uuid]))


def about(record: Record) -> dict[str, str]:
    """What an audit entry says of a record."""
    return {"subject_kind": record.kind, "subject_uuid": record.uuid, "borrower_uuid": record.borrower_uuid}
