"""A proxy between the portal and the sandbox that drops, truncates and delays answers.

It uses Python's own HTTP server and client and shares no code with the portal, the client library or the sandbox. The
sandbox behind it works normally, so both sides can be compared afterwards.
"""

import http.client
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from servicing.sandbox import Sandbox
from servicing.sandbox.endpoints import OPERATIONS

HTML = b"<!doctype html><title>Bad gateway</title>"
HOP_HEADERS = {"connection", "transfer-encoding", "content-length", "keep-alive"}
Answer = tuple[int, list[tuple[str, str]], bytes]


class Proxy(ThreadingHTTPServer):
    """Forwards requests, with a fault for those that match."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.target = urlsplit(target)
        self.faults: list[tuple[Callable[[str, str], bool], dict[str, Any], int | None]] = []
        self.lock = threading.Lock()
        self.request_count = 0
        self.in_flight: Counter[str] = Counter()
        self.overlaps: list[str] = []
        """Changes, as method and path, that were in flight twice at once."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def fault_for(self, method: str, path: str) -> dict[str, Any]:
        """Return the fault of the next request, if any."""
        with self.lock:
            self.request_count += 1
            for number, (matches, fault, times) in enumerate(self.faults):
                if matches(method, path):
                    if times == 1:
                        del self.faults[number]
                    elif times:
                        self.faults[number] = (matches, fault, times - 1)
                    return fault
        return {}

    def enter(self, change: str) -> None:
        with self.lock:
            self.in_flight[change] += 1
            if self.in_flight[change] > 1:
                self.overlaps.append(change)

    def leave(self, change: str) -> None:
        with self.lock:
            self.in_flight[change] -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors, because a killed portal hangs up."""


class Handler(BaseHTTPRequestHandler):
    """Handles one connection of the portal with its own connection to the service."""

    server: Proxy
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.service = http.client.HTTPConnection(self.server.target.netloc, timeout=120)

    def finish(self) -> None:
        self.service.close()
        super().finish()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault_for(self.command, self.path)
        change = f"{self.command} {self.path}" if self.command in ("PUT", "PATCH") else ""
        self.server.enter(change) if change else None
        try:
            self.answer(body, fault)
        finally:
            self.server.leave(change) if change else None

    def answer(self, body: bytes, fault: dict[str, Any]) -> None:
        """Send the service's answer, or another one if the fault says so."""
        is_invented = bool({"status", "html", "body"} & fault.keys())
        is_forwarded = not fault.get("cut_before") and (not is_invented or fault.get("commit"))
        answer = self.forward(body) if is_forwarded else (502, [], b"")
        time.sleep(fault.get("delay", 0))
        if fault.get("cut_before") or fault.get("cut_after_commit"):
            self.close_connection = True
            return
        if is_invented:
            answer = invented_answer(fault)
        self.send_answer(answer, cut=bool(fault.get("truncate")))

    def forward(self, body: bytes) -> Answer:
        """Forward the request unchanged."""
        if self.command != "GET":
            self.service.close()  # Reconnect: a write has no second try if the service has just closed the connection.
        for is_second_try in (False, True):
            try:
                self.service.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    self.service.putheader(name, value)
                self.service.endheaders(body or None)
                response = self.service.getresponse()
                return response.status, response.getheaders(), response.read()
            except (http.client.RemoteDisconnected, ConnectionError):
                self.service.close()
                if is_second_try or self.command != "GET":
                    raise
        raise AssertionError

    def send_answer(self, answer: Answer, *, cut: bool) -> None:
        """Send an answer, or the first half of it."""
        status, headers, content = answer
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        self.close_connection |= cut


def invented_answer(fault: dict[str, Any]) -> Answer:
    """Return the answer that a fault describes."""
    if fault.get("html"):
        return 200, [("Content-Type", "text/html")], HTML
    body = fault.get("body", b'{"message": "something broke"}')
    return fault.get("status", 200), [("Content-Type", "application/json")], body


class ProxiedSandbox(Sandbox):
    """The sandbox behind the proxy."""

    proxy: Proxy

    def start(self) -> Self:
        super().start()
        self.proxy = Proxy(super().url)
        threading.Thread(target=self.proxy.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.proxy.shutdown()
        self.proxy.server_close()
        super().__exit__(kind, error, trace)

    @property
    def url(self) -> str:
        return self.proxy.url

    def fail_next(self, operation: str, *, times: int | None = 1, **fault: Any) -> None:
        """Give the next calls of an operation, or of all with ``*``, this fault."""
        self.proxy.faults.append((matcher(operation), fault, times))

    def heal(self) -> None:
        self.proxy.faults.clear()


def matcher(operation: str) -> Callable[[str, str], bool]:
    """Return a function that matches the requests of an operation."""
    if operation == "*":
        return lambda method, path: True
    wanted = OPERATIONS[operation]
    parts = wanted.path.split("/")

    def matches(method: str, path: str) -> bool:
        given = urlsplit(path).path.split("/")
        return (
            method == wanted.method
            and len(given) == len(parts)
            and all(part.startswith("<") or part == each for part, each in zip(parts, given, strict=True))
        )

    return matches
