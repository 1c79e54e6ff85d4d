"""Tests that an SSN or EIN typed into any field of any form is never stored.

This includes the SSN and EIN fields, whose values are sent, and searches, which look for them.
"""

import io
import itertools
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

import pytest
from allauth.mfa.models import Authenticator
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client as Browser
from django.urls import URLPattern, get_resolver
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.approvals.models import Approval
from portal.audit.models import WriteIntent
from portal.borrowers.models import Draft, Step
from portal.collections.models import Promise
from portal.jobs.models import Job
from portal.notes.models import FollowUp, Note
from portal.records.models import Kind
from portal.records.rows import records_of
from portal.tables.models import SavedView
from servicing.sandbox import Sandbox
from tests import databases
from tests.conftest import browser_of
from tests.portal.borrowers.editor import Editor
from tests.portal.borrowers.wizard import Wizard
from tests.portal.documents.test_document import document_addresses

SSN, EIN = "517-28-4039", "84-0917263"
AGENT = f"Mozilla/5.0 ({SSN})"
PASSWORD = "correct-horse-battery"
# These end the session or delete records that the test needs; their fields are not stored.
EXCLUDED_URLS = re.compile(
    r"sign-out|logout|sessions/end|second-factor/.*remove|/delete/|\.pdf|/pdf/|download|export"
)
DECISIONS = re.compile(r"archive|decide|withdraw|discard|finish|unpin|cancel|resolve")
LATER = timezone.localdate() + timedelta(days=9)
DEFAULTS = {
    "month": str(LATER.month), "day": str(LATER.day), "year": str(LATER.year), "until": LATER.isoformat(),
    "due": LATER.isoformat(),
    "exported_on": timezone.localdate().isoformat(), "password": PASSWORD, "oldpassword": PASSWORD, "amount": "25000",
    "login": "supervisor", "username": "newcomer", "uuid": str(uuid4()), "reason": "Asked by phone", "name": "A view",
    "text": "Called", "title": "Call", "email": "maya@harbor.example", "phone": "512-555-0143", "first_name": "Maya",
    "last_name": "Lee", "line_1": "418 Harbor Street", "city": "Austin", "state": "Texas", "zip": "78702",
    "citizenship": "United States",
}  # fmt: skip
# Free text fields that are stored; the test proves that it reaches them.
STORED_FIELDS = {
    "text", "title", "reason", "label", "name", "comment", "first_name", "last_name", "line_1", "line_2", "city",
    "email", "ids", "profiles", "username",
}  # fmt: skip


@dataclass
class FormRequest:
    """A form of a page with the values that a browser would send."""

    method: str
    url: str
    fields: dict[str, str] = field(default_factory=dict)
    typed: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)


class FormParser(HTMLParser):
    """Collects the forms of a page, with the first of each set of radio buttons selected."""

    def __init__(self, page_url: str) -> None:
        super().__init__()
        self.page_url, self.forms, self.select_name = page_url, [], ""
        self.forms: list[FormRequest] = []
        self.form: FormRequest | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name, kind = given.get("name", ""), given.get("type", "text")
        if tag == "form":
            url = urljoin(self.page_url, given.get("action", ""))
            self.form = FormRequest(given.get("method", "get").upper(), url)
            self.forms.append(self.form)
        elif self.form and (name or tag == "option"):
            self._add(self.form, tag, name, kind, given)

    def _add(self, form: FormRequest, tag: str, name: str, kind: str, given: dict[str, str]) -> None:
        if tag == "option":
            if self.select_name and (
                "selected" in given or (given.get("value") and not form.fields.get(self.select_name))
            ):
                form.fields[self.select_name] = given.get("value", "")
        elif tag == "select":
            self.select_name = name
            form.fields.setdefault(name, "")
        elif kind == "file":
            form.files.add(name)
        elif kind in ("radio", "checkbox", "submit", "button") or tag == "button":
            form.fields.setdefault(name, given.get("value", "on"))
        elif tag in ("input", "textarea"):
            if kind != "hidden":
                form.typed.add(name)
            form.fields[name] = given.get("value", "") or DEFAULTS.get(
                re.split(r"[-_](?=month|day|year)|-", name)[-1], ""
            )

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.form = None
        if tag == "select":
            self.select_name = ""


@dataclass
class Visitor:
    """A user who opens pages and submits forms."""

    browser: Browser

    def forms_of(self, url: str) -> Iterator[FormRequest]:
        """Yield the forms of a page."""
        answer = self.browser.get(url)
        if "text/html" in answer.headers.get("Content-Type", "") and answer.status_code == 200:
            reader = FormParser(url)
            reader.feed(answer.content.decode())
            yield from reader.forms

    def submit(self, form: FormRequest, name: str, value: str) -> None:
        """Submit a form with its default values and another value for one field."""
        data: dict[str, Any] = {**form.fields, name: value}
        if "save_id" in data:
            data["save_id"] = str(uuid4())  # Of another rendering, as the same one is saved once.
        if name in form.files:
            data[name] = SimpleUploadedFile(f"{value}.csv", b"kind,uuid,borrower_uuid,label\n")
        request = self.browser.get if form.method == "GET" else self.browser.post
        request(form.url, data)


def sign_in(role: Role) -> Visitor:
    User.objects.create_user(username=role.value, password=PASSWORD, role=role)
    browser = Browser(headers={"User-Agent": AGENT}, raise_request_exception=False)
    browser.post("/sign-in/", {"login": role.value, "password": PASSWORD})
    assert browser.get("/accounts/profile/").status_code == 200
    return Visitor(browser)


def create_records(portal_service: Sandbox, person: Visitor) -> dict[str, Any]:
    """Create one of each record that a URL may name, and return the values for URLs."""
    document_addresses(portal_service)
    of = {kind: one for kind in Kind if (one := records_of(kind).first())}
    borrower = of[Kind.BORROWER]
    payment = {"uuid": "p-1", "status": "SUCCEEDED", "borrower_bank_account_uuid": "bank-1"}
    message = portal_service.world.message("payment.succeeded", payment)["uuid"]
    user = User.objects.get(username=Role.SUPERVISOR)
    person.browser.get("/messages/")
    person.browser.post(
        f"/notes/new/borrower/{borrower.uuid}/", {"text": "Pinned", "pinned_until": LATER.isoformat()}
    )
    person.browser.post(
        f"/notes/follow-ups/new/{borrower.uuid}/", {"title": "Call", "due": LATER.isoformat()}
    )
    person.browser.post("/views/save/", {"list": "loans:index", "name": "Mine", "query": "?state=TX"})
    Wizard(person.browser).fill()
    person.browser.post("/registry/refresh/")
    upload = SimpleUploadedFile("ids.csv", b"kind,uuid,borrower_uuid,label\n")
    person.browser.post("/registry/import/", {"ids": upload, "exported_on": timezone.localdate().isoformat()})
    promised = {"person": "Someone else", "channel": "phone", "outcome": "promised", "amount": "100"}
    promised |= {"day": LATER.isoformat()}
    person.browser.post(f"/collections/contacts/loan/{of[Kind.LOAN].uuid}/log/", promised)
    servicer = browser_of(Role.SERVICER)
    editor = Editor(servicer, borrower)
    editor.post(editor.review_fields(first_name="Bay Bakery LLC") | {"reason": "Articles"}, "ask")
    portal_service.fail_next("applications.submit", cut_after_commit=True)
    typed = {"submit_id": str(uuid4()), "amount": "25000", "confirmed": "yes"}
    servicer.post(f"/borrowers/{borrower.uuid}/applications/new/", typed)
    key = Authenticator.objects.create(user=user, type="webauthn", data={"name": "Key", "credential": {}})
    return {
        "borrower_uuid": borrower.uuid, "uuid": borrower.uuid, "kind": "borrower", "loan_uuid": of[Kind.LOAN].uuid,
        "account_uuid": of[Kind.LOAN].uuid,
        "line_uuid": of[Kind.LINE].uuid, "application_uuid": of[Kind.APPLICATION].uuid, "key": "2026-11-01",
        "person_uuid": of[Kind.KEY_PERSON].uuid, "repayment_uuid": "sample", "message_uuid": message,
        "draft_id": Draft.objects.get().pk, "step": Step.BUSINESS, "approval_id": Approval.objects.get().pk,
        "intent_id": WriteIntent.objects.get().pk, "view_id": SavedView.objects.get().pk, "pk": key.pk,
        "promise_id": Promise.objects.get().pk, "contact_id": Promise.objects.get().contact_id, "address": "first-day",
        "note_id": Note.objects.get().pk, "follow_up_id": FollowUp.objects.get().pk, "upload_id": 1, "entry_id": 1,
        "job_id": Job.objects.latest("created_at").pk, "batch_id": uuid4(),
        "document_id": uuid4(), "code": "SD-SAMPLE", "object_id": user.pk,
        "id": user.pk, "token": "sample", "provider_id": "sample", "content_type_id": 1,
        "app_label": "accounts", "url": "sample",
    }  # fmt: skip


def addresses(known: dict[str, Any]) -> list[str]:
    """Return every URL with values for its parameters; a new parameter fails until it has one."""

    def urls(patterns: Any, prefix: str) -> Iterator[str]:
        for pattern in patterns:
            route = re.sub(r"\(\?P(<\w+>)[^)]*\)", r"\1", str(pattern.pattern).strip("^$"))
            if isinstance(pattern, URLPattern):
                yield re.sub(r"<(?:\w+:)?(\w+)>", lambda part: str(known[part[1]]), prefix + route)
            else:
                yield from urls(pattern.url_patterns, prefix + route)

    steps = [f"/borrowers/new/{known['draft_id']}/{step}/" for step in Step]
    of_list = "/views/save/?list=loans:index&query=state%3DTX"
    return [*steps, *dict.fromkeys(urls(get_resolver("portal.urls").url_patterns, "/")), of_list]


def stored_texts(log: str, folder: Path) -> dict[str, str]:
    """Return everything that was stored or logged, by place."""
    call_command("backup", folder / "copy")
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {
        "database": databases.stored_bytes().decode("latin-1"),
        "encrypted fields": databases.decrypted_bytes().decode(),
        "sessions": json.dumps([session.get_decoded() for session in Session.objects.all()]),
        "cache": repr(getattr(cache, "_cache", "")),
        "log": log,
        **{str(file): file.read_bytes().decode("latin-1") for file in files},
    }


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_ssn_or_ein_typed_into_any_field_is_never_stored(
    portal_service: Sandbox, tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: LazySettings
) -> None:
    caplog.set_level(logging.DEBUG)
    settings.DATA_DIR = tmp_path
    terminal = next(h for h in logging.getLogger().handlers if type(h) is logging.StreamHandler)
    log = io.StringIO()
    before = terminal.setStream(log)
    supervisor, admin = sign_in(Role.SUPERVISOR), sign_in(Role.ADMIN)
    known = create_records(portal_service, supervisor)
    urls = [url for url in addresses(known) if not EXCLUDED_URLS.search(url)]
    stranger = Visitor(Browser(headers={"User-Agent": AGENT}, raise_request_exception=False))
    forms: list[tuple[Visitor, FormRequest]] = []
    for url in urls:
        people = [admin] if url.startswith("/admin/") else [supervisor]
        if url.startswith("/sign-in/"):
            people = [stranger]
        forms += [(person, form) for person in people for form in person.forms_of(url)]
    unique = {
        (form.method, urlsplit(form.url).path, *sorted(form.fields)): (person, form)
        for person, form in forms
        if not EXCLUDED_URLS.search(form.url)
    }
    ordered = sorted(unique.values(), key=lambda one: bool(DECISIONS.search(one[1].url)))
    assert len(ordered) > 60
    # Typed fields come first, because other fields may carry out an action.
    for value in (SSN, EIN):
        for person, form in ordered:
            for name in sorted(form.typed | form.files):
                person.submit(form, name, value)
    stored: set[str] = set()
    numbers = itertools.count()
    for person, form in ordered:
        for name in sorted(form.typed | form.files) if form.method == "POST" else ():
            field = name.rpartition("-")[2]
            if field in STORED_FIELDS - stored:
                mark = "Quokka" + "".join("abcdefghij"[int(digit)] for digit in f"{next(numbers):03}")
                person.submit(form, name, mark)
                # Check now, because the next form may overwrite the value.
                if mark.encode() in databases.stored_bytes() + databases.decrypted_bytes():
                    stored.add(field)
    for person, form in ordered:
        for name in sorted(form.fields.keys() - form.typed - {"csrfmiddlewaretoken"}):
            person.submit(form, name, SSN)
    # Views may read parameters that their forms do not show, so send every name to every URL.
    names = sorted({name for _, form in ordered for name in form.fields})
    for url in urls:
        person = admin if url.startswith("/admin/") else supervisor
        person.browser.get(url, dict.fromkeys(names, EIN))
        person.browser.post(url, dict.fromkeys(names, EIN))
    terminal.setStream(before)
    places = stored_texts(log.getvalue(), tmp_path)
    secrets = [SSN, EIN, SSN.replace("-", ""), EIN.replace("-", "")]
    found = [
        (place, text[max(text.index(secret) - 90, 0) :][:180].replace("\0", ""))
        for place, text in places.items()
        for secret in secrets
        if secret in text
    ]
    assert found == []
    assert sorted(STORED_FIELDS - stored) == []
