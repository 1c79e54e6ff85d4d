"""Creating and changing users and key people: what is stored, returned and rejected."""

import base64
import gzip
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from servicing.crypto import FieldCipher
from servicing.sandbox import Sandbox
from tests.sandbox import interface
from tests.sandbox.caller import Caller


@pytest.fixture
def user(service: Sandbox) -> dict[str, Any]:
    return service.world.borrower(first_name="Tidewater Freight Inc.", EIN="301112222")


def rejection_message(caller: Caller, business: dict[str, Any], **changes: Any) -> str:
    """Return the error message for a body with these changes; the value ``...`` removes a field."""
    body = {name: value for name, value in (business | changes).items() if value is not ...}
    answer = caller.post("/v1/users", body)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["message"])


# Creating


def test_a_new_business_is_returned_without_its_ein(
    service: Sandbox, caller: Caller, business: dict[str, Any]
) -> None:
    user = caller.post("/v1/users", business).json()
    assert set(user) == interface.BUSINESS
    assert (user["user_type"], user["start_date"]) == ("BUSINESS", "2012-05-31")
    assert service.world.received_ein(user["uuid"]) == "123456789"
    assert service.world.user(user["uuid"]) == user


def test_key_people_are_created_with_the_business(
    service: Sandbox, caller: Caller, business: dict[str, Any], cipher: FieldCipher
) -> None:
    business["key_people"][0] |= {"dob": "1990/02/28", "ssn": cipher.encrypt("987654321")}
    (person,) = caller.post("/v1/users", business).json()["key_people"]
    assert set(person) == interface.KEY_PERSON
    assert "line_2" not in person["address"]
    assert service.world.received_ssn(person["uuid"]) == "987654321"
    assert service.world.received_dob(person["uuid"]) == "1990/02/28"


def test_all_missing_fields_are_reported_at_once(caller: Caller) -> None:
    message = caller.post("/v1/users", {"EIN": None}).json()["message"]
    names = ["address", "first_name", "email", "entity", "EIN", "phone", "user_type", "key_people"]
    assert message == "; ".join(f"{name} is required" for name in names)


def test_all_address_and_key_person_problems_are_reported(caller: Caller, business: dict[str, Any]) -> None:
    address = business["address"] | {"zip": "90210", "line_2": 4}
    person = {"first_name": "Ana", "phone": "1", "title": "BOSS"}
    message = rejection_message(
        caller, business, address=address, key_people=[business["key_people"][0], person]
    )
    assert "address.line_2 must be a text" in message
    assert "key_people.1.last_name is required" in message
    assert "key_people.1.phone must be a phone number of 10 digits" in message
    assert "key_people.1.title must be one of OWNER, DIRECTOR, BENEFICIARY" in message
    assert "key_people.0" not in message


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("phone", "8025550131x", "must be a phone number of 10 digits"),
        ("phone", 8025550131, "must be a text that is not empty"),
        ("phone", "5555555555", "must be a valid US phone number"),
        ("phone", "4165550131", "must be a valid US phone number"),
        ("entity", "LLC", "must be one of SOLE_PROPRIETORSHIP"),
        ("entity", ["CORPORATION"], "must be one of"),
        ("user_type", "person", "must be business"),
        ("email", "office at example.com", "must be an email address"),
        ("email", "office@localhost", "must be an email address"),
        ("first_name", "  ", "must be a text that is not empty"),
        ("start_date", "2031/01/01", "must be a date, YYYY-MM-DD"),
        ("start_date", "2021-02-29", "must be a date, YYYY-MM-DD"),
        ("start_date", "٢٠٢١-٠١-٠١", "must be a date, YYYY-MM-DD"),
        ("start_date", "9999-12-31", "must not be in the future"),
        ("key_people", [], "must be a list with at least one person"),
        ("key_people", {"0": {}}, "must be a list with at least one person"),
        ("key_people", ["Ana"], "must be an object"),
        ("key_people", [{"citizenship": "USA"}], "must be a two-letter country code"),
        ("address", "77 Quarry Road", "must be an object"),
    ],
)
def test_an_invalid_value_is_rejected_with_a_reason(
    caller: Caller, business: dict[str, Any], field: str, value: object, reason: str
) -> None:
    message = rejection_message(caller, business, **{field: value})
    assert message.startswith(field)
    assert reason in message


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state": "Vermont"}, "address.state must be a two-letter US state or territory"),
        ({"state": "ZZ"}, "address.state must be a two-letter US state or territory"),
        ({"zip": "0540"}, "address.zip must be a ZIP code of 5 or 9 digits"),
        ({"zip": "94043"}, "address.zip 94043 is not in VT"),
        ({"country": "US"}, "address.country must be UNITED STATES"),
        ({"country": None}, "address.country is required"),
        ({"city": ""}, "address.city must be a text that is not empty"),
    ],
)
def test_an_invalid_address_is_rejected(
    caller: Caller, business: dict[str, Any], changes: dict[str, Any], reason: str
) -> None:
    assert rejection_message(caller, business, address=business["address"] | changes) == reason


def test_a_zip_of_a_bordering_state_is_accepted(caller: Caller, business: dict[str, Any]) -> None:
    address = business["address"] | {"state": "TX", "zip": "73949"}
    user = caller.post("/v1/users", business | {"address": address}).json()
    assert user["address"]["zip"] == "73949"


@pytest.mark.parametrize(
    ("state", "zip_code", "phone"),
    [
        ("PR", "00959", "7875550112"),
        ("GU", "96910-1234", "6715550112"),
        ("VI", "00802", "3405550112"),
        ("AP", "96205", "8085550112"),
        ("DC", "20005", "8005550112"),
    ],
)
def test_territories_and_military_addresses_are_accepted(
    caller: Caller, business: dict[str, Any], state: str, zip_code: str, phone: str
) -> None:
    place = business["address"] | {"state": state, "zip": zip_code, "country": "United States", "line_2": ""}
    user = caller.post("/v1/users", business | {"address": place, "phone": phone}).json()
    assert user["address"] == place | {"country": "UNITED STATES", "line_2": None, "line_3": None}


def test_an_ein_must_decrypt_to_nine_digits(
    caller: Caller, business: dict[str, Any], cipher: FieldCipher
) -> None:
    other = FieldCipher(b"0" * 32).encrypt("123456789")
    for bad in (
        "123456789",
        "12-3456789",
        "",
        other,
        cipher.encrypt("12-3456789"),
        cipher.encrypt("12345678"),
    ):
        message = rejection_message(caller, business, EIN=bad)
        assert message in (
            "EIN could not be decrypted to nine digits",
            "EIN must be a text that is not empty",
        )


# Reports


def gzip_base64(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def test_a_report_is_stored_as_sent(service: Sandbox, caller: Caller, business: dict[str, Any]) -> None:
    report = gzip_base64(b'{"accounts": []}')
    user = caller.post("/v1/users", business | {"asset_report_json_gzip": report}).json()
    assert service.world.received_report(user["uuid"], "asset_report_json_gzip") == report
    assert "asset_report_json_gzip" not in user


@pytest.mark.parametrize(
    "report",
    [
        "no base64!",
        base64.b64encode(b"plain").decode(),
        gzip_base64(b"x" * 500)[:20],
        base64.b64encode(gzip.compress(b"x" * 500, mtime=0)[:-6]).decode(),
        7,
    ],
)
def test_a_report_that_is_not_base64_of_gzip_is_rejected(
    caller: Caller, business: dict[str, Any], report: object
) -> None:
    message = rejection_message(caller, business, asset_report_json_gzip=report)
    assert message.startswith("asset_report_json_gzip must be")


@pytest.mark.slow
def test_a_report_that_unpacks_too_large_is_rejected(caller: Caller, business: dict[str, Any]) -> None:
    bomb = gzip_base64(bytes(65 * 1024 * 1024))
    assert len(bomb) < 100_000
    message = rejection_message(caller, business, asset_report_json_gzip=bomb)
    assert message == "asset_report_json_gzip is too large once unpacked"


# Updating a user


def test_an_update_changes_only_the_given_fields(
    service: Sandbox, caller: Caller, user: dict[str, Any]
) -> None:
    answer = caller.put(f"/v1/users/{user['uuid']}", {"email": "new@tidewater.example"})
    assert answer.json() == user | {"email": "new@tidewater.example"}
    assert service.world.user(user["uuid"]) == answer.json()
    assert service.world.received_ein(user["uuid"]) == "301112222"


def test_every_updatable_field_is_stored(
    service: Sandbox, caller: Caller, user: dict[str, Any], cipher: FieldCipher
) -> None:
    path = f"/v1/users/{user['uuid']}"
    place = user["address"] | {"city": "Veneta", "zip": "97487", "line_2": "Unit 4"}
    names = {"first_name": "Tidewater Freight", "middle_name": None, "last_name": "O’Neil, Jr."}
    hidden = {
        "dob": "1980/12/31",
        "ssn": cipher.encrypt("111223333"),
        "credit_report_xml_gzip": gzip_base64(b"<a/>"),
    }
    answer = caller.put(path, names | hidden | {"address": place, "phone": "5415550199"})
    assert answer.json() == user | names | {"address": place, "phone": "5415550199"}
    assert service.world.received_ssn(user["uuid"]) == "111223333"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"first_name": "3M"}, "first_name must match the name pattern"),
        ({"middle_name": "José"}, "middle_name must match the name pattern"),
        ({"last_name": "O  Neil"}, "last_name must match the name pattern"),
        ({"email": None}, "email must be a text that is not empty"),
        ({"ssn": "123456789"}, "ssn could not be decrypted to nine digits"),
        ({"dob": "1980-12-31"}, "dob must be a date, YYYY/MM/DD"),
        ({"dob": "1980/02/30"}, "dob must be a date, YYYY/MM/DD"),
        (
            {"address": {"city": "Eugene"}, "phone": "1"},
            "address.line_1 is required; address.zip is required",
        ),
        ([], "must be an object"),
        (None, "must be an object"),
    ],
)
def test_an_invalid_update_is_rejected_and_changes_nothing(
    service: Sandbox, caller: Caller, user: dict[str, Any], body: object, message: str
) -> None:
    answer = caller.put(f"/v1/users/{user['uuid']}", body)
    assert (answer.status_code, answer.json()["message"][: len(message)]) == (400, message)
    assert service.world.user(user["uuid"]) == user


@pytest.mark.parametrize(
    ("today", "born", "status"),
    [
        (date(2026, 5, 20), "2008/05/20", 200),
        (date(2026, 5, 20), "2008/05/21", 400),
        (date(2026, 2, 28), "2008/02/29", 400),
        (date(2026, 3, 1), "2008/02/29", 200),
        (date(2028, 2, 29), "2010/03/01", 400),
    ],
)
def test_a_user_must_be_at_least_18(tmp_path: Path, today: date, born: str, status: int) -> None:
    with Sandbox(tmp_path / "s.db", today=today) as service:
        caller = Caller(service.url)
        user = service.world.individual()
        assert caller.put(f"/v1/users/{user['uuid']}", {"dob": born}).status_code == status
        caller.session.close()


def test_a_very_long_name_is_checked_quickly(caller: Caller, user: dict[str, Any]) -> None:
    path = f"/v1/users/{user['uuid']}"
    assert caller.put(path, {"last_name": "a" * 100_000 + "1"}).status_code == 400
    assert caller.put(path, {"last_name": "a" * 100_000}).status_code == 200


# Updating a key person


def test_an_update_of_a_key_person_is_stored(
    service: Sandbox, caller: Caller, user: dict[str, Any], cipher: FieldCipher
) -> None:
    (person,) = user["key_people"]
    path = f"/v1/users/{user['uuid']}/key_people/{person['uuid']}"
    answer = caller.put(
        path, {"title": "DIRECTOR", "ssn": cipher.encrypt("444556666"), "middle_name": "Quinn"}
    )
    assert answer.json() == person | {"title": "DIRECTOR", "middle_name": "Quinn"}
    assert service.world.user(user["uuid"])["key_people"] == [answer.json()]
    assert service.world.received_ssn(person["uuid"]) == "444556666"


def test_the_last_name_of_a_key_person_cannot_be_cleared(caller: Caller, user: dict[str, Any]) -> None:
    path = f"/v1/users/{user['uuid']}/key_people/{user['key_people'][0]['uuid']}"
    assert caller.put(path, {"last_name": None, "title": "CHIEF"}).status_code == 400


def test_a_key_person_is_not_found_under_another_user(
    service: Sandbox, caller: Caller, user: dict[str, Any]
) -> None:
    other = service.world.borrower()
    path = f"/v1/users/{other['uuid']}/key_people/{user['key_people'][0]['uuid']}"
    answer = caller.put(path, {"title": "OWNER"})
    assert (answer.status_code, answer.json()) == (404, {"message": "Key person not found"})


def test_an_unknown_user_is_not_found(caller: Caller) -> None:
    answer = caller.put("/v1/users/0", {"title": 1})
    assert (answer.status_code, answer.json()) == (404, {"message": "User not found"})
