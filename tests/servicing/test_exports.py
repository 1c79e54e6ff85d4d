"""What other programs rely on, and what the library must not bring along."""

import inspect
import subprocess
import sys

import pytest

import servicing
from servicing import Client, errors

AREAS = ["applications", "borrowers", "credit_lines", "loans", "messages", "repayments"]
OPERATIONS = {
    "applications.get_for_line",
    "applications.submit",
    "borrowers.create_commercial",
    "borrowers.update",
    "borrowers.update_key_person",
    "credit_lines.statement",
    "loans.get",
    "messages.iterate",
    "messages.list",
    "repayments.of_line",
    "repayments.of_loan",
}


def methods() -> dict[str, object]:
    with Client("https://lender.example", auth="none") as client:
        return {
            f"{area}.{name}": method
            for area in AREAS
            for name, method in inspect.getmembers(getattr(client, area), inspect.ismethod)
            if not name.startswith("_")
        }


def test_every_operation_of_the_interface_is_offered_and_nothing_else() -> None:
    assert set(methods()) == OPERATIONS


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_tells_what_it_does_and_what_it_raises(name: str) -> None:
    documentation = inspect.getdoc(methods()[name]) or ""

    assert "Raises" in documentation
    assert "section" in documentation or name == "messages.iterate"


def test_every_name_that_is_promised_is_there() -> None:
    assert len(set(servicing.__all__)) == len(servicing.__all__)
    assert all(hasattr(servicing, name) for name in servicing.__all__)


def test_every_error_can_be_caught_by_one_name_and_is_offered() -> None:
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, Exception)]

    assert all(issubclass(kind, servicing.ServicingError) for kind in kinds)
    assert {kind.__name__ for kind in kinds} <= set(servicing.__all__)


def test_the_error_tree_is_drawn_as_it_is() -> None:
    drawn = errors.__doc__ or ""

    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.Rejected) and kind is not errors.Rejected:
            assert f"│   ├── {name}" in drawn or f"│   └── {name}" in drawn


def test_the_library_brings_no_django_and_no_sandbox() -> None:
    check = "import servicing, sys; print([m for m in sys.modules if m in ('django', 'servicing.sandbox')])"
    found = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"
