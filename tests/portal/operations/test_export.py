"""A list is written to a file on a schedule: what the person would download, recorded as theirs."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client as Browser
from django.urls import reverse

from portal.accounts.models import User
from portal.audit.models import Entry
from portal.lists.models import SavedView
from servicing.sandbox import Sandbox
from tests import given

pytestmark = pytest.mark.django_db


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
def test_the_file_is_what_the_person_downloads(
    viewer: Browser, person: User, tmp_path: Path, form: str
) -> None:
    file = tmp_path / "loans"
    view = SavedView.objects.create(list="loans:index", name="Mine", query="q=nobody", owner=person)
    for query, options in (("", {}), (view.query, {"view": "Mine"})):
        export(list="loans", format=form, username=person.username, output=file, **options)
        downloaded = viewer.get(f"{reverse('loans:export')}?all=1&format={form}&{query}")
        assert file.read_bytes() == b"".join(downloaded.streaming_content)  # type: ignore[attr-defined]
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_it_is_recorded_as_the_persons(person: User, tmp_path: Path) -> None:
    export(list="loans", format="xlsx", username=person.username, output=tmp_path / "loans.xlsx")
    entry = Entry.objects.latest("id")
    assert (entry.action, entry.actor_id, entry.ip) == ("loans.export", person.pk, None)
    assert (entry.user_agent, entry.detail["rows"]) == ("manage.py export", 2)


def test_what_does_not_exist_is_said(person: User, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No active account is called nobody"):
        export(list="loans", username="nobody")
    other = User.objects.create_user("other")
    SavedView.objects.create(list="loans:index", name="Theirs", owner=other)
    with pytest.raises(CommandError, match="has no view called Theirs"):
        export(list="loans", view="Theirs", username=person.username)
    with pytest.raises(CommandError, match="cannot be written"):
        export(list="loans", username=person.username, output=tmp_path / "none" / "loans.csv")
