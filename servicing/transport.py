"""One call to the service, from a signed request to a decoded answer or a named error.

Hides the HTTP library, signing anew on every try, which calls may be tried again and when, the header rule,
the limits of time and size, and who watches. What an answer means is for `servicing.answers` to say.

Reads are tried again. Writes never are, for the service has no way to tell a repeated one; and each gets a
connection of its own, since on an idle one that is just being closed nobody could tell whether it arrived.
"""

import copy
import logging
import re
import secrets
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from random import SystemRandom
from typing import Any, Final, NamedTuple, Protocol, Self, TypeVar
from urllib.parse import urlsplit

import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase

from servicing.answers import Kind, decipher, readable, unreadable
from servicing.codec import to_json
from servicing.errors import (
    ConfigurationError,
    InvalidInput,
    NotSent,
    OutcomeUnknown,
    ProtocolError,
    ServicingError,
    Unavailable,
)
from servicing.masking import masked

T = TypeVar("T")

MAX_ANSWER: Final = 32 * 1024 * 1024
_CHUNK: Final = 64 * 1024
_TRY_AGAIN: Final = frozenset({None, 429, 502, 503, 504})
_SHORTEST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 5.0
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

    @property
    def body(self) -> Any:
        """The answer as it may be recorded: masked JSON, or masked text; None when there was none."""
        return readable(self.content) if self.content else None


class Watcher(Protocol):
    """What a program implements to record calls; given to `Client.watched_by`. Both methods are called in the
    thread that makes the call.

    `before` comes just before a write leaves (never for a read). If it raises, nothing is sent and the
    exception goes to the caller: a write that cannot be recorded is not made.

    `after` comes once for every write that was begun and every read that was asked, whatever became of it,
    before the caller gets the answer or the error. If it raises, that is logged and the caller still gets the
    answer: what the service has done must not be hidden by a fault on our side.
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
        """Note after a try whether the service answered. 429, 502, 503 and 504 count as no answer."""


class Reply(NamedTuple):
    """What came back from one try; status None when no whole answer did."""

    status: int | None
    headers: Mapping[str, str]
    body: bytes
    trouble: str = ""
    never_left: bool = False


_NOT_ASKED: Final = Reply(
    None, {}, b"", "it did not answer several times in a row and is left alone for a moment", True
)


class Transport:
    """Makes calls. Copies made by `watched_by` share its connections."""

    def __init__(
        self,
        base_url: str,
        auth: AuthBase,
        *,
        timeout: tuple[float, float],
        time_limit: float,
        max_tries: int,
        sleep: Callable[[float], None] = time.sleep,
        gate: Gate | None = None,
    ) -> None:
        self._base_url = _checked_url(base_url)
        self._auth = auth
        self._timeout = timeout
        self._time_limit = time_limit
        self._max_tries = max_tries
        self._sleep = sleep
        self._gate = gate
        self._session = _new_session()
        self._watcher: Watcher | None = None
        self._parent_id = ""

    def watched_by(self, watcher: Watcher | None, request_id: str = "") -> Self:
        """A copy whose calls `watcher` is told of, and whose request ids begin with `request_id`."""
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
        read: Callable[[Any], T],
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
        started = time.monotonic()
        reply, tries = self._exchanged(call, payload)
        result = _understood(call, reply, read)
        error = result if isinstance(result, ServicingError) else None
        if self._watcher and (tries or call.kind == "write"):
            outcome = Outcome(
                answer=None if error else result,
                error=error,
                status=reply.status,
                tries=tries,
                seconds=time.monotonic() - started,
                content=reply.body,
            )
            _tell(self._watcher, call, outcome)
        if isinstance(result, ServicingError):
            raise result
        return result

    def _next_id(self) -> str:
        return f"{self._parent_id}-{secrets.token_hex(3)}" if self._parent_id else secrets.token_hex(8)

    def _exchanged(self, call: Call, payload: Payload | None) -> tuple[Reply, int]:
        deadline = time.monotonic() + self._time_limit
        if call.kind == "write":
            with _new_session() as session:
                reply = self._admitted(session, call, payload, deadline)
                return reply, int(reply is not _NOT_ASKED)
        tries = 1
        while True:
            reply = self._admitted(self._session, call, payload, deadline)
            if reply is _NOT_ASKED:
                return reply, tries - 1
            wait = _wait(reply, tries)
            if (
                reply.status not in _TRY_AGAIN
                or tries >= self._max_tries
                or time.monotonic() + wait >= deadline
            ):
                return reply, tries
            self._sleep(wait)
            tries += 1

    def _admitted(
        self, session: requests.Session, call: Call, payload: Payload | None, deadline: float
    ) -> Reply:
        if self._gate is None:
            return self._tried(session, call, payload, deadline)
        if not self._gate.admits():
            return _NOT_ASKED
        reply = self._tried(session, call, payload, deadline)
        try:
            self._gate.heard(answered=reply.status not in _TRY_AGAIN)
        except Exception:  # What the service may have done must not be hidden by a fault on our side.
            logger.exception("%s: whether the service answered could not be noted", call.request_id)
        return reply

    def _tried(
        self, session: requests.Session, call: Call, payload: Payload | None, deadline: float
    ) -> Reply:
        request = requests.Request(
            call.method,
            self._base_url + call.path,
            params=call.query,
            data=payload.text() if payload else None,
            headers=_headers(call, payload),
            auth=self._auth,
        )
        left = max(deadline - time.monotonic(), 0.001)
        connect, read = (min(limit, left) for limit in self._timeout)
        try:
            prepared = session.prepare_request(request)
            with session.send(
                prepared, stream=True, timeout=(connect, read), allow_redirects=False
            ) as response:
                return Reply(response.status_code, response.headers, _content(response, deadline))
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as problem:
            return Reply(None, {}, b"", _trouble(problem), _never_left(problem))


def _new_session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    session.headers.clear()
    adapter = HTTPAdapter(pool_connections=4, pool_maxsize=40)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


def _headers(call: Call, payload: Payload | None) -> dict[str, str]:
    """The one place where headers are decided: without a body no Content-Type, which four reads answer with 500."""
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "gzip, deflate",
        "User-Agent": "servicing",
        "X-Request-ID": call.request_id,
    }
    if payload and payload.content_type:
        headers["Content-Type"] = payload.content_type
    return headers


def _content(response: requests.Response, deadline: float) -> bytes:
    """The body, read as it comes so that no drip lasts for ever; cut where it is too large to be true."""
    content = bytearray()
    while len(content) < MAX_ANSWER and (chunk := response.raw.read1(_CHUNK, decode_content=True)):
        content += chunk
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(content)


def _understood(call: Call, reply: Reply, read: Callable[[Any], T]) -> T | ServicingError:
    """What `read` makes of the answer, or the error that the answer means."""
    try:
        if reply.status is None:
            raise _no_answer(call, reply)
        return read(decipher(call.kind, reply.status, reply.headers, reply.body, now=datetime.now(UTC)))
    except ServicingError as problem:
        error = problem
    if isinstance(error, ProtocolError) and call.kind == "write":
        error = unreadable("write", error.message)
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


def _tell(watcher: Watcher, call: Call, outcome: Outcome) -> None:
    try:
        watcher.after(call, outcome)
    except Exception:
        logger.exception("%s: what became of %s could not be recorded", call.request_id, call.operation)


def _wait(reply: Reply, tries: int) -> float:
    """Seconds until the next try: what the service asks for, else longer each time and never the same."""
    jittered = _random.uniform(_SHORTEST_WAIT, min(_LONGEST_WAIT, _SHORTEST_WAIT * 3**tries))
    return max(jittered, _asked_for(reply.headers.get("Retry-After", "")))


def _asked_for(retry_after: str) -> float:
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after)
    try:
        return (parsedate_to_datetime(retry_after).astimezone(UTC) - datetime.now(UTC)).total_seconds()
    except ValueError:
        return 0.0


def _never_left(problem: Exception) -> bool:
    """Whether it is certain that no connection was made, and so nothing of the request was sent."""
    reason = _reason(problem)
    if isinstance(reason, urllib3.exceptions.SSLError):
        return isinstance(reason.args[0], ssl.SSLCertVerificationError)
    return isinstance(reason, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError)


def _trouble(problem: Exception) -> str:
    """A few words for staff. The library's own text may hold addresses and is left out."""
    reason = _reason(problem)
    if isinstance(reason, urllib3.exceptions.NameResolutionError):
        return "its host name is not known"
    if isinstance(reason, urllib3.exceptions.NewConnectionError):
        return "the connection was refused"
    if isinstance(reason, urllib3.exceptions.ConnectTimeoutError):
        return "no connection in time"
    if isinstance(reason, urllib3.exceptions.SSLError):
        return "no secure connection could be made"
    if isinstance(problem, requests.Timeout | urllib3.exceptions.TimeoutError | TimeoutError):
        return "it took too long"
    return "the connection was cut"


def _reason(problem: Exception) -> object:
    return getattr(problem.args[0], "reason", None) if problem.args else None


def _checked_url(base_url: str) -> str:
    url = base_url.rstrip("/")
    try:
        parts = urlsplit(requests.Request("GET", url).prepare().url or "")
    except requests.RequestException:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or parts.query or parts.fragment or parts.username:
        raise ConfigurationError(
            "The address of the lending service must look like https://lender.example, "
            f"without user, query or fragment; {base_url!r} does not."
        )
    if parts.path.endswith("/v1"):
        raise ConfigurationError(
            f"The address of the lending service must end before /v1, which every call adds; it is {base_url!r}."
        )
    return url


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
