"""How gunicorn serves the portal: ``gunicorn --config python:portal.gunicorn portal.wsgi``.

``WEB_CONCURRENCY`` is the number of processes. Each serves 16 pages at once, and beside them 16 requests that may wait
for the lending service or for a write, so that neither kind takes the other's threads. Requests are not logged here,
because addresses may contain search terms.
"""

import ctypes
import gc
import os
import re
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from selectors import EVENT_READ
from typing import Any

from gunicorn.glogging import Logger  # type: ignore[import-untyped]
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

from portal.core.redaction import LogFilter
from portal.operations.logs import JsonFormatter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

threads = 16
CHECK_THREADS = 4
# Processes are replaced now and then, but not all at the same time.
max_requests = 2000
max_requests_jitter = 200
timeout = 60
# A stopping process finishes its requests: a call to the service may take this long, with retries.
graceful_timeout = 35
keepalive = 15
# Longer than gunicorn's default, so that our own page answers an address with a long search.
limit_request_line = 8190
# Heartbeats go to memory, because a disk may be read-only or slow.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
control_socket_disable = True

M_ARENA_MAX = -8
MAX_ARENAS = 2
# glibc gives almost every thread its own heap and never returns its peak: 32 threads held 420 MB instead of 250, and
# kept growing. Other C libraries have no such setting.
with suppress(OSError, AttributeError):
    ctypes.CDLL(None).mallopt(M_ARENA_MAX, MAX_ARENAS)

HEAD_BYTES = 16 * 1024
CHECKS = re.compile(rb"(?:GET|HEAD) /(?:healthz|readyz|metrics)[ ?]")
# Panels, refreshed pages, statement and printed documents, and downloads wait for the service or take a long time.
SLOW_READS = re.compile(
    rb"(?:GET|HEAD) (?:[^ ?]*(?:\.pdf|/pdf/|/print/|/export/|/download/|/refresh/|\.csv)[ ?]|[^ ]*[?&]refresh=)"
    rb"|.*\r\nhx-request: *true",
    re.DOTALL | re.I,
)


class worker_class(ThreadWorker):  # type: ignore[misc]  # gunicorn looks for this name
    """Gunicorn's threads in three pools by kind of request. A replacement process starts before this one stops."""

    replaces: int | None = None
    """The process that stops once this one serves."""
    max_requests: int

    def init_process(self) -> None:
        """Create the pools. We count requests ourselves, so that gunicorn doesn't stop the process."""
        self.checks, self.slow = ThreadPoolExecutor(CHECK_THREADS), ThreadPoolExecutor(self.cfg.threads)
        self.replaced_after, self.max_requests = self.max_requests, sys.maxsize
        super().init_process()

    def enqueue_req(self, conn: Any) -> None:
        """Choose the pool by the request's head. A connection without a request takes no thread yet."""
        head = self._head(conn)
        if head is None:
            conn.sock.setblocking(False)
            conn.timeout = time.monotonic() + self.cfg.keepalive
            self.pending_conns.append(conn)
            self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))
            return
        future = self._pool_for(head).submit(self.handle, conn)
        future.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    def finish_request(self, conn: Any, fs: Any) -> None:
        """After enough requests, ask for a replacement process; this one serves until it is ready."""
        super().finish_request(conn, fs)
        if self.nr >= self.replaced_after:
            self.replaced_after = sys.maxsize
            os.kill(self.ppid, signal.SIGTTIN)

    def _head(self, conn: Any) -> bytes | None:
        """Read the beginning of the request; empty if the client is gone, ``None`` if nothing has arrived."""
        if conn.parser and (read_ahead := conn.parser.unreader.buf.getvalue()):
            return bytes(read_ahead)
        try:
            return bytes(conn.sock.recv(HEAD_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _pool_for(self, head: bytes) -> ThreadPoolExecutor:
        if CHECKS.match(head):
            return self.checks
        is_read = head.startswith((b"GET ", b"HEAD "))
        return self.slow if not is_read or SLOW_READS.match(head) else self.tpool


class logger_class(Logger):  # type: ignore[misc]  # gunicorn looks for this name
    """Writes the server's own messages in the format of all other logs; some quote what a client sent."""

    def setup(self, cfg: Any) -> None:
        from portal.settings import LOG_FORMAT

        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.addFilter(LogFilter())
            if LOG_FORMAT == "json":
                handler.setFormatter(JsonFormatter())


def post_fork(server: Any, worker: worker_class) -> None:
    """Let a process above the configured number replace the oldest one."""
    if server.num_workers > server.cfg.workers:
        worker.replaces = min(server.WORKERS, key=lambda pid: server.WORKERS[pid].age, default=None)


def post_worker_init(worker: worker_class) -> None:
    """Freeze what is loaded, then stop the process that this one replaces."""
    gc.freeze()
    if worker.replaces:
        with suppress(ProcessLookupError):
            os.kill(worker.replaces, signal.SIGTERM)


def child_exit(server: Any, worker: worker_class) -> None:
    """Reset the number of processes in the parent."""
    server.num_workers = server.cfg.workers
