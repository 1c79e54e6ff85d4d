"""HTTP connections that enforce the time limit of a call, whatever the server does.

Hides the HTTP library's sockets: host lookups and connects with a deadline, a watchdog that cuts off overdue
connections, interim answers, and which connections may be reused.

Each try of a call is an `Exchange`. While a thread is inside it, all traffic of that thread on these connections
belongs to the exchange, which knows whether any byte of the request was sent and whether the time ran out.
"""

import http.client
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextvars import ContextVar
from http.cookiejar import DefaultCookiePolicy
from queue import Empty, SimpleQueue
from typing import Any, Final, Self
from urllib.parse import urlsplit

import urllib3.exceptions
from requests import Request, RequestException, Timeout
from requests import Session as Session
from requests.adapters import HTTPAdapter
from requests.utils import is_ipv4_address
from urllib3 import poolmanager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from servicing.errors import ConfigurationError

SWITCHING_PROTOCOLS: Final = 101
_MAX_LINE_BYTES: Final = 65_536
# What a try of a call may fail with, beside errors on our side.
TOOK_TOO_LONG: Final = "it took too long"
EXPECTED_ERRORS: Final = (
    RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
)
_LABEL: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?", re.ASCII)


def describe_failure(problem: Exception) -> str:
    """A few words for staff. The library's own text may contain addresses and is left out."""
    reason = getattr(problem.args[0], "reason", None) if problem.args else None
    match reason:
        case urllib3.exceptions.NameResolutionError():
            return "its host name is unknown"
        case urllib3.exceptions.NewConnectionError():
            return "the connection was refused"
        case urllib3.exceptions.ConnectTimeoutError():
            return "no connection in time"
        case urllib3.exceptions.ProxyError():
            return "the proxy didn’t connect"
        case urllib3.exceptions.SSLError():
            return "no secure connection"
    if isinstance(problem, Timeout | urllib3.exceptions.TimeoutError | TimeoutError):
        return TOOK_TOO_LONG
    return "the connection was cut"


class Exchange:
    """One try of a call: a context in which connections respect its deadline.

    `needs_new_connection` keeps a write off idle connections: if the service is just closing one, the client can't
    tell whether the write arrived. `sent` is False only while certainly no byte of the request was sent.
    """

    def __init__(self, deadline: float, *, needs_new_connection: bool) -> None:
        self.deadline = deadline
        self.needs_new_connection = needs_new_connection
        self.sent = False
        self.timed_out = False
        self._connection: HTTPConnection | None = None
        self._handle: socket.socket | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._token = _current_exchange.set(self)
        _watchdog.watch(self)
        return self

    def __exit__(self, *error: object) -> None:
        _watchdog.forget(self)
        _current_exchange.reset(self._token)
        self._replace_handle(None)

    def seconds_left(self) -> float:
        """Seconds until the deadline; `TimeoutError` after it."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def use_connection(self, connection: "_GuardedConnection") -> None:
        """Use this connection of the pool for the exchange."""
        if self.needs_new_connection or connection.opener_pid != os.getpid():
            connection.close()  # After a fork, two processes would read each other's answers.
        self._connection = connection
        if connection.sock:
            self.watch_socket(connection.sock)

    def watch_socket(self, sock: socket.socket) -> None:
        """Let the watchdog shut down this socket.

        It gets a duplicate of the descriptor, because TLS takes over the original and closes it at any time.
        """
        self._replace_handle(socket.socket(fileno=os.dup(sock.fileno())))

    def abort(self) -> None:
        """Mark the exchange as timed out and end whatever it is waiting for."""
        with self._lock:
            self.timed_out = True
            self._shut_down()

    def discard_connection(self) -> None:
        """Close the connection of this exchange, so that no other exchange uses it."""
        if self._connection:
            self._connection.close()

    def _replace_handle(self, handle: socket.socket | None) -> None:
        with self._lock:
            if self._handle:
                self._handle.close()
            self._handle = handle
            if self.timed_out:
                self._shut_down()

    def _shut_down(self) -> None:
        try:
            if self._handle:
                self._handle.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # The connection is already broken.


class _Watchdog:
    """Aborts overdue exchanges, from one thread for the whole process."""

    def __init__(self) -> None:
        self._exchanges: set[Exchange] = set()
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = float("inf")

    def watch(self, exchange: Exchange) -> None:
        with self._condition:
            self._exchanges.add(exchange)
            if exchange.deadline < self._wakes_at:
                self._wakes_at = exchange.deadline
                self._condition.notify()
            if not self._thread:
                thread = threading.Thread(target=self._run, name="servicing-watchdog", daemon=True)
                thread.start()
                self._thread = thread

    def forget(self, exchange: Exchange) -> None:
        with self._condition:
            self._exchanges.discard(exchange)

    def _run(self) -> None:
        while True:
            with self._condition:
                self._wakes_at = min(
                    (exchange.deadline for exchange in self._exchanges), default=float("inf")
                )
                wait = self._wakes_at - time.monotonic()
                if wait > 0:
                    self._condition.wait(min(wait, threading.TIMEOUT_MAX))
                    continue
                overdue = [exchange for exchange in self._exchanges if exchange.deadline <= time.monotonic()]
                self._exchanges.difference_update(overdue)
            for exchange in overdue:
                exchange.abort()


_current_exchange: ContextVar[Exchange | None] = ContextVar("servicing-exchange", default=None)
_watchdog = _Watchdog()


def _renew_watchdog() -> None:
    """Replace the watchdog after a fork, which copies its set and its lock but not its thread."""
    global _watchdog
    _watchdog = _Watchdog()


os.register_at_fork(after_in_child=_renew_watchdog)


# Sessions


def new_session(
    *,
    verify: str | bool = True,
    cert: str | tuple[str, str] | None = None,
    proxies: Mapping[str, str] | None = None,
) -> Session:
    """A session that ignores environment variables and cookies."""
    session = Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    session.headers.clear()
    session.verify, session.cert, session.proxies = verify, cert, dict(proxies or {})
    adapter = HTTPAdapter(pool_connections=4, pool_maxsize=40)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


def checked_url(base_url: str) -> str:
    """The base URL without a slash at the end; `ConfigurationError` if it cannot be one."""
    try:
        url = base_url.rstrip("/")
        parts = urlsplit(Request("GET", url).prepare().url or "")
        host_exists = _is_possible_host(parts.hostname or "")
    except (RequestException, ValueError, AttributeError, TypeError):
        url, parts, host_exists = "", urlsplit(""), False
    if not host_exists or parts.scheme not in ("http", "https") or set("?#@") & set(url):
        raise ConfigurationError(
            "The address of the lending service must look like https://lender.example, "
            f"without user, query or fragment; {base_url!r} does not."
        )
    if parts.path.endswith("/v1"):
        raise ConfigurationError(
            f"The address of the lending service must end before /v1, which every call adds; it is {base_url!r}."
        )
    return url


def _is_possible_host(host: str) -> bool:
    """Whether a host is an IP address or a valid name: labels of 1 to 63 characters, at most 253 in all."""
    if ":" in host:
        return True  # The URL parser has already accepted this IPv6 address.
    labels = host.removesuffix(".").split(".")
    if labels[-1].isdigit():  # A name never ends in a number.
        return is_ipv4_address(host)
    return len(host) <= 253 and all(_LABEL.fullmatch(label) for label in labels)


def check_certificates(verify: str | bool, cert: str | tuple[str, str] | None) -> None:
    """Load the certificate files now and raise `ConfigurationError` if they are unusable, before any call."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not isinstance(verify, str) and verify is not True:
        raise ConfigurationError("verify must be a file of certificates; checking them cannot be turned off.")
    try:
        if isinstance(verify, str):
            context.load_verify_locations(verify)
    except OSError:
        raise ConfigurationError(f"The certificates in {verify!r} cannot be read.") from None
    try:
        if cert is not None:  # Without a password argument, OpenSSL prompts for one at the terminal.
            file, key = (cert, None) if isinstance(cert, str) else cert
            context.load_cert_chain(file, key, password="")
    except (OSError, TypeError, ValueError):
        raise ConfigurationError(f"The client certificate in {cert!r} cannot be read.") from None


def guard_connections(session: Session, url: str) -> None:
    """Make the connections that a session opens for `url` enforce the time limit of a call.

    Raises `ConfigurationError` for an adapter that does not use urllib3's own connections, or that retries: it
    could send a write twice.
    """
    adapter = session.get_adapter(url)
    if not isinstance(adapter, HTTPAdapter) or not _guard_pools(adapter.poolmanager):
        raise ConfigurationError(
            "The session's adapter must be an HTTPAdapter with urllib3's own connections."
        )
    # If total is None, urllib3 applies its separate limits for each kind of failure.
    if adapter.max_retries.total is None or adapter.max_retries.total:
        raise ConfigurationError(
            "The session's adapter must not retry; the client decides what is tried again."
        )
    if not all(map(_is_http_url, session.proxies.values())):
        raise ConfigurationError("proxies must name an http or https address for each scheme.")
    open_proxy = adapter.proxy_manager_for

    def open_guarded_proxy(*args: Any, **kwargs: Any) -> Any:
        manager = open_proxy(*args, **kwargs)
        _guard_pools(manager)
        return manager

    adapter.proxy_manager_for = open_guarded_proxy  # type: ignore[method-assign]


def _is_http_url(value: object) -> bool:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _guard_pools(manager: poolmanager.PoolManager) -> bool:
    """Make a manager open guarded connections; False if it has pool classes of its own."""
    if manager.pool_classes_by_scheme is poolmanager.pool_classes_by_scheme:
        manager.clear()
        manager.pool_classes_by_scheme = _POOLS
    return manager.pool_classes_by_scheme is _POOLS


# Connections


class _GuardedPool(HTTPConnectionPool):
    def _get_conn(self, timeout: float | None = None) -> Any:
        if exchange := _current_exchange.get():
            exchange.sent = False
            timeout = exchange.seconds_left()
        connection = super()._get_conn(timeout)
        if exchange:
            exchange.use_connection(connection)  # type: ignore[arg-type]
        return connection


class _GuardedConnection(HTTPConnection):
    opener_pid: int | None = None
    """The ID of the process that opened the connection."""

    def connect(self) -> None:
        self.opener_pid = os.getpid()
        try:
            super().connect()
        finally:  # Bytes sent to a proxy so far are not part of the request.
            if exchange := _current_exchange.get():
                exchange.sent = False

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        if exchange := _current_exchange.get():
            left = exchange.seconds_left()
            exchange.sent = True
            # The socket still has the connect timeout, which is too short for a large body.
            self.sock.settimeout(left)
        super().send(data)

    def _new_conn(self) -> socket.socket:
        exchange = _current_exchange.get()
        if not exchange:
            return super()._new_conn()
        try:
            return self._connect_in_time(exchange)
        except socket.gaierror as problem:
            raise NameResolutionError(self.host, self, problem) from None
        except TimeoutError:
            raise ConnectTimeoutError(self, "no connection in time") from None
        except OSError as problem:
            raise NewConnectionError(self, str(problem)) from None

    def _connect_in_time(self, exchange: Exchange) -> socket.socket:
        deadline = min(exchange.deadline, time.monotonic() + (self.timeout or exchange.seconds_left()))
        problem: OSError = socket.gaierror()
        addresses = _resolve_host(self._dns_host, self.port, deadline)
        for number, (family, kind, protocol, _, address) in enumerate(addresses):
            share = (deadline - time.monotonic()) / (len(addresses) - number)
            sock = socket.socket(family, kind, protocol)
            try:
                for option in self.socket_options or ():
                    sock.setsockopt(*option)
                sock.settimeout(max(share, 0.001))  # A silent address must leave time for the others.
                if self.source_address:
                    sock.bind(self.source_address)
                sock.connect(address)
            except OSError as failure:
                sock.close()
                problem = failure
            else:
                exchange.watch_socket(sock)
                return sock
        raise problem


def _resolve_host(host: str, port: int | None, deadline: float) -> list[Any]:
    """The addresses of a host. A separate thread looks them up, because a system lookup cannot be canceled."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass  # The host is a name, not an address.
    found: SimpleQueue[list[Any] | Exception] = SimpleQueue()

    def look_up() -> None:
        try:
            found.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except Exception as problem:
            found.put(problem)

    threading.Thread(target=look_up, name="servicing-look-up", daemon=True).start()
    try:
        result = found.get(timeout=max(deadline - time.monotonic(), 0.001))
    except Empty:
        raise TimeoutError from None
    if isinstance(result, Exception):
        raise result
    return result


class _Response(http.client.HTTPResponse):
    """The final answer. The connection is reused only if it carried exactly one unambiguous answer."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._sock = sock
        self._had_interim = False

    def begin(self) -> None:
        if self.headers is not None:
            return
        stream = self.fp
        response_head = _ResponseHead(stream)
        self.fp = response_head
        try:
            super().begin()
        finally:
            if self.fp is response_head:
                self.fp = stream
        if self._had_interim or not self._has_clear_end():
            self.will_close = True

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if status >= 200 or status == SWITCHING_PROTOCOLS:
                return version, status, reason
            self._had_interim = True
            while line := self.fp.readline(_MAX_LINE_BYTES + 1).strip():
                if len(line) > _MAX_LINE_BYTES:
                    raise http.client.LineTooLong("interim header")

    def _has_clear_end(self) -> bool:
        """Whether the headers say unambiguously where the answer ends."""
        lengths = self.headers.get_all("content-length", [])
        codings = self.headers.get_all("transfer-encoding", [])
        return (
            self.version == 11
            and self.status != SWITCHING_PROTOCOLS
            and not self.headers.defects
            and len(lengths) + len(codings) <= 1
            and all(length.isascii() and length.isdigit() for length in lengths)
        )

    def _close_conn(self) -> None:
        exchange = _current_exchange.get()
        has_extra_bytes = not self.will_close and self._has_unread_bytes()
        super()._close_conn()  # type: ignore[misc]
        if exchange and has_extra_bytes:
            exchange.discard_connection()

    def _has_unread_bytes(self) -> bool:
        """Whether bytes arrived after the answer: the next call would read them as its own."""
        try:
            self._sock.settimeout(0)  # Each later use sets its own timeout.
            return bool(self.fp.peek(1))
        except OSError:
            return False  # TLS raises this if no bytes are waiting.


class _ResponseHead:
    """The status line and headers of an answer. If they are cut off, reading fails instead of losing headers."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readline(self, limit: int = -1) -> bytes:
        line: bytes = self._stream.readline(limit)
        if not line.endswith(b"\n") and len(line) != limit:
            raise http.client.RemoteDisconnected("The response ends within its headers.")
        return line

    def close(self) -> None:
        self._stream.close()


class _HTTPConnection(_GuardedConnection):
    response_class = _Response


class _HTTPSConnection(_GuardedConnection, HTTPSConnection):
    response_class = _Response


class _HTTPPool(_GuardedPool):
    ConnectionCls = _HTTPConnection


class _HTTPSPool(_GuardedPool, HTTPSConnectionPool):
    ConnectionCls = _HTTPSConnection


_POOLS: Final = {"http": _HTTPPool, "https": _HTTPSPool}
