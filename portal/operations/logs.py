"""Log lines as JSON: one object a line, with the reference that a page shows when something fails.

Hides what is left out so that no line holds personal data: addresses with what was searched for, values inside the
messages of exceptions, and whatever looks like an e-mail address or a number of a person.
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
# The request under way, which gets its reference on its way to a view.
current: ContextVar[HttpRequest | None] = ContextVar("current", default=None)

# Bounded: without a limit a long text without spaces would be looked through again from each of its characters.
_MAIL = re.compile(r"[^\s@<>\"',;:()]{1,254}@[\w.-]{0,253}\w")
# An identifier of a task, a worker or a record says nothing about anybody, though digits may follow one another in it.
# One without any letter is masked: that may be numbers of people.
_NUMBER = re.compile(
    r"(?P<id>\b(?=[\d-]*[a-f])[\da-f]{8}(?P<dash>-?)(?:[\da-f]{4}(?P=dash)){3}[\da-f]{12}\b)"
    r"|[+(]?\d[\d ().-]{7,}\d"
)
# Django names the address behind these; everything before says what happened.
_ADDRESS = re.compile(r"(: /| /|: https?://).*", re.DOTALL)
# What a line may say beside its message.
FIELDS = ("view", "method", "status", "ms")


class JsonFormatter(logging.Formatter):
    """One line for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """The record without what may be about a person; times are UTC."""
        request = getattr(record, "request", None) or current.get()
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _impersonal(record),
            "request_id": getattr(request, "request_id", None),
        }
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[0]:
            line |= {"error": record.exc_info[0].__name__, "trace": _trace(record.exc_info[2])}
        return json.dumps(
            {name: value for name, value in line.items() if value is not None}, ensure_ascii=False
        )


def log_uncaught() -> None:
    """Have exceptions that nobody catches logged like all else; Python would print them with all they say."""

    def log(kind: type[BaseException], error: BaseException | None, where: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error or kind(), where)
        else:
            logger.critical("Nobody caught this.", exc_info=(kind, error or kind(), where))

    sys.excepthook = log
    threading.excepthook = lambda told: log(told.exc_type, told.exc_value, told.exc_traceback)
    sys.unraisablehook = lambda told: log(told.exc_type, told.exc_value, told.exc_traceback)


def _impersonal(record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.name.startswith("django"):
        text = _ADDRESS.sub("", text)
    return _NUMBER.sub(lambda found: found["id"] or "[number]", _MAIL.sub("[e-mail]", text))


def _trace(where: Any) -> list[str]:
    """The places an exception came through; what was there is not said, for it may be anybody's."""
    root = f"{settings.BASE_DIR}/"
    return [
        f"{one.filename.removeprefix(root)}:{one.lineno} {one.name}" for one in traceback.extract_tb(where)
    ]
