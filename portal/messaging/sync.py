"""Reads missing messages from the service's list: all of it, or only what is new at its front.

A day is complete if exactly the messages that the service lists are saved, which only a reading to its end shows.
Between two such readings totals are compared: if those of a range of days agree, nothing is read; otherwise the range
is halved, down to days. Each batch saves the position to resume from, so that nothing is lost if the sync is killed or
the service fails. If the service ignores dates, its whole list is read as if it were one day.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import cached_property, partial
from itertools import islice
from typing import Final, TypeVar

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import transaction
from django.db.models import Max, Min, Q
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.gateway import client_for
from portal.messaging.models import WHOLE_LIST, Day, Fingerprint, Message, MessageQuerySet, Run
from portal.messaging.store import ONE_DAY, describe_unusable, save_messages, service_today, storage_uuid
from portal.registry.table_statistics import ANALYZE_AFTER_ROWS, analyze
from portal.runtime.database import is_unavailable, release_connection
from servicing import Client, Forbidden, IncompleteList, Page, ProtocolError, Rejected, Unavailable
from servicing import Message as RemoteMessage
from servicing.resource import Cursor, OffsetUnit, PageStep, Unusable, iterate_pages

T = TypeVar("T")
logger = logging.getLogger(__name__)
BATCH: Final = 1_000
"""The number of messages saved together."""
WEEK: Final = timedelta(days=7)
FRONT_PAGES: Final = 10
MAX_NAMED: Final = 10
"""The messages without a usable ID that a run names."""
SMALLER_PAGES: Final = (10, 1)
"""The messages to ask for at a time if a page is refused, or its answer can't be read: it may be too large."""
PAUSES_SECONDS: Final = (1, 2, 4, 8, 16)
"""Pauses before retries while the service fails or the database accepts no writes."""
MAX_PASSES: Final = 6
"""The most times that one run reads a day whose list keeps changing."""
EARLIEST: Final = date(1970, 1, 1)
FAR_AHEAD: Final = timedelta(days=3650)


class FiltersIgnored(Exception):
    """The service returned messages outside the requested days."""


class NoTotal(Exception):
    """The message list has no total, so days with messages can't be found without reading it."""


def read_front(client: Client) -> int:
    """Save new messages at the front of the list and return their number; one call if nothing is new."""
    added = 0
    list_pages = partial(client.messages.list, limit=settings.SERVICING_PAGE_SIZE)
    pages = iterate_pages(lambda offset: list_pages(offset=offset), offset_counts())
    with suppress(IncompleteList):  # A sync finds messages that are missing further back.
        for step in islice(pages, FRONT_PAGES):
            added += len(new := save_messages(step.new))
            if step.new and not new:
                break
    return added


def offset_counts() -> OffsetUnit | None:
    """What offsets count, if configured."""
    counts: OffsetUnit | None = settings.SERVICING_OFFSET_COUNTS  # type: ignore[assignment]  # one of a closed list
    return counts


class Sync:
    """One run over a range of days, with a row from the start and an audit entry at the end.

    ``report`` is called on progress. Days that were not read to their end since ``read_before``, or not for too long,
    are read to their end again.
    """

    def __init__(
        self,
        actor: Actor,
        *,
        since: date | None = None,
        until: date | None = None,
        report: Callable[[Run], object],
        read_before: datetime | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.client = client_for(actor)
        self.run = Run.objects.create(by=actor.name, since=since, until=until)
        self.actor = actor
        self.report = report
        self.read_before = read_before
        self.sleep = sleep
        self.has_totals = True
        self.problems: list[IncompleteList] = []
        self.unusable: dict[date, list[str]] = {}

    def read_missing(self) -> Run:
        """Read missing messages, newest days first."""
        run = self.run
        try:
            self._read_all()
            if self.problems:
                raise self.problems[0]
            run.claimed = run.added + run.already_here
            if run.added >= ANALYZE_AFTER_ROWS:
                analyze()
        except BaseException as error:
            run.failure = str(error)[:500] or "Stopped. The next run continues there."
            raise
        finally:
            run.day, run.ended_at = None, timezone.now()
            run.save()
            counts = {"already_here": run.already_here, "gone": run.gone, "total": run.claimed}
            if run.unusable:
                counts["unusable"] = run.unusable
                logger.warning("%d messages have no usable ID: %s", run.unusable, run.unusable_names)
            append(self.actor, "messaging.sync", detail={"new": run.added, "failure": run.failure} | counts)
        return run

    def _read_all(self) -> None:
        run = self.run
        try:
            self._require_filters()
            self._start(run.since, run.until, Message.objects.between(run.since, run.until))
            self._complete(self.first, self.last)
            self._read_days_beyond()
        except (FiltersIgnored, NoTotal) as problem:
            run.filters_ignored = isinstance(problem, FiltersIgnored)
            self._start(None, None, Message.objects.at_service())
            # Messages read before are listed again, but were already counted as new.
            before, run.already_here = run.added, 0
            self._read(Day.objects.filter(day=WHOLE_LIST).first() or Day(day=WHOLE_LIST, claimed=0))
            run.already_here = max(0, run.already_here - before)
            if not self.problems and not run.unusable:
                self._with_retries(_mark_all_days_read)

    def _start(self, first: date | None, last: date | None, saved: MessageQuerySet) -> None:
        self.run.claimed = self.claimed(first, last) if self.has_totals else 0
        self.run.missing = max(0, self.run.claimed - saved.count())
        self.run.save()
        self.report(self.run)

    def _require_filters(self) -> None:
        """Request days without messages; any message in the answer shows that the service ignores days."""
        day = service_today() + FAR_AHEAD
        with suppress(Rejected):  # A service that rejects the days doesn't ignore them.
            page = self._page(day, day, limit=1)
            self.has_totals = page.pagination.total is not None
            if len(page):
                raise FiltersIgnored
            if not self.has_totals:
                raise NoTotal

    def claimed(self, first: date | None, last: date | None) -> int:
        """The number of messages that the service has for these days, both included."""
        total = self._page(first, last, limit=1).pagination.total
        if total is None:
            self.has_totals = False
            raise NoTotal
        return total

    @cached_property
    def first(self) -> date:
        """The first day that can have messages."""
        return self.run.since or self._edge(-32 * ONE_DAY, lambda day: self.claimed(None, day - ONE_DAY))

    @cached_property
    def last(self) -> date:
        """The last day that can have messages; the service's clock may be ahead of ours."""
        return self.run.until or self._edge(ONE_DAY, lambda day: self.claimed(day + ONE_DAY, None))

    def _edge(self, reach: timedelta, count_beyond: Callable[[date], int]) -> date:
        day = service_today()
        while count_beyond(day):
            day, reach = day + reach, reach * 2
            if not EARLIEST < day < service_today() + FAR_AHEAD:
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
            self._with_retries(partial(_mark_as_read, first, last))
        elif last - first < WEEK:
            for day in reversed(days):
                self._read(known.get(day) or Day(day=day, claimed=0))
        else:
            middle = first + (last - first) // 2
            self._complete(middle + ONE_DAY, last)
            self._complete(first, middle)

    def _read_days_beyond(self) -> None:
        """Read saved days outside the service's range, whose messages it may have dropped."""
        beyond = Q(day__gte=EARLIEST, day__lt=self.first) | Q(
            day__gt=self.last, day__lt=service_today() + FAR_AHEAD
        )
        saved = Message.objects.between(self.run.since, self.run.until).filter(beyond)
        for day in saved.order_by("-day").values_list("day", flat=True).distinct():
            self._read(Day.objects.filter(day=day).first() or Day(day=day, claimed=0))

    def _is_read(self, known: Day, saved: Fingerprint) -> bool:
        """Whether a recent reading to the end listed exactly what is saved."""
        if not known.read_at or (self.read_before and known.read_at < self.read_before):
            return False
        period = timedelta(minutes=settings.MESSAGE_FULL_SYNC_MINUTES)
        return known.agrees_with(saved) and (not period or timezone.now() - known.read_at <= period)

    # --- One day ---

    def _read(self, known: Day) -> None:
        """Read a day until exactly the messages that the service lists are saved, unless nothing changed.

        A message missing in two whole readings in a row is gone at the service.
        """
        saved = Message.objects.of_day(known.day)
        is_read = self.has_totals and self._is_read(known, saved.fingerprint())
        if is_read and self.claimed(*known.bounds) == known.listed:
            self.run.already_here += known.listed
            return
        new: set[str] = set()
        absent: set[str] = set()
        for number in range(1, MAX_PASSES + 1):
            was_cut_off = known.offset is not None
            try:
                listed = self._list(known, new, is_read=is_read)
            except IncompleteList as problem:
                known.restart()
                if number == MAX_PASSES:
                    self.problems.append(problem)
                continue
            if known.agrees_with(saved.fingerprint()):
                break
            if was_cut_off:  # Only the number of messages listed before the interruption is known.
                continue
            unlisted = set(saved.values_list("uuid", flat=True)) - listed
            gone = unlisted & absent
            self._mark_gone(gone, new)
            absent = unlisted - gone
            if not absent:
                break
        self.run.already_here += max(0, saved.count() - len(new))
        self.run.save()

    def _mark_gone(self, gone: set[str], new: set[str]) -> None:
        """Mark messages that the service no longer lists; any that came and went in between are not new."""
        uuids = sorted(gone)
        for start in range(0, len(uuids), BATCH):
            Message.objects.filter(uuid__in=uuids[start : start + BATCH]).update(gone_at=timezone.now())
        self.run.gone += len(gone)
        self.run.added -= len(gone & new)
        new -= gone

    def _list(self, known: Day, new: set[str], *, is_read: bool) -> set[str]:
        """List and save the day's messages, in smaller pages if an answer is too large."""
        *larger, smallest = (settings.SERVICING_PAGE_SIZE, *SMALLER_PAGES)
        for limit in larger:
            try:
                return self._list_pages(limit, known, new, is_read=is_read)
            except IncompleteList:
                raise
            except (ProtocolError, Rejected) as problem:
                if isinstance(problem, Forbidden):
                    raise
                known.restart()
        return self._list_pages(smallest, known, new, is_read=is_read)

    def _list_pages(self, limit: int, known: Day, new: set[str], *, is_read: bool) -> set[str]:
        counts: OffsetUnit | None = offset_counts()
        cursor = None if known.offset is None else Cursor(known.offset, counts or known.counts or None)  # type: ignore[arg-type]
        if cursor is None:
            known.restart()
        waiting: list[RemoteMessage] = []
        listed: set[str] = set()
        if cursor is None:
            self.unusable[known.day] = []
        for step in iterate_pages(partial(self._page, *known.bounds, limit), counts, start=cursor):
            total = step.page.pagination.total
            known.claimed = known.claimed if total is None else total
            waiting += step.new
            known.unusable += len(step.unusable)
            self._name_unusable(known.day, step.unusable)
            uuids = [storage_uuid(message.uuid) for message in step.new]
            listed.update(uuids)
            if len(waiting) < BATCH and not is_read:
                continue
            added, waiting = self._save(waiting, known, new, step), []
            is_new = [uuid in added for uuid in uuids]
            if is_read and not all(is_new):  # New messages are in front, so the rest was read before.
                saved = Message.objects.of_day(known.day).fingerprint()
                if saved.number == total and is_new == sorted(is_new, reverse=True):
                    known.listed, known.digest = saved
                    self._save([], known, new, None)
                    return listed
                is_read = False
        self._save(waiting, known, new, None)
        known.listed, known.digest, known.read_at = known.part_listed, known.part_digest, timezone.now()
        known.claimed = known.listed + known.unusable
        self._with_retries(partial(_write, [known]))
        return listed

    def _name_unusable(self, day: date, elements: Iterable[Unusable]) -> None:
        self.unusable.setdefault(day, []).extend(describe_unusable(one.raw) for one in elements)
        names = [name for of_day in self.unusable.values() for name in of_day]
        self.run.unusable, self.run.unusable_names = len(names), "; ".join(names[:MAX_NAMED])

    def _save(
        self,
        messages: list[RemoteMessage],
        known: Day,
        new: set[str],
        last: PageStep[RemoteMessage] | None,
    ) -> set[str]:
        """Save a batch with the position to resume from, and return which of its messages are new.

        A later run reads the batch's last page again, because messages may arrive or disappear before it.
        """
        last_page = [storage_uuid(message.uuid) for message in last.new] if last else []
        self.run.day = None if known.day == WHOLE_LIST else known.day
        known.checked_at = timezone.now()
        known.offset, known.counts = (last.cursor.offset, last.cursor.counts or "") if last else (None, "")
        before = self.run.added, known.part_listed, known.part_digest

        def save() -> set[str]:
            self.run.added, known.part_listed, known.part_digest = before
            with transaction.atomic():
                added = save_messages(messages, day=self.run.day)
                known.add_part({storage_uuid(message.uuid) for message in messages} - set(last_page))
                self.run.added += len(added)
                _write([known])
                self.run.save()
            return added

        added = self._with_retries(save)
        known.add_part(last_page)
        new |= added
        self.report(self.run)
        return added

    def _page(
        self, first: date | None, last: date | None, limit: int, offset: int | None = None
    ) -> Page[RemoteMessage]:
        """One page of these days' messages."""
        ask = partial(self.client.messages.list, start_date=first, end_date=last, limit=limit, offset=offset)
        page = self._with_retries(ask)
        if page.filters_ignored:
            raise FiltersIgnored
        return page

    def _with_retries(self, work: Callable[[], T]) -> T:
        """Retry with longer and longer pauses if the service fails or the database accepts no writes.

        Another run may hold a day's rows for longer than a page waits for a lock.
        """
        pauses = iter(PAUSES_SECONDS)
        while True:
            try:
                return work()
            except (Unavailable, DatabaseFailure) as error:
                is_temporary = isinstance(error, Unavailable) or is_unavailable(error)
                if not is_temporary or (pause := next(pauses, None)) is None:
                    raise
            release_connection()
            self.sleep(pause)


def _mark_as_read(first: date, last: date) -> None:
    """Mark these days as read: the service lists exactly what is saved."""
    now, saved = timezone.now(), Message.objects.fingerprints(first, last)
    days = []
    for day in _days(first, last):
        number, digest = saved.get(day, Fingerprint())
        days.append(Day(day=day, claimed=number, listed=number, digest=digest, checked_at=now, read_at=now))
    _write(days)


def _mark_all_days_read() -> None:
    """Mark every day as read after the whole list was read to its end."""
    edges = Message.objects.between(None, None).order_by().aggregate(first=Min("day"), last=Max("day"))
    if edges["first"]:
        _mark_as_read(edges["first"], max(edges["last"], service_today()))


def _write(days: Sequence[Day]) -> None:
    """Save days. If two runs write a day at the same time, the later one wins."""
    fields = [field.name for field in Day._meta.concrete_fields if not field.primary_key]
    Day.objects.bulk_create(days, update_conflicts=True, unique_fields=["day"], update_fields=fields)


def _days(first: date, last: date) -> list[date]:
    return [first + number * ONE_DAY for number in range((last - first).days + 1)]
