"""Tests that lists, files, pages and prints show the same figures, on any day and for any answer."""

import csv
import io
import json
import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.core.cache import cache
from django.http import QueryDict
from django.test import Client as Browser
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pypdf import PdfReader

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.core.business_date import business_date
from portal.documents import borrower_summary
from portal.documents.document import Stamp
from portal.documents.options import Options
from portal.documents.pdf import render
from portal.jobs.queue import start_job
from portal.records import store
from portal.records.models import Account, Borrower, Source
from portal.records.recalculation import outdated_accounts
from portal.records.tasks import recalculate_after_midnight, recalculate_figures
from portal.ui import wording
from servicing import Loan, Repayment, Statement, codec
from servicing.figures import Aging
from servicing.sandbox import Sandbox
from tests import owed
from tests.conftest import SECRET, browser_of
from tests.portal.jobs.scripted import run_taken
from tests.portal.pages import card, cells, visible_text
from tests.portal.spreadsheets import cells_of

pytestmark = pytest.mark.slow

FIRST_DAY = date(2028, 2, 1)  # in a leap year
ZERO = Decimal(0)
ACCOUNTS = "Loans and lines of credit of this borrower"
CENTS = st.integers(-20_000, 900_000).map(lambda cents: Decimal(cents) / 100)
AMOUNTS = st.none() | CENTS


def noon(day: date) -> datetime:
    """Return noon in New York, when every US time zone has the same date."""
    return datetime.fromisoformat(f"{day}T12:00:00-05:00")


@pytest.fixture
def cached_portal(portal_service: Sandbox, settings: LazySettings) -> Sandbox:
    """A portal that can show only saved copies, because the service always fails."""
    portal_service.fail_next("*", times=100_000, status=503)
    return portal_service


def save_account(model: type[Loan | Statement], owner: str, uuid: str, answer: dict[str, Any]) -> Account:
    own_id = {"uuid": uuid} if model is Loan else {}
    decoded = codec.decode(model, codec.to_json(answer | own_id))
    return store.save(store.observe(decoded, uuid=uuid, borrower_uuid=owner), source=Source.SERVICE)[0]


def save_borrower(uuid: str, name: str) -> Account:
    return Borrower.objects.create(uuid=uuid, name=name, search_text=f"\n{name.lower()}\n")


# --- Where figures are shown ---


def read_csv(browser: Browser, address: str) -> dict[str, dict[str, str]]:
    answer = browser.get(f"{address}&all=1")
    rows = csv.DictReader(io.StringIO(answer.getvalue().decode("utf-8-sig")))
    return {row.get("Loan") or row.get("Line") or row["ID"]: row for row in rows}


def read_json_lines(browser: Browser, address: str) -> dict[str, dict[str, Any]]:
    answer = browser.get(f"{address}&all=1&format=jsonl").getvalue().decode()
    rows = [json.loads(line, parse_float=Decimal) for line in answer.splitlines()]
    return {row.get("Loan") or row.get("Line") or row["ID"]: row for row in rows}


def read_sheet(browser: Browser, address: str) -> dict[str, dict[str, Any]]:
    head, *rows = cells_of(browser.get(f"{address}&all=1&format=xlsx").getvalue())
    named = [dict(zip(head, [*row, *[None] * len(head)], strict=False)) for row in rows]
    return {row.get("Loan") or row.get("Line") or row["ID"]: row for row in named}


def find_accounts(browser: Browser, query: str) -> set[str]:
    """Return the IDs of the accounts that a search finds in a list."""
    return set(re.findall(r"/(?:loans|lines)/((?:loan|line)-[0-9-]+)/", browser.get(query).content.decode()))


def past_due_on_home(browser: Browser) -> list[str]:
    cache.clear()
    found = browser.get("/?show=past_due&all=1").context["items"]
    return [item.key.partition(":")[2] for item, _ in found]


def summary_text(owner: Borrower, options: Options = Options()) -> str:  # noqa: B008 - frozen
    """Return the text of the printed summary's PDF, without spaces."""
    copies = borrower_summary.account_copies_of(owner)
    paper = borrower_summary.document(owner, copies, options, today=business_date())
    stamp = Stamp(noon(business_date()), "Maya Chen")
    pages = PdfReader(io.BytesIO(render(paper.html(stamp)))).pages
    return "".join("".join(page.extract_text() for page in pages).split())


# --- 40 business dates over one frozen answer ---


def schedule(start: date) -> list[dict[str, Any]]:
    """Return four installments, one of which is paid."""
    days = [
        start - timedelta(days=3),
        start + timedelta(days=8),
        date(2028, 2, 29),
        start + timedelta(days=30),
    ]
    rows = [
        {"due_date": str(day), "total": Decimal(f"10{number}.25"), "status": "SCHEDULED", "paid_on": None}
        for number, day in enumerate(days)
    ]
    rows[1] |= {"status": "PAID", "paid_on": str(start + timedelta(days=12))}
    return rows


@pytest.mark.parametrize("has_job", [True, False])
def test_one_answer_gives_true_figures_on_forty_days(cached_portal: Sandbox, has_job: bool) -> None:
    answer = {
        "amount": Decimal("900.00"),
        "delinquent": False,
        "status": "ACTIVE",
        "installments": schedule(FIRST_DAY),
    }
    with time_machine.travel(noon(FIRST_DAY), tick=True):
        owner = save_borrower("b-1", "Leap Day Bakery LLC")
        save_account(Loan, "b-1", "loan-1", answer)
    for number in range(40):
        today = FIRST_DAY + timedelta(days=number)
        with time_machine.travel(noon(today), tick=True):
            if has_job:
                run_background_work()
                assert not outdated_accounts().exists()
            viewer = browser_of(Role.VIEWER)
            figures = owed.loan_figures(answer, today, FIRST_DAY)
            expected, since = figures["Past due"], figures["Due since the copy"]
            assert expected == Decimal("100.25")  # Nothing but an answer makes more of it.
            row = read_csv(viewer, "/loans/export.csv?sort=past_due")["loan-1"]
            assert (Decimal(row["Past due"]), row["Copy of"]) == (expected, str(FIRST_DAY))
            assert int(row["Days past due"]) == number + 3
            assert (row["Due since the copy"], row["Oldest due since the copy"]) == (
                csv_text(since),
                csv_text(figures["Oldest due since the copy"]),
            )
            assert find_accounts(viewer, "/loans/?due_since=yes") == ({"loan-1"} if since else set())
            listed = visible_text(viewer.get("/loans/").content.decode())
            assert (wording.money(expected) or "") in listed
            assert find_accounts(viewer, "/loans/?q=past_due:%3E0") == {"loan-1"}
            assert (
                Decimal(read_csv(viewer, "/borrowers/export/?sort=past_due")["b-1"]["Past due"]) == expected
            )
            assert past_due_on_home(viewer) == ["loan-1"]
            if number % 13 == 0:
                page = viewer.get(owner.get_absolute_url()).content.decode()
                assert f"{wording.money(expected)} Since" in card(page, "Past due")
                assert f"{number + 3} days past due" in visible_text(page)
                assert (wording.money(since) or "") in card(page, "Due since the copy")
                assert bool(since) == bool(card(page, "Due since the copy"))


def run_background_work() -> None:
    """Recalculate figures as the worker does after midnight."""
    recalculate_after_midnight()
    job = start_job(recalculate_figures)
    run_taken(job)


def test_records_of_an_earlier_version_are_recalculated(cached_portal: Sandbox, viewer: Browser) -> None:
    save_borrower("b-1", "Old Records LLC")
    rows = [{"due_date": "2020-01-31", "total": Decimal("75.10"), "status": "SCHEDULED"}]
    save_account(Loan, "b-1", "loan-1", {"delinquent": None, "installments": rows})
    bare = {
        "past_due": None,
        "past_due_rank": None,
        "is_past_due": False,
        "oldest_unpaid_due": None,
        "remaining": None,
    }
    Account.objects.filter(uuid="loan-1").update(figures_good_through=None, **bare)
    Borrower.objects.filter(uuid="b-1").update(past_due=None, past_due_rank=None, is_past_due=False)
    assert read_csv(viewer, "/loans/export.csv?sort=past_due")["loan-1"]["Past due"] == "75.10"
    assert read_csv(viewer, "/borrowers/export/?past_due=yes")["b-1"]["Past due"] == "75.10"


def save_repayments(owner: str, loan: str, *days: date) -> None:
    paid = [
        {"uuid": f"p-{day}", "status": "SUCCEEDED", "amount": Decimal("75.10"), "effective_date": str(day)}
        for day in days
    ]
    answer = codec.decode_list(Repayment, codec.to_json(paid))
    ids = {"borrower_id": owner, "loan_id": loan}
    store.save(store.records_in_answer("repayments.of_loan", answer, ids), source=Source.SERVICE)


def one_overdue_loan(paid_rows: int = 0) -> dict[str, Any]:
    rows = [
        {"due_date": f"2020-0{month}-28", "total": Decimal("75.10"), "status": "PAID"}
        for month in range(1, paid_rows + 1)
    ]
    unpaid = {"due_date": "2020-06-28", "total": Decimal("75.10"), "status": "SCHEDULED"}
    return {"delinquent": True, "status": "ACTIVE", "installments": [*rows, unpaid]}


@pytest.mark.parametrize(
    ("paid_rows", "repaid", "words_of_rule"),
    [
        (0, [date(2020, 6, 28)], "A repayment succeeded on the due date of an unpaid installment"),
        (2, [date(2020, 1, 28)], "More installments paid than repayments succeeded"),
    ],
)
def test_contradicting_repayments_are_reported_everywhere(
    cached_portal: Sandbox, viewer: Browser, paid_rows: int, repaid: list[date], words_of_rule: str
) -> None:
    owner = save_borrower("b-1", "Contradicting Copies LLC")
    loan = save_account(Loan, "b-1", "loan-1", one_overdue_loan(paid_rows))
    assert find_accounts(viewer, "/loans/?check=yes") == set()
    save_repayments("b-1", "loan-1", *repaid)
    assert find_accounts(viewer, "/loans/?check=yes") == {"loan-1"}
    for page in (loan, owner):
        assert words_of_rule in visible_text(viewer.get(page.get_absolute_url()).content.decode())
    assert words_of_rule.replace(" ", "") in summary_text(owner)
    assert words_of_rule.replace(" ", "") not in summary_text(owner, Options.of(QueryDict("mode=borrower")))
    save_account(Loan, "b-1", "loan-1", one_overdue_loan(paid_rows) | {"risk_grade": "B"})
    assert find_accounts(viewer, "/loans/?check=yes") == {"loan-1"}
    save_repayments("b-1", "loan-1", *[date(2020, month, 27) for month in range(1, paid_rows + 1)])
    assert find_accounts(viewer, "/loans/?check=yes") == set()


def test_possible_partial_payments_are_shown_everywhere(cached_portal: Sandbox, viewer: Browser) -> None:
    owner = save_borrower("b-1", "Partly Paid LLC")
    save_account(Loan, "b-1", "loan-1", one_overdue_loan())
    save_repayments("b-1", "loan-1", date(2020, 6, 30))
    assert "$75.10 partials not deducted" in visible_text(viewer.get("/loans/").content.decode())
    assert read_csv(viewer, "/loans/export.csv?sort=due")["loan-1"]["Before partial payments"] == "Yes"
    for address in (owner.get_absolute_url(), f"{owner.get_absolute_url()}?tab=loans"):
        assert "$75.10 partial payments not deducted" in visible_text(viewer.get(address).content.decode())
    assert "partial payments not deducted" in visible_text(viewer.get("/?show=past_due").content.decode())
    assert "partialpaymentsnotdeducted" in summary_text(owner)


def test_figures_from_earlier_rules_are_recalculated(cached_portal: Sandbox, viewer: Browser) -> None:
    save_borrower("b-1", "Earlier Rules LLC")
    for number in range(3):
        save_account(Loan, "b-1", f"loan-{number}", one_overdue_loan())
    Account.objects.update(figures_good_through=None, needs_check=True)
    recalculate_after_midnight()
    run_taken(start_job(recalculate_figures))
    assert find_accounts(viewer, "/loans/?check=yes") == set()
    assert not outdated_accounts().exists()


@pytest.mark.parametrize(
    ("limit", "listed", "exported"),
    [
        ("123456789012.34", "$123,456,789,012.34", "123456789012.34"),
        ("9999999999999.99", "$9,999,999,999,999.99", "9999999999999.99"),
        ("41.12345", "$41.12", "41.1234"),
        ("10000000000000.00", "Not known", ""),
    ],
)
def test_a_large_amount_is_listed_or_marked_too_large(
    cached_portal: Sandbox, viewer: Browser, limit: str, listed: str, exported: str
) -> None:
    save_borrower("b-1", "Large Amounts LLC")
    line = save_account(Statement, "b-1", "line-1", {"principal_balance": Decimal(limit), "days_past_due": 0})
    assert listed in visible_text(viewer.get("/lines/").content.decode())
    assert read_csv(viewer, "/lines/export.csv?sort=due")["line-1"]["Principal"] == exported
    page = visible_text(viewer.get(line.get_absolute_url()).content.decode())
    assert wording.money(Decimal(limit)) in page
    assert ("lists show it as not known" in page) == (not exported)
    assert find_accounts(viewer, "/lines/?check=yes") == (set() if exported else {"line-1"})


def test_closed_accounts_are_reported_but_not_counted(cached_portal: Sandbox, viewer: Browser) -> None:
    owner = save_borrower("b-1", "Closed Doors LLC")
    rows = [{"due_date": "2020-01-31", "total": Decimal("75.10"), "status": "SCHEDULED"}]
    save_account(Loan, "b-1", "loan-1", {"delinquent": True, "status": "CHARGED_OFF", "installments": rows})
    save_account(Statement, "b-1", "line-1", {"past_due_balance": Decimal("12.50"), "days_past_due": 3})
    assert read_csv(viewer, "/borrowers/export/?past_due=yes")["b-1"]["Past due"] == "12.50"
    page = viewer.get(owner.get_absolute_url()).content.decode()
    assert card(page, "Past due") == "Past due Line line-1 $12.50 As reported 1 closed account not counted"
    assert "3 days past due" in visible_text(page)
    past_due = {row["Account"][:11]: row["Past due"] for row in cells(page, ACCOUNTS)}
    assert past_due == {"Line line-1": "$12.50", "Loan loan-1": "$75.10 closed, not counted"}
    page = visible_text(viewer.get("/borrowers/b-1/loans/loan-1/").content.decode())
    assert "days, closed and not in totals" in page
    for number, status in enumerate(("ACTIVE", "ACTIVE", "PAID_OFF"), 2):
        answer = {"amount": Decimal("100.10"), "status": status, "installments": []}
        save_account(Loan, "b-1", f"loan-{number}", answer)
    assert "Total$200.20" in summary_text(owner)
    assert past_due_on_home(viewer) == ["line-1"]


def test_the_demo_uses_the_sandbox_date(
    portal_service: Sandbox, settings: LazySettings, tmp_path: Any
) -> None:
    with Sandbox(tmp_path / "s.sqlite3", client_id="x", secret=SECRET, control=True) as sandbox:
        settings.SERVICING_URL, settings.BUSINESS_DATE_FROM = sandbox.url, "sandbox"
        before = business_date()
        sandbox.world.advance(3)
        cache.clear()
        assert business_date() == before + timedelta(days=3)
        shown = visible_text(browser_of(Role.VIEWER).get("/loans/").content.decode())
        assert f"Demo date {wording.day(business_date())}" in shown
        assert wording.day(business_date(), weekday=True) in browser_of(Role.VIEWER).get("/").content.decode()
    settings.SERVICING_URL = portal_service.url  # It has no such address.
    cache.delete("business-date")
    assert [business_date() for _ in range(3)] == [before + timedelta(days=3)] * 3
    assert [call.path for call in portal_service.calls].count("/_sandbox/date") == 1


# --- Any answers ---

TODAY = date(2028, 2, 29)
DAYS = st.none() | st.sampled_from([-60, -31, -30, -29, -1, 0, 1, 2, 31]).map(
    lambda number: str(TODAY + timedelta(days=number))
)
INSTALLMENT = st.fixed_dictionaries(
    {
        "due_date": DAYS,
        "total": AMOUNTS,
        "balance": AMOUNTS,
        "status": st.sampled_from(["PAID", "SCHEDULED", "PAST_DUE", "WAIVED", None]),
        "paid_on": DAYS,
    }
)
LOAN_ANSWER = st.fixed_dictionaries(
    {
        "amount": AMOUNTS,
        "delinquent": st.none() | st.booleans(),
        "status": st.sampled_from(["ACTIVE", "CLOSED", None]),
        "repayments_start_date": DAYS,
        "installments": st.lists(INSTALLMENT, max_size=4),
    }
)
LINE_ANSWER = st.fixed_dictionaries(
    {
        "principal_balance": AMOUNTS,
        "payoff_balance": AMOUNTS,
        "days_past_due": st.none() | st.integers(0, 120),
        "past_due_balance": AMOUNTS,
        "payment_amount_due": AMOUNTS,
        "payment_due_date": DAYS,
        "credit_limit": AMOUNTS,
        "available_credit": AMOUNTS,
    }
)
PORTFOLIOS = st.lists(
    st.tuples(st.lists(LOAN_ANSWER, max_size=2), st.lists(LINE_ANSWER, max_size=2)), min_size=5, max_size=5
)


@settings(
    max_examples=5,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(PORTFOLIOS, st.sampled_from([0, 1, 2, 31]))
def test_every_page_and_file_shows_the_same_figures(
    cached_portal: Sandbox, borrowers: list[Any], age: int
) -> None:
    copied_on = TODAY - timedelta(days=age)
    with time_machine.travel(noon(copied_on), tick=True):
        Account.objects.all().delete()
        Borrower.objects.all().delete()
        for number, (loans, lines) in enumerate(borrowers):
            save_borrower(f"b-{number}", f"Borrower {number}")
            for place, answer in enumerate(loans):
                save_account(Loan, f"b-{number}", f"loan-{number}-{place}", answer)
            for place, answer in enumerate(lines):
                save_account(Statement, f"b-{number}", f"line-{number}-{place}", answer)
    with time_machine.travel(noon(TODAY), tick=True):
        User.objects.filter(username="viewer").delete()
        viewer = browser_of(Role.VIEWER)
        columns = ["amount", "remaining", "past_due", "days", "due", "principal", "status"]
        User.objects.filter(username="viewer").update(list_columns={"loans": columns})
        accounts = {
            f"{kind}-{number}-{place}": owed.figures(kind, answer, TODAY, copied_on)
            for number, of_borrower in enumerate(borrowers)
            for kind, answers in zip(("loan", "line"), of_borrower, strict=True)
            for place, answer in enumerate(answers)
        }
        check_lists(viewer, accounts)
        check_pages(viewer, {uuid: one for uuid, one in accounts.items() if "-0-" in uuid})
        check_borrowers(viewer, accounts)
        check_home(viewer, accounts)


OWED_COLUMNS = (
    *("Past due", "Days past due", "Aging", "Due next", "Amount due next"),
    *("Due since the copy", "Oldest due since the copy"),
)
FILE_COLUMNS = {
    "loan": (*OWED_COLUMNS, "Amount", "Remaining payments", "Principal"),
    "line": (*OWED_COLUMNS, "Limit", "Principal", "Principal as % of limit", "Available"),
}


def csv_text(value: Any) -> str:
    """Return a figure as CSV writes it."""
    return "" if value is None else f"{value:.2f}" if isinstance(value, Decimal) else str(value)


def check_lists(viewer: Browser, accounts: dict[str, Any]) -> None:
    """Check lists, search, filters and all three file formats."""
    for address, kind in (("/loans/", "loan"), ("/lines/", "line")):
        wanted = {uuid: one for uuid, one in accounts.items() if uuid.startswith(kind)}
        file = f"{address}export.csv?sort=past_due"
        plain, lines, sheet = read_csv(viewer, file), read_json_lines(viewer, file), read_sheet(viewer, file)
        shown = list_rows(viewer, f"{address}?size=100")
        assert set(plain) == set(lines) == set(sheet) == set(wanted) == set(shown)
        for uuid, one in wanted.items():
            for name in FILE_COLUMNS[kind]:
                value = one[name]
                assert plain[uuid][name] == csv_text(value), name
                assert lines[uuid][name] == (str(value) if isinstance(value, date) else value), name
                assert sheet[uuid][name] == value, name
            on_screen = {
                "Remaining payments",
                "Principal",
                "Available",
                "Past due",
                "Amount due next",
            } & set(one)
            silent = {"Past due"} if one["Past due"] == 0 else set()
            silent |= set() if one["Due next"] else {"Amount due next"}
            for name in on_screen - silent:
                assert (wording.money(one[name]) or "Not known") in shown[uuid], name
        late = Account.objects.filter(kind=kind, past_due_rank__isnull=False)
        above = {uuid for uuid, one in wanted.items() if one["Past due"] is None or one["Past due"] > 0}
        above &= set(late.values_list("uuid", flat=True))
        assert find_accounts(viewer, f"{address}?q=past_due:%3E0&size=100") == above
        for bucket in Aging:
            expected = {uuid for uuid, one in wanted.items() if one["Aging"] == bucket}
            assert find_accounts(viewer, f"{address}?aging={bucket.name.lower()}&size=100") == expected


def list_rows(viewer: Browser, address: str) -> dict[str, str]:
    """Return the text of each row of a list by ID."""
    rows = viewer.get(address).content.decode().split("<tr data-row>")[1:]
    return {
        found[1]: visible_text(row.partition("</tr>")[0])
        for row in rows
        if (found := re.search(r"/((?:loan|line)-[0-9-]+)/", row))
    }


def check_pages(viewer: Browser, accounts: dict[str, Any]) -> None:
    """Check the pages of accounts."""
    for uuid, one in accounts.items():
        record = Account.objects.get(uuid=uuid)
        page = visible_text(viewer.get(record.get_absolute_url()).content.decode())
        if uuid.startswith("loan") and not json.loads(store.saved_text(record))["installments"]:
            assert "No schedule" in page
            continue
        if uuid.startswith("loan"):
            labels = {"Past due": one["Past due"], "Principal": one["Principal"]}
            labels |= {"Left to pay, with interest": one["Remaining payments"]}
            labels |= {"Due next": one["Amount due next"]} if one["Due next"] else {}
            unknown = "Not known"
        else:
            is_late = (one["Past due"] is None and (one["Days past due"] or 0) > 0) or (
                one["Past due"] or 0
            ) > 0
            label, otherwise = ("Past due", "Not known") if is_late else ("Past due balance", "—")
            assert f"{label} {wording.money(one['Past due']) or otherwise}" in page, uuid
            labels = {"Principal": one["Principal"]}
            labels |= {"Available credit": one["Available"], "Credit limit": one["Limit"]}
            unknown = "—"
        for label, amount in labels.items():
            assert f"{label} {wording.money(amount) or unknown}" in page, (uuid, label)


def check_borrowers(viewer: Browser, accounts: dict[str, Any]) -> None:
    """Check the list of borrowers, each borrower's page, and one printed summary."""
    listed = read_csv(viewer, "/borrowers/export/?sort=past_due")
    for number in range(5):
        of_borrower = {uuid: one for uuid, one in accounts.items() if f"-{number}-" in uuid}
        amount, unknown = owed.borrower_past_due(list(of_borrower.values()))
        assert listed[f"b-{number}"]["Past due"] == csv_text(amount)
        assert listed[f"b-{number}"]["Accounts with past due not known"] == str(unknown or "")
        page = viewer.get(f"/borrowers/b-{number}/").content.decode()
        total = wording.money(amount) if amount else "Not known" if unknown else ""
        assert total in card(page, "Past due")
        rows = {one["Account"].split()[1]: one for one in cells(page, ACCOUNTS)} if of_borrower else {}
        assert rows.keys() == {uuid[:8] for uuid in of_borrower}
        for uuid, one in of_borrower.items():
            check_row(rows[uuid[:8]], one)
        if number == 0:
            printed = summary_text(Borrower.objects.get(uuid="b-0"))
            assert not total or f"Pastdue:{total.replace(' ', '')}" in printed
            for uuid, one in of_borrower.items():
                assert printed_row(uuid, one) in printed


def check_row(row: dict[str, str], one: dict[str, Any]) -> None:
    """Check an account's row on its borrower's page, where a past due amount of zero is blank."""
    owed_words = "" if one["Past due"] == 0 else wording.money(one["Past due"]) or "Not known"
    assert row["Past due"].startswith(owed_words)
    assert bool(row["Past due"]) == bool(owed_words)
    assert row["Principal"] == (wording.money(one["Principal"]) or "Not known")
    assert (one["Due next"] is None) == (row["Due next"] == "")
    assert (wording.day(one["Due next"]) or "") in row["Due next"]
    assert (row["Status"] == "Past due") == one["is_late"]


def printed_row(uuid: str, one: dict[str, Any]) -> str:
    """Return an account's row in the printed summary, without spaces."""
    names = ("Amount", "Principal", "Remaining payments") if "loan" in uuid else ("Available",)
    figures = [wording.money(one[name]) or ("—" if name == "Amount" else "Not known") for name in names]
    figures.append(wording.money(one["Past due"]) or "Not known")
    figures.append("—" if one["Days past due"] is None else str(one["Days past due"]))
    due = wording.money(one["Amount due next"]) or "Not known"
    figures.append(f"{due}{wording.day(one['Due next'])}" if one["Due next"] else "None")
    return "".join("".join(figures).split())


def check_home(viewer: Browser, accounts: dict[str, Any]) -> None:
    """Check the past due accounts on the home page, their order and their total."""
    late = {uuid: one["Past due"] for uuid, one in accounts.items() if one["is_late"]}
    worst_first = sorted(late.values(), key=lambda one: (one is not None, one or 0), reverse=True)
    on_screen = past_due_on_home(viewer)
    assert sorted(on_screen) == sorted(late)
    assert [late[uuid] for uuid in on_screen] == worst_first
    known = sum((one for one in late.values() if one is not None), ZERO)
    assert not known or f"{wording.money(known)}" in visible_text(viewer.get("/").content.decode())
