"""A production install: the portal and the library work without the sandbox's packages."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox

REFUSE_PACKAGES = """
import importlib.metadata, sys
names = sys.argv[1].split(",")
owners = importlib.metadata.packages_distributions()
modules = {module for module in owners if {*names} & {owner.lower() for owner in owners[module]}}
assert len(modules) >= len(names), modules

class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in modules:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refusal())
"""
USE_PORTAL = """
import importlib, pkgutil
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
import portal, servicing
for package in (portal, servicing):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.startswith("servicing.sandbox") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
from django.test import Client
from portal.accounts.models import User
from portal.operations.doctor import documents
call_command("import_ids", sys.argv[2], verbosity=0)
browser = Client(SERVER_NAME="localhost")
browser.force_login(User.objects.create_user("ada", role="supervisor"))
for page in sys.argv[3:]:
    print(page, browser.get(page).status_code)
print("documents", *(finding.grade for finding in documents()))
"""


def names_in(lock: str) -> set[str]:
    return set(re.findall(r"^([\w-]+)==", (BASE_DIR / lock).read_text(), re.MULTILINE))


@pytest.fixture
def packages() -> list[str]:
    """The packages that only the sandbox requires."""
    return sorted(names_in("requirements-demo.txt") - names_in("requirements.txt"))


def run(script: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    system = {
        name: text for name, text in os.environ.items() if name in ("PATH", "HOME") or "COVERAGE" in name
    }
    return subprocess.run(
        [sys.executable, "-c", REFUSE_PACKAGES + script, *words],
        env=system | {"ENV_FILE": os.devnull, "DEBUG": "1"} | environment,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
    )


def test_only_the_sandbox_requires_its_server(packages: list[str]) -> None:
    project = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())

    assert packages == ["markupsafe", "werkzeug"]
    assert project["project"]["optional-dependencies"]["sandbox"] == project["dependency-groups"]["demo"]
    assert {"pydyf", "werkzeug"} <= names_in("requirements-demo.txt") <= names_in("requirements-dev.txt")


def test_the_lock_has_what_the_library_and_the_portal_declare() -> None:
    project = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())
    declared = project["project"]["dependencies"] + project["dependency-groups"]["portal"]

    assert len(declared) > 20
    assert {re.split(r"[^\w-]", line)[0] for line in declared} - names_in("requirements.txt") == set()


@pytest.mark.slow
def test_the_portal_works_without_the_sandboxs_packages(
    sandbox: Sandbox, packages: list[str], tmp_path: Path
) -> None:
    borrower = sandbox.world.borrower()["uuid"]
    loan = sandbox.world.loan(borrower)["uuid"]
    ids = tmp_path / "ids.csv"
    ids.write_text(f"kind,uuid,borrower_uuid,label\nborrower,{borrower},,Acme\nloan,{loan},{borrower},\n")
    pages = ["/", f"/borrowers/{borrower}/", f"/borrowers/{borrower}/loans/{loan}/?refresh=1"]
    done = run(
        USE_PORTAL,
        ",".join(packages),
        str(ids),
        *pages,
        DJANGO_SETTINGS_MODULE="portal.settings",
        DATA_DIR=str(tmp_path),
        SERVICING_URL=sandbox.url,
        SERVICING_CLIENT_ID=sandbox.client_id,
        SERVICING_SECRET=sandbox.secret,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-4:] == [*(f"{page} 200" for page in pages), "documents ok"]
    assert [call.operation for call in sandbox.calls if call.path.endswith(loan)] == ["loans.get"]


@pytest.mark.slow
def test_the_sandbox_names_its_missing_packages(packages: list[str]) -> None:
    done = run("import servicing.sandbox", ",".join(packages))

    assert "The sandbox needs werkzeug: install the extra “sandbox”, or requirements-demo.txt" in done.stderr


def test_collectstatic_reports_an_unwritable_folder(settings: LazySettings, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings.STATIC_ROOT = tmp_path / "file" / "static"
    with pytest.raises(CommandError, match=r"can’t be written to .*/file/static: Not a directory\. Run"):
        call_command("collectstatic", interactive=False, verbosity=0)
