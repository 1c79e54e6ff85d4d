"""Reading the audit trail: filters, the page of an entry, exports, and the history of a record."""

import csv
import io
import json
import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
import time_machine
from django.db import connection
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit import guard
from portal.audit.chain import append
from portal.audit.models import Actor, Entry, RemoteCall
from portal.records.models import Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.borrowers.editor import Editor
from tests.portal.pages import visible_text

pytestmark = pytest.mark.postgres

MAYA = Actor(id=7, name="Maya Chen", role="servicer", ip="2001:db8::1", request_id="r-1")
SYSTEM = Actor(name="system", role="system", request_id="sync-1")
LOAN = {"subject_kind": "loan", "subject_uuid": "l-1", "borrower_uuid": "b-1"}


def text(answer: Any) -> str:
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return str(body.decode())


def list_entries(browser: Browser, **state: Any) -> str:
    """Return the list that matches the filters."""
    return text(browser.get(f"/admin/audit/entry/?{urlencode(state, doseq=True)}"))


def ago(**past: float) -> Any:
    return time_machine.travel(timezone.now() - timedelta(**past), tick=False)


class TestFilters:
    @pytest.fixture(autouse=True)
    def trail(self, portal_service: Sandbox) -> None:
        with ago(days=9):
            append(MAYA, "lookup.add", subject_label="Nine days old")
        append(MAYA, "lookup.archive", subject_label="Paid", result="", **LOAN)
        append(SYSTEM, "lookup.refresh_portfolio")
        append(Actor(name="anonymous"), "accounts.sign_in_failed", subject_label="root")
        append(MAYA, "borrowers.no_change", subject_label="Saved as it was", result="no_change")
        append(MAYA, "loans.detail", subject_kind="loan", subject_uuid="l-2", subject_label="looked at")
        write = uuid4()
        append(MAYA, "applications.submit", phase="attempt", intent_id=write, subject_label="the first half")
        append(
            MAYA,
            "applications.submit",
            phase="outcome",
            result="rejected",
            intent_id=write,
            subject_label="the second half",
        )

    def test_a_capped_count_has_a_plus_sign(self, auditor: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("portal.ui.paging.MAX_COUNTED", 3)
        assert "3+" in visible_text(list_entries(auditor))

    def test_the_default_hides_views_steps_and_older_weeks(self, auditor: Browser) -> None:
        page = list_entries(auditor)
        shown = ["Paid", "refreshed all accounts", "root", "the second half"]
        assert [words for words in shown if words not in page] == []
        hidden = ["Nine days old", "Saved as it was", "looked at", "the first half"]
        assert [words for words in hidden if words in page] == []

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("state", "found", "not_found"),
        [
            ({"when": "all"}, "Nine days old", "looked at"),
            ({"show": "all"}, "looked at", "Nine days old"),
            ({"show": "all"}, "the first half", "Nine days old"),
            ({"show": "views"}, "looked at", "Nine days old"),
            ({"group": "writes"}, "the second half", "Paid"),
            ({"group": "sign_in"}, "root", "Paid"),
            ({"group": "system"}, "refreshed all accounts", "Paid"),
            ({"person": "system"}, "refreshed all accounts", "Paid"),
            ({"person": "anonymous"}, "root", "Paid"),
            ({"kind": "loan"}, "Paid", "root"),
            ({"borrower": "b-1"}, "Paid", "the second half"),
            ({"result": "rejected"}, "the second half", "Paid"),
            ({"q": "PAID"}, "Paid", "root"),
        ],
        ids=str,
    )
    def test_each_filter_narrows_the_list(
        self, auditor: Browser, state: dict[str, str], found: str, not_found: str
    ) -> None:
        page = list_entries(auditor, **state)
        assert found in page
        assert not_found not in page

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("group", "actions"),
        [
            (
                "files",
                [
                    *(
                        "loans.export",
                        "loans.schedule",
                        "applications.export_offers",
                        "portfolio.export_accounts",
                    ),
                    *("collections.print", "summaries.print", "summaries.batch", "summaries.download"),
                    *("credit_lines.download", "messaging.download", "operations.support_bundle"),
                    "operations.borrower_data",
                ],
            ),
            ("writes", ["audit.resolve", "audit.correct"]),
            ("sign_in", ["accounts.sign_in", "accounts.sign_out", "accounts.session_ended"]),
            ("staff", ["accounts.staff_changed", "accounts.password_changed"]),
            ("approvals", ["approvals.ask", "approvals.approve", "approvals.refuse"]),
            ("refused", ["accounts.refused"]),
            (
                "desk",
                [
                    *("lookup.restore", "notes.unpin", "home.snooze", "saved_views.delete"),
                    *("collections.log", "collections.withdraw", "collections.assign"),
                ],
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_group_has_all_its_actions(self, auditor: Browser, group: str, actions: list[str]) -> None:
        others = {"borrowers.no_change", "accounts.sign_in", "collections.export", "accounts.staff_changed"}
        others -= {*actions, "collections.export" if group == "files" else ""}
        for action in [*actions, *others]:
            append(MAYA, action, subject_label=f"about {action}.")
        page = list_entries(auditor, group=group, show="all")
        assert [one for one in actions if f"about {one}." not in page] == []
        assert [one for one in others if f"about {one}." in page] == []

    def test_the_request_filter_shows_every_entry(self, auditor: Browser) -> None:
        page = list_entries(auditor, request="r-1")
        shown = ["Nine days old", "looked at", "the first half", "Saved as it was"]
        assert [words for words in shown if words not in page] == []
        assert "root" not in page

    def test_the_borrower_filter_matches_part_of_a_name(
        self, auditor: Browser, portal_service: Sandbox
    ) -> None:
        owner = given.borrower(portal_service, first_name="Cedar Farms LLC")
        append(MAYA, "notes.add", subject_label="a note on Cedar", borrower_uuid=owner.uuid)
        assert "a note on Cedar" in list_entries(auditor, borrower="cedar")
        assert "a note on Cedar" in list_entries(auditor, borrower=owner.uuid)
        assert "a note on Cedar" not in list_entries(auditor, borrower="cider")

    def test_times_use_the_persons_time_zone(self, portal_service: Sandbox) -> None:
        browser = browser_of(Role.AUDITOR)
        User.objects.filter(role=Role.AUDITOR).update(time_zone="Asia/Tokyo")
        with time_machine.travel("2026-03-01T23:30:00+00:00", tick=False):  # 8:30 AM on the next day in Tokyo
            append(MAYA, "lookup.add", subject_label="At half past eight")
        day = {"from": "2026-03-02T08:30", "to": "2026-03-02T08:30"}
        assert "At half past eight" in list_entries(browser, **day)
        assert "At half past eight" not in list_entries(browser, **(day | {"from": "2026-03-02T08:31"}))

    @pytest.mark.parametrize(
        "state",
        [
            {"person": "x"},
            {"person": "9" * 30},
            {"group": "x"},
            {"kind": "x"},
            {"result": "x"},
            {"from": "yesterday"},
            {"to": "9999-99-99"},
            {"from": "2020-03-02T08:30", "to": "2020-03-02T08:29"},
        ],
        ids=str,
    )
    def test_invalid_filters_find_nothing(self, auditor: Browser, state: dict[str, str]) -> None:
        page = list_entries(auditor, **state)
        assert "Nothing matches" in page
        assert "Paid" not in page


class TestDetail:
    @pytest.mark.slow
    def test_the_page_shows_the_change_and_the_call(
        self, servicer: Browser, supervisor: Browser, portal_service: Sandbox
    ) -> None:
        editor = Editor(servicer, given.borrower(portal_service))
        editor.send({"reason": "Told at the counter"}, email="new@bakery.example")
        page = text(supervisor.get(f"/audit/{Entry.objects.get(phase='outcome').pk}/"))
        assert "Servicer (servicer) changed email of Harbor Street Bakery LLC" in page
        assert '<span class="visually-hidden">added: </span>' in page
        assert "Told at the counter" in page
        assert "Request" in page
        assert "Response" in page
        assert f"{RemoteCall.objects.get().duration_ms} ms" in page
        assert "Hash verified" in page

    def test_the_page_links_to_other_entries_of_the_record(self, auditor: Browser) -> None:
        first, other, last = (
            append(MAYA, "lookup.correct", subject_uuid=uuid) for uuid in ("u-1", "u-2", "u-1")
        )
        page = text(auditor.get(f"/audit/{first.pk}/"))
        assert f'href="/audit/{last.pk}/"' in page
        assert f'href="/audit/{other.pk}/"' not in page

    @pytest.mark.parametrize("offset", [0, 1], ids=["itself", "the one after it"])
    def test_a_broken_chain_shows_a_warning(self, auditor: Browser, offset: int) -> None:
        first = append(MAYA, "lookup.add", reason="So")
        append(MAYA, "lookup.add", reason="So")
        guard.remove_triggers(connection)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE audit_entry SET previous_hash = 'x' WHERE id = %s", [first.pk + offset])
        assert "This entry or one next to it was altered." in text(auditor.get(f"/audit/{first.pk}/"))

    @pytest.mark.parametrize("number", ["999", str(2**70)])
    def test_an_unknown_entry_returns_404(self, auditor: Browser, number: str) -> None:
        assert auditor.get(f"/audit/{number}/").status_code == 404


class TestExport:
    def test_the_csv_is_filtered_and_escapes_formulas(self, auditor: Browser) -> None:
        append(MAYA, "lookup.correct", subject_label="=1+1", changes={"label": ["Acne", "Acme"]})
        append(MAYA, "lookup.add", subject_label="Another")
        answer = auditor.get("/admin/audit/entry/export/?q=1%2B1&show=all&all=1")
        rows = list(csv.DictReader(io.StringIO(text(answer).removeprefix("\ufeff"))))
        assert [row["Object name"] for row in rows] == ["'=1+1"]
        assert json.loads(rows[0]["Changes"]) == {"label": ["Acne", "Acme"]}
        assert rows[0]["Hash"] == Entry.objects.get(subject_label="=1+1").hash

    def test_each_json_line_is_one_entry(self, auditor: Browser) -> None:
        append(MAYA, "lookup.add", subject_label="Ünder")
        answer = auditor.get("/admin/audit/entry/export/?format=jsonl&q=Ünder&show=all")
        assert answer["Content-Type"] == "application/jsonl"
        assert json.loads(text(answer))["Object name"] == "Ünder"

    @pytest.mark.parametrize("kind", ["entry", "pageview", "remotecall", "writeintent"])
    def test_an_unknown_filter_is_refused(self, auditor: Browser, kind: str) -> None:
        assert auditor.get(f"/admin/audit/{kind}/export/?zz=1").status_code == 400

    def test_an_export_is_recorded_with_filters_and_row_count(self, auditor: Browser) -> None:
        append(MAYA, "lookup.add", subject_label="One")
        file = text(auditor.get("/admin/audit/entry/export/?q=One&when=all"))
        remark = list(csv.DictReader(io.StringIO(file.lstrip("\ufeff"))))[-1]
        assert {name for name, value in remark.items() if value} == {"Sentence"}
        assert remark["Sentence"].startswith("This file leaves out page views")
        entry = Entry.objects.get(action="audit.export")
        assert entry.detail == {"rows": 1, "filters": {"q": "One", "when": "all"}}
        assert (entry.actor_role, entry.subject_label) == ("auditor", "CSV of entries")


@pytest.mark.parametrize("place", ["", "export/"])
def test_addresses_of_version_1_lead_to_the_administration(auditor: Browser, place: str) -> None:
    answer = auditor.get(f"/audit/{place}?q=One&when=all")
    assert answer["Location"] == f"/admin/audit/entry/{place}?q=One&when=all"


class TestHistory:
    @pytest.mark.parametrize("uuid", ["547-09-1049", "547091049", "nobody"])
    def test_unknown_records_have_no_history(self, viewer: Browser, uuid: str) -> None:
        for kind in ("borrower", "loan", "anything"):
            assert viewer.get(f"/audit/history/{kind}/{uuid}/").status_code == 404
        assert not Entry.objects.filter(subject_uuid=uuid).exists()

    def test_a_borrowers_history_includes_its_loans(self, viewer: Browser, portal_service: Sandbox) -> None:
        owner = given.borrower(portal_service)
        about = {"subject_kind": "loan", "subject_uuid": "l-1", "borrower_uuid": owner.uuid}
        append(MAYA, "lookup.correct", subject_label="that loan", **about)
        append(MAYA, "notes.add", subject_label="that borrower", borrower_uuid=owner.uuid)
        loan, borrower = (
            text(viewer.get(f"/audit/history/{kind}/{uuid}/", headers=htmx("history")))
            for kind, uuid in (("loan", "l-1"), ("borrower", owner.uuid))
        )
        assert loan.strip().startswith('<section class="sd-card" id="history"')
        assert "that loan" in loan
        assert "that borrower" not in loan
        assert "that loan" in borrower
        assert "that borrower" in borrower
        assert "/audit/?request" not in loan

    @pytest.mark.slow
    def test_an_auditor_reaches_who_viewed_a_record(
        self, auditor: Browser, viewer: Browser, portal_service: Sandbox
    ) -> None:
        owner = given.borrower(portal_service)
        loan, other = given.loan(portal_service, owner), given.loan(portal_service, owner)
        for one in (loan, other):
            viewer.get(one.get_absolute_url())
        history = text(auditor.get(f"/audit/history/loan/{loan.uuid}/"))
        link = re.search(r'href="([^"]+)">All views', history)
        assert link
        views = visible_text(text(auditor.get(unescape(link[1]))))
        assert f"opened loan {loan.uuid[:8]}" in views
        assert f"loan {other.uuid[:8]}" not in views
        history = text(viewer.get(f"/audit/history/loan/{loan.uuid}/"))
        assert "Recently viewed by Viewer" in visible_text(history)
        assert "All views" not in history

    def test_every_account_page_has_a_history(self, viewer: Browser, portal_service: Sandbox) -> None:
        owner = given.borrower(portal_service)
        loan, line = given.loan(portal_service, owner), given.line(portal_service, owner)
        application = given.account(Kind.APPLICATION, owner, "a-1")
        pages = {
            record.uuid: text(viewer.get(record.get_absolute_url())) for record in (loan, line, application)
        }
        without = [uuid for uuid, page in pages.items() if f'/{uuid}/" hx-trigger="revealed"' not in page]
        assert without == []
