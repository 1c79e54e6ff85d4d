"""Profile values as text: the rows of the review, of a conflict and of the result.

Hides how three versions of a record are compared field by field, and how the answer is compared with what was sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

from django.conf import settings
from msgspec import structs

from portal.borrowers.forms import ADDRESS_FIELDS, NAMES
from portal.borrowers.profile_forms import GIVEN_LATER, KnownValues, ProfileForm, known_value
from portal.ui import wording
from servicing import Address, Borrower, KeyPerson, rules

NEVER_RETURNED = {"dob", *GIVEN_LATER}
NOTES = {
    "address": "The full address is sent.",
    "ssn": "Encrypted when sent, never stored.",
    "credit_report": "Compressed when sent, never stored.",
    "asset_report": "Compressed when sent, never stored.",
}

# --- Values ---


def unit_of(key: str) -> str:
    return key.removesuffix("_xml_gzip").removesuffix("_json_gzip")


def known_values(answer: Borrower | KeyPerson | None) -> KnownValues:
    if answer is None:
        return {}
    found = {name: getattr(answer, name, None) or None for name in (*NAMES, "title", "email", "phone")}
    found |= {name: getattr(answer.address, name, None) or None for name in ADDRESS_FIELDS}
    title = (found["title"] or "").upper()
    return found | {
        "title": title if title in rules.TITLES else found["title"],
        "phone": ten_digits(found["phone"]),
        "zip": found["zip"] and rules.normalize_zip(found["zip"]),
    }


def ten_digits(phone: str | None) -> str | None:
    """A phone number as it is sent; anything but a US number unchanged."""
    return phone if not phone or rules.phone_problems(phone) else rules.normalize_phone(phone)


def text_of(unit: str, value: Any) -> str:
    """A value as text, an address in lines; empty without a value."""
    match unit:
        case "address":
            return address_text(structs.asdict(value) if isinstance(value, Address) else value or {})
        case "phone":
            return wording.phone(ten_digits(value)) or ""
        case "title":
            return wording.human(value) or ""
        case "dob":
            return wording.day(value) or ""
    return value or ""


def address_text(parts: Mapping[str, Any]) -> str:
    """An address in lines, with the country only if it isn't the United States."""
    line_1, line_2, line_3, city, state, zip_code = (str(parts.get(name) or "") for name in ADDRESS_FIELDS)
    place = ", ".join(filter(None, [city, f"{state} {zip_code}".strip()]))
    country = str(parts.get("country") or "").replace(settings.SERVICING_COUNTRY, "")
    return "\n".join(filter(None, [line_1, line_2, line_3, place, country]))


# --- The review ---


@dataclass(frozen=True)
class Change:
    unit: str
    label: str
    now: str
    new: str
    note: str = ""
    is_later: bool = False
    """Whether it is entered when sending, so not shown yet."""


def changes_of(form: ProfileForm) -> list[Change]:
    rows = []
    for unit, value in form.changes.items():
        now = text_of(unit, known_value(unit, form.known))
        rows.append(Change(unit, form.label_of(unit), now, text_of(unit, value), note_on(unit, value)))
    return rows + [Change(name, GIVEN_LATER[name], "", "", NOTES[name], is_later=True) for name in form.later]


def note_on(unit: str, value: Any) -> str:
    match unit, value:
        case "dob", date():
            return "Sent as year, month, day."
        case _, None:
            return "Cleared: sent as null."
    return NOTES.get(unit, "")


# --- A conflict ---


@dataclass(frozen=True)
class Clash:
    """A field with a conflict between the record as shown, the record now, and what was typed."""

    unit: str
    label: str
    base: str
    theirs: str
    yours: str
    has_moved: bool
    """Whether the record's value changed since the form was shown."""
    choice: str
    """``theirs`` or ``yours``; empty if a person must decide."""


def find_clashes(
    form: ProfileForm, base: KnownValues | None, latest: KnownValues, choices: Mapping[str, Any]
) -> list[Clash]:
    """The fields in which what was typed conflicts with the current record.

    ``base`` is what the form showed; None if unknown. If only one side changed a field, that value counts.
    """
    clashes = []
    for unit in form.units:
        was, theirs, yours = known_value(unit, base or {}), known_value(unit, latest), form.new_value(unit)
        if theirs == yours:
            continue
        choice = choices.get(f"choice-{unit}")
        if choice not in ("theirs", "yours"):
            choice = "" if base is None else "yours" if theirs == was else "theirs" if yours == was else ""
        base_text, theirs_text, yours_text = (text_of(unit, value) for value in (was, theirs, yours))
        has_moved = base is None or was != theirs
        clashes.append(
            Clash(unit, form.label_of(unit), base_text, theirs_text, yours_text, has_moved, choice)
        )
    return clashes


# --- The result ---


class ConfirmationCheck(Enum):
    """Whether the answer confirms a field that was sent."""

    CONFIRMED = "Confirmed"
    ALTERED = "Changed by the service"
    NOT_RETURNED = "Not returned"


@dataclass(frozen=True)
class FieldResult:
    """One field as sent and as answered."""

    label: str
    sent: str
    answered: str
    check: ConfirmationCheck


def compare(
    form: ProfileForm,
    key: str,
    sent: Mapping[str, Any],
    answer: Mapping[str, Any],
    changes: Mapping[str, list[str]],
) -> FieldResult:
    unit = unit_of(key)
    label = form.label_of(unit)
    if unit in NEVER_RETURNED:  # Only the sizes of reports were recorded.
        sizes = changes.get(unit, ["", ""])[1].removeprefix("sent").removeprefix(", ")
        return FieldResult(label, sizes, "", ConfirmationCheck.NOT_RETURNED)
    before, after = body_value(unit, sent[key]), body_value(unit, answer.get(key))
    sent_text, answered = text_of(unit, before), text_of(unit, after)
    if key not in answer:
        return FieldResult(label, sent_text, answered, ConfirmationCheck.NOT_RETURNED)
    # Addresses are compared by their parts, not as text.
    is_same = before == after if unit == "address" else sent_text == answered
    check = ConfirmationCheck.CONFIRMED if is_same else ConfirmationCheck.ALTERED
    return FieldResult(label, sent_text, answered, check)


def body_value(unit: str, value: Any) -> Any:
    """A body's value as text. A missing address line counts as empty."""
    if unit == "address":
        parts = value if isinstance(value, dict) else {}
        return {part: str(each) for part, each in parts.items() if each not in (None, "")}
    return "" if value is None or isinstance(value, dict) else str(value)


def summary_of(results: Sequence[FieldResult]) -> str:
    """A summary such as "Phone, Email updated; 1 changed by the service"."""
    updated = [each.label for each in results if each.check == ConfirmationCheck.CONFIRMED]
    parts = [f"{', '.join(updated)} updated"] if updated else []
    for check in ConfirmationCheck:
        count = sum(each.check == check for each in results)
        if count and check != ConfirmationCheck.CONFIRMED:
            parts.append(f"{count} {check.value.lower()}")
    return "; ".join(parts)
