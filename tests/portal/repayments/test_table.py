"""The table of repayments on the pages of loans, lines and borrowers: order, groups, totals and wording."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import PageView
from portal.records.models import Account, Borrower
from portal.records.repayments import answer_of
from portal.repayments import sums
from portal.repayments.table import RepaymentRow
from servicing import Repayment
from servicing.repayments import REVERSALS, SUCCEEDED, is_collected
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal import pages
from tests.portal.pages import load_panels, page, panel


@pytest.fixture
def loan(portal_service: Sandbox) -> Account:
    return given.loan(portal_service, given.borrower(portal_service))


def read_repayments(browser: Browser, loan: Account, query: str = "") -> str:
    panel(browser, f"{loan.get_absolute_url()}?refresh=1", "loan")
    return panel(browser, f"{loan.get_absolute_url()}{query}", "loan-repayments")


def in_days(days: int) -> str:
    return str(timezone.localdate() + timedelta(days=days))


def test_upcoming_repayments_come_first_soonest_on_top(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    for amount, days in (("40", 20), ("30", 5), ("20", -40), ("10", -80)):
        status = "SCHEDULED" if days > 0 else "SUCCEEDED"
        portal_service.world.repayment(loan.uuid, amount=amount, status=status, effective_date=in_days(days))
    rows = read_repayments(viewer, loan).partition("<tbody>")[2]
    assert re.search(r'<tr class="sd-group">\s*<th[^>]*>\s*Scheduled\s', rows)
    places = [rows.index(f'sd-strong">${amount}.00') for amount in (30, 40, 20, 10)]
    assert places == sorted(places)


def test_an_unusual_type_is_shown_below_the_date(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    portal_service.world.repayment(loan.uuid, payment_type="DISPUTED")
    shown = read_repayments(viewer, loan)
    assert '<small><span title="DISPUTED">Disputed</span></small>' in shown


def test_a_single_bank_account_is_shown_above_the_rows(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    for bank in ("b1a7c0de-1", "b1a7c0de-1", "0ther-bank"):
        portal_service.world.repayment(loan.uuid, borrower_bank_account_uuid=bank)
        shown = read_repayments(viewer, loan)
        assert ("Account</th>" in shown) is (bank == "0ther-bank")
        assert ("Bank account b1a7c0de" in pages.visible_text(shown)) is (bank != "0ther-bank")


def test_the_summary_counts_and_totals_succeeded_repayments(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    for amount in ("0.1", "0.2"):
        portal_service.world.repayment(loan.uuid, amount=amount)
    portal_service.world.repayment(loan.uuid, amount="310", status="SCHEDULED", effective_date=in_days(4))
    shown = read_repayments(viewer, loan)
    assert "3 repayments" in shown
    assert re.search(r'<b class="sd-tnum">2</b>,\s+\$0\.30', shown)
    assert "Next scheduled" in shown


def test_a_month_total_covers_all_pages(viewer: Browser, portal_service: Sandbox, loan: Account) -> None:
    for _ in range(30):
        portal_service.world.repayment(loan.uuid, amount="1.10", effective_date="2026-03-08")
    assert "March 2026" in read_repayments(viewer, loan)
    second = read_repayments(viewer, loan, "?page=2")
    assert "13 to 24 of 30" in second
    assert "30 repayments, $33.00 succeeded" in second


def test_months_with_one_repayment_have_no_heading(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    for day in ("2026-02-08", "2026-03-08"):
        portal_service.world.repayment(loan.uuid, effective_date=day)
    shown = read_repayments(viewer, loan)
    assert "Mar 8, 2026" in shown
    assert "March 2026" not in shown
    portal_service.world.repayment(loan.uuid, effective_date="2026-03-09")
    shown = read_repayments(viewer, loan)
    assert "February 2026" in shown
    assert "March 2026" in shown


def test_no_total_is_shown_if_an_amount_is_missing(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    portal_service.world.repayment(loan.uuid, amount="1.10", effective_date="2026-03-08")
    portal_service.world.repayment(loan.uuid, effective_date="2026-03-09", amount="2")
    portal_service.fail_next("repayments.of_loan", changes={"amount": None})
    shown = read_repayments(viewer, loan)
    assert "not totaled: an amount is missing" in shown
    assert "$0.00" not in shown


@pytest.mark.parametrize(
    ("error", "words"), [("R01 - Insufficient funds", "R01 - Insufficient funds"), ("", "no reason given")]
)
def test_a_return_shows_its_reason(
    viewer: Browser, portal_service: Sandbox, loan: Account, error: str, words: str
) -> None:
    portal_service.world.repayment(loan.uuid, status="FAILED_AFTER_SUCCESS", error_description=error)
    shown = read_repayments(viewer, loan)
    assert "Returned after posting" in shown
    assert f'<small title="{words}">{words}</small>' in shown


def test_a_missing_split_is_not_shown_as_zero(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    portal_service.world.repayment(loan.uuid, amount="250.00", effective_date="2026-03-08")
    shown = read_repayments(viewer, loan)
    assert "$0.00" not in shown.partition("<tbody>")[2]
    assert "sd-split" not in shown


def test_parts_that_do_not_add_up_are_flagged(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    parts = {"principal": Decimal(60), "interest": Decimal(30), "fees": Decimal(0), "suspense": Decimal(0)}
    payment = portal_service.world.repayment(loan.uuid, amount="100.00", **parts)
    shown = read_repayments(viewer, loan)
    assert "Parts don’t add up to the amount" in shown
    assert 'aria-label="Split: principal $60.00, interest $30.00"' in shown
    assert "$0.00" not in shown.partition("<tbody>")[2]
    aside = read_repayments(viewer, loan, f"?payment={payment['uuid']}").partition('id="payment"')[2]
    assert "Interest" in aside
    assert "Suspense" not in aside


@pytest.mark.parametrize(
    ("parts", "widths"),
    [
        ({"principal": "75", "interest": 25}, [75, 25]),
        ({"principal": "75", "interest": 20, "fees": "5"}, [75, 20, 5]),
        ({"principal": "75"}, []),
        ({"principal": "0", "interest": 0}, []),
        ({"principal": "-5", "interest": 10}, []),
        ({"principal": "much", "interest": 10}, []),
    ],
)
def test_the_bar_needs_two_valid_parts(parts: dict[str, object], widths: list[int]) -> None:
    assert [part.width for part in RepaymentRow(Repayment(uuid="r-1", **parts)).parts] == widths


@pytest.mark.slow
def test_two_thousand_repayments_are_paged(viewer: Browser, portal_service: Sandbox, loan: Account) -> None:
    repayments = [
        {"uuid": f"r-{number}", "amount": 1, "status": "SUCCEEDED", "effective_date": "2026-03-08"}
        for number in range(2000)
    ]
    portal_service.fail_next("repayments.of_loan", body=repayments)
    shown = read_repayments(viewer, loan)
    assert "1 to 12 of 2,000" in shown
    assert shown.count("data-row") == 12


@pytest.mark.slow
def test_the_borrowers_tab_lists_all_accounts(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    line = given.line(portal_service, Borrower.objects.get())
    portal_service.world.repayment(loan.uuid, amount="12.50")
    portal_service.world.repayment(line.uuid, amount="310.00")
    read_repayments(viewer, loan)
    load_panels(viewer, line.get_absolute_url())
    shown = page(viewer, f"/borrowers/{loan.borrower_uuid}/?tab=repayments")
    assert "2 repayments" in shown
    for html, address in ((shown, ""), (read_repayments(viewer, loan), f"?account={loan.uuid}")):
        statement_address = f"/borrowers/{loan.borrower_uuid}/statement-of-account/{address}"
        assert f'href="{statement_address}"' in html
        printed = viewer.get(statement_address).content.decode()
        number = "in 1 payment" if address else "in 2 payments"
        assert re.search(rf'</b>\s*<span class="meta">{number}</span>', printed)
        assert ('<th scope="col">Account</th>' in printed) == (not address)
    assert line.get_absolute_url() in shown
    assert loan.get_absolute_url() in shown


class TestSidePane:
    """One repayment opens beside its list, which keeps its page and filters."""

    def test_a_repayment_opens_beside_the_list_of_its_loan(
        self, viewer: Browser, portal_service: Sandbox, loan: Account
    ) -> None:
        portal_service.world.repayment(loan.uuid, amount="40.00", effective_date="2026-03-08")
        wanted = portal_service.world.repayment(loan.uuid, amount="250.10", ach_id="ach-7")
        assert 'id="payment"' not in read_repayments(viewer, loan)
        shown = read_repayments(viewer, loan, f"?payment={wanted['uuid']}")
        side = shown.partition('<aside class="sd-side" id="payment"')[2]
        for words in ("$250.10", "ach-7", "Payment history", f'href="/repayments/{wanted["uuid"]}/"'):
            assert words in side
        assert shown.count("data-row") == 2
        assert shown.count('aria-current="true"') == 1

    def test_a_repayment_of_another_page_opens_beside_the_list(
        self, viewer: Browser, portal_service: Sandbox, loan: Account
    ) -> None:
        for day in range(1, 28):
            last = portal_service.world.repayment(
                loan.uuid, amount=str(day), effective_date=f"2026-03-{28 - day:02}"
            )
        read_repayments(viewer, loan)
        shown = page(viewer, f"/repayments/?q=&payment={last['uuid']}&size=25")
        assert "Repayment <span" in shown.partition('id="payment"')[2]
        assert '<tr data-row class="sd-selected">' not in shown
        assert PageView.objects.get(page="repayments.detail").subject_uuid == last["uuid"]

    def test_focus_moves_to_the_pane_and_back_to_the_row(
        self, viewer: Browser, portal_service: Sandbox, loan: Account
    ) -> None:
        uuid = portal_service.world.repayment(loan.uuid)["uuid"]
        read_repayments(viewer, loan)
        address = f"/repayments/?payment={uuid}"
        opening, closing = (
            viewer.get(
                path, headers=htmx("repayment-rows") | {"HX-Trigger": f"{act}-{uuid}"}
            ).content.decode()
            for act, path in (("open", address), ("close", "/repayments/"))
        )
        assert 'id="payment-title" tabindex="-1" data-focus' in opening
        assert re.search(rf'<a id="open-{uuid}"[^>]* data-focus>', closing)
        assert "data-focus" not in viewer.get(address).content.decode()

    @pytest.mark.slow
    @pytest.mark.parametrize("uuid", ["nothing", "%00", "'", ""])
    def test_an_unknown_repayment_opens_no_pane(
        self, viewer: Browser, portal_service: Sandbox, loan: Account, uuid: str
    ) -> None:
        portal_service.world.repayment(loan.uuid)
        assert 'id="payment"' not in read_repayments(viewer, loan, f"?payment={uuid}")
        assert 'id="payment"' not in page(viewer, f"/repayments/?payment={uuid}")


def test_the_database_counts_as_collected_what_the_rule_does(
    viewer: Browser, portal_service: Sandbox, loan: Account
) -> None:
    types = ["SINGLE_PAYMENT", "payoff", "returned", *REVERSALS]
    for status in (*SUCCEEDED, "completed", "Settled ", "FAILED_AFTER_SUCCESS", "SCHEDULED", "ODD"):
        for payment_type in types:
            portal_service.world.repayment(loan.uuid, status=status, payment_type=payment_type)
    for amount in ("-5.00", "0.00", None):
        one = portal_service.world.repayment(loan.uuid)
        portal_service.world.amend(one["uuid"], amount=amount and Decimal(amount))
    read_repayments(viewer, loan)
    rows = Account.objects.get(pk=loan.pk).repayments
    by_rule = {one.uuid for one in rows.all() if is_collected(answer_of(one))}
    found = rows.filter(sums.is_collected())
    assert {one.uuid for one in found} == by_rule
    assert len(by_rule) == 11
    assert set(found.values_list("status", flat=True)) == set(SUCCEEDED)
