"""Reads every known account again, politely, oldest copy first; stopped and begun again it goes on where it was."""

import time
from collections.abc import Iterator
from datetime import timedelta

from django.utils import timezone

from portal.audit.models import Actor
from portal.readings import due_for_refresh, read_again
from portal.registry.models import Kind, Record

KINDS = [Kind.LOAN, Kind.LINE, Kind.APPLICATION]


def due(kind: str, older_than: float) -> list[Record]:
    """What was not read within so many hours; of one kind, or of all without one."""
    limit = timezone.now() - timedelta(hours=older_than)
    return due_for_refresh([kind] if kind else KINDS, older_than=limit)


def read_all(actor: Actor, records: list[Record], *, rate: float) -> Iterator[bool]:
    """Read one after the other, so many a second at most; whether each went well."""
    for record in records:
        started = time.monotonic()
        yield read_again(actor, record)
        time.sleep(max(0.0, 1 / rate - (time.monotonic() - started)))
