"""The forms to resolve a write whose answer was lost, and to correct that."""

from itertools import chain
from typing import Any

from django import forms
from django.db import transaction
from django.utils import timezone

from portal.audit.chain import append, entry_subject
from portal.audit.evidence import CREATED_KIND
from portal.audit.models import Actor, Entry, WriteIntent
from portal.audit.writes import CORRECT, RESOLVE, correctable, resolutions, resolve
from portal.records import store
from portal.records.models import NAMED_KINDS, Account, Answered, Application, KeyPerson, Kind, Source
from portal.records.query import uuid_in
from portal.records.rows import active_records, records_by_key, records_of
from portal.ui.forms import ChoiceField, RadioCards, StaffForm, TextField

State = WriteIntent.State


class ResolveForm(StaffForm):
    """Whether the write was carried out, the evidence, and the ID of the created record."""

    nothing_happened = "The outcome is still unknown."

    found = ChoiceField(
        label="What did the service say?",
        widget=RadioCards,
        error_messages={"required": "Choose what the service said."},
    )
    uuid = TextField(
        label="ID (UUID)",
        max_length=300,
        required=False,
        help_text="As reported by the service. The record is added here.",
    )
    reason = TextField(
        label="Reason",
        max_length=300,
        help_text="Who confirmed it and when. Internal, kept in the audit trail.",
    )

    def __init__(self, *args: Any, intent: WriteIntent, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.intent = intent
        self.kind = CREATED_KIND.get(intent.operation)
        choice: Any = self.fields["found"]
        if self.kind:
            choice.choices = [("yes", "Created"), ("no", "Not created")]
            choice.widget.meanings = {
                "yes": "The new record is added here.",
                "no": "Duplicates are unblocked; the request can be sent again.",
            }
        else:
            del self.fields["uuid"]
            choice.choices = [("yes", "Applied"), ("no", "Not applied")]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if self.kind and data.get("found") == "yes" and "uuid" not in self.errors:
            uuid = uuid_in(data.get("uuid", "")) or ""
            if problem := self._problem(uuid, is_empty=not data.get("uuid")):
                self.add_error("uuid", problem)
            data["uuid"] = uuid
        return data

    def _problem(self, uuid: str, *, is_empty: bool) -> str:
        if is_empty:
            return "Enter the ID of the new record."
        if not uuid:
            return "Enter the ID as the service writes it, like 3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364."
        if WriteIntent.objects.filter(subject_uuid=uuid).exclude(pk=self.intent.pk).exists():
            return "Another request is about that record. Check it before you resolve this one."
        on_file = records_by_key((kind, uuid) for kind in NAMED_KINDS)
        known: Answered | None = next(chain.from_iterable(on_file), None)
        if known and not resolutions(self.intent).filter(subject_uuid=uuid).exists():
            noun, owner = known.get_kind_display().lower(), store.find(Kind.BORROWER, known.borrower_uuid)
            of = f" of {owner}" if owner and owner != known else ""
            return f"This ID is on file as {noun} {known}{of}. Enter the ID of the record that this request created."
        if not known and _owns_records(uuid):
            return "Records on file belong to a borrower with this ID. Enter the ID of the record that was created."
        return ""

    def apply(self, actor: Actor) -> bool:
        """Resolve the write, and add the created record; false if somebody else was faster."""
        return self._record(actor, before=State.UNKNOWN, action=RESOLVE)

    def _record(self, actor: Actor, *, before: str, action: str) -> bool:
        intent, reason, uuid = self.intent, self.cleaned_data["reason"], self.cleaned_data.get("uuid", "")
        why: dict[str, Any] = {"reason": reason, "before": before, "action": action}
        if self.cleaned_data["found"] != "yes":
            nobody = ("", "") if self.kind and intent.subject_uuid else None
            return resolve(intent, actor, State.RELEASED, note="not carried out", subject=nobody, **why)
        note, subject = f"found {uuid}".strip(), (self.kind.value, uuid) if self.kind else None
        with transaction.atomic():
            is_resolved = resolve(intent, actor, State.CONFIRMED, note=note, subject=subject, **why)
            if is_resolved and self.kind:
                self._put_on_file(actor, uuid)
        return is_resolved

    def _put_on_file(self, actor: Actor, uuid: str) -> None:
        kind, intent = self.kind or Kind.BORROWER, self.intent
        archived = records_of(kind).filter(uuid=uuid, archived_at__isnull=False)
        if not archived.update(archived_at=None):
            label = intent.label[:300] if kind == Kind.BORROWER else ""
            item = store.Observation(kind=kind, uuid=uuid, borrower_uuid=intent.borrower_uuid, label=label)
            store.save([item], source=Source.STAFF, by=actor.name)


class CorrectForm(ResolveForm):
    """What is true instead of what was recorded about a lost answer."""

    nothing_happened = "The recorded result stays."

    corrects = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, resolution: Entry, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, initial={"corrects": resolution.pk})
        self.resolution = resolution
        if "uuid" in self.fields:
            self.fields["uuid"].help_text = "As reported by the service. The record is added here."

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        state = {"yes": State.CONFIRMED, "no": State.RELEASED}.get(data.get("found", ""))
        is_same_id = data.get("uuid", "") == self.intent.subject_uuid
        if state == self.intent.state and (state == State.RELEASED or not self.kind or is_same_id):
            self.add_error("found", "This is what is recorded already.")
        return data

    def apply(self, actor: Actor) -> bool:
        """Correct the recorded result; false if somebody else was faster. The wrong record is archived."""
        wrong = self.intent.subject_uuid if self.kind else ""
        with transaction.atomic():
            current = WriteIntent.objects.select_for_update().get(pk=self.intent.pk)
            if correctable(current) != self.resolution:
                return False
            is_corrected = self._record(actor, before=current.state, action=CORRECT)
            if wrong and wrong != self.intent.subject_uuid:
                self._archive(actor, wrong)
        return is_corrected

    def _archive(self, actor: Actor, uuid: str) -> None:
        """Archive the record that the wrong ID put on file, unless more is known about it by now."""
        found = active_records(self.kind or "").filter(uuid=uuid, answer_at__isnull=True)
        record = found.first()
        if record and not _owns_records(uuid):
            found.update(archived_at=timezone.now())
            append(actor, "lookup.archive", **entry_subject(record), reason=self.cleaned_data["reason"])


def _owns_records(uuid: str) -> bool:
    """Whether anything on file belongs to a borrower with this ID."""
    return any(one.objects.filter(borrower_uuid=uuid).exists() for one in (Account, Application, KeyPerson))
