"""One call to the service, from a signed request to a decoded answer or a named error.

Hides the HTTP library, signing anew on every try, which calls may be tried again and when, the header rule,
the limits of time and size, and who watches. What an answer means is for `servicing.answers` to say, how a
connection keeps to the time limit for `servicing.connections`.

Reads are tried again. Writes never are, for the service has no way to tell a repeated one.
"""

import copy
import http.client
import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import SystemRandom
from typing import Any, Final, NamedTuple, Protocol, Self, TypeVar

import requests
import urllib3.exceptions
from requests.auth import AuthBase

from servicing.answers import TRY_AGAIN, Kind, decipher, readable, seconds_to_wait, unreadable, words_in
from servicing.codec import Budget, to_json
from servicing.connections import Exchange
from servicing.errors import (
    InvalidInput,
    NotSent,
    OutcomeUnknown,
    ProtocolError,
    ServicingError,
    Unavailable,
)
from servicing.masking import masked
from servicing.version import __version__

T = TypeVar("T")

MAX_ANSWER_BYTES: Final = 32 * 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_SHORTEST_WAIT_SECONDS: Final = 0.5
_LONGEST_WAIT_SECONDS: Final = 5.0
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_random = SystemRandom()

logger = logging.getLogger("servicing")


class Payload:
    """A JSON body on its way out. Nothing that prints it shows what is in it."""

    __slots__ = ("_fields", "content_type")

    def __init__(self, fields: dict[str, Any], *, content_type: str = "application/json") -> None:
        self._fields = fields
        self.content_type = content_type
        """Empty where the body goes without that header."""

    def text(self) -> bytes:
        return to_json(self._fields)

    def masked(self) -> Any:
        return masked(self._fields)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call as it may be recorded: nothing in it is secret.

    `operation` is `<area>.<method>` of the client, such as `loans.get`; `kind` is `read` or `write`. `path` and
    `query` are as they were sent, `ids` are the arguments that `path` was made from (`borrower_id`, `loan_id`).
    `request_id` is sent as `X-Request-ID`, and every error of the call carries it.
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
    """How a call ended: with an `answer`, or with the `error` that the caller gets."""

    answer: Any
    """The decoded model, list or page; None when there is an error."""
    error: ServicingError | None
    status: int | None
    """Of the last try; None when no whole answer came."""
    tries: int
    seconds: float
    """From the start of the first try to the end of the last, waits included."""
    content: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)
    """Of the last answer; their names are looked up in any case."""

    @property
    def body(self) -> Any:
        """The answer as it may be recorded: masked JSON, or masked text; None when there was none."""
        return readable(self.content) if self.content else None


class AnswerNotSaved(Exception):
    """How a call ended could not be saved. Raised by a watcher's `after`, it reaches whoever made the call."""


class Watcher(Protocol):
    """What a program implements to record calls; given to `Client.watched_by`. Both methods are called in the
    thread that makes the call.

    `before` comes just before a write leaves (never for a read). If it raises, nothing is sent and the
    exception goes to the caller: a write that cannot be recorded is not made.

    `after` comes once for every write that was begun and every read that was asked, whatever became of it,
    before the caller gets the answer or the error. If it raises, that is logged and the caller still gets the
    answer: what the service has done must not be hidden by a fault on our side. Only `AnswerNotSaved` reaches
    the caller, who then must not go on as if the outcome were on record.
    """

    def before(self, call: Call, /) -> None:
        """Record that a write is about to leave; raise to stop it."""

    def after(self, call: Call, outcome: Outcome, /) -> None:
        """Record how a call ended."""


class Gate(Protocol):
    """What a program implements as a circuit breaker for all clients that share it; the `gate` of a `Client`.

    A try that it does not admit is not made: a read raises `Unavailable` at once, a write `NotSent`.
    """

    def admits(self) -> bool:
        """Whether the service may be called now. Asked before every try."""

    def heard(self, *, answered: bool) -> None:
        """Note after a try whether the service answered. 408, 425, 429, 499, 502, 503 and 504 count as no answer."""


class Reply(NamedTuple):
    """What came back from one try; status None when no whole answer did."""

    status: int | None
    headers: Mapping[str, str]
    body: bytes
    trouble: str = ""
    never_left: bool = False

    @property
    def is_final(self) -> bool:
        """Whether trying again is pointless."""
        return self.status is not None and self.status not in TRY_AGAIN


_BLOCKED: Final = Reply(
    None, {}, b"", "it did not answer several times in a row and is left alone for a moment", True
)


class Transport:
    """Makes calls. Copies made by `watched_by` share its connections."""

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
        sleep: Callable[[float], None] = time.sleep,
        gate: Gate | None = None,
    ) -> None:
        self._base_url = base_url
        self._auth = auth
        self._session = session
        self._timeout = timeout
        self._time_limit = time_limit
        self._max_tries = max_tries
        self._max_values = max_values
        self._max_records = max_records
        self._sleep = sleep
        self._gate = gate
        self._watcher: Watcher | None = None
        self._parent_id = ""

    def watched_by(self, watcher: Watcher | None, request_id: str = "") -> Self:
        """A copy that reports its calls to `watcher`, and whose request ids begin with `request_id`."""
        twin = copy.copy(self)
        twin._watcher, twin._parent_id = watcher, request_id
        return twin

    def within(self, seconds: float) -> Self:
        """A copy whose calls take no longer than that."""
        twin = copy.copy(self)
        twin._time_limit = min(seconds, self._time_limit)
        return twin

    def close(self) -> None:
        """Give back the idle connections."""
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
        """Make one call and give what `read` makes of the answer's JSON.

        `path` holds the names of `ids` in braces. Every error carries operation, status and request id.
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
            result = _understand(call, reply, read, budget)
        except BaseException:  # Something ends the process: what was begun has an outcome all the same.
            reply = Reply(None, {}, b"", "the call was interrupted", not progress.sent)
            with suppress(AnswerNotSaved):
                self._notify(call, progress, reply, _named(_no_answer(call, reply), call, reply))
            raise
        if isinstance(result, ServicingError) and reply.status in range(200, 300):
            self.close()  # It may belong to another call. The next call must not get the answer to this one.
        try:
            self._notify(call, progress, reply, result)
        finally:
            if call.kind == "write":  # Only now: a gate may wait, and the answer must be saved first.
                self._record_result(call, reply)
        if isinstance(result, ServicingError):
            raise result
        return result

    def _next_id(self) -> str:
        return f"{self._parent_id}-{secrets.token_hex(3)}" if self._parent_id else secrets.token_hex(8)

    def _send(self, call: Call, payload: Payload | None, progress: "_Progress") -> Reply:
        """The final answer, or what the last try brought; a write is tried once."""
        while True:
            if not self._is_allowed(call):
                return _BLOCKED
            reply = self._send_once(call, payload, progress)
            if call.kind == "write":
                return reply
            self._record_result(call, reply)
            if reply.is_final or progress.tries >= self._max_tries:
                return reply
            wait = _wait(reply, progress.tries)
            if time.monotonic() + wait >= progress.deadline:
                return reply
            self._sleep(wait)

    def _is_allowed(self, call: Call) -> bool:
        try:
            return not self._gate or self._gate.admits()
        except Exception:
            logger.exception("%s: could not find out whether the service may be called", call.request_id)
            return True

    def _record_result(self, call: Call, reply: Reply) -> None:
        try:
            if self._gate and reply is not _BLOCKED:
                self._gate.heard(answered=reply.is_final)
        except Exception:  # What the service may have done must not be hidden by a fault on our side.
            logger.exception("%s: could not record whether the service answered", call.request_id)

    def _send_once(self, call: Call, payload: Payload | None, progress: "_Progress") -> Reply:
        progress.tries += 1
        progress.exchange = exchange = Exchange(progress.deadline, needs_new_connection=call.kind == "write")
        try:
            with exchange:
                reply = self._answer(self._prepared(call, payload), exchange)
        except Exception as problem:
            if not isinstance(problem, _EXPECTED):
                logger.exception("%s: %s failed on our side", call.request_id, call.operation)
            reply = Reply(None, {}, b"", _trouble(problem), not exchange.sent)
        if exchange.timed_out:  # What came by then may be cut off.
            return Reply(None, {}, b"", _TOOK_TOO_LONG, not exchange.sent)
        return reply

    def _prepared(self, call: Call, payload: Payload | None) -> requests.PreparedRequest:
        request = requests.Request(
            call.method,
            self._base_url + call.path,
            params=call.query,
            data=payload.text() if payload else None,
            headers=self._headers(call, payload),
            auth=self._auth,
        )
        return self._session.prepare_request(request)

    def _answer(self, prepared: requests.PreparedRequest, exchange: Exchange) -> Reply:
        left = exchange.seconds_left()
        timeout = (min(self._timeout[0], left), min(self._timeout[1], left))
        exchange.sent = True  # Nothing is certain until a connection is chosen.
        with self._session.send(prepared, stream=True, timeout=timeout, allow_redirects=False) as response:
            return Reply(response.status_code, response.headers, _content(response))

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
        """The one place where headers are decided: without a body no Content-Type, which four reads answer with 500."""
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
    """How far a call has come."""

    def __init__(self, started: float, time_limit: float) -> None:
        self.started = started
        self.deadline = started + time_limit
        self.tries = 0
        self.exchange: Exchange | None = None

    @property
    def sent(self) -> bool:
        return bool(self.exchange and self.exchange.sent)


def _content(response: requests.Response) -> bytes:
    """The body, read as it comes; cut where it is too large to be true."""
    content = bytearray()
    while len(content) <= MAX_ANSWER_BYTES and (
        chunk := response.raw.read1(_CHUNK_BYTES, decode_content=True)
    ):
        content += chunk
    return bytes(content)


def _understand(
    call: Call, reply: Reply, read: Callable[[Any, Budget], T], budget: Budget
) -> T | ServicingError:
    """What `read` makes of the answer, or the error that the answer means."""
    try:
        if reply.status is None:
            raise _no_answer(call, reply)
        if len(reply.body) > MAX_ANSWER_BYTES:
            raise unreadable(call.kind, f"it is larger than {MAX_ANSWER_BYTES:,} bytes.")
        now = datetime.now(UTC)
        value = decipher(call.kind, reply.status, reply.headers, reply.body, now=now, budget=budget)
        try:
            return read(value, budget)
        except ProtocolError as problem:
            raise unreadable(call.kind, problem.message, words_in(value)) from None
    except ServicingError as problem:
        error = problem
    except TimeoutError:
        error = _no_answer(call, Reply(None, {}, b"", _TOOK_TOO_LONG))
    except Exception:
        logger.exception("%s: the answer to %s could not be read", call.request_id, call.operation)
        error = unreadable(call.kind, "reading it failed on our side.")
    return _named(error, call, reply)


def _named(error: ServicingError, call: Call, reply: Reply) -> ServicingError:
    error.operation, error.status, error.request_id = call.operation, reply.status, call.request_id
    return error


def _no_answer(call: Call, reply: Reply) -> ServicingError:
    if call.kind == "read":
        return Unavailable(f"The lending service gave no answer: {reply.trouble}.")
    if reply.never_left:
        return NotSent(f"Nothing was sent, the lending service could not be reached: {reply.trouble}.")
    return OutcomeUnknown(
        f"The lending service gave no answer, so it may or may not be done: {reply.trouble}."
    )


def _wait(reply: Reply, tries: int) -> float:
    """Seconds until the next try: what the service asks for, otherwise longer each time and never the same."""
    longest = min(_LONGEST_WAIT_SECONDS, _SHORTEST_WAIT_SECONDS * 3**tries)
    jittered = _random.uniform(_SHORTEST_WAIT_SECONDS, longest)
    return max(jittered, seconds_to_wait(reply.headers, datetime.now(UTC)) or 0)


_TOOK_TOO_LONG: Final = "it took too long"
_EXPECTED: Final = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
)


def _trouble(problem: Exception) -> str:
    """A few words for staff. The library's own text may hold addresses and is left out."""
    reason = getattr(problem.args[0], "reason", None) if problem.args else None
    match reason:
        case urllib3.exceptions.NameResolutionError():
            return "its host name is not known"
        case urllib3.exceptions.NewConnectionError():
            return "the connection was refused"
        case urllib3.exceptions.ConnectTimeoutError():
            return "no connection in time"
        case urllib3.exceptions.ProxyError():
            return "the proxy did not connect"
        case urllib3.exceptions.SSLError():
            return "no secure connection could be made"
    if isinstance(problem, requests.Timeout | urllib3.exceptions.TimeoutError | TimeoutError):
        return _TOOK_TOO_LONG
    return "the connection was cut"


def _checked_ids(ids: Mapping[str, str]) -> Mapping[str, str]:
    """Ids become parts of a path; one with a slash or dots would reach another record."""
    problems = {
        name: ["An id has 1 to 100 letters, digits, dashes or underscores."]
        for name, value in ids.items()
        if not isinstance(value, str) or not _ID.fullmatch(value)
    }
    if problems:
        raise InvalidInput(problems)
    return ids
