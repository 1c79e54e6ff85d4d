"""Files on this host for what the database can't save now: answers of writes, and views of records.

Hides that a file's space is allocated in advance, so that a full disk can't refuse an entry; that all processes of the
host share it; and that an incomplete entry is skipped.
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

LOCK_WAIT_SECONDS = 1.0
_MARK = b"answer "
_HEADER = re.compile(_MARK + rb"(\d{1,7}) (\d{1,10})\n")

logger = logging.getLogger(__name__)


class Ticket(NamedTuple):
    """The position and the bytes of an entry, since its blocks may have been reused."""

    offset: int
    content: bytes


class Spool:
    """One file of blocks. An entry begins at a block, with a header of length and checksum followed by JSON."""

    def __init__(self, name: str, *, file_bytes: int, block_bytes: int) -> None:
        self.name, self.file_bytes, self.block_bytes = name, file_bytes, block_bytes

    @property
    def path(self) -> Path:
        """The file of this host; a container has it on a volume."""
        return Path(settings.DATA_DIR) / "spool" / self.name

    def allocate(self) -> None:
        """Allocate the file's whole space now; ``OSError`` if the disk is full."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            if os.fstat(descriptor).st_size < self.file_bytes:
                os.posix_fallocate(descriptor, 0, self.file_bytes)
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def put(self, *forms: Mapping[str, Any]) -> Ticket | None:
        """Write the first of these forms of an entry that fits, and wait for the disk; ``None`` if none fits."""
        try:
            if not self.path.exists():
                self.allocate()
            return next(filter(None, map(self._put, forms)), None)
        except OSError:
            logger.exception("An entry couldn’t be written to %s.", self.path)
            return None

    def entries(self) -> Sequence[tuple[Ticket, dict[str, Any]]]:
        """All complete entries; none if the file is missing or unreadable."""
        try:
            with self._locked() as descriptor:
                found = list(self._walk(os.pread(descriptor, self.file_bytes, 0)))
        except FileNotFoundError:
            return []
        except OSError:
            logger.exception("%s can’t be read.", self.path)
            return []
        return [(ticket, json.loads(_HEADER.sub(b"", ticket.content, count=1))) for ticket in found]

    def remove(self, ticket: Ticket) -> None:
        """Free the blocks of an entry unless they were reused; if that fails, the next replay skips the entry."""
        try:
            with self._locked() as descriptor:
                if os.pread(descriptor, len(ticket.content), ticket.offset) == ticket.content:
                    os.pwrite(descriptor, bytes(len(ticket.content)), ticket.offset)
        except OSError:
            logger.exception("An entry that is recorded could not be removed from %s.", self.path)

    def _put(self, entry: Mapping[str, Any]) -> Ticket | None:
        text = json.dumps(entry, cls=DjangoJSONEncoder, ensure_ascii=False).encode("utf-8", "surrogatepass")
        content = _MARK + b"%d %d\n%s" % (len(text), zlib.crc32(text), text)
        with self._locked() as descriptor:
            offset = self._free_offset(os.pread(descriptor, self.file_bytes, 0), len(content))
            if offset is None:
                return None
            os.pwrite(descriptor, content, offset)
        with open(self.path, "rb") as file:
            os.fdatasync(file.fileno())
        return Ticket(offset, content)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            _lock(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)

    def _walk(self, data: bytes) -> Iterator[Ticket]:
        """The complete entries of a file; incomplete ones count as free space."""
        offset = data.find(_MARK)
        while offset >= 0:
            length = 0
            if offset % self.block_bytes == 0 and (header := _HEADER.match(data, offset)):
                text = data[header.end() : header.end() + int(header[1])]
                if zlib.crc32(text) == int(header[2]):
                    length = header.end() - offset + len(text)
                    yield Ticket(offset, data[offset : offset + length])
            offset = data.find(_MARK, offset + max(self._rounded(length), 1))

    def _free_offset(self, data: bytes, length: int) -> int | None:
        """The first sufficiently long run of free blocks."""
        begin = 0
        for ticket in self._walk(data):
            if begin + length <= ticket.offset:
                return begin
            begin = ticket.offset + self._rounded(len(ticket.content))
        return begin if begin + length <= self.file_bytes else None

    def _rounded(self, length: int) -> int:
        return -(-length // self.block_bytes) * self.block_bytes


def _lock(descriptor: int) -> None:
    """Wait for other processes, but not for one that was stopped while holding the lock."""
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


ANSWERS = Spool("answers", file_bytes=1024 * 1024, block_bytes=4096)
VIEWS = Spool("views", file_bytes=10 * 1024 * 1024, block_bytes=512)
SPOOLS = (ANSWERS, VIEWS)
