"""Saved copy first, then live: what is shown of a record, and when the service is called for it again.

A page shows saved copies and calls nobody. A panel whose copy is old loads itself: its view calls the service, and the
answer becomes the new copy. Hides who calls when: each record at most once in 30 seconds, unless a person refreshes it.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple, cast

from django.conf import settings
from django.core.cache import cache
from django.db.models import Count, Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.functional import cached_property

import servicing
from portal.audit.models import Actor
from portal.audit.writes import call_time_limit_seconds
from portal.core.database import in_parallel, release_connection
from portal.gateway.client import client_for
from portal.records import store
from portal.records.figures import ACCOUNTS, copy_day, figures_of, is_account
from portal.records.models import Account, Answer, Application, Kind
from portal.records.rows import (
    active_records,
    answers_by_key,
    records_by_key,
    records_of,
    with_answers,
)
from portal.records.sources import LISTS, LISTS_OF, MODELS, READS, REPAYMENTS_OF
from servicing import Loan, Rejected, Repayment, ServicingError, Statement
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


class LiveCopy:
    """The saved copy of an account, of an application or of an account's list, and the result of the last call."""

    def __init__(self, record: Account | Application, saved: Answer | None = None) -> None:
        """``saved`` is the answer of the record's list. Without it, the copy is the record's own."""
        self.record: Any = record
        self.saved = saved or record.answer or Answer(kind=record.kind, uuid=record.uuid)
        """What is shown; a row that isn't saved if nobody ever asked for it."""

    @property
    def kind(self) -> str:
        """The kind of the record, or of its list."""
        return self.saved.kind

    @cached_property
    def answer(self) -> servicing.Application | Loan | Statement | None:
        """The last answer, decoded; ``None`` without one, or if it is a list."""
        if self.kind in LISTS:
            return None
        return cast(
            servicing.Application | Loan | Statement | None,
            store.last_answer(self.record, MODELS[self.kind]),
        )

    @cached_property
    def figures(self) -> Figures:
        return figures_of(self.answer, self.copied_on)

    @cached_property
    def repayments(self) -> list[Repayment]:
        """The last known repayments; none if this isn't a list of repayments or was never answered."""
        return self.items if self.kind in REPAYMENTS_OF.values() else []

    @cached_property
    def items(self) -> list[Any]:
        """The last known items of a list, or its one object; none if this isn't one or was never answered."""
        return store.last_list(self.saved, MODELS[self.kind]) if self.kind in LISTS else []

    @property
    def has_been_asked(self) -> bool:
        return self.saved.pk is not None

    @property
    def at(self) -> datetime | None:
        """The time of the copy: of the service's answer or of the imported file."""
        return self.saved.last_at

    @property
    def copied_on(self) -> date | None:
        """The business date of the record's own copy, which its figures depend on."""
        return copy_day(self.record)

    @property
    def why_null(self) -> str:
        return self.saved.why_null(can_be_read=self.record.can_be_read)

    @property
    def source(self) -> str:
        """Whether the service or a file said it; empty without an answer."""
        return self.saved.source

    @property
    def failing_since(self) -> datetime | None:
        """When the service first failed to provide it, if it still fails."""
        return self.saved.failing_since

    @property
    def failure(self) -> str:
        """Why it fails, in words for staff."""
        return self.saved.failure.removeprefix(REJECTED_PREFIX)

    @property
    def is_refused(self) -> bool:
        """Whether the service rejected the call: the record doesn't exist, or belongs to another borrower."""
        return self.saved.failure.startswith(REJECTED_PREFIX)

    @property
    def can_be_asked(self) -> bool:
        """Whether the service may be called for it: it has a borrower, and no call is under way."""
        return bool(self.record.borrower_uuid) and not self.is_pending

    @property
    def is_due(self) -> bool:
        """Whether the service was not called for it in the last half minute."""
        last = None
        if self.saved.asked_at:
            # From the end of a call: one that took half a minute would be due again at once.
            last = max(filter(None, (self.saved.asked_at, self.saved.last_at, self.saved.failed_at)))
        return self.can_be_asked and not (last and timezone.now() - last <= FRESH_FOR)

    @property
    def is_pending(self) -> bool:
        """Whether a call for it is under way."""
        return _is_pending(self.saved)


def _is_pending(said: Answer) -> bool:
    if not said.asked_at or timezone.now() - said.asked_at > MAX_WAIT:
        return False
    answered = max(filter(None, (said.last_at, said.failed_at)), default=None)
    return answered is None or answered < said.asked_at


def account_copies(*accounts: Account) -> list[LiveCopy]:
    """The copies of loans and lines, then those of their lists, repayments first."""
    lists = list_copies([(account, kind) for account in accounts for kind in LISTS_OF[account.kind]])
    return [*map(LiveCopy, accounts), *lists]


def repayment_copies(accounts: Iterable[Account]) -> list[LiveCopy]:
    return list_copies([(account, REPAYMENTS_OF[account.kind]) for account in accounts])


def list_copies(wanted: Sequence[tuple[Account, str]]) -> list[LiveCopy]:
    found = {(one.kind, one.uuid): one for one in answers_by_key((kind, of.uuid) for of, kind in wanted)}
    return [
        LiveCopy(account, found.get((kind, account.uuid)) or Answer(kind=kind, uuid=account.uuid))
        for account, kind in wanted
    ]


def saved_again(copies: Sequence[LiveCopy]) -> list[LiveCopy]:
    """The same copies as they are saved now."""
    found = records_by_key((one.record.kind, one.record.uuid) for one in copies)
    stored = {(one.kind, one.uuid): one for one in chain.from_iterable(map(with_answers, found))}
    records = [stored.get((one.record.kind, one.record.uuid), one.record) for one in copies]
    pairs = list(zip(copies, records, strict=True))
    lists = iter(list_copies([(record, copy.kind) for copy, record in pairs if copy.kind in LISTS]))
    return [next(lists) if copy.kind in LISTS else LiveCopy(record) for copy, record in pairs]


def read_if_old(actor: Actor, copies: Sequence[LiveCopy], *, force: bool = False) -> None:
    """Call the service for each of these copies that is old, in parallel, and save what it answers.

    ``force`` also calls for copies that aren't old. One that another request is reading is left to that one, and so
    that a request waits little longer than for one call, none begins after a few seconds.
    """
    started = time.monotonic()

    def read(copy: LiveCopy) -> None:
        if time.monotonic() - started < BEGIN_WITHIN_SECONDS and _claim(copy):
            read_live(actor, copy)

    in_parallel(read, [copy for copy in copies if (copy.can_be_asked if force else copy.is_due)])


def read_and_wait(actor: Actor, copies: Sequence[LiveCopy], *, force: bool = False) -> None:
    """As :func:`read_if_old`, but also wait while other requests are reading any of the copies."""
    until = time.monotonic() + call_time_limit_seconds()
    read_if_old(actor, copies, force=force)
    moments = answers_by_key([(copy.kind, copy.saved.uuid) for copy in copies]).defer("body")
    while time.monotonic() < until and any(map(_is_pending, moments.all())):
        release_connection()
        time.sleep(POLL_INTERVAL_SECONDS)


def _claim(copy: LiveCopy) -> bool:
    """Whether the caller is to read it: of several that saw the same time of the last call, one is."""
    if not copy.has_been_asked:
        if _open_answer(copy):
            return True
        if not copy.is_due:
            return False
    seen = Answer.objects.filter(pk=copy.saved.pk, asked_at=copy.saved.asked_at)
    return bool(seen.update(asked_at=timezone.now()))


def _open_answer(copy: LiveCopy) -> bool:
    """Create the row of its answers, asked for now; return whether it had none."""
    copy.saved, is_new = Answer.objects.get_or_create(
        {"asked_at": timezone.now()}, kind=copy.kind, uuid=copy.saved.uuid
    )
    if copy.kind not in LISTS:
        records_of(copy.kind).filter(pk=copy.record.pk, answer=None).update(answer=copy.saved)
    return is_new


def read_live(actor: Actor, copy: LiveCopy) -> bool:
    """Call the service once. An answer becomes the saved copy, a failure is saved beside it."""
    try:
        READS[copy.kind](client_for(actor), copy.record.borrower_uuid, copy.saved.uuid)
        return True
    except ServicingError as error:
        now = timezone.now()
        words = "; ".join(error.reasons) or error.message
        words = f"{REJECTED_PREFIX}{words}" if isinstance(error, Rejected) else words
        # In one statement: a panel that waits for the answer is drawn once the row has its time.
        Answer.objects.filter(kind=copy.kind, uuid=copy.saved.uuid).update(
            failed_at=now, failure=words[:500], failing_since=Coalesce("failing_since", Value(now))
        )
        return False


def read_at_pace(
    actor: Actor, copies: Iterable[LiveCopy], *, rate: float | None = None
) -> Iterator[tuple[LiveCopy, bool]]:
    """Read copies one by one, at most this many a second; yield each with whether it was read.

    The usual pace is ``READS_PER_MINUTE``, of each worker.
    """
    pause = 1 / (rate or settings.READS_PER_MINUTE / 60)
    for copy in copies:
        started = time.monotonic()
        if not copy.has_been_asked:
            _open_answer(copy)
        Answer.objects.filter(pk=copy.saved.pk).update(asked_at=timezone.now())
        yield copy, read_live(actor, copy)
        time.sleep(max(0.0, pause - (time.monotonic() - started)))


def refreshable(kind: str) -> QuerySet[Any]:
    """Active records of a kind that the service can return again, so no loan applications."""
    records = active_records(kind).exclude(borrower_uuid="")
    return records.exclude(product="LOAN") if kind == Kind.APPLICATION else records


def due_for_refresh(kinds: Sequence[str], *, older_than: datetime) -> list[LiveCopy]:
    """Copies of accounts and of their lists that are older than this.

    First what fell due since its copy, then what is past due, then the oldest copies.
    """
    # Only what a call needs, because a large portfolio doesn't fit into memory.
    columns = ("kind", "uuid", "borrower_uuid", "due_since_on", "is_past_due")
    times = ("kind", "uuid", "asked_at", "last_at", "failed_at")
    found: list[LiveCopy] = []
    for kind in kinds:
        own = with_answers(refreshable(kind)).exclude(checked_at__gte=older_than).order_by("id")
        needed = columns if kind in ACCOUNTS else ("uuid", "borrower_uuid", "product")
        found += map(LiveCopy, own.only(*needed, *(f"answer__{name}" for name in times)))
    for kind in (kind for kind, parent in LISTS.items() if parent in kinds):
        answers, is_young = Answer.objects.filter(kind=kind), Q(last_at__gte=older_than)
        old = {one.uuid: one for one in answers.exclude(is_young).only(*times)}
        accounts = refreshable(LISTS[kind]).exclude(uuid__in=answers.filter(is_young).values("uuid"))
        for account in accounts.order_by("id").only(*columns):
            found.append(LiveCopy(account, old.get(account.uuid) or Answer(kind=kind, uuid=account.uuid)))
    return sorted(found, key=_urgency)


def _urgency(copy: LiveCopy) -> tuple[int, bool, datetime]:
    """Orders what fell due since its copy first, then what is past due, each with the oldest copies first."""
    rank = 2
    if is_account(copy.record):
        rank = 0 if copy.record.due_since_on else 1 if copy.record.is_past_due else 2
    return rank, copy.at is not None, copy.at or timezone.now()


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
    since = timezone.now() - timedelta(days=1)
    checked = known = 0
    for kind in kinds:
        is_young = Q(checked_at__gte=since)
        if kind in LISTS:
            is_young = Q(uuid__in=Answer.objects.filter(kind=kind, last_at__gte=since).values("uuid"))
        records = refreshable(LISTS.get(kind, kind))
        found = records.aggregate(known=Count("pk"), checked=Count("pk", filter=is_young))
        checked, known = checked + found["checked"], known + found["known"]
    return Coverage(checked, known)
