"""The examples in the library's README work as printed."""

import re
from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import servicing
from servicing import ServicingError
from servicing.sandbox import Sandbox
from tests.servicing.test_first_day import OpenSandbox, open_sandbox, run_command

__all__ = ["open_sandbox"]  # pytest finds the fixture by this import.
TEXT = (Path(servicing.__file__).parent / "README.md").read_text()
FIRST, TESTING = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
REPORT_COMMAND, REPORT = re.findall(r"^\$ SERVICING_SECRET=… (.*?)\n(.*?)```", TEXT, re.DOTALL | re.M)[0]
# Lines that the README leaves out.
REPORT_PATTERN = re.compile(re.escape(REPORT).replace(re.escape("\n…\n"), "\n.*\n"), re.DOTALL)
# The service of which the README shows the report.
REPORTED: dict[str, Any] = {
    "messages": 60,
    "page_cap": 70,
    "offset": "rows",
    "payload": {"amount": Decimal("310.25")},
}
FIRST_OUTPUT = "18000.00 ACTIVE [Decimal('310.25')]\n"


def first_example(sandbox: Sandbox) -> tuple[str, dict[str, Any]]:
    """Return the code of the first example for this sandbox, and the values of the names it leaves open."""
    borrower = sandbox.world.borrower()["uuid"]
    loan = sandbox.world.loan(borrower, amount=18000)["uuid"]
    sandbox.world.repayment(loan, amount="310.25")
    code = FIRST.replace("https://lender.example", sandbox.url).replace('"desk"', repr(sandbox.client_id))
    return code, {"SECRET": sandbox.secret, "borrower_id": borrower, "loan_id": loan}


def test_the_first_example_runs(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    assert len([line for line in FIRST.splitlines() if line]) == 10
    code, names = first_example(sandbox)
    exec(code, names)
    assert capsys.readouterr().out == FIRST_OUTPUT
    assert sandbox.calls[-1].operation == "applications.submit"


@pytest.mark.parametrize("is_answer_lost", [True, False])
def test_the_example_test_passes_only_if_the_answer_is_lost(tmp_path: Path, is_answer_lost: bool) -> None:
    names: dict[str, Any] = {}
    exec(TESTING if is_answer_lost else re.sub(r".*fail_next.*\n", "", TESTING), names)
    test: Callable[[Path], None] = names["test_a_lost_answer_is_an_unknown_outcome"]
    with nullcontext() if is_answer_lost else pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test(tmp_path)


def test_the_error_table_lists_every_error() -> None:
    table = "\n".join(line for line in TEXT.splitlines() if line.startswith("| `"))
    exported = [getattr(servicing, name) for name in servicing.__all__]
    kinds = {
        kind.__name__ for kind in exported if isinstance(kind, type) and issubclass(kind, ServicingError)
    }
    # Only the service decrypts values.
    assert {*re.findall(r"`(\w+)`", table)} & kinds == kinds - {"ServicingError", "Unreadable"}


@pytest.mark.slow
def test_the_report_is_the_documented_one(open_sandbox: OpenSandbox) -> None:
    done = run_command(open_sandbox(**REPORTED))
    assert REPORT_PATTERN.fullmatch(done.stdout), done.stdout
    assert REPORT.count("\n…\n") == 2
    assert done.returncode == 1
