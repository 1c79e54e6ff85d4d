"""Reading a line of credit's balances and statements."""

from datetime import date
from decimal import Decimal

import pytest

from servicing import Client, NotFound
from servicing.sandbox import Sandbox


@pytest.fixture
def borrower_id(sandbox: Sandbox) -> str:
    return str(sandbox.world.borrower()["uuid"])


def test_an_unused_line_has_no_balance(service_client: Client, sandbox: Sandbox, borrower_id: str) -> None:
    known = sandbox.world.line(borrower_id, limit="7500.50")
    statement = service_client.credit_lines.statement(borrower_id, known["uuid"])

    assert (statement.credit_limit, statement.available_credit) == (Decimal("7500.50"), Decimal("7500.50"))
    assert (statement.principal_balance, statement.payment_due_date) == (Decimal(0), None)
    assert (statement.statements, statement.issues, statement.extra) == ((), (), {})


def test_a_used_line_shows_its_balances_and_documents(
    service_client: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    known = sandbox.world.line(borrower_id, drawn="1200.25", opened=date(2026, 1, 5))
    sandbox.world.statement(known["uuid"], "2026-02-05")
    statement = service_client.credit_lines.statement(borrower_id, known["uuid"])

    assert statement.principal_balance == Decimal("1200.25")
    assert isinstance(statement.days_past_due, int)
    assert statement.statements[0].billing_date == date(2026, 2, 5)
    assert (statement.statements[0].url or "").startswith(sandbox.url)


def test_a_line_of_another_borrower_is_not_found(
    service_client: Client, sandbox: Sandbox, borrower_id: str
) -> None:
    known = sandbox.world.line(borrower_id)

    with pytest.raises(NotFound):
        service_client.credit_lines.statement(sandbox.world.borrower()["uuid"], known["uuid"])
