"""The limits of the lending service, and the messages for invalid input."""

# ruff: noqa: E501 - the example tables keep each sentence on one line.

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import phonenumbers
import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from servicing import rules


class Address(NamedTuple):
    """A valid address."""

    line_1: str | None = "401 Congress Ave"
    line_2: str | None = "Floor 3"
    line_3: str | None = None
    zip: str | None = "78701"
    city: str | None = "Austin"
    state: str | None = "TX"
    country: str | None = "UNITED STATES"


# Phone numbers


@pytest.mark.parametrize(
    "text",
    [
        "(512) 555-0143", "512-555-0143", "512.555.0143", "512/555/0143", "5125550143", " 512 555 0143 ",
        "1-512-555-0143", "1 (512) 555-0143", "+1 512 555 0143", "(+1) 512 555 0143", "+1 (512) 555-0143",
        "011 1 512 555 0143", "512\u00a0555\u20110143", "\u202a+1\u202c512\u2013555\u20130143\u200b",
        "５１２－５５５－０１４３", "＋１（５１２）５５５\u3000０１４３", "٥١٢ ٥٥٥ ٠١٤٣",
    ],
)  # fmt: skip
def test_a_us_number_in_any_format_becomes_ten_digits(text: str) -> None:
    assert rules.phone_problems(text) == []
    assert rules.normalize_phone(text) == "5125550143"


@pytest.mark.parametrize(
    "number", ["787 721 1234", "671 646 1234", "340 774 1234", "684 633 1234", "670 234 1234"]
)
def test_us_territory_numbers_are_accepted(number: str) -> None:
    assert rules.phone_problems(number) == []


def test_toll_free_numbers_are_accepted() -> None:
    assert rules.normalize_phone("1-800-555-1234") == "8005551234"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Enter a phone number."),
        ("  ", "Enter a phone number."),
        ("5", "Enter all 10 digits (1 entered)."),
        ("512 555 014", "Enter all 10 digits (9 entered)."),
        ("512 555 01433", "Enter all 10 digits (11 entered)."),
        ("1 512 555 014", "Enter all 10 digits (9 entered after the country code 1)."),
        ("1234567890", "Enter all 10 digits (9 entered after the country code 1)."),
        ("012 555 0143", "An area code can’t start with 0 or 1. Check “012”."),
        ("1 123 555 0143", "An area code can’t start with 0 or 1. Check “123”."),
        ("512 155 0143", "The three digits after the area code can’t start with 0 or 1. Check “155”."),
        ("999 999 9999", "No area code is like “999”. Check each digit."),
        ("(911) 555-0143", "No area code is like “911”. Check each digit."),
        ("541-911-0143", "The three digits after the area code can’t be “911”. Check each digit."),
        ("876 200 1234", "Only US numbers are accepted (this one: Jamaica)."),
        ("416 967 1111", "Only US numbers are accepted (this one: Canada)."),
        ("876 926 1234", "Only US numbers are accepted (this one: Jamaica)."),
        ("+44 20 7946 0958", "Only US numbers are accepted (this one: United Kingdom)."),
        ("011 49 30 901820", "Only US numbers are accepted (this one: Germany)."),
        ("+800 1234 5678", "Only US numbers are accepted (this one: outside the US)."),
        ("+", "Enter a US number; the country code isn’t +1."),
        ("512 555 0143 ext. 4", "An extension isn’t allowed; leave out “ext. 4”."),
        ("512 555 0143, extension 40", "An extension isn’t allowed; leave out “extension 40”."),
        ("512-555-0143x12", "An extension isn’t allowed; leave out “x12”."),
        ("512-555-0143 #9", "An extension isn’t allowed; leave out “#9”."),
    ],
)  # fmt: skip
def test_an_invalid_phone_number_is_explained(text: str, reason: str) -> None:
    assert rules.phone_problems(text) == [reason]


def test_all_problems_of_a_phone_number_are_reported() -> None:
    assert rules.phone_problems("512-55S-O143 x2") == [
        "An extension isn’t allowed; leave out “x2”.",
        "“S” at position 7 can’t be part of a phone number. Enter digits only.",
        "“O” at position 9 can’t be part of a phone number. Enter digits only.",
        "Enter all 10 digits (8 entered).",
    ]


def test_two_phone_numbers_in_one_field_are_invalid() -> None:
    assert rules.phone_problems("512 555 0143 / 512 555 0144") == ["Enter all 10 digits (20 entered)."]


def test_normalizing_an_invalid_phone_number_raises_all_problems() -> None:
    with pytest.raises(ValueError, match=r"^“o” at position 9 can’t .+ Enter all 10 digits \(9 entered\)\.$"):
        rules.normalize_phone("512-555-o143")


US_REGIONS = ("US", "PR", "GU", "VI", "AS", "MP")


@given(st.from_regex(r"[2-9][0-9]{2}[2-9][0-9]{6}", fullmatch=True))
def test_a_number_on_the_list_has_no_problem_and_another_one_at_least_a_warning(digits: str) -> None:
    number = phonenumbers.parse(f"+1{digits}")
    is_us = any(phonenumbers.is_valid_number_for_region(number, region) for region in US_REGIONS)
    is_service_code = digits[4:6] == "11" and digits[0] != "8"
    if is_us and not is_service_code:
        assert rules.phone_problems(digits) == rules.phone_warnings(digits) == []
    else:
        assert rules.phone_problems(digits) or rules.phone_warnings(digits)


@pytest.mark.parametrize("text", ["(624) 305-1111", "+1 227 555 0143", "684 200 0000"])
def test_a_possible_number_that_is_not_on_the_list_is_a_warning(text: str) -> None:
    assert rules.phone_problems(text) == []
    if text != "+1 227 555 0143":
        digits = rules.normalize_phone(text)
        assert rules.phone_warnings(text) == [
            f"({digits[:3]}) {digits[3:6]}-{digits[6:]} isn’t on our list of US numbers. Check each digit."
        ]


@pytest.mark.parametrize("text", ["1-800-411-7246", "888 911 0143"])
def test_toll_free_numbers_may_have_a_service_code(text: str) -> None:
    assert rules.phone_problems(text) == []


@given(st.text(alphabet="0123456789+-() .x#ext٣ｘ\u200bé", max_size=30))
def test_an_accepted_phone_number_normalizes_to_ten_digits(text: str) -> None:
    if not rules.phone_problems(text):
        assert re.fullmatch("[2-9][0-9]{9}", rules.normalize_phone(text))


# Addresses


@pytest.mark.parametrize(
    ("state", "zip_code"),
    [
        ("TX", "78701"), ("TX", "78701-1234"), ("NY", "10001"), ("CA", "94043"), ("DC", "20001"), ("PR", "00901"),
        ("GU", "96910"), ("VI", "00801"), ("AS", "96799"), ("MP", "96950"), ("AA", "34001"), ("AE", "09012"),
        ("AP", "96204"), ("FM", "96941"), ("NY", "06390"), ("CT", "06001"),
    ],
)  # fmt: skip
def test_state_territory_and_military_addresses_are_accepted(state: str, zip_code: str) -> None:
    assert rules.address_problems(Address(state=state, zip=zip_code)) == {}


@pytest.mark.parametrize(
    ("address", "field", "reason"),
    [
        (Address(line_1=""), "line_1", "Enter the street address."),
        (Address(line_1=None), "line_1", "Enter the street address."),
        (Address(line_1="1 Main\rSt"), "line_1", "A line break at position 7 of address line 1 isn’t allowed. Delete it."),
        (Address(line_2="x" * 101), "line_2", "Address line 2 has 101 characters; at most 100 are accepted."),
        (Address(line_3="a\x7f"), "line_3", "An invisible character (control character) at position 2 of address line 3 isn’t allowed. Delete it."),
        (Address(city=" "), "city", "Enter the city."),
        (Address(city="Aus\u202etin"), "city", "An invisible character (right-to-left override) at position 4 of the city isn’t allowed. Delete it."),
        (Address(state=""), "state", "Choose the state."),
        (Address(state=None), "state", "Choose the state."),
        (Address(state="ZZ"), "state", "“ZZ” is not a US state or territory. Enter its name or its code, such as “TX”."),
        (Address(state="tx"), "state", "Write Texas as its two capital letters, “TX”."),
        (Address(state="Texas "), "state", "Write Texas as its two capital letters, “TX”."),
        (Address(zip=""), "zip", "Enter the ZIP code."),
        (Address(zip=None), "zip", "Enter the ZIP code."),
        (Address(zip="7870"), "zip", "“7870” isn’t a ZIP code. Enter 5 digits, or 9 as in 78701-1234."),
        (Address(zip="7870112345"), "zip", "“7870112345” isn’t a ZIP code. Enter 5 digits, or 9 as in 78701-1234."),
        (Address(zip="787-01-1234"), "zip", "“787-01-1234” isn’t a ZIP code. Enter 5 digits, or 9 as in 78701-1234."),
        (Address(zip="７８７０１"), "zip", "“７８７０１” isn’t a ZIP code. Enter 5 digits, or 9 as in 78701-1234."),
        (Address(state="NY", zip="94043"), "zip", "ZIP code 94043 is not in New York: it belongs to California (CA). Correct the ZIP or the state."),
        (Address(zip="00000"), "zip", "ZIP code 00000 is not in Texas: no state uses it. Correct the ZIP or the state."),
        (Address(country=""), "country", "Enter the country, as “UNITED STATES”."),
        (Address(country=None), "country", "Enter the country, as “UNITED STATES”."),
        (Address(country="US"), "country", "The country must be written “UNITED STATES”, not “US”; only US addresses are accepted."),
    ],
)  # fmt: skip
def test_an_invalid_address_is_explained_by_field(address: Address, field: str, reason: str) -> None:
    assert rules.address_problems(address) == {field: [reason]}


# Real ZIP codes of towns that get their mail from a post office across the state line.
CROSS_STATE_ZIP_CODES = [
    ("TX", "73949"), ("TN", "42223"), ("CA", "97635"), ("AZ", "84536"), ("LA", "71749"), ("TX", "73949-0001"),
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "78701-1234",
        "787011234",
        "78701 1234",
        " 78701 - 1234 ",
        "78701–1234",
        "78701\u00a01234",
        "78701−1234",
    ],
)
def test_nine_digits_are_accepted_with_a_dash_a_blank_or_nothing(text: str) -> None:
    assert rules.normalize_zip(text) == "78701-1234"
    assert rules.address_problems(Address(zip=text)) == {}


@pytest.mark.parametrize("text", ["78701", " 78701\n"])
def test_five_digits_stay_five(text: str) -> None:
    assert rules.normalize_zip(text) == "78701"


@pytest.mark.parametrize(
    "text", ["", "7870", "7870-11234", "787-01-1234", "78701--1234", "78701-123", "TX 78701"]
)
def test_any_other_text_is_no_zip_code(text: str) -> None:
    assert rules.normalize_zip(text) == text
    assert "zip" in rules.address_problems(Address(zip=text))


@pytest.mark.parametrize(("state", "zip_code"), CROSS_STATE_ZIP_CODES)
def test_a_zip_code_of_a_bordering_state_is_a_warning(state: str, zip_code: str) -> None:
    address = Address(state=state, zip=zip_code)
    assert rules.address_problems(address) == {}
    assert list(rules.address_warnings(address)) == ["zip"]


def test_a_zip_code_warning_names_its_state() -> None:
    assert rules.address_warnings(Address(state="TX", zip="73949")) == {
        "zip": [
            "ZIP code 73949 belongs to Oklahoma (OK), which borders Texas. "
            "Check that the ZIP and the state are right."
        ]
    }


@pytest.mark.parametrize(
    ("state", "zip_code"),
    [
        ("TX", "78701"),
        ("TX", "94043"),
        ("TX", "7870"),
        ("TX", ""),
        ("ZZ", "73949"),
        ("", "73949"),
        ("HI", "99501"),
    ],
)
def test_only_zip_codes_of_bordering_states_have_warnings(state: str, zip_code: str) -> None:
    assert rules.address_warnings(Address(state=state, zip=zip_code)) == {}


def test_a_zip_code_is_not_compared_with_an_unknown_state() -> None:
    assert list(rules.address_problems(Address(state="ZZ", zip="94043"))) == ["state"]


def test_all_required_fields_of_an_empty_address_are_reported() -> None:
    problems = rules.address_problems(Address("", "", "", "", "", "", ""))
    assert list(problems) == ["line_1", "city", "state", "zip", "country"]


def test_the_accepted_country_is_configurable() -> None:
    assert rules.address_problems(Address(country="US"), country="US") == {}
    assert rules.address_problems(Address(), country="US") == {
        "country": ["The country must be written “US”, not “UNITED STATES”; only US addresses are accepted."]
    }


def test_states_are_ordered_by_name() -> None:
    assert len(rules.US_STATES) == 62
    assert rules.US_STATES["DC"] == "District of Columbia"
    assert {"TX", "PR", "GU", "VI", "AS", "MP", "AA", "AE", "AP"} <= rules.US_STATES.keys()
    assert list(rules.US_STATES.values()) == sorted(rules.US_STATES.values())


# Dates


@pytest.mark.parametrize(
    ("born", "comes_of_age"),
    [
        (date(2008, 6, 14), date(2026, 6, 14)),
        (date(2008, 12, 31), date(2026, 12, 31)),
        (date(2009, 1, 1), date(2027, 1, 1)),
        (date(2008, 2, 28), date(2026, 2, 28)),
        (date(2008, 2, 29), date(2026, 3, 1)),
        (date(2008, 3, 1), date(2026, 3, 1)),
        (date(2010, 3, 1), date(2028, 3, 1)),
        (date(1900, 1, 1), date(1918, 1, 1)),
    ],
)
def test_a_person_is_of_age_on_the_18th_birthday(born: date, comes_of_age: date) -> None:
    assert rules.birth_date_problems(born, today=comes_of_age) == []
    assert rules.birth_date_problems(born, today=comes_of_age - timedelta(days=1)) == [
        "This person is 17; the service requires 18 or older. Check the date."
    ]


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(0, 40_000))
def test_only_people_18_or_older_are_accepted(born: date, days: int) -> None:
    eighteen = date(
        born.year + 18, *((3, 1) if (born.month, born.day) == (2, 29) else (born.month, born.day))
    )
    today = born + timedelta(days=days)
    assert (not rules.birth_date_problems(born, today=today)) == (today >= eighteen)


@pytest.mark.parametrize(
    ("born", "reason"),
    [
        (date(2026, 6, 15), "The date of birth is in the future. Check the year."),
        (date(2062, 6, 14), "The date of birth is in the future. Check the year."),
        (date(1899, 12, 31), "The date of birth is before 1900; check the year."),
        (date(195, 6, 14), "The date of birth is before 1900; check the year."),
        (date(2026, 6, 14), "This person is 0; the service requires 18 or older. Check the date."),
    ],
)
def test_an_impossible_date_of_birth_is_explained(born: date, reason: str) -> None:
    assert rules.birth_date_problems(born, today=date(2026, 6, 14)) == [reason]


def test_a_business_may_be_incorporated_today_but_not_tomorrow() -> None:
    today = date(2026, 6, 14)
    assert rules.incorporation_date_problems(today, today=today) == []
    assert rules.incorporation_date_problems(today + timedelta(days=1), today=today) == [
        "The incorporation date is in the future. Enter the date on the formation document."
    ]


@pytest.mark.parametrize(
    ("zone", "today"),
    [
        ("US/Pacific", date(2026, 6, 13)),
        ("America/New_York", date(2026, 6, 14)),
        ("Pacific/Kiritimati", date(2026, 6, 14)),
        ("Pacific/Honolulu", date(2026, 6, 13)),
    ],
)
def test_today_is_the_date_in_the_given_zone(zone: str, today: date) -> None:
    with time_machine.travel(datetime(2026, 6, 14, 5, 30, tzinfo=UTC), tick=False):
        assert rules.today_in(zone) == today


# EIN, SSN


@pytest.mark.parametrize(
    "text", ["123456789", "12-3456789", "123-45-6789", " 123 45 6789 ", "12\u20113456789", "000-00-0000"]
)
def test_nine_digits_are_accepted_with_and_without_dashes_and_spaces(text: str) -> None:
    assert rules.ein_problems(text) == rules.ssn_problems(text) == []
    assert re.fullmatch("[0-9]{9}", rules.nine_digits(text))


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("", ["Enter the SSN."]),
        (" - ", ["Enter the SSN."]),
        ("1", ["Enter all 9 digits (1 entered)."]),
        ("123-45-678", ["Enter all 9 digits (8 entered)."]),
        ("123-45-67890", ["Enter all 9 digits (10 entered)."]),
        ("123-45-678O", ["Letters aren’t allowed in the SSN.", "Enter all 9 digits (8 entered)."]),
        ("123-45-6789A", ["Letters aren’t allowed in the SSN."]),
        ("123_45_6789", ["The SSN can have only digits, dashes and spaces."]),
        ("１２３４５６７８９", ["The SSN can have only digits, dashes and spaces.", "Enter all 9 digits (0 entered)."]),
    ],
)  # fmt: skip
def test_ssn_problems_give_counts_but_no_digits(text: str, reasons: list[str]) -> None:
    assert rules.ssn_problems(text) == reasons


def test_ein_problems_name_the_ein() -> None:
    assert rules.ein_problems("x") == [
        "Letters aren’t allowed in the EIN.",
        "Enter all 9 digits (0 entered).",
    ]


def test_the_nine_digits_error_does_not_repeat_the_input() -> None:
    with pytest.raises(ValueError, match=r"^Enter all 9 digits \(10 entered\)\.$"):
        rules.nine_digits("123-45-67890")


@given(st.text(alphabet="234567 -AQ#é", min_size=3, max_size=14))
def test_no_part_of_an_ein_or_ssn_appears_in_a_problem(text: str) -> None:
    problems = " ".join(rules.ein_problems(text) + rules.ssn_problems(text))
    assert not re.search(r"[2-7]{2}|#|é|Q", problems)


# Email, citizenship, amounts, choices


@pytest.mark.parametrize(
    "email",
    ["ap@northwind.example", "first.last+tag@mail.northwind.co.uk", "o'neil@example.com", "josé@exämple.com"],
)
def test_common_email_addresses_are_accepted(email: str) -> None:
    assert rules.email_problems(email) == []


@pytest.mark.parametrize(
    ("email", "reason"),
    [
        ("", "Enter an email address."),
        (" ", "Enter an email address."),
        ("ap", "Enter a full email address, like name@example.com."),
        ("@example.com", "Enter a full email address, like name@example.com."),
        ("ap@", "Enter a full email address, like name@example.com."),
        ("a@p@example.com", "Enter a full email address, like name@example.com."),
        ("ap@example", "Enter a full email address, like name@example.com."),
        ("ap@example..com", "Enter a full email address, like name@example.com."),
        ("ap@example.com.", "Enter a full email address, like name@example.com."),
        ("a p@example.com", "A space at position 2 can’t be part of an email address. Delete it."),
        ("ap@example.com\n", "A line break at position 15 can’t be part of an email address. Delete it."),
        ("ap@example,com", "“,” at position 11 can’t be part of an email address. Delete it."),
        (f"{'a' * 243}@example.com", "The email address has 255 characters; at most 254 are accepted."),
    ],
)  # fmt: skip
def test_an_invalid_email_address_is_explained(email: str, reason: str) -> None:
    assert rules.email_problems(email) == [reason]


@pytest.mark.parametrize(
    ("code", "reasons"),
    [
        ("US", []),
        ("XK", []),
        ("", ["Choose the country of citizenship."]),
        ("us", ["Write United States as its two capital letters, “US”."]),
        ("united kingdom", ["Write United Kingdom as its two capital letters, “GB”."]),
        ("USA", ["“USA” is not a country. Enter its name or its code, such as “US”."]),
        ("Q", ["“Q” is not a country. Enter its name or its code, such as “US”."]),
    ],
)
def test_citizenship_must_be_a_two_letter_country_code(code: str, reasons: list[str]) -> None:
    assert rules.citizenship_problems(code) == reasons


def test_countries_are_ordered_by_name() -> None:
    names = list(rules.COUNTRIES.values())
    assert len(names) == len(set(names)) == 250
    assert all(re.fullmatch("[A-Z]{2}", code) for code in rules.COUNTRIES)
    assert (
        names.index("Albania")
        < names.index("Åland Islands")
        < names.index("Bahamas")
        < names.index("Zimbabwe")
    )


@pytest.mark.parametrize("amount", ["0.01", "25000", "25000.5", "10.50", "1.500", "1E+3", "999999999.99"])
def test_amounts_in_dollars_and_cents_are_accepted(amount: str) -> None:
    assert rules.amount_problems(Decimal(amount)) == []


@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        ("0", "The amount must be greater than zero."),
        ("-0.00", "The amount must be greater than zero."),
        ("-1", "The amount must be greater than zero."),
        ("10.005", "The amount can have at most two decimal places: dollars and cents."),
        ("1E-2000000", "The amount can have at most two decimal places: dollars and cents."),
        ("1000000000", "The amount can be at most $999,999,999.99."),
        ("1E+2000000", "The amount can be at most $999,999,999.99."),
        ("NaN", "The amount must be a number."),
        ("sNaN", "The amount must be a number."),
        ("Infinity", "The amount must be a number."),
    ],
)
def test_an_invalid_amount_is_explained(amount: str, reason: str) -> None:
    assert rules.amount_problems(Decimal(amount)) == [reason]


def test_every_entity_type_has_a_name_and_a_meaning() -> None:
    assert list(rules.ENTITIES) == list(rules.ENTITY_MEANINGS)
    assert rules.ENTITIES["LIMITED_LIABILITY_COMPANY"] == "Limited liability company"
    assert list(rules.TITLES) == ["OWNER", "DIRECTOR", "BENEFICIARY"]
