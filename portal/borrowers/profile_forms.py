"""The profile forms: the editable fields, and the final form.

Hides that an unchanged field is neither checked nor sent, and that secrets and reports are entered when sending.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.forms.boundfield import BoundField

from portal.borrowers.forms import (
    ADDRESS_FIELDS,
    NAMES,
    SEE_ABOVE,
    AddressForm,
    BusinessPhoneField,
    SendForm,
    birth_day_field,
    profile_address,
)
from portal.borrowers.reports import ReportField, json_problems, xml_problems
from portal.ui.forms import REPLACEMENT, UNSTORABLE, ChoiceField, EmailField, PersonNameField, TextField
from servicing import rules

REPORTS = {"credit_report", "asset_report"}
GIVEN_LATER = {"ssn": "SSN", "credit_report": "Credit report", "asset_report": "Asset report"}
"""Secrets and reports that the form only announces; they are entered when sending."""
NEEDS_REASON = {*NAMES, "address", "ssn"}
NAME_HELP = "Letters, spaces, commas, periods, apostrophes and hyphens."
KnownValues = Mapping[str, str | None]
"""The last known values by field name; an address by its parts."""


def known_value(unit: str, known: KnownValues) -> Any:
    return profile_address(known) if unit == "address" else known.get(unit)


class ProfileForm(AddressForm):
    """The base of all profile forms. ``known`` are the last known values, ``version`` is the copy they are from."""

    field_order = (*NAMES, "title", "email", "phone", *ADDRESS_FIELDS, "dob")
    sensitive_title: ClassVar[str]
    check_values = '{"action": "check"}'

    version = forms.CharField(widget=forms.HiddenInput, required=False)
    reason = forms.CharField(widget=forms.HiddenInput, required=False)
    email = EmailField(label="Email")
    phone = BusinessPhoneField(label="Phone", help_text="Any US format.")

    def __init__(self, data: Any = None, *, known: KnownValues, version: str, url: str) -> None:
        super().__init__(data, initial={**known, "version": version}, url=url)
        self.known = known
        self._warn_about_unsendable_names()

    @property
    def groups(self) -> list[tuple[str, list[tuple[BoundField, str, bool]]]]:
        """The fields in the profile's groups, each with its last known text and whether it is unchanged."""
        groups = {"Name": (*NAMES, "title"), "Contact": ("email", "phone"), "Address": ADDRESS_FIELDS}
        present = {title: [name for name in names if name in self.fields] for title, names in groups.items()}
        return [
            (title, [(self[name], self.shown(name), self.is_as_shown(name)) for name in names])
            for title, names in present.items()
        ]

    @property
    def sensitive(self) -> list[BoundField]:
        """The fields that the service never returns, collapsed until needed."""
        names = ["dob", *(f"with_{name}" for name in GIVEN_LATER)]
        return [self[name] for name in names if name in self.fields]

    @property
    def opens_sensitive(self) -> bool:
        return any(field.errors or not self.is_as_shown(field.name) for field in self.sensitive)

    def is_as_shown(self, name: str) -> bool:
        """Whether a field still has the text that was shown in it, or wasn't posted."""
        value = self[name].data if self.is_bound else None
        if isinstance(value, list):  # The boxes of a date are shown empty.
            value = "".join(part or "" for part in value)
        return not value if value in (None, False, True) else as_posted(value) == as_posted(self.shown(name))

    def shown(self, name: str) -> str:
        """The last known value as text in its field."""
        return self.fields[name].prepare_value(self.known.get(name)) or ""

    def clean(self) -> dict[str, Any]:
        """Skip the rules for unchanged fields."""
        for name in filter(self.is_as_shown, self.live_names):
            self.errors.pop(name, None)
            self.fields[name].accepted = ""  # type: ignore[attr-defined]
        if not all(map(self.is_as_shown, ADDRESS_FIELDS)):
            self.check_address()
        self.check_phone()
        return self.cleaned_data

    @property
    def phone_warnings(self) -> list[str]:
        return [] if self.is_as_shown("phone") else super().phone_warnings

    @property
    def zip_warnings(self) -> list[str]:
        return super().zip_warnings if self.address != profile_address(self.known) else []

    # --- What would change: single fields, and the address as one ---

    @property
    def units(self) -> list[str]:
        """The units that can be changed, in reading order. The address is one unit."""
        names = ("address" if name in ADDRESS_FIELDS else name for name in self.live_names)
        return list(dict.fromkeys(names))

    def label_of(self, unit: str) -> str:
        """The label of a unit or of a secret entered later."""
        field = self.fields.get(unit)
        return GIVEN_LATER.get(unit) or str(field.label if field else unit.replace("_", " ").capitalize())

    def value(self, name: str) -> Any:
        """The typed value, else the known one."""
        return self.known.get(name) if self.is_as_shown(name) else super().value(name)

    def new_value(self, unit: str) -> Any:
        return self.address if unit == "address" else self.value(unit)

    @property
    def changes(self) -> dict[str, Any]:
        """The changes from the last known values, as arguments of the client; None clears a field."""
        values = {unit: self.new_value(unit) for unit in self.units}
        return {unit: value for unit, value in values.items() if value != known_value(unit, self.known)}

    @property
    def later(self) -> list[str]:
        """The secrets and reports to be entered when sending."""
        return [name for name in GIVEN_LATER if self.cleaned_data.get(f"with_{name}")]

    @property
    def sent_units(self) -> list[str]:
        """The units that are sent, including those entered later."""
        return [*self.changes, *self.later]

    @property
    def needs_reason(self) -> bool:
        return not NEEDS_REASON.isdisjoint(self.sent_units)

    def add_service_errors(self, messages: Iterable[str]) -> None:
        """Show the service's reasons above the form, and mark the fields they name."""
        self.add_rejection(*messages)
        self.nothing_happened = "Nothing was changed."
        named = set(re.findall(r"\w+", " ".join(messages).casefold()))
        for name in filter(named.__contains__, self.live_names):
            self.add_error(name, SEE_ABOVE)

    def _warn_about_unsendable_names(self) -> None:
        for name in [name for name in NAMES if name in self.fields and self.is_as_shown(name)]:
            text = self.known.get(name)
            if reasons := rules.name_problems(text) if text else []:
                for words in ("The service rejects this name on updates.", *reasons):
                    self.warn(name, words)


def as_posted(text: Any) -> str:
    """A text as a browser posts it from a one-line field."""
    return UNSTORABLE.sub(REPLACEMENT, str(text)).replace("\r", "").replace("\n", "").strip()


class BusinessProfile(ProfileForm):
    sensitive_title = "Reports"

    first_name = PersonNameField(
        label="Legal business name", max_length=rules.MAX_LEGAL_NAME_CHARACTERS, help_text=NAME_HELP
    )
    with_credit_report = forms.BooleanField(label="Send a credit report (XML)", required=False)
    with_asset_report = forms.BooleanField(label="Send an asset report (JSON)", required=False)


class UnknownProfile(BusinessProfile):
    """A profile of unknown type, business or person, so no SSN can be sent."""

    first_name = PersonNameField(label="First name, or legal business name", help_text=NAME_HELP)
    middle_name = PersonNameField(label="Middle name", required=False)
    last_name = PersonNameField(label="Last name", required=False)


class PersonProfile(ProfileForm):
    sensitive_title = "Date of birth and SSN"

    first_name = PersonNameField(label="First name")
    middle_name = PersonNameField(label="Middle name", required=False)
    last_name = PersonNameField(label="Last name")
    dob = birth_day_field(help_text="Leave empty to keep the current value.")
    with_ssn = forms.BooleanField(label="Send an SSN", required=False)


class IndividualProfile(PersonProfile):
    sensitive_title = "Date of birth, SSN and reports"

    with_credit_report = forms.BooleanField(label="Send a credit report (XML)", required=False)
    with_asset_report = forms.BooleanField(label="Send an asset report (JSON)", required=False)


class KeyPersonProfile(PersonProfile):
    title = ChoiceField(label="Title")

    def __init__(self, data: Any = None, *, known: KnownValues, **kwargs: Any) -> None:
        super().__init__(data, known=known, **kwargs)
        title = known.get("title") or ""
        unknown = [(title, title or "Choose")] if title not in rules.TITLES else []
        self.fields["title"].choices = [*unknown, *rules.TITLES.items()]  # type: ignore[attr-defined]


class ProfileSendForm(SendForm):
    """The final form: SSN, reports and the reason."""

    credit_report = ReportField(
        label="Credit report", problems=xml_problems, accept=".xml,text/xml,application/xml"
    )
    asset_report = ReportField(label="Asset report", problems=json_problems, accept=".json,application/json")
    reason = TextField(
        max_length=200,
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Enter a reason."},
        help_text="Kept in the audit trail, not sent. Up to 200 characters.",
    )
    again = forms.BooleanField(
        label="Send it again",
        help_text="The earlier change may already be done.",
        error_messages={"required": "Confirm that you want to send it again."},
    )

    def __init__(
        self, *args: Any, profile: ProfileForm, needs_approval: bool, is_repeated: bool, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        # Secrets are never stored, so they are entered only once they may be sent.
        later = [] if needs_approval else profile.later
        reason = self.fields["reason"]
        reason.required = needs_approval or profile.needs_reason
        if needs_approval:
            self.nothing_happened = "Nothing was requested."
            reason.help_text = "Shown to the approver and kept in the audit trail. Up to 200 characters."
        if not is_repeated:
            del self.fields["again"]
        self.add_confirmations(zip_warnings=profile.zip_warnings, phone_warnings=profile.phone_warnings)
        if "ssn" in later:
            self.add_number("ssn", "SSN", rules.ssn_problems, "3-2-4", help_text="Nine digits.")
        for name in REPORTS.difference(later):
            del self.fields[name]
        for name in REPORTS.intersection(later):
            self._measure_when_chosen(name, profile.url)

    def _measure_when_chosen(self, name: str, url: str) -> None:
        field = self.fields[name]
        field.widget.attrs |= {
            "hx-post": url,
            "hx-trigger": "change",
            "hx-target": "next .sd-note",
            "hx-sync": "this:replace",
            "hx-encoding": "multipart/form-data",
            "hx-vals": '{"action": "measure"}',
            "hx-params": f"action,{name}",
        }
        again = "Choose the file again. " if self.is_bound else ""
        field.help_text = f"{again}At most {settings.UPLOAD_LIMIT_MB} MB before compression."
