"""Drives the onboarding form: sample input for each step, and a wizard that submits it."""

import re
from typing import Any

from django.http import HttpResponse
from django.test import Client as Browser

EIN = "47-1029384"
SSN = "219-09-9999"
BUSINESS = {
    "first_name": "O'Neil & Daughters, LLC",
    "entity": "LIMITED_LIABILITY_COMPANY",
    "email": "office@oneil.example",
    "phone": "(512) 555-0143",
    "incorporated_on_month": "3",
    "incorporated_on_day": "9",
    "incorporated_on_year": "2015",
}
ADDRESS = {"line_1": "1180 Airport Blvd", "city": "Austin", "state": "Texas", "zip": "78702"}
ELENA = {
    "first_name": "Elena",
    "last_name": "O'Neil",
    "title": "OWNER",
    "citizenship": "United States",
    "email": "elena@oneil.example",
    "phone": "512-555-0178",
    "same_address": "on",
}
PRIYA = ELENA | {
    "first_name": "Priya",
    "last_name": "Raman",
    "title": "DIRECTOR",
    "citizenship": "India",
    "email": "priya@oneil.example",
    "phone": "512-555-0199",
    "dob_month": "4",
    "dob_day": "19",
    "dob_year": "1987",
}
CREATE = "borrowers.create_commercial"
PHONE_REJECTED = {"status": 422, "message": "phone must be a valid US phone number"}
SIGNED = {"ein": EIN, "ein_again": EIN, "checked": "on"}


def people(*persons: dict[str, str]) -> dict[str, str]:
    """Return the fields of the key people step."""
    return {f"person-{n}-{name}": text for n, person in enumerate(persons) for name, text in person.items()}


class Wizard:
    """Fills in one draft in one browser."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        page = html(browser.get("/borrowers/new/"))
        self.url = find(r'action="(/borrowers/new/[0-9a-f-]{36}/)business/"', page)

    def get(self, step: str) -> HttpResponse:
        return self.browser.get(f"{self.url}{step}/")

    def post(self, step: str, typed: dict[str, Any], act: str = "next", **headers: Any) -> HttpResponse:
        return self.browser.post(f"{self.url}{step}/", typed | {"act": act}, **headers)

    def fill(self, *persons: dict[str, str], **business: str) -> "Wizard":
        """Fill in every step but the last."""
        self.post("business", BUSINESS | business)
        self.post("address", ADDRESS)
        self.post("people", people(*(persons or (ELENA, PRIYA))))
        return self

    def hidden_fields(self) -> dict[str, str]:
        """Return the hidden fields of the last step."""
        page = html(self.get("review"))
        return {name: find(rf'name="{name}" value="([^"]*)"', page) for name in ("submit_id", "seen")}

    def send(self, typed: dict[str, str] | None = None, **headers: Any) -> HttpResponse:
        """Submit the last step."""
        return self.post("review", self.hidden_fields() | SIGNED | (typed or {}), **headers)


def html(response: Any) -> str:
    return response.content.decode()


def find(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, f"{pattern} is not on the page"
    return match[1]


def html_of_error(answer: Any, status: int = 422) -> str:
    assert answer.status_code == status
    return html(answer)
