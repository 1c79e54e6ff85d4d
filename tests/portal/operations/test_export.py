"""The export command: it writes the file that the person would download, and records it."""

import csv
import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client as Browser
from django.urls import reverse

from portal.accounts.models import User
from portal.audit.models import Entry
from portal.operations.management.commands.export import LISTS
from portal.settings import BASE_DIR
from portal.tables.models import SavedView
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.spreadsheets import cells_of

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


@pytest.fixture
def person(viewer: Browser, portal_service: Sandbox) -> User:
    borrower = given.borrower(portal_service)
    for amount in ("12000.00", "500.00"):
        given.loan(portal_service, borrower, amount=amount)
    viewer.get("/")
    return User.objects.get(username="viewer")


def export(**options: object) -> str:
    out = StringIO()
    call_command("export", stdout=out, **options)
    return out.getvalue()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_the_file_matches_the_download(viewer: Browser, person: User, tmp_path: Path, form: str) -> None:
    file = tmp_path / "loans"
    view = SavedView.objects.create(list="loans:index", name="Mine", query="q=nobody", owner=person)
    for query, options in (("", {}), (view.query, {"view": "Mine"})):
        export(list="loans", format=form, username=person.username, output=file, **options)
        downloaded = viewer.get(f"{reverse('loans:export')}?all=1&format={form}&{query}")
        assert file.read_bytes() == b"".join(downloaded.streaming_content)  # type: ignore[attr-defined]
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_spreadsheet_matches_the_download(viewer: Browser, person: User, tmp_path: Path) -> None:
    export(list="loans", format="xlsx", username=person.username, output=tmp_path / "loans.xlsx")
    downloaded = viewer.get(f"{reverse('loans:export')}?all=1&format=xlsx")
    cells = cells_of(b"".join(downloaded.streaming_content))  # type: ignore[attr-defined]
    assert len(cells) == 3
    assert cells_of((tmp_path / "loans.xlsx").read_bytes()) == cells


@pytest.mark.parametrize("name", LISTS)
def test_columns_match_the_guide(viewer: Browser, person: User, tmp_path: Path, name: str) -> None:
    guide = (BASE_DIR / "docker/README.md").read_text()
    (documented,) = re.findall(rf"^\| `{name}` \| (.*) \|$", guide, re.MULTILINE)

    def read_header() -> str:
        export(list=name, username=person.username, output=tmp_path / "file")
        with (tmp_path / "file").open(encoding="utf-8-sig", newline="") as file:
            return ", ".join(next(csv.reader(file)))

    assert read_header() == re.sub(r", \*[^*]+\*", "", documented)
    page = viewer.get(reverse(f"{name}:index")).content.decode()
    if chosen := re.findall(r'name="column"\s+value="(\w+)"', page):
        viewer.post(reverse(f"{name}:index"), {"column": chosen})
        assert read_header() == documented.replace("*", "")


def test_an_export_is_recorded_for_the_person(person: User, tmp_path: Path) -> None:
    export(list="loans", format="xlsx", username=person.username, output=tmp_path / "loans.xlsx")
    entry = Entry.objects.latest("id")
    assert (entry.action, entry.actor_id, entry.ip) == ("loans.export", person.pk, None)
    assert (entry.user_agent, entry.detail["rows"]) == ("manage.py export", 2)


def test_unknown_names_and_paths_are_rejected(person: User, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No active account is named nobody"):
        export(list="loans", username="nobody")
    other = User.objects.create_user("other")
    SavedView.objects.create(list="loans:index", name="Theirs", owner=other)
    with pytest.raises(CommandError, match="has no view named Theirs"):
        export(list="loans", view="Theirs", username=person.username)
    with pytest.raises(CommandError, match="cannot be written"):
        export(list="loans", username=person.username, output=tmp_path / "none" / "loans.csv")
    with pytest.raises(CommandError, match="a folder"):
        export(list="loans", username=person.username, output=Path("."))
