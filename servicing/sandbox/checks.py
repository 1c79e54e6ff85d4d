"""What the service accepts: required fields and the limits of sections 4 and 8.

This is the service's own opinion, written apart from the client's rules on purpose. Every check takes the
value as JSON gave it and answers the value to keep, or raises :class:`Invalid`; all problems of a body are
found together.
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
from servicing.sandbox.places import ZIP_PREFIXES, is_plausible
from servicing.sandbox.wire import JSON

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
LARGEST_NUMBER = 10**9
LARGEST_REPORT = 64 * 1024 * 1024
PHONE_REGIONS = ("US", "PR", "GU", "VI", "AS", "MP")

# The printed name pattern takes exponential time; this one accepts the same strings in linear time.
NAME = re.compile(r"[A-z]+(?:(?:[,.] ?| |['’-])[A-z]+)*(?:[,.] ?| |['’-])?")
EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(?:\.[^@\s.]+)+")


class Invalid(Exception):
    """A refused body: (path of the field, reason) for each problem."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path} {reason}".strip() for path, reason in problems))
        self.problems = problems

    @classmethod
    def because(cls, reason: str) -> "Invalid":
        """One problem of the value itself."""
        return cls([("", reason)])


# Whole bodies


def commercial_user(body: JSON, *, today: date, cipher: FieldCipher) -> dict[str, Any]:
    """Section 4.2."""
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
    """One of the key people of section 4.2. The name pattern is stated for updates only."""
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
    """Section 4.3: only what is passed."""
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
    """Section 4.4: only what is passed."""
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
    """Section 4.1."""
    return fields(body, required={"amount": amount})


def message_filters(query: Mapping[str, str], body: JSON, *, largest_page: int) -> dict[str, Any]:
    """Section 4.10, from the query or from a body; the body's word counts."""
    if not isinstance(body, dict | None):
        raise Invalid.because("body must be an object")
    return fields(
        {**query, **(body or {})},
        optional={
            "start_date": iso_date,
            "end_date": iso_date,
            "event": text,
            "limit": partial(whole_number, 1, largest_page),
            "offset": partial(whole_number, 0, LARGEST_NUMBER),
        },
    )


def _identity(today: date, cipher: FieldCipher) -> dict[str, Check]:
    return {"dob": partial(birth_date, today=today), "ssn": partial(encrypted_digits, cipher)}


def fields(
    body: JSON, *, required: Mapping[str, Check] | None = None, optional: Mapping[str, Check] | None = None
) -> dict[str, Any]:
    """The checked values of an object. Fields it does not know are ignored."""
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
        except Invalid as refused:
            problems += _under(name, refused)
    if problems:
        raise Invalid(problems)
    return clean


def _under(name: str, refused: Invalid) -> list[tuple[str, str]]:
    return [(f"{name}.{path}" if path else name, reason) for path, reason in refused.problems]


# Single values


def nullable(check: Check) -> Check:
    """The same check, but null passes."""
    return lambda value: None if value is None else check(value)


def text(value: JSON) -> str:
    """Some text."""
    if not isinstance(value, str) or not value.strip():
        raise Invalid.because("must be a text that is not empty")
    return value


def name(value: JSON) -> str:
    """A name as section 8 limits it on updates."""
    if not NAME.fullmatch(text(value)):
        raise Invalid.because("must match the name pattern")
    return str(value)


def email(value: JSON) -> str:
    """Something that can be an e-mail address."""
    if not EMAIL.fullmatch(text(value)):
        raise Invalid.because("must be an e-mail address")
    return str(value)


def one_of(allowed: tuple[str, ...], value: JSON) -> str:
    """One of the words of an enumeration."""
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
    """Ten figures that are a valid number of the United States or a territory."""
    if not re.fullmatch("[0-9]{10}", text(value)):
        raise Invalid.because("must be a phone number of 10 digits")
    number = phonenumbers.parse(f"+1{value}")
    if phonenumbers.region_code_for_number(number) not in PHONE_REGIONS:
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
        raise Invalid([("zip", f"{clean['zip']} does not lie in {clean['state']}")])
    return shapes.address(**clean)


def person_address(value: JSON) -> dict[str, Any]:
    """The same for a key person, whose address is answered without the lines it lacks."""
    return {line: words for line, words in address(value).items() if words is not None}


def str_or_empty(value: JSON) -> str | None:
    """An address line that may be empty; an empty one is kept as null."""
    if not isinstance(value, str):
        raise Invalid.because("must be a text")
    return value or None


def zip_code(value: JSON) -> str:
    """Five or nine figures."""
    if not re.fullmatch("[0-9]{5}(-[0-9]{4})?", text(value)):
        raise Invalid.because("must be a ZIP code of 5 or 9 digits")
    return str(value)


def state(value: JSON) -> str:
    """A two-letter state, district or territory."""
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
    """A date, YYYY/MM/DD, of someone who is 18 by today."""
    born = _calendar_day(value, r"(\d{4})/(\d\d)/(\d\d)", "YYYY/MM/DD")
    if (today.year - ADULT_YEARS, today.month, today.day) < (born.year, born.month, born.day):
        raise Invalid.because(f"must be at least {ADULT_YEARS} years ago")
    return str(value)


def _calendar_day(value: JSON, pattern: str, shown: str) -> date:
    found = re.fullmatch(pattern, text(value), re.ASCII)
    try:
        return date(*map(int, found.groups())) if found else date.fromisoformat("")
    except ValueError:
        raise Invalid.because(f"must be a date, {shown}") from None


def encrypted_digits(cipher: FieldCipher, value: JSON) -> str:
    """An EIN or SSN: nine figures once decrypted."""
    try:
        digits = cipher.decrypt(text(value))
    except Unreadable:
        digits = ""  # Whatever is wrong with it, the sender learns no more than this.
    if not re.fullmatch("[0-9]{9}", digits):
        raise Invalid.because("could not be decrypted to nine digits")
    return digits


def report(value: JSON) -> str:
    """Base64 of gzip, of a bounded size once unpacked."""
    try:
        _unpack(base64.b64decode(text(value), validate=True))
    except (binascii.Error, ValueError, zlib.error):
        raise Invalid.because("must be gzip in base64") from None
    return str(value)


def _unpack(packed: bytes) -> None:
    """Unpack piece by piece and keep nothing, so that a small text cannot fill the memory."""
    reader = zlib.decompressobj(wbits=31)
    size = 0
    while not reader.eof:
        piece = reader.decompress(packed, 65536)
        packed = reader.unconsumed_tail
        size += len(piece)
        if not piece and not packed and not reader.eof:
            raise ValueError("cut short")
        if size > LARGEST_REPORT:
            raise Invalid.because("is too large once unpacked")


def amount(value: JSON) -> Decimal:
    """A number above zero."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or value <= 0:
        raise Invalid.because("must be a number above zero")
    return Decimal(value)


def whole_number(low: int, high: int, value: JSON) -> int:
    """A whole number in a range, as JSON or as text of a query."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,10}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Invalid.because(f"must be a whole number from {low} to {high}")
    return value


def key_people(value: JSON, *, today: date, cipher: FieldCipher) -> list[dict[str, Any]]:
    """One person at least."""
    if not isinstance(value, list) or not value:
        raise Invalid.because("must be a list with at least one person")
    clean, problems = [], []
    for index, person in enumerate(value):
        try:
            clean.append(new_key_person(person, today=today, cipher=cipher))
        except Invalid as refused:
            problems += _under(str(index), refused)
    if problems:
        raise Invalid(problems)
    return clean
