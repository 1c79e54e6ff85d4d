"""The library, installed with pip in an environment of its own, works without the checkout and without Django."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests.servicing.test_first_day import OpenSandbox, open_sandbox
from tests.servicing.test_readme import (
    FIRST_OUTPUT,
    REPORT_COMMAND,
    REPORT_PATTERN,
    REPORTED,
    TESTING,
    TEXT,
    first_example,
)

__all__ = ["open_sandbox"]  # pytest finds the fixture by this import.
# One process builds the environments.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("package")]
WITHOUT_EXTRA, WITH_EXTRA = (
    shlex.split(line) for line in re.findall(r"^pip install (.+)$", TEXT, re.MULTILINE)
)
LIST_FILES = """
import json
from importlib.metadata import distributions
print(json.dumps({one.name.lower(): [str(file) for file in one.files] for one in distributions()}))
"""
IMPORT_MODULES = """
import importlib, pkgutil, servicing
for module in pkgutil.iter_modules(servicing.__path__, "servicing."):
    if module.name not in ("servicing.sandbox", "servicing.__main__"):
        importlib.import_module(module.name)
        print(module.name)
"""


def run(programs: Path, *command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as in an activated environment, without what these tests set for themselves."""
    own = ("COVERAGE", "DJANGO", "PYTEST", "PYTHON")
    others = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=cwd, env=others | {"PATH": path} | environment, capture_output=True, text=True
    )


def output(programs: Path, *command: str, cwd: Path, **environment: str) -> str:
    """Run a command that must succeed; return what it prints."""
    done = run(programs, *command, cwd=cwd, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(environment: Path, checkout: Path, *packages: str) -> Path:
    """Create a virtual environment, install packages in their locked versions, and return its programs' folder."""
    venv.create(environment, symlinks=True)
    locks = "".join((BASE_DIR / name).read_text() for name in ("requirements.txt", "requirements-dev.txt"))
    constraints = environment / "constraints.txt"
    # With a single hash pip would demand one of every package, and a folder has none.
    constraints.write_text(re.sub(r" \\\n +--hash=\S+", "", locks))
    programs = environment / "bin"
    pip = [sys._base_executable, "-m", "pip", "--python", str(programs / "python")]
    output(programs, *pip, "install", "-q", "-c", str(constraints), *packages, cwd=checkout)
    return programs


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what pip could install, because building leaves files in the checkout."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("LICENSE", "README.md", "pyproject.toml", "manage.py"):
        shutil.copy(BASE_DIR / name, copy)
    for name in ("portal", "servicing", "templates", "tests"):
        shutil.copytree(BASE_DIR / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Path:
    """The programs of an environment with the library alone."""
    return install(tmp_path_factory.mktemp("alone"), checkout, *WITHOUT_EXTRA)


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Path:
    """The programs of an environment with the library, its sandbox, and pytest for the README's test."""
    return install(tmp_path_factory.mktemp("complete"), checkout, *WITH_EXTRA, "pytest")


def installed_files(programs: Path, cwd: Path) -> dict[str, list[str]]:
    """Return the files of each installed distribution."""
    files: dict[str, list[str]] = json.loads(output(programs, "python", "-c", LIST_FILES, cwd=cwd))
    return files


def test_only_the_library_and_its_data_are_installed(alone: Path, tmp_path: Path) -> None:
    files = installed_files(alone, tmp_path)
    assert files.keys() & {"django", "pydyf", "pytest", "weasyprint", "werkzeug"} == set()
    added = re.compile(r"servicing_client-[\w.]+\.dist-info/|.*/__pycache__/")
    library = [path for path in (BASE_DIR / "servicing").rglob("*") if path.is_file()]
    expected = {str(path.relative_to(BASE_DIR)) for path in library if path.parent.name != "__pycache__"}
    assert {"servicing/py.typed", "servicing/sandbox/openapi.yaml"} <= expected
    assert {file for file in files["servicing-client"] if not added.match(file)} == {
        *expected,
        "../../../bin/servicing-sandbox",
    }


def test_every_module_of_the_library_finds_its_dependencies(alone: Path, tmp_path: Path) -> None:
    modules = output(alone, "python", "-c", IMPORT_MODULES, cwd=tmp_path).split()
    assert len(modules) > 20


def test_without_the_extra_the_sandbox_says_what_to_install(alone: Path, tmp_path: Path) -> None:
    done = run(alone, "python", "-c", "import servicing.sandbox", cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(
        r"^ModuleNotFoundError: The sandbox needs \w+: install the extra “sandbox”", done.stderr, re.M
    )


def test_mypy_reads_the_types_of_the_installed_library(alone: Path, tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text("from servicing import Client\n\nreveal_type(Client.loans)\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache", "use.py"]
    shown = output(alone, *command, "--python-executable", str(alone / "python"), cwd=tmp_path)
    assert 'Revealed type is "servicing.loans.LoansResource"' in shown


def test_the_sandbox_needs_no_django(complete: Path, tmp_path: Path) -> None:
    names = installed_files(complete, tmp_path).keys()
    assert {"servicing-client", "pydyf", "werkzeug"} <= names
    assert [name for name in names if "django" in name] == []


def test_the_first_example_runs(complete: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    code, names = first_example(sandbox)
    values = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    assert output(complete, "python", "-c", values + code, cwd=tmp_path) == FIRST_OUTPUT
    assert sandbox.calls[-1].operation == "applications.submit"


def test_the_first_day_prints_the_documented_report(
    complete: Path, open_sandbox: OpenSandbox, tmp_path: Path
) -> None:
    service = open_sandbox(**REPORTED, client_id="desk")
    command = shlex.split(REPORT_COMMAND.replace("https://lender.example", service.url))
    done = run(complete, *command, cwd=tmp_path, SERVICING_SECRET=service.secret)
    assert REPORT_PATTERN.fullmatch(done.stdout), done.stdout + done.stderr


def test_the_example_test_passes(complete: Path, tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(TESTING)
    assert "1 passed" in output(complete, "python", "-m", "pytest", "-q", cwd=tmp_path)


def test_the_sandbox_has_a_command(complete: Path, tmp_path: Path) -> None:
    shown = output(complete, "servicing-sandbox", "--help", cwd=tmp_path)
    assert shown.startswith("usage: servicing-sandbox ")
    assert "A sandbox of the lending service." in shown
    assert all(option in shown for option in ("--seed", "--control"))
