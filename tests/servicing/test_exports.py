"""What other programs rely on, and what the library must not bring along."""

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from msgspec import Struct

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


def test_every_promised_name_says_what_it_is() -> None:
    """A model and what is sent name their section of the interface; methods of a protocol say when they are called."""
    offered = {
        name: getattr(servicing, name) for name in servicing.__all__ if name not in ("UNSET", "__version__")
    }
    of_interface = {name for name, kind in offered.items() if issubclass(kind, Struct)}
    methods = {
        f"{name}.{attribute}": member
        for name, kind in offered.items()
        for attribute, member in vars(kind).items()
        if inspect.isfunction(member) and not attribute.startswith("_")
    }

    assert [
        name for name, what in (offered | methods).items() if not vars(what).get("__doc__", what.__doc__)
    ] == []
    assert [name for name in of_interface if "section" not in offered[name].__doc__] == []
    assert {"Watcher.before", "Watcher.after", "Gate.admits", "Gate.heard"} <= set(methods)


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(servicing.__file__).parents[1] / "pyproject.toml").read_text())

    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "servicing.version.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", servicing.__version__)


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
