"""What the book reads of accounts on file: what was said about each, and when."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import NamedTuple

from django.db.models import Min

from portal.collections.models import AccountOwner
from portal.core.business_date import business_date, business_date_at
from portal.records.figures import ACCOUNTS
from portal.records.models import Account, Answer, Kind, Snapshot
from servicing import Loan, Statement, codec


class BookAccount(NamedTuple):
    """A loan or a line on file."""

    pk: int
    kind: str
    uuid: str
    owner_id: int | None
    """The colleague who works on it."""
    added_on: date
    archived_on: date | None
    answer_id: int | None
    """What was said about it last; None if it was never read."""
    answer_at: datetime | None
    """When that text was received first; None also if it isn't known."""
    answered_on: date | None
    """When it was received last."""


class Text(NamedTuple):
    """One text of an account, and the days between which it was received."""

    kind: str
    first_on: date | None
    """None if it isn't known."""
    last_on: date
    at: datetime | None
    body: str

    def read(self) -> Loan | Statement:
        return codec.decode(Loan, self.body) if self.kind == Kind.LOAN else codec.decode(Statement, self.body)


def has_answers_before(day: date) -> bool:
    return Account.objects.filter(kind__in=ACCOUNTS, answer_day__lt=day).exists()


def count_accounts(after: int) -> int:
    return Account.objects.filter(kind__in=ACCOUNTS, pk__gt=after).count()


def first_day() -> date | None:
    """The first day of which an answer about an account is still on file."""
    found: list[date] = []
    days = [Min("first_on"), Min("last_on"), Min("first_at"), Min("last_at")]
    for answers in (
        Answer.objects.filter(kind__in=ACCOUNTS),
        Snapshot.objects.filter(answer__kind__in=ACCOUNTS),
    ):
        for one in answers.aggregate(*days).values():
            found += [business_date_at(one) if isinstance(one, datetime) else one] if one else []
    return min(found, default=None)


def read_accounts(after: int, limit: int) -> list[BookAccount]:
    """The accounts that follow a key, archived or not."""
    names = ("pk", "kind", "uuid", "created_at", "archived_at")
    answer = ("answer", "answer__first_at", "answer__last_at", "answer__last_on")
    found = Account.objects.filter(kind__in=ACCOUNTS, pk__gt=after).order_by("pk")
    rows = list(found.values_list(*names, *answer)[:limit])
    owned = AccountOwner.objects.filter(account_uuid__in=[uuid for _, _, uuid, *_ in rows])
    owners = dict(owned.values_list("account_uuid", "owner_id"))
    return [
        BookAccount(
            pk,
            kind,
            uuid,
            owners.get(uuid),
            business_date_at(created_at),
            archived_at and business_date_at(archived_at),
            answer_id if last_at else None,
            first_at,
            last_on or (business_date_at(last_at) if last_at else None),
        )
        for pk, kind, uuid, created_at, archived_at, answer_id, first_at, last_at, last_on in rows
    ]


def texts_of(accounts: Sequence[BookAccount], since: date) -> dict[int, list[Text]]:
    """The texts of these accounts by answer, oldest first; earlier ones only where the last came after a day."""
    columns = ("first_on", "last_on", "first_at", "last_at", "body")
    keys = [one.answer_id for one in accounts if one.answer_id]
    found: dict[int, list[Text]] = defaultdict(list)
    newest = {
        answer: _text(kind, *values)
        for answer, kind, *values in Answer.objects.filter(pk__in=keys).values_list("pk", "kind", *columns)
    }
    later = [key for key, text in newest.items() if not text.first_on or text.first_on > since]
    earlier = Snapshot.objects.filter(answer__in=later).order_by("last_at", "pk")
    for answer, kind, *values in earlier.values_list("answer", "answer__kind", *columns):
        found[answer].append(_text(kind, *values))
    for answer, text in newest.items():
        found[answer].append(text)
    return found


def _text(
    kind: str,
    first_on: date | None,
    last_on: date | None,
    first_at: datetime | None,
    last_at: datetime,
    body: str,
) -> Text:
    first = first_on or (business_date_at(first_at) if first_at else None)
    return Text(kind, first, last_on or business_date_at(last_at), first_at, body)


def yesterday() -> date:
    return date.fromordinal(business_date().toordinal() - 1)


def days_between(first: date, last: date) -> Iterable[date]:
    return map(date.fromordinal, range(first.toordinal(), last.toordinal() + 1))
