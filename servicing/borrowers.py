"""Borrowers, commercial and individual, and the key people of businesses (sections 2.2 to 2.4, 4.2 to 4.4).

Hides how input is checked, reporting every problem at once, and normalized for the service.
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
from servicing.values import Address, is_same_word

Problems = dict[str, list[str]]
Check = Callable[[Any], list[str] | Problems]
Checks = dict[str, Check]


# Received


class KeyPerson(Record, frozen=True, kw_only=True):
    """An owner, director or beneficiary of a business (section 2.4).

    `title` is `OWNER`, `DIRECTOR` or `BENEFICIARY`, `citizenship` a two-letter country code, `phone` ten digits.
    The service never returns date of birth or SSN.
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

    For a business `first_name` is the legal name, `start_date` the incorporation date and `entity` a business type
    from section 2.3. `phone` is ten digits. The service never returns EIN, SSN or date of birth.
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
        """Whether the service describes a business; any other borrower is an individual."""
        return bool(is_same_word(self.user_type, "BUSINESS") or self.entity or self.key_people)


# Sent


class _Draft(Outgoing, frozen=True, kw_only=True):
    """Input as entered, before it is checked."""

    nullable_fields: ClassVar[frozenset[str]]
    """The fields that may be None: left out of a new record, cleared by a change."""


D = TypeVar("D", bound=_Draft)


class NewKeyPerson(_Draft, frozen=True, kw_only=True):
    """A key person of a new business (sections 2.4 and 4.2).

    `title` is `OWNER`, `DIRECTOR` or `BENEFICIARY`, `citizenship` a two-letter country code, `phone` ten digits in
    any US format, `dob` a `date`. `ssn` is nine digits; it is sent encrypted, and `repr` hides it.
    A value that breaks a rule of section 8 raises `InvalidInput` when the business is created.
    """

    nullable_fields = frozenset({"middle_name", "dob", "ssn"})

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
    nullable_fields = frozenset({"incorporated_on", "asset_report"})

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
    nullable_fields = frozenset({"middle_name", "last_name"})

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
    nullable_fields = frozenset({"middle_name"})

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
        del ein, asset_report  # A traceback prints local variables; these must not be among them.
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
        """Change only the given fields (section 4.3). None clears a name that may be empty.

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
        """Change only the given fields of a key person (section 4.4).

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

    def _payload(self, draft: _Draft, checks_on: Callable[[date, str], Checks]) -> Payload:
        checks = checks_on(rules.today_in(self._time_zone), self._country)
        if problems := _problems(draft, checks):
            raise InvalidInput(problems)
        body = encode(_normalize(draft), self._cipher)
        if not body:
            raise InvalidInput({"changes": ["No changes were given."]})
        if "incorporated_on" in body:
            body[self._incorporation_field] = body.pop("incorporated_on")
        return Payload(body)


# Checks by field, named as in the calls above


def _person_checks(today: date, country: str) -> Checks:
    return {
        "first_name": _text_check(rules.name_problems),
        "middle_name": _text_check(rules.name_problems),
        "last_name": _text_check(rules.name_problems),
        "title": _choice_check(rules.TITLES),
        "citizenship": _text_check(rules.citizenship_problems),
        "email": _text_check(rules.email_problems),
        "phone": _text_check(rules.phone_problems),
        "address": partial(_address_problems, country=country),
        "dob": _day_check(partial(rules.birth_date_problems, today=today)),
        "ssn": _text_check(rules.ssn_problems),
        "credit_report": _report_problems,
        "asset_report": _report_problems,
    }


def _business_checks(today: date, country: str) -> Checks:
    person = _person_checks(today, country)
    return person | {
        "first_name": _text_check(rules.legal_name_problems),
        "entity": _choice_check(rules.ENTITIES),
        "ein": _text_check(rules.ein_problems),
        "incorporated_on": _day_check(partial(rules.incorporation_date_problems, today=today)),
        "key_people": partial(_people_problems, checks=person),
    }


def _problems(draft: _Draft, checks: Checks) -> Problems:
    """Every problem of a message, by dotted field name."""
    found: Problems = {}
    for name in draft.__struct_fields__:
        value = getattr(draft, name)
        if name not in checks or value is UNSET or (value is None and name in draft.nullable_fields):
            continue
        reasons = checks[name](value)
        if isinstance(reasons, dict):
            found |= {f"{name}.{inner}": reasons[inner] for inner in reasons}
        elif reasons:
            found[name] = reasons
    return found


def _text_check(problems_of: Callable[[str], list[str]]) -> Check:
    return lambda value: problems_of(value or "") if isinstance(value, str | None) else ["This must be text."]


def _choice_check(choices: Mapping[str, str]) -> Check:
    problems = [f"Choose one of {', '.join(choices)}."]
    return lambda value: [] if isinstance(value, str) and value.upper() in choices else problems


def _day_check(problems_of: Callable[[date], list[str]]) -> Check:
    def check(value: Any) -> list[str]:
        if not isinstance(value, date) or isinstance(value, datetime):
            return ["This must be a date without a time."]
        return problems_of(value)

    return check


def _address_problems(value: Any, *, country: str) -> list[str] | Problems:
    if not isinstance(value, Address):
        return ["Enter the address."]
    texts = {name: getattr(value, name) for name in value.__struct_fields__}
    not_text = {name: ["This must be text."] for name in texts if not isinstance(texts[name], str | None)}
    return not_text or rules.address_problems(value, country=country)


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


# Normal forms


_NORMALIZERS: Final[dict[str, Callable[[str], str]]] = {
    "phone": rules.normalize_phone,
    "ein": rules.nine_digits,
    "ssn": rules.nine_digits,
    "entity": str.upper,
    "title": str.upper,
}


def _normalize(draft: D) -> D:
    """A checked message in the form the service uses."""
    normalized: dict[str, Any] = {}
    for info in fields(draft):
        value = getattr(draft, info.name)
        if info.name in _NORMALIZERS and isinstance(value, str):
            normalized[info.name] = _NORMALIZERS[info.name](value)
        elif isinstance(value, Address):
            normalized[info.name] = replace(value, zip=rules.normalize_zip(value.zip or ""))
        elif info.default is None and value is None:
            normalized[info.name] = UNSET  # The caller gave no value, so the field is not sent.
    if isinstance(draft, _NewBusiness):
        normalized["key_people"] = tuple(map(_normalize, draft.key_people))
    return replace(draft, **normalized)
