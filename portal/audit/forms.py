"""The form to resolve a write whose answer was lost."""

from typing import Any

from django.db import transaction

from portal.audit.models import Actor, WriteIntent
from portal.audit.writes import resolve
from portal.registry import store
from portal.registry.models import Kind, Source
from portal.registry.query import uuid_in
from portal.ui.forms import ChoiceField, RadioCards, StaffForm, TextField

State = WriteIntent.State
CREATED_KIND = {"borrowers.create_commercial": Kind.BORROWER, "applications.submit": Kind.APPLICATION}


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
            choice.choices = [("yes", "It was created"), ("no", "It was not created")]
            choice.widget.meanings = {
                "yes": "The new record is added here.",
                "no": "Duplicates are unblocked; the request can be sent again.",
            }
        else:
            del self.fields["uuid"]
            choice.choices = [("yes", "It was changed"), ("no", "It was not changed")]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if self.kind and data.get("found") == "yes" and "uuid" not in self.errors:
            text = data.get("uuid", "")
            uuid = uuid_in(text) or text
            if problem := self._problem(uuid):
                self.add_error("uuid", problem)
            data["uuid"] = uuid
        return data

    def _problem(self, uuid: str) -> str:
        if not uuid:
            return "Enter the ID of the new record."
        if not store.IDENTIFIER.fullmatch(uuid):
            return "Use up to 64 letters, digits, dashes or underscores."
        others = WriteIntent.objects.filter(operation=self.intent.operation, subject_uuid=uuid)
        if others.exclude(pk=self.intent.pk).exists():
            return "Another request created that record. Check it before you resolve this one."
        known = store.find(self.kind or "", uuid)
        if known and self.intent.borrower_uuid and known.borrower_uuid != self.intent.borrower_uuid:
            return f"This ID is on file as {known} under another borrower."
        return ""

    def apply(self, actor: Actor) -> bool:
        """Resolve the write, and add the created record; false if somebody else was faster."""
        intent, reason, uuid = self.intent, self.cleaned_data["reason"], self.cleaned_data.get("uuid", "")
        if self.cleaned_data["found"] != "yes":
            return resolve(intent, actor, State.RELEASED, reason=reason, note="not carried out")
        note, subject = f"found {uuid}".strip(), (self.kind.value, uuid) if self.kind else None
        with transaction.atomic():
            is_resolved = resolve(intent, actor, State.CONFIRMED, reason=reason, note=note, subject=subject)
            if is_resolved and self.kind and not store.find(self.kind, uuid):
                label = intent.label[:300] if self.kind == Kind.BORROWER else ""
                item = store.Observation(
                    kind=self.kind, uuid=uuid, borrower_uuid=intent.borrower_uuid, label=label
                )
                store.save([item], source=Source.STAFF, by=actor.name)
        return is_resolved
