"""What the library's README shows can be typed as it stands."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import servicing
from servicing import ServicingError
from servicing.sandbox import Sandbox
from tests.servicing.test_first_day import Open, opened, run

__all__ = ["opened"]  # A fixture.
TEXT = (Path(servicing.__file__).parent / "README.md").read_text()
FIRST, TESTING = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_first_example_runs(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    assert len([line for line in FIRST.splitlines() if line]) == 10
    borrower = sandbox.world.borrower()["uuid"]
    loan = sandbox.world.loan(borrower, amount=18000)["uuid"]
    sandbox.world.repayment(loan, amount="310.25")
    code = FIRST.replace("https://lender.example", sandbox.url).replace('"desk"', repr(sandbox.client_id))
    exec(code, {"SECRET": sandbox.secret, "borrower_id": borrower, "loan_id": loan})
    assert capsys.readouterr().out == "18000.00 ACTIVE [Decimal('310.25')]\n"
    assert sandbox.calls[-1].operation == "applications.submit"


def test_the_test_of_the_readme_passes(tmp_path: Path) -> None:
    names: dict[str, Any] = {"pytest": pytest}
    exec(TESTING, names)
    test: Callable[[Path], None] = names["test_a_lost_answer_is_not_taken_for_a_refusal"]
    test(tmp_path)


def test_every_error_has_its_row() -> None:
    table = "\n".join(line for line in TEXT.splitlines() if line.startswith("| `"))
    offered = [getattr(servicing, name) for name in servicing.__all__]
    kinds = {kind.__name__ for kind in offered if isinstance(kind, type) and issubclass(kind, ServicingError)}
    # An encrypted value is read by the service alone.
    assert {*re.findall(r"`(\w+)`", table)} & kinds == kinds - {"ServicingError", "Unreadable"}


def test_the_check_prints_what_is_shown(opened: Open) -> None:
    shown = TEXT.partition("--client-id desk\n")[2].partition("```")[0]
    assert run(opened(offset="rows", filters="body")).stdout == shown
