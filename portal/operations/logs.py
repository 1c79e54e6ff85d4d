"""Log lines as JSON: one object a line, with the reference that an error page shows.

Hides what is left out so that no line holds personal data: addresses with search terms, values in exception messages,
and anything that looks like an email address or a personal number.
"""

import json
import logging
import re
import sys
import threading
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from django.conf import settings
from django.http import HttpRequest

logger = logging.getLogger(__name__)
# The current request.
current: ContextVar[HttpRequest | None] = ContextVar("current", default=None)

# Bounded, so that matching a long text without spaces takes linear time.
_EMAIL = re.compile(r"[^\s@<>\"',;:()]{1,254}@[\w.-]{0,253}\w")
# IDs of tasks, workers and records stay. One without any letter is masked, as it may be a personal number.
_NUMBER = re.compile(
    r"(?P<id>\b(?=[\d-]*[a-f])[\da-f]{8}(?P<dash>-?)(?:[\da-f]{4}(?P=dash)){3}[\da-f]{12}\b)"
    r"|[+(]?\d[\d ().-]{7,}\d"
)
# Django appends the address to these messages, so only the text before it is kept.
_ADDRESS = re.compile(r"(: /| /|: https?://).*", re.DOTALL)
# Extra attributes that a line may have.
EXTRA_FIELDS = ("view", "method", "status", "ms", "cpu_ms")


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record without personal data, with times in UTC."""
        request = getattr(record, "request", None) or current.get()
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _without_personal_data(record),
            "request_id": getattr(request, "request_id", None),
        }
        line |= {name: getattr(record, name) for name in EXTRA_FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[0]:
            line |= {"error": record.exc_info[0].__name__, "trace": _trace(record.exc_info[2])}
        return json.dumps(
            {name: value for name, value in line.items() if value is not None}, ensure_ascii=False
        )


def log_uncaught() -> None:
    """Log uncaught exceptions as JSON; Python would print them with their text."""

    def log(kind: type[BaseException], error: BaseException | None, where: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error or kind(), where)
        else:
            logger.critical("Uncaught exception.", exc_info=(kind, error or kind(), where))

    sys.excepthook = log
    threading.excepthook = lambda args: log(args.exc_type, args.exc_value, args.exc_traceback)
    sys.unraisablehook = lambda args: log(args.exc_type, args.exc_value, args.exc_traceback)


def _without_personal_data(record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.name.startswith("django"):
        text = _ADDRESS.sub("", text)
    return _NUMBER.sub(lambda found: found["id"] or "[number]", _EMAIL.sub("[email]", text))


def _trace(where: Any) -> list[str]:
    """The files and lines of a traceback, without values."""
    root = f"{settings.BASE_DIR}/"
    return [
        f"{one.filename.removeprefix(root)}:{one.lineno} {one.name}" for one in traceback.extract_tb(where)
    ]
