"""Leaves a service alone that does not answer: after several tries in a row it is asked once every few seconds only.

All processes go by the same row. Hides that one of all who come after a pause asks, and that its answer ends the pause
for everybody.
"""

import logging
import threading
from datetime import timedelta

from django.db.models import F
from django.utils import timezone

from portal.audit.models import Outage
from portal.clocks import match_ahead
from portal.disk import release_connection

TRIES = 6
"""Two calls that were tried as often as calls are."""
PAUSE = timedelta(seconds=5)
_ROW = 1

logger = logging.getLogger(__name__)


class Breaker:
    """The client's gate; each thread asks and hears of one try after the other."""

    def __init__(self) -> None:
        self._before = threading.local()

    def admits(self) -> bool:
        """Whether this try may be made: always while the service answers, else the first after each pause."""
        try:
            return self._admits()
        finally:
            release_connection()

    def _admits(self) -> bool:
        self._before.outage = Outage.objects.filter(pk=_ROW).first()
        if self._before.outage is None or self._before.outage.tries < TRIES:
            return True
        is_over = ~match_ahead("ask_again_at", PAUSE)
        return bool(Outage.objects.filter(is_over).update(ask_again_at=timezone.now() + PAUSE))

    def heard(self, *, answered: bool) -> None:
        """Count a try without an answer; an answer ends the count."""
        if not answered:
            _count()
        elif self._before.outage and Outage.objects.all().delete()[0]:
            logger.info("The lending service answers again.")


def outage() -> Outage | None:
    """Since when the service is left alone; ``None`` while it is asked as usual."""
    return Outage.objects.filter(tries__gte=TRIES).first()


def _count() -> None:
    now = timezone.now()
    Outage.objects.get_or_create(pk=_ROW, defaults={"since": now, "ask_again_at": now})
    Outage.objects.filter(pk=_ROW).update(tries=F("tries") + 1, ask_again_at=now + PAUSE)
    if Outage.objects.filter(pk=_ROW, tries=TRIES).exists():
        logger.warning("The lending service left %d tries in a row without an answer.", TRIES)
