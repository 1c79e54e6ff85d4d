"""What an answer means.

Hides which status, body or header tells a refusal from a fault, and the many shapes of reasons.
"""

import html
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, Final, Literal

from servicing.codec import parse
from servicing.errors import (
    Conflict,
    Forbidden,
    NotFound,
    OutcomeUnknown,
    ProtocolError,
    Rejected,
    ServicingError,
    Unauthenticated,
    Unavailable,
)
from servicing.masking import masked, masked_text

Kind = Literal["read", "write"]

SIGNATURE_LIFE: Final = 60
MAX_REASONS: Final = 50
MAX_REASON: Final = 500
MAX_TEXT: Final = 20_000
MAX_DEPTH: Final = 8

_REASONS: Final = ("message", "error", "errors", "detail", "details")
_FIELD_NAMES: Final = ("field", "path", "name")
# What may stand beside the reasons in a body that is nothing but a refusal.
_AROUND: Final = frozenset({*_REASONS, "status", "statuscode", "status_code", "code", "success", "ok", "type",
                            "title", "timestamp", "path", "request_id", "requestid"})  # fmt: skip
_NOT_FOUND: Final = re.compile(r".*\bnot found\W*", re.IGNORECASE | re.DOTALL)
_MARKUP: Final = re.compile(r"<(script|style|title)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_REFUSALS: Final[dict[int, type[ServicingError]]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
}


def decipher(kind: Kind, status: int, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Any:
    """The JSON of an answer that is well; otherwise raises the error that the answer means."""
    try:
        value = parse(body)
    except ProtocolError:
        if status in range(200, 300):
            raise unreadable(kind, "it is not JSON.") from None
        value = _plain_text(body)
    if status in range(200, 300) and not _only_refuses(value):
        return value
    raise _error(kind, status, headers, reasons_in(value), now)


def reasons_in(value: Any) -> tuple[str, ...]:
    """The service's own words in a body of any shape, one by one."""
    found = islice(_reasons(value), MAX_REASONS)
    return tuple(dict.fromkeys(masked_text(text.strip())[:MAX_REASON] for text in found if text.strip()))


def readable(body: bytes) -> Any:
    """A body as it may be recorded: masked JSON, or masked text where it is none."""
    try:
        return masked(parse(body))
    except ProtocolError:
        return masked_text(body[:MAX_TEXT].decode(errors="replace"))


def unreadable(kind: Kind, why: str) -> ServicingError:
    """The error for an answer that seemed well and cannot be understood: a write may have been done."""
    return (ProtocolError if kind == "read" else OutcomeUnknown)(f"The answer cannot be read: {why}")


def _error(
    kind: Kind, status: int, headers: Mapping[str, str], reasons: tuple[str, ...], now: datetime
) -> ServicingError:
    meaning = _meaning(kind, status, reasons)
    apart = _seconds_apart(headers.get("Date", ""), now)
    if meaning in (Forbidden, Unauthenticated) and abs(apart) > SIGNATURE_LIFE:
        meaning = Unauthenticated
        reasons = (*reasons, f"Our clock and the service's are {abs(apart):.0f} seconds apart.")
    if meaning in (Unavailable, OutcomeUnknown, ProtocolError):
        return meaning(f"The lending service answered with status {status}.", reasons=reasons)
    return meaning("; ".join(reasons) or "The lending service refused without a reason.", reasons=reasons)


def _meaning(kind: Kind, status: int, reasons: tuple[str, ...]) -> type[ServicingError]:
    if status >= 500 or (status == 429 and kind == "read"):
        return Unavailable if kind == "read" else OutcomeUnknown
    if status < 200 or status in range(300, 400):
        return ProtocolError if kind == "read" else OutcomeUnknown
    if len(reasons) == 1 and _NOT_FOUND.fullmatch(reasons[0]):
        return NotFound
    return _REFUSALS.get(status, Rejected)


def _seconds_apart(date: str, now: datetime) -> float:
    try:
        return (parsedate_to_datetime(date).astimezone(UTC) - now).total_seconds()
    except ValueError:
        return 0.0


def _only_refuses(value: Any) -> bool:
    if not isinstance(value, dict) or not reasons_in({key: value.get(key) for key in _REASONS}):
        return False
    return all(item is None or key.casefold() in _AROUND for key, item in value.items())


def _reasons(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _reasons(item, depth + 1)
    elif isinstance(value, dict):
        yield from _reasons_of_object(value, depth + 1)


def _reasons_of_object(value: dict[str, Any], depth: int) -> Iterator[str]:
    """The parts that say why; where there are none, every field is taken to hold the reasons against it."""
    given = [value[key] for key in _REASONS if value.get(key)]
    if not given:
        for name, item in value.items():
            yield from (f"{name}: {reason}" for reason in _reasons(item, depth))
        return
    named = next((value[key] for key in _FIELD_NAMES if isinstance(value.get(key), str)), "")
    for item in given:
        yield from (f"{named}: {reason}" if named else reason for reason in _reasons(item, depth))


def _plain_text(body: bytes) -> str:
    """Running text, also from a page of HTML."""
    return html.unescape(" ".join(_MARKUP.sub(" ", body[:MAX_TEXT].decode(errors="replace")).split()))
