"""The service's own checks: required fields and the limits of sections 4 and 8.

They are independent of the client's rules on purpose. Each check takes a JSON value and returns the value to store,
or raises :class:`Invalid`; all problems of a body are reported together.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

import phonenumbers

from servicing.crypto import FieldCipher
from servicing.errors import Unreadable
from servicing.sandbox import shapes
from servicing.sandbox.wire import JSON
from servicing.sandbox.zip_codes import ZIP_PREFIXES, is_plausible

Check = Callable[[JSON], Any]

ENTITIES = (
    "SOLE_PROPRIETORSHIP",
    "GENERAL_PARTNERSHIP",
    "LIMITED_PARTNERSHIP",
    "CORPORATION",
    "LIMITED_LIABILITY_COMPANY",
    "LIMITED_LIABILITY_PARTNERSHIP",
)
TITLES = ("OWNER", "DIRECTOR", "BENEFICIARY")
ADULT_YEARS = 18
MAX_OFFSET = 10**9
MAX_REPORT_BYTES = 64 * 1024 * 1024
PHONE_REGIONS = ("US", "PR", "GU", "VI", "AS", "MP")
PHONE_FORM = re.compile("(?!555)[2-9](?!11|9)[0-9]{2}[2-9][0-9]{6}")

# The pattern in the interface takes exponential time; this one accepts the same strings in linear time.
NAME = re.compile(r"[A-z]+(?:(?:[,.] ?| |['’-])[A-z]+)*(?:[,.] ?| |['’-])?")
EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(?:\.[^@\s.]+)+")


class Invalid(Exception):
    """A rejected body, with the path of the field and the reason for each problem."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path} {reason}".strip() for path, reason in problems))
        self.problems = problems

    @classmethod
    def because(cls, reason: str) -> "Invalid":
        """One problem with the value itself."""
        return cls([("", reason)])


# Whole bodies


def commercial_user(body: JSON, *, today: date, cipher: FieldCipher) -> dict[str, Any]:
    """A new business (section 4.2)."""
    return fields(
        body,
        required={
            "address": address,
            "first_name": text,
            "email": email,
            "entity": partial(one_of, ENTITIES),
            "EIN": partial(encrypted_digits, cipher),
            "phone": phone,
            "user_type": business,
            "key_people": partial(key_people, today=today, cipher=cipher),
        },
        optional={
            "start_date": partial(incorporation_date, today=today),
            "asset_report_json_gzip": report,
        },
    )


def new_key_person(body: JSON, *, today: date, cipher: FieldCipher) -> dict[str, Any]:
    """A key person of a new business (section 4.2). The name pattern applies only to updates."""
    return fields(
        body,
        required={
            "first_name": text,
            "last_name": text,
            "title": partial(one_of, TITLES),
            "citizenship": citizenship,
            "email": email,
            "phone": phone,
            "address": person_address,
        },
        optional={"middle_name": nullable(text), **_identity(today, cipher)},
    )


def user_changes(body: JSON, *, today: date, cipher: FieldCipher) -> dict[str, Any]:
    """Changes to a user (section 4.3); every field is optional."""
    return fields(
        body,
        optional={
            "address": address,
            "first_name": name,
            "middle_name": nullable(name),
            "last_name": nullable(name),
            "email": email,
            "phone": phone,
            "credit_report_xml_gzip": report,
            "asset_report_json_gzip": report,
            **_identity(today, cipher),
        },
    )


def key_person_changes(body: JSON, *, today: date, cipher: FieldCipher) -> dict[str, Any]:
    """Changes to a key person (section 4.4); every field is optional."""
    return fields(
        body,
        optional={
            "address": person_address,
            "first_name": name,
            "middle_name": nullable(name),
            "last_name": name,
            "email": email,
            "phone": phone,
            "title": partial(one_of, TITLES),
            **_identity(today, cipher),
        },
    )


def loan_application(body: JSON) -> dict[str, Any]:
    """A loan application (section 4.1)."""
    return fields(body, required={"amount": amount})


def message_filters(query: Mapping[str, str], body: JSON, *, largest_page: int) -> dict[str, Any]:
    """Filters of the message list (section 4.10) from the query and the body, which takes precedence."""
    if not isinstance(body, dict | None):
        raise Invalid.because("body must be an object")
    return fields(
        {**query, **(body or {})},
        optional={
            "start_date": iso_date,
            "end_date": iso_date,
            "event": text,
            "limit": partial(whole_number, 1, largest_page),
            "offset": partial(whole_number, 0, MAX_OFFSET),
        },
    )


def _identity(today: date, cipher: FieldCipher) -> dict[str, Check]:
    return {"dob": partial(birth_date, today=today), "ssn": partial(encrypted_digits, cipher)}


def fields(
    body: JSON, *, required: Mapping[str, Check] | None = None, optional: Mapping[str, Check] | None = None
) -> dict[str, Any]:
    """The checked values of an object; unknown fields are ignored."""
    if not isinstance(body, dict):
        raise Invalid.because("must be an object")
    required = required or {}
    clean: dict[str, Any] = {}
    problems = [(name, "is required") for name in required if body.get(name) is None]
    for name, check in {**required, **(optional or {})}.items():
        if name not in body or (name in required and body[name] is None):
            continue
        try:
            clean[name] = check(body[name])
        except Invalid as invalid:
            problems += _prefix_paths(name, invalid)
    if problems:
        raise Invalid(problems)
    return clean


def _prefix_paths(name: str, invalid: Invalid) -> list[tuple[str, str]]:
    return [(f"{name}.{path}" if path else name, reason) for path, reason in invalid.problems]


# Single values


def nullable(check: Check) -> Check:
    """The same check, but null is valid."""
    return lambda value: None if value is None else check(value)


def text(value: JSON) -> str:
    """Text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise Invalid.because("must be a text that is not empty")
    return value


def name(value: JSON) -> str:
    """A name that matches the pattern for updates (section 8)."""
    if not NAME.fullmatch(text(value)):
        raise Invalid.because("must match the name pattern")
    return str(value)


def email(value: JSON) -> str:
    """An email address."""
    if not EMAIL.fullmatch(text(value)):
        raise Invalid.because("must be an email address")
    return str(value)


def one_of(allowed: tuple[str, ...], value: JSON) -> str:
    """A value of an enumeration."""
    if value not in allowed:
        raise Invalid.because(f"must be one of {', '.join(allowed)}")
    return str(value)


def business(value: JSON) -> str:
    """The user type of section 4.2."""
    if text(value).lower() != "business":
        raise Invalid.because("must be business")
    return str(value)


def citizenship(value: JSON) -> str:
    """A two-letter country code."""
    if not re.fullmatch("[A-Z]{2}", text(value)):
        raise Invalid.because("must be a two-letter country code")
    return str(value)


def phone(value: JSON) -> str:
    """Ten digits that are a valid phone number of the United States or a territory."""
    if not re.fullmatch("[0-9]{10}", text(value)):
        raise Invalid.because("must be a phone number of 10 digits")
    region = phonenumbers.region_code_for_number(phonenumbers.parse(f"+1{value}"))
    # Area codes newer than the library's list have no region.
    if region not in (*PHONE_REGIONS, None) or not PHONE_FORM.fullmatch(str(value)):
        raise Invalid.because("must be a valid US phone number")
    return str(value)


def address(value: JSON) -> dict[str, Any]:
    """A valid address of the United States, territories included."""
    clean = fields(
        value,
        required={"line_1": text, "zip": zip_code, "city": text, "state": state, "country": country},
        optional={"line_2": nullable(str_or_empty), "line_3": nullable(str_or_empty)},
    )
    if not is_plausible(clean["state"], clean["zip"]):
        raise Invalid([("zip", f"{clean['zip']} is not in {clean['state']}")])
    return shapes.address(**clean)


def person_address(value: JSON) -> dict[str, Any]:
    """An address of a key person, without empty lines."""
    return {line: words for line, words in address(value).items() if words is not None}


def str_or_empty(value: JSON) -> str | None:
    """An address line that may be empty; an empty one becomes null."""
    if not isinstance(value, str):
        raise Invalid.because("must be a text")
    return value or None


def zip_code(value: JSON) -> str:
    """Five or nine digits."""
    if not re.fullmatch("[0-9]{5}(-[0-9]{4})?", text(value)):
        raise Invalid.because("must be a ZIP code of 5 or 9 digits")
    return str(value)


def state(value: JSON) -> str:
    """The two-letter code of a state, district or territory."""
    if text(value) not in ZIP_PREFIXES:
        raise Invalid.because("must be a two-letter US state or territory")
    return str(value)


def country(value: JSON) -> str:
    """The country by its full name."""
    if text(value).upper() not in ("UNITED STATES", "UNITED STATES OF AMERICA"):
        raise Invalid.because("must be UNITED STATES")
    return str(value)


def iso_date(value: JSON) -> str:
    """A date, YYYY-MM-DD."""
    _calendar_day(value, r"(\d{4})-(\d\d)-(\d\d)", "YYYY-MM-DD")
    return str(value)


def incorporation_date(value: JSON, *, today: date) -> str:
    """A date, YYYY-MM-DD, that is not in the future."""
    if date.fromisoformat(iso_date(value)) > today:
        raise Invalid.because("must not be in the future")
    return str(value)


def birth_date(value: JSON, *, today: date) -> str:
    """A date, YYYY/MM/DD, at least 18 years ago."""
    born = _calendar_day(value, r"(\d{4})/(\d\d)/(\d\d)", "YYYY/MM/DD")
    if (today.year - ADULT_YEARS, today.month, today.day) < (born.year, born.month, born.day):
        raise Invalid.because(f"must be at least {ADULT_YEARS} years ago")
    return str(value)


def _calendar_day(value: JSON, pattern: str, format_name: str) -> date:
    found = re.fullmatch(pattern, text(value), re.ASCII)
    try:
        return date(*map(int, found.groups())) if found else date.fromisoformat("")
    except ValueError:
        raise Invalid.because(f"must be a date, {format_name}") from None


def encrypted_digits(cipher: FieldCipher, value: JSON) -> str:
    """An EIN or SSN: nine digits after decryption."""
    try:
        digits = cipher.decrypt(text(value))
    except Unreadable:
        digits = ""  # The sender must not learn what is wrong.
    if not re.fullmatch("[0-9]{9}", digits):
        raise Invalid.because("could not be decrypted to nine digits")
    return digits


def report(value: JSON) -> str:
    """Base64 of gzip that is not too large when unpacked."""
    try:
        _unpack(base64.b64decode(text(value), validate=True))
    except (binascii.Error, ValueError, zlib.error):
        raise Invalid.because("must be gzip in base64") from None
    return str(value)


def _unpack(packed: bytes) -> None:
    """Unpack in pieces without keeping them, so that a small text cannot exhaust the memory."""
    reader = zlib.decompressobj(wbits=31)
    size = 0
    while not reader.eof:
        piece = reader.decompress(packed, 65536)
        packed = reader.unconsumed_tail
        size += len(piece)
        if not piece and not packed and not reader.eof:
            raise ValueError("cut short")
        if size > MAX_REPORT_BYTES:
            raise Invalid.because("is too large once unpacked")


def amount(value: JSON) -> Decimal:
    """A number above zero."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or value <= 0:
        raise Invalid.because("must be a number above zero")
    return Decimal(value)


def whole_number(low: int, high: int, value: JSON) -> int:
    """A whole number in a range, as JSON or as text in a query."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,10}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Invalid.because(f"must be a whole number from {low} to {high}")
    return value


def key_people(value: JSON, *, today: date, cipher: FieldCipher) -> list[dict[str, Any]]:
    """At least one key person."""
    if not isinstance(value, list) or not value:
        raise Invalid.because("must be a list with at least one person")
    clean, problems = [], []
    for index, person in enumerate(value):
        try:
            clean.append(new_key_person(person, today=today, cipher=cipher))
        except Invalid as invalid:
            problems += _prefix_paths(str(index), invalid)
    if problems:
        raise Invalid(problems)
    return clean
