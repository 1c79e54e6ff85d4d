"""Adding a record that exists at the service and is not on file yet."""

import pytest
from django.test import Client as Browser

from portal.audit.models import Entry
from portal.records.models import Account, Borrower, Kind
from servicing.sandbox import Sandbox
from tests import given

OWNER = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
LOAN = "0f0e0d0c-0000-4000-8000-000000000002"
BORROWER = {"kind": "borrower", "uuid": OWNER, "label": "Northwind Baking Co LLC"}


def test_a_borrower_is_added_by_id_and_name(servicer: Browser) -> None:
    answer = servicer.post("/registry/add/", BORROWER)
    assert (answer.status_code, answer["Location"]) == (303, f"/borrowers/{OWNER}/")
    record = Borrower.objects.get()
    assert (record.kind, record.uuid, record.borrower_uuid) == (Kind.BORROWER, OWNER, OWNER)
    assert (record.label, record.answer, record.created_by) == (
        "Northwind Baking Co LLC",
        None,
        "Servicer (servicer)",
    )
    assert "Northwind Baking Co LLC was added." in servicer.get(answer["Location"]).content.decode()


def test_a_loan_is_added_under_its_borrower(servicer: Browser, portal_service: Sandbox) -> None:
    owner = given.borrower(portal_service)
    servicer.post("/registry/add/", {"kind": "loan", "uuid": LOAN, "borrower_uuid": owner.uuid})
    assert Account.objects.get(kind=Kind.LOAN).borrower_uuid == owner.uuid


def test_errors_are_listed_in_field_order(servicer: Browser, portal_service: Sandbox) -> None:
    record = given.loan(portal_service, given.borrower(portal_service))
    page = servicer.post("/registry/add/", {"kind": "loan", "uuid": record.uuid}).content.decode()
    summary = page[page.index("sd-errors") : page.index("</ul>", page.index("sd-errors"))]
    assert summary.index("Already on file") < summary.index("Choose the borrower")


def test_adding_is_recorded_without_calling_the_service(servicer: Browser, portal_service: Sandbox) -> None:
    servicer.post("/registry/add/", BORROWER)
    entry = Entry.objects.get(action="lookup.add")
    assert (entry.actor_name, entry.subject_uuid, entry.subject_label) == (
        "Servicer (servicer)",
        OWNER,
        BORROWER["label"],
    )
    assert portal_service.calls == []


def test_the_id_is_read_from_a_pasted_url(servicer: Browser) -> None:
    servicer.post(
        "/registry/add/", BORROWER | {"uuid": f" https://lender.example/users/{OWNER.upper()}?tab=1 "}
    )
    assert Borrower.objects.get().uuid == OWNER


def test_a_borrower_is_verified_by_its_loan_or_line(servicer: Browser, portal_service: Sandbox) -> None:
    owner, other = (portal_service.world.borrower()["uuid"] for _ in range(2))
    typed = {"kind": "borrower", "label": "Northwind Baking Co LLC"}
    loan, line = portal_service.world.loan(owner)["uuid"], portal_service.world.line(owner)["uuid"]
    answer = servicer.post("/registry/add/", typed | {"uuid": other, "proof": loan})
    assert answer.status_code == 422
    assert "has no loan or line with this ID for this borrower" in answer.content.decode()
    assert not Borrower.objects.exists()
    for proof in (loan, line):
        Borrower.objects.all().delete()
        assert servicer.post("/registry/add/", typed | {"uuid": owner, "proof": proof}).status_code == 303
    assert set(given.uuids_on_file()) == {owner, loan, line}


def test_an_id_from_search_is_filled_in(servicer: Browser) -> None:
    page = servicer.get(f"/registry/add/?kind=loan&uuid={LOAN}").content.decode()
    assert f'value="{LOAN}"' in page
    assert '<option value="loan" selected>' in page


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"label": ""}, "Enter the borrower’s name"),
        ({"kind": "loan"}, "Choose the borrower"),
        ({"kind": "repayment"}, "Choose an option from the list."),
        ({"kind": "", "uuid": ""}, "Choose a type."),
        ({"uuid": "a b"}, "only letters, digits, dashes and underscores"),
        ({"uuid": "../../v1/users"}, "only letters, digits, dashes and underscores"),
        ({"uuid": "x" * 65}, "up to 64"),
        ({"kind": "loan", "borrower_uuid": "a/b"}, "only letters, digits, dashes and underscores"),
        ({"label": "x" * 301}, "Up to 300"),
        ({"label": "Nul \0 byte"}, "unreadable character"),
    ],
)
def test_rejected_input_is_shown_again(servicer: Browser, changed: dict[str, str], sentence: str) -> None:
    answer = servicer.post("/registry/add/", BORROWER | changed)
    assert (answer.status_code, given.uuids_on_file()) == (422, [])
    page = answer.content.decode()
    assert sentence in page
    for text in (BORROWER | changed)["label"], (BORROWER | changed)["uuid"]:
        assert not text.isalnum() or f'value="{text}"' in page


def test_a_borrower_already_on_file_is_linked(servicer: Browser, portal_service: Sandbox) -> None:
    owner = given.borrower(portal_service)
    answer = servicer.post("/registry/add/", BORROWER | {"uuid": owner.uuid})
    assert answer.status_code == 422
    assert f'href="/borrowers/{owner.uuid}/"' in answer.content.decode()


@pytest.mark.parametrize("typed", ["3f2b8c1e", " 3F2B8C1E ", "3f2b8c1e-9d47-4a60"])
def test_a_short_id_of_a_record_on_file_is_linked(servicer: Browser, typed: str) -> None:
    servicer.post("/registry/add/", BORROWER)
    answer = servicer.post("/registry/add/", BORROWER | {"uuid": typed, "label": "Another LLC"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "That’s the short ID of Northwind Baking Co LLC, which is already on file." in page
    assert f'href="/borrowers/{OWNER}/"' in page
    assert given.uuids_on_file() == [OWNER]


def test_a_short_borrower_id_is_rejected(servicer: Browser) -> None:
    servicer.post("/registry/add/", BORROWER)
    answer = servicer.post("/registry/add/", {"kind": "loan", "uuid": LOAN, "borrower_uuid": OWNER[:8]})
    assert f"short ID of Northwind Baking Co LLC. Enter all of it: {OWNER}." in answer.content.decode()
    assert given.uuids_on_file() == [OWNER]


@pytest.mark.parametrize(
    "other", [{"uuid": "3f2b8c1"}, {"uuid": "3f2b8c1f"}, {"kind": "loan", "uuid": OWNER[:8]}]
)
def test_an_id_that_only_resembles_a_short_one_is_added(servicer: Browser, other: dict[str, str]) -> None:
    servicer.post("/registry/add/", BORROWER)
    servicer.post("/registry/add/", BORROWER | {"borrower_uuid": OWNER} | other)
    assert other["uuid"] in given.uuids_on_file()


def test_a_viewer_cannot_add_records(viewer: Browser) -> None:
    assert viewer.post("/registry/add/", BORROWER).status_code == 403
    assert not given.uuids_on_file()
