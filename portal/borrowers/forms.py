"""What is typed while a borrower is onboarded: one form for each step, one for each key person, one to send.

Hides the lending service's limits behind live notes under each field, and how typed text is kept to be laid out again.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, ClassVar

from django import forms
from django.conf import settings

from portal.borrowers.reports import ReportField, json_problems
from portal.ui import wording
from portal.ui.forms import (
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
    raise_reasons,
)
from servicing import Address, NewKeyPerson, rules

# Each field is checked by itself. htmx keeps what waits with the element that asked: were all fields in one queue, a
# field that an answer replaced would take the checks that wait behind it away.
ALONE = {"hx-target": "closest .sd-field", "hx-sync": "closest .sd-field:queue last"}
LIVE = ALONE | {"hx-swap": "outerHTML", "hx-vals": '{"act": "check"}'}
UPLOAD = {"hx-target": "#wizard", "hx-encoding": "multipart/form-data", "hx-vals": '{"act": "upload"}'}
ADDRESS_FIELDS = ("line_1", "line_2", "line_3", "city", "state", "zip")


def today() -> date:
    """The day at the lending service."""
    return rules.today_in(settings.SERVICING_TIME_ZONE)


# --- Fields ---


class LegalNameField(TextField):
    rule = staticmethod(rules.legal_name_problems)


class CodeField(TextField):
    """A two-letter code, found by code or by name: the box searches a list of both."""

    def __init__(self, *, names: Mapping[str, str], options: str, **kwargs: Any) -> None:
        super().__init__(widget=forms.TextInput(attrs={"list": options, "autocomplete": "off"}), **kwargs)
        self.names = names
        self.codes = {word.casefold(): code for code, name in names.items() for word in (code, name)}

    def to_python(self, value: Any) -> str:
        text = super().to_python(value) or ""
        return self.codes.get(text.casefold(), text)


class StateField(CodeField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(names=rules.US_STATES, options="states", **kwargs)

    def clean(self, value: Any) -> str:
        code: str = super().clean(value)
        self.accepted = rules.US_STATES.get(code, "")
        return code


class CountryField(CodeField):
    @staticmethod
    def rule(text: str) -> list[str]:
        return rules.citizenship_problems(text)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(names=rules.COUNTRIES, options="countries", **kwargs)

    def clean(self, value: Any) -> str:
        code: str = super().clean(value)
        self.accepted = f"Sent as {code}"
        return code


class NumberField(PhoneField):
    accepted = "A US number of 10 digits"


class IncorporationField(DayField):
    def validate(self, value: date | None) -> None:
        super().validate(value)
        raise_reasons(rules.incorporation_date_problems(value, today=today()) if value else [])


class BirthDayField(DayField):
    def clean(self, value: Any) -> date | None:
        day: date | None = super().clean(value)
        raise_reasons(rules.birth_date_problems(day, today=today()) if day else [])
        self.accepted = f"{rules.ADULT_AGE} or older: yes" if day else ""
        return day


# --- The steps ---


class StepForm(StaffForm):
    """A form whose typed text is kept, and whose fields are checked as they are left."""

    nothing_happened = "Nothing was sent."

    def __init__(self, data: Any = None, files: Any = None, *, action: str = "", **kwargs: Any) -> None:
        super().__init__(data, files, **kwargs)
        self.action = action
        self.left_out: list[str] = []
        for field in self.fields.values():
            field.widget.attrs.update(LIVE, **{"hx-post": action, "hx-trigger": _settled_by(field.widget)})

    def typed(self) -> dict[str, str]:
        """What was typed, as it was typed, under the names that bind it again."""
        names = [
            f"{name}{suffix}" for name, field in self.fields.items() for suffix in _suffixes(field.widget)
        ]
        return {name: str(value) for name in names if (value := self.data.get(self.add_prefix(name)))}

    def forgive_missing(self) -> None:
        """Do not hold against the form what has not been typed yet; ``left_out`` names it."""
        for name, errors in list(self.errors.as_data().items()):
            if all(error.code == "required" for error in errors):
                self.left_out.append(name)
                del self.errors[name]

    def is_met(self, name: str) -> bool:
        """Whether a field holds what the service requires of it."""
        return name in self.cleaned_data and name not in self.errors


def _suffixes(widget: forms.Widget) -> Iterable[str]:
    if isinstance(widget, forms.FileInput):
        return ()
    return ("", *getattr(widget, "widgets_names", ()))


def _settled_by(widget: forms.Widget) -> str:
    """What says that a field holds what was meant: a list to choose from changes with every key pressed in it."""
    is_at_once = isinstance(widget, (forms.RadioSelect, forms.CheckboxInput, forms.FileInput))
    return "change" if is_at_once else "blur changed"


class BusinessForm(StepForm):
    first_name = LegalNameField(
        label="Legal business name",
        max_length=rules.MAX_LEGAL_NAME,
        help_text="As on the certificate, with its ending: LLC, Inc., LP.",
    )
    entity = ChoiceField(
        label="Business type", choices=list(rules.ENTITIES.items()), widget=RadioCards(rules.ENTITY_MEANINGS)
    )
    email = EmailField(label="Business e-mail")
    phone = NumberField(label="Business phone", help_text="Any US notation; sent as 10 digits.")
    incorporated_on = IncorporationField(
        label="Incorporation date",
        required=False,
        help_text="The date on the certificate, not in the future.",
    )

    def clean(self) -> dict[str, Any]:
        for text in rules.legal_name_warnings(self.cleaned_data.get("first_name", "")):
            self.warn("first_name", text)
        return self.cleaned_data


class AddressForm(StepForm):
    """A US address. The service has the last word on streets and cities."""

    problem_fields: ClassVar = {f"address.{name}": name for name in ADDRESS_FIELDS}

    line_1 = TextField(label="Address line 1", max_length=rules.MAX_ADDRESS_LINE)
    line_2 = TextField(label="Address line 2", max_length=rules.MAX_ADDRESS_LINE, required=False)
    line_3 = TextField(label="Address line 3", max_length=rules.MAX_ADDRESS_LINE, required=False)
    city = TextField(label="City", max_length=rules.MAX_ADDRESS_LINE)
    state = StateField(label="State", help_text="Type a name or a code.")
    zip = TextField(label="ZIP code", max_length=20, help_text="5 digits, or 9 as in 78701-1234.")

    def clean(self) -> dict[str, Any]:
        found = rules.address_field_problems(self.address(), country=settings.SERVICING_COUNTRY)
        for name, reasons in found.items():
            if name in self.cleaned_data:
                self.add_error(name, reasons)
        for text in self.zip_warnings:
            self.warn("zip", text)
        is_plain = "zip" not in self.errors and not self.warnings.get("zip")
        if is_plain and (state := rules.US_STATES.get(self.cleaned_data.get("state", ""))):
            self.fields["zip"].accepted = f"Lies in {state}"  # type: ignore[attr-defined]
        return self.cleaned_data

    def address(self) -> Address:
        """What is sent, once the form is valid."""
        lines = {name: self.cleaned_data.get(name) or None for name in ADDRESS_FIELDS}
        return Address(country=settings.SERVICING_COUNTRY, **lines)

    @property
    def zip_warnings(self) -> list[str]:
        """What is confirmed about the ZIP code before the address is sent."""
        return rules.address_warnings(self.address()).get("zip", [])

    @property
    def one_line(self) -> str:
        """The address as people read it out, as far as it is typed."""
        names = ("line_1", "line_2", "line_3", "city")
        lines = [line for name in names if (line := self.cleaned_data.get(name))]
        place = [self.cleaned_data.get(name, "") for name in ("state", "zip")]
        return ", ".join([*lines, " ".join(filter(None, place))]).strip(", ")


class PersonForm(AddressForm):
    """One key person, with the business's address or one of their own."""

    field_order = (
        *("first_name", "middle_name", "last_name", "title", "citizenship", "dob"),
        *("email", "phone", "same_address", *ADDRESS_FIELDS),
    )
    BLANK: ClassVar = {"same_address": "on", "citizenship": rules.COUNTRIES["US"]}

    first_name = PersonNameField(label="First name")
    middle_name = PersonNameField(label="Middle name", required=False)
    last_name = PersonNameField(label="Last name")
    title = ChoiceField(label="Title", choices=[("", "Choose"), *rules.TITLES.items()])
    citizenship = CountryField(label="Citizenship", help_text="Type the name of the country.")
    dob = BirthDayField(label="Date of birth", required=False)
    email = EmailField(label="E-mail")
    phone = NumberField(label="Phone")
    same_address = forms.BooleanField(label="Same address as the business", required=False)

    def __init__(self, *args: Any, number: int = 0, **kwargs: Any) -> None:
        super().__init__(*args, prefix=f"person-{number}", **kwargs)
        self.number = number
        self.subject = f"person {number + 1}"

    @property
    def is_settled(self) -> bool:
        """Whether nothing is wrong and nothing is missing."""
        return not self.errors and not self.left_out

    @property
    def title_word(self) -> str:
        """Owner, director or beneficiary, once it is chosen."""
        return rules.TITLES.get(self.cleaned_data.get("title", ""), "")

    @property
    def contact_line(self) -> str:
        """What a closed card tells of the person."""
        contact = [self.cleaned_data.get("email"), wording.phone(self.cleaned_data.get("phone"))]
        place = "same address as the business" if self.cleaned_data.get("same_address") else "own address"
        return ", ".join([*filter(None, contact), place]) if any(contact) else ""

    @property
    def name(self) -> str:
        """First, middle and last name, as far as they are typed."""
        parts = (self.data.get(self.add_prefix(f"{part}_name"), "") for part in ("first", "middle", "last"))
        return " ".join(part.strip() for part in parts if part.strip())[:120]

    def clean(self) -> dict[str, Any]:
        if not self.cleaned_data.get("same_address"):
            return super().clean()
        for name in ADDRESS_FIELDS:  # Whatever stands in the fields that are not shown does not count.
            self.errors.pop(name, None)
        return self.cleaned_data

    def is_met(self, name: str) -> bool:
        """An address that is the business's own is met there."""
        is_elsewhere = name in ADDRESS_FIELDS and bool(self.cleaned_data.get("same_address"))
        return is_elsewhere or super().is_met(name)

    def key_person(self, business_address: Address, ssn: str | None) -> NewKeyPerson:
        """What is sent, once the form is valid."""
        names = ("first_name", "last_name", "title", "citizenship", "email", "phone", "dob")
        return NewKeyPerson(
            **{name: self.cleaned_data[name] for name in names},
            middle_name=self.cleaned_data["middle_name"] or None,
            address=business_address if self.cleaned_data["same_address"] else self.address(),
            ssn=ssn,
        )


class ReportForm(StepForm):
    asset_report = ReportField(
        label="Asset report", required=False, problems=json_problems, accept=".json,application/json"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["asset_report"].widget.attrs.update(UPLOAD, **{"class": "sd-drop"})


# --- Sending ---


def confirmed_zip_field(warnings: Sequence[str]) -> forms.BooleanField:
    """The tick without which an address with the ZIP code of a bordering state isn't sent."""
    text = " ".join(dict.fromkeys(warnings))
    return forms.BooleanField(
        label="I checked the ZIP code",
        help_text=text,
        widget=forms.CheckboxInput(check_test=lambda _: False),
        error_messages={"required": f"{text} Then tick this."},
    )


class ReviewForm(WriteForm):
    """What is typed last and kept nowhere: EIN and SSNs; and why an equal borrower is created anyway."""

    ein = SecretDigitsField(rule=rules.ein_problems, label="EIN", help_text="Nine digits, as in 12-3456789.")
    ein_again = SecretDigitsField(rule=rules.ein_problems, label="EIN again", help_text="To catch a slip.")
    checked = forms.BooleanField(
        label="I checked the EIN against the document",
        widget=forms.CheckboxInput(check_test=lambda _: False),  # asked anew with every EIN
        error_messages={"required": "Compare the EIN with the document, then tick this."},
    )

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
        if zip_warnings:
            self.fields["zip_checked"] = confirmed_zip_field(zip_warnings)
        for name in ("ein", "ein_again"):
            self.fields[name].widget.attrs["data-groups"] = "2-7"
        self.ssn_names: list[str] = []
        for number, name in enumerate(people):
            self._add_ssn(f"ssn_{number}", f"SSN of {name}")
        if must_explain:
            self.fields["reason"] = TextField(label="Create anyway, because", max_length=200)

    def _add_ssn(self, name: str, label: str) -> None:
        for each, text in ((name, label), (f"{name}_again", f"{label}, again")):
            self.fields[each] = SecretDigitsField(rule=rules.ssn_problems, label=text, required=False)
            self.fields[each].widget.attrs["data-groups"] = "3-2-4"
        self.ssn_names.append(name)

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if self.data.get("seen") != self.version:
            self.add_error(
                None, "The draft was changed in another window. Read it again below, then send it."
            )
        for name in ("ein", *self.ssn_names):
            if not {name, f"{name}_again"} & self.errors.keys() and data[name] != data[f"{name}_again"]:
                self.add_error(f"{name}_again", "The two entries differ; enter both again.")
        return data

    @property
    def ssns(self) -> list[str | None]:
        """For each person, what was typed, once the form is valid."""
        return [self.cleaned_data[name] or None for name in self.ssn_names]

    @property
    def ssn_pairs(self) -> list[tuple[Any, Any]]:
        """For each person the two fields to draw."""
        return [(self[name], self[f"{name}_again"]) for name in self.ssn_names]
