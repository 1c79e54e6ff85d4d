"""A statement's document: by the link that the service gives now, whole or not at all, and framed by nobody else."""

import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import DatabaseError
from django.http import HttpResponseBase
from django.test import Client as Browser

from portal.audit.models import Entry, RecordView, RemoteCall
from portal.credit_lines import documents
from portal.credit_lines.models import Fingerprint
from portal.registry.models import Record
from portal.ui import wording
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.portal.pages import page, panel

DAY = "2026-03-15"


@pytest.fixture(autouse=True)
def loopback(settings: LazySettings) -> Any:
    """Documents may come from this machine, as in local use."""
    settings.DEBUG = True
    documents._fetcher.cache_clear()


@pytest.fixture
def line(portal_service: Sandbox) -> Record:
    record = given.line(portal_service, given.borrower(portal_service), opened=date(2026, 1, 1))
    portal_service.world.statement(record.uuid, DAY)
    return record


def fetched(browser: Browser, line: Record, query: str = "", day: str = DAY) -> HttpResponseBase:
    return browser.get(f"{line.get_absolute_url()}statements/{day}/pdf/{query}")


def bytes_of(answer: HttpResponseBase) -> bytes:
    return b"".join(answer.streaming_content)  # type: ignore[attr-defined]


def refused(browser: Browser, line: Record, status: int) -> str:
    answer = fetched(browser, line)
    assert answer.status_code == status
    assert answer["Content-Type"].startswith("text/html")
    assert answer["X-Frame-Options"] == "SAMEORIGIN"
    return answer.content.decode()  # type: ignore[attr-defined,no-any-return]


def test_it_comes_whole_with_headers_of_our_own(viewer: Browser, line: Record) -> None:
    answer = fetched(viewer, line)
    assert bytes_of(answer).startswith(b"%PDF-")
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


def test_no_other_page_may_be_framed(viewer: Browser, line: Record) -> None:
    viewer.cookies["js"] = "1"
    assert viewer.get(line.get_absolute_url())["X-Frame-Options"] == "DENY"


def test_it_can_be_downloaded_which_leaves_an_entry_even_after_a_look(viewer: Browser, line: Record) -> None:
    bytes_of(fetched(viewer, line))
    answer = fetched(viewer, line, "?download=1")
    assert answer["Content-Disposition"].startswith("attachment;")
    bytes_of(answer)
    entry = Entry.objects.get(action="credit_lines.download")
    assert (entry.subject_label, entry.borrower_uuid) == (
        f"statement of {wording.day(DAY)}, line {line.uuid[:8]}",
        line.borrower_uuid,
    )


def test_the_link_is_read_anew_and_never_the_browsers(
    viewer: Browser, portal_service: Sandbox, line: Record
) -> None:
    bytes_of(fetched(viewer, line, "?url=http://169.254.169.254/&statement=evil"))
    assert [call.operation for call in portal_service.calls] == ["credit_lines.statement", "documents.fetch"]


def test_each_view_is_recorded_and_each_call_has_its_row(viewer: Browser, line: Record) -> None:
    bytes_of(fetched(viewer, line))
    entry = Entry.objects.get(action="credit_lines.pdf")
    assert entry.subject_label == f"statement of {wording.day(DAY)}, line {line.uuid[:8]}"
    assert entry.borrower_uuid == line.borrower_uuid
    call = RemoteCall.objects.get(operation="documents.fetch")
    assert (call.outcome, call.status) == ("confirmed", 200)
    assert call.path.startswith("127.0.0.1/documents/")


def test_how_long_it_took_is_recorded_in_milliseconds(
    viewer: Browser, line: Record, portal_service: Sandbox
) -> None:
    portal_service.fail_next("documents.fetch", delay=0.5)
    bytes_of(fetched(viewer, line))
    assert 500 <= RemoteCall.objects.get(operation="documents.fetch").duration_ms < 60_000


def content(browser: Browser, address: str) -> str:
    """The page without its frame, whose menu may have a "New" of its own."""
    return page(browser, address).partition("<main")[2]


def test_a_statement_is_new_until_it_was_viewed(viewer: Browser, servicer: Browser, line: Record) -> None:
    panel(viewer, line.get_absolute_url(), "line")
    assert ">New</span>" in content(viewer, line.get_absolute_url())
    bytes_of(fetched(viewer, line))
    assert ">New</span>" not in content(viewer, line.get_absolute_url())
    assert ">New</span>" in content(servicer, line.get_absolute_url())


def test_the_same_bytes_leave_one_fingerprint(viewer: Browser, line: Record) -> None:
    for _ in range(2):
        content = bytes_of(fetched(viewer, line))
    seen = Fingerprint.objects.get()
    assert (seen.size, str(seen.billing_date)) == (len(content), DAY)
    assert seen.last_at > seen.first_at


def test_changed_bytes_are_flagged_with_both_dates(
    viewer: Browser, portal_service: Sandbox, line: Record
) -> None:
    bytes_of(fetched(viewer, line))
    portal_service.fail_next("documents.fetch", body=b"%PDF-1.7 another content")
    bytes_of(fetched(viewer, line))
    panel(viewer, line.get_absolute_url(), "line")
    shown = page(viewer, f"{line.get_absolute_url()}?statement={DAY}")
    assert "Changed" in shown
    assert ", then " in shown
    assert all(one.sha256[:8] in shown for one in Fingerprint.objects.all())


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
def test_what_is_not_a_whole_pdf_is_refused_with_a_sentence(
    viewer: Browser, portal_service: Sandbox, line: Record, fault: dict[str, Any], status: int, sentence: str
) -> None:
    portal_service.fail_next("documents.fetch", **fault)
    shown = refused(viewer, line, status)
    assert sentence in shown
    assert "Try again" in shown
    assert Entry.objects.get(action="credit_lines.pdf").result == "rejected"
    assert not Fingerprint.objects.exists()
    assert not RecordView.objects.exists()


def test_a_document_that_drips_is_given_up_with_a_sentence(
    viewer: Browser, portal_service: Sandbox, line: Record, settings: LazySettings
) -> None:
    settings.SERVICING_DOCUMENT_TIMEOUT = 0.5
    portal_service.fail_next("documents.fetch", drip=0.02)
    shown = refused(viewer, line, 502)
    assert "took too long to arrive" in shown
    assert "Try again" in shown
    assert RemoteCall.objects.get(operation="documents.fetch").error in shown
    assert not Fingerprint.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("table", "when"),
    [
        ("audit_remotecall", "NEW.operation = 'documents.fetch'"),
        ("audit_entry", "NEW.action = 'credit_lines.download'"),
    ],
)
def test_a_document_whose_download_cannot_be_recorded_leaves_no_file_open(
    viewer: Browser, portal_service: Sandbox, line: Record, table: str, when: str
) -> None:
    portal_service.fail_next("documents.fetch", size=2 * 1024 * 1024)
    databases.fill_the_disk(table, when)
    before = temporary_files()
    with pytest.raises(DatabaseError):
        fetched(viewer, line, "?download=1")
    databases.free_the_disk(table)
    assert temporary_files() == before


def temporary_files() -> int:
    """How many nameless files this process has open."""
    opened = [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]
    return sum(name.endswith("(deleted)") for name in opened)


def test_a_host_that_nobody_named_is_not_asked(
    viewer: Browser, portal_service: Sandbox, line: Record
) -> None:
    elsewhere = [{"billing_date": DAY, "url": "https://files.example/a.pdf?key=secret"}]
    portal_service.fail_next("credit_lines.statement", changes={"statements": elsewhere})
    assert "files.example, which isn’t an allowed document host" in refused(viewer, line, 502)
    call = RemoteCall.objects.get(operation="documents.fetch")
    assert call.path == "files.example/a.pdf"


def test_without_debug_this_machine_is_not_asked(
    viewer: Browser, line: Record, settings: LazySettings
) -> None:
    settings.DEBUG = False
    assert "doesn’t use https" in refused(viewer, line, 502)


def test_a_day_the_service_lists_no_more_says_so(
    viewer: Browser, portal_service: Sandbox, line: Record
) -> None:
    portal_service.fail_next("credit_lines.statement", changes={"statements": []})
    assert "no longer lists a statement for this date" in refused(viewer, line, 404)


def test_a_service_that_is_down_says_so_in_the_frame(
    viewer: Browser, portal_service: Sandbox, line: Record
) -> None:
    portal_service.fail_next("credit_lines.statement", status=500, message="Out of order", times=None)
    assert "Out of order" in refused(viewer, line, 503)


@pytest.mark.parametrize("day", ["evil", "2026-3-15", "2026-02-30", "2026-03-15T00:00"])
def test_what_is_no_day_is_no_address(
    viewer: Browser, portal_service: Sandbox, line: Record, day: str
) -> None:
    assert fetched(viewer, line, day=day).status_code == 404
    assert portal_service.calls == []
