"""Tests of the loan page: figures, schedule, chart, panels and change marks."""

import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client as Browser
from django.urls import reverse
from django.utils import timezone

from portal.audit.models import PageView
from portal.loans.chart import chart
from portal.loans.figures import distance
from portal.records.models import Account, Borrower, Kind
from servicing import Loan
from servicing.sandbox import Sandbox
from servicing.schedules import schedule_of
from tests import given
from tests.portal import pages
from tests.portal.pages import age_record_views, allow_refresh, cells, page, panel, plain, visible_text


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


def borrowers_on_file(loan: Account) -> set[str]:
    """Return the borrowers on file for a loan and its repayments."""
    records, repayments = Account.objects.filter(uuid=loan.uuid), loan.repayments.all()
    return {one.borrower_uuid for one in (*records, *repayments)}


def read(browser: Browser, record: Account, query: str = "") -> str:
    """Return the loan panel once it has loaded."""
    return panel(browser, f"{record.get_absolute_url()}{query}", "loan")


class TestFigures:
    @pytest.mark.parametrize("shape", ["snake", "pascal"])
    def test_both_key_styles_show_the_same_figures(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower, shape: str
    ) -> None:
        loan = given.loan(portal_service, borrower, amount="12000.00", interest_rate="0", paid=3, shape=shape)
        shown = read(viewer, loan)
        for words in (
            "$1,000.00",
            "9 of 12 installments left",
            "$9,000.00",
            "Not a payoff quote",
        ):
            assert words in shown

    def test_overdue_installments_are_counted_and_summed(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        opened = timezone.localdate() - timedelta(days=100)
        loan = given.loan(portal_service, borrower, amount="1200.00", interest_rate="0", opened=opened)
        portal_service.world.amend(loan.uuid, delinquent=True)
        shown = read(viewer, loan)
        assert "3 installments, " in shown
        assert '<b class="sd-figure-2 sd-bad">$300.00</b>' in shown

    @pytest.mark.parametrize(
        ("status", "installments", "badge"),
        [
            ("ACTIVE", 12, r"\d+ days past due"),
            ("FORBEARANCE", 12, r"\d+ days past due Forbearance"),
            ("ACTIVE", 0, "Past due"),
        ],
    )
    def test_one_badge_says_the_worst(
        self,
        viewer: Browser,
        portal_service: Sandbox,
        borrower: Borrower,
        status: str,
        installments: int,
        badge: str,
    ) -> None:
        opened = timezone.localdate() - timedelta(days=100)
        loan = given.loan(portal_service, borrower, opened=opened, installments=installments)
        portal_service.world.amend(loan.uuid, delinquent=True, status=status, autopay_enabled=True)
        head = read(viewer, loan).partition("</h1>")[2].partition("</div>")[0]
        assert re.fullmatch(rf"{loan.uuid[:8]} {badge} Autopay on", visible_text(head))
        assert head.count("sd-badge sd-bad") == 1
        (row,) = cells(viewer.get("/loans/").content.decode(), "Loans, 1 in all")
        assert row["Status"] == re.sub(r".*past due", "Past due", badge)

    def test_figures_explain_missing_installments(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower, installments=0, repayments_start_date="2027-07-24")
        shown = read(viewer, loan)
        assert pages.card(shown, "No schedule yet").startswith(
            "No schedule yet Repayments start on Saturday, Jul 24, 2027."
        )
        assert "sd-figure-2" not in shown
        assert 'id="loan-schedule"' not in shown
        assert '<svg class="sd-chart-plot"' not in shown

    def test_a_borrower_mismatch_shows_a_warning(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan, other = (
            given.loan(portal_service, borrower),
            given.borrower(portal_service, first_name="Cedar Mill Dental PC"),
        )
        portal_service.world.amend(loan.uuid, user_uuid=other.uuid)
        shown = read(viewer, loan)
        assert "The service names a different borrower for this loan:" in shown
        assert "Cedar Mill Dental PC" in shown

    @pytest.mark.slow
    def test_a_borrower_mismatch_excludes_the_loan_until_corrected(
        self, viewer: Browser, supervisor: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan, other = (
            given.loan(portal_service, borrower),
            given.borrower(portal_service, first_name="Cedar Mill Dental PC"),
        )
        address = loan.get_absolute_url()
        read(viewer, loan)
        assert borrowers_on_file(loan) == {borrower.uuid}

        allow_refresh(loan)
        portal_service.world.amend(loan.uuid, user_uuid=other.uuid)
        read(viewer, loan)
        assert borrowers_on_file(loan) == {""}
        assert "It isn’t included in any borrower’s totals" in page(viewer, address)
        assert loan.uuid not in page(viewer, f"{borrower.get_absolute_url()}?tab=loans")

        correction = reverse("lookup:correct", args=[loan.kind, loan.uuid])
        supervisor.post(
            correction, {"label": "", "borrower_uuid": borrower.uuid, "reason": "Asked the lender."}
        )
        read(viewer, loan)
        assert loan.uuid in page(viewer, f"{borrower.get_absolute_url()}?tab=loans")
        assert "Its borrower here was confirmed by staff." in page(viewer, address)

    def test_apr_below_the_interest_rate_shows_a_data_check(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower, apr=Decimal("1.0"), interest_rate="9.5")
        assert "Data check: APR below interest rate." in read(viewer, loan)

    def test_installments_matching_the_reported_total_are_confirmed(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower, amount="1200.00", interest_rate="0")
        portal_service.world.amend(loan.uuid, total_repayment_amount=Decimal("1200.0"))
        assert "Installments add up to the reported total, $1,200.00" in read(viewer, loan)


class TestSchedule:
    def test_a_long_schedule_opens_at_the_next_installment(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower, installments=360, paid=40)
        shown = read(viewer, loan)
        assert 'data-announce="12 of 360 installments shown"' in shown
        assert "Show 37 earlier installments" in pages.visible_text(shown)
        assert "Show 311 later installments" in pages.visible_text(shown)
        assert "311 later installments not printed" in shown
        assert 'id="next-installment"' in shown

    def test_show_all_lists_every_installment(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower, installments=360, paid=40)
        read(viewer, loan)
        shown = panel(viewer, f"{loan.get_absolute_url()}?rows=all", "loan-schedule")
        assert shown.startswith('<section class="sd-card" id="loan-schedule"')
        assert shown.count('<th scope="row" class=') == 360

    def test_totals_are_exact(self, viewer: Browser, portal_service: Sandbox, borrower: Borrower) -> None:
        rows = [{"number": n, "due_date": f"2027-0{n}-01", "total": Decimal("0.1")} for n in range(1, 4)]
        loan = given.loan(portal_service, borrower, installments=0)
        portal_service.world.amend(loan.uuid, installments=rows)
        shown = read(viewer, loan)
        assert "Total, 3 installments" in shown
        assert "$0.30" in shown

    def test_yearly_subtotals_can_be_turned_off(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(
            portal_service,
            borrower,
            amount="1200.00",
            interest_rate="0",
            opened=date(2026, 10, 24),
            installments=12,
        )
        assert "Subtotal 2026, 2 installments" in read(viewer, loan)
        assert "Subtotal" not in panel(viewer, f"{loan.get_absolute_url()}?subtotals=off", "loan-schedule")

    def test_unknown_installment_keys_are_shown_without_figures(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower, installments=0)
        portal_service.world.amend(
            loan.uuid, installments=[{"Rate": 3, "Memo": "<b>x</b>", "When": {"from": "2027-01-01"}}]
        )
        shown = read(viewer, loan)
        for words in ("Rate", "Memo", "&lt;b&gt;x&lt;/b&gt;", "2027-01-01"):
            assert words in shown
        assert "An unpaid installment has no due date" in shown
        assert "Some installments are missing a date or amount" in shown
        assert "sd-chart-plot" not in shown

    def test_the_chart_draws_every_installment(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower, installments=12, paid=3)
        shown = read(viewer, loan)
        assert shown.count('%"><title>') == 12
        assert "12 installments from" in shown
        assert "3 paid, 0 past due" in shown
        assert "style=" not in shown

    def test_a_constant_column_moves_to_the_summary(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        shown = read(viewer, given.loan(portal_service, borrower, installments=12))
        assert "12 installments · No fees" in pages.visible_text(shown)
        assert "Fees</th>" not in shown
        assert "Total</th>" in shown


class TestChart:
    def build_chart(self, *rows: dict[str, Any]) -> Any:
        today = date(2026, 11, 20)
        return chart(schedule_of(Loan(uuid="l-1", installments=rows), today), today, today)

    def test_an_incomplete_or_invalid_schedule_has_no_chart(self) -> None:
        row = {"due_date": "2026-12-01", "total": 5}
        assert self.build_chart() is None
        assert self.build_chart(row, {"total": 5}) is None
        assert self.build_chart(row, {"due_date": "2027-01-01"}) is None
        assert self.build_chart({"due_date": "2026-12-01", "total": -5}) is None
        assert self.build_chart({"due_date": "2026-12-01", "total": 0}) is None

    def test_bars_are_sorted_by_due_date_around_today(self) -> None:
        found = self.build_chart(
            {"due_date": "2026-12-01", "principal": 60, "interest": 40, "status": "SCHEDULED"},
            {"due_date": "2026-11-01", "principal": 80, "interest": 20, "status": "SCHEDULED"},
        )
        assert [bar.words for bar in found.bars] == ["Nov 1, 2026: $100.00", "Dec 1, 2026: $100.00"]
        assert found.today == 50
        assert [bar.is_overdue for bar in found.bars] == [True, False]
        assert {bar.y for bar in found.bars} == {found.grid[-1].at}

    def test_what_is_due_today_stands_after_the_line_of_today(self) -> None:
        days = ("2026-11-18", "2026-11-19", "2026-11-20", "2026-11-21")
        found = self.build_chart(*({"due_date": day, "total": 5, "status": "SCHEDULED"} for day in days))
        assert (found.today, found.today_words) == (50, "Today, Nov 20")
        assert [bar.is_overdue for bar in found.bars] == [True, True, False, False]

    def test_the_axis_scales_to_any_amount(self) -> None:
        for amount, words in ((671, "$800"), (Decimal("0.3"), "$0.30"), (1_888_888_888_888, "$2T")):
            assert self.build_chart({"due_date": "2026-12-01", "total": amount}).grid[-1].words == words

    def test_a_long_schedule_is_grouped_by_year(self) -> None:
        days = [date(2026 + n // 12, n % 12 + 1, 1) for n in range(72)]
        found = self.build_chart(
            *({"due_date": f"{day}", "total": 100, "status": "PAID"} for day in days if day.year == 2026),
            *({"due_date": f"{day}", "total": 100 + day.month} for day in days if day.year > 2026),
        )
        assert found.bars[0].words == "2026: $1,200.00 in 12 installments"
        assert [bar.is_paid for bar in found.bars] == [True, False, False, False, False, False]
        assert [bar.words for bar in found.bars[-2:]] == [
            "2030: $1,278.00 in 12 installments",
            "2031: $1,278.00 in 12 installments",
        ]
        assert [tick.words for tick in found.months] == [str(year) for year in range(2026, 2032)]
        assert found.bars[-1].width == found.bars[-2].width == round(Decimal(95) / 6, 2)

    def test_the_balance_line_has_a_point_at_each_bar_end(self) -> None:
        days = [date(2026 + n // 12, n % 12 + 1, 1) for n in range(72)]
        found = self.build_chart(
            *({"due_date": f"{day}", "total": 100, "balance": 7100 - 100 * n} for n, day in enumerate(days))
        )
        points = [tuple(map(Decimal, point.split(","))) for point in found.balance.split()]
        assert [round(x, 1) for x, _ in points] == [
            Decimal(n) for n in ("0.7", "16.0", "32.6", "49.3", "66.0", "82.6", "99.3")
        ]
        assert [y for _, y in points] == sorted(y for _, y in points)

    def test_the_balance_has_an_axis_of_three_round_numbers(self) -> None:
        for highest, words in (
            (9500, ["$0", "$5,000", "$10,000"]),
            (Decimal("0.9"), ["$0.00", "$0.50", "$1.00"]),
        ):
            found = self.build_chart(
                {"due_date": "2026-12-01", "total": 100, "balance": highest},
                {"due_date": "2027-01-01", "total": 100, "balance": 0},
            )
            assert [tick.words for tick in found.balance_grid] == words
            assert [tick.at for tick in found.balance_grid] == [
                tick.at for tick in found.grid[:: len(found.grid) // 2]
            ]
            top = Decimal(found.balance.split()[0].partition(",")[2])
            assert top == found.height * (
                1 - Decimal(highest) / Decimal(words[-1].strip("$").replace(",", ""))
            )
        assert self.build_chart({"due_date": "2026-12-01", "total": 100}).balance_grid == ()

    def test_bar_segments_fill_the_bar(self) -> None:
        (bar,) = self.build_chart({"due_date": "2026-12-01", "principal": 75, "interest": 25}).bars
        assert sum(block.height for block in bar.blocks) + 2 == bar.height


class TestPanels:
    def test_only_panels_call_the_service_and_reuse_answers(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower)
        assert "Not loaded yet" in page(viewer, loan.get_absolute_url())
        assert portal_service.calls == []
        for name in ("loan", "loan-repayments", "loan", "loan-repayments", "loan-schedule"):
            panel(viewer, loan.get_absolute_url(), name)
        assert [call.operation for call in portal_service.calls] == given.reads_of(Kind.LOAN)

    def test_refresh_reads_the_service_again(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower)
        read(viewer, loan)
        portal_service.world.amend(loan.uuid, status="CHARGED_OFF")
        assert "CHARGED_OFF" in read(viewer, loan, "?refresh=1")

    @pytest.mark.slow
    def test_a_failed_call_shows_the_saved_copy_in_its_panel_only(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower, amount="12345.00")
        read(viewer, loan)
        allow_refresh(loan)
        portal_service.fail_next("loans.get", status=500, message="Out of order", times=None)
        failed = read(viewer, loan)
        assert "Showing copy of" in failed
        assert "$12,345.00" in failed
        assert "Not responding" not in panel(viewer, loan.get_absolute_url(), "loan-repayments")

    def test_a_failed_call_without_a_saved_copy_shows_an_error(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower)
        portal_service.fail_next("loans.get", status=500, message="Out of order")
        shown = read(viewer, loan)
        assert "The loan couldn’t be loaded" in shown
        assert "Out of order" in shown

    def test_repayments_that_fail_to_load_show_an_error(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower)
        portal_service.fail_next("repayments.of_loan", status=500, message="Out of order")
        assert "couldn’t be loaded" not in read(viewer, loan)
        shown = panel(viewer, loan.get_absolute_url(), "loan-repayments")
        assert "The repayments couldn’t be loaded" in shown
        assert "No repayments on file" not in shown

    @pytest.mark.slow
    def test_without_scripts_refresh_reads_the_service(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower, amount="12345.00")
        portal_service.world.repayment(loan.uuid, amount="310.00")
        assert "Not loaded yet" in plain(viewer, loan.get_absolute_url())
        shown = plain(viewer, f"{loan.get_absolute_url()}?refresh=1")
        assert "$12,345.00" in shown
        assert "$310.00" in shown


class TestViews:
    def test_the_first_view_marks_no_changes(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        assert "since your last visit" not in read(viewer, given.loan(portal_service, borrower))

    @pytest.mark.slow
    def test_changes_since_the_last_view_are_marked(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower, amount="12000.00")
        page(viewer, loan.get_absolute_url())
        read(viewer, loan)
        age_record_views()
        portal_service.world.amend(loan.uuid, amount=Decimal("11000.00"), delinquent=True)
        allow_refresh(loan)
        page(viewer, loan.get_absolute_url())
        shown = read(viewer, loan)
        for words in ("$12,000.00</del>", "$11,000.00</ins>", "Delinquent</dt>"):
            assert words in shown

    @pytest.mark.slow
    def test_a_colleagues_view_does_not_clear_the_marks(
        self, viewer: Browser, servicer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower)
        page(viewer, loan.get_absolute_url())
        read(viewer, loan)
        age_record_views()
        portal_service.world.amend(loan.uuid, status="CHARGED_OFF")
        assert "CHARGED_OFF" in read(servicer, loan, "?refresh=1")
        page(servicer, loan.get_absolute_url())
        assert "CHARGED_OFF</ins>" in page(viewer, loan.get_absolute_url())

    def test_repeated_views_are_audited_once(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower)
        for _ in range(2):
            page(viewer, loan.get_absolute_url())
        panel(viewer, loan.get_absolute_url(), "loan")
        assert PageView.objects.get(page="loans.detail").subject_uuid == loan.uuid
        assert PageView.objects.get(subject_uuid=loan.uuid).count == 2


class TestPage:
    def test_a_url_with_another_borrower_redirects_to_the_loan(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower)
        answer = viewer.get(f"/borrowers/somebody/loans/{loan.uuid}/")
        assert (answer.status_code, answer["Location"]) == (302, loan.get_absolute_url())

    def test_an_unknown_loan_shows_404(self, viewer: Browser, borrower: Borrower) -> None:
        assert viewer.get(f"/borrowers/{borrower.uuid}/loans/nothing/").status_code == 404

    def test_a_servicer_can_add_notes_and_a_viewer_reads_them(
        self, viewer: Browser, servicer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower)
        servicer.post(f"/notes/new/loan/{loan.uuid}/", {"text": "Calls on Mondays"})
        assert "Calls on Mondays" in page(viewer, loan.get_absolute_url())
        assert f'href="/notes/new/loan/{loan.uuid}/"' not in page(viewer, loan.get_absolute_url())
        assert f'href="/notes/new/loan/{loan.uuid}/"' in page(servicer, loan.get_absolute_url())

    def test_the_page_links_to_the_printed_schedule(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower)
        shown = read(viewer, loan)
        assert f'href="{loan.get_absolute_url()}schedule/" data-key="p"' in shown
        assert viewer.get(f"{loan.get_absolute_url()}schedule/").status_code == 200

    def test_the_list_links_to_the_loan(
        self, viewer: Browser, portal_service: Sandbox, borrower: Borrower
    ) -> None:
        loan = given.loan(portal_service, borrower)
        assert loan.get_absolute_url() == f"/borrowers/{borrower.uuid}/loans/{loan.uuid}/"
        assert loan.get_absolute_url() in page(viewer, "/loans/")
        assert Account(kind=Kind.LOAN, uuid="l-1").get_absolute_url() == "/registry/loan/l-1/"


@pytest.mark.parametrize(
    ("day", "words"),
    [
        (date(2027, 6, 1), "In 6 months"),
        (date(2027, 6, 21), "In 7 months"),
        (date(2027, 11, 18), "In 12 months"),
        (date(2029, 10, 20), "In 35 months"),
        (date(2029, 11, 20), "In 3 years"),
        (date(2054, 3, 31), "In 27 years"),
        (date(2026, 6, 30), "5 months ago"),
        (date(2026, 2, 4), "10 months ago"),
    ],
)
def test_distance_is_rounded_to_months_or_years(day: date, words: str) -> None:
    assert distance(day, date(2026, 11, 21)) == words
