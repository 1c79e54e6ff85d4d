"""Reads every known account again, politely, oldest copy first; stopped and begun again it goes on where it was."""

import time
from collections.abc import Iterator
from datetime import datetime

from portal.audit.breaker import PAUSE, outage
from portal.audit.models import Actor
from portal.readings import claim, due_for_refresh, read
from portal.registry.models import Kind, Record

KINDS = [Kind.LOAN, Kind.LINE, Kind.APPLICATION]


def due(kind: str, before: datetime) -> list[Record]:
    """What was last read before this moment; of one kind, or of all without one."""
    return due_for_refresh([kind] if kind else KINDS, older_than=before)


def read_all(actor: Actor, records: list[Record], *, rate: float) -> Iterator[bool]:
    """Read one after the other, so many a second at most, and slower than that while nothing is answered."""
    for record in records:
        if outage():
            time.sleep(PAUSE.total_seconds())
        started = time.monotonic()
        claim([record], force=True)
        yield read(actor, record)
        time.sleep(max(0.0, 1 / rate - (time.monotonic() - started)))
