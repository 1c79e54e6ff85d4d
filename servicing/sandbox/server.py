"""The HTTP server: threads, connections that stay open, and connections that are cut. Hides sockets.

Werkzeug's own handler closes every connection after one answer. The client keeps connections, so this one
reads each request to its end and leaves the connection open, unless the application raises
:class:`~servicing.sandbox.faults.Cut`.
"""

import io
import socket
import sys
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from servicing.sandbox.faults import Cut

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LARGEST_BODY = 32 * 1024 * 1024
LONGEST_FAREWELL = 5.0
"""Seconds that one answer under way may take once the server is told to stop."""
HEADERS = "sandbox.headers"
"""Environ key of the headers as they came: WSGI's own form loses names with underscores."""


class Handler(WSGIRequestHandler):
    """One connection: request after request until either side closes it."""

    server: "Server"
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120

    def setup(self) -> None:
        super().setup()
        self.server.opened(self.connection)

    def finish(self) -> None:
        self.server.closed(self.connection)
        super().finish()

    def run_wsgi(self) -> None:
        """Answer one request."""
        try:
            body = self._body()
            if body is None:
                return
            environ = self.make_environ()
            environ["wsgi.input"] = io.BytesIO(body)
            environ[HEADERS] = self.headers
            self._send(self.server.app(environ, self._start))
        except (Cut, ConnectionError):
            self.close_connection = True

    def _body(self) -> bytes | None:
        """All of the body, so that the next request starts at its own first line; None if there is no answering."""
        length = self.headers.get("Content-Length") or "0"
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            self.send_error(411)
        elif int(length) > LARGEST_BODY:
            self.send_error(413)
        else:
            body = self.rfile.read(int(length))
            if len(body) == int(length):
                return body
        self.close_connection = True
        return None

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        code, _, reason = status.partition(" ")
        self.send_response(int(code), reason)
        for name, value in headers:
            self.send_header(name, value)

    def _send(self, pieces: Iterable[bytes]) -> None:
        """The answer as the application gives it, which includes its Content-Length."""
        try:
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)
        finally:
            if hasattr(pieces, "close"):
                pieces.close()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """A line for each request, only when asked for."""
        if self.server.logs:
            print(f"{self.log_date_time_string()} {self.command} {self.path} {code}", file=sys.stderr)

    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing else is worth a line: a caller that hangs up is everyday life."""


class Server(ThreadedWSGIServer):
    """Listens as soon as it is made; ``OSError`` when the address is not to be had."""

    def __init__(self, host: str, port: int, app: "WSGIApplication", *, log: bool = False) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family, backlog=128) as listener:
            super().__init__(host, port, app, Handler, fd=listener.fileno())
        self.logs = log
        self._lock = threading.Lock()
        self._stopping = False
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        """Answer requests in threads of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more requests, let those under way finish, close every connection."""
        self.shutdown()
        self._thread.join()
        with self._lock:
            self._stopping = True
            open_now = list(self._connections.items())
        for connection, thread in open_now:
            _read_no_more(connection)
            thread.join(LONGEST_FAREWELL)

    def opened(self, connection: socket.socket) -> None:
        """Remember a connection and the thread that serves it."""
        with self._lock:
            self._connections[connection] = threading.current_thread()
            if self._stopping:
                _read_no_more(connection)

    def closed(self, connection: socket.socket) -> None:
        """Forget a connection."""
        with self._lock:
            del self._connections[connection]


def _read_no_more(connection: socket.socket) -> None:
    """Let the thread that waits for the next request find the end instead."""
    try:
        connection.shutdown(socket.SHUT_RD)
    except OSError:
        pass  # It is closed already.
