"""The states of an account from day to day, worked out from what was said about it.

The state of a day is what the latest answer received by its end says. A text that came before a day and again after it
was also the service's own on that day, so it counts as a copy of that day.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Final, NamedTuple

from django.conf import settings

from portal.portfolio.accounts import BookAccount, Text
from portal.portfolio.models import AccountState, Bucket
from portal.records.figures import stored_amount
from servicing import Loan
from servicing.figures import FOREVER, ONE_DAY, Aging, Figures, NotKnown, account_figures
from servicing.rules import known_spelling
from servicing.schedules import schedule_of

BUCKETS: Final = {
    Aging.CURRENT: Bucket.CURRENT,
    Aging.DAYS_1_29: Bucket.DAYS_1_29,
    Aging.DAYS_30_59: Bucket.DAYS_30_59,
    Aging.DAYS_60_89: Bucket.DAYS_60_89,
    Aging.DAYS_90: Bucket.DAYS_90,
    Aging.UNKNOWN: Bucket.NOT_KNOWN,
}
LATER_BUCKETS: Final = (30, 60, 90)
"""The days past due with which a loan's next bucket begins."""
FACTS: Final = (
    *("bucket", "product", "status", "owner_id", "past_due", "oldest_unpaid_on", "reported_days"),
    *("due_since_amount", "due_since_on", "principal", "due_next_on", "due_next_amount"),
)
"""What makes a state differ from the one before it."""


class Span(NamedTuple):
    """Days on which the same text was the latest."""

    first: date
    last: date
    text: Text | None
    """None before anything was said."""
    is_certain: bool = True


def spans_of(account: BookAccount, texts: Sequence[Text], row: AccountState | None) -> list[Span]:
    """The days of each text, in order; ``row`` is the account's last state so far.

    Nobody knows when a text of version 1.0 came first, so the days before it may have had either. A state that was
    written says that it had come.
    """
    spans: list[Span] = []
    if row is None:
        first = min([account.added_on, *(one.first_on or one.last_on for one in texts)])
        spans.append(Span(first, FOREVER, None))
    elif row.last_answer_on is None:
        spans.append(Span(row.from_day, FOREVER, None))
    for text in texts:
        known = text.first_on or (row.from_day if row and row.last_answer_on else None)
        start = known or text.last_on
        if known is None and spans and spans[-1].first < start:
            before = spans[-1].text.last_on + ONE_DAY if spans[-1].text else spans[-1].first
            _add(spans, Span(before, FOREVER, None, is_certain=False))
        _add(spans, Span(start, FOREVER, text))
    return spans


def _add(spans: list[Span], span: Span) -> None:
    """Let the span before end where this one begins."""
    while spans and spans[-1].first >= span.first:
        spans.pop()
    if spans:
        spans[-1] = spans[-1]._replace(last=span.first - ONE_DAY)
    spans.append(span)


def states_between(
    account: BookAccount, texts: Sequence[Text], row: AccountState | None, first: date, last: date
) -> Iterator[AccountState]:
    """The states of an account on these days, each with its first day, and with equal ones in a row as one."""
    owned_on = last
    if account.archived_on:
        last = min(last, account.archived_on - ONE_DAY)
    previous: AccountState | None = None
    for span in spans_of(account, texts, row):
        day, end = max(first, span.first), min(last, span.last)
        while day <= end:
            state = state_on(account, span, day)
            # Nobody knows since when an account has its owner: on earlier days it has that of the day before them.
            if day < owned_on and state.owner_id != (before := row.owner_id if row else None):
                state.owner_id = before
                state.good_through = min(state.good_through, owned_on - ONE_DAY)
            if previous and is_same(previous, state):
                previous.last_answer_on, previous.answer_at = state.last_answer_on, state.answer_at
                previous.good_through = state.good_through
            else:
                if previous:
                    previous.to_day = day - ONE_DAY
                    yield previous
                previous = state
            day = min(state.good_through, end) + ONE_DAY
    if previous:
        previous.to_day = last if account.archived_on == last + ONE_DAY else None
        yield previous


def is_same(one: AccountState, other: AccountState) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in FACTS)


def state_on(account: BookAccount, span: Span, day: date) -> AccountState:
    state = AccountState(kind=account.kind, uuid=account.uuid, from_day=day, owner_id=account.owner_id)
    text = span.text
    if text is None:
        state.bucket = Bucket.NOT_KNOWN if span.is_certain else Bucket.NOT_CERTAIN
        state.good_through = FOREVER
        return state
    answer, copied_on = text.read(), min(day, text.last_on)
    figures = account_figures(answer, day, copied_on=copied_on, closed=settings.CLOSED_STATUSES)
    since, following = figures.due_since, figures.due_next
    if isinstance(answer, Loan):
        state.product = known_spelling(answer.product)[:40]
        state.status = known_spelling(answer.status)[:40]
    state.bucket = bucket_of(figures, day)
    state.past_due = stored_amount(figures.past_due)
    state.oldest_unpaid_on, state.reported_days = figures.oldest_unpaid_due, figures.reported_days
    state.due_since_on = since.day if since else None
    state.due_since_amount = stored_amount(since.amount) if since else None
    state.principal = stored_amount(figures.principal)
    state.due_next_on = following.day if following else None
    state.due_next_amount = stored_amount(following.amount) if following else None
    state.first_answer_on, state.last_answer_on = copied_on, min(text.last_on, span.last)
    state.answer_at = text.at
    state.good_through = min(figures.good_through, _end_of_bucket(figures.oldest_unpaid_due, day))
    return state


def bucket_of(figures: Figures, day: date) -> Bucket:
    """The bucket of an account's figures. Without a schedule yet, nothing can be past due."""
    if figures.is_closed:
        return Bucket.CLOSED
    if figures.why_not_known == NotKnown.NO_SCHEDULE_YET:
        return Bucket.CURRENT
    found = BUCKETS[figures.aging(day)]
    return Bucket.DUE_SINCE if found == Bucket.CURRENT and figures.due_since else found


def _end_of_bucket(oldest_unpaid_on: date | None, day: date) -> date:
    """The last day before the days past due of a loan reach the next bucket."""
    if oldest_unpaid_on is None:
        return FOREVER
    following = (oldest_unpaid_on + timedelta(days=days) for days in LATER_BUCKETS)
    return next((one - ONE_DAY for one in following if one > day), FOREVER)


def contradicted_days(text: Text, row: AccountState, last: date) -> tuple[date, date] | None:
    """The days of a written state, up to ``last``, that a later answer contradicts; only a loan's can say.

    It says so with the days on which installments were paid, so each paid one must have a day.
    """
    answer = text.read()
    if not isinstance(answer, Loan) or row.last_answer_on is None or row.due_since_on:
        return None
    if any(one.is_paid and not one.paid_on for one in schedule_of(answer, last).rows):
        return None
    day = last
    while day >= row.from_day:
        figures = account_figures(answer, day, copied_on=day, closed=settings.CLOSED_STATUSES)
        if figures.is_closed or stored_amount(figures.past_due) == row.past_due:
            break
        day -= ONE_DAY
    return (day + ONE_DAY, last) if day < last else None
