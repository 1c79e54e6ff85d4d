"""Writes each day of the book once it is over: states of accounts first, in batches, then what the page shows of it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final

from django.db import transaction
from django.db.models import Count, Min

from portal.jobs.execution import Progress
from portal.portfolio import cash, forecast, owners, roll
from portal.portfolio.accounts import (
    BookAccount,
    Text,
    count_accounts,
    days_between,
    first_day,
    has_answers_before,
    read_accounts,
    texts_of,
    yesterday,
)
from portal.portfolio.models import AccountState, BookDay, Bucket, BucketSum, Correction, Run
from portal.portfolio.states import contradicted_days, is_same, states_between
from portal.portfolio.sums import add_sums, read_sum
from portal.records.models import Kind
from portal.ui import wording
from servicing.figures import ONE_DAY

BATCH_SIZE: Final = 1_000
TOUCHED: Final = ("last_answer_on", "answer_at", "good_through", "to_day")


def is_due() -> bool:
    """Whether a day is over that isn't written."""
    newest = BookDay.objects.order_by("-day").values_list("day", flat=True).first()
    return newest < yesterday() if newest else has_answers_before(yesterday() + ONE_DAY)


def write_days(progress: Progress | None = None) -> int:
    """Write all days that are over; return how many. A second attempt continues."""
    run = _open_run()
    if run is None:
        return 0
    days = [*days_between(run.first_day, run.last_day)]
    if progress:
        progress.resume(count_accounts(run.last_key) + len(days))
    while batch := read_accounts(run.last_key, BATCH_SIZE):
        with transaction.atomic():
            write_states(batch, run.first_day, run.last_day)
            run.last_key = batch[-1].pk
            run.save(update_fields=["last_key"])
            if progress:
                progress.step(len(batch))
    for day in days:
        with transaction.atomic():
            if not BookDay.objects.filter(day=day).exists():
                write_day(day, is_last=day == run.last_day)
            if progress:
                progress.step(words=wording.short_day(day))
    cash.save_returns(run.last_day)
    run.delete()
    return len(days)


def _open_run() -> Run | None:
    """The run to continue, or a new one up to yesterday."""
    if run := Run.objects.first():
        return run
    newest, last = BookDay.objects.order_by("-day").first(), yesterday()
    first = newest.day + ONE_DAY if newest else first_day()
    return Run.objects.create(first_day=first, last_day=last) if first and first <= last else None


# --- The states of accounts ---


def write_states(accounts: Sequence[BookAccount], first: date, last: date) -> None:
    """Write the states of these accounts on these days, after those before."""
    rows = {
        (one.kind, one.uuid): one
        for one in AccountState.objects.of_accounts(one.uuid for one in accounts).filter(to_day=None)
    }
    stale = [one for one in accounts if not _holds(rows.get((one.kind, one.uuid)), one, first, last)]
    texts = texts_of(stale, first)
    new: list[AccountState] = []
    extended: list[AccountState] = []
    ended: list[AccountState] = []
    corrections: list[Correction] = []
    for account in stale:
        row, said = rows.get((account.kind, account.uuid)), texts.get(account.answer_id or 0, [])
        states = [*states_between(account, said, row, first, last)]
        if row:
            corrections += _corrections(account, said, row, first, last)
            if states and is_same(row, states[0]):
                _extend(row, states.pop(0))
                extended.append(row)
            else:
                row.to_day = first - ONE_DAY
                ended.append(row)
        new += states
    AccountState.objects.bulk_create(new)
    AccountState.objects.bulk_update(extended, TOUCHED, batch_size=100)
    AccountState.objects.filter(pk__in=[one.pk for one in ended]).update(to_day=first - ONE_DAY)
    Correction.objects.bulk_create(corrections)
    _touch(accounts, rows, {(one.kind, one.uuid) for one in stale})
    states = [*rows.values(), *new]
    cash.save_dues(accounts, states, first, last)
    forecast.save_expected(accounts, states, last)


def _holds(row: AccountState | None, account: BookAccount, first: date, last: date) -> bool:
    """Whether an account's last state, or that it has none, still holds, without reading its answer."""
    if row is None:
        return account.archived_on is not None and account.archived_on <= first
    if account.archived_on and account.archived_on <= last:
        return False
    is_same_text = account.answer_at == row.answer_at
    is_same_copy = account.answered_on == row.last_answer_on
    # What fell due since the copy is past due, or paid, by a newer one.
    has_same_meaning = is_same_copy or (row.due_since_on is None and row.last_answer_on is not None)
    return is_same_text and has_same_meaning and row.good_through >= last and account.owner_id == row.owner_id


def _extend(row: AccountState, state: AccountState) -> None:
    for name in TOUCHED:
        setattr(row, name, getattr(state, name))


def _touch(
    accounts: Iterable[BookAccount], rows: Mapping[tuple[str, str], AccountState], done: set[tuple[str, str]]
) -> None:
    """Note when the answers of unchanged accounts came last, in one statement for each day."""
    by_day: dict[date, list[int]] = defaultdict(list)
    for one in accounts:
        row = rows.get((one.kind, one.uuid))
        if (
            row
            and (one.kind, one.uuid) not in done
            and one.answered_on != row.last_answer_on
            and one.answered_on
        ):
            by_day[one.answered_on].append(row.pk)
    for day, keys in by_day.items():
        AccountState.objects.filter(pk__in=keys).update(last_answer_on=day)


def _corrections(
    account: BookAccount, texts: Sequence[Text], row: AccountState, first: date, last: date
) -> Iterable[Correction]:
    """The written days that the first new answer contradicts."""
    for text in texts:
        seen_on = text.first_on
        if text.at != row.answer_at and seen_on and first <= seen_on <= last:
            if days := contradicted_days(text, row, first - ONE_DAY):
                key = {"kind": account.kind, "uuid": account.uuid}
                yield Correction(**key, first_day=days[0], last_day=days[1], seen_on=seen_on)
            return


# --- The sums of a day ---


def write_day(day: date, *, is_last: bool) -> None:
    """Add up a day whose states are written. What is expected, and who works on what, only the last day knows."""
    states = AccountState.objects.on(day)
    groups = states.order_by().values("kind", "bucket")
    sums = [
        BucketSum(
            day=day,
            kind=one["kind"],
            bucket=one["bucket"],
            number=one["number"],
            principal=read_sum(one, "principal"),
            principal_known=one["principal_known"],
            past_due=read_sum(one, "past_due"),
            past_due_known=one["past_due_known"],
            due_since=read_sum(one, "due_since_amount"),
        )
        for one in add_sums(groups, "principal", "past_due", "due_since_amount").annotate(number=Count("pk"))
    ]
    BucketSum.objects.bulk_create(sums)
    not_certain = sum(one.number for one in sums if one.bucket == Bucket.NOT_CERTAIN)
    answered = states.exclude(bucket__in=[Bucket.CLOSED, Bucket.NOT_CERTAIN]).filter(
        last_answer_on__isnull=False
    )
    oldest = answered.aggregate(Min("last_answer_on"))
    written = BookDay.objects.create(
        day=day,
        not_certain=not_certain,
        oldest_answer_on=min(filter(None, [*oldest.values(), day])),
        has_lines=answered.filter(kind=Kind.LINE).exists() or not states.filter(kind=Kind.LINE).exists(),
        roll_since=None if not_certain else roll.first_day_of(day),
    )
    if written.roll_since:
        roll.write(day, written.roll_since)
    if is_last and not not_certain:
        forecast.write(day)
        owners.write(day)
