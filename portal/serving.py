"""How gunicorn serves the portal: ``gunicorn --config python:portal.serving portal.wsgi``.

``WEB_CONCURRENCY`` says how many processes there are; each does 16 things at once, for most of them wait for the
lending service. Nothing is logged of a request here: an address may hold what somebody searched for.
"""

import os
from pathlib import Path
from typing import Any

from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from portal import tracing
from portal.operations.logs import JsonFormatter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

worker_class = "gthread"
threads = 16
# Without it, connections that are kept open pile up on one of the processes.
reuse_port = True
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


class logger_class(Logger):  # type: ignore[misc]  # gunicorn looks for this name
    """What the server says of itself has the form of all that is logged."""

    def setup(self, cfg: Any) -> None:
        from portal.settings import LOG_FORMAT

        super().setup(cfg)
        if LOG_FORMAT == "json":
            for handler in self.error_log.handlers:
                handler.setFormatter(JsonFormatter())


def post_worker_init(worker: object) -> None:
    """In each process, once it is forked and has loaded the portal."""
    tracing.start()
