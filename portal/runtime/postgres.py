"""Connections to PostgreSQL that give up on a frozen server, such as a paused container. Its operating system still
accepts bytes, so no time limit of TCP or of the server applies.

Hides how a slow query is distinguished from a frozen server: after a while without a byte, a second connection asks
whether the server is there.
"""

import socket
import struct
import time
from collections.abc import Generator
from typing import Any

import psycopg

SILENCE_SECONDS = 1.5
"""How long a query may take before the server is probed, and the pause between probes."""
PROBE_SECONDS = 1.0
STOPPED_SECONDS = 4.0
"""After the server froze, how long queries get less time, so that a page doesn't wait once for each of them."""
_SHORT_SECONDS = 0.2
# Every server answers this request with one byte, without a sign-in.
_SSL_REQUEST = struct.pack("!ii", 8, 80877103)

_stopped_until = 0.0


class WatchedConnection(psycopg.Connection[Any]):
    """A connection whose waits end once the server is found frozen."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        """Run one exchange with the server."""
        return super().wait(self._watch(gen), *args, **kwargs)

    def _watch(self, conversation: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        global _stopped_until
        try:
            wanted = next(conversation)
            probe_at = time.monotonic() + _within(SILENCE_SECONDS)
            while True:
                is_ready = yield wanted
                if not is_ready and time.monotonic() > probe_at:
                    if not self._is_server_there():
                        _stopped_until = time.monotonic() + STOPPED_SECONDS
                        self.pgconn.finish()
                        raise psycopg.OperationalError("the server has stopped answering")
                    probe_at = time.monotonic() + SILENCE_SECONDS
                wanted = conversation.send(is_ready)
        except StopIteration as end:
            return end.value

    def _is_server_there(self) -> bool:
        try:
            with self._open_probe() as probe:
                probe.sendall(_SSL_REQUEST)
                return bool(probe.recv(1))
        except OSError:
            return False

    def _open_probe(self) -> socket.socket:
        host, port, seconds = self.info.hostaddr or self.info.host, self.info.port, _within(PROBE_SECONDS)
        if not host.startswith(("/", "@")):
            return socket.create_connection((host, port), seconds)
        local = socket.socket(socket.AF_UNIX)
        local.settimeout(seconds)
        local.connect(f"{host}/.s.PGSQL.{port}")
        return local


def _within(seconds: float) -> float:
    return _SHORT_SECONDS if time.monotonic() < _stopped_until else seconds
