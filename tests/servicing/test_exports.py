"""The library's public names, their documentation, and its forbidden imports."""

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
from servicing.sandbox import endpoints

# Documents are read by links, tokens by the transport, and messages also page by page.
OPERATIONS = {*endpoints.OPERATIONS, "messages.iterate"} - {endpoints.TOKEN, "documents.fetch"}
AREAS = sorted({name.partition(".")[0] for name in OPERATIONS})


def find_methods() -> dict[str, object]:
    with Client("https://lender.example", auth="none") as client:
        return {
            f"{area}.{name}": method
            for area in AREAS
            for name, method in inspect.getmembers(getattr(client, area), inspect.ismethod)
            if not name.startswith("_")
        }


def test_the_client_has_exactly_the_interface_operations() -> None:
    assert set(find_methods()) == OPERATIONS


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_documents_its_section_and_errors(name: str) -> None:
    documentation = inspect.getdoc(find_methods()[name]) or ""

    assert "Raises" in documentation
    assert "section" in documentation or name == "messages.iterate"


def test_every_exported_name_exists() -> None:
    assert len(set(servicing.__all__)) == len(servicing.__all__)
    assert all(hasattr(servicing, name) for name in servicing.__all__)


def test_every_exported_name_has_a_docstring() -> None:
    """Models must name their section of the interface, and protocol methods need docstrings as well."""
    exported = {
        name: getattr(servicing, name) for name in servicing.__all__ if name not in ("UNSET", "__version__")
    }
    models = {name for name, kind in exported.items() if issubclass(kind, Struct)}
    methods = {
        f"{name}.{attribute}": member
        for name, kind in exported.items()
        for attribute, member in vars(kind).items()
        if inspect.isfunction(member) and not attribute.startswith("_")
    }

    assert [
        name
        for name, member in (exported | methods).items()
        if not vars(member).get("__doc__", member.__doc__)
    ] == []
    assert [name for name in models if "section" not in exported[name].__doc__] == []
    assert {"Watcher.before", "Watcher.after", "Gate.allows_request", "Gate.record_result"} <= set(methods)


def test_the_project_takes_its_version_from_the_library() -> None:
    project = tomllib.loads((Path(servicing.__file__).parents[1] / "pyproject.toml").read_text())

    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "servicing.version.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", servicing.__version__)


def test_every_error_is_exported_and_extends_servicing_error() -> None:
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, Exception)]

    assert all(issubclass(kind, servicing.ServicingError) for kind in kinds)
    assert {kind.__name__ for kind in kinds} <= set(servicing.__all__)


def test_the_documented_error_tree_lists_every_rejection() -> None:
    tree = errors.__doc__ or ""

    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.Rejected) and kind is not errors.Rejected:
            assert f"│   ├── {name}" in tree or f"│   └── {name}" in tree


@pytest.mark.slow
def test_the_library_imports_neither_django_nor_the_sandbox() -> None:
    check = "import servicing, sys; print([m for m in sys.modules if m in ('django', 'servicing.sandbox')])"
    found = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"
