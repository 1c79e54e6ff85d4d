"""An edit as a person does it: read the form, change a field, check, send, read what came back."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.test import Client as Browser

from portal.audit.models import Entry
from portal.registry.models import Record
from servicing.sandbox import Sandbox

UPDATE = "borrowers.update"
FORM = "application/x-www-form-urlencoded"
SSN = "219-09-9999"
WITH_SSN = {"with_ssn": "on"}
TWICE = {"ssn": SSN, "ssn_again": "219 09 9999"}
BORN = {"dob_month": "4", "dob_day": "19", "dob_year": "1987"}


class Editor:
    """One profile in one browser."""

    def __init__(self, browser: Browser, record: Record) -> None:
        self.browser, self.record = browser, record
        own = f"people/{record.uuid}/" if record.uuid != record.borrower_uuid else ""
        self.url = f"/borrowers/{record.borrower_uuid}/{own}edit/"

    def open(self) -> dict[str, str]:
        """The fields of the form as a browser would post them."""
        return fields(html(self.browser.get(self.url)))

    def post(self, typed: dict[str, Any], action: str, **headers: Any) -> HttpResponse:
        data = typed | {"action": action}
        if any(hasattr(value, "read") for value in data.values()):
            return self.browser.post(self.url, data, **headers)
        return self.browser.post(self.url, urlencode(data), content_type=FORM, **headers)

    def check(self, **typed: Any) -> HttpResponse:
        """Change some fields and look at the preview."""
        return self.post(self.open() | typed, "preview")

    def checked(self, **typed: str) -> dict[str, str]:
        """The fields of the preview's form."""
        return fields(html(self.check(**typed)))

    def send(self, given: dict[str, Any] | None = None, **typed: str) -> HttpResponse:
        """Change some fields, check, and send with a reason."""
        return self.post(self.checked(**typed) | {"reason": "On the phone"} | (given or {}), "send")

    def result(self, given: dict[str, Any] | None = None, **typed: str) -> str:
        """The page of what came back."""
        return html(self.browser.get(self.send(given, **typed)["Location"]))


def html(response: Any) -> str:
    return response.content.decode()


def is_refused(response: Any, status: int = 422) -> str:
    """The page of a refusal."""
    assert response.status_code == status
    return html(response)


def sent(portal_service: Sandbox) -> Any:
    """The last body on the wire."""
    return json.loads(portal_service.calls[-1].body)


def phases() -> list[str]:
    """What the audit trail has of profiles that were changed."""
    entries = Entry.objects.filter(action__startswith="borrowers.update").order_by("id")
    return [f"{entry.phase} {entry.result}".strip() for entry in entries]


def text(page: str) -> str:
    """What a person reads, in one line."""
    main = page[page.index('id="edit-step"') :]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", main)))


def fields(page: str) -> dict[str, str]:
    """What a browser would post of the edit's form as it came, without pressing a button."""
    reader = Reader()
    reader.feed(page[page.index('id="edit-step"') :])
    return reader.found


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        name = found.get("name", "")
        match tag:
            case "select" | "textarea":
                self.inside = name
            case "option" if self.inside and ("selected" in found or self.inside not in self.found):
                self.found[self.inside] = found.get("value", "")
            case "input" if found.get("type") in ("checkbox", "radio"):
                if "checked" in found:
                    self.found[name] = found.get("value", "on")
            case "input" if name and found.get("type") != "file":
                self.found[name] = found.get("value", "")

    def handle_data(self, data: str) -> None:
        if self.inside and self.lasttag == "textarea":
            self.found[self.inside] = data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("select", "textarea"):
            self.inside = ""
