"""Forms that add, correct, archive and import records."""

from datetime import date
from io import BytesIO
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from portal.core.business_date import business_date
from portal.lookup.imports import header_problem, open_lines, record_with_short_id, uuid_problem
from portal.records.models import NAMED_KINDS, Answered, Borrower, Kind
from portal.records.query import uuid_in
from portal.records.rows import records_of
from portal.ui import wording
from portal.ui.forms import ChoiceField, DayField, DayInput, StaffForm, TextField
from portal.ui.uploads import max_file_bytes, too_large_message

KINDS = [(kind.value, kind.label) for kind in NAMED_KINDS]
MAX_HEADER_BYTES = 10_000
NAME_NEEDED = "Enter the borrower’s name. The service can’t provide it."


class UuidField(TextField):
    """An ID of the service, extracted from pasted text."""

    def clean(self, value: object) -> str:
        text = str(super().clean(value))
        uuid = uuid_in(text) or text
        if uuid and (problem := uuid_problem(uuid)):
            raise forms.ValidationError(f"The ID {problem}.")
        return uuid


class AddForm(StaffForm):
    """A record that exists at the service but is not on file yet."""

    kind = ChoiceField(label="Type", choices=KINDS)
    uuid = UuidField(label="ID (UUID)", max_length=300)
    label = TextField(
        label="Name",
        max_length=300,
        error_messages={"required": NAME_NEEDED},
    )
    borrower_uuid = UuidField(
        label="Borrower ID",
        max_length=300,
        help_text="The borrower the record belongs to.",
        error_messages={"required": "Choose the borrower. The service finds it only under its borrower."},
    )
    proof = UuidField(
        label="One of the borrower’s loans or lines",
        max_length=300,
        required=False,
        help_text="To verify the borrower’s ID at the service.",
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
        if kind and uuid and (found := records_of(kind).filter(uuid=uuid).first()):
            self.add_error("uuid", f"Already on file as {wording.with_full_stop(found)}")
            self.existing = found
        elif kind and uuid and (found := record_with_short_id(kind, uuid)):
            self.add_error("uuid", f"That’s the short ID of {found}, which is already on file.")
            self.existing = found
        owner = data.get("borrower_uuid")
        if kind != Kind.BORROWER and owner and (found := record_with_short_id(Kind.BORROWER, owner)):
            self.add_error("borrower_uuid", f"That’s the short ID of {found}. Enter all of it: {found.uuid}.")
        return data


class OpenAsForm(StaffForm):
    """The kind and owner of an unknown ID: the service reads accounts only under their borrower."""

    kind = forms.ChoiceField(
        choices=[(kind.value, kind.label) for kind in (Kind.LOAN, Kind.LINE, Kind.APPLICATION)]
    )
    uuid = UuidField(max_length=300)
    borrower_uuid = forms.ModelChoiceField(
        Borrower.objects.filter(archived_at__isnull=True), to_field_name="uuid"
    )


class CorrectForm(StaffForm):
    """A new name or another owner for a record."""

    label = TextField(
        label="Name",
        max_length=300,
        required=False,
        error_messages={"required": NAME_NEEDED},
    )
    borrower_uuid = UuidField(label="Borrower ID", max_length=300)
    reason = TextField(label="Reason")

    def __init__(self, *args: object, record: Answered, **kwargs: object) -> None:
        self.record = record
        initial = {"label": record.label, "borrower_uuid": record.borrower_uuid}
        super().__init__(*args, initial=initial, **kwargs)
        if record.kind == Kind.BORROWER:
            del self.fields["borrower_uuid"]
            self.fields["label"].required = True

    def clean_borrower_uuid(self) -> str:
        owner = str(self.cleaned_data["borrower_uuid"])
        if not Borrower.objects.filter(uuid=owner).exists():
            raise forms.ValidationError("This borrower isn’t on file. Add the borrower first.")
        return owner

    def changes(self) -> dict[str, list[str]]:
        """Map each changed field to its values before and after."""
        return {
            name: [getattr(self.record, name), value]
            for name, value in self.cleaned_data.items()
            if name in ("label", "borrower_uuid") and value != getattr(self.record, name)
        }


class ArchiveForm(StaffForm):
    """The reason and the intended action, since the record may have changed while the form was open."""

    act = ChoiceField(choices=[("archive", "Archive"), ("restore", "Restore")], widget=forms.HiddenInput)
    reason = TextField(label="Reason")


class RecordsField(forms.FileField):
    """A file of records, which isn't labeled as optional although another one may be given instead."""

    default_error_messages = {"empty": "The file is empty.", "invalid": "No file received. Choose it again."}

    def clean(self, data: Any, initial: Any = None) -> "UploadedFile[bytes] | None":
        file: UploadedFile[bytes] | None = super().clean(data, initial) if data else None
        if file and (file.size or 0) > max_file_bytes():
            raise forms.ValidationError(f"{too_large_message()} Import it in parts.")
        return file


class ImportForm(StaffForm):
    """Files exported from the lender's own records."""

    nothing_happened = "Nothing was imported."

    ids = RecordsField(
        label="IDs (CSV)",
    )
    profiles = RecordsField(
        label="Profiles (JSON Lines)",
    )
    exported_on = DayField(
        label="Exported on",
        initial=business_date,
        widget=DayInput,
        help_text="Newer data from the service is kept.",
    )

    def clean_ids(self) -> "UploadedFile[bytes] | None":
        """Reject a file of another kind before it is stored."""
        file: UploadedFile[bytes] | None = self.cleaned_data["ids"]
        if file:
            problem = header_problem(open_lines(BytesIO(file.read(MAX_HEADER_BYTES))).readline())
            file.seek(0)
            if problem:
                raise forms.ValidationError(f"{problem[0].upper()}{problem[1:]}.")
        return file

    def clean_exported_on(self) -> date:
        day: date = self.cleaned_data["exported_on"]
        if day > business_date():
            raise forms.ValidationError("This date is in the future.")
        return day

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        if not data.get("ids") and not data.get("profiles") and not self.errors:
            self.add_error("ids", "Choose a file of IDs, a file of profiles, or both.")
        return data
