"""Importing a lender's own records, on the page and with a command."""

import json
import os
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.http import HttpResponse
from django.test import Client as Browser
from django.utils import timezone

import servicing
from portal.audit.models import Entry
from portal.jobs.models import Job
from portal.lookup.models import Upload
from portal.records import store
from portal.records.models import Account, Answer, Borrower, Source
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps
from tests import given

HEAD = "kind,uuid,borrower_uuid,label"
IDS = f"{HEAD}\nborrower,b-1,,Northwind Baking Co LLC\nloan,l-1,b-1,Oven\n"


def upload(browser: Browser, **files: str | bytes) -> HttpResponse:
    typed: dict[str, Any] = {"exported_on": timezone.localdate().isoformat()}
    for name, text in files.items():
        if name == "exported_on":
            typed[name] = text
        else:
            data = text.encode() if isinstance(text, str) else text
            typed[name] = SimpleUploadedFile(f"{name}.txt", data)
    response = browser.post("/registry/import/", typed)
    if response.status_code != 303:
        return response
    call_command("work", batch=True)
    pages = [browser.get(item.get_absolute_url()).content for item in Upload.objects.all()]
    return HttpResponse(b" ".join(b"".join(pages).split()))


@pytest.mark.postgres
def test_ids_and_profiles_are_imported(supervisor: Browser, portal_service: Sandbox) -> None:
    profile = dumps(portal_service.world.borrower(first_name="Acme Farms LLC")).decode()
    page = upload(supervisor, ids=IDS, profiles=profile).content.decode()
    assert "2 records imported, 0 lines rejected" in page
    assert "1 record imported, 0 lines rejected" in page
    assert set(Borrower.objects.values_list("name", flat=True)) == {
        "Northwind Baking Co LLC",
        "Acme Farms LLC",
    }


def test_each_import_is_recorded(supervisor: Browser) -> None:
    upload(supervisor, ids=IDS + "ship,x,,\n")
    entry = Entry.objects.get(action="lookup.import_records")
    detail = {"taken": 2, "refused": 1, "started_by": "Supervisor (supervisor)"}
    assert (entry.actor_name, entry.subject_label, entry.detail) == ("system", "ids.txt", detail)
    assert Entry.objects.get(action="lookup.upload").actor_name == "Supervisor (supervisor)"


@pytest.mark.slow
@pytest.mark.postgres
def test_a_worker_imports_and_deletes_the_file(supervisor: Browser) -> None:
    typed = {
        "exported_on": timezone.localdate().isoformat(),
        "ids": SimpleUploadedFile("mine.csv", IDS.encode()),
    }
    page = supervisor.get(supervisor.post("/registry/import/", typed)["Location"]).content.decode()
    assert "Starts when a worker is free" in page
    assert not given.uuids_on_file()
    call_command("work", batch=True)
    assert "2 records imported, 0 lines rejected" in " ".join(
        supervisor.get("/registry/import/").content.decode().split()
    )
    assert Upload.objects.defer(None).get().content is None


def test_a_file_is_encrypted_and_deleted_with_its_job(supervisor: Browser) -> None:
    typed = {"exported_on": timezone.localdate().isoformat()}
    ssn = SimpleUploadedFile("mine.csv", f"{IDS}borrower,b-2,,219-09-9999\n".encode())
    supervisor.post("/registry/import/", typed | {"ids": ssn})
    saved = Upload.objects.defer(None).get()
    assert b"219-09-9999" in saved.file
    assert b"219-09-9999" not in bytes(saved.content or b"")
    assert Job.objects.get(pk=saved.job_id).cancel()
    Upload.objects.forget_old()
    assert Upload.objects.defer(None).get().content is None


@pytest.mark.postgres
def test_rerunning_a_job_keeps_the_import_result(
    supervisor: Browser,
) -> None:
    upload(supervisor, ids=IDS)
    Job.objects.update(state=Job.State.WAITING)
    call_command("work", batch=True)
    assert (Upload.objects.get().taken, Job.objects.get().result) == (2, {"taken": 2, "refused": 0})


def test_one_file_opens_its_import_and_two_open_the_list(supervisor: Browser) -> None:
    day = timezone.localdate().isoformat()
    for names, path in ((["ids"], r"/registry/import/\d+/"), (["ids", "profiles"], "/registry/import/")):
        files = {name: SimpleUploadedFile(f"{name}.txt", IDS.encode()) for name in names}
        answer = supervisor.post("/registry/import/", files | {"exported_on": day})
        assert re.fullmatch(path, answer["Location"])
        page = supervisor.get(answer["Location"]).content.decode()
        assert ("Both imports started" in page) == (len(names) == 2)


def test_only_a_supervisor_sees_the_import_link(supervisor: Browser, viewer: Browser) -> None:
    for address in ("/borrowers/", "/registry/add/"):
        assert 'href="/registry/import/"' in supervisor.get(address).content.decode()
    assert 'href="/registry/import/"' not in viewer.get("/borrowers/").content.decode()


def test_rejected_lines_are_listed_with_reasons(supervisor: Browser) -> None:
    page = upload(supervisor, ids=f"{HEAD}\nship,<x>,,\nborrower,b-1,,Acme, Inc\n").content.decode()
    assert "is not one of borrower" in page
    assert "put quotes around a name that contains a comma" in page
    assert not given.uuids_on_file()


def test_all_rejected_lines_can_be_downloaded(supervisor: Browser) -> None:
    page = upload(supervisor, ids="\n".join([HEAD, *(["ship,x,,"] * 1234)])).content.decode()
    assert "The first 200 of 1,234 rejected lines" in page
    assert page.count("is not one of") == 200
    link = re.search(r'href="(/registry/import/\d+/refused/)"', page)
    assert b"".join(supervisor.get(link[1]).streaming_content).decode().count("is not one of") == 1234


@pytest.mark.postgres
def test_a_malformed_line_does_not_affect_other_lines(supervisor: Browser) -> None:
    lines = ["loan,l-1,b-1,", "", 'loan,"l-2,b-1,', 'loan,l-3,b-1,"Oven, ""large"""']
    page = upload(supervisor, ids="\r\n".join([HEAD, *lines])).content.decode()
    assert "2 records imported, 1 line rejected" in page
    assert [line for line, _ in Upload.objects.get().refused] == [4]
    assert Account.objects.get(uuid="l-3").label == 'Oven, "large"'


def test_a_file_over_the_limit_is_rejected(supervisor: Browser, settings: LazySettings) -> None:
    settings.UPLOAD_LIMIT_MB = 1
    page = upload(supervisor, ids=IDS + "x" * 1024 * 1024).content.decode()
    assert "larger than 1 MB" in page
    assert not given.uuids_on_file()


def test_the_header_ignores_case(supervisor: Browser) -> None:
    page = upload(supervisor, ids=IDS.replace(HEAD, "Kind,UUID,Borrower_UUID,Label")).content.decode()
    assert "2 records imported, 0 lines rejected" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"kind," + b"x" * 200_000, "The first line must be kind,uuid,borrower_uuid,label"),
        (IDS.encode("utf-16"), "this file is in UTF-16: save the file again as “CSV UTF-8”"),
        (IDS.encode("utf-16-be"), "this file is in UTF-16"),
        (b"PK\x03\x04\x14\0\x06\0\n\xff\n", "this file isn’t CSV: export it again"),
        (b"\x89PNG\r\n\x1a\n", "this file isn’t CSV"),
        (IDS.replace(",", ";").encode(), "this file uses semicolons instead"),
        (IDS.replace(",", "\t").encode(), "this file uses tabs instead"),
        (
            f"{HEAD}\nborrower,b-1,,Jos\xe9".encode("cp1252"),
            ">label contains a character that isn’t UTF-8: save",
        ),
        (f"{HEAD}\nborrower,b-1,,Acme\0".encode(), "label contains a NUL character<"),
        (f'{HEAD}\nborrower,b-1,,"'.encode() + b"x" * 200_000, "not readable as CSV: field larger"),
        (f"{HEAD}\nborrower,548-09-8026,,Acme".encode(), "uuid contains nine digits"),
        (f"{HEAD}\nloan,l-1,548098028,".encode(), "borrower_uuid contains nine digits"),
        (f'{HEAD}\nborrower,b-1,,"Acme'.encode(), "not readable as CSV: a quotation mark isn’t closed"),
        (f"{HEAD}\nloan,l-1,,".encode(), "borrower_uuid is missing"),
        (f"{HEAD}\nloan,l/1,b-1,".encode(), "uuid can have only letters"),
        (f"{HEAD}\nborrower,b-1,,{'x' * 301}".encode(), "label is longer than 300 characters<"),
    ],
    ids=[
        "endless line",
        "UTF-16",
        "no mark",
        "spreadsheet",
        "picture",
        "semicolons",
        "tabs",
        "not UTF-8",
        "NUL",
        "endless",
        "SSN",
        "nine digits",
        "open",
        "ownerless",
        "path",
        "long",
    ],
)
def test_an_invalid_id_file_shows_the_reason(supervisor: Browser, data: bytes, reason: str) -> None:
    assert reason in upload(supervisor, ids=data).content.decode()
    assert not given.uuids_on_file()


def test_the_longest_label_is_imported(supervisor: Browser) -> None:
    upload(supervisor, ids=f"{HEAD}\nborrower,b-1,,{'x' * 300}")
    assert given.uuids_on_file() == ["b-1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xfe", "isn’t UTF-8"),
        (b"[]", "not a user object"),
        (b'{"first_name": "Nobody"}', "not a user object"),
        (b'{"uuid": "b-1", "error_code": "E1042"}', "not a user object: it has no field of one"),
        (b'{"uuid": "../x"}', "uuid can have only letters"),
        (b'{"uuid": "547-09-1255"}', "uuid contains nine digits"),
        (b"x" * 1_000_001, "longer than a million"),
        (f"{HEAD}\n".encode(), "Upload CSV IDs in the other field"),
        (b'{"uuid": "B00C63B8-0000-4000-8000-000000000001"}', "must be lower case with dashes"),
        (b'{"uuid": "b", "first_name": "Acme EIN 12-3456789"}', "name contains nine digits"),
        (
            b'{"uuid": "b", "first_name": "Acme", "key_people": [{"uuid": "p", "last_name": "SSN 219-09-9999"}]}',
            "name contains nine digits",
        ),
    ],
    ids=[
        "not UTF-8",
        "list",
        "no uuid",
        "error",
        "path",
        "SSN",
        "long",
        "ids",
        "capitals",
        "EIN",
        "SSN of a person",
    ],
)
def test_an_invalid_profile_shows_the_reason(supervisor: Browser, data: bytes, reason: str) -> None:
    assert reason in upload(supervisor, profiles=data).content.decode()
    assert not given.uuids_on_file()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quoted_line_break_is_part_of_its_label(supervisor: Browser, end: str) -> None:
    rows = [HEAD, f'borrower,b-1,,"Acme{end}borrower,b-9,,Forged"', 'borrower,b-2,,"Say ""hi"""', ""]
    upload(supervisor, ids=end.join(rows).encode())
    labels = {one.uuid: one.label for one in Borrower.objects.all()}
    assert labels == {"b-1": "Acme borrower,b-9,,Forged", "b-2": 'Say "hi"'}


def test_an_open_quotation_mark_hides_no_other_line(supervisor: Browser) -> None:
    rows = [HEAD, 'borrower,b-1,,"Acme', *(f"borrower,b-{n},," for n in range(2, 40))]
    page = upload(supervisor, ids="\n".join(rows).encode()).content.decode()
    assert "not readable as CSV: a quotation mark isn’t closed" in page
    assert {one.uuid for one in Borrower.objects.all()} == {f"b-{n}" for n in range(2, 40)}


def test_a_file_with_another_first_line_is_not_stored(supervisor: Browser) -> None:
    answer = upload(supervisor, ids="uuid,kind\n")
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "IDs (CSV): The first line must be kind,uuid,borrower_uuid,label." in page
    assert "optional" not in page
    assert not Upload.objects.exists()


def test_an_import_leads_to_borrowers_and_to_another_import(supervisor: Browser) -> None:
    page = upload(supervisor, ids=IDS).content.decode()
    assert 'href="/borrowers/">Open borrowers</a>' in page
    assert "Import another file" in page


def test_borrowers_not_on_file_have_short_ids(supervisor: Browser) -> None:
    page = upload(supervisor, ids=f"{HEAD}\nloan,l-1,5fffffff-0000-4000-8000-0000000000ff,\n")
    assert "a borrower that is not on file: 5fffffff." in page.content.decode()


def test_a_byte_order_mark_is_ignored(supervisor: Browser) -> None:
    upload(supervisor, ids=b"\xef\xbb\xbf" + IDS.replace("\n", "\r\n").encode())
    assert len(given.uuids_on_file()) == 2


def test_a_file_without_records_shows_a_message(supervisor: Browser) -> None:
    page = upload(supervisor, ids=f"{HEAD}\n").content.decode()
    assert "Nothing was imported: the file has no records." in page
    assert "All lines were imported" not in page


def test_empty_spreadsheet_rows_are_skipped(supervisor: Browser) -> None:
    page = upload(
        supervisor, ids=f"{IDS.replace(HEAD, HEAD + ',,')},,,\n,,,,,,\n  \n\t\nship,x,,,,\n"
    ).content.decode()
    assert "2 records imported, 1 line rejected" in page


def test_a_canceled_import_explains_what_was_saved(supervisor: Browser) -> None:
    typed = {"exported_on": timezone.localdate().isoformat()}
    address = supervisor.post(
        "/registry/import/", typed | {"ids": SimpleUploadedFile("mine.csv", IDS.encode())}
    )["Location"]
    assert "Imported lines are saved" not in supervisor.get(address).content.decode()
    assert Job.objects.get().cancel()
    assert "Imported lines are saved" in supervisor.get(address).content.decode()


@pytest.mark.slow
def test_repeated_lines_count_as_one_record(supervisor: Browser) -> None:
    """Also across batches, and for another kind with the same ID a record of its own."""
    ids = [f"borrower,b-{number % 1000},,Borrower {number}" for number in range(4_321)]
    assert (
        "1,001 records imported, 0 lines rejected"
        in upload(supervisor, ids="\n".join([HEAD, *ids, "loan,b-1,b-1,"])).content.decode()
    )
    assert (Upload.objects.get().taken, len(given.uuids_on_file())) == (1001, 1001)
    people = [{"uuid": f"p-{number}", "first_name": "Ada", "last_name": "Ives"} for number in range(2)]
    profile = json.dumps({"uuid": "b-1", "first_name": "Harbor", "key_people": people})
    assert (
        "1 record imported, 0 lines rejected"
        in upload(supervisor, profiles="\n".join([profile] * 30)).content.decode()
    )


@pytest.mark.slow
@pytest.mark.postgres
def test_a_large_file_is_imported_completely(supervisor: Browser) -> None:
    lines = [f"borrower,b-{number},,Borrower {number}" for number in range(1100)]
    page = upload(supervisor, ids="\n".join([HEAD, *lines, "ship,x,,"])).content.decode()
    assert "1,100 records imported, 1 line rejected" in page
    assert Borrower.objects.count() == 1100


@pytest.mark.postgres
def test_an_old_export_does_not_replace_a_newer_answer(supervisor: Browser, portal_service: Sandbox) -> None:
    user = portal_service.world.borrower(email="now@northwind.example")
    record = given.save_answer(user)
    old = dumps(user | {"email": "then@northwind.example"}).decode()
    upload(supervisor, profiles=old, exported_on=(timezone.localdate() - timedelta(days=30)).isoformat())
    record.refresh_from_db()
    assert store.last_answer(record, servicing.Borrower).email == "now@northwind.example"
    assert (record.answer.source, record.answer.snapshots.get().source) == (Source.SERVICE, Source.FILE)


def test_importing_an_old_export_twice_saves_one_copy(supervisor: Browser, portal_service: Sandbox) -> None:
    user = portal_service.world.borrower()
    record = given.save_answer(user)
    day = (timezone.localdate() - timedelta(days=30)).isoformat()
    for _ in range(2):
        upload(supervisor, profiles=dumps(user | {"email": "then@northwind.example"}), exported_on=day)
    assert record.answer.snapshots.count() == 1


@pytest.mark.postgres
def test_a_newer_export_becomes_the_saved_copy(supervisor: Browser, portal_service: Sandbox) -> None:
    record = given.save_answer(portal_service.world.borrower())
    a_month_ago = timezone.now() - timedelta(days=30)
    Borrower.objects.update(answer_at=a_month_ago)
    Answer.objects.update(last_at=a_month_ago)
    yesterday = timezone.localdate() - timedelta(days=1)
    upload(
        supervisor,
        profiles=dumps(portal_service.world.user(record.uuid)).decode(),
        exported_on=yesterday.isoformat(),
    )
    record.refresh_from_db()
    assert record.answer.source == Source.FILE
    assert record.answer_at is not None
    assert timezone.localtime(record.answer_at, timezone.get_default_timezone()).date() == yesterday


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({}, "Fix 1 field. Nothing was imported."),
        ({}, "Choose a file of IDs, a file of profiles, or both."),
        ({"ids": ""}, "IDs (CSV): The file is empty."),
        ({"ids": IDS, "exported_on": ""}, "Exported on: Enter a date"),
        ({"ids": IDS, "exported_on": "2999-01-01"}, "is in the future"),
    ],
    ids=["summary", "nothing", "empty", "no day", "tomorrow"],
)
def test_an_invalid_form_is_rejected(supervisor: Browser, typed: dict[str, str], sentence: str) -> None:
    answer = upload(supervisor, **typed)
    assert (answer.status_code, given.uuids_on_file()) == (422, [])
    assert sentence in answer.content.decode()


def test_ids_are_normalized(supervisor: Browser) -> None:
    uuid = "5fffffff-0000-4000-8000-0000000000ff"
    rows = f"Line,{uuid.upper()},b-1,\nline,{{{uuid}}},b-1,Till\nline,line-{uuid},b-1,\n"
    assert (
        "2 records imported, 0 lines rejected" in upload(supervisor, ids=f"{HEAD}\n{rows}").content.decode()
    )
    assert set(Account.objects.values_list("uuid", "label")) == {(uuid, "Till"), (f"line-{uuid}", "")}


@pytest.mark.slow
@pytest.mark.parametrize("between", [0, store.BATCH_SIZE])
def test_a_loan_cannot_be_imported_under_two_borrowers(supervisor: Browser, between: int) -> None:
    others = "".join(f"loan,other-{n},b-1,\n" for n in range(between))
    page = upload(supervisor, ids=f"{HEAD}\nloan,l-1,b-1,\n{others}loan,l-1,b-2,\n").content.decode()
    assert "l-1 is already on file under another borrower" in page
    assert Account.objects.get(uuid="l-1").borrower_uuid == "b-1"


@pytest.mark.slow
@pytest.mark.parametrize("between", [0, store.BATCH_SIZE])
@pytest.mark.postgres
def test_borrowers_not_on_file_after_the_import_are_listed(supervisor: Browser, between: int) -> None:
    Borrower.objects.create(uuid="known-before", archived_at=timezone.now())
    rows = [
        *("loan,l-1,b-8,", "line,l-2,told-later,", "loan,l-3,known-before,", "key_person,p-1,b-8,"),
        *(f"borrower,other-{n},," for n in range(between)),
        *("borrower,told-later,,Acme", "loan,l-4,b-8,", "application,a-1,b-9,", "loan,l-1,b-7,"),
    ]
    page = upload(supervisor, ids="\n".join([HEAD, *rows])).content.decode()
    assert f"{between + 7:,} records imported, 1 line rejected" in page
    assert "4 lines name 2 borrowers that are not on file: b-8, b-9." in page
    again = upload(supervisor, ids=f"{HEAD}\nborrower,b-8,,\nborrower,b-9,,\nloan,l-1,b-8,\n")
    assert again.content.decode().count("not on file") == 1


def test_a_borrower_cannot_have_another_borrower(supervisor: Browser) -> None:
    page = upload(supervisor, ids=f"{HEAD}\nborrower,b-1,b-2,Acme\n").content.decode()
    assert "borrower_uuid of a borrower must be its own uuid or empty" in page


@pytest.mark.slow
def test_a_short_id_of_a_record_on_file_is_rejected(supervisor: Browser) -> None:
    owner, loan = "5fffffff-0000-4000-8000-0000000000ff", "6fffffff-0000-4000-8000-0000000000ff"
    upload(supervisor, ids=f"{HEAD}\nborrower,{owner},,Acme\nloan,{loan},{owner},\n")
    rows = f"loan,6fffffff,{owner},\nborrower,5FFFFFFF,,Acme\nline,l-1,5fffffff,\nline,5fffffff,{owner},\n"
    page = upload(supervisor, ids=f"{HEAD}\n{rows}").content.decode()
    assert "1 record imported, 3 lines rejected" in page
    assert f"6fffffff is the short ID of a loan on file: write {loan}" in page
    assert page.count(f"is the short ID of a borrower on file: write {owner}") == 2
    assert set(given.uuids_on_file()) == {owner, loan, "5fffffff"}


def test_a_servicer_cannot_import(servicer: Browser) -> None:
    assert upload(servicer, ids=IDS).status_code == 403


@pytest.mark.django_db
class TestCommand:
    def run(self, *paths: str | Path, **options: Any) -> str:
        out = StringIO()
        call_command("import_ids", *map(str, paths), **options, stdout=out, stderr=out)
        return out.getvalue()

    def test_both_files_are_imported_and_rejected_lines_listed(
        self, tmp_path: Path, sandbox: Sandbox
    ) -> None:
        (tmp_path / "ids.csv").write_text(IDS + "ship,x,,\n")
        (tmp_path / "users.jsonl").write_bytes(dumps(sandbox.world.borrower()) + b"\n{\n")
        output = self.run(tmp_path / "ids.csv", profiles=tmp_path / "users.jsonl")
        assert "ids.csv: 2 records imported, 1 line rejected." in output
        assert "ids.csv line 4: kind 'ship' is not one of" in output
        assert "users.jsonl line 2: not a user object" in output
        assert set(Entry.objects.values_list("actor_name", "action")) == {("system", "lookup.import_records")}

    def test_borrowers_not_on_file_are_listed(self, tmp_path: Path, sandbox: Sandbox) -> None:
        (tmp_path / "ids.csv").write_text("\n".join([HEAD, *(f"loan,l-{n},b-{n}," for n in range(1200))]))
        (tmp_path / "users.jsonl").write_bytes(dumps(sandbox.world.borrower()))
        output = self.run(tmp_path / "ids.csv", profiles=tmp_path / "users.jsonl")
        first = ", ".join(f"b-{n}" for n in range(10))
        assert f"1,200 lines name 1,200 borrowers that are not on file: {first} and 1,190 more." in output
        assert output.count("not on file") == 1
        (tmp_path / "ids.csv").write_text(f"{HEAD}\nloan,l-1,b-1,\n")
        assert "1 line names a borrower that is not on file: b-1." in self.run(tmp_path / "ids.csv")

    def test_profiles_are_dated_by_their_file(self, tmp_path: Path, sandbox: Sandbox) -> None:
        (tmp_path / "users.jsonl").write_bytes(dumps(sandbox.world.borrower()))
        os.utime(tmp_path / "users.jsonl", (1_700_000_000, 1_700_000_000))
        self.run(profiles=tmp_path / "users.jsonl")
        answer_at = Borrower.objects.values_list("answer_at", flat=True).get()
        assert answer_at is not None
        assert answer_at.timestamp() == 1_700_000_000

    def test_a_file_name_that_is_not_utf8_is_recorded(self, tmp_path: Path) -> None:
        path = tmp_path / os.fsdecode(b"ids-\xff.csv")
        path.write_text(IDS)
        assert "ids-?.csv: 2 records imported" in self.run(path)
        assert Entry.objects.get(action="lookup.import_records").subject_label == "ids-?.csv"

    def test_a_missing_file_is_reported(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="cannot be read"):
            self.run(tmp_path / "nothing.csv")

    def test_a_file_is_required(self) -> None:
        with pytest.raises(CommandError, match="Give a CSV file of IDs"):
            self.run()
