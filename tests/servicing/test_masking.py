"""Masking of EINs, SSNs, dates of birth, credentials and reports in records, previews and logs."""

import json
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicing import codec
from servicing.masking import HIDDEN, Sensitive, masked, masked_text, scrub, tax_numbers


@pytest.mark.parametrize(
    "name",
    [
        *(
            "EIN",
            "ein",
            "ssn",
            "SSN",
            "dob",
            "tax_id",
            "taxId",
            "TaxpayerID",
            "taxpayer-id",
            "tin",
            "itin",
            "fein",
        ),
        *(
            "date_of_birth",
            "birth_date",
            "birthDate",
            "dateofbirth",
            "social_security_number",
            "socialSecurity",
        ),
        *(
            "owner_ssn",
            "ownerSSN",
            "companyEin",
            "vendor_tin",
            "EINNumber",
            "employerIdentificationNumber",
            "ssn1",
        ),
    ],
)
def test_a_sensitive_field_is_hidden_at_any_depth(name: str) -> None:
    answer = {"people": [{name: "123"}, {"x": 1, name: ["4"]}]}
    assert masked(answer) == {"people": [{name: HIDDEN}, {"x": 1, name: HIDDEN}]}
    assert codec.parse(json.dumps(answer)) == masked(answer)
    assert json.loads(masked_text(json.dumps({name: "Ab/9="}))) == {name: HIDDEN}


@pytest.mark.parametrize("name", ["Authorization", "X-Signature", "Cookie", "client_secret", "accessToken"])
def test_credentials_are_hidden(name: str) -> None:
    assert masked({name: "123"}) == {name: HIDDEN}


@pytest.mark.parametrize(
    "name",
    [
        "start_date",
        "last4",
        "martin",
        "protein",
        "business_name",
        "tax_rate",
        "social_media_url",
        "birthplace",
    ],
)
def test_other_fields_are_shown(name: str) -> None:
    assert masked({name: "123"}) == codec.parse(json.dumps({name: "123"})) == {name: "123"}


def test_the_ssn_given_flag_is_shown() -> None:
    assert masked({"ssn_given": True}) == {"ssn_given": True}


def test_null_stays_null() -> None:
    assert masked({"ssn": None}) == {"ssn": None}


def test_a_report_is_replaced_by_its_size() -> None:
    assert masked({"asset_report_json_gzip": "H4sI" * 300}) == {
        "asset_report_json_gzip": "[1,200 characters]"
    }
    assert masked({"credit_report_xml_gzip": {"odd": "shape"}}) == {"credit_report_xml_gzip": HIDDEN}


def test_masking_is_idempotent() -> None:
    once = masked({"asset_report_json_gzip": "H4sI" * 300, "ssn": "219099999", "note": "219-09-9999"})
    assert masked(once) == once


SSN_OR_EIN = [
    *("219-09-9999", "219 09 9999", "219.09.9999", "219/09/9999", "219_09_9999", "219 - 09 - 9999"),
    *("219\u201009\u20109999", "219\u201309\u20139999", "219\u221209\u22129999", "219\u00a009\u00a09999"),
    *("219\u200b09\u200b9999", "\uff12\uff11\uff19-\uff10\uff19-\uff19\uff19\uff19\uff19"),
    *(r"84\u200b0917263", r"219\t\t09\t\t9999", r"219\xa0\xa0\xa009\xa09999", r"219\u201309\u20139999"),
    *("219\u30fc09\u30fc9999", "219\uff7009\uff709999", "219\u064009\u31619999", "84\u4e000917263"),
    *(
        "219</b>-09-9999",
        '219<td class="n1">09</td>9999',
        "21<i>9</i>-0<i>9</i>-9999",
        "84&lt;/b&gt;-0917263",
    ),
    *("84-0917263", "84 0917263", "84.0917263", "84\u20140917263", "84 ---- 0917263"),
    *("219 -- 09 -- 9999", "219\r\n\r\n09\r\n\r\n9999", "219\u00a0\u00a0\u00a0\u00a009\u00a09999"),
    *(
        "\u00b2\u00b9\u2079-\u2070\u2079-\u2079\u2079\u2079\u2079",
        "\u2461\u2460\u2468-\u24ea\u2468-\u2468\u2468\u2468\u2468",
    ),
    *("219&#45;09&#45;9999", "219&amp;#x2d;09&ndash;9999", "219%2D09%2D9999", "219%E2%80%9109%252D9999"),
    *("219\u316409\u31649999", "219\u280009\u034f9999", "2\u200b1\u200b9-0\u200b9-9\u200b9\u200b9\u200b9"),
    "-".join(("2\ufe0f\u20e31\ufe0f\u20e39\ufe0f\u20e3", "0\ufe0f\u20e39\ufe0f\u20e3", "9\ufe0f\u20e3" * 4)),
]
NEAR_A_KEYWORD = [
    *("SSN 219099999", "ssn:219099999", "SSN219099999", "ssn_219 099 999", "social security 219099999"),
    *("219099999 is the EIN", "TIN #021000021", "tax id: 21909 9999", "Taxpayer 2 1 9 0 9 9 9 9 9"),
    *("SSN 21 90 99 99 9", "SSN 2190-99-999", "SSN: 219099 999", "social 219/099/999", "EIN 8409-17263"),
    *("EIN 84 091 7263", "84_091_7263 EIN", "ssn is 2190 99999", "ssn:312\r\n099934", "SSN=312,099,931"),
    *(
        "mySSNis312099953",
        "SSN 78701-1234",
        "ssn#219099999x",
        "S.S.N. 219099999",
        "SS# 219099999",
        "ss no. 219099999",
    ),
    *("Soc. Sec. 219099999", "F.E.I.N. 840917263"),
]
AMBIGUOUS = [
    "219099999",
    "219 099 999",
    "219\u00ad099999",
    "2\u200b1\u200b9\u200b0\u200b9\u200b9\u200b9\u200b9\u200b9",
    "No. 219099999.",
    "INV-219099999",
    "021000021",
    *("312-099956", "212 099921", "3120 99958", "312) 099961", "312:099956", "312,099956", "31 2099 956"),
]


@pytest.mark.parametrize("text", [*SSN_OR_EIN, *NEAR_A_KEYWORD, *AMBIGUOUS])
def test_possible_tax_numbers_in_text_are_hidden(text: str) -> None:
    shown = masked({"message": f"It is {text}, they say."})["message"]
    assert HIDDEN in shown
    assert not any(digit.isdecimal() for digit in shown)


@pytest.mark.parametrize("text", [*SSN_OR_EIN, *NEAR_A_KEYWORD, "ssn $312,099,949.00"])
def test_grouping_or_a_nearby_keyword_makes_a_tax_number_certain(text: str) -> None:
    assert [number.is_certain for number in tax_numbers(text)] == [True]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_other_nine_digit_numbers_are_possible_tax_numbers(text: str) -> None:
    assert [number.is_certain for number in tax_numbers(text)] == [False]


@pytest.mark.parametrize(
    ("digits", "is_one"),
    [
        ("021000021", True),
        ("111000025", True),
        ("322271627", True),
        ("021000022", False),
        ("219099999", False),
    ],
)
def test_a_routing_number_has_a_district_and_a_check_digit(digits: str, is_one: bool) -> None:
    assert [number.is_routing_number for number in tax_numbers(digits)] == [is_one]


def test_a_routing_number_has_one_of_the_published_districts() -> None:
    """Government, the twelve districts of the Federal Reserve, thrift and electronic numbers, and traveler's checks."""
    published = {0, *range(1, 13), *range(21, 33), *range(61, 73), 80}
    found = set()
    for district in range(100):
        body = [*divmod(district, 10), 1, 0, 0, 0, 2, 5]
        weighted = sum(digit * weight for digit, weight in zip(body, (3, 7, 1, 3, 7, 1, 3, 7), strict=True))
        digits = "".join(map(str, [*body, -weighted % 10]))
        if any(number.is_routing_number for number in tax_numbers(digits)):
            found.add(district)
    assert found == published


@pytest.mark.parametrize(
    "text",
    [
        *("5125550142", "(512) 555-0142", "512-555-0142", "512.555.0142", "+1 512 555 0142", "5 1 2 5 5 5 0 1 4 2"),
        *("78701-1234", "tax office, Austin 78701-1234", "2026-05-01", "2026-11-22 9:15", "2026-11-22 1234567"),
        *("2026-11-22T10:27:31.1234567Z", "$219099999", "219099999.00", "$25,000,000.00", "123,456,789", "0.123456789"),
        *("tax 512-555-0142", "tax 123,456,789", "tax 2026-05-01", "tax 12/31/2026"),
        *("a123456789", "12345678", "192.168.100.200", "loan 3f2b8c1e-9d47-4a60-ab12-1234567abcde"),
    ],
)  # fmt: skip
def test_other_numbers_are_not_masked(text: str) -> None:
    assert masked_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("DOB: 4/19/1987", "dob=1987-04-19", "D.O.B. 04.19.87", "DOB 19870419", "DOB on file: 04191987"),
        *("date of birth is 19 April 1987", "Date_of_birth April 19, 1987", "born on Apr 19th, 1987"),
        *(
            "Birthday \u2013 4\u20111\u20111987",
            "birthDate: 19/04/1987",
            "Birth date does not match 1987/04/19",
        ),
    ],
)
def test_dates_of_birth_in_text_are_hidden(text: str) -> None:
    answer = {"error_description": [f"{text}, rejected"], f"{text}": 1}
    shown = [masked_text(f"{text}, rejected"), *masked(answer)["error_description"]]
    scrub(answer)
    for words in [*shown, *answer["error_description"]]:
        assert words.endswith(f"{HIDDEN}, rejected")
        assert not any(digit.isdecimal() for digit in words)
    assert not any(digit.isdecimal() for digit in "".join(answer))


@pytest.mark.parametrize(
    "text",
    [
        "Dobson paid on 4/19/2026",
        "newborn 2026-04-19",
        "DOB missing",
        "birth certificate, sent to us on 4/19/2026",
    ],
)
def test_other_dates_in_text_are_shown(text: str) -> None:
    answer = {"note": text}
    scrub(answer)
    assert masked_text(text) == answer["note"] == text


GAPS = [
    "</b>-",
    "<td n=1>",
    "-",
    " ",
    ".",
    "/",
    "\u2013",
    "\u00a0",
    "\u200b",
    "\u3164",
    "&#45;",
    "%2D",
    " - ",
    "\r\n",
    "_",
]


@given(
    st.from_regex(r"[0-9]{9}", fullmatch=True),
    st.sampled_from(GAPS),
    st.sampled_from(GAPS),
    st.sampled_from([(3, 5), (2, 2)]),
)
def test_standard_groups_are_certain_with_any_separators(
    digits: str, one: str, other: str, cuts: tuple[int, int]
) -> None:
    first, second = cuts
    middle = f"{digits[first:second]}{other}" if second > first else ""
    text = f"Gave {digits[:first]}{one}{middle}{digits[second:]} today"
    assert [(each.is_certain, each.digits) for each in tax_numbers(text)] == [(True, digits)]
    assert masked_text(text) == f"Gave {HIDDEN} today"


@given(
    st.from_regex(r"[0-9]{9}", fullmatch=True),
    st.sets(st.integers(1, 8), max_size=8),
    st.sampled_from(["SSN", "ssn:", "social security", "EIN #", "FEIN", "ITIN", "tax id", "Taxpayer number"]),
    st.sampled_from([" ", "*", "\u200b", "<i>", "&nbsp;", "%20", "\n"]),
)
def test_any_grouping_next_to_a_keyword_is_certain(digits: str, cuts: set[int], word: str, gap: str) -> None:
    text = "".join(gap * (index in cuts) + digit for index, digit in enumerate(digits))
    found = list(tax_numbers(f"{word} {text}"))
    assert [(each.is_certain, each.digits) for each in found] == [(True, digits)]


@given(
    st.decimals(0, 99_999_999, places=2).map("${:,}".format)
    | st.decimals(0, 99_999_999, places=2).map("{:,}".format)
    | st.from_regex(r"\(?[2-9][0-9]{2}\)?[ .-][2-9][0-9]{2}[ .-][0-9]{4}", fullmatch=True)
    | st.from_regex(r"[0-9]{5}[-\u2013][0-9]{4}", fullmatch=True)
    | st.dates(date(1900, 1, 1), date(2099, 12, 31)).map(str)
    | st.dates(date(1900, 1, 1), date(2099, 12, 31)).map("{0:%m/%d/%Y}".format)
    | st.dates(date(1900, 1, 1), date(2099, 12, 31)).map("{0:%B %d, %Y} 9:30".format)
    | st.uuids().map(str),
    st.sampled_from(["", "Paid ", "tax of ", "Room 7, "]),
)
def test_amounts_phones_zip_codes_dates_and_ids_are_not_tax_numbers(text: str, before: str) -> None:
    assert list(tax_numbers(f"{before}{text}")) == []


@given(st.uuids())
def test_uuids_are_not_masked(uuid: UUID) -> None:
    assert masked_text(f"EIN of {uuid}, tax of {uuid.hex}") == f"EIN of {uuid}, tax of {uuid.hex}"


def test_a_nine_digit_json_number_is_hidden_unless_it_is_money() -> None:
    answer = {
        "note": 219099999,
        "rows": [Decimal(219099999)],
        "amount": 219099999,
        "fee": Decimal("219099999.00"),
    }
    assert masked(answer) == answer | {"note": HIDDEN, "rows": [HIDDEN]}


@pytest.mark.parametrize(
    "text",
    [
        r'cut off: {"\u0073sn": "AbC/9=", "dob": "1987/04/19"',
        r'{"body": "{\"ssn\": \"AbC/9=\", \"DOB\":\"1987/04/19\"}"}',
        r'{"note": "219\u002d09\u002d9999"}',
        '{"ein": 840917263, "x": 1}',
    ],
)
def test_json_inside_text_is_masked_by_field(text: str) -> None:
    shown = masked_text(text)
    assert HIDDEN in shown
    assert not any(secret in shown for secret in ("AbC", "1987", "9999", "840917263"))


def test_scrubbing_hides_text_but_not_references() -> None:
    unchanged = {
        "ach_id": "219099999",
        "borrower_bank_account_uuid": "84-0917263",
        "phone": "5125550142",
        "created_at": "2026-11-22 10:27:31 UTC",
        "routing": "021000021",
        "address": {"zip": "787011234", "line_1": "Routing 021000021"},
    }
    answer = unchanged | {
        "error_description": "SSN 219-09-9999",
        "details": ["EIN 219099999", {"219-09-9999": 1}],
    }
    hidden = {"error_description": f"SSN {HIDDEN}", "details": [f"EIN {HIDDEN}", {HIDDEN: 1}]}
    assert codec.parse(json.dumps([answer, {"x": 1}])) == [unchanged | hidden, {"x": 1}]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("apr", "14.9200001"),
        ("amount", "150000000"),
        ("credit_limit", "123,456,789.00"),
        ("rate", "-0.123456789"),
    ],
)
def test_numeric_strings_in_number_fields_are_not_scrubbed(name: str, value: str) -> None:
    answer = {name: value, "note": "219-09-9999", "rows": [{name: value}]}
    scrub(answer)
    assert answer == {name: value, "note": HIDDEN, "rows": [{name: value}]}


@pytest.mark.parametrize(
    "name", ["confirmation", "check_no", "checkNumber", "memo", "note", "code", "reference_2"]
)
@pytest.mark.parametrize("digits", ["219099999", "840917263", "021000021", "000000000"])
def test_bare_digits_of_an_answer_are_shown_unless_something_names_them(name: str, digits: str) -> None:
    shown = {name: digits, "text": f"Paid by check {digits}.", "rows": [digits, {name: [f"No. {digits}"]}]}
    assert codec.parse(json.dumps(shown)) == shown
    written = f"{digits[:3]}-{digits[3:5]}-{digits[5:]}", f"{digits[:2]}-{digits[2:]}"
    named = f"SSN {digits}", f"EIN: {digits}", f"{digits} is the TIN", f'{{"ssn": "{digits}"}}'
    for value in (*written, *named):
        assert digits[-4:] not in str(codec.parse(json.dumps({name: value, "rows": [value]})))
    for field in ("ssn", "EIN", "vendor_tin", "taxId"):
        assert codec.parse(json.dumps({name: {field: digits}})) == {name: {field: HIDDEN}}


def test_a_field_with_an_escaped_name_is_scrubbed() -> None:
    assert codec.parse(r'{"\u0073\u0073n": "219-09-9999", "x": 1}') == {"ssn": HIDDEN, "x": 1}


def test_a_nine_digit_bank_reference_is_not_masked() -> None:
    assert masked({"ach_id": "123456789"}) == {"ach_id": "123456789"}
    assert masked({"id": "123456789"}) == {"id": HIDDEN}, "staff type into a field of this name"


def test_values_nested_too_deep_are_cut_off() -> None:
    deep = json.loads("[" * 500 + "]" * 500)

    assert "[nested too deep]" in json.dumps(masked(deep))


def test_scrubbing_works_at_any_depth() -> None:
    deep: Any = json.loads('{"a":' * 900 + '{"ssn": "123456789"}' + "}" * 900)
    scrub(deep)

    for _ in range(900):
        deep = deep["a"]
    assert deep == {"ssn": HIDDEN}


@pytest.mark.slow
@given(
    st.recursive(
        st.sampled_from(["123-45-6789", "fine"]) | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["ssn", "Dob", "EIN", "x"]), inner),
    )
)
def test_masking_does_not_change_its_input(value: Any) -> None:
    before = json.dumps(value)

    assert "45-6789" not in json.dumps(masked(value))
    assert json.dumps(value) == before


def test_the_repr_of_sensitive_text_hides_it() -> None:
    secret = Sensitive("3f2b8c1e")

    assert secret == "3f2b8c1e"
    assert f"{secret!r} {[secret]}" == "[hidden] [[hidden]]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"ssn": "[hidden]", "a": 1}', '{"ssn": "[hidden]", "a": 1}'),
        ('"ssn": "[odd] 41"}', '"ssn": "[hidden]"}'),
        ('"ssn": 4128, "dob": null', '"ssn": [hidden], "dob": null'),
        ('"dob": "1980/01/0', '"dob": "[hidden]'),
        (r"{\"dob\": \"1980/01/01\"}", r"{\"dob\": \"[hidden]\"}"),
    ],
)
def test_a_sensitive_field_inside_text_is_hidden_once(text: str, shown: str) -> None:
    assert masked_text(text) == shown
    assert masked_text(shown) == shown
