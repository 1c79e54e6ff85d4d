"""The HTTP server: threads, persistent connections, and connections that are cut. Hides sockets.

Werkzeug's own handler closes each connection after one answer. The client reuses connections, so this handler reads
each request to its end and keeps the connection open, unless the application raises
:class:`~servicing.sandbox.faults.Cut`.
"""

import io
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from servicing.sandbox.faults import Cut

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_LINE_BYTES = 8 * 1024
MAX_STOP_SECONDS = 5.0
"""Seconds that an answer may still take after the server is asked to stop."""
HEADERS = "sandbox.headers"
"""Environ key of the headers as received: WSGI's own variables lose names with underscores."""
HEAD = "sandbox.head"
"""Environ key of a function that turns the head of the answer into the bytes to send; set by a fault."""


class BodyRejected(Exception):
    """A request body is not accepted; ``status`` is the answer."""

    def __init__(self, status: int) -> None:
        self.status = status


class Handler(WSGIRequestHandler):
    """Serves one connection until either side closes it."""

    server: "Server"
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120

    def setup(self) -> None:
        super().setup()
        self.server.track_connection(self.connection)

    def finish(self) -> None:
        self.server.forget_connection(self.connection)
        super().finish()

    def run_wsgi(self) -> None:
        """Answer one request."""
        try:
            body = self._read_body()
            if body is None:
                return
            environ = self.make_environ()
            environ["wsgi.input"] = io.BytesIO(body)
            environ[HEADERS] = self.headers
            pieces = self.server.app(environ, self._start_response)
            self._send(environ.get(HEAD, _head_unchanged), pieces)
        except (Cut, ConnectionError):
            self.close_connection = True

    def _read_body(self) -> bytes | None:
        """The whole body, so that the next request starts at the right byte; None if the request cannot be served."""
        length, coding = self.headers.get("Content-Length"), self.headers.get("Transfer-Encoding")
        try:
            if coding is None:
                return self._read_exactly(_parse_length(length or "0"))
            # A length together with chunks can smuggle a second request past a proxy.
            if length is not None or coding.lower() != "chunked":
                raise BodyRejected(400)
            return self._read_chunks()
        except EOFError:
            pass
        except BodyRejected as rejection:
            self.send_error(rejection.status)
        self.close_connection = True
        return None

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := _parse_length(self._read_line().partition(b";")[0].strip().decode("latin-1"), base=16):
            body += self._read_exactly(size, MAX_BODY_BYTES - len(body))
            if self._read_line():
                raise BodyRejected(400)
        while self._read_line():
            pass  # The service ignores trailers.
        return bytes(body)

    def _read_exactly(self, size: int, largest: int = MAX_BODY_BYTES) -> bytes:
        if size > largest:
            raise BodyRejected(413)
        data = self.rfile.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def _read_line(self) -> bytes:
        line = self.rfile.readline(MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise EOFError
        return line.rstrip(b"\r\n")

    def _start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        code, _, reason = status.partition(" ")
        self.log_request(code)
        lines = [
            f"HTTP/1.1 {code} {reason}",
            f"Date: {self.date_time_string(time.time() + self.server.clock_skew)}",
        ]
        lines += [f"{name}: {value}" for name, value in headers]
        self.close_connection |= ("connection", "close") in {
            (name.lower(), value.lower()) for name, value in headers
        }
        self._head = "\r\n".join([*lines, "", ""]).encode("latin-1")

    def _send(self, head_pieces: Callable[[bytes], Iterable[bytes]], pieces: Iterable[bytes]) -> None:
        """Send the head and the body of an answer."""
        try:
            for piece in head_pieces(self._head):
                self.wfile.write(piece)
            for piece in pieces:
                self.wfile.write(piece)
        finally:
            if hasattr(pieces, "close"):
                pieces.close()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print a line for each request if ``log`` is on; the query only of the interface's own paths.

        The query of another path may hold credentials: a client may send them to the token endpoint that way.
        """
        if self.server.logs:
            path = self.path if self.path.startswith("/v1/") else self.path.partition("?")[0]
            print(f"{self.log_date_time_string()} {self.command} {path} {code}", file=sys.stderr)

    def log(self, type: str, message: str, *args: Any) -> None:
        """Print nothing else, because clients hang up all the time."""


class Server(ThreadedWSGIServer):
    """A threaded server that listens from its creation on; ``OSError`` if the address is in use."""

    def __init__(
        self, host: str, port: int, app: "WSGIApplication", *, log: bool = False, clock_skew: float = 0
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family, backlog=128) as listener:
            super().__init__(host, port, app, Handler, fd=listener.fileno())
        self.logs = log
        self.clock_skew = clock_skew
        self._lock = threading.Lock()
        self._stopping = False
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        """Serve requests in background threads."""
        self._thread.start()

    def stop(self) -> None:
        """Accept no more requests, let current ones finish, and close every connection."""
        self.shutdown()
        self._thread.join()
        with self._lock:
            self._stopping = True
            connections = list(self._connections.items())
        for connection, thread in connections:
            _stop_reading(connection)
            thread.join(MAX_STOP_SECONDS)

    def track_connection(self, connection: socket.socket) -> None:
        """Remember a connection and the thread that serves it."""
        with self._lock:
            self._connections[connection] = threading.current_thread()
            if self._stopping:
                _stop_reading(connection)

    def forget_connection(self, connection: socket.socket) -> None:
        """Forget a connection."""
        with self._lock:
            del self._connections[connection]


def _head_unchanged(head: bytes) -> Iterable[bytes]:
    return (head,)


def _parse_length(text: str, base: int = 10) -> int:
    """The number in a length header; ``int`` alone would accept signs, spaces and underscores."""
    if not re.fullmatch("[0-9a-fA-F]{1,16}" if base == 16 else "[0-9]{1,16}", text):
        raise BodyRejected(400 if base == 16 else 411)
    return int(text, base)


def _stop_reading(connection: socket.socket) -> None:
    """End the wait of the thread that serves this connection."""
    try:
        connection.shutdown(socket.SHUT_RD)
    except OSError:
        pass  # The connection is already closed.
