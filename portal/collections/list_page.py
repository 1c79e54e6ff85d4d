"""The worklist: past due loans and lines, worst first, and the work on them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from django.db.models import Q
from django.http import QueryDict
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.accounts.models import User
from portal.collections.forms import NOUNS
from portal.collections.models import AccountOwner, Contact, Outcome
from portal.collections.promises import promises_with
from portal.collections.rows import Payment, WorklistRow, changed_since, load_rows
from portal.core.business_date import business_date
from portal.notes.views import colleagues
from portal.records.figures import ACCOUNTS, NOT_KNOWN_RANK
from portal.records.models import IS_LATE, LISTED, Account, Kind, PastDueChange
from portal.records.query import NotUnderstood
from portal.repayments.attention import not_known_accounts
from portal.tables import cells
from portal.tables.columns import CHECKED, past_due_columns
from portal.tables.filters import NONE, Filter, aging_filter, choice_filter, flag_filter
from portal.tables.pages import Action, Column, ListPage
from portal.ui import wording
from portal.ui.exports import amount
from portal.ui.keys import row_key
from portal.ui.templatetags import ui

CURED, NEW = "cured", "new"
PROMISES = {
    "due": "Promise due today",
    "open": "Promise still open",
    "new": "Promise broken since yesterday",
    "unanswered": "Promise broken, no contact since",
    "broken": "Promise broken",
    "kept": "Promise kept",
}
UNKNOWN = "unknown"
_CURSOR = re.compile(rf"({UNKNOWN}|-?[0-9]{{1,16}}(?:\.[0-9]{{1,4}})?)?~([0-9]{{1,19}})")


# --- Filters ---


def _changed(*, is_cured: bool) -> Q:
    changes = PastDueChange.objects.filter(day__gte=changed_since(), is_cured=is_cured)
    return Q(past_due_rank__isnull=is_cured, pk__in=changes.order_by().values("record"))


DUE_SINCE = Q(due_since_on__isnull=False)


def _has_other_accounts(state: QueryDict) -> bool:
    """Whether the list has other accounts: if filtered for those cured or not known, or for promises."""
    return state.get("change") == CURED or state.get("promise") in PROMISES or "not_known" in state


def limit_accounts(state: QueryDict) -> Q:
    """The condition for the accounts that the list has without filters."""
    if _has_other_accounts(state):
        return Q()
    # Each part reads its own index; an OR of both would read every record.
    late, due_since = (Account.objects.filter(LISTED, part).values("pk") for part in (IS_LATE, DUE_SINCE))
    return Q(pk__in=late.union(due_since))


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
    return Q(uuid__in=promises_with(name).order_by().values("account_uuid"))


def promise_operator(value: str) -> tuple[Sequence[Kind], Q]:
    """The accounts that ``promise:`` finds in a search."""
    if (name := value.lower()) not in PROMISES:
        raise NotUnderstood("Use promise:due, open, new, unanswered, broken or kept.")
    return ACCOUNTS, _with_promise(name)


def _contacted(days: int) -> Q:
    """The condition that nobody was contacted about the account, or about its borrower as a whole."""
    recent = Contact.objects.filter(day__gt=business_date() - timedelta(days=days))
    of_borrowers = recent.filter(account_uuid="").values("borrower_uuid")
    of_accounts = recent.exclude(account_uuid="").values("account_uuid")
    return ~Q(uuid__in=of_accounts) & ~Q(borrower_uuid__in=of_borrowers)


FILTERS = [
    aging_filter(*ACCOUNTS),
    flag_filter("due_since", "Due since the copy", DUE_SINCE),
    flag_filter("not_known", "Past due not known", lambda: Q(pk__in=not_known_accounts().values("pk"))),
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
        prompt="Any owner",
        options=lambda: [(NONE, "Unassigned"), *((str(one.pk), one.display_name()) for one in colleagues())],
    ),
    choice_filter(
        "change",
        "Change",
        {
            NEW: ("Newly past due this week", partial(_changed, is_cured=False)),
            CURED: ("Cured this week", partial(_changed, is_cured=True)),
        },
        prompt="Any change",
    ),
    choice_filter(
        "promise",
        "Promise",
        {name: (words, partial(_with_promise, name)) for name, words in PROMISES.items()},
        prompt="Any promise",
    ),
    choice_filter(
        "quiet",
        "No contact",
        {str(days): (f"No contact in {days} days", partial(_contacted, days)) for days in (3, 7, 14)},
        prompt="Any contact",
    ),
]


# --- Cells ---


def account_url(record: Account, state: str) -> str:
    """The account's page with a link to the next account of the list in this state."""
    place = f"{state.removeprefix('?')}&at={cursor_of(record)}"
    return f"{record.get_absolute_url()}?worklist={quote(place.removeprefix('&'), safe='')}"


def _name(row: WorklistRow) -> str:
    return str(row.borrower or row.record.borrower_uuid[:8] or "Borrower not confirmed")


def _account(row: WorklistRow) -> SafeString:
    record = row.record
    mark, promise = "", ""
    if row.is_cured is not None:
        new = SafeString('New<span class="visually-hidden">ly past due</span>')
        mark = ui.badge("ok", "Cured") if row.is_cured else ui.badge("warn", new)
    if row.promise:  # A phone has no room for the promises column.
        badge = ui.badge(row.promise.look, f"Promise {row.promise.get_state_display().lower()}")
        promise = format_html('<span class="sd-narrow">{}</span>', badge)
    return format_html(
        '<a href="{0}" title="{1}"><b>{1}</b></a><small>{2} {3} {4}{7}</small>'
        '<a class="sd-btn sd-btn-sm sd-btn-icon sd-btn-quiet sd-contacts" id="contacts-of-{8}" href="{5}"'
        ' hx-get="{5}?beside=1" hx-target="#contacts" title="Contacts" aria-label="Contacts with {1}">{6}</a>',
        account_url(record, row.state),
        _name(row),
        NOUNS[Kind(record.kind)],
        record.uuid[:8],
        mark,
        reverse("collections:contacts", args=[record.kind, record.uuid]),
        ui.icon("phone"),
        promise,
        record.uuid,
    )


def _payment(payment: Payment | None) -> str:
    if not payment:
        return ""
    return cells.stack(ui.day(payment.day), ui.known_money(payment.amount))


def _pending(row: WorklistRow) -> str:
    """The next scheduled payment, and a note without autopay."""
    off = "Autopay off" if row.autopay is False else ""
    conflict = ui.badge("warn", f"{row.returned.code}: not again") if row.returned else ""
    return cells.join_badges(_payment(row.pending), conflict, cells.with_note("", off) if off else "")


def _contact(row: WorklistRow) -> str:
    contact = row.contact
    if not contact:
        return ""
    return cells.stack(ui.ago(contact.at), cells.no_wrap(Outcome(contact.outcome).label))


def _promise(row: WorklistRow) -> str:
    if not row.promise:
        return ""
    promise = row.promise
    words = cells.no_wrap(f"{wording.money(promise.amount)} by {cells.short_day(promise.day)}")
    return cells.with_note(ui.badge(promise.look, promise.get_state_display()), words)


def _owner(row: WorklistRow) -> str:
    if not row.owner:
        return ""
    left = "" if row.owner.is_active else ui.badge("warn", "Left")
    name = row.owner.display_name()
    return cells.join_badges(format_html('<span class="sd-owner sd-cut" title="{0}">{0}</span>', name), left)


def _payment_columns(
    name: str, head: str, amount_head: str, cell: Callable[[Any], str]
) -> tuple[Column, Column]:
    """A payment in one column on screen, and in two in a file: day and amount."""
    read = attrgetter(name)
    return (
        Column(
            name=name,
            head=head,
            value=lambda row: read(row) and read(row).day,
            cell=cell,
            css="sd-wide sd-widest",
        ),
        Column(
            name=f"{name}_amount",
            head=amount_head,
            value=lambda row: read(row) and amount(read(row).amount),
            beside=name,
        ),
    )


def _changed_columns(columns: Sequence[Column], **changes: Mapping[str, Any]) -> Iterator[Column]:
    return (replace(column, **changes.get(column.name, {})) for column in columns)


WORKLIST = ListPage(
    kinds=ACCOUNTS,
    tab_filter="aging",
    within=limit_accounts,
    area="collections",
    title="Collections",
    noun="account",
    intro="Loans and lines that are past due, worst first. What fell due since its copy comes last.",
    search_hint="Borrower or ID",
    search_scope="Search by borrower or start of the ID.",
    empty_title="Nothing past due",
    empty="Loans and lines appear here once they’re past due.",
    covered="accounts",
    covered_kinds=ACCOUNTS,
    actions=[Action("Failed and returned", "collections:returns", icon="arrow-back-up")],
    tools=[Action("Print", "collections:print_list", icon="printer", css="sd-btn-sm")],
    can_refresh=True,
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
        *_changed_columns(past_due_columns(), due={"css": "sd-wide sd-widest"}),
        *_payment_columns("pending", "Pending payment", "Pending amount", _pending),
        Column(name="autopay", head="Autopay", value=lambda row: row.autopay, beside="pending"),
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
            value=lambda row: row.promise and row.promise.get_state_display(),
            cell=_promise,
            css="sd-wide",
        ),
        Column(
            name="promise_amount",
            head="Promised amount",
            value=lambda row: row.promise and amount(row.promise.amount),
            beside="promise",
        ),
        Column(
            name="promise_day",
            head="Promised for",
            value=lambda row: row.promise and row.promise.day,
            beside="promise",
        ),
        Column(
            name="owner",
            head="Owner",
            value=lambda row: row.owner and row.owner.display_name(),
            cell=_owner,
            css="sd-wide sd-widest",
        ),
        *_payment_columns(
            "last_paid", "Last payment", "Last payment amount", lambda row: _payment(row.last_paid)
        ),
        replace(CHECKED, is_default=False),
    ],
    sorts={"past_due": "-past_due_rank"},
    filters=FILTERS,
    presets={
        "Unassigned": "owner=none",
        "Due since the copy": "due_since=yes",
        "Newly past due": "change=new",
        "Cured": "change=cured",
        "Promises due today": "promise=due",
        "Broken promises": "promise=broken",
        "Kept promises": "promise=kept",
        "No contact in 7 days": "quiet=7",
    },
)


# --- On paper ---


def _printed_account(row: WorklistRow) -> str:
    return cells.with_note(_name(row), f"{NOUNS[Kind(row.record.kind)]} {row.record.uuid[:8]}")


def _printed_contact(row: WorklistRow) -> str:
    contact = row.contact
    return cells.stack(wording.day(contact.at), Outcome(contact.outcome).label) if contact else ""


def printed_columns() -> list[Column]:
    """The default columns of the screen, with days instead of ages and without controls."""
    changes = {"borrower": {"cell": _printed_account}, "contact": {"cell": _printed_contact}}
    columns = _changed_columns(WORKLIST.columns, **changes)
    return [column for column in columns if column.cell and column.is_default]


# --- The next account ---


def cursor_of(record: Account) -> str:
    rank = record.past_due_rank
    words = "" if rank is None else UNKNOWN if rank == NOT_KNOWN_RANK else f"{rank:f}"
    return f"{words}~{record.pk}"


def next_account(state: QueryDict) -> Account | None:
    """The account after the position ``at`` of the list in this state; without one, the first.

    The keys are read along the index, however far down the position is.
    """
    found = WORKLIST.find(state)
    accounts, is_rising = found.found, found.sort.startswith("-")
    rank, key = _place(state.get("at", ""))
    if key is None:
        return accounts.first()
    beyond = "gt" if is_rising else "lt"
    following = accounts.filter(past_due_rank=rank, **{f"pk__{beyond}": key}).first()
    if following or rank is None:  # Accounts that aren't past due come last.
        return following
    return (
        accounts.filter(**{f"past_due_rank__{beyond}": rank}).first()
        or accounts.filter(past_due_rank=None).first()
    )


def _place(text: str) -> tuple[Decimal | None, int | None]:
    found = _CURSOR.fullmatch(text)
    if not found:
        return None, None
    rank = NOT_KNOWN_RANK if found[1] == UNKNOWN else Decimal(found[1]) if found[1] else None
    return rank, row_key(found[2])
