"""Creating and updating borrowers and key people, over HTTP to the sandbox."""

import base64
import gzip
import json
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from servicing import (
    UNSET,
    Address,
    Borrower,
    Client,
    ConfigurationError,
    InvalidInput,
    NewKeyPerson,
    NotFound,
    Rejected,
)
from servicing.rules import today_in
from servicing.sandbox import Sandbox

EIN = "12-3456789"
SSN = "123-45-6789"
DOB = ("1980/", "1980-", "1980, ")
"""The year with its separator: a memory address in a `repr` may contain 1980."""
REPORT = b'{"accounts": []}'


@pytest.fixture
def owner(address: Address) -> NewKeyPerson:
    return NewKeyPerson(
        first_name="Ana",
        last_name="O'Neil",
        title="owner",
        citizenship="US",
        email="ana@example.com",
        phone="+1 (512) 472-1234",
        address=address,
        dob=date(1980, 2, 29),
        ssn=SSN,
    )


@pytest.fixture
def business(address: Address, owner: NewKeyPerson) -> dict[str, Any]:
    """The arguments that create a business."""
    return {
        "first_name": "O'Neil & Daughters, LLC",
        "email": "office@example.com",
        "entity": "LIMITED_LIABILITY_COMPANY",
        "ein": EIN,
        "phone": "512.472.1234",
        "address": address,
        "key_people": [owner],
    }


def last_body(sandbox: Sandbox) -> Any:
    return json.loads(sandbox.calls[-1].body)


def collect_problems(call: Any, *args: Any, **kwargs: Any) -> dict[str, list[str]]:
    with pytest.raises(InvalidInput) as caught:
        call(*args, **kwargs)
    return caught.value.problems


# Creating


def test_a_business_is_created_with_its_key_people(
    service_client: Client, sandbox: Sandbox, business: dict[str, Any], address: Address
) -> None:
    created = service_client.borrowers.create_commercial(**business, incorporated_on=date(2014, 6, 2))

    assert created.is_business
    assert (created.first_name, created.phone) == ("O'Neil & Daughters, LLC", "5124721234")
    assert (created.start_date, created.address) == (date(2014, 6, 2), address)
    assert [person.last_name for person in created.key_people] == ["O'Neil"]
    assert created.issues == ()
    assert [user["uuid"] for user in sandbox.world.users()] == [created.uuid]


def test_ein_ssn_and_birth_date_are_sent_but_not_returned(
    service_client: Client, sandbox: Sandbox, business: dict[str, Any]
) -> None:
    created = service_client.borrowers.create_commercial(**business)
    person = created.key_people[0].uuid

    assert sandbox.world.received_ein(created.uuid) == "123456789"
    assert sandbox.world.received_ssn(person) == "123456789"
    assert sandbox.world.received_dob(person) == "1980/02/29"
    assert "123456789" not in repr((created, created.raw))


def test_ein_and_ssn_are_sent_encrypted(
    service_client: Client, sandbox: Sandbox, business: dict[str, Any]
) -> None:
    service_client.borrowers.create_commercial(**business)

    assert b"3456789" not in sandbox.calls[-1].body
    assert b"45-6789" not in sandbox.calls[-1].body


def test_omitted_fields_are_not_sent(
    service_client: Client, sandbox: Sandbox, business: dict[str, Any], owner: NewKeyPerson
) -> None:
    plain = replace(owner, dob=None, ssn=None)
    service_client.borrowers.create_commercial(**business | {"key_people": [owner, plain]})

    assert not {"start_date", "incorporated_on", "asset_report_json_gzip"} & set(last_body(sandbox))
    assert set(last_body(sandbox)["key_people"][0]) - set(last_body(sandbox)["key_people"][1]) == {
        "dob",
        "ssn",
    }
    assert "middle_name" not in last_body(sandbox)["key_people"][1]


def test_a_report_is_gzipped_and_base64_encoded(
    service_client: Client, sandbox: Sandbox, business: dict[str, Any]
) -> None:
    created = service_client.borrowers.create_commercial(**business, asset_report=REPORT)
    received = sandbox.world.received_report(created.uuid, "asset_report_json_gzip")

    assert received is not None
    assert gzip.decompress(base64.b64decode(received)) == REPORT


def test_all_problems_are_reported_at_once(
    service_client: Client, sandbox: Sandbox, address: Address
) -> None:
    invalid_person = NewKeyPerson(
        first_name="3M",
        last_name="",
        title="BOSS",
        citizenship="Utopia",
        email="nowhere",
        phone="555-555-5555",
        address=None,  # type: ignore[arg-type]
        dob=today_in("US/Pacific") - timedelta(days=17 * 365),
        ssn="12345678",
    )
    found = collect_problems(
        service_client.borrowers.create_commercial,
        first_name=" ",
        email="office@",
        entity="CLUB",
        ein="12-34567X",
        phone="+44 20 7946 0000",
        address=Address(line_1="", zip="94103", city="Austin", state="TX", country="UNITED STATES"),
        key_people=[invalid_person, "Ana"],
        incorporated_on=today_in("US/Pacific") + timedelta(days=2),
        asset_report=b"",
    )

    assert set(found) == {
        "first_name", "email", "entity", "ein", "phone", "address.line_1", "address.zip", "incorporated_on",
        "asset_report", "key_people.0.first_name", "key_people.0.last_name", "key_people.0.title",
        "key_people.0.citizenship", "key_people.0.email", "key_people.0.phone", "key_people.0.address",
        "key_people.0.dob", "key_people.0.ssn", "key_people.1",
    }  # fmt: skip
    assert all(reasons and all(reasons) for reasons in found.values())
    assert sandbox.calls == []


def test_a_business_needs_a_key_person(service_client: Client, business: dict[str, Any]) -> None:
    found = collect_problems(service_client.borrowers.create_commercial, **business | {"key_people": []})

    assert found == {"key_people": ["At least one key person is needed."]}


@pytest.mark.parametrize("name", ["first_name", "email", "entity", "ein", "phone", "address"])
@pytest.mark.parametrize("value", [None, 17])
def test_a_missing_or_mistyped_required_field_is_rejected(
    service_client: Client, business: dict[str, Any], name: str, value: object
) -> None:
    assert list(collect_problems(service_client.borrowers.create_commercial, **business | {name: value})) == [
        name
    ]


def test_address_fields_must_be_text(service_client: Client, business: dict[str, Any]) -> None:
    wrong = Address(line_1="1 Elm", zip=78701, city="Austin", state="TX", country="UNITED STATES")  # type: ignore[arg-type]

    assert collect_problems(service_client.borrowers.create_commercial, **business | {"address": wrong}) == {
        "address.zip": ["This must be text."]
    }


def test_a_new_business_name_can_contain_digits(service_client: Client, business: dict[str, Any]) -> None:
    assert (
        service_client.borrowers.create_commercial(**business | {"first_name": "3M & Co."}).first_name
        == "3M & Co."
    )


def test_an_invalid_ein_is_not_repeated_in_the_error(
    service_client: Client, business: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        service_client.borrowers.create_commercial(**business | {"ein": "98-765432"})

    assert "765" not in str(caught.value) + repr(caught.value)


def test_a_rejection_traceback_hides_ein_ssn_and_birth_date(
    service_client: Client, sandbox: Sandbox, business: dict[str, Any]
) -> None:
    sandbox.fail_next("borrowers.create_commercial", status=422)
    with pytest.raises(Rejected) as caught:
        service_client.borrowers.create_commercial(**business, asset_report=b"SSN 123-45-6789")

    shown = frame_variables(caught.value)
    assert not any(secret in shown for secret in (EIN, SSN, *DOB, "123456789", "SSN 123"))


def test_an_invalid_input_traceback_hides_ein_ssn_and_birth_date(
    service_client: Client, business: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        service_client.borrowers.create_commercial(**business | {"email": "nowhere"})

    shown = frame_variables(caught.value)
    assert not any(secret in shown for secret in (EIN, SSN, *DOB))


def frame_variables(error: BaseException) -> str:
    """The local variables of the library's frames, as a debug page prints them."""
    trace, shown = error.__traceback__, []
    while trace:
        if (
            "/servicing/" in trace.tb_frame.f_code.co_filename
            and "/tests/" not in trace.tb_frame.f_code.co_filename
        ):
            shown.append(repr(trace.tb_frame.f_locals))
        trace = trace.tb_next
    assert shown
    return "\n".join(shown)


# Updating


@pytest.fixture
def borrower(sandbox: Sandbox) -> dict[str, Any]:
    return sandbox.world.borrower(key_people=[{"first_name": "Maya", "middle_name": "Q"}])


def test_update_sends_and_changes_only_given_fields(
    service_client: Client, sandbox: Sandbox, borrower: dict[str, Any]
) -> None:
    changed = service_client.borrowers.update(borrower["uuid"], email="new@example.com")

    assert last_body(sandbox) == {"email": "new@example.com"}
    assert changed.email == "new@example.com"
    assert changed.phone == borrower["phone"]


def test_update_sends_the_full_address(
    service_client: Client, sandbox: Sandbox, borrower: dict[str, Any], address: Address
) -> None:
    service_client.borrowers.update(borrower["uuid"], address=address)

    assert last_body(sandbox) == {
        "address": {
            "line_1": "401 Congress Ave",
            "line_2": None,
            "line_3": None,
            "zip": "78701",
            "city": "Austin",
            "state": "TX",
            "country": "UNITED STATES",
        }
    }


def test_all_fields_of_an_individual_can_be_updated(
    service_client: Client, sandbox: Sandbox, address: Address
) -> None:
    person = sandbox.world.individual()
    changed = service_client.borrowers.update(
        person["uuid"],
        address=address,
        first_name="Mia",
        middle_name="Jo",
        last_name="O'Dell",
        email="mia@example.com",
        dob=date(1990, 12, 31),
        ssn="987-65-4321",
        phone="(787) 767-1234",
        credit_report=b"<report/>",
        asset_report=REPORT,
    )

    assert not changed.is_business
    assert (changed.first_name, changed.middle_name, changed.last_name) == ("Mia", "Jo", "O'Dell")
    assert changed.phone == "7877671234"
    assert sandbox.world.received_ssn(changed.uuid) == "987654321"
    assert sandbox.world.received_dob(changed.uuid) == "1990/12/31"
    assert sandbox.world.received_report(changed.uuid, "credit_report_xml_gzip")


def test_none_clears_a_name_and_unset_leaves_it_unchanged(
    service_client: Client, sandbox: Sandbox, borrower: dict[str, Any]
) -> None:
    person = borrower["key_people"][0]["uuid"]
    changed = service_client.borrowers.update_key_person(
        borrower["uuid"], person, middle_name=None, first_name="May", last_name=UNSET
    )

    assert last_body(sandbox) == {"first_name": "May", "middle_name": None}
    assert (changed.first_name, changed.middle_name, changed.last_name) == ("May", None, "Lindqvist")


@pytest.mark.parametrize(
    "name", ["email", "phone", "address", "dob", "ssn", "first_name", "title", "last_name"]
)
def test_none_is_rejected_for_a_required_field(service_client: Client, name: str) -> None:
    found = collect_problems(service_client.borrowers.update_key_person, "b-1", "k-1", **{name: None})

    assert list(found) == [name]


def test_a_last_name_can_be_cleared(
    service_client: Client, sandbox: Sandbox, borrower: dict[str, Any]
) -> None:
    service_client.borrowers.update(borrower["uuid"], last_name=None)

    assert last_body(sandbox) == {"last_name": None}


def test_a_key_persons_title_ssn_and_birth_date_can_be_updated(
    service_client: Client, sandbox: Sandbox, borrower: dict[str, Any]
) -> None:
    person = borrower["key_people"][0]["uuid"]
    changed = service_client.borrowers.update_key_person(
        borrower["uuid"], person, title="beneficiary", ssn="987 65 4321", dob=date(1979, 1, 2)
    )

    assert changed.title == "BENEFICIARY"
    assert sandbox.world.received_ssn(person) == "987654321"
    assert sandbox.world.received_dob(person) == "1979/01/02"


def test_update_rejects_invalid_names_and_birth_dates(service_client: Client) -> None:
    found = collect_problems(
        service_client.borrowers.update, "b-1", first_name="AT&T", last_name="José", dob="1980/01/01"
    )

    assert set(found) == {"first_name", "last_name", "dob"}


def test_an_update_without_changes_is_rejected(service_client: Client, sandbox: Sandbox) -> None:
    assert list(collect_problems(service_client.borrowers.update, "b-1")) == ["changes"]
    assert sandbox.calls == []


def test_a_key_person_of_another_borrower_is_not_found(
    service_client: Client, sandbox: Sandbox, borrower: dict[str, Any]
) -> None:
    other = sandbox.world.borrower()

    with pytest.raises(NotFound):
        service_client.borrowers.update_key_person(
            other["uuid"], borrower["key_people"][0]["uuid"], title="OWNER"
        )


def test_a_rejection_lists_each_reason_separately(
    service_client: Client, sandbox: Sandbox, borrower: dict[str, Any]
) -> None:
    sandbox.fail_next("borrowers.update", status=422, body={"message": ["phone is taken", "email is odd"]})
    with pytest.raises(Rejected) as caught:
        service_client.borrowers.update(borrower["uuid"], email="new@example.com")

    assert caught.value.reasons == ("phone is taken", "email is odd")
    assert caught.value.message == "phone is taken; email is odd"


# Client settings and returned values


@pytest.fixture
def custom_client(sandbox: Sandbox) -> Iterator[Client]:
    with Client(
        sandbox.url,
        client_id=sandbox.client_id,
        secret=sandbox.secret,
        country="US",
        incorporation_field="incorporated",
    ) as client:
        yield client


def test_country_and_incorporation_field_can_be_configured(
    custom_client: Client, business: dict[str, Any], owner: NewKeyPerson, address: Address
) -> None:
    us_address = replace(address, country="US")
    business |= {"address": us_address, "key_people": [replace(owner, address=us_address)]}
    preview = custom_client.preview(
        lambda it: it.borrowers.create_commercial(**business, incorporated_on=date(2014, 6, 2))
    )

    assert preview.body["incorporated"] == "2014-06-02"
    assert preview.body["address"]["country"] == "US"


def test_a_client_without_a_key_cannot_send_an_ssn(sandbox: Sandbox) -> None:
    with (
        Client(sandbox.url, auth="none") as client,
        pytest.raises(ConfigurationError, match="secret or a field key"),
    ):
        client.borrowers.update("b-1", ssn=SSN)


def test_a_phone_with_a_country_code_can_be_read(
    service_client: Client, sandbox: Sandbox, borrower: dict[str, Any]
) -> None:
    sandbox.fail_next("borrowers.update", changes={"phone": "+15124721234", "user_type": "Business"})
    changed = service_client.borrowers.update(borrower["uuid"], email="new@example.com")

    assert (changed.phone, changed.is_business, changed.issues) == ("+15124721234", True, ())


def test_a_borrower_of_unknown_type_is_not_a_business() -> None:
    assert not Borrower(uuid="b-1").is_business


def test_the_repr_of_a_key_person_hides_ssn_and_birth_date(owner: NewKeyPerson) -> None:
    assert "O'Neil" in repr(owner)
    assert not any(secret in repr([owner]) for secret in (SSN, "1980"))
