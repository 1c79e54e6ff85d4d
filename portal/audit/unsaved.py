"""Answers of writes that the database didn't take: one line of JSON each, in one file of ``DATA_DIR``.

``manage.py save_answer`` and the page of the write record them later.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder

logger = logging.getLogger(__name__)


def answers_file() -> Path:
    return Path(settings.DATA_DIR) / "unsaved-answers.jsonl"


def keep(answer: Mapping[str, Any]) -> bool:
    """Append an answer, and wait for the disk; false if that fails."""
    text = json.dumps(answer, cls=DjangoJSONEncoder, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        with _locked(os.O_CREAT) as descriptor:
            # A line that a full disk cut off must not swallow this one.
            if os.write(descriptor, b"\n" + text + b"\n") < len(text) + 2:
                raise OSError("the disk is full")
            os.fsync(descriptor)
    except OSError:
        logger.exception("An answer couldn’t be written to %s.", answers_file())
        return False
    return True


def kept_answers() -> list[dict[str, Any]]:
    """All complete lines, oldest first; none if the file is missing or unreadable."""
    try:
        lines = answers_file().read_bytes().decode("utf-8", "surrogatepass").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError):
        logger.exception("%s can’t be read.", answers_file())
        return []
    return list(_parsed(lines))


def discard() -> None:
    """Delete the file once all its answers are recorded."""
    with _locked():
        answers_file().unlink()


def _parsed(lines: list[str]) -> Iterator[dict[str, Any]]:
    for line in filter(None, lines):
        try:
            yield json.loads(line)
        except ValueError:
            continue


@contextmanager
def _locked(flags: int = 0) -> Iterator[int]:
    """The open file, locked against other processes."""
    while True:
        descriptor = os.open(answers_file(), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:  # Else it was deleted while this process waited.
                yield descriptor
                return
        finally:
            os.close(descriptor)
