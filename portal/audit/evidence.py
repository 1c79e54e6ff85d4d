"""What was sent by a write with a lost answer, beside what the service has said since.

Hides how the messages and answers that may be about the write are found, and how their values are compared with those
sent.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from django.db.models import Q

from portal.audit.models import WriteIntent
from portal.core.folding import folded_key
from portal.records import store
from portal.records.models import Kind
from portal.records.rows import records_of, with_answers
from servicing import rules
from servicing.masking import HIDDEN

CREATED_KIND: Final = {"borrowers.create_commercial": Kind.BORROWER, "applications.submit": Kind.APPLICATION}
"""What each creation creates."""
MAX_SHOWN = 4
MAX_SEARCHED = 200
MIN_EQUAL = 2
"""So many equal values make an answer without a known ID one about a creation; all, if fewer were sent."""
IDENTITY: Final = ("first_name", "email", "phone")
"""Of these a borrower's creation and an answer about it share one; most others are shared by half the portfolio."""


@dataclass(frozen=True)
class Evidence:
    """A message or an answer from after the attempt."""

    title: str
    at: datetime | None
    url: str
    values: Mapping[str, Any]
    """Its object as decoded JSON."""


@dataclass(frozen=True)
class Comparison:
    """One field: as sent, and in each piece of evidence as words and whether they agree, None if it has no value."""

    label: str
    sent: str
    cells: Sequence[tuple[str, bool | None]]


def saved_answers(intent: WriteIntent) -> Iterator[Evidence]:
    """The saved copies that were answered after the attempt."""
    kind = CREATED_KIND.get(intent.operation)
    records = with_answers(records_of(kind or intent.subject_kind)).filter(answer_at__gt=intent.created_at)
    if kind is None:
        records = records.filter(uuid=intent.subject_uuid)
    elif kind == Kind.BORROWER:
        records = records.filter(_has_identity(intent.request_body or {}))
    else:
        records = records.filter(borrower_uuid=intent.borrower_uuid)
    for record in records.order_by("-answer_at")[:MAX_SEARCHED]:
        try:
            values = json.loads(store.saved_text(record), parse_float=Decimal)
        except ValueError:
            continue
        if isinstance(values, dict):
            yield Evidence(f"Answer: {record}", record.answer_at, record.get_absolute_url(), values)


SOURCES: list[Callable[[WriteIntent], Iterable[Evidence]]] = [saved_answers]
"""Where evidence comes from; areas above this one add theirs."""


def evidence_about(intent: WriteIntent) -> list[Evidence]:
    """The evidence that names the changed record, or for a creation has the values that were sent."""
    sent = _leaves(intent.request_body)
    found = [one for source in SOURCES for one in source(intent) if _is_about(intent, sent, one.values)]
    return sorted(found, key=lambda one: _number_equal(sent, _leaves(one.values)), reverse=True)[:MAX_SHOWN]


def compare(intent: WriteIntent, evidence: Sequence[Evidence]) -> list[Comparison]:
    """Every value sent beside the evidence, without those hidden here, which the service doesn't return either."""
    others = [_leaves(one.values) for one in evidence]
    return [
        Comparison(_label(path), _text(value), [_cell(path, value, other) for other in others])
        for path, value in _leaves(intent.request_body).items()
    ]


def _is_about(intent: WriteIntent, sent: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    if intent.subject_uuid and values.get("uuid") == intent.subject_uuid:
        return True
    if intent.operation not in CREATED_KIND:
        return False
    owner = values.get("user_uuid")
    if owner and intent.borrower_uuid and owner != intent.borrower_uuid:
        return False
    other = _leaves(values)
    known = [name for name in IDENTITY if name in sent] if _is_borrower(intent) else []
    if known and not any(name in other and _is_equal(sent[name], other[name]) for name in known):
        return False
    return _number_equal(sent, other) >= max(1, min(MIN_EQUAL, len(sent)))


def _is_borrower(intent: WriteIntent) -> bool:
    return CREATED_KIND.get(intent.operation) == Kind.BORROWER


def _has_identity(body: Mapping[str, Any]) -> Q:
    """The borrowers on file with the name, the email or the phone that was sent."""
    name, email, phone = (str(body.get(one) or "") for one in IDENTITY)
    same = Q(pk=None)
    if name:
        same |= Q(folded_name=folded_key(name)[:300])
    if email:
        same |= Q(email__iexact=email)
    if phone:
        digits = _plain(phone)
        same |= Q(phone__in=[phone, f"{digits}", f"+1{digits}"])
    return same


def _number_equal(sent: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    return sum(path in other and _is_equal(value, other[path]) for path, value in sent.items())


def _cell(path: str, sent: Any, other: Mapping[str, Any]) -> tuple[str, bool | None]:
    if other.get(path) is None:
        return "", None
    return _text(other[path]), _is_equal(sent, other[path])


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    """The values in a body by their path, such as ``key_people 1: address: city``."""
    if isinstance(value, dict):
        parts = [(f"{path}: {name}" if path else str(name), part) for name, part in value.items()]
    elif isinstance(value, list):
        parts = [(f"{path} {number}", part) for number, part in enumerate(value, 1)]
    else:
        return {} if value is None or value == HIDDEN else {path: value}
    return {name: leaf for one, part in parts for name, leaf in _leaves(part, one).items()}


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two values are the same apart from case, blanks, the notation of phones and zeros after the point."""
    return bool(_plain(one) == _plain(other))


def _plain(value: Any) -> Any:
    text = " ".join(str(value).casefold().split())
    if not rules.phone_problems(text):
        return rules.normalize_phone(text)
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _text(value: Any) -> str:
    return {True: "Yes", False: "No"}[value] if isinstance(value, bool) else str(value)


def _label(path: str) -> str:
    return path.replace("_", " ").capitalize()
