"""Drives the profile form: open it, change fields, review, send, and read the result."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.test import Client as Browser

from portal.audit.models import Entry
from portal.records.models import Account
from servicing.sandbox import Sandbox

UPDATE = "borrowers.update"
FORM = "application/x-www-form-urlencoded"
SSN = "219-09-9999"
WITH_SSN = {"with_ssn": "on"}
TWICE = {"ssn": SSN, "ssn_again": "219 09 9999"}
BORN = {"dob_month": "4", "dob_day": "19", "dob_year": "1987"}


class Editor:
    """Edits one borrower or key person in one browser."""

    def __init__(self, browser: Browser, record: Account) -> None:
        self.browser, self.record = browser, record
        own = f"people/{record.uuid}/" if record.uuid != record.borrower_uuid else ""
        self.url = f"/borrowers/{record.borrower_uuid}/{own}edit/"

    def open(self) -> dict[str, str]:
        """Return the fields of the form as a browser would post them."""
        return fields(html(self.browser.get(self.url)))

    def post(self, typed: dict[str, Any], action: str, **headers: Any) -> HttpResponse:
        data = typed | {"action": action}
        if any(hasattr(value, "read") for value in data.values()):
            return self.browser.post(self.url, data, **headers)
        return self.browser.post(self.url, urlencode(data), content_type=FORM, **headers)

    def check(self, **typed: Any) -> HttpResponse:
        """Change some fields and open the review."""
        return self.post(self.open() | typed, "preview")

    def review_fields(self, **typed: str) -> dict[str, str]:
        """Change some fields and return the fields of the review's form."""
        return fields(html(self.check(**typed)))

    def send(self, given: dict[str, Any] | None = None, **typed: str) -> HttpResponse:
        """Change some fields, review them, and send them with a reason."""
        return self.post(self.review_fields(**typed) | {"reason": "On the phone"} | (given or {}), "send")

    def result_page(self, given: dict[str, Any] | None = None, **typed: str) -> str:
        """Send a change and return the result page."""
        return html(self.browser.get(self.send(given, **typed)["Location"]))


def html(response: Any) -> str:
    return response.content.decode()


def html_of_error(response: Any, status: int = 422) -> str:
    """Check the status of the response and return its page."""
    assert response.status_code == status
    return html(response)


def sent(portal_service: Sandbox) -> Any:
    """Return the body of the last request to the service."""
    return json.loads(portal_service.calls[-1].body)


def phases(operation: str = "borrowers.update") -> list[str]:
    """Return the phases and results of these writes in the audit trail, oldest first."""
    entries = Entry.objects.filter(action__startswith=operation).order_by("id")
    return [f"{entry.phase} {entry.result}".strip() for entry in entries]


def text(page: str) -> str:
    """Return the visible text of the edit form in one line."""
    main = page[page.index('id="edit-step"') :]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", main)))


def fields(page: str) -> dict[str, str]:
    """Return the fields a browser would post from the unchanged edit form."""
    reader = Reader()
    reader.feed(page[page.index('id="edit-step"') :])
    return reader.fields


class Reader(HTMLParser):
    """Collects the fields of a form."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.open_field = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        name = attributes.get("name", "")
        match tag:
            case "select" | "textarea":
                self.open_field = name
            case "option" if self.open_field and (
                "selected" in attributes or self.open_field not in self.fields
            ):
                self.fields[self.open_field] = attributes.get("value", "")
            case "input" if attributes.get("type") in ("checkbox", "radio"):
                if "checked" in attributes:
                    self.fields[name] = attributes.get("value", "on")
            case "input" if name and attributes.get("type") != "file":
                self.fields[name] = attributes.get("value", "")

    def handle_data(self, data: str) -> None:
        if self.open_field and self.lasttag == "textarea":
            self.fields[self.open_field] = data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("select", "textarea"):
            self.open_field = ""
