"""No document prints anything outside its page, however long its data are."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client as Browser

from portal.core.business_date import business_date
from portal.notes.models import Note
from portal.records.models import Account, Kind
from portal.ui import wording
from servicing.sandbox import Sandbox
from servicing.sandbox.amortization import add_months
from tests import given
from tests.portal.applications.answers import offer, saved_application
from tests.portal.documents.glyphs import glyphs_outside, rows_that_touch
from tests.portal.documents.test_document import download, load_accounts, text_of

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
LONG_NAME = "Saint Bartholomew’s Agricultural Machinery, Irrigation & Cold Storage Cooperative of Ohio LLC"
ONE_WORD = "Wordwithoutanybreak" * 5
MOST_ROWS = 360
STATEMENTS = 30
# Less than the margin of every page.
MARGIN_POINTS = 30
PAPERS = [("borrower", "letter"), ("internal", "a4")]


def long_borrower(sandbox: Sandbox, name: str) -> dict[str, str]:
    """A borrower with much of everything; the addresses of its documents by name."""
    person = {"first_name": "Maximiliane", "last_name": "Von Der Hohenstaufen-Wittgenstein" * 2}
    owner = given.borrower(sandbox, first_name=name, key_people=[person] * 4)
    loan = given.loan(sandbox, owner, amount="9876543.21", installments=MOST_ROWS)
    line = given.line(sandbox, owner, limit="9500000.00", drawn="8765432.10")
    today = business_date()
    for number in range(STATEMENTS, 0, -1):
        sandbox.world.statement(line.uuid, today - timedelta(days=30 * number))
    for number in range(4):
        for account in (loan, line):
            sandbox.world.repayment(
                account.uuid,
                amount="1234567.89",
                status="FAILED_AFTER_SUCCESS",
                error_description=f"R01 {ONE_WORD} {number}",
                effective_date=str(today - timedelta(days=number)),
                ending_balance="8765432.10",
            )
    load_accounts(loan), load_accounts(line)
    offers = [offer(n, amount=9876543.21, explanation=f"{ONE_WORD} and {LONG_NAME}") for n in range(8)]
    application = saved_application(owner, *offers)
    Note.objects.create(borrower_uuid=owner.uuid, text=ONE_WORD * 4, author_id=1, author_name=LONG_NAME)
    base = f"/borrowers/{owner.uuid}"
    return {
        "summary": f"{base}/summary.pdf?schedules=1&statements=1",
        "loan": f"{base}/loans/{loan.uuid}/schedule.pdf?",
        "line": f"{base}/lines/{line.uuid}/summary.pdf?",
        "offers": f"{base}/applications/{application.uuid}/offer-sheet.pdf?",
        "payments": f"{base}/statement-of-account.pdf?",
        "payments of all": "/repayments/statement-of-account.pdf?",
    }


@pytest.mark.parametrize(
    ("mode", "paper", "name"),
    [
        ("borrower", "letter", LONG_NAME),
        ("internal", "a4", ONE_WORD),
    ],
    ids=["borrower-letter", "internal-a4"],
)
def test_no_glyph_lies_outside_the_page(
    portal_service: Sandbox, viewer: Browser, mode: str, paper: str, name: str
) -> None:
    outside = {}
    for document, address in long_borrower(portal_service, name).items():
        pdf = download(viewer, f"{address}&data=copies&mode={mode}&paper={paper}")
        if found := glyphs_outside(pdf, margin=MARGIN_POINTS):
            outside[document] = found[:3]
    assert outside == {}


@pytest.mark.parametrize(("paper", "shape"), [("letter", "pascal"), ("a4", "snake")])
def test_a_schedule_folds_equal_columns_and_no_cell_touches_another(
    portal_service: Sandbox, viewer: Browser, paper: str, shape: str
) -> None:
    owner = given.borrower(portal_service)
    loan = given.loan(portal_service, owner, amount="240000.00", installments=MOST_ROWS, shape=shape, paid=3)
    load_accounts(loan)
    pdf = download(
        viewer, f"/borrowers/{owner.uuid}/loans/{loan.uuid}/schedule.pdf?data=copies&paper={paper}"
    )
    text = " ".join(text_of(pdf).split())
    others = "Same in every row: Fees $0.00, Loan amount $240,000.00"
    assert f"{others if shape == 'pascal' else 'No fees'}, as reported." in text
    assert text.count("$0.00") < 10
    assert text.count("$240,000.00") < 10
    # The first page has the chart, whose letters are texts of their own.
    assert [one for one in rows_that_touch(pdf, gap=4, cells=6) if one[0] > 1] == []
    reported, _, calculated = text.partition("Calculated from the schedule")
    assert reported.count("Maturity") == 1
    assert "Matur" not in calculated


@pytest.mark.parametrize(("mode", "paper"), PAPERS)
def test_what_fell_due_since_the_copy_stays_on_the_page(
    portal_service: Sandbox, viewer: Browser, mode: str, paper: str
) -> None:
    owner, today = given.borrower(portal_service), business_date()
    bill = {"payment_amount_due": Decimal("12345.67"), "payment_due_date": str(today - timedelta(days=2))}
    late = {"past_due_balance": Decimal("123456.78"), "days_past_due": 27}
    line = given.line(portal_service, owner, limit="950000.00", drawn="876543.21", **bill, **late)
    loan = given.loan(
        portal_service, owner, amount="987654.32", opened=add_months(today - timedelta(days=2), -3)
    )
    load_accounts(loan), load_accounts(line)
    accounts = Account.objects.filter(kind__in=(Kind.LOAN, Kind.LINE))
    accounts.update(answer_day=today - timedelta(days=9), figures_good_through=today - timedelta(days=3))
    day = wording.day(today - timedelta(days=9))
    base = f"/borrowers/{owner.uuid}"
    addresses = [
        f"{base}/summary.pdf?",
        f"{base}/lines/{line.uuid}/summary.pdf?",
        f"{base}/loans/{loan.uuid}/schedule.pdf?",
    ]
    for address in addresses:
        pdf = download(viewer, f"{address}&data=copies&mode={mode}&paper={paper}")
        text = " ".join(text_of(pdf).split())
        assert f"not updated since {day}" in text
        assert glyphs_outside(pdf, margin=MARGIN_POINTS) == []
        if "/lines/" in address:
            assert f"Past due $123,456.78, the oldest part 27 days late, as of {day}." in text
