"""The onboarding forms: one for each step, and the last one with EIN and SSNs."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django import forms

from portal.borrowers.forms import (
    ADDRESS_FIELDS,
    CLEARED,
    NAMES,
    AddressForm,
    BusinessPhoneField,
    CountryField,
    LiveForm,
    RuledDayField,
    SendForm,
    birth_day_field,
    confirmation_field,
)
from portal.borrowers.reports import ReportField, json_problems
from portal.ui import wording
from portal.ui.forms import ChoiceField, EmailField, PersonNameField, RadioCards, TextField
from servicing import Address, NewKeyPerson, rules


class LegalNameField(TextField):
    rule = staticmethod(rules.legal_name_problems)


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
        self.check_phone()
        return self.cleaned_data


class PersonForm(AddressForm):
    """One key person, with the business's address or their own."""

    field_order = (*NAMES, "title", "citizenship", "dob", "email", "phone", "same_address", *ADDRESS_FIELDS)
    BLANK: ClassVar = {"same_address": "on", "citizenship": rules.COUNTRIES["US"]}

    first_name = PersonNameField(label="First name")
    middle_name = PersonNameField(label="Middle name", required=False)
    last_name = PersonNameField(label="Last name")
    title = ChoiceField(label="Title", choices=[("", "Choose"), *rules.TITLES.items()])
    citizenship = CountryField(label="Citizenship", help_text="Type the name of the country.")
    dob = birth_day_field()
    email = EmailField(label="Email")
    phone = BusinessPhoneField(label="Phone")
    same_address = forms.BooleanField(label="Same address as the business", required=False)

    def __init__(self, *args: Any, number: int, **kwargs: Any) -> None:
        super().__init__(*args, prefix=f"person-{number}", **kwargs)
        self.number = number
        self.subject = f"person {number + 1}"

    @property
    def title_word(self) -> str:
        """Owner, director or beneficiary, once chosen."""
        return rules.TITLES.get(self.cleaned_data.get("title", ""), "")

    @property
    def contact_line(self) -> str:
        """The summary on a collapsed card."""
        contact = [self.cleaned_data.get("email"), wording.phone(self.cleaned_data.get("phone"))]
        place = "same address as the business" if self.cleaned_data.get("same_address") else "own address"
        return ", ".join([*filter(None, contact), place]) if any(contact) else ""

    @property
    def name(self) -> str:
        """First, middle and last name, as far as typed."""
        parts = (self.data.get(self.add_prefix(part), "") for part in NAMES)
        return " ".join(part.strip() for part in parts if part.strip())[:120]

    def clean(self) -> dict[str, Any]:
        self.check_phone()
        if not self.cleaned_data.get("same_address"):
            return super().clean()
        for name in ADDRESS_FIELDS:  # The fields are hidden, so their contents don't count.
            self.errors.pop(name, None)
        return self.cleaned_data

    def is_requirement_met(self, name: str) -> bool:
        """The business's address is checked on its own step."""
        is_elsewhere = name in ADDRESS_FIELDS and bool(self.cleaned_data.get("same_address"))
        return is_elsewhere or super().is_requirement_met(name)

    def key_person(self, business_address: Address) -> NewKeyPerson:
        """The valid form as a key person without SSN."""
        names = (*NAMES, "title", "citizenship", "email", "phone", "dob")
        address = business_address if self.cleaned_data["same_address"] else self.address
        return NewKeyPerson(**{name: self.value(name) for name in names}, address=address)


class ReportForm(LiveForm):
    asset_report = ReportField(
        label="Asset report", required=False, problems=json_problems, accept=".json,application/json"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["asset_report"].widget.attrs |= {
            "class": "sd-drop",
            "hx-target": "#wizard",
            "hx-encoding": "multipart/form-data",
            "hx-vals": '{"act": "upload"}',
        }


class OnboardingSendForm(SendForm):
    """EIN and SSNs, and the reason for creating a possible duplicate."""

    def __init__(
        self,
        data: Any = None,
        *,
        version: str,
        people: Iterable[str],
        must_explain: bool,
        zip_warnings: Sequence[str],
        phone_warnings: Sequence[str],
        **kwargs: Any,
    ) -> None:
        super().__init__(data, **kwargs)
        self.version = version
        self.add_number("ein", "EIN", rules.ein_problems, "2-7", help_text="Nine digits, as in 12-3456789.")
        self.fields["checked"] = confirmation_field(
            "I checked the EIN against the document", "Select the box to confirm."
        )
        self.add_confirmations(zip_warnings=zip_warnings, phone_warnings=phone_warnings)
        for number, name in enumerate(people):
            label = f"SSN of {name}"
            self.add_number(f"ssn_{number}", label, rules.ssn_problems, "3-2-4", required=False)
            if label in self.initial.get("cleared", "").splitlines():
                self.warn(f"ssn_{number}", CLEARED)
        if must_explain:
            self.fields["reason"] = TextField(label="Reason to create anyway", max_length=200)

    def clean(self) -> dict[str, Any]:
        if self.data.get("seen") != self.version:
            self.add_error(None, "The draft changed in another window. Review it below, then send it.")
        return super().clean()

    @property
    def ssns(self) -> list[str | None]:
        """The SSN of each person, once the form is valid."""
        return [self.cleaned_data[name] or None for name in self.number_names[1:]]

    @property
    def typed_people(self) -> list[str]:
        """The labels of the SSNs that were typed, right or wrong."""
        return [str(self.fields[name].label) for name in self.number_names[1:] if name in self.typed_numbers]

    @property
    def ssn_pairs(self) -> list[tuple[Any, Any]]:
        """The two fields of each person."""
        return [(self[name], self[f"{name}_again"]) for name in self.number_names[1:]]
