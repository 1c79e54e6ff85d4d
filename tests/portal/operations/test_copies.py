"""Backing up, restoring and upgrading the database, with its audit trail intact."""

import fcntl
import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from html import unescape
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.backends.utils import CursorWrapper
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from portal.accounts.encryption import encrypt
from portal.accounts.models import OutgoingMail
from portal.accounts.roles import Role
from portal.approvals.models import Approval
from portal.audit.chain import append
from portal.audit.models import Actor, Entry
from portal.borrowers.models import Draft
from portal.collections.models import Promise
from portal.home.models import Snooze
from portal.jobs.models import Job, Worker
from portal.operations.labels import NEW_LABELS
from portal.records.figures import copy_day
from portal.records.models import (
    PEOPLE,
    Account,
    Answer,
    Application,
    Borrower,
    KeyPerson,
    NameWord,
    Repayment,
    Snapshot,
)
from portal.records.rows import records_of
from portal.settings import BASE_DIR
from servicing import codec
from servicing.sandbox import Sandbox
from tests import databases, given, released
from tests.conftest import browser_of
from tests.portal.jobs.test_worker import wait_until, worker

RELEASED = Path(released.__file__).parent
RELEASES = sorted(file.name.removesuffix(".dump") for file in RELEASED.glob("*.dump"))
pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]
sqlite_only = pytest.mark.skipif(connection.vendor != "sqlite", reason="as SQLite does it")


def run(command: str, *words: object, **options: object) -> str:
    out = StringIO()
    call_command(command, *words, stdout=out, **options)
    return out.getvalue()


@pytest.fixture
def copy(portal_service: Sandbox, tmp_path: Path) -> Path:
    """Create a backup with one borrower and its audit trail."""
    if connection.vendor == "postgresql" and not shutil.which("pg_dump"):
        pytest.skip("pg_dump is not installed")
    given.borrower(portal_service)
    append(Actor.system("test"), "lookup.add")
    file = tmp_path / "copy"
    assert "Written" in run("backup", file)
    assert Entry.objects.values_list("action", flat=True)[0] == "operations.backup"
    return file


@pytest.mark.slow
def test_a_scheduled_backup_deletes_only_old_backups(copy: Path) -> None:
    folder = copy.parent / "copies"
    with pytest.raises(CommandError, match=r"The folder .* doesn’t exist"):
        run("backup", folder, keep=2)
    folder.mkdir()
    others = [folder / name for name in ("20250101T000000Z.copy.part", "mine.copy", "2025.copy")]
    for file in (*others, folder / "20250101T000000Z.copy", folder / "20250102T000000Z.copy"):
        file.touch()
    output = run("backup", folder, keep=2)
    assert f"Deleted: {folder / '20250101T000000Z.copy'}." in output
    dated = sorted(set(folder.iterdir()) - set(others))
    assert (len(dated), dated[0].name) == (2, "20250102T000000Z.copy")
    assert "The backup can be restored." in run("restore", dated[1], check=True)
    assert all(file.exists() for file in others)
    for number in ("0", "-1"):
        with pytest.raises(CommandError, match="1 or more"):
            run("backup", folder, keep=int(number))
    assert len(list(folder.iterdir())) == 5


@pytest.mark.slow
def test_a_new_backup_survives_a_clock_set_back(copy: Path) -> None:
    folder = copy.parent / "copies"
    folder.mkdir()
    early, late, later = (folder / f"{day}T000000Z.copy" for day in (20250101, 20990101, 20990102))
    for file in (early, late, later):
        file.touch()
    output = run("backup", folder, keep=2)
    assert [file for file in (late, later) if f"Deleted: {file}." in output] == [late, later]
    assert "The backup can be restored." in run("restore", max(folder.iterdir()), check=True)
    assert (early.exists(), len(list(folder.iterdir()))) == (True, 2)


def test_an_unwritable_folder_is_reported() -> None:
    with pytest.raises(CommandError, match="/proc/copy cannot be written: "):
        run("backup", "/proc/copy")
    with pytest.raises(CommandError, match="a folder"):
        run("backup", ".")


def test_a_restore_recovers_records_and_the_trail(copy: Path, portal_service: Sandbox) -> None:
    entries = Entry.objects.exclude(action="operations.backup").count()
    Borrower.objects.all().delete()
    append(Actor.system("test"), "lookup.archive")
    assert "The audit trail is intact: " in run("restore", copy, replace=True)
    assert Borrower.objects.count() == 1
    assert not Entry.objects.filter(action="lookup.archive").exists()
    assert Entry.objects.values_list("action", flat=True)[0] == "operations.restore"
    assert Entry.objects.count() == entries + 1
    with pytest.raises(Exception, match="append-only"), connection.cursor() as cursor:
        cursor.execute("UPDATE audit_entry SET action = 'x'")


def test_each_release_has_a_database_of_both_kinds() -> None:
    released_versions = re.findall(r"(?m)^## \[([\d.]+)\]", (BASE_DIR / "CHANGELOG.md").read_text())
    assert sorted(released_versions) == RELEASES, "Run tests.released.make on SQLite and on PostgreSQL."
    assert all((RELEASED / f"{release}.sqlite3.gz").exists() for release in RELEASES)


@pytest.mark.slow
def test_an_interrupted_move_of_answers_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    move = import_module("portal.records.migrations.0020_move_answers")
    monkeypatch.setattr(move, "BATCH_SIZE", 2)
    at = [timezone.now() - timedelta(days=days) for days in range(5)]
    databases.go_back("registry", "0019")
    try:
        old = old_models("0019_answers")
        records, snapshots = (old.get_model("registry", name).objects for name in ("Record", "Snapshot"))
        told = {
            "answer": '{"uuid": "loan-0"}',
            "answer_at": at[0],
            "answer_first_at": at[1],
            "source": "file",
        }
        asked = {"asked_at": at[2], "failed_at": at[3], "failing_since": at[4], "failure": "Refused: no"}
        loans = [records.create(kind="loan", uuid=f"loan-{number}", **told | asked) for number in range(5)]
        records.create(kind="line", uuid="asked", source="staff", **asked)
        records.create(kind="line", uuid="unknown", source="staff")
        snapshots.create(record=loans[3], last_at=at[4], source="service", digest="d", body="{}")

        def break_off(execute: Any, sql: str, *more: Any) -> Any:
            if "UPDATE" in sql and "said_id" in sql:
                number_moved.append(Answer.objects.count())
                if len(number_moved) == 2:
                    raise KeyboardInterrupt
            return execute(sql, *more)

        number_moved: list[int] = []
        with pytest.raises(KeyboardInterrupt), connection.execute_wrapper(break_off):
            run("migrate", "registry", "0020", verbosity=0)
        assert Answer.objects.count() == 2
    finally:
        run("migrate", "registry", verbosity=0)
    found = {one.uuid: one for one in Account.objects.select_related("answer")}
    assert (len(found), Answer.objects.count(), found["unknown"].answer) == (7, 6, None)
    for one in found.values():
        if one.answer:
            assert [getattr(one.answer, name) for name in asked] == [*asked.values()]
            moved = (one.answer.body, one.answer.last_at, one.answer.first_at, one.answer.source)
            assert moved == (("", None, None, "") if one.uuid == "asked" else (*told.values(),))
            assert (one.answer.kind, one.answer.uuid, one.answer_at) == (
                one.kind,
                one.uuid,
                one.answer.last_at,
            )
    assert [one.answer.uuid for one in Snapshot.objects.all()] == ["loan-3"]


@pytest.mark.slow
def test_an_interrupted_removal_of_the_records_of_lists_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    removal = import_module("portal.records.migrations.0025_remove_records_of_lists")
    monkeypatch.setattr(removal, "BATCH_SIZE", 2)
    at, day = timezone.now(), timezone.localdate()
    databases.go_back("registry", "0024")
    try:
        old = old_models("0024_days_of_answers")
        answers, records = (old.get_model("registry", name).objects for name in ("Answer", "Record"))
        for kind in ("loan", "line"):
            for number in range(3):
                uuid = f"{kind}-{number}"
                for each in (kind, f"{kind}_repayments"):
                    said = answers.create(kind=each, uuid=uuid, body="[]", last_at=at)
                    times = {"answer_at": at, "answer_day": day}
                    records.create(kind=each, uuid=uuid, borrower_uuid="b", said=said, **times)
            records.create(kind=f"{kind}_repayments", uuid=f"{kind}-never-asked", parent_uuid="x")

        def break_off(execute: Any, sql: str, *more: Any) -> Any:
            if sql.startswith("DELETE FROM") and "registry_record" in sql:
                left.append(records.count())
                if len(left) == 2:
                    raise KeyboardInterrupt
            return execute(sql, *more)

        left: list[int] = []
        with pytest.raises(KeyboardInterrupt), connection.execute_wrapper(break_off):
            run("migrate", "registry", "0025", verbosity=0)
        assert records.count() == 12
    finally:
        run("migrate", "registry", verbosity=0)
    assert {one.kind for one in Account.objects.all()} == {"loan", "line"}
    assert Account.objects.filter(answer__body="[]").count() == 6
    found = Answer.objects.values_list("kind", "last_at", "last_on")
    assert {kind for kind, *_ in found} == {"loan", "line", "loan_repayments", "line_repayments"}
    assert {tuple(times) for _, *times in found} == {(at, day)}
    assert len(found) == 12


def test_an_interrupted_move_of_repayments_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    move = import_module("portal.records.migrations.0029_move_repayments")
    monkeypatch.setattr(move, "BATCH_SIZE", 2)
    at, day = [timezone.now() - timedelta(days=days) for days in range(5)], timezone.localdate()
    databases.go_back("registry", "0026")
    try:
        old = old_models("0026_remove_indexes_of_lists")
        answers, records, snapshots = (
            old.get_model("registry", name).objects for name in ("Answer", "Record", "Snapshot")
        )
        records.create(kind="loan", uuid="loan-0")
        for number in range(5):
            uuid = f"p-{number}"
            body = f'{{"ach_id":"ACH-{number}","error_description":"R01 - No funds","uuid":"{uuid}"}}'
            said = answers.create(kind="repayment", uuid=uuid, body=body, last_at=at[0], first_at=at[1])
            record = records.create(
                kind="repayment",
                uuid=uuid,
                said=said,
                answer_at=at[0],
                answer_day=day,
                status="FAILED_AFTER_SUCCESS",
                subtype="RETURNED",
                category="LOAN",
                key_date=day,
                amount="12.5",
                flagged=True,
                bank_account="bank",
                parent_uuid="loan-0" if number else "unknown",
                borrower_uuid="b",
            )
            records.filter(pk=record.pk).update(created_at=at[4], updated_at=at[1])
            status = '{"status":"Succeeded","error_description":7}'
            snapshots.create(answer=said, body=status, last_at=at[2], source="service", digest="d")
            said.body = body[:-1] + ',"status":"FAILED_AFTER_SUCCESS"}'
            said.save()

        def break_off(execute: Any, sql: str, *more: Any) -> Any:
            if sql.startswith("INSERT INTO") and "registry_repaymentstatus" in sql:
                moved.append(Repayment.objects.count())
                if len(moved) == 2:
                    raise KeyboardInterrupt
            return execute(sql, *more)

        moved: list[int] = []
        with pytest.raises(KeyboardInterrupt), connection.execute_wrapper(break_off):
            run("migrate", "registry", "0029", verbosity=0)
        assert (Repayment.objects.count(), records.filter(kind="repayment").count()) == (2, 3)
    finally:
        run("migrate", "registry", verbosity=0)
    assert list(Account.objects.values_list("uuid", flat=True)) == ["loan-0"]
    assert not Answer.objects.exists()
    assert not Snapshot.objects.exists()
    found = list(Repayment.objects.order_by("pk").select_related("account"))
    assert [one.uuid for one in found] == [f"p-{number}" for number in range(5)]
    assert [one.account and one.account.uuid for one in found] == [None, *["loan-0"] * 4]
    for number, one in enumerate(found):
        assert (one.product, one.payment_type, one.amount, one.effective_on) == (
            *("LOAN", "RETURNED", Decimal("12.5")),
            day,
        )
        assert (one.ach_id, one.bank_account, one.code) == (f"ach{number}", "bank", "R01")
        assert (one.first_seen_at, one.updated_at, one.returned_at) == (at[4], at[1], at[1])
        assert (one.last_listed_at, one.last_listed_on, one.has_failed) == (at[0], day, True)
        assert codec.parse(one.body)["uuid"] == one.uuid
        (change,) = one.statuses.all()
        assert (change.at, change.old_last_at, change.old_reason) == (at[1], at[2], "")
        assert (change.old, change.new) == ("SUCCEEDED", "FAILED_AFTER_SUCCESS")


def test_an_interrupted_move_of_key_people_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    move = import_module("portal.records.migrations.0035_move_key_people")
    monkeypatch.setattr(move, "BATCH_SIZE", 2)
    at = timezone.now() - timedelta(days=3)
    same = {
        "borrower_uuid": "b",
        "state": "TX",
        "city": "Austin",
        "phone": "5125550143",
        "email": "a@b.example",
    }
    same |= {
        "answer_at": at,
        "answer_day": at.date(),
        "checked_at": at,
        "created_by": "import",
        "archived_at": at,
    }
    databases.go_back("registry", "0034")
    try:
        old = old_models("0034_key_people")
        records, answers = (old.get_model("registry", name).objects for name in ("Record", "Answer"))
        sums = {"past_due": 310, "flagged": True, "status": "OPEN", "category": "BUSINESS"}
        records.create(kind="borrower", uuid="b", label="Cedar Foods", **sums)
        for number in range(5):
            said = answers.create(kind="key_person", uuid=f"p-{number}", body="{}", last_at=at)
            texts = {"name_key": "anaortiz", "search_text": "\nana ortiz\n", "category": "OWNER"}
            label = {"label": "Ana Ortiz", "said": said}
            records.create(kind="key_person", uuid=f"p-{number}", **same, **texts, **label)
        records.create(kind="key_person", uuid="known-by-id")
        records.update(created_at=at, updated_at=at)
        keys = dict(records.filter(kind="key_person").values_list("uuid", "pk"))

        def break_off(execute: Any, sql: str, *more: Any) -> Any:
            if sql.startswith("DELETE FROM") and "registry_record" in sql:
                left.append(records.count())
                if len(left) == 2:
                    raise KeyboardInterrupt
            return execute(sql, *more)

        left: list[int] = []
        with pytest.raises(KeyboardInterrupt), connection.execute_wrapper(break_off):
            run("migrate", "registry", "0035", verbosity=0)
        assert (records.count(), KeyPerson.objects.count()) == (5, 2)
    finally:
        run("migrate", "registry", verbosity=0)
    assert not Account.objects.exists()
    (borrower,) = Borrower.objects.all()
    assert (borrower.uuid, borrower.name, borrower.past_due, borrower.created_at) == (
        "b",
        "Cedar Foods",
        310,
        at,
    )
    assert (borrower.is_past_due, borrower.decision, borrower.type) == (True, "OPEN", "BUSINESS")
    people = {one.uuid: one for one in KeyPerson.objects.select_related("answer")}
    assert {uuid: one.pk for uuid, one in people.items()} == keys
    assert {(one.created_at, one.updated_at) for one in people.values()} == {(at, at)}
    unknown = people.pop("known-by-id")
    assert (unknown.name, unknown.folded_name, unknown.answer, str(unknown)) == ("", "", None, "known-by-id")
    for uuid, one in people.items():
        assert one.answer
        assert one.answer.uuid == uuid
        assert {name: getattr(one, name) for name in same} == same
        texts = (one.name, one.folded_name, one.title, one.search_text)
        assert texts == ("Ana Ortiz", "anaortiz", "OWNER", "\nana ortiz\n")
    assert KeyPerson.objects.create(uuid="new").pk > max(keys.values())


def test_an_interrupted_move_of_borrowers_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    move = import_module("portal.records.migrations.0038_move_borrowers")
    monkeypatch.setattr(move, "BATCH_SIZE", 2)
    at, day = timezone.now() - timedelta(days=3), timezone.localdate()
    same = dict.fromkeys(("answer_at", "checked_at", "created_at", "updated_at", "archived_at"), at)
    same |= {
        "answer_day": day,
        "created_by": "import",
        "state": "TX",
        "city": "Austin",
        "phone": "5125550143",
    }
    same |= {"email": "a@b.example", "search_text": "\ncedar foods\n", "days_past_due": 12}
    same |= {"past_due": Decimal("310.5"), "past_due_rank": Decimal("310.5")}
    renamed = {
        "label": ("name", "Cedar Foods"),
        "name_key": ("folded_name", "cedarfoods"),
        "category": ("type", "BUSINESS"),
        "subtype": ("legal_form", "CORPORATION"),
        "flagged": ("is_past_due", True),
        "oldest_unpaid_due": ("oldest_unpaid_on", day),
        "status": ("decision", "OPEN"),
    }
    databases.go_back("registry", "0037")
    try:
        old = old_models("0037_borrowers")
        records, answers = (old.get_model("registry", name).objects for name in ("Record", "Answer"))
        records.create(kind="loan", uuid="loan-0", borrower_uuid="b-0")
        before = {name: value for name, (_, value) in renamed.items()}
        for number in range(5):
            said = answers.create(kind="borrower", uuid=f"b-{number}", body="{}", last_at=at)
            one = records.create(kind="borrower", uuid=f"b-{number}", said=said, **before)
            records.filter(pk=one.pk).update(**same)
        records.create(kind="borrower", uuid="known-by-id")
        keys = dict(records.filter(kind="borrower").values_list("uuid", "pk"))

        def break_off(execute: Any, sql: str, *more: Any) -> Any:
            if sql.startswith("DELETE FROM") and "registry_record" in sql:
                left.append(records.count())
                if len(left) == 2:
                    raise KeyboardInterrupt
            return execute(sql, *more)

        left: list[int] = []
        with pytest.raises(KeyboardInterrupt), connection.execute_wrapper(break_off):
            run("migrate", "registry", "0038", verbosity=0)
        assert (records.count(), Borrower.objects.count()) == (5, 2)
    finally:
        run("migrate", "registry", verbosity=0)
    assert [one.uuid for one in Account.objects.all()] == ["loan-0"]
    borrowers = {one.uuid: one for one in Borrower.objects.select_related("answer")}
    assert {uuid: one.pk for uuid, one in borrowers.items()} == keys
    unknown = borrowers.pop("known-by-id")
    assert (unknown.name, unknown.folded_name, unknown.answer, str(unknown)) == ("", "", None, "known-by-id")
    expected = same | dict(renamed.values())
    for uuid, one in borrowers.items():
        assert one.answer
        assert one.answer.uuid == uuid
        assert {name: getattr(one, name) for name in expected} == expected
    assert Borrower.objects.create(uuid="new").pk > max(keys.values())


def test_an_interrupted_move_of_applications_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    move = import_module("portal.records.migrations.0043_move_applications")
    monkeypatch.setattr(move, "BATCH_SIZE", 2)
    at = timezone.now() - timedelta(days=3)
    times = ("answer_at", "checked_at", "created_at", "updated_at", "archived_at", "submitted_at")
    same = dict.fromkeys(times, at) | {"answer_day": at.date(), "created_by": "import"}
    same |= {"borrower_uuid": "b", "owner_confirmed": True, "label": "Oven", "search_text": "\noven\n"}
    same |= {"amount": Decimal("12345678901.1234")}
    renamed = {"category": ("product", "LOAN"), "status": ("decision", "APPROVED")}
    databases.go_back("registry", "0042")
    try:
        old = old_models("0042_applications")
        records, answers = (old.get_model("registry", name).objects for name in ("Record", "Answer"))
        before = {name: value for name, (_, value) in renamed.items()}
        records.create(kind="loan", uuid="a-0", borrower_uuid="b", **before)
        for number in range(5):
            said = answers.create(kind="application", uuid=f"a-{number}", body="{}", last_at=at)
            one = records.create(kind="application", uuid=f"a-{number}", said=said, **before)
            records.filter(pk=one.pk).update(**same)
        records.create(kind="application", uuid="known-by-id")
        keys = dict(records.filter(kind="application").values_list("uuid", "pk"))

        def break_off(execute: Any, sql: str, *more: Any) -> Any:
            if sql.startswith("DELETE FROM") and "registry_record" in sql:
                left.append(records.count())
                if len(left) == 2:
                    raise KeyboardInterrupt
            return execute(sql, *more)

        left: list[int] = []
        with pytest.raises(KeyboardInterrupt), connection.execute_wrapper(break_off):
            run("migrate", "registry", "0043", verbosity=0)
        assert (records.count(), Application.objects.count()) == (5, 2)
    finally:
        run("migrate", "registry", verbosity=0)
    (loan,) = Account.objects.all()
    assert (loan.kind, loan.uuid, loan.product, loan.status) == ("loan", "a-0", "LOAN", "APPROVED")
    applications = {one.uuid: one for one in Application.objects.select_related("answer")}
    assert {uuid: one.pk for uuid, one in applications.items()} == keys
    unknown = applications.pop("known-by-id")
    assert (unknown.label, unknown.decision, unknown.answer, str(unknown)) == ("", "", None, "known-by-id")
    expected = same | dict(renamed.values())
    for uuid, one in applications.items():
        assert one.answer
        assert one.answer.uuid == uuid
        assert {name: getattr(one, name) for name in expected} == expected
    assert Application.objects.create(uuid="new").pk > max(keys.values())


def test_values_of_version_1_get_the_spelling_of_the_interface() -> None:
    respelling = import_module("portal.records.migrations.0012_known_spelling")
    databases.go_back("registry", "0031")
    try:
        old = old_models("0031_remove_columns_of_repayments")
        records = old.get_model("registry", "Record").objects
        records.create(kind="borrower", uuid="b", category="Business", subtype="limited_liability_company")
        spellings = [("Loc", "Active"), ("LOC", "ACTIVE"), ("Odd", "In review")]
        for number, (product, status) in enumerate(spellings):
            records.create(kind="loan", uuid=f"loan-{number}", category=product, status=status)
        respelling.respell(old, None)
    finally:
        run("migrate", "registry", verbosity=0)
    borrower = Borrower.objects.get()
    assert (borrower.type, borrower.legal_form) == ("BUSINESS", "LIMITED_LIABILITY_COMPANY")
    columns = Account.objects.order_by("uuid").values_list("product", "status")
    assert list(columns) == [("LOC", "ACTIVE")] * 2 + [("Odd", "In review")]


def test_texts_of_version_1_are_found_after_the_upgrade() -> None:
    """It had a mark around each line of a text, two before a name, and texts of all kinds."""
    texts = {
        "borrower": ("ǂǂcedar foodsǂ\nǂaustinǂ\nǂtexasǂ\n", "\ncedar foods\naustin\ntexas\ntx\n"),
        "key_person": ("ǂǂana ortizǂ\n", "\nana ortiz\ntx\n"),
        "loan": ("ǂloanǂ\nǂactiveǂ\nǂext2207ǂ\n\nǂǂovenǂ\n", "\noven\next2207\n"),
        "application": ("ǂloanǂ\n", ""),
    }
    labels = {"borrower": "Cedar Foods", "key_person": "Ana Ortiz", "loan": "Oven"}
    databases.go_back("registry", "0031")
    try:
        records = old_models("0031_remove_columns_of_repayments").get_model("registry", "Record").objects
        for kind, (text, _) in texts.items():
            values = {"search_text": text, "state": "TX" if kind in PEOPLE else "", "category": "LOAN"}
            records.create(kind=kind, uuid=kind, label=labels.get(kind, ""), status="ACTIVE", **values)
        for name in ("0032", "0031"):
            run("migrate", "registry", name, verbosity=0)
    finally:
        run("migrate", "registry", verbosity=0)
    assert {kind: records_of(kind).get().search_text for kind in texts} == {
        kind: text for kind, (_, text) in texts.items()
    }
    assert [one.folded_name for one in (Borrower.objects.get(), KeyPerson.objects.get())] == [
        "cedarfoods",
        "anaortiz",
    ]
    assert {word.word for word in NameWord.objects.all()} == {"cedar", "foods", "ortiz"}


def old_models(migration: str) -> Any:
    """The models of the registry as they were after this migration."""
    return MigrationExecutor(connection).loader.project_state([("registry", migration)]).apps


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_a_database_of_each_release_can_be_upgraded(
    release: str, tmp_path: Path, portal_service: Sandbox, settings: LazySettings
) -> None:
    settings.HAS_MAIL = True
    lacks_rows = connection.vendor == "sqlite" and release < "2"  # Rows that the file lacks are added first.

    file = tmp_path / "released"
    if connection.vendor == "sqlite":
        file.write_bytes(gzip.decompress((RELEASED / f"{release}.sqlite3.gz").read_bytes()))
        if lacks_rows:
            with closing(sqlite3.connect(file)) as old:
                add_application(old)
                add_unfinished_work(old, release)
    else:
        file.write_bytes((RELEASED / f"{release}.dump").read_bytes())
    assert "The audit trail is intact: " in run("restore", file, replace=True)
    owner = Borrower.objects.exclude(answer=None).get(name__startswith="Harbor")
    loan = Account.objects.get(kind="loan")
    assert KeyPerson.objects.exclude(answer=None).filter(borrower_uuid=owner.uuid).exists()
    approval, draft = Approval.objects.get(), Draft.objects.get()
    servicer, supervisor = browser_of(Role.SERVICER), browser_of(Role.SUPERVISOR)
    promise = Promise.objects.first()
    assert (promise is None) == (release == "0.9.0")  # Version 0.9.0 had no promises.
    for browser, address, word in [
        (servicer, "/borrowers/?q=neil", "O'Neil & Daughters, LLC"),
        (servicer, owner.get_absolute_url(), "Asked for a new schedule."),
        (servicer, loan.get_absolute_url(), loan.uuid),
        (servicer, f"/collections/contacts/loan/{loan.uuid}/", "Pays by wire." if promise else "No contacts"),
        (servicer, f"/borrowers/new/{draft.pk}/business/", "Lindqvist Bakery"),
        (supervisor, approval.get_absolute_url(), "Articles of amendment"),
        (supervisor, "/status/", "Portal version"),
    ]:
        page = browser.get(address)
        assert page.status_code == 200
        assert word in unescape(page.content.decode())
    if lacks_rows:
        application = Application.objects.get()
        assert (application.product, application.decision) == ("LINE_OF_CREDIT", "APPROVED")
        exported = servicer.get("/applications/export/?all=1&q=51aa7f20").getvalue().decode()
        added = application.created_at.isoformat(timespec="seconds")
        assert (
            f'"application-1","{owner}","{owner.uuid}","LINE_OF_CREDIT","40000.50","{copy_day(application)}",'
            f'"APPROVED","1","14.92","2026-11-20 10:31:07 PST","{added}",""\r\n' in exported
        )
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM borrowers_draft")
        assert "Lindqvist" not in str(cursor.fetchall())
    unfinished = {job.name for job in Job.objects.all() if job.is_open}
    assert "lookup.refresh_portfolio" in unfinished
    call_command("work", batch=True)
    jobs = Job.objects.filter(name__in=unfinished)
    assert [(job.name, job.words) for job in jobs if job.state != "done"] == []
    if lacks_rows and release != "0.9.0":
        assert {"accounts.send_mail", "documents.remove"} <= unfinished
        assert Snooze.objects.get().key == "checklist:b-1"
        assert OutgoingMail.objects.get().state == "sent"
        assert [(one.subject, one.to) for one in mail.outbox] == [("Promises due", ["maya@desk.example"])]


@pytest.mark.slow
@sqlite_only
def test_a_plain_migrate_of_version_1_stops(tmp_path: Path) -> None:
    file = tmp_path / "portal.sqlite3"
    file.write_bytes(gzip.decompress((RELEASED / "1.0.0.sqlite3.gz").read_bytes()))
    environment = os.environ | {"DEBUG": "1", "ENV_FILE": "/dev/null", "DATABASE_URL": f"sqlite:///{file}"}

    def manage(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=BASE_DIR,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    refused = manage("migrate", "--verbosity", "0")
    assert refused.returncode == 1
    assert "This database is of version 1.0. Type: manage.py upgrade" in refused.stderr
    for _ in range(2):
        done = manage("upgrade", "--verbosity", "0")
        assert (done.returncode, done.stderr) == (0, "")
    with closing(sqlite3.connect(file)) as database:
        labels = {label for (label,) in database.execute("SELECT app_label FROM django_content_type")}
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert not labels & NEW_LABELS.keys()
    assert [name for name in tables if name.startswith(tuple(f"{label}_" for label in NEW_LABELS))] == []


def add_application(old: sqlite3.Connection) -> None:
    """Add an application for a line of credit, which the released databases lack."""
    columns = [row[1] for row in old.execute("PRAGMA table_info(registry_record)")]
    loan = old.execute("SELECT * FROM registry_record WHERE kind = 'loan'").fetchone()
    answer = {
        "uuid": "application-1",
        "product": "LINE_OF_CREDIT",
        "amount": 40000.5,
        "created_at": "2026-11-20 10:31:07 PST",
        "offers": [{"uuid": "51aa7f20-0000-4000-8000-000000000001", "apr": 14.92}],
        "status": {"decision": "APPROVED"},
    }
    row = dict(zip(columns, loan, strict=True)) | {"id": None, "kind": "application", "uuid": answer["uuid"]}
    row |= {"category": answer["product"], "status": "APPROVED", "amount": 40000.5, "state": ""}
    row |= {"search_text": f"ǂ{answer['offers'][0]['uuid']}ǂ\n", "answer": json.dumps(answer)}
    row |= dict.fromkeys(["past_due", "key_date", "rate", "due_amount", "remaining", "principal"])
    marks = ", ".join("?" * len(columns))
    names = ", ".join(columns)
    old.execute(f"INSERT INTO registry_record ({names}) VALUES ({marks})", [row[name] for name in columns])
    old.commit()


def add_unfinished_work(old: sqlite3.Connection, release: str) -> None:
    """Add a message that waits, a job of a worker that is gone, one under an old name, and a snoozed item."""
    if release == "0.9.0":  # Version 0.9.0 sent no mail.
        return
    sealed = encrypt(json.dumps(["Promises due", "One promise is due today."]))
    old.execute(
        "INSERT INTO accounts_outgoingmail (key, address, sealed, state, attempts, problem, created_at, due_at) "
        "VALUES ('promises:1', 'maya@desk.example', ?, 'waiting', 0, '', ?, ?)",
        (sealed, *[f"{timezone.now():%Y-%m-%d %H:%M:%S}"] * 2),
    )
    columns = [row[1] for row in old.execute("PRAGMA table_info(jobs_job)")]
    job = dict(zip(columns, old.execute("SELECT * FROM jobs_job").fetchone(), strict=True))
    job |= {
        "id": uuid4().hex,
        "name": "accounts.send_mail",
        "key": "accounts.send_mail",
        "label": "Send email",
    }
    job |= {"arguments": "{}", "state": "running", "attempts": 1, "worker": "gone", "task_id": str(uuid4())}
    job["lease_until"] = job["started_at"] = job["created_at"]
    marks = ", ".join("?" * len(columns))
    removal = {"id": uuid4().hex, "name": "summaries.remove", "key": "summaries.remove", "state": "waiting"}
    for row in (job, job | removal):
        old.execute(
            f"INSERT INTO jobs_job ({', '.join(columns)}) VALUES ({marks})", [row[name] for name in columns]
        )
    old.execute(
        "INSERT INTO home_snooze (key, label, until, reason, by_id, by_name, at) "
        "VALUES ('handover:b-1', 'Harbor Bakery', '2030-01-01', 'On vacation', 1, 'Maya', '2026-11-01 12:00:00')"
    )
    old.commit()


def test_an_upgrade_rejects_migrations_of_another_version() -> None:
    databases.run(
        "DELETE FROM django_migrations WHERE app = 'notes'",
        "INSERT INTO django_migrations (app, name, applied) VALUES ('notes', '0007_other', CURRENT_TIMESTAMP)",
    )
    with pytest.raises(
        CommandError,
        match=r"This database belongs to another version of the portal: it has notes\.0007_other\.",
    ):
        run("upgrade", verbosity=0)


@pytest.mark.slow
def test_an_interrupted_upgrade_can_be_repeated() -> None:
    databases.go_back("registry", "0014")
    databases.run(
        "DELETE FROM django_migrations WHERE app = 'registry' AND name >= '0008'",
        "DROP TABLE registry_sharedcount",
        "DROP INDEX applications_by_submitted_at",
        "ALTER TABLE registry_record DROP COLUMN submitted_at",
        "DROP INDEX loans_by_amount",
    )
    run("upgrade", verbosity=0)
    with connection.cursor() as cursor:
        assert "account_by_amount" in connection.introspection.get_constraints(cursor, Account._meta.db_table)


def test_a_backup_is_private_and_overwrites_no_file(copy: Path) -> None:
    assert copy.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match="File exists"):
        run("backup", copy)
    with pytest.raises(CommandError, match=r"The folder .* doesn’t exist"):
        run("backup", copy.parent / "nowhere" / "copy")
    assert [file.name for file in copy.parent.iterdir()] == ["copy"]


def test_a_mistaken_restore_changes_nothing(copy: Path) -> None:
    append(Actor.system("test"), "lookup.archive")
    with pytest.raises(CommandError, match="Add --replace"):
        run("restore", copy)
    with pytest.raises(CommandError, match="doesn’t exist"):
        run("restore", copy.parent / "another", replace=True)
    other, whole = copy.parent / "other", copy.read_bytes()
    for content in (b"this is no database" * 100, whole[: len(whole) - 5_000]):
        other.write_bytes(content)
        with pytest.raises(CommandError):
            run("restore", other, replace=True)
    assert Entry.objects.filter(action="lookup.archive").exists()


@pytest.mark.slow
def test_checking_a_backup_changes_nothing(copy: Path, portal_service: Sandbox) -> None:
    append(Actor.system("test"), "accounts.sign_in")
    before, folder = Entry.objects.count(), set(copy.parent.iterdir())
    with connection.cursor() as cursor:
        databases_before = list_databases(cursor)
    output = run("restore", copy, check=True)
    assert output.startswith("The ")
    assert output.endswith("The backup can be restored. Nothing was changed.\n")
    assert (Entry.objects.count(), set(copy.parent.iterdir())) == (before, folder)
    with connection.cursor() as cursor:
        wait_until(
            lambda: list_databases(cursor) <= databases_before
        )  # Another test may be checking a backup too.


@pytest.mark.slow
def test_a_damaged_backup_fails_the_check(copy: Path) -> None:
    damaged = copy.with_name("damaged")
    damaged.write_bytes(copy.read_bytes()[:5000])
    with pytest.raises(
        CommandError,
        match=r"can’t be restored\. \S+damaged is(n’t| a damaged) |can’t be restored\. pg_restore",
    ):
        run("restore", damaged, check=True)
    with pytest.raises(CommandError, match="doesn’t exist"):
        run("restore", copy.with_name("nowhere"), check=True)


def list_databases(cursor: CursorWrapper) -> set[str]:
    """Return the folders beside SQLite's file, or the databases that PostgreSQL has for checks."""
    if connection.vendor == "sqlite":
        beside = Path(connection.settings_dict["NAME"]).parent
        return {one.name for one in beside.iterdir() if one.is_dir()}
    cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, 'check_')")
    return {name for (name,) in cursor.fetchall()}


@pytest.mark.slow
def test_a_database_in_use_is_not_replaced(copy: Path, portal_service: Sandbox) -> None:
    append(Actor.system("test"), "lookup.archive")
    with worker(portal_service):
        wait_until(Worker.objects.exists)
        connections.close_all()
        with pytest.raises(CommandError, match="Web or worker processes use the database"):
            run("restore", copy, replace=True)
        assert Entry.objects.filter(action="lookup.archive").exists()
    assert "The audit trail is intact" in run("restore", copy, replace=True)


@pytest.mark.slow
@sqlite_only
def test_a_database_in_use_is_replaced_on_request(copy: Path, portal_service: Sandbox) -> None:
    with open(f"{connection.settings_dict['NAME']}.in-use", "w") as mark:
        fcntl.flock(mark, fcntl.LOCK_SH)
        assert "The audit trail is intact" in run("restore", copy, replace=True, while_in_use=True)


@pytest.fixture
def new_database(tmp_path: Path) -> Iterator[str]:
    """Create an empty database and yield its URL."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{tmp_path / 'new.sqlite3'}"
        return
    server, name = databases.database_url(), f"new_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as administrator:
        administrator.execute(f"CREATE DATABASE {name}".encode())
        yield f"{server.rpartition('/')[0]}/{name}"
        administrator.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.slow
def test_two_concurrent_upgrades_succeed(new_database: str) -> None:
    environment = os.environ | {"DATABASE_URL": new_database}
    command = [sys.executable, "manage.py", "upgrade", "--verbosity", "0"]
    both = [
        subprocess.Popen(command, env=environment, cwd=BASE_DIR, stderr=subprocess.PIPE, text=True)
        for _ in "12"
    ]
    assert [(one.communicate(timeout=120)[1], one.returncode) for one in both] == [("", 0), ("", 0)]
