"""Reads new messages from the front of the service's list, and compares days of it message by message.

New messages are read from the newest on, until those that an unbroken run saved. A run that stops early leaves a mark,
and the next one reads on from there first. A comparison reads each day to its end: it saves what is missing, and marks
what the service lists no longer. Both save page by page, so nothing is lost if they are killed or the service fails.
If the service ignores dates, a comparison reads the whole list instead.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.core.database import is_unavailable, release_connection
from portal.gateway.client import client_for
from portal.messaging.models import Day, Message, MessageQuerySet, Run
from portal.messaging.store import ONE_DAY, describe_unusable, save_messages, service_today, storage_uuid
from servicing import Client, Forbidden, IncompleteList, Page, ProtocolError, Rejected, Unavailable
from servicing import Message as RemoteMessage
from servicing.resource import Cursor, OffsetUnit, PageStep, iterate_pages

T = TypeVar("T")
Step = PageStep[RemoteMessage]
logger = logging.getLogger(__name__)
FRONT_PAGES: Final = 10
RECENT_DAYS: Final = 30
"""The days that are compared each night."""
MAX_NAMED: Final = 10
"""The messages without a usable ID that a run names."""
SMALLER_PAGES: Final = (10, 1)
"""The messages to ask for at a time if a page is refused, or its answer can't be read: it may be too large."""
PAUSES_SECONDS: Final = (1, 2, 4, 8, 16)
"""Pauses before retries while the service fails or the database accepts no writes."""
MAX_PASSES: Final = 6
"""The most times that one run reads a list that keeps changing."""
FAR_AHEAD: Final = timedelta(days=3650)
MAX_ZONE_ERROR: Final = 2 * ONE_DAY
"""How far the day of a message of an uncertain time may be from its guess."""
MAX_DAYS_ASKED: Final = 3
MARKED_AT_ONCE: Final = 500
PROGRESS: Final = ["seen_at", "day", "missing", "added", "already_here", "gone", "unusable", "unusable_names"]


class FiltersIgnored(Exception):
    """The service returned messages outside the requested days."""


class ListMoved(Exception):
    """The list changed so much that a page no longer follows those read before."""


class Listed(NamedTuple):
    """What a list of messages had: the IDs of those that were saved, and the names of those without a usable ID."""

    uuids: set[str]
    unusable: list[str]


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
    counts: OffsetUnit | None = settings.SERVICING_OFFSET_COUNTS  # type: ignore[assignment]  # one of a closed list
    return counts


class Sync:
    """One run, with a row from the start and an audit entry at the end; ``report`` is called on progress."""

    def __init__(
        self,
        actor: Actor,
        *,
        report: Callable[[Run], object],
        since: date | None = None,
        until: date | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.client = client_for(actor)
        self.run = Run.objects.create(by=actor.name, since=since, until=until)
        self.actor = actor
        self.report = report
        self.sleep = sleep
        self.problems: list[IncompleteList] = []
        self.unusable: list[str] = []
        """The names of messages without a usable ID, of what was read so far."""
        self.number_listed = 0
        self.listed_before: set[str] = set()
        """The IDs of listed messages that were saved before this run."""

    def read_missing(self) -> Run:
        """Read new messages, newest first, until those that an unbroken run saved."""
        return self._record(self._read_new)

    def compare(self, *, before: datetime | None = None) -> Run:
        """Compare each message of the run's days, newest day first; only days not compared since ``before``."""
        return self._record(partial(self._compare, before or timezone.now()))

    def _record(self, work: Callable[[], object]) -> Run:
        run = self.run
        try:
            work()
            if self.problems:
                raise self.problems[0]
        except BaseException as error:
            run.failure = str(error)[:500] or "Stopped. The next run continues there."
            raise
        finally:
            run.day, run.ended_at = None, timezone.now()
            run.claimed = run.added + run.already_here
            run.unusable, run.unusable_names = len(self.unusable), "; ".join(self.unusable[:MAX_NAMED])
            run.save()
            counts = {"already_here": run.already_here, "gone": run.gone, "total": run.claimed}
            if run.unusable:
                counts["unusable"] = run.unusable
                logger.warning("%d messages have no usable ID: %s", run.unusable, run.unusable_names)
            append(self.actor, "messaging.sync", detail={"new": run.added, "failure": run.failure} | counts)
        return run

    # --- New messages ---

    def _read_new(self) -> None:
        unbroken = Run.objects.filter(is_unbroken=True).first()
        number = unbroken.pk if unbroken else 0
        mark = Run.objects.filter(pk__gt=number, is_unbroken=False, reached__isnull=False).first()
        if mark:
            with suppress(ListMoved):  # Then everything since the unbroken run is read from the front.
                self._read_until(unbroken, mark, resume=True)
                unbroken = mark
        self._read_until(unbroken, self.run)
        self._ask_totals()

    def _read_until(self, end: Run | None, stretch: Run, *, resume: bool = False) -> None:
        """Read on to a message of an unbroken run, or to the end of the list: from the front, or from a mark.

        ``stretch`` is the run with the newest messages of what is read. It is unbroken from then on.
        """
        known = set(end.newest) if end else set()

        def read(limit: int) -> None:
            is_resumed = resume and limit == first_limit
            if not is_resumed:
                stretch.newest, stretch.reached = [], None
            self.unusable.clear()
            for step, may_miss in self._pages(limit, reached=stretch.reached if is_resumed else None):
                is_end = self._take_new(step, limit, stretch, known)
                if is_end and may_miss:
                    raise IncompleteList("Messages were removed from the list while it was read.")
                if is_end:
                    return

        first_limit = stretch.reached["limit"] if resume and stretch.reached else settings.SERVICING_PAGE_SIZE
        for number in range(1, MAX_PASSES + 1):
            try:
                self._with_smaller_pages(read, first_limit)
                break
            except IncompleteList:
                if resume:
                    raise ListMoved from None
                if number == MAX_PASSES:
                    raise
        stretch.is_unbroken = True
        self._with_retries(partial(stretch.save, update_fields=["is_unbroken"]))

    def _take_new(self, step: Step, limit: int, stretch: Run, known: set[str]) -> bool:
        """Save a page with its place; return whether it has a message of an unbroken run."""
        uuids = [storage_uuid(message.uuid) for message in step.page]
        total, is_end = step.page.pagination.total, not known.isdisjoint(uuids)
        if not stretch.newest:
            stretch.newest = uuids
            if total is not None and not is_end:
                self.run.missing = max(0, total - Message.objects.at_service().count())
        first_total = stretch.reached["first_total"] if stretch.reached else total
        stretch.reached = {
            "limit": limit,
            "total": total,
            "first_total": first_total,
            **step.cursor._asdict(),
        }
        self._save(step, mark=stretch)
        return is_end

    def _ask_totals(self) -> None:
        """Ask how many messages the service has for the days of the new ones, unless they are many or it can't say."""
        new = Message.objects.of_days(None, None).filter(stored_at__gte=self.run.started_at).order_by("-day")
        days = (
            list(new.values_list("day", flat=True).distinct()[: MAX_DAYS_ASKED + 1]) if self.run.added else []
        )
        with suppress(FiltersIgnored, Rejected):
            for day in days if len(days) <= MAX_DAYS_ASKED else ():
                total = self._page(day, day, 1).pagination.total
                if total is not None:
                    values = {"claimed": total, "checked_at": timezone.now()}
                    self._with_retries(partial(Day.objects.update_or_create, values, day=day))

    # --- Comparisons ---

    def _compare(self, before: datetime) -> None:
        run = self.run
        try:
            self._require_filters()
            for first, last in _stretches(run.since, run.until):
                for day in [first] if first and first == last else self._find_days(first, last):
                    self._compare_day(day, before)
        except FiltersIgnored:
            run.filters_ignored = True
            self._compare_list()
        run.already_here = max(0, self.number_listed - run.added)

    def _require_filters(self) -> None:
        """Request days without messages; any message in the answer shows that the service ignores days."""
        day = service_today() + FAR_AHEAD
        with suppress(Rejected):  # A service that rejects the days doesn't ignore them.
            if len(self._page(day, day, 1)):
                raise FiltersIgnored

    def _find_days(self, first: date | None, last: date | None) -> list[date]:
        """Read days of which nothing is saved, and return those that have messages, newest first."""
        listed = self._list(first, last)
        found = _days_with_messages(first, last)
        begin = first or (found[-1] if found else None)
        if begin and listed and not listed.unusable:  # Their days are unknown.
            others = set(_days(begin, last or max(begin, service_today()))).difference(found)
            self._with_retries(partial(_mark_compared, dict.fromkeys(others, 0)))
        return found

    def _compare_day(self, day: date, before: datetime) -> None:
        if Day.objects.filter(day=day, compared_at__gte=before).exists():
            return
        self.run.day = day
        listed = self._list(day, day, saved=Message.objects.of_days(day, day))
        if listed:
            self.unusable += listed.unusable
            number = len(listed.uuids)
            self.number_listed += number
            row = Day(
                day=day, claimed=number + len(listed.unusable), listed=number, unusable=len(listed.unusable)
            )
            row.checked_at = row.compared_at = timezone.now()
            self._with_retries(partial(_write, [row]))
            self.report(self.run)

    def _compare_list(self) -> None:
        """Compare the front of the list that has the run's days, or all of it, of a service that ignores days."""
        first, last = self.run.since, self.run.until
        saved = Message.objects.at_service()
        saved = saved.filter(day__gte=first) if first else saved
        saved = saved.filter(day__lte=last) if last else saved
        listed = self._list(None, None, saved=saved, until=first and first - MAX_ZONE_ERROR)
        if listed:
            self.unusable += listed.unusable
            self.number_listed += len(listed.uuids)
            if not listed.unusable:  # Nobody knows their days.
                self._with_retries(partial(_mark_compared, _numbers_by_day(first, last)))

    def _list(
        self,
        first: date | None,
        last: date | None,
        *,
        saved: MessageQuerySet | None = None,
        until: date | None = None,
    ) -> Listed | None:
        """Read and save these days, or all until a day, and compare them with the saved ones; None if that failed.

        A message that is missing in two whole readings in a row is gone at the service.
        """
        absent: set[str] | None = None
        problem = IncompleteList("Messages came and went while they were read.")
        for _ in range(MAX_PASSES):
            try:
                read = partial(self._list_pages, first, last, until)
                listed = self._with_smaller_pages(read, settings.SERVICING_PAGE_SIZE)
            except IncompleteList as error:
                problem = error
                continue
            unlisted = set() if saved is None else set(saved.values_list("uuid", flat=True)) - listed.uuids
            gone = unlisted & (absent or set())
            self._mark_gone(gone)
            absent = unlisted - gone
            if not absent:
                return listed
        self.problems.append(problem)
        return None

    def _list_pages(self, first: date | None, last: date | None, until: date | None, limit: int) -> Listed:
        listed = Listed(set(), [])
        for step, may_miss in self._pages(limit, first, last):
            listed.uuids.update(storage_uuid(message.uuid) for message in step.new)
            listed.unusable.extend(describe_unusable(one.raw) for one in step.unusable)
            self._save(step, day=first if first == last else None)
            if until and step.new and not _has_day_from(until, step):
                if may_miss:
                    raise IncompleteList("Messages were removed from the list while it was read.")
                break
        return listed

    def _mark_gone(self, gone: set[str]) -> None:
        uuids, now = sorted(gone), timezone.now()
        for start in range(0, len(uuids), MARKED_AT_ONCE):
            messages = Message.objects.filter(uuid__in=uuids[start : start + MARKED_AT_ONCE])
            self._with_retries(partial(messages.update, gone_at=now))
        self.run.gone += len(gone)

    # --- Pages ---

    def _with_smaller_pages(self, read: Callable[[int], T], limit: int) -> T:
        """Read with pages of this size, or with smaller ones if one is refused or too large to be read."""
        for size in (limit, *(size for size in SMALLER_PAGES if size < limit)):
            try:
                return read(size)
            except (ProtocolError, Rejected) as error:
                if isinstance(error, IncompleteList | Forbidden):
                    raise
                problem = error
        raise problem

    def _pages(
        self,
        limit: int,
        first: date | None = None,
        last: date | None = None,
        *,
        reached: dict[str, Any] | None = None,
    ) -> Iterator[tuple[Step, bool]]:
        """Each page of these days, from the front or from a page read before, and whether one may have been missed."""
        counts = offset_counts()
        start = Cursor(reached["offset"], counts or reached["counts"]) if reached else None
        total: int | None = reached["total"] if reached else None
        number: int = (reached["first_total"] if reached else None) or 0
        may_miss = False
        for step in iterate_pages(lambda offset: self._page(first, last, limit, offset), counts, start=start):
            now = step.page.pagination.total
            may_miss = may_miss or (total is not None and now is not None and now < total)
            if reached and (may_miss or not _begins_with_saved(step.page)):
                raise ListMoved
            total, reached = now, None
            yield step, may_miss
        if start and Message.objects.at_service().count() < number:
            raise ListMoved

    def _page(
        self, first: date | None, last: date | None, limit: int, offset: int | None = None
    ) -> Page[RemoteMessage]:
        ask = partial(self.client.messages.list, start_date=first, end_date=last, limit=limit, offset=offset)
        page = self._with_retries(ask)
        if page.filters_ignored:
            raise FiltersIgnored
        return page

    def _save(self, step: Step, *, day: date | None = None, mark: Run | None = None) -> None:
        """Save a page together with how far the run is; with a mark, that is from where the next run may read on."""
        run = self.run
        if mark:
            self.unusable += [describe_unusable(one.raw) for one in step.unusable]
        number_before = run.added

        def save() -> None:
            run.added = number_before
            with transaction.atomic():
                added = save_messages(step.new, day=day)
                run.added += len(added)
                if mark:
                    self.listed_before.update(self._saved_before(step))
                    run.already_here = len(self.listed_before)
                    mark.save(update_fields=["newest", "reached"])
                run.missing = max(run.missing, run.added)
                run.unusable, run.unusable_names = len(self.unusable), "; ".join(self.unusable[:MAX_NAMED])
                run.save(update_fields=PROGRESS)

        self._with_retries(save)
        if mark and step.new:
            run.day = Message.objects.get(uuid=storage_uuid(step.new[-1].uuid)).day
        self.report(run)

    def _saved_before(self, step: Step) -> Iterator[str]:
        """The IDs of a page's messages that were saved before this run began."""
        uuids = [storage_uuid(message.uuid) for message in step.new]
        saved = Message.objects.filter(uuid__in=uuids, stored_at__lt=self.run.started_at)
        yield from saved.values_list("uuid", flat=True)

    def _with_retries(self, work: Callable[[], T]) -> T:
        """Retry with longer and longer pauses if the service fails or the database accepts no writes.

        Another run may hold rows for longer than a page waits for a lock.
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


def _stretches(since: date | None, until: date | None) -> Iterator[tuple[date | None, date | None]]:
    """Each saved day, and the days between them at once, newest first; None is an open end."""
    end = until
    for day in _days_with_messages(since, until):
        if end is None or day < end:
            yield day + ONE_DAY, end
        yield day, day
        end = day - ONE_DAY
    if since is None or end is None or since <= end:
        yield since, end


def _days_with_messages(first: date | None, last: date | None) -> list[date]:
    """The days of saved messages, newest first. One of an uncertain time may be of the day before or after, too."""
    saved = Message.objects.at_service().order_by().values_list("day", "is_placed").distinct()
    days = {
        day + number * ONE_DAY for day, is_placed in saved for number in ([0] if is_placed else (-1, 0, 1))
    }
    return sorted((day for day in days if (first or day) <= day <= (last or day)), reverse=True)


def _begins_with_saved(page: Page[RemoteMessage]) -> bool:
    """Whether a page begins with a saved message, so that it follows the pages read before."""
    uuids = [storage_uuid(message.uuid) for message in page]
    return bool(uuids) and Message.objects.filter(uuid=uuids[0]).exists()


def _has_day_from(day: date, step: Step) -> bool:
    uuids = [storage_uuid(message.uuid) for message in step.new]
    return Message.objects.filter(uuid__in=uuids, day__gte=day).exists()


def _numbers_by_day(first: date | None, last: date | None) -> dict[date, int]:
    """The number of saved messages of each day, also of days without any."""
    saved = Message.objects.of_days(first, last).order_by()
    numbers: dict[date, int] = dict(saved.values_list("day").annotate(Count("pk")))
    begin = first or min(numbers, default=service_today())
    return dict.fromkeys(_days(begin, last or max([*numbers, begin, service_today()])), 0) | numbers


def _mark_compared(numbers: Mapping[date, int]) -> None:
    """Mark days as compared: the service has exactly so many messages, and all are saved."""
    now = timezone.now()
    _write(
        [
            Day(day=day, claimed=number, listed=number, checked_at=now, compared_at=now)
            for day, number in sorted(numbers.items())
        ]
    )


def _days(first: date, last: date) -> list[date]:
    return [first + number * ONE_DAY for number in range((last - first).days + 1)]


def _write(days: Sequence[Day]) -> None:
    """Save days. If two runs write a day at the same time, the later one wins."""
    fields = [field.name for field in Day._meta.concrete_fields if not field.primary_key]
    Day.objects.bulk_create(days, update_conflicts=True, unique_fields=["day"], update_fields=fields)
