"""Borrowers, commercial and individual, and the key people of businesses (sections 2.2 to 2.4, 4.2 to 4.4).

Hides how what staff know is checked, all of it at once, and brought into the form the service wants.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any, ClassVar, Final, TypeVar

from msgspec import UNSET, UnsetType, field
from msgspec.structs import fields, replace

from servicing import rules
from servicing.codec import Cipher, Encrypted, Gzipped, Outgoing, Record, SlashedDate, encode
from servicing.errors import InvalidInput
from servicing.resource import Resource
from servicing.transport import Payload, Transport
from servicing.values import Address, same_word

Problems = dict[str, list[str]]
Check = Callable[[Any], list[str] | Problems]
Checks = dict[str, Check]


# Received


class KeyPerson(Record, frozen=True, kw_only=True):
    """An owner, director or beneficiary of a business (section 2.4).

    `title` is `OWNER`, `DIRECTOR` or `BENEFICIARY`, `citizenship` a country code of two letters, `phone` ten
    digits. The service never returns date of birth and SSN.
    """

    first_name: str | None = None
    middle_name: str | None = None
    last_name: str | None = None
    title: str | None = None
    citizenship: str | None = None
    email: str | None = None
    phone: str | None = None
    address: Address | None = None


class Borrower(Record, frozen=True, kw_only=True):
    """A user of the service, a business or an individual (section 2.2).

    For a business `first_name` is the legal name, `start_date` the day of incorporation and `entity` one of the
    business types of section 2.3. `phone` is ten digits. The service never returns EIN, SSN and date of birth.
    """

    first_name: str | None = None
    middle_name: str | None = None
    last_name: str | None = None
    citizenship: str | None = None
    provider_customer_url: str | None = None
    user_type: str | None = None
    start_date: date | None = None
    website: Any = None
    entity: str | None = None
    industry: Any = None
    email: str | None = None
    phone: str | None = None
    address: Address | None = None
    key_people: tuple[KeyPerson, ...] = ()

    @property
    def is_business(self) -> bool:
        """Whether the service tells so, in whichever way; whoever is no business is an individual."""
        return bool(same_word(self.user_type, "BUSINESS") or self.entity or self.key_people)


# Sent


class _Draft(Outgoing, frozen=True, kw_only=True):
    """What staff typed, as they typed it, until it has been checked."""

    may_be_none: ClassVar[frozenset[str]]
    """The fields that may be None. A new one is then not sent at all; a changed one is emptied."""


D = TypeVar("D", bound=_Draft)


class NewKeyPerson(_Draft, frozen=True, kw_only=True):
    """A key person to send with a new business (sections 2.4 and 4.2).

    `title` is `OWNER`, `DIRECTOR` or `BENEFICIARY`, `citizenship` a country code of two letters, `phone` any US
    notation of ten digits, `dob` a `date`, `ssn` nine digits: it leaves encrypted, and no `repr` shows it.
    What breaks a rule of section 8 raises `InvalidInput` when the business is created.
    """

    may_be_none = frozenset({"middle_name", "dob", "ssn"})

    first_name: str
    last_name: str
    title: str
    citizenship: str
    email: str
    phone: str
    address: Address
    middle_name: str | UnsetType | None = None
    dob: SlashedDate | UnsetType | None = None
    ssn: Encrypted | UnsetType | None = None


class _NewBusiness(_Draft, frozen=True, kw_only=True):
    may_be_none = frozenset({"incorporated_on", "asset_report"})

    first_name: str
    email: str
    entity: str
    ein: Encrypted = field(name="EIN")
    phone: str
    user_type: str = "business"
    address: Address
    incorporated_on: date | UnsetType | None = None
    key_people: tuple[NewKeyPerson, ...]
    asset_report: Gzipped | UnsetType | None = field(name="asset_report_json_gzip", default=None)


class _BorrowerChanges(_Draft, frozen=True, kw_only=True):
    may_be_none = frozenset({"middle_name", "last_name"})

    address: Address | UnsetType
    first_name: str | UnsetType
    middle_name: str | UnsetType | None
    last_name: str | UnsetType | None
    email: str | UnsetType
    dob: SlashedDate | UnsetType
    ssn: Encrypted | UnsetType
    phone: str | UnsetType
    credit_report: Gzipped | UnsetType = field(name="credit_report_xml_gzip")
    asset_report: Gzipped | UnsetType = field(name="asset_report_json_gzip")


class _KeyPersonChanges(_Draft, frozen=True, kw_only=True):
    may_be_none = frozenset({"middle_name"})

    address: Address | UnsetType
    first_name: str | UnsetType
    middle_name: str | UnsetType | None
    last_name: str | UnsetType
    email: str | UnsetType
    dob: SlashedDate | UnsetType
    ssn: Encrypted | UnsetType
    phone: str | UnsetType
    title: str | UnsetType


class BorrowersResource(Resource):
    """The users of the service."""

    def __init__(
        self,
        transport: Transport,
        cipher: Cipher | None,
        *,
        country: str,
        incorporation_field: str,
        time_zone: str,
    ) -> None:
        super().__init__(transport)
        self._cipher = cipher
        self._country = country
        self._incorporation_field = incorporation_field
        self._time_zone = time_zone

    def create_commercial(
        self,
        *,
        first_name: str,
        email: str,
        entity: str,
        ein: str,
        phone: str,
        address: Address,
        key_people: Sequence[NewKeyPerson],
        incorporated_on: date | None = None,
        asset_report: bytes | None = None,
    ) -> Borrower:
        """Create a business with its key people (section 4.2). `first_name` is the legal name.

        Raises `InvalidInput`, `Rejected`, `NotSent`, `OutcomeUnknown` or `Unauthenticated`.
        """
        new = _NewBusiness(
            first_name=first_name,
            email=email,
            entity=entity,
            ein=ein,
            phone=phone,
            address=address,
            incorporated_on=incorporated_on,
            key_people=tuple(key_people),
            asset_report=asset_report,
        )
        del ein, asset_report  # So that no traceback from here on has them among its variables.
        return self._write(
            "borrowers.create_commercial",
            "POST",
            "/v1/users",
            Borrower,
            self._payload(new, _business_checks),
        )

    def update(
        self,
        borrower_id: str,
        *,
        address: Address | UnsetType = UNSET,
        first_name: str | UnsetType = UNSET,
        middle_name: str | UnsetType | None = UNSET,
        last_name: str | UnsetType | None = UNSET,
        email: str | UnsetType = UNSET,
        dob: date | UnsetType = UNSET,
        ssn: str | UnsetType = UNSET,
        phone: str | UnsetType = UNSET,
        credit_report: bytes | UnsetType = UNSET,
        asset_report: bytes | UnsetType = UNSET,
    ) -> Borrower:
        """Change what is given and leave the rest (section 4.3). None empties a name that may be empty.

        Raises `InvalidInput`, `Rejected`, `NotSent`, `OutcomeUnknown` or `Unauthenticated`.
        """
        changes = _BorrowerChanges(
            address=address,
            first_name=first_name,
            middle_name=middle_name,
            last_name=last_name,
            email=email,
            dob=dob,
            ssn=ssn,
            phone=phone,
            credit_report=credit_report,
            asset_report=asset_report,
        )
        del ssn, dob, credit_report, asset_report
        return self._write(
            "borrowers.update",
            "PUT",
            "/v1/users/{borrower_id}",
            Borrower,
            self._payload(changes, _person_checks),
            borrower_id=borrower_id,
            uuid=borrower_id,
        )

    def update_key_person(
        self,
        borrower_id: str,
        key_person_id: str,
        *,
        address: Address | UnsetType = UNSET,
        first_name: str | UnsetType = UNSET,
        middle_name: str | UnsetType | None = UNSET,
        last_name: str | UnsetType = UNSET,
        email: str | UnsetType = UNSET,
        dob: date | UnsetType = UNSET,
        ssn: str | UnsetType = UNSET,
        phone: str | UnsetType = UNSET,
        title: str | UnsetType = UNSET,
    ) -> KeyPerson:
        """Change what is given of a key person and leave the rest (section 4.4).

        Raises `InvalidInput`, `Rejected`, `NotSent`, `OutcomeUnknown` or `Unauthenticated`.
        """
        changes = _KeyPersonChanges(
            address=address,
            first_name=first_name,
            middle_name=middle_name,
            last_name=last_name,
            email=email,
            dob=dob,
            ssn=ssn,
            phone=phone,
            title=title,
        )
        del ssn, dob
        return self._write(
            "borrowers.update_key_person",
            "PUT",
            "/v1/users/{borrower_id}/key_people/{key_person_id}",
            KeyPerson,
            self._payload(changes, _person_checks),
            borrower_id=borrower_id,
            key_person_id=key_person_id,
            uuid=key_person_id,
        )

    def _payload(self, message: _Draft, checks_on: Callable[[date, str], Checks]) -> Payload:
        checks = checks_on(rules.today_in(self._time_zone), self._country)
        if problems := _problems(message, checks):
            raise InvalidInput(problems)
        body = encode(_normal(message), self._cipher)
        if not body:
            raise InvalidInput({"changes": ["Nothing was given to change."]})
        if "incorporated_on" in body:
            body[self._incorporation_field] = body.pop("incorporated_on")
        return Payload(body)


# What is asked of each field, by its name in the calls above


def _person_checks(today: date, country: str) -> Checks:
    return {
        "first_name": _text(rules.name_problems),
        "middle_name": _text(rules.name_problems),
        "last_name": _text(rules.name_problems),
        "title": _one_of(rules.TITLES),
        "citizenship": _text(rules.citizenship_problems),
        "email": _text(rules.email_problems),
        "phone": _text(rules.phone_problems),
        "address": partial(_address_problems, country=country),
        "dob": _day(partial(rules.birth_date_problems, today=today)),
        "ssn": _text(rules.ssn_problems),
        "credit_report": _report_problems,
        "asset_report": _report_problems,
    }


def _business_checks(today: date, country: str) -> Checks:
    person = _person_checks(today, country)
    return person | {
        "first_name": _text(rules.legal_name_problems),
        "entity": _one_of(rules.ENTITIES),
        "ein": _text(rules.ein_problems),
        "incorporated_on": _day(partial(rules.incorporation_date_problems, today=today)),
        "key_people": partial(_people_problems, checks=person),
    }


def _problems(message: _Draft, checks: Checks) -> Problems:
    """Every reason against a message, by dotted field."""
    found: Problems = {}
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name not in checks or value is UNSET or (value is None and name in message.may_be_none):
            continue
        reasons = checks[name](value)
        if isinstance(reasons, dict):
            found |= {f"{name}.{inner}": reasons[inner] for inner in reasons}
        elif reasons:
            found[name] = reasons
    return found


def _text(problems_of: Callable[[str], list[str]]) -> Check:
    return lambda value: problems_of(value or "") if isinstance(value, str | None) else ["This must be text."]


def _one_of(known: Mapping[str, str]) -> Check:
    choice = [f"Choose one of {', '.join(known)}."]
    return lambda value: [] if isinstance(value, str) and value.upper() in known else choice


def _day(problems_of: Callable[[date], list[str]]) -> Check:
    def check(value: Any) -> list[str]:
        if not isinstance(value, date) or isinstance(value, datetime):
            return ["This must be a date without a time."]
        return problems_of(value)

    return check


def _address_problems(value: Any, *, country: str) -> list[str] | Problems:
    if not isinstance(value, Address):
        return ["Enter the address."]
    texts = {name: getattr(value, name) for name in value.__struct_fields__}
    strange = {name: ["This must be text."] for name in texts if not isinstance(texts[name], str | None)}
    return strange or rules.address_field_problems(value, country=country)


def _people_problems(people: tuple[Any, ...], *, checks: Checks) -> list[str] | Problems:
    if not people:
        return ["At least one key person is needed."]
    found: Problems = {}
    for number, person in enumerate(people):
        if isinstance(person, NewKeyPerson):
            found |= {f"{number}.{name}": reasons for name, reasons in _problems(person, checks).items()}
        else:
            found[str(number)] = ["This must be a NewKeyPerson."]
    return found


def _report_problems(value: Any) -> list[str]:
    return [] if isinstance(value, bytes) and value else ["The report must be bytes, and not empty."]


# The form that is sent


_FORMS: Final[dict[str, Callable[[str], str]]] = {
    "phone": rules.normal_phone,
    "ein": rules.nine_digits,
    "ssn": rules.nine_digits,
    "entity": str.upper,
    "title": str.upper,
}


def _normal(message: D) -> D:
    """The same message as the service writes it; it has been checked before."""
    changed: dict[str, Any] = {}
    for info in fields(message):
        value = getattr(message, info.name)
        if info.name in _FORMS and isinstance(value, str):
            changed[info.name] = _FORMS[info.name](value)
        elif info.default is None and value is None:
            changed[info.name] = UNSET  # Left at its default: not given, and so not sent.
    if isinstance(message, _NewBusiness):
        changed["key_people"] = tuple(map(_normal, message.key_people))
    return replace(message, **changed)
