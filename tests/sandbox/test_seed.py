"""The demo portfolio: complete, believable, and deterministic for each day."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from shutil import copy
from typing import Any

import phonenumbers
import pypdf
import pytest

from servicing import Loan, Repayment, codec
from servicing.consistency import check_loan_repayments
from servicing.sandbox import Sandbox, World, checks, documents
from servicing.sandbox.seed import seed
from servicing.sandbox.wire import dumps
from tests.sandbox import interface

# Only one process builds the portfolio.
pytestmark = pytest.mark.xdist_group("portfolio")
TODAY = date(2026, 5, 20)
KINDS = (
    "user",
    "key_person",
    "loan",
    "line",
    "statement",
    "repayment",
    "line_application",
    "loan_application",
)
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: (?P<zone>[\w/]+))?")


def seed_sandbox(path: Path, today: date) -> Sandbox:
    sandbox = Sandbox(path, today=today)
    seed(sandbox.world)
    return sandbox


@pytest.fixture(scope="module")
def portfolio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database file of the portfolio of TODAY."""
    path = tmp_path_factory.mktemp("seed") / "s.db"
    seed_sandbox(path, TODAY).close()
    return path


@pytest.fixture(scope="module")
def world(portfolio: Path) -> Iterator[World]:
    sandbox = Sandbox(portfolio, today=TODAY)
    yield sandbox.world
    sandbox.close()


@pytest.fixture
def world_copy(portfolio: Path, tmp_path: Path) -> Iterator[World]:
    """A copy of the portfolio whose date can be advanced."""
    sandbox = Sandbox(Path(copy(portfolio, tmp_path)), today=TODAY)
    yield sandbox.world
    sandbox.close()


def bodies(world: World, kind: str) -> list[dict[str, Any]]:
    return [record.body for record in world.store.all(kind)]


def contents(world: World) -> bytes:
    records = [[record.body, record.private] for kind in KINDS for record in world.store.all(kind)]
    return dumps([records, world.messages()])


@pytest.mark.slow
def test_the_same_day_gives_the_same_portfolio(world: World, tmp_path: Path) -> None:
    again = seed_sandbox(tmp_path / "again.db", TODAY)
    assert contents(again.world) == contents(world)
    again.close()


def test_a_file_with_data_is_not_seeded(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "s.db")
    sandbox.world.borrower()
    seed(sandbox.world)
    assert len(sandbox.world.users()) == 1
    sandbox.close()


@pytest.mark.slow
@pytest.mark.xdist_group("start dates")
@pytest.mark.parametrize("day", ["2024-02-29", "2026-12-31", "2027-01-01", "2027-03-31"])
def test_any_start_date_gives_3000_messages_of_one_year(tmp_path: Path, day: str) -> None:
    today = date.fromisoformat(day)
    sandbox = seed_sandbox(tmp_path / "s.db", today)
    days = [message["created_at"][:10] for message in sandbox.world.messages()]
    assert len(days) == 3000
    assert min(days) >= (today - timedelta(days=366)).isoformat()
    assert max(days) <= today.isoformat()
    sandbox.close()


@pytest.mark.slow
def test_there_are_borrowers_of_every_kind(world: World) -> None:
    users = world.users()
    assert len(users) >= 60
    assert {user.get("entity") for user in users} == {*checks.ENTITIES, None}
    assert len({user["email"] for user in users}) > 60
    people = [person for user in users for person in user.get("key_people", ())]
    assert {person["title"] for person in people} == set(checks.TITLES)


def test_some_names_and_cities_are_hard_to_display(world: World) -> None:
    names = [user["first_name"] for user in world.users()]
    assert max(len(name) for name in names) > 120
    assert any("'" in name for name in names)
    assert {"Española", "Cañon City", "Bayamón"} <= {user["address"]["city"] for user in world.users()}


@pytest.mark.slow
def test_every_user_passes_the_services_checks(world: World) -> None:
    for user in world.users():
        for person in (user, *user.get("key_people", ())):
            checks.address(person["address"])
            checks.email(person["email"])
            number = phonenumbers.parse("+1" + checks.phone(person["phone"]))
            assert phonenumbers.is_valid_number(number)


@pytest.mark.slow
def test_every_object_has_exactly_the_interfaces_fields(world: World) -> None:
    kinds = {
        "loan": interface.LOAN,
        "line": interface.STATEMENT,
        "repayment": interface.REPAYMENT,
        "line_application": interface.APPLICATION,
        "key_person": interface.KEY_PERSON,
    }
    for kind, fields in kinds.items():
        assert {frozenset(body) for body in bodies(world, kind)} == {frozenset(fields)}
    offers = [offer for body in bodies(world, "line_application") for offer in body["offers"]]
    assert {frozenset(offer) for offer in offers} == {frozenset(interface.OFFER)}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (
            "loan",
            "external_id risk_grade finance_charge total_repayment_amount interest_amount maturity_date",
        ),
        ("line", "payment_due_date"),
        ("line_application", "term purpose details credit_report_id"),
        ("repayment", "payment_type principal interest ending_balance ach_batch_id ach_id completion_date"),
        ("key_person", "middle_name"),
    ],
)
def test_nullable_fields_are_null_in_some_records_and_set_in_others(
    world: World, kind: str, fields: str
) -> None:
    for name in fields.split():
        values = [body[name] for body in bodies(world, kind)]
        assert None in values, name
        assert any(value is not None for value in values), name


def test_loans_are_new_current_and_delinquent_in_every_shape(world: World) -> None:
    loans = bodies(world, "loan")
    seen = {(len(loan["installments"]), loan["delinquent"]) for loan in loans}
    assert seen >= {(0, False), (12, False), (12, True), (360, False), (360, True)}
    shapes = {frozenset(loan["installments"][0]) for loan in loans if loan["installments"]}
    assert shapes == {frozenset(interface.SNAKE_INSTALLMENT), frozenset(interface.PASCAL_INSTALLMENT)}
    assert any(loan["opening_date"] > (TODAY - timedelta(days=30)).isoformat() for loan in loans)


def loan_payment(loan: dict[str, Any]) -> Decimal:
    """Return the amount of a loan's first installment."""
    first = loan["installments"][0]
    return Decimal(first.get("total") or first["PaymentAmount"])


@pytest.mark.slow
def test_some_accounts_are_unusual(world: World) -> None:
    loans, lines = world.store.all("loan"), world.store.all("line")
    assert {loan.body["status"] for loan in loans} == {
        "ACTIVE",
        "PAID_OFF",
        "CHARGED_OFF",
        "FORBEARANCE",
        "CLOSED",
    }
    paid_off = next(loan for loan in loans if loan.body["status"] == "PAID_OFF")
    assert {
        row["IsHistory"] if "IsHistory" in row else row["paid_on"] is not None
        for row in paid_off.body["installments"]
    } == {True}
    frozen = [
        line.body for line in lines if not line.body["available_credit"] and not line.body["days_past_due"]
    ]
    assert any(Decimal(0) < line["principal_balance"] < line["credit_limit"] for line in frozen)
    undated = [row for loan in loans for row in loan.body["installments"] if not row.get("due_date", "x")]
    assert {row["status"] for row in undated} == {"SCHEDULED", "PAST_DUE"}
    late = [
        (loan.body, row)
        for loan in loans
        for row in loan.body["installments"]
        if row.get("paid_on") and row["paid_on"] > row["due_date"] and not loan.body["delinquent"]
    ]
    assert late
    partial_payments = [
        payment
        for loan in loans
        for payment in world.store.all("repayment", owner=loan.uuid)
        if payment.body["status"] == "SUCCEEDED"
        and loan.body["delinquent"]
        and payment.body["amount"] * 2 < loan_payment(loan.body)
    ]
    assert partial_payments
    yesterday = TODAY - timedelta(days=1)
    returns = [one for one in world.messages() if one["event"] == "payment.failed_after_success"]
    assert any(one["created_at"][:10] == yesterday.isoformat() for one in returns)
    contradictory = [
        loan
        for loan in loans
        if check_loan_repayments(
            codec.decode(Loan, dumps(loan.body)),
            codec.decode_list(
                Repayment, dumps([one.body for one in world.store.all("repayment", owner=loan.uuid)])
            ),
            TODAY,
        )
    ]
    assert any(loan.body["delinquent"] for loan in contradictory)


def test_a_delinquent_loan_is_cured_by_its_next_payment(world_copy: World) -> None:
    late = {loan.uuid for loan in world_copy.store.all("loan") if loan.body["delinquent"]}
    world_copy.advance(1)
    assert [uuid for uuid in late if not world_copy.account(uuid).body["delinquent"]]


def test_lines_range_from_unused_to_past_due(world: World) -> None:
    lines = world.store.all("line")
    counts = {len(world.store.all("statement", owner=line.uuid)) for line in lines}
    assert {0, 1, 30} <= counts
    assert max(counts) == 30
    assert any(line.body["principal_balance"] == 0 for line in lines)
    assert any(line.body["days_past_due"] > 90 for line in lines)
    assert any(0 < line.body["days_past_due"] < 30 for line in lines)
    assert any(line.body["suspense_balance"] > 0 for line in lines)


def test_line_balances_are_consistent(world: World) -> None:
    for line in bodies(world, "line"):
        owed = line["principal_balance"] + line["interest_balance"]
        assert line["payoff_balance"] == owed - line["suspense_balance"] or line["suspense_balance"] > owed
        assert Decimal(0) <= line["past_due_balance"] <= line["payment_amount_due"] <= owed
        assert Decimal(0) <= line["available_credit"] <= line["current_credit"] <= line["credit_limit"]


def test_repayments_are_in_every_state_with_reversals(world: World) -> None:
    repayments = bodies(world, "repayment")
    assert {payment["status"] for payment in repayments} == {
        "SCHEDULED",
        "SUCCEEDED",
        "FAILED",
        "FAILED_AFTER_SUCCESS",
    }
    assert {payment["product"] for payment in repayments} == {"LOAN", "LOC", "BUILD_CREDIT"}
    assert {payment["payment_type"] for payment in repayments} > {
        "SINGLE_PAYMENT",
        "RETURNED",
        "REFUNDED",
        None,
    }
    assert {payment["error_description"] for payment in repayments} > {None, ""}


def test_applications_show_every_decision(world: World) -> None:
    applications = bodies(world, "line_application")
    assert {application["product"] for application in applications} == {"BUILD_CREDIT"}
    decisions = [application["status"]["decision"] for application in applications]
    assert decisions.count("REJECTED") == 1
    assert {len(application["offers"]) for application in applications} == {0, 1, 2, 3, 4}
    assert {type(application["details"]) for application in applications} == {type(None), list, dict}


def test_messages_are_written_in_mixed_zones(world: World) -> None:
    messages = world.messages()
    zones = {found["zone"] for message in messages if (found := TIME.fullmatch(message["created_at"]))}
    assert zones == {"US/Pacific", "PDT", "PST", "IST", None}
    assert all(TIME.fullmatch(message["created_at"]) for message in messages)


@pytest.mark.slow
def test_statements_open_as_documents_of_one_to_three_pages(world: World, tmp_path: Path) -> None:
    papers = sorted(world.store.all("statement"), key=lambda paper: len(paper.private["activity"]))
    pages = set()
    for paper in (papers[0], papers[len(papers) // 2], *papers[-3:]):
        line = world.account(paper.owner)
        content = documents.statement(paper.private, borrower=world.user(line.owner), line_uuid=line.uuid)
        (tmp_path / "s.pdf").write_bytes(content)
        pages.add(len(pypdf.PdfReader(tmp_path / "s.pdf").pages))
    assert {1, 3} <= pages <= {1, 2, 3}


@pytest.mark.slow
def test_advancing_days_adds_messages(world_copy: World) -> None:
    before = len(world_copy.messages())
    world_copy.advance(14)
    assert len(world_copy.messages()) > before
