"""What a supervisor found out about a write whose answer was lost."""

from typing import Any

from django.db import transaction

from portal.audit.intents import resolve
from portal.audit.models import Actor, WriteIntent
from portal.registry import memory
from portal.registry.models import Kind, Source
from portal.registry.query import uuid_in
from portal.ui.forms import ChoiceField, RadioCards, StaffForm, TextField

MADE_BY = {"borrowers.create_commercial": Kind.BORROWER, "applications.submit": Kind.APPLICATION}


class ResolveForm(StaffForm):
    """Found or not, how that is known, and the identifier of what was created."""

    nothing_happened = "The write is still unknown."

    found = ChoiceField(label="What did the lending service say?", widget=RadioCards)
    uuid = TextField(
        label="Identifier (uuid)",
        max_length=300,
        required=False,
        help_text="As the lending service gives it. It becomes known here, with a page of its own.",
    )
    reason = TextField(
        label="Reason",
        max_length=300,
        help_text="Who said so, and when. Colleagues and auditors read it; it is not sent.",
    )

    def __init__(self, *args: Any, intent: WriteIntent, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.intent = intent
        self.kind = MADE_BY.get(intent.operation)
        choice: Any = self.fields["found"]
        if self.kind:
            choice.choices = [("yes", "It was created"), ("no", "It was not created")]
            choice.widget.meanings = {
                "yes": "Its identifier is added to what this desk knows.",
                "no": "The block is released: an equal one may be sent.",
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
            return "Give the identifier: without it nobody finds what was created."
        if not memory.IDENTIFIER.fullmatch(uuid):
            return "It may hold letters, digits, dashes and underscores only, at most 64."
        others = WriteIntent.objects.filter(operation=self.intent.operation, subject_uuid=uuid)
        if others.exclude(pk=self.intent.pk).exists():
            return "Another write created that one; look at it before you settle this."
        known = memory.find(self.kind or "", uuid)
        if known and self.intent.borrower_uuid and known.borrower_uuid != self.intent.borrower_uuid:
            return f"It is known here as {known}, of another borrower."
        return ""


def settle_as(form: ResolveForm, intent: WriteIntent, actor: Actor) -> bool:
    """Write down what was found, and make known what was created; false if somebody else was faster."""
    reason, is_found = form.cleaned_data["reason"], form.cleaned_data["found"] == "yes"
    if not is_found:
        return resolve(intent, actor, WriteIntent.State.RELEASED, reason=reason, note="not carried out")
    uuid = form.cleaned_data.get("uuid", "")
    subject = (form.kind.value, uuid) if form.kind else None
    with transaction.atomic():
        done = resolve(
            intent,
            actor,
            WriteIntent.State.CONFIRMED,
            reason=reason,
            note=f"found {uuid}".strip(),
            subject=subject,
        )
        if done and form.kind and not memory.find(form.kind, uuid):
            _make_known(intent, form.kind, actor)
    return done


def _make_known(intent: WriteIntent, kind: Kind, actor: Actor) -> None:
    label = intent.label if kind == Kind.BORROWER else ""
    item = memory.Known(
        kind=kind, uuid=intent.subject_uuid, borrower_uuid=intent.borrower_uuid, label=label[:300]
    )
    memory.remember([item], source=Source.STAFF, by=actor.name)
