"""Accounts that need attention: payments that were returned, are past due, or are due soon."""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal

from django.db.models import (
    Case,
    Count,
    DateField,
    DecimalField,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce
from django.urls import reverse

from portal.accounts.models import User
from portal.core.business_date import business_date
from portal.records.figures import ACCOUNTS, NOT_KNOWN_RANK, copy_day, days_of, due_since_of, old_copy_day
from portal.records.models import LISTED, WITHOUT_FIGURE, Account, Answer, Kind, Repayment
from portal.records.repayments import RETURNED
from portal.records.rows import active_records
from portal.repayments.follows import WhatFollows, what_follows
from portal.repayments.returns import Returned, is_dropped_from_list, returned_since
from portal.repayments.table import SCHEDULED
from portal.ui import wording
from portal.ui.attention import Amount, Item, Items, Snoozed
from portal.ui.templatetags.ui import NOT_KNOWN
from servicing.business_days import first_business_day
from servicing.figures import Aging, aging
from servicing.schedules import HALF_CENT

RETURNED_DAYS = 7
DUE_DAYS = 5
UNSCHEDULED_DAYS = 10
NOUNS = {Kind.LOAN: "loan", Kind.LINE: "line"}
AREAS = {Kind.LOAN: "loans", Kind.LINE: "credit_lines"}
LATE = {Kind.LOAN: "delinquent", Kind.LINE: "past_due"}
"""Each list's filter for past due accounts."""
AGING_STATES = {Aging.DAYS_1_29: "warn", Aging.UNKNOWN: "neutral"}
"""The look of aging buckets other than "bad"."""


def returned_payments(snoozed: Snoozed, _user: User) -> Items:
    """Payments reported as returned in the last days."""
    news, _ = returned_since(business_date() - timedelta(days=RETURNED_DAYS))
    hidden = snoozed.ids("repayment:")
    visible = [(one, day) for one, day in news if one.uuid not in hidden]
    url = f"{reverse('repayments:index')}?error=yes"
    return Items(
        visible,
        lambda row: _returned_item(*row),
        prepare=_with_accounts,
        group="returned",
        name="returned payments",
        url=url,
        add_up=lambda rows: _add_up(one.amount for one, _ in rows),
    )


def _with_accounts(news: list[tuple[Returned, date]]) -> list[tuple[Repayment, date, WhatFollows]]:
    """The payments with their loans or lines, and what follows each."""
    found = Repayment.objects.select_related("account").in_bulk([one.pk for one, _ in news])
    follows = what_follows(list(found.values()))
    return [(found[one.pk], day, follows[one.pk]) for one, day in news]


def _amounts(rows: QuerySet[Account] | Sequence[Account], name: str) -> Iterable[Decimal | None]:
    """An amount of each account; of those in the database, only these are read."""
    if isinstance(rows, QuerySet):
        return rows.order_by().values_list(name, flat=True)
    return [getattr(one, name) for one in rows]


def _add_up(amounts: Iterable[Decimal | None]) -> Amount:
    amounts = list(amounts)
    return Amount(sum((one for one in amounts if one is not None), Decimal(0)), amounts.count(None))


def _returned_item(repayment: Repayment, day: date, follows: WhatFollows) -> Item:
    amount, account = wording.money(repayment.amount), repayment.account
    notes = [f"{NOUNS[Kind(account.kind)]} {account.uuid[:8]}" if account else "", follows.sentence]
    return Item(
        key=f"repayment:{repayment.uuid}",
        icon="arrow-back-up",
        amount=amount or NOT_KNOWN,
        fact=f"{amount} payment returned" if amount else "Payment of an unknown amount returned",
        rest="after posting" if repayment.status == RETURNED else "",
        badge=("warn", "Scheduled again") if follows.is_conflict else None,
        meta=". ".join(filter(None, notes)),
        borrower_uuid=repayment.borrower_uuid,
        when=day,
        url=repayment.get_absolute_url(),
        verb="Open payment",
    )


def past_due_loans(snoozed: Snoozed, _user: User) -> Items:
    return _past_due_accounts(Kind.LOAN, snoozed)


def past_due_lines(snoozed: Snoozed, _user: User) -> Items:
    return _past_due_accounts(Kind.LINE, snoozed)


def _past_due_accounts(kind: Kind, snoozed: Snoozed) -> Items:
    """Past due accounts of a kind, the largest amounts first and unknown ones last."""
    noun = NOUNS[kind]
    late = active_records(kind).filter(past_due_rank__isnull=False).exclude(uuid__in=snoozed.ids(f"{noun}:"))
    url = f"{reverse(f'{AREAS[kind]}:index')}?{LATE[kind]}=yes&sort=past_due"
    return Items(
        late.order_by("-past_due_rank", "-id"),
        _past_due_item,
        group="past_due",
        name=f"{noun}s past due",
        url=url,
        add_up=_add_up_past_due,
    )


def _add_up_past_due(late: QuerySet[Account] | Sequence[Account]) -> Amount:
    """Add up the accounts read so far, or all of them along the index of their order."""
    if isinstance(late, Sequence):
        return _add_up(one.past_due for one in late)
    is_known = Q(past_due_rank__gt=NOT_KNOWN_RANK)
    found = late.order_by().aggregate(
        known=Sum("past_due_rank", filter=is_known), unknown=Count("pk", filter=~is_known)
    )
    return Amount(found["known"] or Decimal(0), found["unknown"])


def _past_due_item(record: Account) -> Item:
    days, noun = days_of(record), NOUNS[Kind(record.kind)]
    words = f"{days} day{'' if days == 1 else 's'}" if days else "days not known"
    amount = "an unknown amount" if record.past_due is None else wording.money(record.past_due)
    copied_on = old_copy_day(record)
    notes = [
        f"{noun} {record.uuid[:8]}",
        "partial payments not deducted" if record.is_partly_paid else "",
        f"as of {wording.day(copied_on)}" if copied_on else "",
    ]
    return Item(
        key=f"{noun}:{record.uuid}",
        fact=f"{(amount or '').capitalize()} past due,",
        rest=words,
        amount=wording.money(record.past_due) or NOT_KNOWN,
        badge=(AGING_STATES.get(aging(record.past_due, days), "bad"), words.capitalize()),
        meta=", ".join(filter(None, notes)),
        borrower_uuid=record.borrower_uuid,
        when=copy_day(record),
        rank=record.past_due_rank or Decimal(0),
        url=record.get_absolute_url(),
        verb=f"Open {noun}",
    )


def due_since_copy(snoozed: Snoozed, _user: User) -> Items:
    """Accounts with payments that fell due since their copy, so that only an update says whether they were paid."""
    accounts = Account.objects.filter(due_since_on__isnull=False, archived_at__isnull=True)
    for uuid, _, day in (key.partition(":") for key in snoozed.ids("since:")):
        accounts = accounts.exclude(uuid=uuid, due_since_on=day)
    return Items(
        accounts.order_by("due_since_on", "id"),
        _due_since_item,
        group="due_since",
        name="accounts due since the copy",
        url=f"{reverse('collections:index')}?due_since=yes",
        add_up=lambda rows: _add_up(_amounts(rows, "due_since_amount")),
    )


def _due_since_item(record: Account) -> Item:
    noun, since = NOUNS[Kind(record.kind)], due_since_of(record)
    return Item(
        key=f"since:{record.uuid}:{record.due_since_on}",
        state="neutral",
        icon="calendar-event",
        fact=f"{wording.money(record.due_since_amount) or 'Payment'} due since the copy,",
        rest=wording.due_days(since, copy_day(record)) if since else "",
        amount=wording.money(record.due_since_amount) or NOT_KNOWN,
        meta=f"{noun} {record.uuid[:8]}",
        borrower_uuid=record.borrower_uuid,
        when=record.due_since_on,
        rank=record.due_since_amount or Decimal(0),
        url=record.get_absolute_url(),
        verb=f"Open {noun}",
    )


def not_known_accounts() -> QuerySet[Account]:
    """The open accounts whose last answer has no past due amount, and nothing else that says they are late.

    Those that are delinquent or report days are past due by an unknown amount instead.
    """
    return Account.objects.filter(LISTED, WITHOUT_FIGURE, is_past_due=False, kind__in=ACCOUNTS)


def accounts_not_known(snoozed: Snoozed, _user: User) -> Items:
    """Accounts that may be past due: their last answer doesn't say."""
    hidden = snoozed.ids("not-known:")
    return Items(
        not_known_accounts().exclude(uuid__in=hidden).order_by("id"),
        _not_known_item,
        group="not_known",
        name="accounts past due not known",
        url=f"{reverse('collections:index')}?not_known=yes",
    )


def _not_known_item(record: Account) -> Item:
    noun = NOUNS[Kind(record.kind)]
    return Item(
        key=f"not-known:{record.uuid}",
        state="neutral",
        icon="alert-circle",
        fact="Past due amount not reported",
        amount=NOT_KNOWN,
        meta=f"{noun} {record.uuid[:8]}",
        borrower_uuid=record.borrower_uuid,
        when=record.answer_at,
        url=record.get_absolute_url(),
        verb=f"Open {noun}",
    )


def unscheduled_payments(snoozed: Snoozed, _user: User) -> Items:
    """Loans with autopay and a payment due soon for which less is scheduled than is due."""
    accounts = loans_without_scheduled_payment()
    for uuid, _, day in (key.partition(":") for key in snoozed.ids("unscheduled:")):
        accounts = accounts.exclude(uuid=uuid, next_due_on=day)
    return Items(
        accounts.order_by("next_due_on", "id"),
        _unscheduled_item,
        group="unscheduled",
        name="loans with no payment scheduled",
        url=f"{reverse('loans:index')}?scheduled=no",
        add_up=lambda rows: _add_up(_amounts(rows, "due_amount")),
    )


def loans_without_scheduled_payment() -> QuerySet[Account]:
    """The open loans with autopay and an amount due within some days, of which less is scheduled.

    A payment counts through the first business day from the due date on. Loans whose repayments were never read are
    left out.
    """
    today = business_date()
    days = [today + timedelta(days=number) for number in range(UNSCHEDULED_DAYS + 1)]
    pay_by = Case(*(When(next_due_on=day, then=Value(first_business_day(day))) for day in days))
    lists = Answer.objects.filter(kind=Kind.LOAN_REPAYMENTS, uuid=OuterRef("uuid"), last_at__isnull=False)
    scheduled = (
        Repayment.objects.filter(
            ~is_dropped_from_list(),
            account=OuterRef("pk"),
            status=SCHEDULED,
            effective_on__gte=today,
            effective_on__lte=OuterRef("pay_by"),
        )
        .values("account")
        .annotate(sum=Sum("amount"))
        .values("sum")
    )
    return (
        Account.objects.filter(LISTED, kind=Kind.LOAN)
        .filter(Exists(lists), is_closed=False, has_autopay=True, next_due_on__in=days)
        .annotate(
            pay_by=Cast(pay_by, DateField()),
            scheduled=Coalesce(Subquery(scheduled), Decimal(0), output_field=DecimalField()),
        )
        .filter(due_amount__gt=F("scheduled") + HALF_CENT)  # SQLite's sums are inexact.
    )


def _unscheduled_item(record: Account) -> Item:
    amount = wording.money(record.due_amount)
    return Item(
        key=f"unscheduled:{record.uuid}:{record.next_due_on}",
        state="warn",
        icon="calendar-event",
        fact=f"{amount} due {wording.day(record.next_due_on)},",
        rest="autopay is on, but less is scheduled",
        amount=amount or NOT_KNOWN,
        meta=f"loan {record.uuid[:8]}",
        borrower_uuid=record.borrower_uuid,
        when=record.next_due_on,
        rank=record.due_amount or Decimal(0),
        url=record.get_absolute_url(),
        verb="Open loan",
    )


def loans_due(snoozed: Snoozed, _user: User) -> Items:
    return _due_payments(Kind.LOAN, snoozed)


def lines_due(snoozed: Snoozed, _user: User) -> Items:
    """The next payments of lines of credit."""
    return _due_payments(Kind.LINE, snoozed)


def _due_payments(kind: Kind, snoozed: Snoozed) -> Items:
    """The next payments of open accounts of a kind that are not past due, soonest first."""
    today = business_date()
    accounts = active_records(kind).filter(
        is_past_due=False,
        is_closed=False,
        next_due_on__gte=today,
        next_due_on__lte=today + timedelta(days=DUE_DAYS),
    )
    if kind == Kind.LOAN:  # What isn't scheduled is an item of its own.
        unscheduled = loans_without_scheduled_payment().values("pk")
        accounts = accounts.exclude(pk__in=unscheduled)
    for uuid, _, day in (key.partition(":") for key in snoozed.ids("due:")):
        accounts = accounts.exclude(uuid=uuid, next_due_on=day)
    url = f"{reverse(f'{AREAS[kind]}:index')}?sort=due"
    name = f"{NOUNS[kind]}s with a payment due"
    rows = accounts.order_by("next_due_on", "id")
    return Items(
        rows,
        _due_item,
        group="due",
        name=name,
        url=url,
        add_up=lambda found: _add_up(_amounts(found, "due_amount")),
    )


def _due_item(record: Account) -> Item:
    noun, amount = NOUNS[Kind(record.kind)], wording.money(record.due_amount)
    autopay = {True: ", autopay on", False: ", autopay off", None: ""}[record.has_autopay]
    return Item(
        key=f"due:{record.uuid}:{record.next_due_on}",
        state="waiting",
        amount=amount or NOT_KNOWN,
        icon="calendar-event",
        fact=f"Payment of {amount} due" if amount else "Payment due",
        rest=wording.day(record.next_due_on, weekday=True) or "",
        meta=f"{noun} {record.uuid[:8]}{autopay}",
        borrower_uuid=record.borrower_uuid,
        when=record.next_due_on,
        rank=Decimal(-record.next_due_on.toordinal()) if record.next_due_on else Decimal(0),
        url=record.get_absolute_url(),
        verb=f"Open {noun}",
    )
