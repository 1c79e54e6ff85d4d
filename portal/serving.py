"""How gunicorn serves the portal: ``gunicorn --config python:portal.serving portal.wsgi``.

``WEB_CONCURRENCY`` says how many processes there are; each does 16 pages at once, and beside them 16 things that may
wait for the lending service or for a write, for neither may keep the other from a thread. Nothing is logged of a
request here: an address may hold what somebody searched for.
"""

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

from portal import tracing
from portal.operations.logs import JsonFormatter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

threads = 16
CHECK_THREADS = 4
# A process is replaced now and then, and not all of them at once.
max_requests = 2000
max_requests_jitter = 200
timeout = 60
# Told to stop, a process ends what is under way: a call of the service may take this long, with its retries.
graceful_timeout = 35
keepalive = 15
# A long search that somebody pasted into the address is answered by a page of ours.
limit_request_line = 8190
# Signs of life are written to memory: a disk may be read-only, or slow.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
control_socket_disable = True

HEAD_BYTES = 16 * 1024
CHECKS = re.compile(rb"(?:GET|HEAD) /(?:healthz|readyz|metrics)[ ?]")
# Panels of a page, documents of the service, printed documents and files: they wait for the service, or take long.
SLOW_READS = re.compile(
    rb"(?:GET|HEAD) [^ ?]*(?:\.pdf|/pdf/|/print/|/export/|/download/|\.csv)[ ?]|.*\r\nhx-request: *true",
    re.DOTALL | re.I,
)


class worker_class(ThreadWorker):  # type: ignore[misc]  # gunicorn looks for this name
    """Gunicorn's threads in three pools, by what a request is; and a process that is replaced before it stops."""

    replaces: int | None = None
    """The process that stops as soon as this one serves."""
    max_requests: int

    def init_process(self) -> None:
        """Make the pools, and have nobody stop this process by counting but itself."""
        self.checks, self.slow = ThreadPoolExecutor(CHECK_THREADS), ThreadPoolExecutor(self.cfg.threads)
        self.replaced_after, self.max_requests = self.max_requests, sys.maxsize
        super().init_process()

    def enqueue_req(self, conn: Any) -> None:
        """Choose the pool by the head of the request; one that has not come yet takes no thread."""
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
        """After many requests, ask for a process that takes this one's place; until it serves, this one goes on."""
        super().finish_request(conn, fs)
        if self.nr >= self.replaced_after:
            self.replaced_after = sys.maxsize
            os.kill(self.ppid, signal.SIGTTIN)

    def _head(self, conn: Any) -> bytes | None:
        """The beginning of the request; empty where the client is gone, ``None`` where nothing came yet."""
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
    """What the server says of itself has the form of all that is logged."""

    def setup(self, cfg: Any) -> None:
        from portal.settings import LOG_FORMAT

        super().setup(cfg)
        if LOG_FORMAT == "json":
            for handler in self.error_log.handlers:
                handler.setFormatter(JsonFormatter())


def post_fork(server: Any, worker: worker_class) -> None:
    """In a process that is one more than wanted: it takes the place of the oldest."""
    if server.num_workers > server.cfg.workers:
        worker.replaces = min(server.WORKERS, key=lambda pid: server.WORKERS[pid].age, default=None)


def post_worker_init(worker: worker_class) -> None:
    """In each process, once it is forked and has loaded the portal."""
    tracing.start()
    if worker.replaces:
        with suppress(ProcessLookupError):
            os.kill(worker.replaces, signal.SIGTERM)


def child_exit(server: Any, worker: worker_class) -> None:
    """In the parent: the one more is no longer wanted."""
    server.num_workers = server.cfg.workers
