"""The values of a profile by the names of their fields: in the form in which they are sent, and as people read them."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from portal.borrowers.forms import ADDRESS_FIELDS
from portal.ui import wording
from servicing import Borrower, KeyPerson, rules

Known = Mapping[str, str | None]
"""The last known values; an address by its parts."""

NAMES = ("first_name", "middle_name", "last_name")


def known_values(copy: Borrower | KeyPerson | None) -> Known:
    """The values of a copy, in the form in which they are sent where they have one."""
    if copy is None:
        return {}
    found = {name: getattr(copy, name, None) or None for name in (*NAMES, "title", "email", "phone")}
    found |= {name: getattr(copy.address, name, None) or None for name in ADDRESS_FIELDS}
    title = (found["title"] or "").upper()
    return found | {
        "title": title if title in rules.TITLES else found["title"],
        "phone": ten_digits(found["phone"]),
    }


def ten_digits(phone: str | None) -> str | None:
    """A phone number as it is sent; what is no US number stays as it is."""
    return phone if not phone or rules.phone_problems(phone) else rules.normal_phone(phone)


def parts_of(name: str) -> Sequence[str]:
    """The fields of what is changed as one."""
    return ADDRESS_FIELDS if name == "address" else (name,)


def values_of(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the values that is changed as one."""
    return {part: values.get(part) for part in parts_of(name)}


def text_of(name: str, values: Mapping[str, Any]) -> str:
    """A value as people read it, an address in lines; empty when there is none."""
    value = values.get(name)
    match name:
        case "address":
            return address_lines(values)
        case "phone":
            return wording.phone(ten_digits(value)) or ""
        case "title":
            return wording.human(value) or ""
        case "dob":
            return wording.day(value) or ""
    return value or ""


def address_lines(values: Mapping[str, Any]) -> str:
    """The country only where it is not the one that goes without saying."""
    line_1, line_2, line_3, city, state, zip_code = (str(values.get(part) or "") for part in ADDRESS_FIELDS)
    place = ", ".join(filter(None, [city, f"{state} {zip_code}".strip()]))
    country = str(values.get("country") or "").replace(settings.SERVICING_COUNTRY, "")
    return "\n".join(filter(None, [line_1, line_2, line_3, place, country]))
