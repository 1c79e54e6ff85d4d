"""Adding, correcting and archiving what the registry knows."""

from datetime import date
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils import timezone

from portal.lookup.imports import uuid_problem
from portal.registry.models import NAMED_KINDS, Kind, Record
from portal.registry.query import uuid_in
from portal.ui import wording
from portal.ui.forms import ChoiceField, DayField, DayInput, StaffForm, TextField
from portal.ui.uploads import largest_file, too_large

KINDS = [(kind.value, kind.label) for kind in NAMED_KINDS]
NAME_NEEDED = "Give the borrower's name: the service offers no read of borrowers."


class UuidField(TextField):
    """An identifier of the service, found in whatever was pasted."""

    def clean(self, value: object) -> str:
        text = str(super().clean(value))
        uuid = uuid_in(text) or text
        if uuid and (problem := uuid_problem(uuid)):
            raise forms.ValidationError(f"The identifier {problem}.")
        return uuid


class AddForm(StaffForm):
    """A record that exists at the service and is not known here yet."""

    kind = ChoiceField(label="What it is", choices=KINDS)
    uuid = UuidField(label="Identifier (uuid)", max_length=300)
    label = TextField(
        label="Name",
        max_length=300,
        help_text="Needed for a borrower: the service cannot tell us. Otherwise optional.",
        error_messages={"required": NAME_NEEDED},
    )
    borrower_uuid = UuidField(
        label="Borrower's identifier",
        max_length=300,
        help_text="Needed for everything but a borrower: whose it is.",
        error_messages={"required": "Say whose it is: the service reads it only under its borrower."},
    )
    proof = UuidField(
        label="A loan or line of theirs",
        max_length=300,
        required=False,
        help_text="For a borrower: the service is asked for it, which proves that the identifier is right.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.is_bound:
            is_borrower = self["kind"].value() == Kind.BORROWER
            self.fields["label"].required = is_borrower
            self.fields["borrower_uuid"].required = not is_borrower

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        kind, uuid = data.get("kind"), data.get("uuid")
        if kind == Kind.BORROWER:
            data["borrower_uuid"] = uuid
        if kind and uuid and (found := Record.objects.filter(kind=kind, uuid=uuid).first()):
            self.add_error("uuid", f"Already known here as {wording.ended(found)}")
            self.existing = found
        return data


class OpenAsForm(StaffForm):
    """What an identifier is taken for, and whose it is: the service reads accounts only under their borrower."""

    kind = forms.ChoiceField(
        choices=[(kind.value, kind.label) for kind in (Kind.LOAN, Kind.LINE, Kind.APPLICATION)]
    )
    uuid = UuidField(max_length=300)
    borrower_uuid = forms.ModelChoiceField(
        Record.objects.filter(kind=Kind.BORROWER, archived_at__isnull=True), to_field_name="uuid"
    )


class CorrectForm(StaffForm):
    """A better name or the right owner for a record."""

    label = TextField(
        label="Name",
        max_length=300,
        required=False,
        error_messages={"required": NAME_NEEDED},
    )
    borrower_uuid = UuidField(label="Borrower's identifier", max_length=300)
    reason = TextField(label="Reason")

    def __init__(self, *args: object, record: Record, **kwargs: object) -> None:
        self.record = record
        initial = {"label": record.label, "borrower_uuid": record.borrower_uuid}
        super().__init__(*args, initial=initial, **kwargs)
        if record.kind == Kind.BORROWER:
            del self.fields["borrower_uuid"]
            self.fields["label"].required = True

    def clean_borrower_uuid(self) -> str:
        owner = str(self.cleaned_data["borrower_uuid"])
        if not Record.objects.filter(kind=Kind.BORROWER, uuid=owner).exists():
            raise forms.ValidationError(
                "No borrower with this identifier is known here. Add the borrower first."
            )
        return owner

    def changes(self) -> dict[str, list[str]]:
        """Field to its value before and after, only what differs."""
        return {
            name: [getattr(self.record, name), value]
            for name, value in self.cleaned_data.items()
            if name in ("label", "borrower_uuid") and value != getattr(self.record, name)
        }


class ArchiveForm(StaffForm):
    """Why, and which of the two was meant: the record may have moved since the form was drawn."""

    act = ChoiceField(choices=[("archive", "Archive"), ("restore", "Restore")], widget=forms.HiddenInput)
    reason = TextField(label="Reason")


def is_not_too_large(file: "UploadedFile[bytes]") -> None:
    """Refuse what would keep the page waiting for minutes."""
    if (file.size or 0) > largest_file():
        raise forms.ValidationError(f"{too_large()} Import it in parts, or with manage.py import_ids.")


class ImportForm(StaffForm):
    """Files from the lender's own records."""

    ids = forms.FileField(
        label="Identifiers (CSV)",
        required=False,
        validators=[is_not_too_large],
        help_text="The first line names the columns: kind,uuid,borrower_uuid,label. "
        f"A kind is one of {', '.join(NAMED_KINDS)}.",
    )
    profiles = forms.FileField(
        label="Profiles (JSON Lines)",
        required=False,
        validators=[is_not_too_large],
        help_text="One user object a line.",
    )
    exported_on = DayField(
        label="Exported on",
        initial=timezone.localdate,
        widget=DayInput,
        help_text="The profiles are marked with this day, and hide no answer that is newer.",
    )

    def clean_exported_on(self) -> date:
        day: date = self.cleaned_data["exported_on"]
        if day > timezone.localdate():
            raise forms.ValidationError("This day has not come yet.")
        return day

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        if not data.get("ids") and not data.get("profiles") and not self.errors:
            raise forms.ValidationError("Choose a file of identifiers, a file of profiles, or both.")
        return data
