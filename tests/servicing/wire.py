"""A server with scripted answers that records every request as raw bytes."""

import re
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

Handler = socketserver.StreamRequestHandler
Reply = bytes | Callable[[Handler], None]
"""A complete answer, or a function that does something else to the connection."""


class Listener(socketserver.ThreadingTCPServer):
    """Serves each connection in its own thread, without a traceback when a client hangs up."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Wire:
    """Listens on a free loopback port, sends the replies in order, then repeats the last one."""

    def __init__(self, context: Any = None) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.replies: list[Reply] = []
        wire = self

        class ReplyHandler(Handler):
            def handle(self) -> None:
                wire._serve(self)

        self._server = Listener(("127.0.0.1", 0), ReplyHandler)
        if context:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, *replies: Reply) -> None:
        self.replies = list(replies)

    def arrived(self) -> list[bytes]:
        """Wait for a request, then return all of them: a client that gives up may be faster than this server."""
        for _ in range(1000):
            if self.requests:
                break
            time.sleep(0.01)
        return self.requests

    @property
    def heads(self) -> list[str]:
        """The request lines and headers received, in lowercase."""
        return [request.partition(b"\r\n\r\n")[0].decode().lower() for request in self.requests]

    def _serve(self, handler: Handler) -> None:
        self.connections += 1
        while head := _read_head(handler):
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            self.requests.append(head + b"\r\n" + handler.rfile.read(int(length[1]) if length else 0))
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            if not isinstance(reply, bytes):
                reply(handler)
                return
            handler.wfile.write(reply)


def _read_head(handler: Handler) -> bytes:
    """The request line and headers; empty if the client has hung up."""
    lines = []
    while (line := handler.rfile.readline()) not in (b"\r\n", b""):
        lines.append(line)
    return b"".join(lines)


def response(body: str | bytes = "{}", status: int = 200, headers: Mapping[str, str] | None = None) -> bytes:
    """A complete HTTP answer."""
    content = body.encode() if isinstance(body, str) else body
    fields = {"Content-Length": str(len(content)), **(headers or {})}
    lines = [f"HTTP/1.1 {status} Told", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode() + content


def cut(handler: Handler) -> None:
    """Close the connection without an answer."""


def half(handler: Handler) -> None:
    """Announce more bytes than it sends."""
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"uuid": "')


def silent(handler: Handler) -> None:
    """Send nothing until the client gives up."""
    handler.rfile.read()


def dripping(handler: Handler) -> None:
    """Send single bytes until the client gives up."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
    try:
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.01)
    except OSError:
        pass


def unending(start: bytes) -> Reply:
    """Start an answer, then send zeros until the client gives up."""

    def pour(handler: Handler) -> None:
        try:
            handler.wfile.write(start)
            while True:
                handler.wfile.write(bytes(65536))
        except OSError:
            pass

    return pour


def trickling(start: bytes) -> Reply:
    """Start an answer, then send single letters until the client gives up."""

    def trickle(handler: Handler) -> None:
        try:
            handler.wfile.write(start)
            while True:
                handler.wfile.write(b"a")
                time.sleep(0.01)
        except OSError:
            pass

    return trickle


def closing(answer: bytes) -> Reply:
    """Send an answer and close the connection."""

    def send(handler: Handler) -> None:
        handler.wfile.write(answer)

    return send
