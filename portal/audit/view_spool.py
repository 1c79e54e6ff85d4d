"""Views that the database could not record, in a file of this host until it can: who saw what is never lost.

A page is shown once its view is on the disk, here or there. Hides that processes share the file, that a line which was
cut off counts for nothing, and that no view is recorded twice.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from portal.audit.chain import append
from portal.audit.models import Actor, Entry
from servicing.masking import masked

MAX_FILE_BYTES = 10 * 1024 * 1024

logger = logging.getLogger(__name__)


def path() -> Path:
    """The file; only its owner may read it."""
    return Path(settings.DATA_DIR) / "spool" / "views"


def put(actor: Actor, action: str, subject: Mapping[str, Any]) -> bool:
    """Keep a view until it can be recorded; false where the disk does not take it."""
    at = timezone.now().isoformat()
    view = {"actor": asdict(actor), "action": action, "subject": masked(dict(subject)), "at": at}
    line = b"\n" + json.dumps(view).encode()  # In front, lest one that was cut off spoils the next.
    try:
        path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked() as file:
            end = os.lseek(file, 0, os.SEEK_END)
            if end + len(line) > MAX_FILE_BYTES:
                return False
            if os.write(file, line) < len(line):
                os.ftruncate(file, end)
                return False
            os.fsync(file)
    except OSError:
        logger.exception("A view could not be written to %s.", path())
        return False
    return True


def replay() -> int:
    """Record what waits in the file, in one transaction, and empty it; how many views that were."""
    if not path().exists() or not path().stat().st_size:
        return 0
    with ExitStack() as lock:
        # The database first, so that nobody waits for the file while this waits for the database.
        with transaction.atomic():
            file = lock.enter_context(_locked())
            views = list(_views(os.pread(file, MAX_FILE_BYTES, 0)))
            for view in views:
                _record(Actor(**view["actor"]), view)
        os.ftruncate(file, 0)
        os.fsync(file)
    return len(views)


def _record(actor: Actor, view: Mapping[str, Any]) -> None:
    """Nothing if a process was killed after it had recorded this one."""
    same = Entry.objects.filter(request_id=actor.request_id, detail__viewed_at=view["at"])
    if parse_datetime(view["at"]) and not same.exists():
        subject = dict(view["subject"])
        detail = subject.pop("detail", {}) | {"viewed_at": view["at"]}
        append(actor, view["action"], **subject, detail=detail)


def _views(content: bytes) -> Iterator[dict[str, Any]]:
    for line in filter(None, content.split(b"\n")):
        try:
            yield json.loads(line)
        except ValueError:
            logger.error("A line of %s was cut off; the page of that view was not shown.", path())


@contextmanager
def _locked() -> Iterator[int]:
    file = os.open(path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)
