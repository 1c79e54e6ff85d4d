"""The fields of an answer without its values. Hides which values may be shown: those of enumerations alone."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from servicing.first_day.report import FieldSeen
from servicing.masking import HIDDEN
from servicing.values import RemoteTime

MAX_KINDS: Final = 3
"""How many kinds and values of one field are shown."""
UNCERTAIN_TIME: Final = "time in an uncertain zone"
_SHOWN_NAME: Final = 60
_ENUMERATIONS: Final[dict[str, frozenset[str]]] = {
    "product": frozenset({"LOAN", "LOC", "BUILD_CREDIT"}),
    "status": frozenset({"ACTIVE", "SCHEDULED", "SUCCEEDED", "FAILED_AFTER_SUCCESS", "SUCCESS"}),
    "status.decision": frozenset({"APPROVED"}),
    "term_frequency": frozenset({"MONTHLY"}),
    "payment_type": frozenset({"RETURNED", "SINGLE_PAYMENT"}),
    "event": frozenset({"PAYMENT.SUCCEEDED"}),
}
"""The enumerations of sections 2 and 3, with the values seen there."""
# The offers of an application and the repayment in a message have the enumerations, too.
_INNER: Final = re.compile(r"^(payload|offers\[0\])\.")
# What an enumeration looks like; anything else could be a value of a person.
_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:/ -]{0,39}", re.ASCII)
_ZONE: Final = re.compile(r"[A-Za-z]+(/[A-Za-z_]+)*|[+-]\d\d:?\d\d", re.ASCII)
_ID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
# Values of a record in the service's own words: IDs, emails, amounts, long numbers, and keys that it may repeat.
_PERSONAL: Final = re.compile(
    rf"{_ID.pattern}|[^\s@<>,;:'\"]+@[^\s@<>,;:'\"]+|\$?\d[\d,]*\.\d\d\b|[\d-]{{6,}}"
    r"|(?<![\w+=~-])(?=[\w+=~-]*\d)(?=[\w+=~-]*[A-Za-z])[\w+=~-]{16,}"
)


def known_values(name: str) -> frozenset[str] | None:
    """The values that the interface shows of an enumeration; None if the field is none."""
    return _ENUMERATIONS.get(_INNER.sub("", name))


def describe_fields(raws: Sequence[Mapping[str, Any]]) -> list[FieldSeen]:
    """Every field of several objects, with the first few kinds and values that it has in them."""
    kinds: dict[str, dict[str, None]] = {}
    values: dict[str, dict[str, None]] = {}
    for raw in raws:
        for seen in seen_fields(raw):
            kinds.setdefault(seen.name, {})[seen.kind] = None
            if seen.value:
                values.setdefault(seen.name, {})[seen.value] = None
    return [
        FieldSeen(name, _few(found, " or "), _few(values.get(name, {}), ", "))
        for name, found in kinds.items()
    ]


def _few(words: Iterable[str], separator: str) -> str:
    shown = list(words)
    return separator.join(shown[:MAX_KINDS] + ["…"] * (len(shown) > MAX_KINDS))


def seen_fields(raw: Mapping[str, Any], prefix: str = "") -> Iterator[FieldSeen]:
    """Every field of an object, with the first element of each list and the fields of inner objects."""
    for name, value in raw.items():
        path = f"{prefix}{shown_name(name)}"
        if isinstance(value, dict):
            yield FieldSeen(path, "object")
            yield from seen_fields(value, f"{path}.")
        elif isinstance(value, list):
            yield FieldSeen(path, f"list of {len(value)}")
            if value and isinstance(value[0], dict):
                yield from seen_fields(value[0], f"{path}[0].")
        elif known_values(path) and isinstance(value, str) and _CODE.fullmatch(value):
            yield FieldSeen(path, "text", value)
        else:
            yield FieldSeen(path, _kind(value))


def _kind(value: Any) -> str:
    """The form of a value, without the value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "whole number"
        case Decimal():
            return _number_kind(str(value))
    text = str(value)
    if text == HIDDEN:
        return "hidden: a personal number"
    if re.fullmatch(r"-?\d+\.\d+", text, re.ASCII):
        return f"{_number_kind(text)}, as text"
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return "date, YYYY-MM-DD"
    if re.fullmatch(r"\d{4}/\d\d/\d\d", text, re.ASCII):
        return "date, YYYY/MM/DD"
    if re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d", text, re.ASCII):
        zone = re.sub(r"^[\d:.T -]+?(?=[A-Za-z]|[+-]\d\d:?\d\d$|$)", "", text).strip() or "none"
        zone = zone if _ZONE.fullmatch(zone) else "other text"
        return f"time, zone {zone}" if RemoteTime(text).at else f"{UNCERTAIN_TIME} ({zone})"
    if _ID.fullmatch(text):
        return "ID"
    return f"text, {len(text)} character{'' if len(text) == 1 else 's'}"


def _number_kind(text: str) -> str:
    decimals = len(text.partition(".")[2])
    return f"number, {decimals} decimal{'' if decimals == 1 else 's'}"


def shown_name(name: str) -> str:
    """The name of a field, which may be a value of a record: some services name members by an ID."""
    return _PERSONAL.sub("[hidden]", name[:_SHOWN_NAME])


def quoted(words: str) -> str:
    """A sentence of an error without values of a record."""
    words = _PERSONAL.sub("[hidden]", words.strip()) or "it has no usable response"
    return words if words.endswith((".", "!", "?")) else f"{words}."
