"""What an answer means.

Hides which status, body or header tells a refusal from a fault, and the many shapes of reasons.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, Final, Literal

from servicing.codec import Budget, parse
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

TRY_AGAIN: Final = frozenset({408, 425, 429, 499, 502, 503, 504})
"""A read that is answered with one of these is tried again."""
SIGNATURE_SECONDS: Final = 60
MAX_REASONS: Final = 50
MAX_REASON_CHARACTERS: Final = 500
MAX_TEXT_CHARACTERS: Final = 20_000
MAX_RECORDED_VALUES: Final = 100_000
MAX_WAIT_SECONDS: Final = 86_400.0
MAX_DEPTH: Final = 8

_REASONS: Final = ("message", "error", "errors", "detail", "details")
_FIELD_NAMES: Final = ("field", "path", "name")
# What may stand beside the reasons in a body that is nothing but a refusal.
_AROUND: Final = frozenset({*_REASONS, "status", "statuscode", "status_code", "code", "success", "ok", "type",
                            "title", "timestamp", "path", "request_id", "requestid"})  # fmt: skip
# The service, or a proxy before it, gave up on the request without a word on what became of it.
_NO_VERDICT: Final = frozenset({408, 425, 499})
_NOT_FOUND: Final = re.compile(r".*\bnot found\W*", re.IGNORECASE | re.DOTALL)
_MARKUP: Final = re.compile(r"<(script|style|title)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_REFUSALS: Final[dict[int, type[ServicingError]]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
}


def decipher(
    kind: Kind,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: datetime,
    budget: Budget | None = None,
) -> Any:
    """The JSON of a successful answer; raises the error that any other answer means."""
    is_success = status in range(200, 300)
    try:
        value = parse(body, budget)
    except ProtocolError as problem:
        if is_success:
            raise unreadable(kind, problem.message) from None
        value = _plain_text(body)
    if is_success and kind == "write" and not _is_refused_write(value):
        return value
    if is_success and kind == "read" and not _only_says_why(value):
        return value
    raise _error(kind, status, headers, reasons_in(value), now)


def reasons_in(value: Any) -> tuple[str, ...]:
    """The service's own words in a body of any shape, one by one."""
    found = islice(_reasons(value), MAX_REASONS)
    return tuple(
        dict.fromkeys(masked_text(text.strip())[:MAX_REASON_CHARACTERS] for text in found if text.strip())
    )


def words_in(value: Any) -> tuple[str, ...]:
    """The service's own words in a body that may hold more than these."""
    return reasons_in({key: value.get(key) for key in _REASONS} if isinstance(value, dict) else value)


def readable(body: bytes) -> Any:
    """A body as it may be recorded: masked JSON, or masked text where it is none, or too much."""
    try:
        return masked(parse(body, Budget(max_values=MAX_RECORDED_VALUES)))
    except ProtocolError:
        return masked_text(body[:MAX_TEXT_CHARACTERS].decode(errors="replace"))


def unreadable(kind: Kind, why: str, words: Sequence[str] = ()) -> ServicingError:
    """The error for an answer that seemed well and cannot be understood: a write may have been done."""
    said = f" The service said: {'; '.join(words)}" if words else ""
    return (ProtocolError if kind == "read" else OutcomeUnknown)(
        f"The answer cannot be read: {why}{said}", reasons=words
    )


def seconds_to_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds that the service asks for, by number or date, at most a day; None when it does not ask."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_WAIT_SECONDS)
    if moment := _http_date(text):
        return max(0.0, min((moment - now).total_seconds(), MAX_WAIT_SECONDS))
    return None


def _error(
    kind: Kind, status: int, headers: Mapping[str, str], reasons: tuple[str, ...], now: datetime
) -> ServicingError:
    meaning = _meaning(kind, status, reasons)
    difference = _clock_difference(headers.get("Date", ""), now)
    if meaning in (Forbidden, Unauthenticated) and difference > SIGNATURE_SECONDS:
        meaning = Unauthenticated
        reasons = (*reasons, f"Our clock and the service's are {difference:.0f} seconds apart.")
    if meaning in (Unavailable, OutcomeUnknown, ProtocolError):
        message = f"The lending service answered with status {status}."
    else:
        message = "; ".join(reasons) or "The lending service refused without a reason."
    error = meaning(message, reasons=reasons)
    error.retry_after = seconds_to_wait(headers, now)
    return error


def _meaning(kind: Kind, status: int, reasons: tuple[str, ...]) -> type[ServicingError]:
    if status >= 500 or status in _NO_VERDICT or (status == 429 and kind == "read"):
        return Unavailable if kind == "read" else OutcomeUnknown
    if status < 200 or status in range(300, 400):
        return ProtocolError if kind == "read" else OutcomeUnknown
    if len(reasons) == 1 and _NOT_FOUND.fullmatch(reasons[0]):
        return NotFound
    return _REFUSALS.get(status, Rejected)


def _clock_difference(date: str, now: datetime) -> float:
    moment = _http_date(date)
    return abs((moment - now).total_seconds()) if moment else 0.0


def _http_date(text: str) -> datetime | None:
    """The moment a header names; None for what is none, or lies beyond any calendar."""
    try:
        moment = parsedate_to_datetime(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, TypeError):
        return None


def _is_refused_write(value: Any) -> bool:
    """Whether a success status hides a refusal: an error is given, and nothing says that it was done."""
    return (
        _only_says_why(value)
        and any(_is_filled(value.get(key)) for key in ("error", "errors"))
        and not any(_says_yes(value.get(key)) for key in ("success", "ok"))
    )


def _only_says_why(value: Any) -> bool:
    """Whether a body holds reasons, and nothing but what usually stands beside reasons."""
    if not isinstance(value, dict) or not any(_is_filled(value.get(key)) for key in _REASONS):
        return False
    return all(item is None or key.casefold() in _AROUND for key, item in value.items())


def _is_filled(value: Any, depth: int = 0) -> bool:
    """Whether a reason says anything; an object or a list of nothing does not."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth < MAX_DEPTH and any(_is_filled(item, depth + 1) for item in inner)
    return bool(value.strip() if isinstance(value, str) else value)


def _says_yes(value: Any) -> bool:
    return value not in (None, False, 0, "") and str(value).casefold() not in ("false", "0", "no")


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
    return html.unescape(
        " ".join(_MARKUP.sub(" ", body[:MAX_TEXT_CHARACTERS].decode(errors="replace")).split())
    )
