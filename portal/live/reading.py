"""Saved copy first, then live: what is shown of a record, and when the service is called for it again.

A page shows saved copies and calls nobody. A panel whose copy is old loads itself: its view calls the service, and the
answer becomes the new copy. Hides who calls when: each record at most once in 30 seconds, unless a person refreshes it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple, cast

from django.conf import settings
from django.core.cache import cache
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.functional import cached_property

from portal.audit.models import Actor
from portal.audit.writes import call_time_limit_seconds
from portal.gateway import client_for
from portal.registry import store
from portal.registry.figures import copy_day, figures_of
from portal.registry.models import Answer, Kind, Record
from portal.registry.records import active_records
from portal.registry.sources import LISTS, READS, REPAYMENTS_OF
from portal.runtime.database import in_parallel, release_connection
from servicing import Application, Loan, Rejected, Repayment, ServicingError, Statement
from servicing.figures import Figures

FRESH_FOR = timedelta(seconds=30)
BEGIN_WITHIN_SECONDS = 5
POLL_INTERVAL_SECONDS = 0.1
MAX_LIVE_ACCOUNTS = 12
"""Of more accounts than this, a page doesn't load all by itself."""
COVERAGE_CACHE_SECONDS = 60
MAX_WAIT = timedelta(seconds=call_time_limit_seconds() + 10)
"""After this nobody waits for an answer any more, because the request that asked for it is gone."""
REJECTED_PREFIX = "Refused: "
"""Marks a stored failure as a rejection by the service, rather than no answer."""


@dataclass
class LiveCopy:
    """A record's saved copy, and the result of the last call for it."""

    record: Record

    @cached_property
    def answer(self) -> Application | Loan | Statement | None:
        """The last answer, decoded; ``None`` without one, or if it is a list."""
        match self.record.kind:
            case Kind.APPLICATION:
                return store.last_answer(self.record, Application)
            case Kind.LOAN:
                return store.last_answer(self.record, Loan)
            case Kind.LINE:
                return store.last_answer(self.record, Statement)
        return None

    @cached_property
    def figures(self) -> Figures:
        """The figures of an account today."""
        return figures_of(self.answer, self.copied_on)

    @cached_property
    def repayments(self) -> list[Repayment]:
        """The last known repayments; ``None`` if this isn't a list of repayments or was never answered."""
        return store.last_list(self.record, Repayment) if self.record.kind in REPAYMENTS_OF.values() else []

    @property
    def at(self) -> datetime | None:
        """The time of the copy: of the service's answer or of the imported file."""
        return self.record.answer_at

    @property
    def copied_on(self) -> date | None:
        """The business date of the copy."""
        return copy_day(self.record)

    @property
    def source(self) -> str:
        """Whether the service or a file said it; empty without an answer."""
        return self.record.said.source if self.record.said else ""

    @property
    def failing_since(self) -> datetime | None:
        """When the service first failed to provide it, if it still fails."""
        return self.record.said.failing_since if self.record.said else None

    @property
    def failure(self) -> str:
        """Why it fails, in words for staff."""
        return self.record.said.failure.removeprefix(REJECTED_PREFIX) if self.record.said else ""

    @property
    def is_refused(self) -> bool:
        """Whether the service rejected the call: the record doesn't exist, or belongs to another borrower."""
        return self.record.said is not None and self.record.said.failure.startswith(REJECTED_PREFIX)

    @property
    def can_be_asked(self) -> bool:
        """Whether the service may be called for it: it has a borrower, and no call is under way."""
        return bool(self.record.borrower_uuid) and not self.is_pending

    @property
    def is_due(self) -> bool:
        """Whether the service was not called for it in the last half minute."""
        said, last = self.record.said, None
        if said and said.asked_at:
            # From the end of a call: one that took half a minute would be due again at once.
            last = max(filter(None, (said.asked_at, self.record.checked_at, said.failed_at)))
        return self.can_be_asked and not (last and timezone.now() - last <= FRESH_FOR)

    @property
    def is_pending(self) -> bool:
        """Whether a call for it is under way."""
        said = self.record.said
        if not said or not said.asked_at or timezone.now() - said.asked_at > MAX_WAIT:
            return False
        answered = max(filter(None, (self.record.checked_at, said.failed_at)), default=None)
        return answered is None or answered < said.asked_at


def account_records(record: Record) -> list[Record]:
    """A loan or line, and the record of its list of repayments."""
    return [record, list_record(record, REPAYMENTS_OF[record.kind])]


def list_record(account: Record, kind: Kind) -> Record:
    """The record of one of an account's lists, created if missing."""
    return _list_records({(kind.value, account.uuid): account})[0]


def repayment_lists(accounts: Sequence[Record]) -> list[Record]:
    """The record of each account's list of repayments, created if missing."""
    return _list_records({(REPAYMENTS_OF[one.kind].value, one.uuid): one for one in accounts})


def _list_records(wanted: Mapping[tuple[str, str], Record]) -> list[Record]:
    found = _stored_lists(wanted)
    missing = {
        (kind, uuid): Record(kind=kind, uuid=uuid, borrower_uuid=of.borrower_uuid, parent_uuid=uuid)
        for (kind, uuid), of in wanted.items()
        if (kind, uuid) not in found
    }
    if missing:
        Record.objects.bulk_create(missing.values(), ignore_conflicts=True)
        found = _stored_lists(wanted)
    return [found[key] for key in wanted]


def stored_lists(accounts: Sequence[Record]) -> list[Record]:
    """The records of the accounts' lists of repayments, as far as there are any."""
    return list(_stored_lists((REPAYMENTS_OF[one.kind], one.uuid) for one in accounts).values())


def _stored_lists(keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Record]:
    wanted = set(keys)
    if not wanted:
        return {}
    kinds, uuids = {kind for kind, _ in wanted}, {uuid for _, uuid in wanted}
    stored = Record.objects.filter(kind__in=kinds, uuid__in=uuids).select_related("said")
    return {(record.kind, record.uuid): record for record in stored}


def read_if_old(actor: Actor, records: Sequence[Record], *, force: bool = False) -> None:
    """Call the service for each of these records whose copy is old, in parallel, and save what it answers.

    ``force`` also calls for copies that aren't old. A record that another request is reading is left to that one, and
    so that a request waits little longer than for one call, none begins after a few seconds.
    """
    started = time.monotonic()

    def read(record: Record) -> None:
        if time.monotonic() - started < BEGIN_WITHIN_SECONDS and _claim(record):
            read_live(actor, record)

    copies = map(LiveCopy, records)
    in_parallel(read, [copy.record for copy in copies if (copy.can_be_asked if force else copy.is_due)])


def read_and_wait(actor: Actor, records: Sequence[Record], *, force: bool = False) -> None:
    """As :func:`read_if_old`, but also wait while other requests are reading any of the records."""
    until = time.monotonic() + call_time_limit_seconds()
    read_if_old(actor, records, force=force)
    found = Record.objects.filter(pk__in=[record.pk for record in records])
    moments = found.select_related("said").only("checked_at", "said__asked_at", "said__failed_at")
    while time.monotonic() < until and any(LiveCopy(record).is_pending for record in moments.all()):
        release_connection()
        time.sleep(POLL_INTERVAL_SECONDS)


def _claim(record: Record) -> bool:
    """Whether the caller is to read the record: of several that saw the same time of the last call, one is."""
    if record.said is None:
        if _open_answer(record):
            return True
        if not LiveCopy(record).is_due:
            return False
    seen = Answer.objects.filter(pk=record.said_id, asked_at=cast(Answer, record.said).asked_at)
    return bool(seen.update(asked_at=timezone.now()))


def _open_answer(record: Record) -> bool:
    """Give the record its row of answers, asked for now; return whether it had none."""
    record.said, is_new = Answer.objects.get_or_create(
        {"asked_at": timezone.now()}, kind=record.kind, uuid=record.uuid
    )
    Record.objects.filter(pk=record.pk, said=None).update(said=record.said)
    return is_new


def read_live(actor: Actor, record: Record) -> bool:
    """Call the service once. An answer becomes the saved copy, a failure is saved beside it."""
    try:
        READS[record.kind](client_for(actor), record.borrower_uuid, record.uuid)
        return True
    except ServicingError as error:
        now = timezone.now()
        words = "; ".join(error.reasons) or error.message
        words = f"{REJECTED_PREFIX}{words}" if isinstance(error, Rejected) else words
        # In one statement: a panel that waits for the answer is drawn once the row has its time.
        Answer.objects.filter(kind=record.kind, uuid=record.uuid).update(
            failed_at=now, failure=words[:500], failing_since=Coalesce("failing_since", Value(now))
        )
        return False


def read_at_pace(
    actor: Actor, records: Iterable[Record], *, rate: float | None = None
) -> Iterator[tuple[Record, bool]]:
    """Read records one by one, at most this many a second; yield each with whether it was read.

    The usual pace is ``READS_PER_MINUTE``, of each worker.
    """
    pause = 1 / (rate or settings.READS_PER_MINUTE / 60)
    for record in records:
        started = time.monotonic()
        if record.said_id is None:
            _open_answer(record)
        Answer.objects.filter(pk=record.said_id).update(asked_at=timezone.now())
        yield record, read_live(actor, record)
        time.sleep(max(0.0, pause - (time.monotonic() - started)))


def refreshable(kinds: Sequence[str]) -> QuerySet[Record]:
    """Active records of these kinds that the service can return again, so no loan applications."""
    records = Record.objects.filter(kind__in=kinds, archived_at__isnull=True).exclude(borrower_uuid="")
    return records.exclude(kind=Kind.APPLICATION, category="LOAN")


def due_for_refresh(kinds: Sequence[str], *, older_than: datetime) -> list[Record]:
    """Accounts and their lists whose copy is older than this.

    First what fell due since its copy, then what is past due, then the oldest copies.
    """
    lists = {kind: row.parent for kind, row in LISTS.items() if row.parent and row.parent in kinds}
    for list_kind, parent in lists.items():
        _create_missing_lists(parent, list_kind)
    is_young = Q(checked_at__gte=older_than)
    due = refreshable([*kinds, *lists]).filter(~is_young)
    account = refreshable(kinds).filter(uuid=OuterRef("uuid"))
    is_due_since, is_past_due = (
        Exists(account.filter(one)) for one in (Q(due_since_on__isnull=False), Q(flagged=True))
    )
    rank = Case(When(is_due_since, then=0), When(is_past_due, then=1), default=2)
    # Only what a call needs, because a large portfolio doesn't fit into memory.
    needed = due.only("kind", "uuid", "borrower_uuid", "said")
    return list(needed.order_by(rank, F("checked_at").asc(nulls_first=True), "id"))


def _create_missing_lists(kind: str, list_kind: str) -> None:
    """Create the missing lists of a kind for all accounts."""
    there = Record.objects.filter(kind=list_kind, uuid=OuterRef("uuid"))
    without = refreshable([kind]).filter(~Exists(there)).values_list("uuid", "borrower_uuid")
    missing = [
        Record(kind=list_kind, uuid=uuid, borrower_uuid=owner, parent_uuid=uuid) for uuid, owner in without
    ]
    Record.objects.bulk_create(missing, batch_size=500, ignore_conflicts=True)


class Coverage(NamedTuple):
    """The share of records on file that were updated within a day."""

    checked: int
    known: int

    def __str__(self) -> str:
        return f"{self.checked:,} of {self.known:,}"


def coverage(*kinds: Kind) -> Coverage:
    """The coverage of loans and lines, or of the given kinds; cached for a minute."""
    kinds = kinds or (Kind.LOAN, Kind.LINE)
    key = f"readings.coverage.{'+'.join(kinds)}"
    return cache.get_or_set(key, lambda: _coverage(kinds), COVERAGE_CACHE_SECONDS) or _coverage(kinds)


def _coverage(kinds: Sequence[Kind]) -> Coverage:
    """Counted from indexes alone: so what has no borrower, which is little, is counted apart."""
    is_young = Q(checked_at__gte=timezone.now() - timedelta(days=1))
    checked = known = 0
    for kind in kinds:
        records = active_records(kind)
        if kind == Kind.APPLICATION:
            records = records.exclude(category="LOAN")
        nobodys = records.filter(borrower_uuid="")
        checked += records.filter(is_young).count() - nobodys.filter(is_young).count()
        known += records.count() - nobodys.count()
    return Coverage(checked, known)
