"""Forms of borrowers: the steps of onboarding, a profile, and what is typed last, just before sending.

Hides the service's limits behind a note under each field, that a profile's field left as it was shown is neither
checked nor sent, that the service takes an address only as a whole, and that secrets and reports come with the sending.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.forms.boundfield import BoundField

from portal.borrowers.reports import ReportField, json_problems, xml_problems
from portal.ui import wording
from portal.ui.forms import (
    REPLACEMENT,
    UNSTORABLE,
    ChoiceField,
    DayField,
    EmailField,
    PersonNameField,
    PhoneField,
    RadioCards,
    SecretDigitsField,
    StaffForm,
    TextField,
    WriteForm,
    raise_errors,
)
from servicing import Address, NewKeyPerson, rules

NAMES = ("first_name", "middle_name", "last_name")
ADDRESS_FIELDS = ("line_1", "line_2", "line_3", "city", "state", "zip")
SEE_ABOVE = "The service rejected this; see its message above."
# Each field is checked by itself: in one queue, a field that its answer replaces would drop the checks behind it.
CHECK_ATTRS = {"hx-target": "closest .sd-field", "hx-sync": "closest .sd-field:queue last"}


def profile_address(parts: Mapping[str, Any]) -> Address:
    """An address as it is sent; an empty line is None."""
    lines = {name: parts.get(name) or None for name in ADDRESS_FIELDS}
    return Address(country=settings.SERVICING_COUNTRY, **lines)


# --- Fields ---


class LegalNameField(TextField):
    rule = staticmethod(rules.legal_name_problems)


class CodeField(TextField):
    """A two-letter code, found by code or by name: the box searches a list of both."""

    def __init__(self, *, names: Mapping[str, str], options: str, **kwargs: Any) -> None:
        super().__init__(widget=forms.TextInput(attrs={"list": options, "autocomplete": "off"}), **kwargs)
        self.codes = {word.casefold(): code for code, name in names.items() for word in (code, name)}

    def to_python(self, value: Any) -> str:
        text = super().to_python(value) or ""
        return self.codes.get(text.casefold(), text)


class CountryField(CodeField):
    @staticmethod
    def rule(text: str) -> list[str]:
        return rules.citizenship_problems(text)

    def clean(self, value: Any) -> str:
        code: str = super().clean(value)
        self.accepted = f"Sent as {code}"
        return code


class StateField(CodeField):
    def clean(self, value: Any) -> str:
        code: str = super().clean(value)
        self.accepted = rules.US_STATES.get(code, "")
        return code


class BusinessPhoneField(PhoneField):
    accepted = "A US number of 10 digits"


class RuledDayField(DayField):
    """A day that a rule compares with today at the service."""

    def __init__(self, *, rule: Callable[..., list[str]], accepted: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rule, self.accepted_text = rule, accepted

    def clean(self, value: Any) -> date | None:
        day: date | None = super().clean(value)
        today = rules.today_in(settings.SERVICING_TIME_ZONE)
        raise_errors(self.rule(day, today=today) if day else [])
        self.accepted = self.accepted_text if day else ""
        return day


def birth_day_field(**kwargs: Any) -> RuledDayField:
    return RuledDayField(
        rule=rules.birth_date_problems,
        accepted=f"{rules.ADULT_AGE_YEARS} or older",
        label="Date of birth",
        required=False,
        **kwargs,
    )


def confirmation_field(label: str, error: str, **kwargs: Any) -> forms.BooleanField:
    """A box that is never ticked in advance."""
    widget = forms.CheckboxInput(check_test=lambda _: False)
    return forms.BooleanField(label=label, widget=widget, error_messages={"required": error}, **kwargs)


# --- What onboarding and profiles share ---


class LiveForm(StaffForm):
    """A form whose fields are checked as they are left, and whose typed text can be bound again."""

    nothing_happened = "Nothing was sent."
    check_values = '{"act": "check"}'

    def __init__(self, data: Any = None, files: Any = None, *, url: str = "", **kwargs: Any) -> None:
        super().__init__(data, files, **kwargs)
        self.url = url
        self.left_out: list[str] = []
        for name in self.live_names:
            widget = self.fields[name].widget
            live = {"hx-post": url, "hx-vals": self.check_values, "hx-trigger": _check_trigger(widget)}
            widget.attrs.update(CHECK_ATTRS | live)

    @property
    def live_names(self) -> list[str]:
        """The fields that are filled in, as against ticked or carried along."""
        return [name for name in self.field_order or self.fields if name in self.fields]

    @property
    def typed(self) -> dict[str, str]:
        """The typed text, under the names that bind it again."""
        names = [
            f"{name}{suffix}"
            for name, field in self.fields.items()
            if not isinstance(field, forms.FileField)
            for suffix in ("", *getattr(field.widget, "widgets_names", ()))
        ]
        values = {name: self.data.get(self.add_prefix(name)) for name in names}
        return {name: str(value) for name, value in values.items() if value is not None}

    def forgive_missing(self) -> None:
        """Treat fields that are not filled in yet as left out, not as wrong."""
        for name, errors in list(self.errors.as_data().items()):
            if all(error.code == "required" for error in errors):
                self.left_out.append(name)
                del self.errors[name]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is wrong and nothing is left out."""
        return not self.errors and not self.left_out

    def is_requirement_met(self, name: str) -> bool:
        """Whether a field holds what the service requires of it."""
        return name in self.cleaned_data and name not in self.errors


def _check_trigger(widget: forms.Widget) -> str:
    """Check as soon as something is chosen; a select changes with every key pressed in it, so wait until it is left."""
    is_at_once = isinstance(widget, (forms.RadioSelect, forms.CheckboxInput, forms.FileInput))
    return "change" if is_at_once else "blur changed"


class AddressForm(LiveForm):
    """A US address. The service verifies streets and cities."""

    problem_fields: ClassVar = {f"address.{name}": name for name in ADDRESS_FIELDS}

    line_1 = TextField(label="Address line 1", max_length=rules.MAX_ADDRESS_LINE_CHARACTERS)
    line_2 = TextField(label="Address line 2", max_length=rules.MAX_ADDRESS_LINE_CHARACTERS, required=False)
    line_3 = TextField(label="Address line 3", max_length=rules.MAX_ADDRESS_LINE_CHARACTERS, required=False)
    city = TextField(label="City", max_length=rules.MAX_ADDRESS_LINE_CHARACTERS)
    state = StateField(
        names=rules.US_STATES, options="states", label="State", help_text="Type a name or a code."
    )
    zip = TextField(label="ZIP code", max_length=20, help_text="5 digits, or 9 as in 78701-1234.")

    def clean(self) -> dict[str, Any]:
        self.check_address()
        return self.cleaned_data

    def check_address(self) -> None:
        """Check what concerns several parts of the address."""
        found = rules.address_field_problems(self.address, country=settings.SERVICING_COUNTRY)
        for name in found.keys() & (set(ADDRESS_FIELDS) - self.errors.keys()):
            self.add_error(name, found[name])
        for text in self.zip_warnings:
            self.warn("zip", text)
        is_plain = "zip" not in self.errors and not self.warnings.get("zip")
        if is_plain and (state := rules.US_STATES.get(self.value("state") or "")):
            self.fields["zip"].accepted = f"In {state}"  # type: ignore[attr-defined]

    def value(self, name: str) -> Any:
        """The present value of a field."""
        return self.cleaned_data.get(name) or None

    @property
    def address(self) -> Address:
        """The address as it would be sent."""
        return profile_address({name: self.value(name) for name in ADDRESS_FIELDS})

    @property
    def zip_warnings(self) -> list[str]:
        """What is confirmed about the ZIP code before the address is sent."""
        return rules.address_warnings(self.address).get("zip", [])

    @property
    def one_line(self) -> str:
        """The address as people read it out, as far as it is typed."""
        lines = [self.value(name) for name in ("line_1", "line_2", "line_3", "city")]
        place = " ".join(filter(None, (self.value("state"), self.value("zip"))))
        return ", ".join(filter(None, [*lines, place]))


# --- The steps of onboarding ---


class BusinessForm(LiveForm):
    first_name = LegalNameField(
        label="Legal business name",
        max_length=rules.MAX_LEGAL_NAME_CHARACTERS,
        help_text="As on the formation document, including LLC, Inc. or LP.",
    )
    entity = ChoiceField(
        label="Business type", choices=list(rules.ENTITIES.items()), widget=RadioCards(rules.ENTITY_MEANINGS)
    )
    email = EmailField(label="Business email")
    phone = BusinessPhoneField(label="Business phone", help_text="Any US format.")
    incorporated_on = RuledDayField(
        rule=rules.incorporation_date_problems,
        label="Incorporation date",
        required=False,
        help_text="As on the formation document.",
    )

    def clean(self) -> dict[str, Any]:
        for text in rules.legal_name_warnings(self.cleaned_data.get("first_name", "")):
            self.warn("first_name", text)
        return self.cleaned_data


class PersonForm(AddressForm):
    """One key person, with the business's address or one of their own."""

    field_order = (
        *(*NAMES, "title", "citizenship", "dob"),
        *("email", "phone", "same_address", *ADDRESS_FIELDS),
    )
    BLANK: ClassVar = {"same_address": "on", "citizenship": rules.COUNTRIES["US"]}

    first_name = PersonNameField(label="First name")
    middle_name = PersonNameField(label="Middle name", required=False)
    last_name = PersonNameField(label="Last name")
    title = ChoiceField(label="Title", choices=[("", "Choose"), *rules.TITLES.items()])
    citizenship = CountryField(
        names=rules.COUNTRIES,
        options="countries",
        label="Citizenship",
        help_text="Type the name of the country.",
    )
    dob = birth_day_field()
    email = EmailField(label="Email")
    phone = BusinessPhoneField(label="Phone")
    same_address = forms.BooleanField(label="Same address as the business", required=False)

    def __init__(self, *args: Any, number: int = 0, **kwargs: Any) -> None:
        super().__init__(*args, prefix=f"person-{number}", **kwargs)
        self.number = number
        self.subject = f"person {number + 1}"

    @property
    def title_word(self) -> str:
        """Owner, director or beneficiary, once it is chosen."""
        return rules.TITLES.get(self.cleaned_data.get("title", ""), "")

    @property
    def contact_line(self) -> str:
        """What a closed card shows of the person."""
        contact = [self.cleaned_data.get("email"), wording.phone(self.cleaned_data.get("phone"))]
        place = "same address as the business" if self.cleaned_data.get("same_address") else "own address"
        return ", ".join([*filter(None, contact), place]) if any(contact) else ""

    @property
    def name(self) -> str:
        """First, middle and last name, as far as they are typed."""
        parts = (self.data.get(self.add_prefix(part), "") for part in NAMES)
        return " ".join(part.strip() for part in parts if part.strip())[:120]

    def clean(self) -> dict[str, Any]:
        if not self.cleaned_data.get("same_address"):
            return super().clean()
        for name in ADDRESS_FIELDS:  # The fields are hidden, so whatever is in them doesn't count.
            self.errors.pop(name, None)
        return self.cleaned_data

    def is_requirement_met(self, name: str) -> bool:
        """The business's own step answers for its address."""
        is_elsewhere = name in ADDRESS_FIELDS and bool(self.cleaned_data.get("same_address"))
        return is_elsewhere or super().is_requirement_met(name)

    def key_person(self, business_address: Address) -> NewKeyPerson:
        """What is sent but for the SSN, once the form is valid."""
        names = ("first_name", "last_name", "title", "citizenship", "email", "phone", "dob")
        return NewKeyPerson(
            **{name: self.cleaned_data[name] for name in names},
            middle_name=self.value("middle_name"),
            address=business_address if self.cleaned_data["same_address"] else self.address,
        )


class ReportForm(LiveForm):
    asset_report = ReportField(
        label="Asset report", required=False, problems=json_problems, accept=".json,application/json"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        upload = {
            "hx-target": "#wizard",
            "hx-encoding": "multipart/form-data",
            "hx-vals": '{"act": "upload"}',
        }
        self.fields["asset_report"].widget.attrs.update(upload, **{"class": "sd-drop"})


# --- Profiles ---

REPORTS = {"credit_report", "asset_report"}
GIVEN_LATER = {"ssn": "SSN", "credit_report": "Credit report", "asset_report": "Asset report"}
"""What is announced on the form and given with the sending."""
NEEDS_REASON = {*NAMES, "address", "ssn"}
NAME_HELP = "Letters, one space, and , . ' - between letters."
KnownValues = Mapping[str, str | None]
"""The last known values by the names of their fields; an address by its parts."""


def fields_of(unit: str) -> Sequence[str]:
    """The fields of what is changed as one: an address, or a single field."""
    return ADDRESS_FIELDS if unit == "address" else (unit,)


def known_value(unit: str, known: KnownValues) -> Any:
    """The last known value of what is changed as one."""
    return profile_address(known) if unit == "address" else known.get(unit)


@dataclass(frozen=True)
class Clash:
    """A field that differs between the record when the form was shown, the record now, and what was typed."""

    unit: str
    label: str
    base: str
    theirs: str
    yours: str
    has_moved: bool
    """Whether the record's value changed since."""
    choice: str
    """``theirs`` or ``yours``; empty where a person must decide."""


class ProfileForm(AddressForm):
    """What every profile has. ``known`` is its last known values, ``version`` the copy they are from."""

    field_order = (*NAMES, "title", "email", "phone", *ADDRESS_FIELDS, "dob")
    groups_of_fields: ClassVar[dict[str, tuple[str, ...]]] = {
        "Name": (*NAMES, "title"),
        "Contact": ("email", "phone"),
        "Address": ADDRESS_FIELDS,
    }
    sensitive_title: ClassVar[str]
    check_values = '{"action": "check"}'

    version = forms.CharField(widget=forms.HiddenInput, required=False)
    reason = forms.CharField(widget=forms.HiddenInput, required=False)
    email = EmailField(label="Email")
    phone = BusinessPhoneField(label="Phone", help_text="Any US format.")

    def __init__(self, data: Any = None, *, known: KnownValues, version: str, url: str = "") -> None:
        super().__init__(data, initial={**known, "version": version}, url=url)
        self.known = known
        self.clashes: Sequence[Clash] = ()
        self.is_undecided = False
        """Whether the clashes were seen and something was left open."""
        self._warn_about_unsendable_names()

    @property
    def groups(self) -> list[tuple[str, list[tuple[BoundField, str, bool]]]]:
        """The fields as the profile shows them, each with its last known text and whether it still holds that."""
        return [
            (
                title,
                [
                    (self[name], self.shown(name), self.is_as_shown(name))
                    for name in names
                    if name in self.fields
                ],
            )
            for title, names in self.groups_of_fields.items()
        ]

    @property
    def sensitive(self) -> list[BoundField]:
        """What the service never returns; closed until it is needed."""
        return [
            self[name] for name in ("dob", *(f"with_{name}" for name in GIVEN_LATER)) if name in self.fields
        ]

    @property
    def opens_sensitive(self) -> bool:
        """Whether something in there must be seen."""
        return any(field.errors or not self.is_as_shown(field.name) for field in self.sensitive)

    def is_as_shown(self, name: str) -> bool:
        """Whether a field holds exactly the text that was shown in it, or wasn't posted."""
        value = self[name].data if self.is_bound else None
        if isinstance(value, list):  # The boxes of a day show nothing.
            value = "".join(part or "" for part in value)
        return not value if value in (None, False, True) else as_posted(value) == as_posted(self.shown(name))

    def shown(self, name: str) -> str:
        """The text of the last known value in its field."""
        return self.fields[name].prepare_value(self.known.get(name)) or ""

    def clean(self) -> dict[str, Any]:
        """Don't check what was left alone, whatever the rules say of it."""
        for name in filter(self.is_as_shown, self.live_names):
            self.errors.pop(name, None)
            self.fields[name].accepted = ""  # type: ignore[attr-defined]
        if not all(map(self.is_as_shown, ADDRESS_FIELDS)):
            self.check_address()
        return self.cleaned_data

    @property
    def zip_warnings(self) -> list[str]:
        return super().zip_warnings if self.address != profile_address(self.known) else []

    # --- What would change: single fields, and the address as one ---

    @property
    def units(self) -> list[str]:
        """What can be changed, in reading order; the address is one."""
        names = ("address" if name in ADDRESS_FIELDS else name for name in self.live_names)
        return list(dict.fromkeys(names))

    def label_of(self, unit: str) -> str:
        """What a unit, or what is given later, is called."""
        field = self.fields.get(unit)
        return GIVEN_LATER.get(unit) or str(field.label if field else unit.replace("_", " ").capitalize())

    def value(self, name: str) -> Any:
        """What was typed, else what is known."""
        return self.known.get(name) if self.is_as_shown(name) else super().value(name)

    def new_value(self, unit: str) -> Any:
        """The value that a unit would have."""
        return self.address if unit == "address" else self.value(unit)

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from the last known values, as the library takes it; None empties a field."""
        values = {unit: self.new_value(unit) for unit in self.units}
        return {unit: value for unit, value in values.items() if value != known_value(unit, self.known)}

    @property
    def later(self) -> list[str]:
        """What was announced to be given with the sending."""
        return [name for name in GIVEN_LATER if self.cleaned_data.get(f"with_{name}")]

    @property
    def sent_units(self) -> list[str]:
        """What is sent, now or with what is given later."""
        return [*self.changes, *self.later]

    @property
    def needs_reason(self) -> bool:
        return not NEEDS_REASON.isdisjoint(self.sent_units)

    def add_service_errors(self, messages: Iterable[str]) -> None:
        """Show the service's words above the form, and mark the fields they name."""
        self.add_rejection(*messages)
        self.nothing_happened = "Nothing was changed."
        named = set(re.findall(r"\w+", " ".join(messages).casefold()))
        for name in filter(named.__contains__, self.live_names):
            self.add_error(name, SEE_ABOVE)

    def _warn_about_unsendable_names(self) -> None:
        for name in [name for name in NAMES if name in self.fields and self.is_as_shown(name)]:
            text = self.known.get(name)
            if reasons := rules.name_problems(text) if text else []:
                self.warn(name, "Not editable: the service rejects this name on updates.")
                for reason in reasons:
                    self.warn(name, reason)


def as_posted(text: Any) -> str:
    """A text as a browser posts it from a field of one line."""
    return UNSTORABLE.sub(REPLACEMENT, str(text)).replace("\r", "").replace("\n", "").strip()


class BusinessProfile(ProfileForm):
    sensitive_title = "Reports"

    first_name = PersonNameField(
        label="Legal business name", max_length=rules.MAX_LEGAL_NAME_CHARACTERS, help_text=NAME_HELP
    )
    with_credit_report = forms.BooleanField(label="Send a credit report (XML)", required=False)
    with_asset_report = forms.BooleanField(label="Send an asset report (JSON)", required=False)


class UnknownProfile(BusinessProfile):
    """Either a business or a person, so no SSN can be sent."""

    first_name = PersonNameField(label="First name, or legal business name", help_text=NAME_HELP)
    middle_name = PersonNameField(label="Middle name", required=False)
    last_name = PersonNameField(label="Last name", required=False)


class PersonProfile(ProfileForm):
    sensitive_title = "Date of birth and SSN"

    first_name = PersonNameField(label="First name", help_text=NAME_HELP)
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


# --- What is typed last ---


class SendForm(WriteForm):
    """What is typed just before sending. Numbers in it are stored nowhere."""

    def __init__(self, data: Any = None, files: Any = None, **kwargs: Any) -> None:
        super().__init__(data, files, **kwargs)
        self.number_names: list[str] = []

    def add_number(
        self,
        name: str,
        label: str,
        rule: Callable[[str], list[str]],
        groups: str,
        *,
        help_text: str = "",
        required: bool = True,
    ) -> None:
        """Ask for a number twice, to catch a slip."""
        for each, text, hint in ((name, label, help_text), (f"{name}_again", f"Confirm {label}", "")):
            field = SecretDigitsField(rule=rule, label=text, help_text=hint, required=required)
            field.widget.attrs["data-groups"] = groups
            self.fields[each] = field
        self.number_names.append(name)

    def add_zip_confirmation(self, warnings: Sequence[str]) -> None:
        """Ask to confirm an address with the ZIP code of a bordering state."""
        if warnings:
            text = " ".join(dict.fromkeys(warnings))
            self.fields["zip_checked"] = confirmation_field(
                "I checked the ZIP code", f"{text} Then confirm.", help_text=text
            )

    def clean(self) -> dict[str, Any]:
        typed = self.cleaned_data
        for name in self.number_names:
            again = f"{name}_again"
            if not {name, again} & self.errors.keys() and typed[name] != typed[again]:
                self.add_error(again, "The entries don’t match. Enter both again.")
        return typed


class OnboardingSendForm(SendForm):
    """EIN and SSNs, and why a borrower is created that looks like a known one."""

    def __init__(
        self,
        data: Any = None,
        *,
        version: str,
        people: Iterable[str],
        must_explain: bool,
        zip_warnings: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(data, **kwargs)
        self.version = version
        self.add_number("ein", "EIN", rules.ein_problems, "2-7", help_text="Nine digits, as in 12-3456789.")
        self.fields["checked"] = confirmation_field(
            "I checked the EIN against the document", "Confirm that you checked the EIN against the document."
        )
        self.add_zip_confirmation(zip_warnings)
        for number, name in enumerate(people):
            self.add_number(f"ssn_{number}", f"SSN of {name}", rules.ssn_problems, "3-2-4", required=False)
        if must_explain:
            self.fields["reason"] = TextField(label="Reason to create anyway", max_length=200)

    def clean(self) -> dict[str, Any]:
        if self.data.get("seen") != self.version:
            changed = "The draft changed in another window. Review it below, then send it."
            self.add_error(None, changed)
        return super().clean()

    @property
    def ssns(self) -> list[str | None]:
        """For each person what was typed, once the form is valid."""
        return [self.cleaned_data[name] or None for name in self.number_names[1:]]

    @property
    def ssn_pairs(self) -> list[tuple[Any, Any]]:
        """For each person the two fields to show."""
        return [(self[name], self[f"{name}_again"]) for name in self.number_names[1:]]


class ProfileSendForm(SendForm):
    """SSN and reports that were announced, and the reason."""

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
        self,
        *args: Any,
        profile: ProfileForm,
        must_ask: bool = False,
        is_repeated: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        # What is stored nowhere is given once it may be sent.
        later = [] if must_ask else profile.later
        self.fields["reason"].required = must_ask or profile.needs_reason
        if must_ask:
            self.nothing_happened = "Nothing was requested."
            read_by = "Shown to the approver and kept in the audit trail. Up to 200 characters."
            self.fields["reason"].help_text = read_by
        if not is_repeated:
            del self.fields["again"]
        self.add_zip_confirmation(profile.zip_warnings)
        if "ssn" in later:
            self.add_number("ssn", "SSN", rules.ssn_problems, "3-2-4", help_text="Nine digits.")
        for name in REPORTS.difference(later):
            del self.fields[name]
        for name in REPORTS.intersection(later):
            self._measure_when_chosen(name, profile.url)

    def _measure_when_chosen(self, name: str, url: str) -> None:
        measure = {
            "hx-post": url,
            "hx-trigger": "change",
            "hx-target": "next .sd-note",
            "hx-sync": "this:replace",
            "hx-encoding": "multipart/form-data",
            "hx-vals": '{"action": "measure"}',
            "hx-params": f"action,{name}",
        }
        self.fields[name].widget.attrs.update(measure)
        again = "Choose the file again. " if self.is_bound else ""
        self.fields[name].help_text = f"{again}At most {settings.UPLOAD_LIMIT_MB} MB before compression."
