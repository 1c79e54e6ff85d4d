"""Keeps the local copy in step with the service's list: whole, or only what is new at its front.

The service says how many messages a stretch of days holds. Where as many are kept here nothing is read; elsewhere the
stretch is halved, down to days. A day is read page by page, and with every batch that is kept the place where to go on:
whoever is killed in between, or meets an answer that fails, loses nothing, and whoever begins again reads little twice.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import cached_property
from itertools import islice
from typing import Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.gateway import reading
from portal.messaging.keeping import ONE_DAY, keep, today
from portal.messaging.models import Day, Message, Run, kept_on
from portal.registry.planning import MANY, count_anew
from servicing import Client, IncompleteList, Page, ProtocolError, Unavailable
from servicing import Message as Told
from servicing.messages import WALK_LIMIT
from servicing.resource import Counts, Place, walk

BATCH: Final = 1_000
"""So many messages are kept at once."""
WEEK: Final = timedelta(days=7)
FRONT_PAGES: Final = 10
LIMITS: Final = (WALK_LIMIT, 10, 1)
"""How many messages are asked for at once; fewer where an answer cannot be read, for it may be too large."""
PAUSES: Final = (1, 2, 4, 8, 16)
"""Seconds before each further try where the service fails."""


def read_front(client: Client) -> int:
    """Keep what is new at the front of the list, and say how much that is: one call while nothing is."""
    added = 0
    pages = walk(lambda offset: client.messages.list(limit=WALK_LIMIT, offset=offset), offset_counts())
    with suppress(IncompleteList):  # What is missing further back is for a sync to find.
        for step in islice(pages, FRONT_PAGES):
            new = keep(step.new)
            added += new
            if step.new and not new:
                break
    return added


def offset_counts() -> Counts | None:
    """What offsets count, where a setting tells it."""
    counts: Counts | None = settings.SERVICING_OFFSET_COUNTS  # type: ignore[assignment]  # one of a closed list
    return counts


def begin(actor: Actor, *, since: date | None, until: date | None, report: Callable[[Run], object]) -> "Sync":
    """A run that somebody asked for: it has a row from now on, and an audit entry once it ends."""
    run = Run.objects.create(by=actor.name, since=since, until=until)
    return Sync(reading(actor), run, actor=actor, report=report)


class Sync:
    """One run over a stretch of days; ``report`` is called whenever the run has something to tell."""

    def __init__(
        self,
        client: Client,
        run: Run,
        *,
        actor: Actor,
        report: Callable[[Run], object] = lambda run: None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.client = client
        self.run = run
        self.actor = actor
        self.report = report
        self.sleep = sleep

    def __call__(self) -> Run:
        """Read what is missing, newest days first."""
        run = self.run
        try:
            run.claimed = self.claimed(run.since, run.until)
            run.missing = max(0, run.claimed - _kept(run.since, run.until))
            run.save()
            self.report(run)
            self._complete(self.first, self.last)
            if run.added >= MANY:
                count_anew()
        except BaseException as error:
            run.failure = str(error)[:500] or "It was stopped; the next run goes on there."
            raise
        finally:
            run.day, run.ended_at = None, timezone.now()
            run.save()
            append(self.actor, "messaging.sync", detail={"new": run.added, "failure": run.failure})
        return run

    def claimed(self, first: date | None, last: date | None) -> int:
        """How many messages the service has of these days, both included."""
        total = self._page(first, last, limit=1).pagination.total
        if total is None:
            raise ProtocolError("The answer cannot be read: the list of messages does not tell its total.")
        return total

    @cached_property
    def first(self) -> date:
        """The first day that can hold messages."""
        return self.run.since or self._edge(-32 * ONE_DAY, lambda day: self.claimed(None, day - ONE_DAY))

    @cached_property
    def last(self) -> date:
        """The last one; the service's clock may be ahead of ours."""
        return self.run.until or self._edge(ONE_DAY, lambda day: self.claimed(day + ONE_DAY, None))

    def _edge(self, reach: timedelta, beyond: Callable[[date], int]) -> date:
        day = today()
        while beyond(day):
            day, reach = day + reach, reach * 2
        return day

    def _complete(self, first: date, last: date) -> None:
        if first > last:
            return
        kept = kept_on(first, last)
        if self.claimed(first, last) == sum(kept.values()):
            _agree(first, last, kept)
        elif last - first < WEEK:
            for day in reversed(_days(first, last)):
                self._read(day)
        else:
            middle = first + (last - first) // 2
            self._complete(middle + ONE_DAY, last)
            self._complete(first, middle)

    # --- One day ---

    def _read(self, day: date) -> None:
        """Read a day to its end, from where an earlier run was cut off, unless nothing changed since."""
        known = Day.objects.filter(day=day).first() or Day(day=day)
        if known.kept is not None:
            claimed, kept = self.claimed(day, day), _kept(day, day)
            if claimed == kept:
                _agree(day, day, {day: kept})
                return
            if claimed < kept == known.kept and known.claimed == claimed:  # The service forgets what is old.
                return
        was_cut_off = known.offset is not None
        self._walk(known)
        if was_cut_off and (known.kept or 0) < known.claimed:  # What was read before has moved meanwhile.
            self._walk(known)

    def _walk(self, known: Day) -> None:
        """Every page of the day, in smaller ones where an answer is too large."""
        for limit in LIMITS:
            try:
                self._walk_by(limit, known)
                return
            except ProtocolError:
                known.offset = None
                if limit == LIMITS[-1]:
                    raise

    def _walk_by(self, limit: int, known: Day) -> None:
        waiting: list[Told] = []
        counts: Counts | None = offset_counts()
        start = None if known.offset is None else Place(known.offset, counts or known.counts or None)  # type: ignore[arg-type]
        pages = walk(lambda offset: self._page(known.day, known.day, limit, offset), counts, start=start)
        for step in pages:
            known.claimed = step.page.pagination.total or known.claimed or 0
            waiting += step.new
            if len(waiting) >= BATCH:
                self._keep(waiting, known, step.place)
                waiting = []
        self._keep(waiting, known, None)

    def _keep(self, messages: list[Told], known: Day, place: Place | None) -> None:
        """Keep a batch, and where to go on behind it, both or neither."""
        known.checked_at = timezone.now()
        known.offset, known.counts = (place.offset, place.counts or "") if place else (None, "")
        self.run.day = known.day
        with transaction.atomic():
            self.run.added += keep(messages, day=known.day)
            if not place:
                known.kept = _kept(known.day, known.day)
            _write([known])
            self.run.save()
        self.report(self.run)

    def _page(
        self, first: date | None, last: date | None, limit: int, offset: int | None = None
    ) -> Page[Told]:
        """One page; where the service fails it is asked again, a little later each time."""
        for pause in PAUSES:
            try:
                return self.client.messages.list(start_date=first, end_date=last, limit=limit, offset=offset)
            except Unavailable:
                self.sleep(pause)
        return self.client.messages.list(start_date=first, end_date=last, limit=limit, offset=offset)


def _agree(first: date, last: date, kept: dict[date, int]) -> None:
    """Of these days as many messages are kept as the service has."""
    now = timezone.now()
    numbers = {day: kept.get(day, 0) for day in _days(first, last)}
    days = [Day(day=day, claimed=number, kept=number, checked_at=now) for day, number in numbers.items()]
    _write(days)


def _write(days: Sequence[Day]) -> None:
    """Whoever comes second writes over it: two runs may come to a day that neither has seen at the same moment."""
    fields = ["claimed", "kept", "checked_at", "offset", "counts"]
    Day.objects.bulk_create(days, update_conflicts=True, unique_fields=["day"], update_fields=fields)


def _kept(first: date | None, last: date | None) -> int:
    messages = Message.objects.order_by().filter(is_placed=True)
    if first:
        messages = messages.filter(day__gte=first)
    if last:
        messages = messages.filter(day__lte=last)
    return messages.count()


def _days(first: date, last: date) -> list[date]:
    return [first + number * ONE_DAY for number in range((last - first).days + 1)]
