"""One loan's page: figures, schedule and chart from what the service told, and nothing made up."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Q
from django.test import Client as Browser
from django.urls import reverse
from django.utils import timezone

from portal.audit.models import Entry, RecordView
from portal.loans.chart import chart
from portal.loans.figures import distance
from portal.registry.models import Kind, Record
from servicing import Loan
from servicing.sandbox import Sandbox
from servicing.schedules import schedule_of
from tests import given
from tests.portal import pages
from tests.portal.pages import an_hour_later, forget, page, panel, plain


@pytest.fixture
def borrower(portal_service: Sandbox) -> Record:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC")


def owners(loan: Record) -> set[str]:
    """Whose the loan is here, and whose its repayments are."""
    return set(
        Record.objects.filter(Q(uuid=loan.uuid) | Q(parent_uuid=loan.uuid)).values_list(
            "borrower_uuid", flat=True
        )
    )


def read(browser: Browser, record: Record, query: str = "") -> str:
    """The loan after its panel asked the service."""
    return panel(browser, f"{record.get_absolute_url()}{query}", "loan")


class TestFigures:
    @pytest.mark.parametrize("shape", ["snake", "pascal"])
    def test_both_shapes_give_the_five_figures(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record, shape: str
    ) -> None:
        loan = given.loan(portal_service, borrower, amount="12000.00", interest_rate="0", paid=3, shape=shape)
        shown = read(viewer, loan)
        for words in (
            "$1,000.00",
            "3 of 12 installments paid, per the schedule; interest included",
            "$9,000.00",
            "Not the payoff",
        ):
            assert words in shown

    def test_what_is_overdue_is_counted_and_summed(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        opened = timezone.localdate() - timedelta(days=100)
        loan = given.loan(portal_service, borrower, amount="1200.00", interest_rate="0", opened=opened)
        portal_service.world.amend(loan.uuid, delinquent=True)
        shown = read(viewer, loan)
        assert "3 installments, " in shown
        assert '<b class="sd-figure-2 sd-bad">$300.00</b>' in shown
        assert "Delinquent" in shown

    def test_without_installments_each_figure_says_why(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower, installments=0, repayments_start_date="2027-07-24")
        shown = read(viewer, loan)
        assert shown.count("The service lists no installments") == 2
        assert "Nothing is past due" in shown
        assert "Not known" in shown
        assert "No schedule yet" in shown
        assert "Repayments start on Saturday, Jul 24, 2027." in shown
        assert '<svg class="sd-chart-plot"' not in shown

    def test_a_loan_that_names_another_borrower_says_so(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan, other = (
            given.loan(portal_service, borrower),
            given.borrower(portal_service, first_name="Cedar Mill Dental PC"),
        )
        portal_service.world.amend(loan.uuid, user_uuid=other.uuid)
        shown = read(viewer, loan)
        assert "The service names a different borrower for this loan:" in shown
        assert "Cedar Mill Dental PC" in shown

    def test_a_loan_that_names_another_borrower_counts_for_nobody_until_that_is_corrected(
        self, viewer: Browser, supervisor: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan, other = (
            given.loan(portal_service, borrower),
            given.borrower(portal_service, first_name="Cedar Mill Dental PC"),
        )
        address = loan.get_absolute_url()
        panel(viewer, address, "loan-repayments")
        read(viewer, loan)
        assert owners(loan) == {borrower.uuid}

        forget(loan)
        portal_service.world.amend(loan.uuid, user_uuid=other.uuid)
        read(viewer, loan)
        panel(viewer, address, "loan-repayments")
        assert owners(loan) == {""}
        assert "It isn’t included in any borrower’s totals" in page(viewer, address)
        assert loan.uuid not in page(viewer, f"{borrower.get_absolute_url()}?tab=loans")

        correction = reverse("lookup:correct", args=[loan.kind, loan.uuid])
        supervisor.post(
            correction, {"label": "", "borrower_uuid": borrower.uuid, "reason": "Asked the lender."}
        )
        read(viewer, loan)
        assert loan.uuid in page(viewer, f"{borrower.get_absolute_url()}?tab=loans")
        assert "Its borrower here was confirmed by staff." in page(viewer, address)

    def test_what_does_not_add_up_is_noticed_quietly(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower, apr=Decimal("1.0"), interest_rate="9.5")
        assert "Data check: APR below interest rate." in read(viewer, loan)

    def test_a_total_that_adds_up_is_said_too(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower, amount="1200.00", interest_rate="0")
        portal_service.world.amend(loan.uuid, total_repayment_amount=Decimal("1200.0"))
        assert "Installments add up to the reported total, $1,200.00" in read(viewer, loan)


class TestSchedule:
    def test_a_long_one_opens_where_somebody_has_to_look(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower, installments=360, paid=40)
        shown = read(viewer, loan)
        assert 'data-announce="12 of 360 installments shown"' in shown
        assert "Show 37 earlier installments" in pages.words(shown)
        assert "Show 311 later installments" in pages.words(shown)
        assert 'id="next-installment"' in shown

    def test_all_of_it_is_one_click_away(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower, installments=360, paid=40)
        read(viewer, loan)
        shown = panel(viewer, f"{loan.get_absolute_url()}?rows=all", "loan-schedule")
        assert shown.startswith('<section class="sd-card" id="loan-schedule"')
        assert shown.count('<th scope="row" class=') == 360

    def test_its_sums_are_exact(self, viewer: Browser, portal_service: Sandbox, borrower: Record) -> None:
        rows = [{"number": n, "due_date": f"2027-0{n}-01", "total": Decimal("0.1")} for n in range(1, 4)]
        loan = given.loan(portal_service, borrower, installments=0)
        portal_service.world.amend(loan.uuid, installments=rows)
        shown = read(viewer, loan)
        assert "Total, 3 installments" in shown
        assert "$0.30" in shown

    def test_years_have_subtotals_unless_they_are_unwanted(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
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

    def test_an_unknown_shape_keeps_its_keys_and_gives_no_figures(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
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

    def test_the_chart_draws_every_installment_for_any_width(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower, installments=12, paid=3)
        shown = read(viewer, loan)
        assert shown.count('%"><title>') == 12
        assert "12 installments from" in shown
        assert "3 paid, 0 overdue" in shown
        assert "style=" not in shown

    def test_a_column_that_is_the_same_in_every_row_is_named_instead(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        shown = read(viewer, given.loan(portal_service, borrower, installments=12))
        assert "12 installments · Same in every row: Fees $0.00" in pages.words(shown)
        assert "Fees</th>" not in shown
        assert "Total</th>" in shown


class TestChart:
    def drawn(self, *rows: dict[str, Any]) -> Any:
        return chart(schedule_of(Loan(uuid="l-1", installments=rows), date(2026, 11, 20)), date(2026, 11, 20))

    def test_it_is_absent_rather_than_wrong(self) -> None:
        row = {"due_date": "2026-12-01", "total": 5}
        assert self.drawn() is None
        assert self.drawn(row, {"total": 5}) is None
        assert self.drawn(row, {"due_date": "2027-01-01"}) is None
        assert self.drawn({"due_date": "2026-12-01", "total": -5}) is None
        assert self.drawn({"due_date": "2026-12-01", "total": 0}) is None

    def test_bars_stand_in_the_order_of_their_days_beside_today(self) -> None:
        found = self.drawn(
            {"due_date": "2026-12-01", "principal": 60, "interest": 40, "status": "SCHEDULED"},
            {"due_date": "2026-11-01", "principal": 80, "interest": 20, "status": "SCHEDULED"},
        )
        assert [bar.words for bar in found.bars] == ["Nov 1, 2026: $100.00", "Dec 1, 2026: $100.00"]
        assert found.today == 50
        assert [bar.is_overdue for bar in found.bars] == [True, False]
        assert {bar.y for bar in found.bars} == {found.grid[-1].at}

    def test_its_axis_has_room_for_any_amount(self) -> None:
        for amount, words in ((671, "$800"), (Decimal("0.3"), "$0.30"), (1_888_888_888_888, "$2T")):
            assert self.drawn({"due_date": "2026-12-01", "total": amount}).grid[-1].words == words

    def test_a_long_schedule_is_drawn_by_years(self) -> None:
        days = [date(2026 + n // 12, n % 12 + 1, 1) for n in range(72)]
        found = self.drawn(
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

    def test_its_balance_has_a_point_where_a_bar_ends(self) -> None:
        days = [date(2026 + n // 12, n % 12 + 1, 1) for n in range(72)]
        found = self.drawn(
            *({"due_date": f"{day}", "total": 100, "balance": 7100 - 100 * n} for n, day in enumerate(days))
        )
        points = [tuple(map(Decimal, point.split(","))) for point in found.balance.split()]
        assert [round(x, 1) for x, _ in points] == [
            Decimal(n) for n in ("0.7", "16.0", "32.6", "49.3", "66.0", "82.6", "99.3")
        ]
        assert [y for _, y in points] == sorted(y for _, y in points)

    def test_the_two_parts_of_a_bar_are_its_whole(self) -> None:
        (bar,) = self.drawn({"due_date": "2026-12-01", "principal": 75, "interest": 25}).bars
        assert sum(block.height for block in bar.blocks) + 2 == bar.height


class TestPanels:
    def test_the_page_asks_nothing_and_its_panels_once_in_half_a_minute(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower)
        assert "Not loaded yet" in page(viewer, loan.get_absolute_url())
        assert portal_service.calls == []
        for name in ("loan", "loan-repayments", "loan", "loan-repayments", "loan-schedule"):
            panel(viewer, loan.get_absolute_url(), name)
        assert [call.operation for call in portal_service.calls] == ["loans.get", "repayments.of_loan"]

    def test_whoever_wants_it_now_gets_it_now(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower)
        read(viewer, loan)
        portal_service.world.amend(loan.uuid, status="CHARGED_OFF")
        assert "CHARGED_OFF" in read(viewer, loan, "?refresh=1")

    def test_one_failing_call_spoils_one_panel_and_keeps_its_copy(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower, amount="12345.00")
        read(viewer, loan)
        forget(loan)
        portal_service.fail_next("loans.get", status=500, message="Out of order", times=None)
        spoilt = read(viewer, loan)
        assert "Showing copy of" in spoilt
        assert "$12,345.00" in spoilt
        assert "Not responding" not in panel(viewer, loan.get_absolute_url(), "loan-repayments")

    def test_without_any_copy_a_failure_is_a_card_of_its_own(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower)
        portal_service.fail_next("loans.get", status=500, message="Out of order")
        shown = read(viewer, loan)
        assert "The loan couldn’t be loaded" in shown
        assert "Out of order" in shown

    def test_repayments_that_cannot_be_read_do_not_look_like_none(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower)
        portal_service.fail_next("repayments.of_loan", status=500, message="Out of order")
        shown = panel(viewer, loan.get_absolute_url(), "loan-repayments")
        assert "The repayments couldn’t be loaded" in shown
        assert "No repayments on file" not in shown

    @pytest.mark.django_db(transaction=True)
    def test_without_scripts_the_page_asks_before_it_comes(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower, amount="12345.00")
        portal_service.world.repayment(loan.uuid, amount="310.00")
        shown = plain(viewer, loan.get_absolute_url())
        assert "$12,345.00" in shown
        assert "$310.00" in shown

    @pytest.mark.django_db(transaction=True)
    def test_without_scripts_a_silent_service_is_not_waited_for(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower, amount="12345.00")
        portal_service.world.repayment(loan.uuid, amount="310.00")
        portal_service.fail_next("loans.get", delay=2)
        shown = plain(viewer, loan.get_absolute_url())
        assert "Loading…" in shown
        assert "$310.00" in shown
        assert "$12,345.00" not in shown


class TestLooks:
    def test_the_first_look_has_no_changes(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        assert "since your last visit" not in read(viewer, given.loan(portal_service, borrower))

    def test_what_changed_since_somebody_looked_is_marked(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower, amount="12000.00")
        page(viewer, loan.get_absolute_url())
        read(viewer, loan)
        an_hour_later()
        portal_service.world.amend(loan.uuid, amount=Decimal("11000.00"), delinquent=True)
        forget(loan)
        page(viewer, loan.get_absolute_url())
        shown = read(viewer, loan)
        for words in ("$12,000.00</del>", "$11,000.00</ins>", "Delinquent</dt>"):
            assert words in shown

    def test_what_a_colleague_saw_is_still_new_to_others(
        self, viewer: Browser, servicer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower)
        page(viewer, loan.get_absolute_url())
        read(viewer, loan)
        an_hour_later()
        portal_service.world.amend(loan.uuid, status="CHARGED_OFF")
        assert "CHARGED_OFF" in read(servicer, loan, "?refresh=1")
        page(servicer, loan.get_absolute_url())
        assert "CHARGED_OFF</ins>" in page(viewer, loan.get_absolute_url())

    def test_a_look_is_recorded_once(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower)
        for _ in range(2):
            page(viewer, loan.get_absolute_url())
        panel(viewer, loan.get_absolute_url(), "loan")
        assert Entry.objects.get(action="loans.detail").subject_uuid == loan.uuid
        assert RecordView.objects.get(subject_uuid=loan.uuid).count == 2


class TestAround:
    def test_a_loan_under_another_borrower_leads_to_its_own_address(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower)
        answer = viewer.get(f"/borrowers/somebody/loans/{loan.uuid}/")
        assert (answer.status_code, answer["Location"]) == (302, loan.get_absolute_url())

    def test_an_unknown_loan_has_no_page(self, viewer: Browser, borrower: Record) -> None:
        assert viewer.get(f"/borrowers/{borrower.uuid}/loans/nothing/").status_code == 404

    def test_a_servicer_may_note_and_a_viewer_is_told_why_not(
        self, viewer: Browser, servicer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower)
        servicer.post(f"/notes/new/loan/{loan.uuid}/", {"text": "Calls on Mondays"})
        assert "Calls on Mondays" in page(viewer, loan.get_absolute_url())
        assert "requires the servicer or supervisor role" in page(viewer, loan.get_absolute_url())
        assert f'href="/notes/new/loan/{loan.uuid}/"' in page(servicer, loan.get_absolute_url())

    def test_its_schedule_can_be_printed(
        self, viewer: Browser, portal_service: Sandbox, borrower: Record
    ) -> None:
        loan = given.loan(portal_service, borrower)
        shown = read(viewer, loan)
        assert f'href="{loan.get_absolute_url()}schedule/" data-key="p"' in shown
        assert viewer.get(f"{loan.get_absolute_url()}schedule/").status_code == 200

    def test_the_lists_lead_to_it(self, viewer: Browser, portal_service: Sandbox, borrower: Record) -> None:
        loan = given.loan(portal_service, borrower)
        assert loan.get_absolute_url() == f"/borrowers/{borrower.uuid}/loans/{loan.uuid}/"
        assert loan.get_absolute_url() in page(viewer, "/loans/")
        assert Record(kind=Kind.LOAN, uuid="l-1").get_absolute_url() == "/registry/loan/l-1/"


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
def test_a_far_day_is_the_nearest_number_of_months_or_years_away(day: date, words: str) -> None:
    assert distance(day, date(2026, 11, 21)) == words
