"""Decoding the service's answers, malformed ones included, and encoding requests."""

import base64
import gzip
import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from servicing import (
    Address,
    Application,
    Borrower,
    ConfigurationError,
    Decision,
    Issue,
    Loan,
    Message,
    ProtocolError,
    RemoteTime,
    Repayment,
    Statement,
)
from servicing.codec import (
    Encrypted,
    Gzipped,
    Outgoing,
    SlashedDate,
    decode,
    decode_list,
    encode,
    parse,
    to_json,
)
from servicing.crypto import FieldCipher
from servicing.values import decimal_or_none

pytestmark = pytest.mark.core

MODELS = [Application, Borrower, Loan, Message, Repayment, Statement]


def read_repayment(**fields: Any) -> Repayment:
    return decode(Repayment, json.dumps({"uuid": "r-1"} | fields))


def read_amount(text: str) -> Decimal | None:
    return decode(Repayment, f'{{"uuid": "r-1", "amount": {text}}}').amount


# Numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.1", "0.1"),
        ("1.10", "1.10"),
        ("25000", "25000"),
        ("-0.0", "-0.0"),
        ("1E5", "1E+5"),
        ("12345678901234567890.123456789", "12345678901234567890.123456789"),
        ('"12.50"', "12.50"),
        ('"-7"', "-7"),
    ],
)
def test_amounts_keep_every_digit(text: str, number: str) -> None:
    amount = read_amount(text)

    assert isinstance(amount, Decimal)
    assert str(amount) == number


@pytest.mark.parametrize(
    "text",
    ["1e400", "-1e400", "1e-400", '"1e400"', '"NaN"', '"Infinity"', '"12,50"', '"1e99999999"', "true", "[1]",
     "{}", "1" + "0" * 30, "0." + "0" * 40 + "1", '"' + "1" * 100 + '"'],
)  # fmt: skip
def test_an_invalid_number_is_none_with_an_issue(text: str) -> None:
    answer = decode(Repayment, f'{{"uuid": "r-1", "amount": {text}, "status": "SUCCEEDED"}}')

    assert answer.amount is None
    assert [issue.path for issue in answer.issues] == ["amount"]
    assert answer.status == "SUCCEEDED"


def test_a_payload_contains_no_floats() -> None:
    answer = decode(Message, '{"uuid": "m-1", "payload": {"amount": 0.1, "deep": [1.5, {"x": 1e400}]}}')

    assert answer.payload == {"amount": Decimal("0.1"), "deep": [Decimal("1.5"), {"x": "1e400"}]}


@pytest.mark.parametrize(
    ("value", "term"),
    [(12, 12), ("12", 12), (12.0, 12), ("", None), (12.5, None), (10**30, None), ("a", None)],
)
def test_whole_numbers_are_read_from_numbers_and_text(value: object, term: int | None) -> None:
    answer = decode(Application, json.dumps({"uuid": "a-1", "term": value}))

    assert answer.term == term
    assert bool(answer.issues) == (term is None and value != "")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_nan_and_infinity_are_not_valid_json(text: str) -> None:
    with pytest.raises(ProtocolError, match="isn’t JSON"):
        read_amount(text)


@pytest.mark.parametrize(
    ("value", "number"),
    [(5, 5), (Decimal("0.1"), Decimal("0.1")), ("7.5", Decimal("7.5")), ("?", None), ({}, None)],
)
def test_decimal_or_none_reads_numbers_and_text(value: object, number: Decimal | None) -> None:
    assert decimal_or_none(value) == number


# Dates, times and other values


@pytest.mark.parametrize(
    "text", ["2026-03-08", "2026-03-08T00:00:00Z", "2026-03-08 23:59:59 US/Pacific", "2026/03/08"]
)
def test_a_time_or_zone_never_shifts_a_calendar_date(text: str) -> None:
    assert read_repayment(effective_date=text).effective_date == date(2026, 3, 8)


@pytest.mark.parametrize("value", ["2026-02-30", "soon", 20260308, None, ""])
def test_an_invalid_date_is_none(value: object) -> None:
    answer = read_repayment(effective_date=value)

    assert answer.effective_date is None
    assert bool(answer.issues) == (value not in (None, ""))


@pytest.mark.parametrize(("value", "truth"), [(True, True), ("true", True), ("False", False), (1, None)])
def test_booleans_can_arrive_as_text(value: object, truth: bool | None) -> None:
    answer = read_repayment(should_commit_to_servicing=value, amount="beside something unreadable")

    assert answer.should_commit_to_servicing is truth


@pytest.mark.parametrize(("value", "text"), [(12, "12"), (1.5, "1.5"), ("", ""), (True, None), ([], None)])
def test_text_can_arrive_as_a_number(value: object, text: str | None) -> None:
    assert read_repayment(ach_id=value, error_description=None).ach_id == text


def test_an_empty_error_description_stays_empty() -> None:
    assert read_repayment(error_description="").error_description == ""


@pytest.mark.parametrize("value", [12, "", []])
def test_an_invalid_timestamp_is_none(value: object) -> None:
    assert read_repayment(initiation_date=value).initiation_date is None


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-05-01 10:00:00 US/Pacific", "2026-05-01 17:00"),
        ("2026-05-01 10:00:00 PDT", "2026-05-01 17:00"),
        ("2026-12-01 10:00:00 PST", "2026-12-01 18:00"),
        ("2026-05-01 10:00:00 America/New_York", "2026-05-01 14:00"),
        ("2026-05-01 10:00:00 UTC", "2026-05-01 10:00"),
        ("2026-05-01T10:00:00Z", "2026-05-01 10:00"),
        ("2026-05-01 10:00:00+02:00", "2026-05-01 08:00"),
    ],
)
def test_a_time_in_a_known_zone_resolves_to_an_instant(text: str, utc: str) -> None:
    time = RemoteTime(text)

    assert time.at is not None
    assert time.at == datetime.fromisoformat(f"{utc}+00:00")
    assert str(time) == text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("2026-05-01 10:00:00 IST", id="ambiguous-abbreviation"),
        pytest.param("2026-05-01 10:00:00", id="no-zone"),
        pytest.param("2026-11-01 01:30:00 US/Pacific", id="hour-that-comes-twice"),
        pytest.param("2026-03-08 02:30:00 US/Pacific", id="hour-that-is-skipped"),
        pytest.param("2026-05-01 10:00:00 ../../etc/passwd", id="path"),
        pytest.param("2026-05-01 10:00:00 America", id="folder"),
        pytest.param("2026-05-01 10:00:00 localtime", id="zone-of-this-machine"),
        pytest.param("2026-05-01 10:00:00 Factory", id="no-place"),
        pytest.param("0001-01-01 10:00:00 UTC", id="year-out-of-use"),
        pytest.param("yesterday", id="no-time"),
    ],
)
def test_an_unresolvable_time_keeps_only_its_text(text: str) -> None:
    assert RemoteTime(text).at is None
    assert RemoteTime(text).text == text


def test_times_with_the_same_text_are_equal() -> None:
    assert {RemoteTime("2026-05-01 10:00:00 PDT"), RemoteTime("2026-05-01 10:00:00 PDT")} == {
        RemoteTime("2026-05-01 10:00:00 PDT")
    }
    assert repr(RemoteTime("noon")) == "RemoteTime('noon')"


# Records and lists


def test_unknown_fields_are_stored_in_extra() -> None:
    answer = decode(
        Borrower, '{"uuid": "b-1", "tier": "GOLD", "address": {"zip": "78701", "plus_4": "1234"}}'
    )

    assert answer.extra == {"tier": "GOLD"}
    assert answer.address is not None
    assert answer.address.extra == {"plus_4": "1234"}
    assert answer.issues == ()


def test_raw_preserves_the_original_json() -> None:
    text = b'{"uuid":"r-1","amount":1.10,"new":[0.30]}'

    assert to_json(decode(Repayment, text).raw) == text


def test_missing_and_null_fields_are_none_or_empty() -> None:
    answer = decode(Application, '{"uuid": "a-1", "offers": null, "status": null}')

    assert (answer.amount, answer.offers, answer.status, answer.issues) == (None, (), None, ())


def test_a_key_persons_address_can_be_incomplete() -> None:
    answer = decode(
        Borrower, '{"uuid": "b-1", "key_people": [{"uuid": "k-1", "address": {"line_1": "1 Elm"}}]}'
    )

    assert answer.key_people[0].address == Address(
        line_1="1 Elm", zip=None, city=None, state=None, country=None
    )


def test_an_invalid_nested_value_is_reported_by_its_path() -> None:
    answer = decode(
        Application,
        '{"uuid": "a-1", "offers": [{"uuid": "o-1", "apr": 9.5}, {"uuid": "o-2", "apr": "free", "term": "36"}]}',
    )

    assert [offer.apr for offer in answer.offers] == [Decimal("9.5"), None]
    assert answer.offers[1].term == 36
    assert answer.issues == (Issue("offers.1.apr", "is not an exact number"),)
    assert answer.offers[1].issues == (Issue("apr", "is not an exact number"),)


def test_a_nested_number_out_of_bounds_is_reported() -> None:
    answer = decode(
        Application,
        '{"uuid": "a-1", "offers": [{"uuid": "o-1", "apr": 1e30}], "status": {"decision": "NEW"}}',
    )

    assert answer.issues == (Issue("offers.0.apr", "is a number out of bounds"),)
    assert answer.status == Decision(decision="NEW")


@pytest.mark.parametrize("offers", ['"none"', "[5]", "{}"])
def test_an_invalid_nested_list_is_empty_with_an_issue(offers: str) -> None:
    answer = decode(Application, f'{{"uuid": "a-1", "amount": 5, "offers": {offers}}}')

    assert answer.offers == ()
    assert len(answer.issues) == 1
    assert answer.amount == 5


def test_an_invalid_nested_object_is_none_with_an_issue() -> None:
    answer = decode(Borrower, '{"uuid": "b-1", "address": "1 Elm Street, Austin"}')

    assert answer.address is None
    assert answer.issues == (Issue("address", "is not an object"),)


def test_an_invalid_amount_does_not_change_installments() -> None:
    answer = decode(Loan, '{"uuid": "l-1", "amount": "?", "installments": [{"number": 1}, null, 7]}')

    assert answer.installments == ({"number": 1}, None, 7)


def test_an_unknown_status_is_preserved() -> None:
    assert read_repayment(status="Teleported").status == "Teleported"


@pytest.mark.parametrize(
    ("status", "decision"),
    [
        ({"decision": "APPROVED"}, "APPROVED"),
        ({"name": "APPROVED"}, "APPROVED"),
        ({"decision": "REJECTED", "name": "APPROVED"}, "REJECTED"),
        ({"details": ["No credit file"]}, None),
    ],
)
def test_decision_falls_back_to_name(status: dict[str, str], decision: str | None) -> None:
    answer = decode(Application, json.dumps({"uuid": "a-1", "status": status}))

    assert answer.status is not None
    assert answer.status.decision == decision


@pytest.mark.parametrize("wrap", ["{}", '{{"data": {}}}', '{{"items": {}, "pagination": {{}}}}'])
def test_a_list_can_be_bare_or_in_an_envelope(wrap: str) -> None:
    answer = decode_list(Repayment, wrap.format('[{"uuid": "r-1"}, {"uuid": "r-2"}]'))

    assert [each.uuid for each in answer] == ["r-1", "r-2"]


@pytest.mark.parametrize("bad", ['{"uuid": "r-2", "amount": "?"}', '{"uuid": "r-2", "amount": 1e30}'])
def test_one_bad_record_does_not_affect_the_others(bad: str) -> None:
    answer = decode_list(Repayment, f'[{{"uuid": "r-1", "amount": 5}}, {bad}]')

    assert [each.amount for each in answer] == [5, None]
    assert [len(each.issues) for each in answer] == [0, 1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "isn’t JSON"),
        ("<html>", "isn’t JSON"),
        ('{"uuid": "r-1"', "isn’t JSON"),
        ("[" * 100_000, "isn’t JSON"),
        ('"\udcff"', "isn’t JSON"),
        ("[]", "isn’t an object"),
        ("null", "isn’t an object"),
        ("{}", "without uuid"),
        ('{"uuid": null}', "without uuid"),
        ('{"uuid": []}', "without uuid"),
    ],
)
def test_an_invalid_record_raises_a_protocol_error(text: str, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        decode(Repayment, text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("7", "neither a list nor an envelope"),
        ('{"data": {}}', "neither a list nor an envelope"),
        ("[7]", "isn’t an object"),
        ('[{"uuid": "r-1"}, {}]', "without uuid"),
    ],
)
def test_an_invalid_list_raises_a_protocol_error(text: str, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        decode_list(Repayment, text)


def test_a_statement_needs_no_uuid() -> None:
    assert decode(Statement, "{}") == Statement()


def test_bytes_that_are_not_utf8_are_not_json() -> None:
    with pytest.raises(ProtocolError, match="isn’t JSON"):
        parse(b'"\xff"')


def test_an_unexpected_ein_ssn_or_birth_date_is_masked() -> None:
    answer = decode(
        Borrower,
        '{"uuid": "b-1", "EIN": "12-3456789", "key_people": [{"uuid": "k-1", "Ssn": "123-45-6789",'
        ' "dob": null}], "extra_data": [[{"dob": "1980/01/01"}]]}',
    )

    text = repr((answer, answer.raw, answer.extra))
    assert [part for part in ("3456789", "45-6789", "1980") if part in text] == []
    assert answer.raw["key_people"][0]["dob"] is None


def test_a_model_built_in_code_has_no_raw_object() -> None:
    repayment = Repayment(uuid="r-1")

    assert (repayment.raw, repayment.extra, repayment.issues) == ({}, {}, ())


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False).map(str)
    | st.text()
    | st.sampled_from(["2026-05-01", "1e400", "NaN", "", "APPROVED"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


FIELD_NAMES = sorted({name for model in MODELS for name in model.__struct_fields__})


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(FIELD_NAMES) | st.text(max_size=5), JSON, max_size=20))
def test_any_object_with_a_uuid_can_be_read(values: dict[str, Any]) -> None:
    fields = values | {"uuid": "u-1"}
    for model in MODELS:
        answer = decode(model, json.dumps(fields))
        assert set(answer.raw) == set(fields)
        assert {issue.path.split(".")[0] for issue in answer.issues} <= set(fields)


# Encoding


class Example(Outgoing, frozen=True, kw_only=True):
    text: str | UnsetType | None = UNSET
    amount: Any = UNSET
    day: date | UnsetType = UNSET
    born: SlashedDate | UnsetType | None = UNSET
    ssn: Encrypted | UnsetType | None = UNSET
    report: Gzipped | UnsetType = UNSET
    inner: tuple["Example", ...] | UnsetType = UNSET


CIPHER = FieldCipher(b"0123456789abcdef")


def test_unset_fields_are_not_sent_and_none_is_null() -> None:
    assert encode(Example(text=None), None) == {"text": None}
    assert encode(Example(), None) == {}


def test_each_value_is_encoded_by_its_type() -> None:
    sent = Example(
        amount=Decimal("25000.00"), day=date(2026, 5, 1), born=date(1980, 2, 29), inner=(Example(text="é"),)
    )

    assert to_json(encode(sent, None)).decode() == (
        '{"amount":25000.00,"day":"2026-05-01","born":"1980/02/29","inner":[{"text":"é"}]}'
    )


def test_nested_encrypted_fields_are_encrypted() -> None:
    body = encode(Example(inner=(Example(ssn="123456789"),)), CIPHER)

    assert CIPHER.decrypt(body["inner"][0]["ssn"]) == "123456789"


def test_encrypted_fields_require_a_cipher() -> None:
    with pytest.raises(ConfigurationError, match="secret or a field key"):
        encode(Example(ssn="123456789"), None)


def test_an_encoded_report_has_no_timestamp() -> None:
    body = encode(Example(report=b"<report/>"), None)

    assert gzip.decompress(base64.b64decode(body["report"])) == b"<report/>"
    assert base64.b64decode(body["report"])[4:8] == bytes(4), "no time of compression"


@pytest.mark.parametrize("value", [0.1, Decimal("NaN"), datetime(2026, 5, 1), {"a": 1}, b"x"])  # noqa: DTZ001
def test_unsupported_values_cannot_be_sent(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be sent"):
        encode(Example(amount=value), None)


def test_the_repr_of_a_request_hides_sensitive_fields() -> None:
    shown = repr(Example(text="Ana", ssn="123456789", born=date(1980, 2, 29), report=b"<secret/>"))

    assert shown.startswith("Example(text='Ana'")
    assert not any(secret in shown for secret in ("123456789", "1980", "secret"))
