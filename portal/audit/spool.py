"""One file of this host for answers of writes, so that neither a database that is away nor a kill loses one.

Hides that the file's space is taken beforehand, so that a full disk cannot refuse an answer; that all processes of the
host share it; and that an entry whose writing was cut off is passed over.
"""

import fcntl
import json
import logging
import os
import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder

FILE_BYTES = 1024 * 1024
BLOCK_BYTES = 4096
LOCK_WAIT_SECONDS = 1.0
_HEADER = re.compile(rb"answer (\d{1,7}) (\d{1,10})\n")
_STDERR = 2

logger = logging.getLogger(__name__)
Entry = Mapping[str, Any]


class Ticket(NamedTuple):
    """Where an entry lies, and its bytes: its place may have been given to another one."""

    offset: int
    content: bytes


def path() -> Path:
    """The file of this host; a container keeps it on a volume."""
    return Path(settings.DATA_DIR) / "spool" / "answers"


def allocate() -> None:
    """Take the file's whole space now; ``OSError`` if the disk has none."""
    file = path()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        if os.fstat(descriptor).st_size < FILE_BYTES:
            os.posix_fallocate(descriptor, 0, FILE_BYTES)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put(*forms: Entry) -> Ticket | None:
    """Write the first of these forms of an entry for which there is room, and wait for the disk; none if it cannot."""
    try:
        if not path().exists():
            allocate()
        return next(filter(None, map(_put, forms)), None)
    except OSError:
        logger.exception("An answer could not be written to %s.", path())
        return None


def entries() -> Sequence[tuple[Ticket, dict[str, Any]]]:
    """Every whole entry; none where there is no file yet."""
    try:
        with _locked() as descriptor:
            found = list(_walk(os.pread(descriptor, FILE_BYTES, 0)))
    except FileNotFoundError:
        return []
    return [(ticket, json.loads(_HEADER.sub(b"", ticket.content, count=1))) for ticket in found]


def remove(ticket: Ticket) -> None:
    """Free the place of an entry, unless somebody did so before."""
    with _locked() as descriptor:
        if os.pread(descriptor, len(ticket.content), ticket.offset) == ticket.content:
            os.pwrite(descriptor, bytes(len(ticket.content)), ticket.offset)


def write_to_stderr(entry: Entry) -> None:
    """The last resort: one line of JSON that a person can enter by hand."""
    told = {
        "level": "CRITICAL",
        "logger": __name__,
        "message": "The answer of a write is saved nowhere else.",
    }
    os.write(_STDERR, json.dumps(told | dict(entry), cls=DjangoJSONEncoder).encode() + b"\n")


def _put(entry: Entry) -> Ticket | None:
    text = json.dumps(entry, cls=DjangoJSONEncoder, ensure_ascii=False).encode("utf-8", "surrogatepass")
    content = b"answer %d %d\n%s" % (len(text), zlib.crc32(text), text)
    with _locked() as descriptor:
        offset = _free_place(os.pread(descriptor, FILE_BYTES, 0), len(content))
        if offset is None:
            return None
        os.pwrite(descriptor, content, offset)
    with open(path(), "rb") as file:
        os.fdatasync(file.fileno())
    return Ticket(offset, content)


@contextmanager
def _locked() -> Iterator[int]:
    descriptor = os.open(path(), os.O_RDWR | os.O_CLOEXEC)
    try:
        _lock(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Wait for the others, but not for a process that was stopped while it had the file."""
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _walk(data: bytes) -> Iterator[Ticket]:
    """Entries begin with a block; one that is not whole is as good as none."""
    offset = 0
    while offset < len(data):
        length = 0
        if header := _HEADER.match(data, offset):
            text = data[header.end() : header.end() + int(header[1])]
            if zlib.crc32(text) == int(header[2]):
                length = header.end() - offset + len(text)
                yield Ticket(offset, data[offset : offset + length])
        offset += max(_blocks(length), 1) * BLOCK_BYTES


def _free_place(data: bytes, length: int) -> int | None:
    """The first run of blocks that no entry uses and that is long enough."""
    begin = 0
    for ticket in _walk(data):
        if begin + length <= ticket.offset:
            return begin
        begin = ticket.offset + _blocks(len(ticket.content)) * BLOCK_BYTES
    return begin if begin + length <= FILE_BYTES else None


def _blocks(length: int) -> int:
    return -(-length // BLOCK_BYTES)
