"""Keeps the local copy in step with the service's list: whole, or only what is new at its front.

A day is complete when exactly those messages are saved that the service lists, which only reading it to its end shows.
Between two such readings its total has to do: where totals of a stretch of days agree nothing is read, elsewhere the
stretch is halved, down to days. With every batch that is saved goes the place where to go on, so whoever is killed in
between, or meets an answer that fails, loses nothing. A service that ignores the days is read whole.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import cached_property, partial
from itertools import islice
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.clocks import is_recent
from portal.gateway import reading
from portal.messaging.keeping import ONE_DAY, keep, kept_as, today
from portal.messaging.models import WHOLE_LIST, Day, Fingerprint, Message, Run
from portal.registry.planning import MANY, count_anew
from servicing import Client, IncompleteList, Page, ProtocolError, Rejected, Unavailable
from servicing import Message as Told
from servicing.messages import WALK_LIMIT
from servicing.resource import Counts, Place, Step, walk

BATCH: Final = 1_000
"""So many messages are kept at once."""
WEEK: Final = timedelta(days=7)
FRONT_PAGES: Final = 10
LIMITS: Final = (WALK_LIMIT, 10, 1)
"""How many messages are asked for at once; fewer where an answer cannot be read, for it may be too large."""
PAUSES: Final = (1, 2, 4, 8, 16)
"""Seconds before each further try where the service fails."""
MAX_PASSES: Final = 6
"""So often is a day read in one run while its list changes under the reading."""
EARLIEST: Final = date(1970, 1, 1)
FAR_AHEAD: Final = timedelta(days=3650)


class FiltersIgnored(Exception):
    """The service answers with messages that the days in the question leave out."""


def read_front(client: Client) -> int:
    """Keep what is new at the front of the list, and say how much that is: one call while nothing is."""
    added = 0
    pages = walk(lambda offset: client.messages.list(limit=WALK_LIMIT, offset=offset), offset_counts())
    with suppress(IncompleteList):  # What is missing further back is for a sync to find.
        for step in islice(pages, FRONT_PAGES):
            added += len(new := keep(step.new))
            if step.new and not new:
                break
    return added


def offset_counts() -> Counts | None:
    """What offsets count, where a setting tells it."""
    counts: Counts | None = settings.SERVICING_OFFSET_COUNTS  # type: ignore[assignment]  # one of a closed list
    return counts


def begin(
    actor: Actor,
    *,
    since: date | None,
    until: date | None,
    report: Callable[[Run], object],
    read_before: datetime | None = None,
) -> "Sync":
    """A run that somebody asked for: it has a row from now on, and an audit entry once it ends."""
    run = Run.objects.create(by=actor.name, since=since, until=until)
    return Sync(reading(actor), run, actor=actor, report=report, read_before=read_before)


class Sync:
    """One run over a stretch of days; ``report`` is called whenever the run has something to tell.

    Days that were read to their end before ``read_before``, or too long ago, are read to their end again.
    """

    def __init__(
        self,
        client: Client,
        run: Run,
        *,
        actor: Actor,
        report: Callable[[Run], object] = lambda run: None,
        sleep: Callable[[float], object] = time.sleep,
        read_before: datetime | None = None,
    ) -> None:
        self.client = client
        self.run = run
        self.actor = actor
        self.report = report
        self.sleep = sleep
        self.read_before = read_before
        self.problems: list[IncompleteList] = []

    def __call__(self) -> Run:
        """Read what is missing, newest days first."""
        run = self.run
        try:
            self._read_all()
            if self.problems:
                raise self.problems[0]
            run.claimed = run.added + run.already_here
            if run.added >= MANY:
                count_anew()
        except BaseException as error:
            run.failure = str(error)[:500] or "It was stopped; the next run goes on there."
            raise
        finally:
            run.day, run.ended_at = None, timezone.now()
            run.save()
            counts = {"already_here": run.already_here, "gone": run.gone, "total": run.claimed}
            append(self.actor, "messaging.sync", detail={"new": run.added, "failure": run.failure} | counts)
        return run

    def _read_all(self) -> None:
        run = self.run
        try:
            self._require_filters()
            self._begin(self.claimed(run.since, run.until), _saved(run.since, run.until))
            self._complete(self.first, self.last)
        except FiltersIgnored:
            run.filters_ignored = True
            self._begin(self.claimed(None, None), Message.objects.at_service().count())
            before, run.already_here = run.added, 0
            self._read(Day.objects.filter(day=WHOLE_LIST).first() or Day(day=WHOLE_LIST, claimed=0))
            run.already_here = max(
                0, run.already_here - before
            )  # They were listed again, and are counted as new.
            if not self.problems:
                _copy_totals()

    def _begin(self, claimed: int, saved: int) -> None:
        self.run.claimed, self.run.missing = claimed, max(0, claimed - saved)
        self.run.save()
        self.report(self.run)

    def _require_filters(self) -> None:
        """Ask for days that nobody has messages of: even messages of uncertain days show then what is ignored."""
        day = today() + FAR_AHEAD
        with suppress(Rejected):  # Whoever refuses the days has read them.
            if self._page(day, day, limit=1).data:
                raise FiltersIgnored

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
            if not EARLIEST < day < today() + FAR_AHEAD:
                raise FiltersIgnored
        return day

    def _complete(self, first: date, last: date) -> None:
        if first > last:
            return
        days = _days(first, last)
        claimed, saved = self.claimed(first, last), Message.objects.fingerprints(first, last)
        known = {one.day: one for one in Day.objects.filter(day__range=(first, last))}
        if claimed == sum(one.number for one in saved.values()) and all(
            day in known and self._is_read(known[day], saved.get(day, Fingerprint())) for day in days
        ):
            self.run.already_here += claimed
        elif not claimed and not saved:
            _write_as_read(first, last)
        elif last - first < WEEK:
            for day in reversed(days):
                self._read(known.get(day) or Day(day=day, claimed=0))
        else:
            middle = first + (last - first) // 2
            self._complete(middle + ONE_DAY, last)
            self._complete(first, middle)

    def _is_read(self, known: Day, saved: Fingerprint) -> bool:
        """Whether a reading to the end, not too long ago, listed exactly what is saved."""
        if not known.read_at or (self.read_before and known.read_at < self.read_before):
            return False
        period = timedelta(minutes=settings.MESSAGE_FULL_SYNC_MINUTES)
        return known.agrees_with(saved) and (not period or is_recent(known.read_at, period))

    # --- One day ---

    def _read(self, known: Day) -> None:
        """Read a day until exactly those messages are saved that the service lists, unless nothing changed.

        A message that two whole readings in a row do not list is gone at the service.
        """
        is_read = self._is_read(known, Message.objects.of_day(known.day).fingerprint())
        if is_read and self.claimed(*_bounds(known.day)) == known.listed:
            self.run.already_here += known.listed
            return
        new: set[str] = set()
        absent: set[str] = set()
        for number in range(1, MAX_PASSES + 1):
            was_cut_off = known.offset is not None
            try:
                listed = self._listed(known, new, is_read=is_read)
            except IncompleteList as problem:
                _forget_place(known)
                if number == MAX_PASSES:
                    self.problems.append(problem)
                continue
            if known.agrees_with(Message.objects.of_day(known.day).fingerprint()):
                break
            if was_cut_off:  # What was listed before the cut is known by number alone.
                continue
            saved = set(Message.objects.of_day(known.day).values_list("uuid", flat=True))
            gone = (saved - listed) & absent
            self._note_gone(gone, new)
            absent = saved - listed - gone
            if not absent:
                break
        self.run.already_here += max(0, Message.objects.of_day(known.day).count() - len(new))
        self.run.save()

    def _note_gone(self, gone: set[str], new: set[str]) -> None:
        """Mark what the service no longer has; what came and went while it was read is not new."""
        uuids = sorted(gone)
        for start in range(0, len(uuids), BATCH):
            Message.objects.filter(uuid__in=uuids[start : start + BATCH]).update(gone_at=timezone.now())
        self.run.gone += len(gone)
        self.run.added -= len(gone & new)
        new -= gone

    def _listed(self, known: Day, new: set[str], *, is_read: bool) -> set[str]:
        """What the service lists of the day, all saved; in smaller pages where an answer is too large."""
        for limit in LIMITS:
            try:
                return self._listed_by(limit, known, new, is_read=is_read)
            except IncompleteList:
                raise
            except ProtocolError:
                _forget_place(known)
                if limit == LIMITS[-1]:
                    raise
        raise AssertionError("there is a last limit")

    def _listed_by(self, limit: int, known: Day, new: set[str], *, is_read: bool) -> set[str]:
        counts: Counts | None = offset_counts()
        start = None if known.offset is None else Place(known.offset, counts or known.counts or None)  # type: ignore[arg-type]
        if start is None:
            _forget_place(known)
        waiting: list[Told] = []
        listed: set[str] = set()
        for step in walk(partial(self._page_of, known.day, limit), counts, start=start):
            total = step.page.pagination.total
            known.claimed = known.claimed if total is None else total
            waiting += step.new
            listed |= {kept_as(message.uuid) for message in step.new}
            if len(waiting) < BATCH and not is_read:
                continue
            added, waiting = self._save(waiting, known, new, step), []
            is_new = [kept_as(message.uuid) in added for message in step.new]
            if is_read and not all(
                is_new
            ):  # Where all that is new stands in front, the rest was read before.
                saved = Message.objects.of_day(known.day).fingerprint()
                if saved.number == total and is_new == sorted(is_new, reverse=True):
                    known.listed, known.digest = saved
                    self._save([], known, new, None)
                    return listed
                is_read = False
        self._save(waiting, known, new, None)
        known.listed, known.digest, known.read_at = known.part_listed, known.part_digest, timezone.now()
        known.claimed = known.listed
        _write([known])
        return listed

    def _page_of(self, day: date, limit: int, offset: int) -> Page[Told]:
        return self._page(*_bounds(day), limit, offset)

    def _save(self, messages: list[Told], known: Day, new: set[str], last: Step[Told] | None) -> set[str]:
        """Save a batch, and where to go on, both or neither; which messages of it are new.

        That is its last page, read again: messages may arrive or go before somebody goes on.
        """
        day = None if known.day == WHOLE_LIST else known.day
        self.run.day = day
        with transaction.atomic():
            added = keep(messages, day=day)
            behind = {message.uuid for message in last.new} if last else set()
            _add_part(known, [message for message in messages if message.uuid not in behind])
            known.checked_at = timezone.now()
            known.offset, known.counts = (last.place.offset, last.place.counts or "") if last else (None, "")
            self.run.added += len(added)
            _write([known])
            self.run.save()
        if last:
            _add_part(known, last.new)
        new |= added
        self.report(self.run)
        return added

    def _page(
        self, first: date | None, last: date | None, limit: int, offset: int | None = None
    ) -> Page[Told]:
        """One page; where the service fails it is asked again, a little later each time."""
        for pause in (*PAUSES, None):
            try:
                page = self.client.messages.list(start_date=first, end_date=last, limit=limit, offset=offset)
            except Unavailable:
                if pause is None:
                    raise
                self.sleep(pause)
                continue
            if page.filters_ignored:
                raise FiltersIgnored
            return page
        raise AssertionError("the last try answers or fails")


def _bounds(day: date) -> tuple[date | None, date | None]:
    """The days to ask for."""
    return (None, None) if day == WHOLE_LIST else (day, day)


def _forget_place(known: Day) -> None:
    known.offset, known.counts, known.part_listed, known.part_digest = None, "", 0, 0


def _add_part(known: Day, messages: Sequence[Told]) -> None:
    part = Message.objects.filter(uuid__in=[kept_as(message.uuid) for message in messages]).fingerprint()
    known.part_listed += part.number
    known.part_digest += part.digest


def _write_as_read(first: date, last: date) -> None:
    """Note that the service lists exactly what is saved of these days."""
    now, saved = timezone.now(), Message.objects.fingerprints(first, last)
    days = []
    for day in _days(first, last):
        number, digest = saved.get(day, Fingerprint())
        days.append(Day(day=day, claimed=number, listed=number, digest=digest, checked_at=now, read_at=now))
    _write(days)


def _copy_totals() -> None:
    """Give each day its part of a whole list that was read to its end."""
    placed = Message.objects.at_service().filter(is_placed=True)
    found = placed.order_by().aggregate(first=Min("day"), last=Max("day"))
    if found["first"]:
        _write_as_read(found["first"], max(found["last"], today()))


def _write(days: Sequence[Day]) -> None:
    """Whoever comes second writes over it: two runs may come to a day that neither has seen at the same moment."""
    fields = [field.name for field in Day._meta.concrete_fields if not field.primary_key]
    Day.objects.bulk_create(days, update_conflicts=True, unique_fields=["day"], update_fields=fields)


def _saved(first: date | None, last: date | None) -> int:
    messages = Message.objects.at_service().order_by().filter(is_placed=True)
    if first:
        messages = messages.filter(day__gte=first)
    if last:
        messages = messages.filter(day__lte=last)
    return messages.count()


def _days(first: date, last: date) -> list[date]:
    return [first + number * ONE_DAY for number in range((last - first).days + 1)]
