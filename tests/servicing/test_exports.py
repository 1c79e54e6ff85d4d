"""The public names of the library, their documentation, and imports that it must not have."""

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


def test_the_client_has_every_operation_of_the_interface_and_no_other() -> None:
    assert set(methods()) == OPERATIONS


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_documents_its_section_and_errors(name: str) -> None:
    documentation = inspect.getdoc(methods()[name]) or ""

    assert "Raises" in documentation
    assert "section" in documentation or name == "messages.iterate"


def test_every_exported_name_exists() -> None:
    assert len(set(servicing.__all__)) == len(servicing.__all__)
    assert all(hasattr(servicing, name) for name in servicing.__all__)


def test_every_exported_name_has_a_docstring() -> None:
    """Models name their section of the interface; methods of protocols say when they are called."""
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
    assert {"Watcher.before", "Watcher.after", "Gate.allows_request", "Gate.record_result"} <= set(methods)


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(servicing.__file__).parents[1] / "pyproject.toml").read_text())

    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "servicing.version.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", servicing.__version__)


def test_every_error_is_exported_and_has_one_base() -> None:
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, Exception)]

    assert all(issubclass(kind, servicing.ServicingError) for kind in kinds)
    assert {kind.__name__ for kind in kinds} <= set(servicing.__all__)


def test_the_documented_error_tree_is_correct() -> None:
    drawn = errors.__doc__ or ""

    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.Rejected) and kind is not errors.Rejected:
            assert f"│   ├── {name}" in drawn or f"│   └── {name}" in drawn


def test_the_library_imports_neither_django_nor_the_sandbox() -> None:
    check = "import servicing, sys; print([m for m in sys.modules if m in ('django', 'servicing.sandbox')])"
    found = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"
