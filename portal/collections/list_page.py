"""The worklist: loans and lines that are past due, worst first, and what is being done about them."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.core.cache import cache
from django.db.models import Case, Count, Q, QuerySet, Sum, Value, When
from django.http import QueryDict
from django.urls import reverse
from django.utils.safestring import SafeString

from portal.accounts.models import User
from portal.collections.forms import NOUNS
from portal.collections.models import AccountOwner, Contact, Outcome
from portal.collections.promises import DecidedPromise, accounts_with, decide_promises
from portal.lists import cells
from portal.lists.columns import CHECKED, past_due_columns
from portal.lists.filters import NONE, Filter, aging_filter, choice_filter
from portal.lists.pages import Action, Column, Listing, ListPage, Row
from portal.lists.paging import COUNT_CACHE_SECONDS, MAX_COUNTED
from portal.notes.views import colleagues
from portal.registry import store
from portal.registry.figures import ACCOUNTS, NOT_KNOWN_RANK, aging_of_kinds, days_of
from portal.registry.models import IS_LATE, Kind, PastDueChange, Record
from portal.registry.query import NotUnderstood
from portal.registry.records import with_borrowers
from portal.repayments.table import SCHEDULED, SUCCEEDED
from portal.runtime.business_date import business_date
from portal.ui import wording
from portal.ui.exports import amount
from portal.ui.keys import row_key
from portal.ui.markup import format_html
from portal.ui.templatetags import ui
from servicing.figures import Aging, aging

MARK_DAYS = 7
"""How long an account is marked as newly past due or cured."""
CURED, NEW = "cured", "new"
_CURSOR = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,4})?)?~([0-9]{1,19})")


class Payment(NamedTuple):
    """A repayment of an account, as far as the worklist shows it."""

    day: date
    amount: Decimal | None


@dataclass
class WorklistRow(Row):
    """An account that is past due, and what is being done about it."""

    pending: Payment | None = None
    last_paid: Payment | None = None
    autopay: bool | None = None
    contact: Contact | None = None
    promise: DecidedPromise | None = None
    owner: User | None = None
    change: PastDueChange | None = None


# --- Filters ---


def changed_since() -> date:
    return business_date() - timedelta(days=MARK_DAYS)


def _changed(*, is_cured: bool) -> Q:
    changes = PastDueChange.objects.filter(day__gte=changed_since(), is_cured=is_cured)
    return Q(pk__in=changes.order_by().values("record"))


def shown(state: QueryDict) -> Q:
    """What is past due; or what was cured this week, if that is asked for."""
    is_cured = Q(kind__in=ACCOUNTS, past_due_rank__isnull=True) & _changed(is_cured=True)
    return is_cured if state.get("change") == CURED else IS_LATE


def _of_owner(value: str) -> Q:
    owned = AccountOwner.objects.all()
    if value == NONE:
        return ~Q(uuid__in=owned.filter(owner__is_active=True).values("account_uuid"))
    key = row_key(value)
    if key is None:
        raise NotUnderstood("Not a valid choice.")
    return Q(uuid__in=owned.filter(owner_id=key).values("account_uuid"))


def _owner_words(value: str) -> str:
    if value == NONE:
        return "Unassigned"
    owner = User.objects.filter(pk=row_key(value)).first()
    return owner.display_name() if owner else value


def _with_promise(name: str) -> Q:
    return Q(uuid__in=accounts_with(name))


def _contacted(days: int) -> Q:
    since = business_date() - timedelta(days=days)
    recent = Contact.objects.filter(day__gt=since).exclude(account_uuid="")
    return ~Q(uuid__in=recent.values("account_uuid"))


FILTERS = [
    aging_filter(*ACCOUNTS),
    choice_filter(
        "kind",
        "Type",
        {kind.value: (f"{noun}s", partial(Q, kind=kind)) for kind, noun in NOUNS.items()},
        prompt="Loans and lines",
    ),
    Filter(
        name="owner",
        label="Owner",
        condition=_of_owner,
        words=_owner_words,
        prompt="Every owner",
        options=lambda: [(NONE, "Unassigned"), *((str(one.pk), one.display_name()) for one in colleagues())],
    ),
    choice_filter(
        "change",
        "This week",
        {
            NEW: ("newly past due", partial(_changed, is_cured=False)),
            CURED: ("cured", Q),
        },
        prompt="Any change",
    ),
    choice_filter(
        "promise",
        "Promise",
        {
            "due": ("due today", partial(_with_promise, "due")),
            "open": ("not decided", partial(_with_promise, "open")),
            "broken": ("broken", partial(_with_promise, "broken")),
        },
        prompt="Any promise",
    ),
    choice_filter(
        "quiet",
        "No contact",
        {str(days): (f"in {days} days", partial(_contacted, days)) for days in (3, 7, 14)},
        prompt="Any contact",
    ),
]


# --- Rows ---


def load_rows(records: Sequence[Record]) -> Iterator[WorklistRow]:
    """The accounts with their payments, contacts, promises and owners: one query for each of these."""
    uuids = [record.uuid for record in records]
    payments = _payments(uuids)
    contacts: dict[str, Contact] = {}
    for contact in Contact.objects.filter(account_uuid__in=uuids).order_by("at", "id"):
        contacts[contact.account_uuid] = contact
    promises = decide_promises(uuids)
    owned = AccountOwner.objects.filter(account_uuid__in=uuids).select_related("owner")
    owners = {one.account_uuid: one.owner for one in owned}
    changes: dict[int, PastDueChange] = {}
    for change in PastDueChange.objects.filter(record__in=records, day__gte=changed_since()).order_by("id"):
        changes[change.record_id] = change
    for record, borrower in with_borrowers(records):
        pending, last_paid = payments.get(record.uuid, (None, None))
        yield WorklistRow(
            record,
            borrower,
            pending=pending,
            last_paid=last_paid,
            autopay=store.autopay(record) if record.kind == Kind.LOAN else None,
            contact=contacts.get(record.uuid),
            promise=next(iter(promises.get(record.uuid, ())), None),
            owner=owners.get(record.uuid),
            change=changes.get(record.pk),
        )


def _payments(uuids: Sequence[str]) -> dict[str, tuple[Payment | None, Payment | None]]:
    """The next scheduled and the last succeeded repayment of each account."""
    today = business_date()
    rows = Record.objects.filter(
        kind=Kind.REPAYMENT, parent_uuid__in=uuids, archived_at__isnull=True
    ).values_list("parent_uuid", "status", "key_date", "amount")
    pending: dict[str, Payment] = {}
    paid: dict[str, Payment] = {}
    for parent, status, day, value in rows:
        if day is None:
            continue
        one = Payment(day, value)
        word = status.upper()
        if word == SCHEDULED and day >= today and (parent not in pending or day < pending[parent].day):
            pending[parent] = one
        elif word == SUCCEEDED and (parent not in paid or day > paid[parent].day):
            paid[parent] = one
    return {uuid: (pending.get(uuid), paid.get(uuid)) for uuid in pending.keys() | paid.keys()}


# --- Cells ---


def account_url(record: Record, state: str) -> str:
    """The account's page, which leads to the next one of the list in this state."""
    walk = QueryDict(state.removeprefix("?"), mutable=True)
    walk["at"] = cursor_of(record)
    return f"{record.get_absolute_url()}?{urlencode({'worklist': walk.urlencode()})}"


def _account(row: WorklistRow) -> SafeString:
    record = row.record
    marks = cells.joined(
        ui.badge("ok", "Cured") if row.change and row.change.is_cured else "",
        ui.badge("warn", "Newly past due") if row.change and not row.change.is_cured else "",
    )
    name = row.borrower or record.borrower_uuid[:8] or "Borrower not confirmed"
    more = format_html(
        '<a class="sd-btn sd-btn-sm sd-btn-icon sd-btn-quiet sd-contacts" href="{0}" hx-get="{0}?beside=1"'
        ' hx-target="#contacts" title="Contacts" aria-label="Contacts with {1}">{2}</a>',
        reverse("collections:contacts", args=[record.kind, record.uuid]),
        name,
        ui.icon("phone"),
    )
    return format_html(
        '<a href="{}"><b>{}</b></a><small>{} {}{} {}</small>{}',
        account_url(record, row.state),
        name,
        NOUNS[Kind(record.kind)],
        record.uuid[:8],
        cells.changed_badge(row.has_changed),
        marks,
        more,
    )


def _days(row: WorklistRow) -> str:
    record = row.record
    bucket = aging(record.past_due, days_of(record))
    return cells.with_note(
        cells.days_past_due(row), "" if bucket in (Aging.CURRENT, Aging.UNKNOWN) else bucket
    )


def _payment(payment: Payment | None) -> str:
    if not payment:
        return ""
    return cells.with_note(cells.unbroken(ui.day(payment.day)), ui.known_money(payment.amount))


def _pending(row: WorklistRow) -> str:
    """The next scheduled payment, and that none comes by itself."""
    off = "Autopay off" if row.autopay is False else ""
    return cells.joined(_payment(row.pending), cells.with_note("", off) if off else "")


def _contact(row: WorklistRow) -> str:
    contact = row.contact
    if not contact:
        return ""
    return cells.with_note(cells.unbroken(ui.ago(contact.at)), cells.unbroken(Outcome(contact.outcome).label))


def _promise(row: WorklistRow) -> str:
    if not row.promise:
        return ""
    made = row.promise.promise
    words = cells.joined(
        cells.unbroken(wording.money(made.amount)), cells.unbroken(f"by {wording.day(made.day)}")
    )
    return cells.with_note(ui.badge(row.promise.look, row.promise.state), words)


def _owner(row: WorklistRow) -> str:
    if not row.owner:
        return ""
    left = "" if row.owner.is_active else ui.badge("warn", "Left")
    name = row.owner.display_name()
    return cells.joined(format_html('<span class="sd-owner sd-cut" title="{0}">{0}</span>', name), left)


def _changed_columns(columns: Sequence[Column], **changes: Mapping[str, Any]) -> Iterator[Column]:
    return (replace(column, **changes.get(column.name, {})) for column in columns)


WORKLIST = ListPage(
    kinds=ACCOUNTS,
    within=shown,
    required=["past_due_rank"],
    area="collections",
    title="Collections",
    noun="account",
    intro="Loans and lines that are past due, worst first.",
    search_hint="Borrower or ID",
    empty="Nothing is past due.",
    covered="accounts",
    covered_kinds=ACCOUNTS,
    actions=[Action("Returned payments", "collections:returns", icon="arrow-back-up")],
    tools=[Action("Print", "collections:print_list", icon="printer", css="sd-btn-sm")],
    can_refresh=True,
    reads_answers=True,
    table="collections/worklist.html",
    load_rows=load_rows,
    columns=[
        Column(
            name="borrower",
            head="Borrower",
            value=lambda row: str(row.borrower or ""),
            cell=_account,
            is_fixed=True,
        ),
        Column(name="borrower_uuid", head="Borrower ID", value=lambda row: row.record.borrower_uuid),
        Column(name="type", head="Type", value=lambda row: NOUNS[Kind(row.record.kind)]),
        Column(name="record", head="Account", value=lambda row: row.record.uuid),
        *_changed_columns(past_due_columns(), days={"cell": _days}, due={"css": "sd-wide sd-widest"}),
        Column(
            name="pending",
            head="Pending payment",
            value=lambda row: row.pending and row.pending.day,
            cell=_pending,
            css="sd-wide sd-widest",
        ),
        Column(
            name="pending_amount",
            head="Pending amount",
            value=lambda row: row.pending and amount(row.pending.amount),
            beside="pending",
        ),
        Column(
            name="autopay",
            head="Autopay",
            value=lambda row: row.autopay,
            beside="pending",
        ),
        Column(
            name="contact",
            head="Last contact",
            value=lambda row: row.contact and row.contact.at.isoformat(timespec="seconds"),
            cell=_contact,
            css="sd-wide sd-widest",
        ),
        Column(
            name="promise",
            head="Promise",
            value=lambda row: row.promise and str(row.promise.state),
            cell=_promise,
            css="sd-wide",
        ),
        Column(
            name="promise_amount",
            head="Promised amount",
            value=lambda row: row.promise and amount(row.promise.promise.amount),
            beside="promise",
        ),
        Column(
            name="promise_day",
            head="Promised for",
            value=lambda row: row.promise and row.promise.promise.day,
            beside="promise",
        ),
        Column(
            name="owner",
            head="Owner",
            value=lambda row: row.owner and row.owner.display_name(),
            cell=_owner,
            css="sd-wide sd-widest",
        ),
        Column(
            name="last_paid",
            head="Last payment",
            value=lambda row: row.last_paid and row.last_paid.day,
            cell=lambda row: _payment(row.last_paid),
            css="sd-wide sd-widest",
        ),
        Column(
            name="last_paid_amount",
            head="Last payment amount",
            value=lambda row: row.last_paid and amount(row.last_paid.amount),
            beside="last_paid",
        ),
        replace(CHECKED, is_default=False),
    ],
    sorts={"past_due": "-past_due_rank"},
    filters=FILTERS,
    presets={
        "Unassigned": "owner=none",
        "Newly past due": "change=new",
        "Cured": "change=cured",
        "Promises due today": "promise=due",
        "Broken promises": "promise=broken",
        "No contact in 7 days": "quiet=7",
    },
)


# --- Aging tabs ---


class AgingTab(NamedTuple):
    """One bucket: how many accounts, what they add up to, and how many amounts are not known."""

    value: str
    words: str
    number: int
    known: Decimal
    unknown: int

    @property
    def amount_words(self) -> str:
        """Such as "$310.00, plus 2 not known"."""
        if self.unknown and not self.known:
            return ui.NOT_KNOWN
        shown = wording.money(self.known) or ""
        return f"{shown}, plus {self.unknown:,} not known" if self.unknown else shown


def aging_tabs(listing: Listing) -> list[AgingTab]:
    """The buckets of what the other filters leave; of very many accounts, as of a minute ago."""
    found = listing
    if "aging" in listing.state:
        state = listing.state.copy()
        del state["aging"]
        found = WORKLIST.find(state)
    if found.total < MAX_COUNTED:
        return _add_up(found.found)
    digest = hashlib.sha256(found.query_string.encode()).hexdigest()
    key = f"collections.aging.{digest}.{business_date()}"
    return cache.get_or_set(key, lambda: _add_up(found.found), COUNT_CACHE_SECONDS) or []


def _add_up(accounts: QuerySet[Record]) -> list[AgingTab]:
    buckets = [When(aging_of_kinds(ACCOUNTS, one), then=Value(one.name)) for one in Aging]
    is_known = Q(past_due_rank__lt=NOT_KNOWN_RANK)
    rows = (
        accounts.order_by()
        .annotate(bucket=Case(*buckets, default=Value(Aging.UNKNOWN.name)))
        .values_list("bucket")
        .annotate(
            number=Count("pk"),
            known=Sum("past_due_rank", filter=is_known),
            unknown=Count("pk", filter=Q(past_due__isnull=True)),
        )
    )
    found = {bucket: (number, known or Decimal(0), unknown) for bucket, number, known, unknown in rows}
    numbers = [sum(one[part] for one in found.values()) for part in range(3)]
    tabs = [AgingTab("", "All", int(numbers[0]), Decimal(numbers[1]), int(numbers[2]))]
    return tabs + [
        AgingTab(one.name.lower(), str(one), *found[one.name]) for one in Aging if one.name in found
    ]


# --- The next account ---


def cursor_of(record: Record) -> str:
    """The place of an account in the worklist."""
    rank = "" if record.past_due_rank is None else f"{record.past_due_rank:f}"
    return f"{rank}~{record.pk}"


def next_account(state: QueryDict) -> Record | None:
    """The account after the place ``at`` of the list in this state; the first without one.

    The keys are read along the index, however far down the place is.
    """
    found = WORKLIST.find(state)
    accounts, is_rising = found.found, found.sort.startswith("-")
    rank, key = _place(state.get("at", ""))
    if key is None:
        return accounts.first()
    beyond = "gt" if is_rising else "lt"
    if rank is None:  # What was cured has no rank.
        return accounts.filter(**{f"pk__{beyond}": key}).first()
    same = accounts.filter(past_due_rank=rank, **{f"pk__{beyond}": key})
    return same.first() or accounts.filter(**{f"past_due_rank__{beyond}": rank}).first()


def _place(text: str) -> tuple[Decimal | None, int | None]:
    found = _CURSOR.fullmatch(text)
    if not found:
        return None, None
    return (Decimal(found[1]) if found[1] else None), row_key(found[2])
