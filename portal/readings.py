"""Snapshot first, then live: what a part of a page shows, how old it is, and how it is read again.

A page draws from copies at once, and while it travels the service is asked for all that it shows, side by side; each
of its panels waits for its own part, and every answer becomes the new copy. A browser without JavaScript (no ``js``
cookie) gets the page after the server asked, with a deadline. Hides who asks when: nobody asks twice for the same
record within half a minute unless a person wants it.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.core.cache import cache
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.functional import cached_property

from portal.audit.models import Actor
from portal.clocks import SKEW, is_recent, match_recent
from portal.disk import hasty, release_connection, write_if_possible
from portal.gateway import StaffRequest, reading
from portal.registry import memory
from portal.registry.lists import COUNTED_AGAIN
from portal.registry.models import Kind, Record, Source
from servicing import Application, Client, Loan, Rejected, Repayment, ServicingError, Statement

FRESH = timedelta(seconds=30)
# Without JavaScript a page waits this long for a silent service.
DEADLINE = 0.8
# A panel waits this long at a time, then looks again: a silent service must not keep every thread of the desk.
HOLD = 2.0
# So often it looks whether somebody else, perhaps in another process, got the answer.
LOOK = 0.02
# However it ends, nobody waits longer for an answer that another request asked for.
PATIENCE = timedelta(seconds=40)
# Stands before the service's words where it did answer, but not with the record.
REFUSED = "Refused: "

READS: dict[str, Callable[[Client, str, str], object]] = {
    Kind.APPLICATION: lambda client, owner, uuid: client.applications.get_for_line(owner, uuid),
    Kind.LOAN: lambda client, owner, uuid: client.loans.get(owner, uuid),
    Kind.LINE: lambda client, owner, uuid: client.credit_lines.statement(owner, uuid),
    Kind.LOAN_REPAYMENTS: lambda client, owner, uuid: client.repayments.of_loan(owner, uuid),
    Kind.LINE_REPAYMENTS: lambda client, owner, uuid: client.repayments.of_line(owner, uuid),
}
REPAYMENTS_OF = {Kind.LOAN.value: Kind.LOAN_REPAYMENTS, Kind.LINE.value: Kind.LINE_REPAYMENTS}

_pool = ThreadPoolExecutor(max_workers=24, thread_name_prefix="readings")
_under_way: set[Future[None]] = set()


@dataclass
class Reading:
    """A record's copy as it stands now, and how the last attempt to read it went."""

    record: Record
    is_asked: bool = True
    """Whether the service is asked for it; else only the copy is shown, however old it is."""

    @cached_property
    def answer(self) -> Application | Loan | Statement | None:
        """The last known answer, decoded; ``None`` if there never was one, or if it is a list."""
        match self.record.kind:
            case Kind.APPLICATION:
                return memory.last(self.record, Application)
            case Kind.LOAN:
                return memory.last(self.record, Loan)
            case Kind.LINE:
                return memory.last(self.record, Statement)
        return None

    @cached_property
    def repayments(self) -> list[Repayment]:
        """The last known repayments; none if they were never told, or if it is no list."""
        return memory.last_repayments(self.record) if self.record.kind in REPAYMENTS_OF.values() else []

    @property
    def at(self) -> datetime | None:
        """When the copy was told."""
        return self.record.answer_at

    @property
    def source(self) -> str:
        """Who told it: the service, or a file."""
        return self.record.source

    @property
    def failing_since(self) -> datetime | None:
        """Since when the service does not give it."""
        return self.record.failing_since

    @property
    def failure(self) -> str:
        """Why, in words for staff."""
        return self.record.failure.removeprefix(REFUSED)

    @property
    def is_refused(self) -> bool:
        """Whether the service answered, and does not show it: no such record, or not this borrower's."""
        return self.record.failure.startswith(REFUSED)

    @property
    def is_due(self) -> bool:
        """Whether a panel that shows this copy should ask the service."""
        return (
            self.is_asked and bool(self.record.borrower_uuid) and not is_recent(self.record.asked_at, FRESH)
        )

    @property
    def is_pending(self) -> bool:
        """Whether somebody asked and the answer has not come yet."""
        record, asked = self.record, self.record.asked_at
        if not (asked and is_recent(asked, PATIENCE)):
            return False
        answered = max(filter(None, (record.checked_at, record.failed_at)), default=None)
        return answered is None or answered < asked


def account(record: Record) -> list[Record]:
    """A loan or line and the list of its repayments, as two things to read."""
    return [record, *lists_of([record])]


def lists_of(accounts: Sequence[Record]) -> list[Record]:
    """Of each loan or line the list of its repayments, as a thing to read of its own."""
    wanted = {(REPAYMENTS_OF[record.kind].value, record.uuid): record for record in accounts}
    found = _lists(wanted)
    missing = [
        Record(kind=kind, uuid=uuid, borrower_uuid=of.borrower_uuid, parent_uuid=uuid)
        for (kind, uuid), of in wanted.items()
        if (kind, uuid) not in found
    ]
    if missing:
        Record.objects.bulk_create(missing, ignore_conflicts=True)
        found = _lists(wanted)
    return [found[key] for key in wanted]


def copies_of(accounts: Sequence[Record]) -> tuple[list[Reading], list[Reading]]:
    """Of each loan or line its copy and that of its repayments, for which the service is not asked."""
    lists = _lists((REPAYMENTS_OF[one.kind].value, one.uuid) for one in accounts).values()
    return [Reading(one, is_asked=False) for one in accounts], [Reading(one, is_asked=False) for one in lists]


def _lists(keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Record]:
    stored = Record.objects.filter(kind__in=REPAYMENTS_OF.values(), uuid__in=[uuid for _, uuid in keys])
    return {(record.kind, record.uuid): record for record in stored}


def show(request: StaffRequest, panels: Mapping[str, Sequence[Record]]) -> dict[str, list[Reading]]:
    """What each panel of a page shows, by the panel's id.

    A panel that loads itself waits for its own records (``?refresh=1``: they are asked for in any case). A whole page
    shows copies, and without JavaScript what the service says within the deadline.
    """
    force, actor = "refresh" in request.GET, Actor.of(request)
    everything = {record.pk: record for records in panels.values() for record in records}
    is_scripted = request.COOKIES.get("js") == "1"
    if request.htmx:
        ask(actor, panels.get(request.htmx.target or "", ()), force=force)
    elif not is_scripted:
        ask(actor, list(everything.values()), force=force, deadline=DEADLINE)
    stored = Record.objects.in_bulk(everything)
    if is_scripted and not request.htmx:
        begin(actor, list(stored.values()), force=force)
    return {name: [Reading(stored[record.pk]) for record in records] for name, records in panels.items()}


def ask(actor: Actor, records: Sequence[Record], *, force: bool = False, deadline: float = HOLD) -> None:
    """Wait until each record that is due was read, by whomever; after the deadline the rest goes on by itself."""
    if connection.in_atomic_block:
        for record in claim(records, force=force):
            read(actor, record)
        return
    until = time.monotonic() + deadline
    begun = begin(actor, records, force=force)
    release_connection()
    wait(begun, timeout=deadline)
    if len(begun) < len(records):
        _wait_for_others(records, until)


def begin(actor: Actor, records: Sequence[Record], *, force: bool = False) -> set[Future[None]]:
    """Read each record that is due, side by side, and wait for none."""
    if connection.in_atomic_block:  # No other thread sees what this one wrote, nor gets to write itself.
        return set()
    # Each in the request's context: what it logs and traces belongs to that.
    begun = {
        _pool.submit(copy_context().run, _read_in_thread, actor, record)
        for record in claim(records, force=force)
    }
    _under_way.update(begun)
    for one in begun:
        one.add_done_callback(_under_way.discard)
    return begun


def _wait_for_others(records: Sequence[Record], until: float) -> None:
    asked = Record.objects.filter(pk__in=[record.pk for record in records])
    moments = asked.only("asked_at", "checked_at", "failed_at")
    while any(Reading(record).is_pending for record in moments.all()) and time.monotonic() < until:
        release_connection()
        time.sleep(LOOK)


def finish(timeout: float) -> None:
    """Wait for the reads that outlived the page that began them."""
    wait(set(_under_way), timeout=timeout)


def claim(records: Sequence[Record], *, force: bool = False) -> list[Record]:
    """Those that this caller asks for now: one wins, whoever else comes within half a minute waits."""
    if not records:
        return []
    now = timezone.now()
    free = Record.objects.filter(pk__in=[record.pk for record in records]).exclude(borrower_uuid="")
    if not force:
        free = free.filter(~match_recent("asked_at", FRESH))
    if not free.exists():  # Mostly somebody asked just now, and nothing needs to be locked.
        return []
    won = write_if_possible(lambda: _take(free, now)) or set()
    mine = [record for record in records if record.pk in won]
    for record in mine:
        record.asked_at = now
    return mine


def _take(free: QuerySet[Record], now: datetime) -> set[int]:
    with transaction.atomic():
        won = set(free.select_for_update().values_list("pk", flat=True))
        Record.objects.filter(pk__in=won).update(asked_at=now)
    return won


def read(actor: Actor, record: Record) -> bool:
    """Ask the service once; the answer becomes the copy, a failure is noted beside it."""
    try:
        READS[record.kind](reading(actor), record.borrower_uuid, record.uuid)
        return True
    except ServicingError as error:
        now = timezone.now()
        words = "; ".join(error.reasons) or error.message
        words = f"{REFUSED}{words}" if isinstance(error, Rejected) else words
        with hasty():
            Record.objects.filter(pk=record.pk).update(failed_at=now, failure=words[:500])
            Record.objects.filter(pk=record.pk, failing_since__isnull=True).update(failing_since=now)
        return False


def _read_in_thread(actor: Actor, record: Record) -> None:
    try:
        read(actor, record)
    finally:
        connection.close()


def readable(kinds: Sequence[str]) -> QuerySet[Record]:
    """The known records of these kinds that the service offers a read for, under their borrower.

    A loan application cannot be read again.
    """
    records = Record.objects.filter(kind__in=kinds, archived_at__isnull=True).exclude(borrower_uuid="")
    return records.exclude(kind=Kind.APPLICATION, product="LOAN")


def due_for_refresh(kinds: Sequence[str], *, older_than: datetime) -> list[Record]:
    """The accounts, and the lists of their repayments, whose copy is older; the oldest first."""
    lists = {kind: REPAYMENTS_OF[kind] for kind in kinds if kind in REPAYMENTS_OF}
    for kind, list_kind in lists.items():
        _make_lists(kind, list_kind)
    is_young = Q(checked_at__gte=older_than, checked_at__lte=timezone.now() + SKEW)
    due = readable([*kinds, *lists.values()]).filter(~is_young)
    # Of a large portfolio no answer may be in memory: what it takes to ask is enough.
    needed = due.only("kind", "uuid", "borrower_uuid")
    return list(needed.order_by(F("checked_at").asc(nulls_first=True), "id"))


def _make_lists(kind: str, list_kind: str) -> None:
    """Have a list of repayments for every account of a kind; where all have one this is a single question."""
    there = Record.objects.filter(kind=list_kind, uuid=OuterRef("uuid"))
    without = readable([kind]).filter(~Exists(there)).values_list("uuid", "borrower_uuid")
    missing = [
        Record(kind=list_kind, uuid=uuid, borrower_uuid=owner, parent_uuid=uuid) for uuid, owner in without
    ]
    Record.objects.bulk_create(missing, batch_size=500, ignore_conflicts=True)


def read_again(actor: Actor, record: Record) -> bool:
    """Read one record for the refresh, unless somebody else just asks; whether its copy is well."""
    return read(actor, record) if claim([record]) else True


class Coverage(NamedTuple):
    """How many of the known records the service confirmed within a day, and how many there are."""

    checked: int
    known: int

    def __str__(self) -> str:
        return f"{self.checked:,} of {self.known:,}"


def coverage(*kinds: Kind) -> Coverage:
    """How much of a list is young: of loans and lines, unless other kinds are named. As of a minute ago."""
    kinds = kinds or (Kind.LOAN, Kind.LINE)
    key = f"readings.coverage.{'+'.join(kinds)}"
    return cache.get_or_set(key, lambda: _coverage(kinds), COUNTED_AGAIN) or _coverage(kinds)


def _coverage(kinds: Sequence[Kind]) -> Coverage:
    records = readable(kinds)
    day_ago = timezone.now() - timedelta(days=1)
    return Coverage(records.filter(checked_at__gte=day_ago).count(), records.count())


@dataclass(frozen=True)
class Freshness:
    """What the foot of a panel tells about all it shows: its oldest copy, and since when anything fails."""

    readings: Sequence[Reading]

    @property
    def at(self) -> datetime | None:
        """The age of the oldest copy; ``None`` while anything was never read."""
        told = [one.at for one in self.readings if one.at]
        return min(told, default=None) if len(told) == len(self.readings) else None

    @property
    def from_file(self) -> bool:
        """Whether any copy came from a file."""
        return any(one.source == Source.FILE for one in self.readings)

    @property
    def failing_since(self) -> datetime | None:
        """Since when the service does not give something of it."""
        return min((one.failing_since for one in self.readings if one.failing_since), default=None)

    @property
    def failure(self) -> str:
        """Why, in words for staff."""
        return next((one.failure for one in self.readings if one.failing_since), "")

    @property
    def is_refused(self) -> bool:
        """Whether the service answered wherever it does not give something, and refuses it."""
        failing = [one for one in self.readings if one.failing_since]
        return bool(failing) and all(one.is_refused for one in failing)

    @property
    def is_due(self) -> bool:
        """Whether the panel should load itself."""
        return any(one.is_due for one in self.readings)

    @property
    def is_pending(self) -> bool:
        """Whether the panel should look again soon."""
        return any(one.is_pending for one in self.readings)
