"""Tests of the audit trail: its hash chain, append-only entries, sentences, list and admin pages."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError
from django.test import Client as Browser
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.chain import GENESIS_HASH, append, entry_hash
from portal.audit.models import Actor, Entry, PageView, RemoteCall, WriteIntent
from portal.audit.reading import sentence
from portal.records.models import KeyPerson
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.portal.pages import visible_text

MAYA = Actor(id=7, name="Maya Chen", role="servicer", ip="2001:db8::1", request_id="r-1")


def save_write(**fields: Any) -> WriteIntent:
    """Save a write as the gateway does, with its attempt and outcome entries."""
    known = {"submit_id": uuid4().hex, "operation": "borrowers.create_commercial", "label": "Northwind LLC"}
    known |= {"actor_name": "Maya Chen", "request_id": "r-1", "method": "POST", "path": "/v1/users"}
    write = WriteIntent.objects.create(**known | {"request_body": {"first_name": "Northwind"}} | fields)
    subject = {"intent_id": write.pk, "subject_label": write.label}
    append(MAYA, write.operation, phase="attempt", **subject)
    append(MAYA, write.operation, phase="outcome", result=write.state, **subject)
    return write


@pytest.mark.django_db
@pytest.mark.postgres
class TestChain:
    def test_each_entry_links_to_the_hash_of_the_one_before(self) -> None:
        first, second = append(MAYA, "lookup.add"), append(MAYA, "lookup.archive", reason="Closed")
        assert (first.previous_hash, second.previous_hash) == (GENESIS_HASH, first.hash)

    def test_a_stored_entry_matches_its_hash(self) -> None:
        detail = {
            "text": "O’Neil “& Daughters” \U0001f600",
            "at": timezone.now(),
            "none": None,
            "list": (1, 2),
        }
        append(MAYA, "lookup.correct", intent_id=uuid4(), changes={"label": ["a", "b"]}, detail=detail)
        entry = Entry.objects.get()
        assert entry_hash(entry) == entry.hash

    @pytest.mark.parametrize(
        ("field", "value"),
        [("actor_name", "Somebody else"), ("reason", ""), ("detail", {"taken": 2}), ("ip", None)],
    )
    def test_a_changed_entry_no_longer_matches_its_hash(self, field: str, value: object) -> None:
        append(MAYA, "lookup.import_records", reason="Asked by mail", detail={"taken": 1})
        entry = Entry.objects.get()
        setattr(entry, field, value)
        assert entry_hash(entry) != entry.hash

    def test_ssn_and_birth_date_changes_are_hidden(self) -> None:
        changes = {
            "date_of_birth": ["1987-04-19", "sent"],
            "ssn": ["", "AbC/9="],
            "email": ["a@b.example", "c4"],
        }
        append(MAYA, "lookup.correct", changes=changes)
        safe = {"date_of_birth": ["[hidden]", "sent"], "ssn": ["", "[hidden]"]}
        assert Entry.objects.get().changes == changes | safe

    def test_an_entry_cannot_be_saved_again(self) -> None:
        entry = append(MAYA, "lookup.add")
        with pytest.raises(IntegrityError):
            entry.save()

    @pytest.mark.parametrize("act", ["update", "delete", "bulk_create", "bulk_update", "update_or_create"])
    def test_entries_cannot_be_changed_in_bulk(self, act: str) -> None:
        with pytest.raises(TypeError, match="append-only"):
            getattr(Entry.objects.all(), act)()

    def test_an_entry_cannot_be_deleted(self) -> None:
        with pytest.raises(TypeError, match="append-only"):
            append(MAYA, "lookup.add").delete()

    def test_a_second_outcome_of_a_write_is_rejected(self) -> None:
        write = save_write(state="confirmed")
        with pytest.raises(IntegrityError):
            append(MAYA, write.operation, phase="outcome", result="rejected", intent_id=write.pk)


class TestRecordedViews:
    """Viewing personal data on any page leaves one entry per ten minutes."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("address", "action"),
        [
            ("/borrowers/", "borrowers.index"),
            ("/borrowers/{borrower}/", "borrowers.detail"),
            ("/borrowers/{borrower}/?tab=people", "borrowers.detail"),
            ("/borrowers/{borrower}/edit/", "borrowers.edit"),
            ("/borrowers/{borrower}/people/{person}/edit/", "borrowers.edit"),
            ("/borrowers/{borrower}/summary/", "summaries.preview"),
            ("/borrowers/{borrower}/loans/{loan}/", "loans.detail"),
            ("/borrowers/{borrower}/loans/{loan}/schedule/", "summaries.preview"),
            ("/registry/key_person/{person}/", "lookup.record"),
        ],
    )
    def test_every_page_with_personal_data_records_views(
        self, servicer: Browser, portal_service: Sandbox, address: str, action: str
    ) -> None:
        borrower = given.borrower(portal_service)
        person = KeyPerson.objects.filter(borrower_uuid=borrower.uuid)[0]
        loan = given.loan(portal_service, borrower)
        page = address.format(borrower=borrower.uuid, person=person.uuid, loan=loan.uuid)
        assert [servicer.get(page).status_code for _ in range(2)] == [200, 200]
        view = PageView.objects.get(page=action)
        assert (view.actor_name, view.count) == ("Servicer (servicer)", 2)


class TestActor:
    @pytest.mark.parametrize(
        ("address", "kept"),
        [
            ("127.0.0.1", "127.0.0.1"),
            ("2001:DB8:0::1", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("", None),
            ("unix:", None),
        ],
    )
    def test_ip_addresses_are_normalized(self, address: str, kept: str | None) -> None:
        assert Actor.of(RequestFactory().get("/", REMOTE_ADDR=address)).ip == kept

    def test_long_names_and_user_agents_are_truncated(self) -> None:
        request = RequestFactory().get("/", headers={"User-Agent": "x" * 1000})
        actor = Actor.of(request, User(pk=1, first_name="é" * 150, last_name="ü" * 150))
        assert (len(actor.name), len(actor.user_agent)) == (300, 300)

    def test_a_request_without_a_user_is_anonymous(self) -> None:
        assert Actor.of(RequestFactory().get("/")).name == "anonymous"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"action": "lookup.archive"}, "archived Northwind LLC"),
        (
            {"action": "borrowers.create_commercial", "phase": "attempt"},
            "started creating borrower Northwind LLC",
        ),
        (
            {"action": "borrowers.create_commercial", "phase": "outcome", "result": "confirmed"},
            "created borrower Northwind LLC",
        ),
        (
            {"action": "borrowers.create_commercial", "phase": "outcome", "result": "unknown"},
            "started creating borrower Northwind LLC; outcome unknown",
        ),
        ({"action": "loans.extend", "phase": "outcome", "result": "odd"}, "loans.extend Northwind LLC; odd"),
        ({"action": "accounts.sign_in", "subject_label": ""}, "signed in"),
        (
            {"action": "accounts.refused", "subject_label": "audit.index"},
            "was not allowed to open the audit trail",
        ),
    ],
)
def test_an_entry_reads_as_a_sentence(fields: dict[str, str], text: str) -> None:
    assert sentence(Entry(**{"subject_label": "Northwind LLC"} | fields)) == text


@pytest.mark.postgres
class TestIndex:
    def rows(self, browser: Browser, query: str = "") -> str:
        return browser.get(f"/admin/audit/entry/{query}").content.decode()

    def test_only_oversight_roles_read_the_audit_trail(self, portal_service: Sandbox) -> None:
        statuses = {role: browser_of(role).get("/audit/", follow=True).status_code for role in Role}
        assert {role for role, status in statuses.items() if status == 200} == {
            "supervisor",
            "auditor",
            "admin",
        }

    def test_entries_show_the_actor_change_and_reason(self, auditor: Browser) -> None:
        append(MAYA, "lookup.archive", subject_label="Northwind LLC", reason="Paid <off>")
        append(MAYA, "lookup.correct", subject_label="Acme", changes={"label": ["Acne", "Acme"]})
        page = self.rows(auditor)
        assert "Maya Chen</b> archived Northwind LLC" in page
        assert "Paid &lt;off&gt;" in page
        assert "changed label of Acme</a>" in page
        assert "</span>Acne</del>" in page

    @pytest.mark.parametrize(
        "query", ["?q=northwind", "?q=maya", "?q=u-77", "?q=r-1", "?q=paid", "?q=lookup.archive"]
    )
    def test_search_covers_actor_subject_reason_and_reference(self, auditor: Browser, query: str) -> None:
        found = {"subject_label": "Northwind LLC", "subject_uuid": "u-77", "reason": "Paid off"}
        append(MAYA, "lookup.archive", **found)
        append(Actor(name="Ravi Patel", request_id="r-2"), "lookup.add", subject_label="Acme Farms")
        rows = self.rows(auditor, query)
        assert "Northwind LLC" in rows
        assert "Acme Farms" not in rows

    def test_the_result_filter_finds_a_write_with_a_link(self, auditor: Browser) -> None:
        unknown, confirmed = save_write(state="unknown"), save_write(state="confirmed", label="Acme Farms")
        rows = self.rows(auditor, "?result=unknown")
        assert "started creating borrower Northwind LLC; outcome unknown" in rows
        assert "Acme Farms" not in rows
        entry = Entry.objects.get(intent_id=unknown.pk, phase="outcome")
        assert unknown.get_absolute_url() in auditor.get(f"/audit/{entry.pk}/").content.decode()
        assert confirmed.get_absolute_url() not in rows

    @pytest.mark.parametrize(
        "query", ["?q=%00", "?action=%00&result=", "?p=last", "?p=-1", "?q=" + "x" * 900]
    )
    def test_invalid_parameters_are_ignored(self, auditor: Browser, query: str) -> None:
        assert auditor.get(f"/audit/{query}", follow=True).status_code == 200

    def test_the_audit_trail_is_paginated(self, auditor: Browser) -> None:
        for number in range(60):
            append(MAYA, "lookup.add", subject_label=f"Borrower {number:02}")
        assert "Borrower 59" in self.rows(auditor)
        assert "Borrower 05" in self.rows(auditor, "?p=2")


class TestWrite:
    def test_an_unknown_outcome_shows_the_request_that_was_sent(self, viewer: Browser) -> None:
        page = viewer.get(save_write(state="unknown").get_absolute_url()).content.decode()
        assert "Outcome unknown." in page
        assert "we sent POST /v1/users and received no response." in page

    def test_a_rejected_write_shows_the_services_message(self, viewer: Browser) -> None:
        write = save_write(state="rejected", status=400, message="EIN is not valid")
        page = viewer.get(write.get_absolute_url()).content.decode()
        assert "<q>EIN is not valid</q>" in page
        assert "received no response" not in page

    def test_a_write_links_to_its_borrower(self, viewer: Browser) -> None:
        page = viewer.get(save_write(borrower_uuid="u-1").get_absolute_url()).content.decode()
        assert 'href="/borrowers/u-1/"' in page

    def test_only_oversight_roles_see_a_writes_entries(self, viewer: Browser, auditor: Browser) -> None:
        address = save_write(state="confirmed").get_absolute_url()
        assert "created borrower" not in viewer.get(address).content.decode()
        assert "created borrower" in auditor.get(address).content.decode()

    def test_an_unknown_write_returns_404(self, viewer: Browser) -> None:
        assert viewer.get(f"/audit/writes/{uuid4()}/").status_code == 404


@pytest.mark.postgres
class TestAdmin:
    LISTS = ("entry", "remotecall", "writeintent")

    @pytest.mark.parametrize("name", LISTS)
    def test_each_list_can_be_searched_and_opened(self, auditor: Browser, name: str) -> None:
        write = save_write(state="unknown", label="Findable LLC")
        call = RemoteCall.objects.create(operation="loans.get", path="/v1/Findable", duration_ms=3)
        rows = {"entry": Entry.objects.first(), "remotecall": call, "writeintent": write}
        found = auditor.get(reverse(f"admin:audit_{name}_changelist"), {"q": "Findable"})
        assert "0 results" not in found.content.decode()
        row = rows[name]
        assert row is not None
        page = auditor.get(reverse(f"admin:audit_{name}_change", args=[row.pk]), follow=True)
        assert page.status_code == 200
        if name == "remotecall":
            return
        assert page.redirect_chain == [(row.get_absolute_url(), 302)]
        if name == "writeintent":
            assert f'href="{row.get_absolute_url()}"' in found.content.decode()
        raw = page.content.decode().partition('id="raw-record"')[2].partition("</details>")[0]
        assert f"<dt>ID</dt><dd>{row.pk}</dd>" in raw

    @pytest.mark.parametrize("name", LISTS)
    def test_rows_cannot_be_added_changed_or_deleted(self, portal_service: Sandbox, name: str) -> None:
        root = User.objects.create_superuser("root")
        browser = Browser()
        browser.force_login(root)
        write = save_write(state="confirmed")
        call = RemoteCall.objects.create(operation="loans.get", duration_ms=3)
        pk = {"entry": Entry.objects.get(phase="attempt").pk, "remotecall": call.pk, "writeintent": write.pk}[
            name
        ]
        assert browser.get(reverse(f"admin:audit_{name}_add")).status_code == 403
        assert browser.post(reverse(f"admin:audit_{name}_change", args=[pk]), {}).status_code == 403
        assert (
            browser.post(reverse(f"admin:audit_{name}_delete", args=[pk]), {"post": "yes"}).status_code == 403
        )

    @pytest.mark.parametrize("name", LISTS)
    def test_each_filtered_list_can_be_exported_with_an_entry(self, auditor: Browser, name: str) -> None:
        save_write(state="unknown", label="Findable LLC")
        save_write(state="confirmed", label="Another LLC")
        for path in ("/v1/Findable", "/v1/Another"):
            RemoteCall.objects.create(operation="loans.get", path=path, duration_ms=3)
        assert (
            "export/?q=Findable"
            in auditor.get(reverse(f"admin:audit_{name}_changelist"), {"q": "Findable"}).content.decode()
        )
        answer = auditor.get(reverse(f"admin:audit_{name}_export"), {"q": "Findable"})
        file = b"".join(answer.streaming_content).decode()
        assert "Findable" in file
        assert "Another" not in file
        assert Entry.objects.get(action="audit.export").detail["filters"] == {"q": "Findable"}

    @pytest.mark.parametrize(
        ("address", "label"),
        [
            ("/admin/", "Administration"),
            ("/admin/audit/pageview/", "Administration"),
            ("/admin/audit/entry/", "Audit"),
        ],
    )
    def test_the_navigation_marks_where_one_is(self, auditor: Browser, address: str, label: str) -> None:
        nav = auditor.get(address).content.decode().partition('id="nav"')[2].partition("</nav>")[0]
        current = re.findall(r'<a [^>]*aria-current="page"[^>]*>(.*?)</a>', nav, re.DOTALL)
        assert [visible_text(one).strip() for one in current] == [label]

    @pytest.mark.parametrize("role", [Role.VIEWER, Role.SERVICER])
    def test_viewers_and_servicers_cannot_open_the_audit_admin(
        self, portal_service: Sandbox, role: Role
    ) -> None:
        assert browser_of(role).get(reverse("admin:audit_entry_changelist")).status_code == 403
