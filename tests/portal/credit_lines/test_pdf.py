"""The PDF of a statement: where it is read from, when it is refused, and what is recorded."""

import contextlib
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import DatabaseError
from django.http import HttpResponseBase
from django.test import Client as Browser

from portal.audit.models import Entry, PageView, RemoteCall
from portal.credit_lines import documents
from portal.credit_lines.models import Fingerprint
from portal.records.models import Account
from portal.ui import wording
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.portal.pages import page, panel, visible_text

DAY = "2026-03-15"


@pytest.fixture(autouse=True)
def allow_loopback(settings: LazySettings) -> Any:
    """Allow documents from this machine, as in local use."""
    settings.DEBUG = True
    documents._fetcher.cache_clear()


@pytest.fixture
def line(portal_service: Sandbox) -> Account:
    record = given.line(portal_service, given.borrower(portal_service), opened=date(2026, 1, 1))
    portal_service.world.statement(record.uuid, DAY)
    return record


def get_document(browser: Browser, line: Account, query: str = "", day: str = DAY) -> HttpResponseBase:
    return browser.get(f"{line.get_absolute_url()}statements/{day}/pdf/{query}")


def read_bytes(answer: HttpResponseBase) -> bytes:
    return b"".join(answer.streaming_content)  # type: ignore[attr-defined]


def read_refusal(browser: Browser, line: Account, status: int) -> str:
    answer = get_document(browser, line)
    assert answer.status_code == status
    assert answer["Content-Type"].startswith("text/html")
    assert answer["X-Frame-Options"] == "SAMEORIGIN"
    return answer.content.decode()  # type: ignore[attr-defined,no-any-return]


def test_the_document_has_the_portals_own_headers(viewer: Browser, line: Account) -> None:
    answer = get_document(viewer, line)
    assert read_bytes(answer).startswith(b"%PDF-")
    assert answer.status_code == 200
    assert {name: answer[name] for name in ("Content-Type", "X-Frame-Options", "X-Content-Type-Options")} == {
        "Content-Type": "application/pdf",
        "X-Frame-Options": "SAMEORIGIN",
        "X-Content-Type-Options": "nosniff",
    }
    assert answer["Content-Disposition"] == f'inline; filename="statement-{DAY}.pdf"'
    policy = answer["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert policy.endswith("frame-ancestors 'self'")
    assert "script-src" not in policy
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.slow
def test_the_line_page_cannot_be_framed(viewer: Browser, line: Account) -> None:
    viewer.cookies["js"] = "1"
    assert viewer.get(line.get_absolute_url())["X-Frame-Options"] == "DENY"


def test_a_download_after_a_view_is_recorded(viewer: Browser, line: Account) -> None:
    read_bytes(get_document(viewer, line))
    answer = get_document(viewer, line, "?download=1")
    assert answer["Content-Disposition"].startswith("attachment;")
    read_bytes(answer)
    entry = Entry.objects.get(action="credit_lines.download")
    assert (entry.subject_label, entry.borrower_uuid) == (
        f"statement of {wording.day(DAY)}, line {line.uuid[:8]}",
        line.borrower_uuid,
    )


def test_the_link_comes_from_the_service_and_not_from_the_browser(
    viewer: Browser, portal_service: Sandbox, line: Account
) -> None:
    read_bytes(get_document(viewer, line, "?url=http://169.254.169.254/&statement=evil"))
    assert [call.operation for call in portal_service.calls] == ["credit_lines.statement", "documents.fetch"]


def test_a_view_and_its_calls_are_recorded(viewer: Browser, line: Account) -> None:
    read_bytes(get_document(viewer, line))
    view = PageView.objects.get(page="credit_lines.pdf")
    assert view.subject_label == f"statement of {wording.day(DAY)}, line {line.uuid[:8]}"
    assert view.borrower_uuid == line.borrower_uuid
    call = RemoteCall.objects.get(operation="documents.fetch")
    assert (call.outcome, call.status) == ("confirmed", 200)
    assert call.path.startswith("127.0.0.1/documents/")


@pytest.mark.slow
def test_the_duration_is_recorded_in_milliseconds(
    viewer: Browser, line: Account, portal_service: Sandbox
) -> None:
    portal_service.fail_next("documents.fetch", delay=0.5)
    read_bytes(get_document(viewer, line))
    assert 500 <= RemoteCall.objects.get(operation="documents.fetch").duration_ms < 60_000


def read_main(browser: Browser, address: str) -> str:
    """Return the main part of a page, because the menu may show "New" too."""
    return page(browser, address).partition("<main")[2]


@pytest.mark.slow
def test_a_statement_is_new_until_the_user_views_it(
    viewer: Browser, servicer: Browser, line: Account
) -> None:
    panel(viewer, line.get_absolute_url(), "line")
    assert ">New</span>" in read_main(viewer, line.get_absolute_url())
    read_bytes(get_document(viewer, line))
    assert ">New</span>" not in read_main(viewer, line.get_absolute_url())
    assert ">New</span>" in read_main(servicer, line.get_absolute_url())


def test_an_unchanged_document_has_one_fingerprint(viewer: Browser, line: Account) -> None:
    for _ in range(2):
        content = read_bytes(get_document(viewer, line))
    fingerprint = Fingerprint.objects.get()
    assert (fingerprint.size, str(fingerprint.billing_date)) == (len(content), DAY)
    assert fingerprint.last_at > fingerprint.first_at


@pytest.mark.slow
def test_a_changed_document_is_flagged_with_both_dates(
    viewer: Browser, portal_service: Sandbox, line: Account
) -> None:
    read_bytes(get_document(viewer, line))
    portal_service.fail_next("documents.fetch", body=b"%PDF-1.7 another content")
    read_bytes(get_document(viewer, line))
    panel(viewer, line.get_absolute_url(), "line")
    shown = page(viewer, f"{line.get_absolute_url()}?statement={DAY}")
    assert "Changed" in shown
    assert ", then " in shown
    assert all(one.sha256[:8] in shown for one in Fingerprint.objects.all())


@pytest.mark.slow
def test_each_document_of_one_date_opens_by_its_position(
    viewer: Browser, portal_service: Sandbox, line: Account
) -> None:
    portal_service.world.statement(line.uuid, "2026-04-15")
    portal_service.world.draw(line.uuid, "250.00")  # The corrected one differs.
    portal_service.world.statement(line.uuid, DAY)
    panel(viewer, line.get_absolute_url(), "line")
    shown = page(viewer, f"{line.get_absolute_url()}?statement={DAY}-2")
    assert "<h3>Statement of Mar 15, 2026, document 2</h3>" in shown
    assert f'src="{line.get_absolute_url()}statements/{DAY}-2/pdf/#' in shown
    assert [shown.count(f'id="statement-{key}"') for key in (DAY, f"{DAY}-2", "2026-04-15")] == [1, 1, 1]
    assert f'href="?statement={DAY}#line-statements"' in shown  # earlier
    assert 'href="?statement=2026-04-15#line-statements"' in shown  # later
    assert "3 statements</span>" in " ".join(shown.split()).replace(" </span>", "</span>")
    first, second = (read_bytes(get_document(viewer, line, day=key)) for key in (DAY, f"{DAY}-2"))
    assert first != second
    calls = [call.path for call in RemoteCall.objects.filter(operation="documents.fetch").order_by("id")]
    assert len(set(calls)) == 2
    assert {(one.position, one.size) for one in Fingerprint.objects.all()} == {
        (1, len(first)),
        (2, len(second)),
    }
    labels = PageView.objects.filter(page="credit_lines.pdf").values_list("subject_label", flat=True)
    assert set(labels) == {
        f"statement of {wording.day(DAY)}, line {line.uuid[:8]}",
        f"statement of {wording.day(DAY)}, document 2, line {line.uuid[:8]}",
    }
    assert "Changed" not in page(viewer, f"{line.get_absolute_url()}?statement={DAY}")
    assert get_document(viewer, line, day=f"{DAY}-3").status_code == 404


@pytest.mark.parametrize(
    ("fault", "status", "sentence"),
    [
        ({"html": True}, 502, "isn’t a PDF"),
        (
            {"status": 302, "headers": {"Location": "http://169.254.169.254/latest/"}},
            502,
            "isn’t an allowed document host",
        ),
        ({"size": 200 * 1024 * 1024}, 502, "too large"),
        ({"status": 403}, 502, "status 403"),
        ({"truncate": True}, 503, "cut"),
        ({"cut_before": True}, 503, "No document from"),
    ],
)
def test_anything_but_a_complete_pdf_is_refused_with_a_reason(
    viewer: Browser, portal_service: Sandbox, line: Account, fault: dict[str, Any], status: int, sentence: str
) -> None:
    portal_service.fail_next("documents.fetch", **fault)
    shown = read_refusal(viewer, line, status)
    assert sentence in shown
    assert "Try again" in shown
    assert Entry.objects.get(action="credit_lines.pdf").result == "rejected"
    assert not Fingerprint.objects.exists()
    assert not PageView.objects.exists()


@pytest.mark.slow
def test_a_document_that_arrives_too_slowly_is_refused(
    viewer: Browser, portal_service: Sandbox, line: Account, settings: LazySettings
) -> None:
    settings.SERVICING_DOCUMENT_TIMEOUT = 0.5
    portal_service.fail_next("documents.fetch", drip=0.02)
    shown = read_refusal(viewer, line, 502)
    assert "took too long to arrive" in shown
    assert "Try again" in shown
    assert RemoteCall.objects.get(operation="documents.fetch").error in shown
    assert not Fingerprint.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("table", "when"),
    [
        ("audit_remotecall", "NEW.operation = 'documents.fetch'"),
        ("audit_entry", "NEW.action = 'credit_lines.download'"),
    ],
)
def test_an_unrecorded_download_leaves_no_file_open(
    viewer: Browser, portal_service: Sandbox, line: Account, table: str, when: str
) -> None:
    portal_service.fail_next("documents.fetch", size=2 * 1024 * 1024)
    databases.reject_inserts(table, when)
    before = deleted_files()
    with pytest.raises(DatabaseError):
        get_document(viewer, line, "?download=1")
    databases.allow_inserts(table)
    # Files of earlier tests may be closed meanwhile.
    assert deleted_files() <= before


def deleted_files() -> set[tuple[str, int]]:
    """Return the path and inode of each deleted file that this process has open."""
    files = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        # The descriptor of the listing itself is closed by now.
        with contextlib.suppress(FileNotFoundError):
            if (path := str(descriptor.readlink())).endswith("(deleted)"):
                files.add((path, descriptor.stat().st_ino))
    return files


def test_a_host_that_is_not_allowed_is_refused(
    viewer: Browser, portal_service: Sandbox, line: Account
) -> None:
    statements = [{"billing_date": DAY, "url": "https://files.example/a.pdf?key=secret"}]
    portal_service.fail_next("credit_lines.statement", changes={"statements": statements})
    assert "files.example, which isn’t an allowed document host" in read_refusal(viewer, line, 502)
    call = RemoteCall.objects.get(operation="documents.fetch")
    assert (call.path, call.outcome, call.status) == ("files.example/a.pdf", "protocol", None)


class TestKnownProblems:
    """A statement known to be out of reach says why, and offers neither Download nor Open."""

    def read_pane(self, browser: Browser, line: Account) -> tuple[str, bool]:
        """The words of the pane of the statement, and whether it or its list has a link to the document."""
        panel(browser, line.get_absolute_url(), "line")
        shown = page(browser, f"{line.get_absolute_url()}?statement={DAY}").partition('id="line-statements"')[
            2
        ]
        links = re.findall(rf"(?s)<a [^>]*/statements/{DAY}/pdf/[^>]*>.*?</a>", shown)
        offers = [link for link in links if "Try again" not in link]
        return visible_text(shown), bool(offers) or "<iframe" in shown

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("url", "reason"),
        [
            ("https://files.example/a.pdf?key=secret", "files.example, which isn’t an allowed document host"),
            ("http://169.254.169.254/latest/meta-data", "isn’t an allowed document host"),
            ("javascript:alert(1)", "doesn’t use https"),
            ("https://user:pass@files.example/a.pdf", "contains a username"),
            ("file:///etc/passwd", "doesn’t use https"),
            ("https://files.example\\@evil.example/", "isn’t valid"),
        ],
    )
    def test_a_hostile_link_says_why_before_it_is_tried(
        self, viewer: Browser, portal_service: Sandbox, line: Account, url: str, reason: str
    ) -> None:
        statements = [{"billing_date": DAY, "url": url}]
        portal_service.fail_next("credit_lines.statement", changes={"statements": statements}, times=None)
        words, is_offered = self.read_pane(viewer, line)
        assert reason in words
        assert "Not available" in words
        assert (is_offered, "Try again" in words, "secret" in words) == (False, False, False)
        assert not RemoteCall.objects.filter(operation="documents.fetch").exists()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "fault", [{"status": 404}, {"html": True}, {"cut_before": True}, {"truncate": True}]
    )
    def test_a_dead_link_says_why_until_it_works(
        self, viewer: Browser, portal_service: Sandbox, line: Account, fault: dict[str, Any]
    ) -> None:
        assert self.read_pane(viewer, line)[1]
        portal_service.fail_next("documents.fetch", **fault)
        assert get_document(viewer, line).status_code in (502, 503)
        words, is_offered = self.read_pane(viewer, line)
        assert RemoteCall.objects.get(operation="documents.fetch").error in words
        assert (is_offered, "Try again" in words) == (False, True)
        assert read_bytes(get_document(viewer, line)).startswith(b"%PDF-")
        words, is_offered = self.read_pane(viewer, line)
        assert (is_offered, "Not available" in words) == (True, False)

    def test_only_the_failed_document_of_a_date_is_unavailable(
        self, viewer: Browser, portal_service: Sandbox, line: Account
    ) -> None:
        portal_service.world.statement(line.uuid, DAY)
        portal_service.fail_next("documents.fetch", status=404)
        get_document(viewer, line, day=f"{DAY}-2")
        shown = page(viewer, f"{line.get_absolute_url()}?statement={DAY}")
        assert visible_text(shown).count("Not available") == 1
        assert f'/statements/{DAY}/pdf/?download=1"' in shown
        assert f"/statements/{DAY}-2/pdf/" not in shown


def test_production_requires_https(viewer: Browser, line: Account, settings: LazySettings) -> None:
    settings.DEBUG = False
    assert "doesn’t use https" in read_refusal(viewer, line, 502)


def test_a_statement_that_is_no_longer_listed_is_reported(
    viewer: Browser, portal_service: Sandbox, line: Account
) -> None:
    portal_service.fail_next("credit_lines.statement", changes={"statements": []})
    assert "no longer lists a statement for this date" in read_refusal(viewer, line, 404)


def test_the_frame_shows_the_services_error(viewer: Browser, portal_service: Sandbox, line: Account) -> None:
    portal_service.fail_next("credit_lines.statement", status=500, message="Out of order", times=None)
    assert "Out of order" in read_refusal(viewer, line, 503)


@pytest.mark.parametrize(
    "day",
    ["evil", "2026-3-15", "2026-02-30", "2026-03-15T00:00", f"{DAY}-1", f"{DAY}-02", f"{DAY}-", f"{DAY}-²"],
)
def test_an_invalid_date_is_not_found(
    viewer: Browser, portal_service: Sandbox, line: Account, day: str
) -> None:
    assert get_document(viewer, line, day=day).status_code == 404
    assert portal_service.calls == []
