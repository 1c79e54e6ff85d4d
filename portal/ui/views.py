"""The component page: every part of the interface in all its states, in both themes side by side."""

from datetime import date
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from portal.ui.forms import (
    ChoiceField,
    DayField,
    EmailField,
    MoneyField,
    PersonNameField,
    PhoneField,
    RadioCards,
    SecretDigitsField,
    StaffForm,
    TextField,
)
from portal.ui.htmx import render_page
from servicing import rules

TYPED = {
    "first_name": "Priya",
    "last_name": "Raman2",
    "title": "DIRECTOR",
    "email": "priya@northwind.example",
    "phone": "(512) 555-019",
    "amount": "$25,000.00",
    "dob_month": "4",
    "dob_day": "31",
    "dob_year": "1987",
    "same_address": "on",
    "entity": "CORPORATION",
}

PAYLOAD = {
    "email": "payables@northwind.example",
    "amount": Decimal("310.00"),
    "address": {"line_1": "1180 Airport Boulevard", "line_3": None, "zip": "78702"},
    "offers": [],
    "autopay": True,
    "EIN": "•••• masked",
}


class SampleForm(StaffForm):
    """One field of each kind."""

    subject = "person 2"
    nothing_happened = "Nothing was sent."

    first_name = PersonNameField()
    middle_name = PersonNameField(required=False)
    last_name = PersonNameField(help_text="As in the person’s passport.")
    title = ChoiceField(choices=[("", "Choose"), *rules.TITLES.items()])
    email = EmailField(label="Email")
    phone = PhoneField()
    amount = MoneyField(help_text="Dollars and cents.")
    dob = DayField(label="Date of birth")
    ssn = SecretDigitsField(
        label="SSN", rule=rules.ssn_problems, required=False, help_text="Never kept here."
    )
    entity = ChoiceField(choices=list(rules.ENTITIES.items()), widget=RadioCards(rules.ENTITY_MEANINGS))
    same_address = forms.BooleanField(label="Same address as the business", required=False)
    reason = TextField(widget=forms.Textarea(attrs={"rows": 2}), required=False)


@login_not_required
def components(request: HttpRequest) -> HttpResponse:
    context = {
        "sheets": [_sheet("light"), _sheet("dark")],
        "day": date(2026, 11, 24),
        "now": timezone.now(),
        "amount": Decimal("-1234.5"),
        "rate": Decimal("14.92"),
        "payload": PAYLOAD,
        "id": "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364",
    }
    return render_page(request, "ui/components.html", context)


def _sheet(theme: str) -> dict[str, Any]:
    refused = SampleForm({f"{theme}-{name}": value for name, value in TYPED.items()}, prefix=theme)
    refused.warn("email", "Also on borrower Tallgrass Farms LP. Same person?")
    refused.add_rejection("address.zip does not exist in TX")
    return {"theme": theme, "form": refused}
