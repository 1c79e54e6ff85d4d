"""What may be changed of a profile, and what is typed last, just before it is sent.

Hides which fields each kind of borrower has, that what is left as it was shown is neither checked nor sent, and that
the service takes an address only whole. SSN and reports are not typed here but with the sending: they wait nowhere.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.forms.boundfield import BoundField

from portal.borrowers.forms import (
    ADDRESS_FIELDS,
    ALONE,
    BirthDayField,
    NumberField,
    StateField,
    confirmed_zip_field,
)
from portal.borrowers.profiles import NAMES, Known, parts_of, text_of, values_of
from portal.borrowers.reports import ReportField, json_problems, xml_problems
from portal.ui.forms import (
    NOT_STORABLE,
    UNREADABLE,
    ChoiceField,
    EmailField,
    PersonNameField,
    SecretDigitsField,
    StaffForm,
    TextField,
    WriteForm,
)
from servicing import Address, rules

REPORTS = {"credit_report", "asset_report"}
LATER = {"ssn": "SSN", "credit_report": "Credit report", "asset_report": "Asset report"}
"""What is announced on the form and given with the sending."""
NAME_HELP = "Letters, one space, and , . ' - between letters."
REFUSED = "The lending service did not accept this; its words stand above."
LIVE = ALONE | {"hx-trigger": "blur changed", "hx-vals": '{"action": "check"}'}
MEASURE = {
    "hx-trigger": "change",
    "hx-target": "next .sd-note",
    "hx-sync": "this:replace",
    "hx-encoding": "multipart/form-data",
    "hx-vals": '{"action": "measure"}',
}


class ProfileForm(StaffForm):
    """What every profile has. ``known`` is what was last told of it, ``version`` the copy that told it."""

    nothing_happened = "Nothing was sent."
    problem_fields: ClassVar = {f"address.{name}": name for name in ADDRESS_FIELDS}
    field_order = (*NAMES, "title", "email", "phone", *ADDRESS_FIELDS, "dob")
    groups_of_fields: ClassVar[dict[str, tuple[str, ...]]] = {
        "Name": (*NAMES, "title"),
        "Contact": ("email", "phone"),
        "Address": ADDRESS_FIELDS,
    }
    sensitive_title: ClassVar[str]

    version = forms.CharField(widget=forms.HiddenInput, required=False)
    reason = forms.CharField(widget=forms.HiddenInput, required=False)
    email = EmailField(label="E-mail")
    phone = NumberField(label="Phone", help_text="Any US notation; sent as 10 digits.")
    line_1 = TextField(label="Address line 1", max_length=rules.MAX_ADDRESS_LINE)
    line_2 = TextField(label="Address line 2", max_length=rules.MAX_ADDRESS_LINE, required=False)
    line_3 = TextField(label="Address line 3", max_length=rules.MAX_ADDRESS_LINE, required=False)
    city = TextField(label="City", max_length=rules.MAX_ADDRESS_LINE)
    state = StateField(label="State", help_text="Type a name or a code.")
    zip = TextField(label="ZIP code", max_length=20, help_text="5 digits, or 9 as in 78701-1234.")

    def __init__(self, data: Any = None, *, known: Known, version: str, url: str = "") -> None:
        super().__init__(data, initial={**known, "version": version})
        self.known = known
        self.url = url
        for name in self.typed_names:
            self.fields[name].widget.attrs.update(LIVE, **{"hx-post": url})
        self._say_which_names_cannot_be_sent()

    @property
    def typed_names(self) -> list[str]:
        """The fields that are filled in, as against ticked or carried along."""
        return [name for name in self.field_order if name in self.fields]

    @property
    def groups(self) -> list[tuple[str, list[BoundField]]]:
        """The fields as they stand on the profile."""
        return [
            (title, [self[name] for name in names if name in self.fields])
            for title, names in self.groups_of_fields.items()
        ]

    @property
    def sensitive(self) -> list[BoundField]:
        """What the service never returns; closed until it is needed."""
        return [self[name] for name in ("dob", *(f"with_{name}" for name in LATER)) if name in self.fields]

    @property
    def opens_sensitive(self) -> bool:
        """Whether something stands there, so that it must be seen."""
        return any(field.errors or not self.is_as_shown(field.name) for field in self.sensitive)

    # --- What was typed ---

    def is_as_shown(self, name: str) -> bool:
        """Whether a field was left alone: it holds the very text that was shown in it, or did not come at all."""
        value = self[name].data if self.is_bound else None
        if isinstance(value, list):  # day boxes, in which nothing is shown
            value = "".join(part or "" for part in value)
        return not value if value in (None, False, True) else as_posted(value) == as_posted(self.shown(name))

    def shown(self, name: str) -> str:
        """The text of the last known value in its field."""
        return self.fields[name].prepare_value(self.known.get(name)) or ""

    @property
    def typed(self) -> dict[str, str]:
        """What was typed, as it was typed, under the names that bind it again."""
        names = [
            f"{name}{suffix}"
            for name, field in self.fields.items()
            for suffix in ("", *getattr(field.widget, "widgets_names", ()))
        ]
        return {name: str(self.data[name]) for name in names if name in self.data}

    def clean(self) -> dict[str, Any]:
        """Forgive what was left alone, whatever the rules say of it; look at the address as a whole."""
        for name in filter(self.is_as_shown, self.typed_names):
            self.errors.pop(name, None)
            self.fields[name].accepted = ""  # type: ignore[attr-defined]
        if not all(map(self.is_as_shown, ADDRESS_FIELDS)):
            found = rules.address_field_problems(self.address, country=settings.SERVICING_COUNTRY)
            for name in found.keys() & set(ADDRESS_FIELDS) - self.errors.keys():
                self.add_error(name, found[name])
            for text in self.zip_warnings:
                self.warn("zip", text)
        return self.cleaned_data

    @property
    def zip_warnings(self) -> list[str]:
        """What is confirmed about the ZIP code before a changed address is sent."""
        is_changed = self.values_of("address") != values_of("address", self.known)
        return rules.address_warnings(self.address).get("zip", []) if is_changed else []

    # --- What it means: single fields, and the address as one ---

    @property
    def units(self) -> list[str]:
        """The names under which something can be changed, in reading order."""
        return [
            "address" if name == "line_1" else name
            for name in self.typed_names
            if name not in ADDRESS_FIELDS[1:]
        ]

    def label_of(self, name: str) -> str:
        """What a unit, or what is given later, is called."""
        field = self.fields.get(name)
        return LATER.get(name) or str(field.label if field else name.replace("_", " ").capitalize())

    def now(self, name: str) -> str:
        """The last known value as people read it."""
        return text_of(name, self.known)

    def new(self, name: str) -> str:
        """The value as it would be, as people read it."""
        return text_of(name, self.values_of(name))

    def values_of(self, name: str) -> dict[str, Any]:
        """The value as it would be, by its parts."""
        return {part: self.value(part) for part in parts_of(name)}

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from the last known values, as the library takes it; None empties a field."""
        return {
            name: self.address if name == "address" else self.value(name)
            for name in self.units
            if self.values_of(name) != values_of(name, self.known)
        }

    @property
    def later(self) -> list[str]:
        """What was announced to be given with the sending."""
        return [name for name in LATER if self.cleaned_data.get(f"with_{name}")]

    @property
    def address(self) -> Address:
        """The whole address as it would be sent."""
        parts = {name: self.value(name) for name in ADDRESS_FIELDS}
        return Address(country=settings.SERVICING_COUNTRY, **parts)

    def value(self, name: str) -> Any:
        """What a field stands for now: what was typed, else what is known."""
        return self.known.get(name) if self.is_as_shown(name) else self.cleaned_data.get(name) or None

    def add_refusal(self, words: Iterable[str]) -> None:
        """The lending service refused: its words above the form, a mark on the fields they name."""
        self.add_rejection(*words)
        self.nothing_happened = "Nothing was changed."
        named = set(re.findall(r"\w+", " ".join(words).casefold()))
        for name in filter(named.__contains__, self.typed_names):
            self.add_error(name, REFUSED)

    def _say_which_names_cannot_be_sent(self) -> None:
        for name in [name for name in NAMES if name in self.fields and self.is_as_shown(name)]:
            text = self.known.get(name)
            if reasons := rules.name_problems(text) if text else []:
                self.warn(name, "It stays as it is: updates of the lending service refuse this name.")
                for reason in reasons:
                    self.warn(name, reason)


class BusinessProfile(ProfileForm):
    sensitive_title = "Reports"

    first_name = PersonNameField(
        label="Legal business name", max_length=rules.MAX_LEGAL_NAME, help_text=NAME_HELP
    )
    with_credit_report = forms.BooleanField(label="Send a credit report (XML)", required=False)
    with_asset_report = forms.BooleanField(label="Send an asset report (JSON)", required=False)


class UnknownProfile(BusinessProfile):
    """Nobody told yet whether this is a business or a person, so there is no SSN to send."""

    first_name = PersonNameField(label="First name, or legal business name", help_text=NAME_HELP)
    middle_name = PersonNameField(label="Middle name", required=False)
    last_name = PersonNameField(label="Last name", required=False)


class PersonProfile(ProfileForm):
    sensitive_title = "Date of birth and SSN"

    first_name = PersonNameField(label="First name", help_text=NAME_HELP)
    middle_name = PersonNameField(label="Middle name", required=False)
    last_name = PersonNameField(label="Last name")
    dob = BirthDayField(label="Date of birth", required=False, help_text="Left empty, it stays as it is.")
    with_ssn = forms.BooleanField(label="Send an SSN", required=False)


class IndividualProfile(PersonProfile):
    sensitive_title = "Date of birth, SSN and reports"

    with_credit_report = forms.BooleanField(label="Send a credit report (XML)", required=False)
    with_asset_report = forms.BooleanField(label="Send an asset report (JSON)", required=False)


class KeyPersonProfile(PersonProfile):
    title = ChoiceField(label="Title")

    def __init__(self, data: Any = None, *, known: Known, **kwargs: Any) -> None:
        super().__init__(data, known=known, **kwargs)
        last = known.get("title") or ""
        unheard = [(last, last or "Choose")] if last not in rules.TITLES else []
        self.fields["title"].choices = [*unheard, *rules.TITLES.items()]  # type: ignore[attr-defined]


class SendForm(WriteForm):
    """What is typed last: the reason, and what is kept nowhere."""

    ssn = SecretDigitsField(rule=rules.ssn_problems, label="SSN", help_text="Nine digits.")
    ssn_again = SecretDigitsField(rule=rules.ssn_problems, label="SSN again", help_text="To catch a slip.")
    credit_report = ReportField(
        label="Credit report", problems=xml_problems, accept=".xml,text/xml,application/xml"
    )
    asset_report = ReportField(label="Asset report", problems=json_problems, accept=".json,application/json")
    reason = TextField(
        max_length=200,
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Say why: a change like this needs a reason."},
        help_text="Kept in the audit trail, not sent to the service. 200 characters at most.",
    )

    again = forms.BooleanField(
        label="Send it again",
        help_text="It may already be done. The same values are sent once more.",
        error_messages={"required": "Confirm that you want to send it again."},
    )

    def __init__(
        self,
        data: Any = None,
        files: Any = None,
        *,
        later: Sequence[str],
        must_explain: bool,
        url: str,
        waits: bool = False,
        is_repeated: bool = False,
        zip_warnings: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(data, files, **kwargs)
        if not is_repeated:
            del self.fields["again"]
        if zip_warnings:
            self.fields["zip_checked"] = confirmed_zip_field(zip_warnings)
        later = [] if waits else later  # What is kept nowhere is given once it may be sent.
        self.fields["reason"].required = must_explain or waits
        if waits:
            self.nothing_happened = "Nothing was asked for."
            self.fields[
                "reason"
            ].help_text = "Whoever approves reads it; kept in the audit trail. 200 characters at most."
        wanted = {*later, "ssn_again"} if "ssn" in later else {*later}
        for name in {*LATER, "ssn_again"} - wanted:
            del self.fields[name]
        for name in REPORTS & wanted:
            only = {"hx-post": url, "hx-params": f"action,{name}"}
            self.fields[name].widget.attrs.update(MEASURE, **only)
            again = "Choose it again, nothing of it was kept. " if self.is_bound else ""
            self.fields[name].help_text = f"{again}At most {settings.UPLOAD_LIMIT_MB} MB before compression."

    def clean(self) -> dict[str, Any]:
        typed = self.cleaned_data
        if {"ssn", "ssn_again"} <= typed.keys() and typed["ssn"] != typed["ssn_again"]:
            self.add_error("ssn_again", "The two entries differ; enter both again.")
        return typed


def as_posted(text: Any) -> str:
    """A text as a browser gives it back from a field of one line."""
    return NOT_STORABLE.sub(UNREADABLE, str(text)).replace("\r", "").replace("\n", "").strip()
