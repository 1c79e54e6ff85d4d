"""The page of a line of credit: balances, read-aloud sentence, trend, statements and panels."""

import re
from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.conf import LazySettings
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import PageView
from portal.credit_lines.wording import past_due_words, read_aloud
from portal.records.models import Account, Borrower, Kind, Snapshot
from servicing import Statement
from servicing.figures import line_figures
from servicing.sandbox import Sandbox
from tests import given
from tests.portal import pages
from tests.portal.pages import age_record_views, allow_refresh, page, panel, plain

TODAY = date(2026, 11, 20)


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


def line_panel(browser: Browser, record: Account, query: str = "") -> str:
    """Return the line panel after it has called the service."""
    return panel(browser, f"{record.get_absolute_url()}{query}", "line")


class TestBalances:
    def test_balances_and_utilization_are_shown(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower, limit="20000.00", drawn="7600.00")
        shown = line_panel(viewer, line)
        for words in (
            "$7,600.00",
            "$12,400.00",
            "Principal 38% of limit",
            'role="meter"',
        ):
            assert words in shown
        assert "as reported" in shown

    @pytest.mark.parametrize(
        ("drawn", "state"),
        [("14800.00", "ok"), ("15000.00", "warn"), ("17800.00", "warn"), ("18000.00", "bad")],
    )
    def test_the_meter_marks_high_utilization(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower, drawn: str, state: str
    ) -> None:
        line = given.line(portal_service, borrower, limit="20000.00", drawn=drawn)
        shown = line_panel(viewer, line)
        assert f"sd-meter-{state}" in shown
        assert 'd="M75 0V8M90 0V8"' in shown

    def test_missing_balances_show_neither_zero_nor_a_meter(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower)
        portal_service.world.amend(line.uuid, **dict.fromkeys(Statement.__struct_fields__))
        shown = line_panel(viewer, line)
        assert "$0.00" not in shown
        assert 'role="meter"' not in shown
        assert "not provided by the service" in shown

    def test_past_due_amount_precedes_the_payoff_balance(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower)
        portal_service.world.amend(line.uuid, days_past_due=12, past_due_balance=Decimal("310.00"))
        shown = pages.visible_text(line_panel(viewer, line))
        assert "Past due $310.00" in shown.partition("Payoff balance")[0]
        assert "Days past due 12" in shown

    def test_a_possibly_frozen_line_is_flagged_on_page_and_list(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        frozen = given.line(portal_service, borrower, limit="1000.00", drawn="670.00")
        normal = given.line(portal_service, borrower, limit="1000.00", drawn="670.00")
        portal_service.world.freeze(frozen.uuid)
        words = "Available credit is $0.00 although principal is 67% of the limit. The line may be frozen."
        assert f"Data check: {words}<" in line_panel(viewer, frozen)
        assert "Data check" not in line_panel(viewer, normal)
        listed = viewer.get("/lines/?check=yes").content.decode()
        assert frozen.get_absolute_url() in listed
        assert normal.get_absolute_url() not in listed

    def test_conflicting_past_due_days_and_balance_are_flagged(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower)
        portal_service.world.amend(line.uuid, days_past_due=12)
        assert "Data check: Past due days and balance disagree." in line_panel(viewer, line)


class TestReadAloud:
    @pytest.mark.parametrize(
        ("fields", "sentence"),
        [
            ({}, ""),
            ({"payoff_balance": "7712.44"}, "The payoff balance is $7,712.44."),
            ({"payment_amount_due": "0"}, "No payment is due."),
            (
                {"payment_amount_due": "620", "payment_due_date": date(2026, 11, 24)},
                "The next payment is $620.00, due on Tuesday, Nov 24, 2026.",
            ),
            # An amount whose due date has passed is called neither the last nor the next payment.
            ({"payment_amount_due": "620", "payment_due_date": date(2026, 11, 14)}, ""),
            ({"days_past_due": 3}, "An amount is past due."),
            (
                {"payment_amount_due": "0", "past_due_balance": "310", "days_past_due": 12},
                "$310.00 is past due. The oldest part is 12 days late.",
            ),
            (
                {"past_due_balance": "310", "days_past_due": 1},
                "$310.00 is past due. The oldest part is 1 day late.",
            ),
            ({"past_due_balance": "0", "days_past_due": 0}, ""),
        ],
    )
    def test_sentence_covers_only_known_figures(self, fields: dict[str, object], sentence: str) -> None:
        values = {key: Decimal(value) if isinstance(value, str) else value for key, value in fields.items()}
        line = Statement(**values)
        assert read_aloud(line, line_figures(line, TODAY)) == sentence

    @pytest.mark.parametrize(
        ("days", "amount", "words"),
        [
            (12, "310", "Past due $310.00, the oldest part 12 days late"),
            (1, None, "Past due, amount not known, the oldest part 1 day late"),
            (None, "310", "Past due $310.00"),
            (0, "0", ""),
            (None, None, ""),
        ],
    )
    def test_past_due_words_summarize_days_and_amount(
        self, days: int | None, amount: str | None, words: str
    ) -> None:
        line = Statement(days_past_due=days, past_due_balance=amount and Decimal(amount))
        assert past_due_words(line_figures(line, TODAY), TODAY) == words

    def test_sentence_can_be_copied_from_the_page(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower, drawn="7600.00")
        assert 'data-copy="The payoff balance is $7,600.00. No payment is due."' in line_panel(viewer, line)


def backdate_first_copy(line: Account) -> None:
    """Move the date of a line's first saved copy back by a day."""
    snapshots = Snapshot.objects.filter(answer__kind="line", answer__uuid=line.uuid)
    first = snapshots.earliest("last_at")
    snapshots.filter(pk=first.pk).update(last_at=first.last_at - timedelta(days=1))


class TestTrend:
    def test_unchanged_balances_show_no_trend(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower, opened=date(2026, 1, 1))
        assert "Trend" not in line_panel(viewer, line)
        portal_service.world.statement(line.uuid, "2026-03-15")
        assert "Trend" not in line_panel(viewer, line, "?refresh=1")

    def test_changed_balances_have_a_chart_and_a_table(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower, limit="20000.00", drawn="1000.00")
        line_panel(viewer, line)
        portal_service.world.draw(line.uuid, "500.00")
        assert "Trend" not in line_panel(viewer, line, "?refresh=1")  # Both copies are from today.
        backdate_first_copy(line)
        shown = page(viewer, line.get_absolute_url())
        assert shown.count("<polyline") == 2  # The past due balance never changed.
        assert "2 copies since" in shown
        assert "$1,000.00" in shown

    def test_a_missing_balance_is_not_plotted(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower, past_due_balance="12.50")
        line_panel(viewer, line)
        portal_service.world.draw(line.uuid, "500.00")
        portal_service.world.amend(line.uuid, past_due_balance=None)
        line_panel(viewer, line, "?refresh=1")
        backdate_first_copy(line)
        assert page(viewer, line.get_absolute_url()).count("<polyline") == 2


class TestStatements:
    def test_a_gap_is_listed_between_its_statements(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower, opened=date(2025, 10, 1))
        for day in ("2025-12-15", "2026-02-15", "2026-03-30", "2026-05-01"):
            portal_service.world.statement(line.uuid, day)
        line_panel(viewer, line)
        shown = page(viewer, line.get_absolute_url())
        assert "4 statements, 1 gap" in shown
        rows = re.findall(r'id="statement-([\d-]+)"|<span>(None between [^<]*)</span>', shown)
        assert [key or words for key, words in rows] == [
            "2026-05-01",
            "2026-03-30",
            "2026-02-15",
            "None between Dec 15, 2025 and Feb 15, 2026",
            "2025-12-15",
        ]

    def test_only_the_newest_statement_is_new(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower, opened=date(2026, 1, 1))
        for day in ("2026-02-15", "2026-03-15"):
            portal_service.world.statement(line.uuid, day)
        line_panel(viewer, line)
        shown = page(viewer, line.get_absolute_url())
        rows = re.findall(r'id="statement-(\d[\d-]+)"(.*?)</li>', shown, re.DOTALL)
        assert [(key, ">New</span>" in row) for key, row in rows] == [
            ("2026-03-15", True),
            ("2026-02-15", False),
        ]

    def test_selected_statement_opens_with_links_to_its_neighbors(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower, settings: LazySettings
    ) -> None:
        settings.DEBUG = True  # Allows documents from this machine.
        line = given.line(portal_service, borrower, opened=date(2026, 1, 1))
        for day in ("2026-02-15", "2026-03-15", "2026-04-15"):
            portal_service.world.statement(line.uuid, day)
        line_panel(viewer, line)
        shown = panel(viewer, f"{line.get_absolute_url()}?statement=2026-03-15", "line-statements")
        assert f'src="{line.get_absolute_url()}statements/2026-03-15/pdf/#toolbar=0&amp;navpanes=0' in shown
        assert 'title="Statement of Mar 15, 2026"' in shown
        earlier, later = shown.index('data-key="["'), shown.index('data-key="]"')
        assert "statement=2026-02-15" in shown[:earlier].rpartition("<a ")[2]
        assert "statement=2026-04-15" in shown[:later].rpartition("<a ")[2]

    @pytest.mark.parametrize("wanted", ["", "2026-03-16", "evil", "%00", "0000-00-00"])
    def test_no_document_opens_without_a_listed_date(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower, wanted: str
    ) -> None:
        line = given.line(portal_service, borrower, opened=date(2026, 1, 1))
        portal_service.world.statement(line.uuid, "2026-03-15")
        line_panel(viewer, line)
        shown = page(viewer, f"{line.get_absolute_url()}?statement={wanted}")
        assert "<iframe" not in shown
        assert "No statement selected" in shown

    def test_empty_list_differs_from_a_list_not_loaded(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower)
        assert "Not loaded yet" in page(viewer, line.get_absolute_url()).partition("Statements")[2]
        line_panel(viewer, line)
        shown = page(viewer, line.get_absolute_url())
        assert "None yet" in shown.partition("Statements")[2]
        assert "Select a statement" not in shown

    def test_statements_without_date_or_link_are_only_counted(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower)
        incomplete = [
            {"billing_date": None, "url": "https://x.example/a.pdf"},
            {"billing_date": "2026-01-01"},
        ]
        portal_service.fail_next("credit_lines.statement", changes={"statements": incomplete})
        line_panel(viewer, line)
        assert "0 statements, 2 without a date or link" in page(viewer, line.get_absolute_url())

    def test_the_statements_follow_the_line_and_keep_the_open_document(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower, opened=date(2026, 1, 1))
        portal_service.world.statement(line.uuid, "2026-03-15")
        address = f"{line.get_absolute_url()}?statement=2026-03-15"
        shown = line_panel(viewer, line)
        assert 'id="line-statements"' not in shown
        followed = panel(viewer, address, "line-statements")
        assert f'hx-get="{address}" hx-trigger="account:read from:body' in followed
        assert "Statement of Mar 15, 2026" in followed
        assert "Mar 15, 2026" in followed


class TestPanels:
    def test_only_panels_call_the_service_and_only_once(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower)
        page(viewer, line.get_absolute_url())
        assert portal_service.calls == []
        for name in ("line", "line-repayments", "line", "line-statements"):
            panel(viewer, line.get_absolute_url(), name)
        assert [call.operation for call in portal_service.calls] == given.reads_of(Kind.LINE)

    def test_a_failed_panel_shows_its_saved_copy(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower, limit="12345.00")
        line_panel(viewer, line)
        allow_refresh(line)
        portal_service.fail_next("credit_lines.statement", status=500, times=None)
        failed = line_panel(viewer, line)
        assert "Showing copy of" in failed
        assert "$12,345.00" in failed
        assert "Not responding" not in panel(viewer, line.get_absolute_url(), "line-repayments")

    def test_without_scripts_refresh_reads_the_service(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower, limit="12345.00")
        portal_service.world.repayment(line.uuid, amount="310.00")
        shown = plain(viewer, f"{line.get_absolute_url()}?refresh=1")
        assert "$12,345.00" in shown
        assert "$310.00" in shown

    @pytest.mark.slow
    def test_changes_since_the_last_view_are_marked(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower, limit="20000.00")
        page(viewer, line.get_absolute_url())
        line_panel(viewer, line)
        age_record_views()
        portal_service.world.draw(line.uuid, "500.00")
        allow_refresh(line)
        page(viewer, line.get_absolute_url())
        assert "$500.00</ins>" in line_panel(viewer, line)

    def test_page_links_to_a_printable_summary(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower)
        shown = line_panel(viewer, line)
        assert f'href="{line.get_absolute_url()}summary/" data-key="p"' in shown
        assert viewer.get(f"{line.get_absolute_url()}summary/").status_code == 200

    def test_a_page_view_is_recorded(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower)
        page(viewer, line.get_absolute_url())
        assert PageView.objects.get(page="credit_lines.detail").subject_uuid == line.uuid

    def test_wrong_borrower_in_the_address_redirects(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower)
        answer = viewer.get(f"/borrowers/somebody/lines/{line.uuid}/")
        assert (answer.status_code, answer["Location"]) == (302, line.get_absolute_url())

    def test_due_date_shows_the_days_remaining(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        line = given.line(portal_service, borrower)
        portal_service.world.amend(
            line.uuid,
            payment_due_date=str(timezone.localdate() + timedelta(days=4)),
            payment_amount_due=Decimal("88.00"),
        )
        assert "in 4 days" in line_panel(viewer, line)
