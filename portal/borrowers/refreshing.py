"""Reading all accounts of a borrower again at once: panels ask side by side, and a line tells how far they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from portal.clocks import is_recent
from portal.readings import PATIENCE, Reading


@dataclass(frozen=True)
class Progress:
    """How many of the records were answered for since somebody asked for all of them."""

    since: datetime
    done: int
    failed: int
    total: int

    @property
    def is_over(self) -> bool:
        """Whether all answered, or nobody waits for the rest any more."""
        return self.done == self.total or not is_recent(self.since, PATIENCE)


def progress(readings: Sequence[Reading], since: str) -> Progress:
    """How far it is; without a moment that can be read it begins now."""
    begun = _moment(since) or timezone.now()
    answered = [one for one in readings if _is_since(begun, one.record.checked_at)]
    failed = [one for one in readings if _is_since(begun, one.record.failed_at) and one not in answered]
    return Progress(begun, len(answered) + len(failed), len(failed), len(readings))


def _moment(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment and timezone.is_aware(moment) else None


def _is_since(begun: datetime, at: datetime | None) -> bool:
    return at is not None and at >= begun
