"""One call to the service, from a signed request to a decoded answer or a named error.

Hides the HTTP library, the signature of each try, retries, the header rule, the limits of time and size, watchers
and circuit breakers. `servicing.answers` decides what an answer means, `servicing.connections` enforces the time limit.

Reads are retried. Writes never are, because the service cannot recognize a repeated one.
"""

import copy
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from random import SystemRandom
from typing import Any, Final, NamedTuple, Protocol, Self, TypeVar

import requests
from requests.auth import AuthBase

from servicing.answers import (
    RETRYABLE_STATUSES,
    Kind,
    interpret,
    recordable_body,
    retry_after_seconds,
    unreadable_answer,
)
from servicing.auth import BearerAuth
from servicing.codec import Budget, to_json
from servicing.connections import EXPECTED_ERRORS, TOOK_TOO_LONG, Exchange, describe_failure
from servicing.errors import (
    InvalidInput,
    NotSent,
    OutcomeUnknown,
    ProtocolError,
    ServicingError,
    Unauthenticated,
    Unavailable,
)
from servicing.masking import HIDDEN, masked
from servicing.oauth2 import ClientCredentialsAuth
from servicing.reasons import reasons_beside_data
from servicing.version import __version__

T = TypeVar("T")

MAX_ANSWER_BYTES: Final = 32 * 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_SHORTEST_WAIT_SECONDS: Final = 0.5
_LONGEST_WAIT_SECONDS: Final = 5.0
_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_random = SystemRandom()

logger = logging.getLogger("servicing")


class Payload:
    """A JSON request body. Its `repr` shows none of its contents."""

    __slots__ = ("_fields", "content_type")

    def __init__(self, fields: dict[str, Any], *, content_type: str = "application/json") -> None:
        self._fields = fields
        self.content_type = content_type
        """The Content-Type header; empty to send none."""

    def text(self) -> bytes:
        return to_json(self._fields)

    def masked(self) -> Any:
        return masked(self._fields)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call in a form that may be recorded: it contains nothing secret.

    `operation` is `<area>.<method>` of the client, for example `loans.get`; `kind` is `read` or `write`. `path` and
    `query` are as sent; `ids` are the IDs in `path` by argument (`borrower_id`, `loan_id`). `request_id` is sent as
    `X-Request-ID` and is part of every error of the call.
    """

    request_id: str
    operation: str
    kind: Kind
    method: str
    path: str
    ids: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    """The masked JSON body, or None."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a call: an `answer`, or the `error` that the caller gets."""

    answer: Any
    """The decoded model, list or page; None if there is an error."""
    error: ServicingError | None
    status: int | None
    """The HTTP status of the last try; None without a complete answer."""
    tries: int
    seconds: float
    """The time from the start of the first try to the end of the last, waits included."""
    content: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)
    """The headers of the last answer, with case-insensitive names."""

    @property
    def body(self) -> Any:
        """The answer in a form that may be recorded, masked JSON or masked text; None without an answer."""
        return recordable_body(self.content) if self.content else None


class AnswerNotSaved(Exception):
    """The outcome of a call could not be saved. A watcher's `after` may raise this to the caller."""


class Watcher(Protocol):
    """Records calls. Implement it and pass an instance to `Client.with_watcher`.

    Both methods run in the thread that makes the call.

    `before` runs just before a write is sent, never for a read. If it raises, nothing is sent and the caller gets
    the exception: a write that cannot be recorded is not made.

    `after` runs once for every write that was started and every read that was sent, successful or not, before the
    caller gets the result. If it raises, the exception is logged and the caller still gets the result: an error in
    the watcher must not hide what the service did. Only `AnswerNotSaved` reaches the caller, who must then not
    continue as if the outcome were recorded.
    """

    def before(self, call: Call, /) -> None:
        """Record that a write is about to be sent; raise to stop it."""

    def after(self, call: Call, outcome: Outcome, /) -> None:
        """Record the outcome of a call."""


class Gate(Protocol):
    """A circuit breaker. Implement it and pass an instance as `gate` to every `Client` that should share it.

    A try that it does not allow is not made: a read raises `Unavailable` at once, a write `NotSent`.
    """

    def allows_request(self) -> bool:
        """Whether the service may be called now; called before every try."""

    def record_result(self, *, answered: bool) -> None:
        """Record, after a try, whether the service answered. Statuses that are retried count as no answer."""


class Reply(NamedTuple):
    """The raw answer to one try; `status` is None without a complete answer."""

    status: int | None
    headers: Mapping[str, str]
    body: bytes
    failure: str = ""
    was_not_sent: bool = False
    refusal: ServicingError | None = None
    """Why there are no credentials to send."""

    @property
    def is_final(self) -> bool:
        """Whether a retry is pointless."""
        if self.status is None:
            return isinstance(self.refusal, Unauthenticated)
        return self.status not in RETRYABLE_STATUSES


_BLOCKED: Final = Reply(None, {}, b"", "several calls in a row failed", was_not_sent=True)
"""In place of a reply to a try that the gate doesn't allow."""


_MIN_CREDENTIAL_LENGTH: Final = 8
"""A shorter one may be part of any text."""


class Transport:
    """Makes calls. Copies made by `with_watcher` share its connections."""

    def __init__(
        self,
        base_url: str,
        auth: AuthBase,
        *,
        session: requests.Session,
        timeout: tuple[float, float],
        time_limit: float,
        max_tries: int,
        max_values: int,
        max_records: int,
        envelope: str = "",
        list_envelope: str = "",
        credentials: Sequence[str] = (),
        sleep: Callable[[float], None] = time.sleep,
        gate: Gate | None = None,
    ) -> None:
        """`credentials` are hidden in every answer, should the service repeat one."""
        self._base_url = base_url
        self.auth = auth
        self._oauth2 = auth if isinstance(auth, ClientCredentialsAuth) else None
        self._session = session
        self._timeout = timeout
        self._time_limit = time_limit
        self._max_tries = max_tries
        self._renews_tokens = True
        self._max_values = max_values
        self._max_records = max_records
        self.envelope = envelope
        self.list_envelope = list_envelope
        self._credentials = credentials
        self._sleep = sleep
        self._gate = gate
        self._watcher: Watcher | None = None
        self._parent_id = ""

    def with_watcher(self, watcher: Watcher | None, request_id: str = "") -> Self:
        """A copy that reports its calls to `watcher`, and whose request ids begin with `request_id`."""
        clone = copy.copy(self)
        clone._watcher, clone._parent_id = watcher, request_id
        return clone

    def with_auth(self, auth: AuthBase) -> Self:
        """A copy that signs its calls with another scheme."""
        clone = copy.copy(self)
        clone.auth, clone._oauth2 = auth, None
        return clone

    def with_single_try(self) -> Self:
        """A copy that sends each call once, and not again with a new token."""
        clone = copy.copy(self)
        clone._max_tries, clone._renews_tokens = 1, False
        return clone

    def with_time_limit(self, seconds: float) -> Self:
        """A copy whose calls take at most this long."""
        clone = copy.copy(self)
        clone._time_limit = min(seconds, self._time_limit)
        return clone

    def close(self) -> None:
        """Close the idle connections."""
        self._session.close()

    def call(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        ids: Mapping[str, str],
        read: Callable[[Any, Budget], T],
        query: Mapping[str, str] | None = None,
        payload: Payload | None = None,
    ) -> T:
        """Make one call and return the result of `read` on the answer's JSON.

        `path` contains the names of `ids` in braces. Every error carries operation, status and request ID.
        """
        call = Call(
            request_id=self._next_id(),
            operation=operation,
            kind="read" if method == "GET" else "write",
            method=method,
            path=path.format_map(_checked_ids(ids)),
            ids=ids,
            query=query or {},
            body=payload.masked() if payload and self._watcher else None,
        )
        if self._watcher and call.kind == "write":
            self._watcher.before(call)
        progress = _Progress(time.monotonic(), self._time_limit)
        try:
            reply = self._send(call, payload, progress)
            budget = Budget(self._max_values, self._max_records, progress.deadline)
            result = _read_or_error(call, reply, read, budget, self.envelope)
        except BaseException:  # The process is ending, but a started call still needs an outcome.
            reply = Reply(None, {}, b"", "the call was interrupted", not progress.sent)
            with suppress(AnswerNotSaved):
                self._notify(call, progress, reply, _attach_call(_no_answer_error(call, reply), call, reply))
            raise
        if isinstance(result, ServicingError) and reply.status in range(200, 300):
            self.close()  # The answer may belong to another call; the next one needs a new connection.
        try:
            self._notify(call, progress, reply, result)
        finally:
            if call.kind == "write":  # A gate may block, so the answer is saved first.
                self._record_result(call, reply)
        if isinstance(result, ServicingError):
            raise result
        return result

    def _next_id(self) -> str:
        return f"{self._parent_id}-{secrets.token_hex(3)}" if self._parent_id else secrets.token_hex(8)

    def _send(self, call: Call, payload: Payload | None, progress: "_Progress") -> Reply:
        """The final answer, or that of the last try; a write has only one try."""
        while True:
            if not self._is_allowed(call):
                return _BLOCKED
            reply = self._send_once(call, payload, progress)
            if reply.status == HTTPStatus.UNAUTHORIZED and self._oauth2 and progress.token:
                self._oauth2.forget(progress.token)
                # The token may have ended early.
                if call.kind == "read" and self._renews_tokens and not progress.has_new_token:
                    progress.has_new_token = True
                    continue
            if call.kind == "write":
                return reply
            self._record_result(call, reply)
            if reply.is_final or progress.tries >= self._max_tries:
                return reply
            wait = _retry_delay_seconds(reply, progress.tries)
            if time.monotonic() + wait >= progress.deadline:
                return reply
            self._sleep(wait)

    def _is_allowed(self, call: Call) -> bool:
        try:
            return not self._gate or self._gate.allows_request()
        except Exception:
            logger.exception("%s: could not find out whether the service may be called", call.request_id)
            return True

    def _record_result(self, call: Call, reply: Reply) -> None:
        try:
            if self._gate and reply is not _BLOCKED:
                self._gate.record_result(answered=reply.is_final)
        except Exception:  # An error of the gate must not hide what the service did.
            logger.exception("%s: could not record whether the service answered", call.request_id)

    def _send_once(self, call: Call, payload: Payload | None, progress: "_Progress") -> Reply:
        progress.tries += 1
        progress.exchange = None
        auth = self.auth
        if self._oauth2:
            try:
                auth = progress.token = self._oauth2.current(progress.deadline)
            except ServicingError as problem:
                return Reply(None, {}, b"", was_not_sent=True, refusal=problem)
        progress.exchange = exchange = Exchange(progress.deadline, needs_new_connection=call.kind == "write")
        try:
            with exchange:
                reply = self._receive_answer(self._prepare_request(call, payload, auth), exchange)
        except Exception as problem:
            if not isinstance(problem, EXPECTED_ERRORS):
                logger.exception("%s: %s failed on our side", call.request_id, call.operation)
            reply = Reply(None, {}, b"", describe_failure(problem), not exchange.sent)
        if exchange.timed_out:  # The answer may be cut off.
            return Reply(None, {}, b"", TOOK_TOO_LONG, not exchange.sent)
        return reply

    def _prepare_request(
        self, call: Call, payload: Payload | None, auth: AuthBase
    ) -> requests.PreparedRequest:
        request = requests.Request(
            call.method,
            self._base_url + call.path,
            params=call.query,
            data=payload.text() if payload else None,
            headers=self._headers(call, payload),
            auth=auth,
        )
        return self._session.prepare_request(request)

    def _receive_answer(self, prepared: requests.PreparedRequest, exchange: Exchange) -> Reply:
        left = exchange.seconds_left()
        timeout = (min(self._timeout[0], left), min(self._timeout[1], left))
        exchange.sent = True  # Until a connection is chosen, assume that something was sent.
        with self._session.send(prepared, stream=True, timeout=timeout, allow_redirects=False) as response:
            # A token of oauth2 and an encoded password are only in the request.
            sent = prepared.headers.get("Authorization", "").rpartition(" ")[2]
            body = _without((*self._credentials, sent), _read_body(response))
            return Reply(response.status_code, response.headers, body)

    def _notify(self, call: Call, progress: "_Progress", reply: Reply, result: Any) -> None:
        if not self._watcher or (call.kind == "read" and not progress.tries):
            return
        error = result if isinstance(result, ServicingError) else None
        outcome = Outcome(
            answer=None if error else result,
            error=error,
            status=reply.status,
            tries=progress.tries,
            seconds=time.monotonic() - progress.started,
            content=reply.body,
            headers=reply.headers,
        )
        try:
            self._watcher.after(call, outcome)
        except AnswerNotSaved:
            raise
        except Exception:
            logger.exception("%s: could not record the outcome of %s", call.request_id, call.operation)

    def _headers(self, call: Call, payload: Payload | None) -> dict[str, str]:
        """The headers of a request. Without a body there is no Content-Type, which makes four reads fail with 500."""
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            "User-Agent": f"servicing/{__version__}",
            "X-Request-ID": call.request_id,
        }
        if payload and payload.content_type:
            headers["Content-Type"] = payload.content_type
        return headers


class _Progress:
    """The progress of a call: its deadline, its tries and the current exchange."""

    def __init__(self, started: float, time_limit: float) -> None:
        self.started = started
        self.deadline = started + time_limit
        self.tries = 0
        self.exchange: Exchange | None = None
        self.token: BearerAuth | None = None
        self.has_new_token = False

    @property
    def sent(self) -> bool:
        return bool(self.exchange and self.exchange.sent)


def _without(credentials: Iterable[str], body: bytes) -> bytes:
    """The body with these credentials hidden, also where JSON escapes their slashes."""
    for text in credentials:
        if len(text) >= _MIN_CREDENTIAL_LENGTH:
            for spelling in (text, text.replace("/", "\\/")):
                body = body.replace(spelling.encode(), HIDDEN.encode())
    return body


def _read_body(response: requests.Response) -> bytes:
    """The body of an answer, cut off just above `MAX_ANSWER_BYTES`."""
    content = bytearray()
    while len(content) <= MAX_ANSWER_BYTES and (
        chunk := response.raw.read1(_CHUNK_BYTES, decode_content=True)
    ):
        content += chunk
    return bytes(content)


def _read_or_error(
    call: Call, reply: Reply, read: Callable[[Any, Budget], T], budget: Budget, envelope: str
) -> T | ServicingError:
    """The result of `read` on the answer, or the error that the answer means."""
    try:
        if reply.status is None:
            raise _no_answer_error(call, reply)
        if len(reply.body) > MAX_ANSWER_BYTES:
            raise unreadable_answer(call.kind, f"it has more than {MAX_ANSWER_BYTES:,} bytes.")
        now = datetime.now(UTC)
        value = interpret(
            call.kind, reply.status, reply.headers, reply.body, now=now, budget=budget, envelope=envelope
        )
        try:
            return read(value, budget)
        except ProtocolError as problem:
            raise unreadable_answer(call.kind, problem.message, reasons_beside_data(value)) from None
    except ServicingError as problem:
        error = problem
    except TimeoutError:
        error = _no_answer_error(call, Reply(None, {}, b"", TOOK_TOO_LONG))
    except Exception:
        logger.exception("%s: the answer to %s could not be read", call.request_id, call.operation)
        error = unreadable_answer(call.kind, "reading it failed on our side.")
    return _attach_call(error, call, reply)


def _attach_call(error: ServicingError, call: Call, reply: Reply) -> ServicingError:
    error.operation, error.status, error.request_id = call.operation, reply.status, call.request_id
    return error


def _no_answer_error(call: Call, reply: Reply) -> ServicingError:
    if problem := reply.refusal:
        if call.kind == "read":
            return problem
        return NotSent(f"Nothing was sent. {problem.message}", reasons=problem.reasons)
    if call.kind == "read":
        if reply is _BLOCKED:
            return Unavailable("The service isn’t responding. Try again in a moment.")
        return Unavailable(f"The lending service didn’t respond: {reply.failure}.")
    if reply.was_not_sent:
        return NotSent(
            f"Nothing was sent. The lending service can’t be reached: {reply.failure}. Try again in a moment."
        )
    return OutcomeUnknown(
        f"The lending service didn’t respond, so the change may or may not have gone through: {reply.failure}."
    )


def _retry_delay_seconds(reply: Reply, tries: int) -> float:
    """Seconds until the next try: random and growing with each try, but at least what the service asks for."""
    longest = min(_LONGEST_WAIT_SECONDS, _SHORTEST_WAIT_SECONDS * 3**tries)
    jittered = _random.uniform(_SHORTEST_WAIT_SECONDS, longest)
    return max(jittered, retry_after_seconds(reply.headers, datetime.now(UTC)) or 0)


def _checked_ids(ids: Mapping[str, str]) -> Mapping[str, str]:
    """The IDs, checked: one with a slash or dots in a path would lead to another record."""
    problems = {
        name: ["An ID has 1 to 100 letters, digits, dashes or underscores."]
        for name, value in ids.items()
        if not isinstance(value, str) or not _ID_PATTERN.fullmatch(value)
    }
    if problems:
        raise InvalidInput(problems)
    return ids
