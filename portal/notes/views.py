"""Adds, unpins and finishes notes and follow-ups. Each action appends one audit entry in the same transaction."""

from datetime import date, timedelta
from typing import Any, Protocol

from django import forms
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from portal.accounts.models import User
from portal.accounts.roles import ACTS, requires
from portal.audit.chain import AlreadySaved, append, audit_subject, entry_subject
from portal.audit.models import Actor
from portal.audit.reading import name_in_sentence
from portal.audit.view_log import log_page
from portal.core.business_date import business_date
from portal.notes.models import FollowUp, Note
from portal.records.models import Borrower
from portal.records.rows import records_of
from portal.ui.forms import DayField, NearDayInput, StaffForm, TextField
from portal.ui.htmx import finish_action, render_page, toast

MAX_DAYS_AHEAD = 366


def colleagues() -> QuerySet[User]:
    """Active staff who may work on borrowers and accounts, by name, as far as their names need it."""
    active: QuerySet[User] = User.objects.filter(is_active=True, role__in=ACTS["notes.add"].roles)
    return active.order_by("first_name", "last_name", "pk").only("first_name", "last_name", "username")


class Subject(Protocol):
    def get_absolute_url(self) -> str: ...


class FutureDayField(DayField):
    widget = NearDayInput

    def validate(self, value: date | None) -> None:
        super().validate(value)
        if value and value < business_date():
            raise forms.ValidationError("Choose today or later.")


class NearDayField(FutureDayField):
    """A day within a year."""

    def validate(self, value: date | None) -> None:
        super().validate(value)
        if value and value > business_date() + timedelta(days=MAX_DAYS_AHEAD):
            raise forms.ValidationError("Choose a day within a year.")


class ColleagueField(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django's own cannot be subscripted
    """An active staff member who may write follow-ups."""

    default_error_messages = {
        "invalid_choice": "Choose a colleague who works here.",
        "required": "Choose a colleague.",
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(colleagues(), **kwargs)

    def label_from_instance(self, obj: User) -> str:
        return obj.display_name()


class NoteForm(StaffForm):
    """A note, optionally pinned as a warning until a day."""

    text = TextField(label="Note", max_length=2000, widget=forms.Textarea({"rows": 3, "autofocus": True}))
    pinned_until = FutureDayField(label="Pin as a warning until", required=False)


class FollowUpForm(StaffForm):
    """A task with a due date, for oneself or a colleague."""

    title = TextField(label="Task", max_length=200, widget=forms.TextInput({"autofocus": True}))
    due = NearDayField(label="Due")
    owner = ColleagueField(label="Assign to", required=False, empty_label="Me")


@requires("notes.add")
def add(request: HttpRequest, kind: str, uuid: str) -> HttpResponse:
    record = get_object_or_404(records_of(kind), uuid=uuid)
    return add_note(request, record, ("Borrowers", reverse("borrowers:index")), **audit_subject(record))


def add_note(request: HttpRequest, subject: Subject, crumb: tuple[str, str], **about: str) -> HttpResponse:
    """Add a note to anything that has a page; ``crumb`` names the page above."""
    form = NoteForm(request.POST or None)
    if not form.is_valid():
        return _form_page(request, form, "note", subject, crumb, about)
    actor = Actor.of(request)
    try:
        with transaction.atomic():
            Note.objects.create(author_id=actor.id or 0, author_name=actor.name, **about, **form.cleaned_data)
            append(actor, "notes.add", subject_label=str(subject), **about)
        toast(request, "Note added.")
    except AlreadySaved as error:
        toast(request, str(error))
    return finish_action(request, subject.get_absolute_url())


@requires("notes.add")
def add_follow_up(request: HttpRequest, borrower_uuid: str) -> HttpResponse:
    record = get_object_or_404(Borrower, uuid=borrower_uuid)
    form = FollowUpForm(request.POST or None)
    if not form.is_valid():
        crumb = ("Borrowers", reverse("borrowers:index"))
        return _form_page(request, form, "follow-up", record, crumb, audit_subject(record))
    try:
        with transaction.atomic():
            plan_follow_up(Actor.of(request), record, **form.cleaned_data)
        toast(request, "Follow-up added.")
    except AlreadySaved as error:
        toast(request, str(error))
    return finish_action(request, record.get_absolute_url())


def plan_follow_up(actor: Actor, record: Borrower, *, title: str, due: date, owner: User | None) -> None:
    """Save a follow-up for the owner, or for the person who acts."""
    FollowUp.objects.create(
        borrower_uuid=record.uuid,
        title=title,
        due=due,
        owner_id=owner.pk if owner else actor.id or 0,
        owner_name=owner.audit_name() if owner else actor.name,
    )
    detail = {"for": owner.audit_name()} if owner else {}
    append(actor, "notes.add_follow_up", detail=detail, **entry_subject(record))


def _form_page(
    request: HttpRequest,
    form: StaffForm,
    noun: str,
    subject: Subject,
    crumb: tuple[str, str],
    about: dict[str, str],
) -> HttpResponse:
    log_page(request, subject_label=str(subject), **about)
    context: dict[str, Any] = {
        "crumbs": [crumb, (str(subject), subject.get_absolute_url())],
        "crumb": f"Add {noun}",
        "title": f"{noun.capitalize()} on {name_in_sentence(str(subject))}",
        "text": "Internal. Never sent to the service or shown to borrowers.",
        "action": request.path,
        "act": f"Add {noun}",
        "safe": "Cancel",
        "back": subject.get_absolute_url(),
        "form": form,
    }
    return render_page(
        request, "ui/question.html", context, partial="dialog", status=422 if form.is_bound else 200
    )


@requires("notes.add")
@require_POST
def unpin(request: HttpRequest, note_id: int) -> HttpResponse:
    """Turn a pinned warning into an ordinary note."""
    note = get_object_or_404(Note, pk=note_id)
    with transaction.atomic():
        Note.objects.filter(pk=note.pk).update(pinned_until=None)
        append(Actor.of(request), "notes.unpin", borrower_uuid=note.borrower_uuid, subject_label=str(note))
    return finish_action(request, reverse("borrowers:detail", args=[note.borrower_uuid]))


@requires("notes.add")
@require_POST
def finish(request: HttpRequest, follow_up_id: int) -> HttpResponse:
    """Mark a follow-up as done, once."""
    follow_up = get_object_or_404(FollowUp, pk=follow_up_id)
    actor, borrower_uuid = Actor.of(request), follow_up.borrower_uuid
    with transaction.atomic():
        is_open = FollowUp.objects.filter(pk=follow_up.pk, done_at=None)
        if is_open.update(done_at=timezone.now(), done_by=actor.name):
            append(actor, "notes.finish", borrower_uuid=borrower_uuid, subject_label=str(follow_up))
    return finish_action(request, reverse("borrowers:detail", args=[borrower_uuid]))
