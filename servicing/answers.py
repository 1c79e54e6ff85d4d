"""Turns an HTTP answer into its JSON, or into the error that it means.

Hides which status, body or header distinguishes a rejection from a failure.
"""

import html
import re
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Any, Final, Literal

from servicing.codec import Budget, parse
from servicing.errors import (
    Busy,
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
from servicing.reasons import (
    ENVELOPE_FIELDS,
    has_content,
    plain_name,
    reasons_beside_data,
    reasons_in,
    says_success,
)

Kind = Literal["read", "write"]

RETRYABLE_STATUSES: Final = frozenset({408, 425, 429, 499, 502, 503, 504})
"""Statuses after which a read is retried."""
MAX_CLOCK_DIFFERENCE_SECONDS: Final = 60
MAX_TEXT_CHARACTERS: Final = 20_000
MAX_RECORDED_VALUES: Final = 100_000
MAX_WAIT_SECONDS: Final = 86_400.0
MAX_WAIT_IN_SECONDS: Final = 300
"""A longer wait is written in minutes."""

ERROR_MEMBERS: Final = ("message", "error", "errors", "detail", "details")
"""A lone one of these is a rejection; a name that a record also has, such as `error_description`, decides nothing."""
# The service or a proxy gave up on the request without saying whether it was carried out.
_UNDECIDED_STATUSES: Final = frozenset({408, 425, 499})
_NOT_FOUND_REASON: Final = re.compile(r".*\bnot found\W*", re.IGNORECASE | re.DOTALL)
_MARKUP: Final = re.compile(r"<(script|style|title)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_REFUSALS: Final[dict[int, type[ServicingError]]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
}


def interpret(
    kind: Kind,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: datetime,
    budget: Budget | None = None,
    envelope: str = "",
) -> Any:
    """The decoded body of a 2xx answer; raise the error that any other answer means.

    `envelope` is the member that holds an object, and so an error too.
    """
    is_success = status in range(200, 300)
    try:
        value = parse(body, budget)
    except ProtocolError as problem:
        if is_success:
            raise unreadable_answer(kind, problem.message) from None
        value = _plain_text(body)
    inner = open_envelope(value, envelope)
    is_refused = _is_refused_write if kind == "write" else _holds_only_reasons
    if is_success and not is_refused(value) and not is_refused(inner):
        return value
    reasons = reasons_in(value)
    if inner is not value:
        reasons = tuple(dict.fromkeys((*reasons_beside_data(value), *reasons_in(inner))))
    raise _error(kind, status, headers, reasons, now)


def open_envelope(value: Any, name: str) -> Any:
    """The object in an envelope, or the value itself if it is none."""
    inner = value.get(name) if name and isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else value


def recordable_body(body: bytes) -> Any:
    """The body in a form that may be recorded: masked JSON, or masked text if it is not JSON or too large."""
    try:
        return masked(parse(body, Budget(max_values=MAX_RECORDED_VALUES)))
    except ProtocolError:
        return masked_text(_decode(body))


def unreadable_answer(kind: Kind, why: str, words: Sequence[str] = ()) -> ServicingError:
    """The error for a 2xx answer that cannot be read: a write may have been carried out."""
    quoted = f" The service said: {'; '.join(words)}" if words else ""
    return (ProtocolError if kind == "read" else OutcomeUnknown)(
        f"Unreadable response: {why}{quoted}", reasons=words
    )


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until the time in `Retry-After` (a number or a date), at most a day; None without that header."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_WAIT_SECONDS)
    if moment := _http_date(text):
        return max(0.0, min((moment - now).total_seconds(), MAX_WAIT_SECONDS))
    return None


def _error(
    kind: Kind, status: int, headers: Mapping[str, str], reasons: tuple[str, ...], now: datetime
) -> ServicingError:
    meaning = _error_type(kind, status, reasons)
    difference = _clock_difference_seconds(headers.get("Date", ""), now)
    if meaning in (Forbidden, Unauthenticated) and difference > MAX_CLOCK_DIFFERENCE_SECONDS:
        meaning = Unauthenticated
        reasons = (*reasons, f"Our clock and the service's are {difference:.0f} seconds apart.")
    wait = retry_after_seconds(headers, now)
    if meaning is Busy:
        advice = f"Try again in {_describe_wait(wait)}." if wait else Busy.advice
        message = f"The service is busy. Nothing was sent. {advice}"
    elif meaning in (Unavailable, OutcomeUnknown, ProtocolError):
        message = f"The lending service returned status {status}."
    else:
        message = "; ".join(reasons) or "The lending service rejected the request without a reason."
    error = meaning(message, reasons=reasons)
    error.retry_after = wait
    if isinstance(error, Busy):
        error.advice = advice
    return error


def _describe_wait(seconds: float) -> str:
    number, unit = (
        (ceil(seconds), "second") if seconds <= MAX_WAIT_IN_SECONDS else (ceil(seconds / 60), "minute")
    )
    return f"{number} {unit}{'' if number == 1 else 's'}"


def _error_type(kind: Kind, status: int, reasons: tuple[str, ...]) -> type[ServicingError]:
    if status == 429 and kind == "write":
        return Busy
    if status >= 500 or status in _UNDECIDED_STATUSES or status == 429:
        return Unavailable if kind == "read" else OutcomeUnknown
    if status < 200 or status in range(300, 400):
        return ProtocolError if kind == "read" else OutcomeUnknown
    if len(reasons) == 1 and _NOT_FOUND_REASON.fullmatch(reasons[0]):
        return NotFound
    return _REFUSALS.get(status, Rejected)


def _clock_difference_seconds(date: str, now: datetime) -> float:
    moment = _http_date(date)
    return abs((moment - now).total_seconds()) if moment else 0.0


def _http_date(text: str) -> datetime | None:
    """The time in an HTTP date header, or None if it is not a valid date."""
    try:
        moment = parsedate_to_datetime(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, TypeError):
        return None


def _is_refused_write(value: Any) -> bool:
    """Whether a 2xx answer is in fact a rejection: it has an error and no sign of success."""
    return (
        _holds_only_reasons(value)
        and any(has_content(value.get(key)) for key in ("error", "errors"))
        and not says_success(value)
    )


def _holds_only_reasons(value: Any) -> bool:
    """Whether a body holds reasons and otherwise only fields of a rejection."""
    if not isinstance(value, dict) or not any(has_content(value.get(key)) for key in ERROR_MEMBERS):
        return False
    return all(item is None or plain_name(key) in ENVELOPE_FIELDS for key, item in value.items())


def _plain_text(body: bytes) -> str:
    """The visible text of a body, which may be an HTML page."""
    return html.unescape(" ".join(_MARKUP.sub(" ", _decode(body)).split()))


def _decode(body: bytes) -> str:
    return body.removeprefix(BOM_UTF8)[:MAX_TEXT_CHARACTERS].decode(errors="replace")
