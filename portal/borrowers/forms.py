"""What the onboarding and profile forms share: fields, the address, and the final form before sending.

Hides the service's limits behind a note under each field, and that the service takes an address only as a whole.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, ClassVar

from django import forms
from django.conf import settings

from portal.ui.forms import (
    DayField,
    PhoneField,
    SecretDigitsField,
    StaffForm,
    TextField,
    WriteForm,
    raise_errors,
)
from servicing import Address, rules

NAMES = ("first_name", "middle_name", "last_name")
ADDRESS_FIELDS = ("line_1", "line_2", "line_3", "city", "state", "zip")
SEE_ABOVE = "The service rejected this; see its message above."
CLEARED = "This was cleared. Enter it again."


def profile_address(parts: Mapping[str, Any]) -> Address:
    """An address as it is sent, with None for an empty line."""
    lines = {name: parts.get(name) or None for name in ADDRESS_FIELDS}
    return Address(country=settings.SERVICING_COUNTRY, **lines)


# --- Fields ---


class CodeField(TextField):
    """A two-letter code, chosen from a searchable list of codes and names."""

    names: ClassVar[Mapping[str, str]]
    list_id: ClassVar[str]

    def __init__(self, **kwargs: Any) -> None:
        attrs = {"list": self.list_id, "autocomplete": "off"}
        super().__init__(widget=forms.TextInput(attrs=attrs), **kwargs)
        self.codes = {word.casefold(): code for code, name in self.names.items() for word in (code, name)}

    def to_python(self, value: Any) -> str:
        text = super().to_python(value)
        return self.codes.get(text.casefold(), text)


class CountryField(CodeField):
    names, list_id = rules.COUNTRIES, "countries"
    rule = staticmethod(rules.citizenship_problems)

    def clean(self, value: Any) -> str:
        code: str = super().clean(value)
        self.accepted = f"Sent as {code}"
        return code


class StateField(CodeField):
    names, list_id = rules.US_STATES, "states"

    def clean(self, value: Any) -> str:
        code: str = super().clean(value)
        name = rules.US_STATES.get(code, "")
        self.accepted = name if str(value).strip().casefold() != name.casefold() else ""
        return code


class ZipField(TextField):
    """Takes 5 or 9 digits with a dash, a blank or nothing in between, and returns the form that is sent."""

    is_of_nine_digits = True

    def to_python(self, value: Any) -> str:
        return rules.normalize_zip(super().to_python(value))


class BusinessPhoneField(PhoneField):
    accepted = "A 10-digit US number"


class RuledDayField(DayField):
    """A day that is checked against today's date at the service."""

    def __init__(self, *, rule: Callable[..., list[str]], accepted: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rule, self.accepted = rule, accepted

    def clean(self, value: Any) -> date | None:
        day: date | None = super().clean(value)
        if day:
            raise_errors(self.rule(day, today=rules.today_in(settings.SERVICING_TIME_ZONE)))
        else:
            self.accepted = ""
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
    """A required checkbox that is never checked in advance."""
    widget = forms.CheckboxInput(check_test=lambda _: False)
    return forms.BooleanField(label=label, widget=widget, error_messages={"required": error}, **kwargs)


class LiveForm(StaffForm):
    """A form that checks fields as people leave them, and whose typed text can be bound again."""

    nothing_happened = "Nothing was sent."
    check_values = '{"act": "check"}'

    def __init__(self, data: Any = None, files: Any = None, *, url: str = "", **kwargs: Any) -> None:
        super().__init__(data, files, **kwargs)
        self.url = url
        self.left_out: list[str] = []
        for name in self.live_names:
            widget = self.fields[name].widget
            # A select changes with every key press, so it is checked on blur.
            is_at_once = isinstance(widget, (forms.RadioSelect, forms.CheckboxInput, forms.FileInput))
            widget.attrs |= {
                "hx-post": url,
                "hx-vals": self.check_values,
                "hx-trigger": "change" if is_at_once else "blur changed",
                "hx-target": "closest .sd-field",
                # With one queue for the whole form, replacing a field would drop the checks waiting behind it.
                "hx-sync": "closest .sd-field:queue last",
            }

    @property
    def live_names(self) -> list[str]:
        """The visible fields that people type or choose in, without checkboxes and hidden fields."""
        return [name for name in self.field_order or self.fields if name in self.fields]

    @property
    def typed(self) -> dict[str, str]:
        """The typed text by field name, to bind it again."""
        names = [
            f"{name}{suffix}"
            for name, field in self.fields.items()
            if not isinstance(field, forms.FileField)
            for suffix in ("", *getattr(field.widget, "widgets_names", ()))
        ]
        values = {name: self.data.get(self.add_prefix(name)) for name in names}
        if (
            values.get("zip") and "zip" not in self.errors
        ):  # Nine bare digits would be dropped as a possible SSN.
            values["zip"] = rules.normalize_zip(str(values["zip"]))
        return {name: str(value) for name, value in values.items() if value is not None}

    @property
    def phone_warnings(self) -> list[str]:
        """Warnings about the phone number to confirm before sending."""
        phone = self.cleaned_data.get("phone")
        return rules.phone_warnings(phone) if phone else []

    def check_phone(self) -> None:
        """Show the warnings about the phone number."""
        for text in self.phone_warnings:
            self.warn("phone", text)
            self.fields["phone"].accepted = ""  # type: ignore[attr-defined]

    def forgive_missing(self) -> None:
        """Move fields that are still empty from the errors to ``left_out``."""
        for name, errors in list(self.errors.as_data().items()):
            if all(error.code == "required" for error in errors):
                self.left_out.append(name)
                del self.errors[name]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is wrong or missing."""
        return not self.errors and not self.left_out

    def is_requirement_met(self, name: str) -> bool:
        """Whether a field has what the service requires."""
        return name in self.cleaned_data and name not in self.errors


class AddressForm(LiveForm):
    """A US address. The service verifies streets and cities."""

    problem_fields: ClassVar = {f"address.{name}": name for name in ADDRESS_FIELDS}

    line_1 = TextField(label="Address line 1", max_length=rules.MAX_ADDRESS_LINE_CHARACTERS)
    line_2 = TextField(label="Address line 2", max_length=rules.MAX_ADDRESS_LINE_CHARACTERS, required=False)
    line_3 = TextField(label="Address line 3", max_length=rules.MAX_ADDRESS_LINE_CHARACTERS, required=False)
    city = TextField(label="City", max_length=rules.MAX_ADDRESS_LINE_CHARACTERS)
    state = StateField(label="State", help_text="Enter a name or code.")
    zip = ZipField(label="ZIP code", max_length=20, help_text="5 digits, or 9 as in 78701-1234.")

    def clean(self) -> dict[str, Any]:
        self.check_address()
        return self.cleaned_data

    def check_address(self) -> None:
        """Check rules that concern several parts of the address."""
        found = rules.address_problems(self.address, country=settings.SERVICING_COUNTRY)
        for name in found.keys() & (set(ADDRESS_FIELDS) - self.errors.keys()):
            self.add_error(name, found[name])
        for text in self.zip_warnings:
            self.warn("zip", text)
        is_plain = "zip" not in self.errors and not self.warnings.get("zip")
        if is_plain and (state := rules.US_STATES.get(self.value("state") or "")):
            self.fields["zip"].accepted = f"In {state}"  # type: ignore[attr-defined]

    def value(self, name: str) -> Any:
        """The current value of a field."""
        return self.cleaned_data.get(name) or None

    @property
    def address(self) -> Address:
        return profile_address({name: self.value(name) for name in ADDRESS_FIELDS})

    @property
    def zip_warnings(self) -> list[str]:
        """Warnings about the ZIP code to confirm before sending."""
        return rules.address_warnings(self.address).get("zip", [])

    @property
    def one_line(self) -> str:
        lines = [self.value(name) for name in ("line_1", "line_2", "line_3", "city")]
        place = " ".join(filter(None, (self.value("state"), self.value("zip"))))
        return ", ".join(filter(None, [*lines, place]))


# --- What is typed last ---


class SendForm(WriteForm):
    """The final form before sending. Its numbers are never stored."""

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
        """Ask for a number twice, to catch typos."""
        for each, text, hint in ((name, label, help_text), (f"{name}_again", f"Confirm {label}", "")):
            field = SecretDigitsField(rule=rule, label=text, help_text=hint, required=required)
            field.widget.attrs["data-groups"] = groups
            self.fields[each] = field
        field.error_messages["required"] = f"Enter the {label} again."
        self.number_names.append(name)

    def add_confirmations(self, *, zip_warnings: Sequence[str], phone_warnings: Sequence[str]) -> None:
        """Ask to confirm the ZIP code of a bordering state, and a phone number that isn't on our list."""
        for name, label, warnings in (
            ("zip_checked", "I checked the ZIP code", zip_warnings),
            ("phone_checked", "I checked the phone number", phone_warnings),
        ):
            if warnings:
                text = " ".join(dict.fromkeys(warnings))
                self.fields[name] = confirmation_field(label, f"{text} Then confirm.", help_text=text)

    def clean(self) -> dict[str, Any]:
        typed = self.cleaned_data
        for name in self.number_names:
            again = f"{name}_again"
            if not {name, again} & self.errors.keys() and typed[name] != typed[again]:
                self.add_error(again, "The entries don’t match. Enter both again.")
        return typed

    @property
    def typed_numbers(self) -> list[str]:
        """The fields with a number, right or wrong."""
        pairs = (each for name in self.number_names for each in (name, f"{name}_again"))
        return [name for name in pairs if self.data.get(name, "").strip()]

    def mark_cleared(self) -> None:
        """Ask again for every number that was typed, since no page shows it again."""
        for name in self.typed_numbers:
            if name not in self.errors:
                self.add_error(name, CLEARED)
