"""One line of credit: balances, use, what is due, trend and statements, from what the service told."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.conf import LazySettings
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Entry
from portal.credit_lines.wording import past_due_words, read_aloud
from portal.registry.models import Record
from servicing import Statement
from servicing.figures import line_figures
from servicing.sandbox import Sandbox
from tests import given
from tests.portal import pages
from tests.portal.pages import an_hour_later, forget, page, panel, plain

TODAY = date(2026, 11, 20)


@pytest.fixture
def borrower(portal_service: Sandbox) -> Record:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


def read(browser: Browser, record: Record, query: str = "") -> str:
    """The line after its panel asked the service."""
    return panel(browser, f"{record.get_absolute_url()}{query}", "line")


class TestBalances:
    def test_every_balance_is_shown_with_the_use_of_the_limit(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower, limit="20000.00", drawn="7600.00")
        shown = read(viewer, line)
        for words in (
            "$7,600.00",
            "$12,400.00",
            "Principal 38% of limit",
            'role="meter"',
        ):
            assert words in shown
        assert "as reported" in shown

    def test_the_marks_of_the_meter_are_settings(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record, settings: LazySettings
    ) -> None:
        line = given.line(portal_service, borrower, limit="20000.00", drawn="7600.00")
        assert "sd-meter-ok" in read(viewer, line)
        settings.UTILIZATION_WARN, settings.UTILIZATION_BAD = 20, 38
        shown = read(viewer, line)
        assert "sd-meter-bad" in shown
        assert 'd="M20 0V8M38 0V8"' in shown

    def test_what_is_not_provided_is_neither_zero_nor_a_meter(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower)
        portal_service.world.amend(line.uuid, **dict.fromkeys(Statement.__struct_fields__))
        shown = read(viewer, line)
        assert "$0.00" not in shown
        assert 'role="meter"' not in shown
        assert "not provided by the service" in shown

    def test_what_is_past_due_stands_in_the_title_and_comes_first(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower)
        portal_service.world.amend(line.uuid, days_past_due=12, past_due_balance=Decimal("310.00"))
        shown = pages.words(read(viewer, line))
        assert "Past due $310.00" in shown.partition("Payoff balance")[0]
        assert "Days past due 12" in shown

    def test_a_line_that_may_be_frozen_is_noticed_here_and_in_the_list(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        frozen = given.line(portal_service, borrower, limit="1000.00", drawn="670.00")
        fine = given.line(portal_service, borrower, limit="1000.00", drawn="670.00")
        portal_service.world.freeze(frozen.uuid)
        assert "the line may be frozen" in read(viewer, frozen)
        assert "Data check" not in read(viewer, fine)
        listed = viewer.get("/lines/?check=yes").content.decode()
        assert frozen.get_absolute_url() in listed
        assert fine.get_absolute_url() not in listed

    def test_days_and_balance_that_disagree_are_noticed(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower)
        portal_service.world.amend(line.uuid, days_past_due=12)
        assert "Data check: Past due days and balance disagree." in read(viewer, line)


class TestReadAloud:
    @pytest.mark.parametrize(
        ("told", "sentence"),
        [
            ({}, ""),
            ({"payoff_balance": "7712.44"}, "The payoff balance is $7,712.44."),
            ({"payment_amount_due": "0"}, "No payment is due."),
            (
                {"payment_amount_due": "620", "payment_due_date": date(2026, 11, 24)},
                "The next payment is $620.00, due on Tuesday, Nov 24, 2026.",
            ),
            # An amount that was due is never called a payment, last or next.
            ({"payment_amount_due": "620", "payment_due_date": date(2026, 11, 14)}, ""),
            ({"days_past_due": 3}, "An amount is past due."),
            (
                {"payment_amount_due": "0", "past_due_balance": "310", "days_past_due": 12},
                "$310.00 is past due, for 12 days.",
            ),
            ({"past_due_balance": "310", "days_past_due": 1}, "$310.00 is past due, for 1 day."),
            ({"past_due_balance": "0", "days_past_due": 0}, ""),
        ],
    )
    def test_only_what_was_told_is_said(self, told: dict[str, object], sentence: str) -> None:
        values = {key: Decimal(value) if isinstance(value, str) else value for key, value in told.items()}
        line = Statement(**values)
        assert read_aloud(line, line_figures(line, TODAY)) == sentence

    @pytest.mark.parametrize(
        ("days", "amount", "words"),
        [
            (12, "310", "Past due 12 days, $310.00"),
            (1, None, "Past due 1 day, amount not known"),
            (None, "310", "Past due $310.00"),
            (0, "0", ""),
            (None, None, ""),
        ],
    )
    def test_what_is_past_due_in_few_words(self, days: int | None, amount: str | None, words: str) -> None:
        line = Statement(days_past_due=days, past_due_balance=amount and Decimal(amount))
        assert past_due_words(line_figures(line, TODAY), TODAY) == words

    def test_the_sentence_can_be_copied_from_the_page(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower, drawn="7600.00")
        assert 'data-copy="The payoff balance is $7,600.00. No payment is due."' in read(viewer, line)


def a_day_earlier(line: Record) -> None:
    """Date the first copy of a line a day earlier."""
    first = line.snapshots.earliest("at")
    line.snapshots.filter(pk=first.pk).update(at=first.at - timedelta(days=1))


class TestTrend:
    def test_there_is_none_before_a_balance_changed(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower, opened=date(2026, 1, 1))
        assert "Trend" not in read(viewer, line)
        portal_service.world.statement(line.uuid, "2026-03-15")
        assert "Trend" not in read(viewer, line, "?refresh=1")

    def test_balances_that_moved_are_lines_and_a_table(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower, limit="20000.00", drawn="1000.00")
        read(viewer, line)
        portal_service.world.draw(line.uuid, "500.00")
        assert "Trend" not in read(viewer, line, "?refresh=1")  # Both copies are of today.
        a_day_earlier(line)
        shown = page(viewer, line.get_absolute_url())
        assert shown.count("<polyline") == 2  # The past due balance never changed.
        assert "2 copies since" in shown
        assert "$1,000.00" in shown

    def test_a_balance_that_is_not_told_has_no_line(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower, past_due_balance=None)
        read(viewer, line)
        portal_service.world.draw(line.uuid, "500.00")
        portal_service.world.amend(line.uuid, past_due_balance=None)
        read(viewer, line, "?refresh=1")
        a_day_earlier(line)
        assert page(viewer, line.get_absolute_url()).count("<polyline") == 2


class TestStatements:
    def test_they_stand_by_year_with_the_months_that_have_none(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower, opened=date(2025, 10, 1))
        for day in ("2025-12-15", "2026-02-15"):
            portal_service.world.statement(line.uuid, day)
        read(viewer, line)
        shown = page(viewer, line.get_absolute_url())
        assert "2 statements, 1 month missing" in shown
        assert "January: no statement" in shown
        assert shown.index("Feb 15, 2026") < shown.index("Dec 15, 2025")

    def test_the_chosen_one_opens_beside_the_list_with_steps_by_key(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower, opened=date(2026, 1, 1))
        for day in ("2026-02-15", "2026-03-15", "2026-04-15"):
            portal_service.world.statement(line.uuid, day)
        read(viewer, line)
        shown = panel(viewer, f"{line.get_absolute_url()}?statement=2026-03-15", "line-statements")
        assert f'src="{line.get_absolute_url()}statements/2026-03-15/pdf/#toolbar=0&amp;navpanes=0' in shown
        assert 'title="Statement of Mar 15, 2026"' in shown
        earlier, later = shown.index('data-key="["'), shown.index('data-key="]"')
        assert "statement=2026-02-15" in shown[:earlier].rpartition("<a ")[2]
        assert "statement=2026-04-15" in shown[:later].rpartition("<a ")[2]

    @pytest.mark.parametrize("wanted", ["", "2026-03-16", "evil", "%00", "0000-00-00"])
    def test_nothing_is_fetched_before_one_is_chosen(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record, wanted: str
    ) -> None:
        line = given.line(portal_service, borrower, opened=date(2026, 1, 1))
        portal_service.world.statement(line.uuid, "2026-03-15")
        read(viewer, line)
        shown = page(viewer, f"{line.get_absolute_url()}?statement={wanted}")
        assert "<iframe" not in shown
        assert "No statement selected" in shown

    def test_none_that_the_service_lists_is_not_the_same_as_none_that_was_read(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower)
        assert "Not loaded yet" in page(viewer, line.get_absolute_url()).partition("Statements")[2]
        read(viewer, line)
        shown = page(viewer, line.get_absolute_url())
        assert "None yet" in shown.partition("Statements")[2]
        assert "Select a statement" not in shown

    def test_a_document_without_a_day_or_a_link_is_only_counted(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower)
        odd = [{"billing_date": None, "url": "https://x.example/a.pdf"}, {"billing_date": "2026-01-01"}]
        portal_service.fail_next("credit_lines.statement", changes={"statements": odd})
        read(viewer, line)
        assert "0 statements, 2 without a date or link" in page(viewer, line.get_absolute_url())

    def test_the_list_follows_the_line_and_leaves_the_document_alone(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower, opened=date(2026, 1, 1))
        portal_service.world.statement(line.uuid, "2026-03-15")
        viewer.cookies["js"] = "1"
        alone, together = '<div class="sd-papers" id="statement-list" hx-swap-oob', 'id="line-statements"'
        shown = panel(viewer, f"{line.get_absolute_url()}?statement=2026-03-15", "line")
        assert alone in shown
        assert together not in shown
        assert "Mar 15, 2026" in shown
        shown = panel(viewer, line.get_absolute_url(), "line")
        assert f"{together} hx-swap-oob" in shown


class TestPanels:
    def test_the_page_asks_nothing_and_its_panels_once(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower)
        page(viewer, line.get_absolute_url())
        assert portal_service.calls == []
        for name in ("line", "line-repayments", "line", "statement-list", "line-statements"):
            panel(viewer, line.get_absolute_url(), name)
        assert [call.operation for call in portal_service.calls] == [
            "credit_lines.statement",
            "repayments.of_line",
        ]

    def test_one_failing_call_spoils_one_panel_and_keeps_its_copy(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower, limit="12345.00")
        read(viewer, line)
        forget(line)
        portal_service.fail_next("credit_lines.statement", status=500, times=None)
        spoilt = read(viewer, line)
        assert "Showing copy of" in spoilt
        assert "$12,345.00" in spoilt
        assert "Not responding" not in panel(viewer, line.get_absolute_url(), "line-repayments")

    @pytest.mark.django_db(transaction=True)
    def test_without_scripts_the_page_asks_before_it_comes(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower, limit="12345.00")
        portal_service.world.repayment(line.uuid, amount="310.00")
        shown = plain(viewer, line.get_absolute_url())
        assert "$12,345.00" in shown
        assert "$310.00" in shown

    def test_what_changed_since_somebody_looked_is_marked(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower, limit="20000.00")
        page(viewer, line.get_absolute_url())
        read(viewer, line)
        an_hour_later()
        portal_service.world.draw(line.uuid, "500.00")
        forget(line)
        page(viewer, line.get_absolute_url())
        assert "$500.00</ins>" in read(viewer, line)

    def test_its_summary_can_be_printed(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower)
        shown = read(viewer, line)
        assert f'href="{line.get_absolute_url()}summary/" data-key="p"' in shown
        assert viewer.get(f"{line.get_absolute_url()}summary/").status_code == 200

    def test_a_look_is_recorded(self, viewer: Browser, portal_service: Sandbox, borrower: Record) -> None:
        line = given.line(portal_service, borrower)
        page(viewer, line.get_absolute_url())
        assert Entry.objects.get(action="credit_lines.detail").subject_uuid == line.uuid

    def test_a_line_under_another_borrower_leads_to_its_own_address(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower)
        answer = viewer.get(f"/borrowers/somebody/lines/{line.uuid}/")
        assert (answer.status_code, answer["Location"]) == (302, line.get_absolute_url())

    def test_a_due_day_says_how_far_it_is(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        line = given.line(portal_service, borrower)
        portal_service.world.amend(
            line.uuid,
            payment_due_date=str(timezone.localdate() + timedelta(days=4)),
            payment_amount_due=Decimal("88.00"),
        )
        assert "in 4 days" in read(viewer, line)
