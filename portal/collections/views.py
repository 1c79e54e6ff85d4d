"""Collections: the worklist, contacts and promises, owners of accounts, returned payments."""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.db import transaction
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.accounts.models import User
from portal.accounts.roles import requires
from portal.audit.chain import append, entry_subject, is_saved
from portal.audit.models import Actor
from portal.audit.view_log import log_list, log_view
from portal.collections.aging_tabs import aging_tabs, due_since_sum
from portal.collections.contacts import (
    SUBJECTS,
    contact_form,
    contact_log,
    label_of,
    may_undo,
    save_contact,
    undo_contact,
)
from portal.collections.forms import NOUNS, AssignForm, ContactForm, WithdrawForm
from portal.collections.list_page import WORKLIST, account_url, next_account, printed_columns
from portal.collections.models import AccountOwner, Contact, Promise
from portal.collections.promises import decide_promises, lock_accounts
from portal.collections.returns import (
    PERIODS,
    ReturnedPayment,
    ReturnGroup,
    by_code,
    by_day,
    chart_of,
    return_rates,
    returned_payments,
)
from portal.gateway.client import StaffRequest
from portal.messaging.news import request_reads
from portal.notes.views import colleagues
from portal.records.figures import ACCOUNTS
from portal.records.models import Account, Borrower, Kind
from portal.records.repayments import copied_on
from portal.records.rows import records_of
from portal.records.store import IDENTIFIER
from portal.repayments.attention import not_known_accounts
from portal.tables.pages import render_cells
from portal.ui import wording
from portal.ui.exports import amount, list_file
from portal.ui.htmx import finish_action, render_page, toast
from servicing.return_codes import describe_return_code

MAX_PRINTED = 500
MAX_ASSIGNED = 100
NOBODY = "nobody"
# The events after which the panel of contacts, or its head alone, and the worklist beside it are refreshed.
LOGGED, TAKEN = "collections:logged", "collections:taken"
RETURN_COLUMNS: dict[str, Callable[[ReturnedPayment], object]] = {
    "Day": lambda one: one.day,
    "Code": lambda one: one.code,
    "Description": lambda one: describe_return_code(one.code),
    "Reported reason": lambda one: one.repayment.error_description,
    "Borrower": lambda one: str(one.borrower or ""),
    "Borrower ID": lambda one: one.record.borrower_uuid,
    "Account": lambda one: one.record.account and one.record.account.uuid,
    "Repayment": lambda one: one.record.uuid,
    "Amount": lambda one: amount(one.repayment.amount),
    "Status": lambda one: one.repayment.status,
    "Copy of": lambda one: copied_on(one.record),
    "Bank account": lambda one: one.bank,
    "Returns in 90 days": lambda one: one.follows.repeats or None,
    "Next scheduled": lambda one: one.follows.following and one.follows.following.effective_date,
    "Next amount": lambda one: one.follows.following and amount(one.follows.following.amount),
    "What follows": lambda one: one.follows.words,
    "Presentments": lambda one: one.follows.presentments,
    "Scheduled against the code": lambda one: one.follows.is_conflict,
}


# --- The worklist ---


@require_http_methods(["GET", "HEAD", "POST"])
@requires("collections.index")
def index(request: StaffRequest) -> HttpResponse:
    """The list with its aging tabs."""
    return WORKLIST.index(
        request,
        tabs=aging_tabs,
        due_since=due_since_sum,
        gap=lambda found: (
            None if found.is_filtered else (not_known_accounts().count(), found.link(not_known="yes"))
        ),
        colleagues=lambda _: colleagues,
    )


@require_POST
@requires("collections.update")
def update_due_since(request: StaffRequest) -> HttpResponse:
    """Have the worker read all accounts of the list with payments that fell due since their copy."""
    state = QueryDict(request.POST.get("back", "").removeprefix("?"))
    with transaction.atomic():
        number = request_reads(WORKLIST.find(state).found.filter(due_since_on__isnull=False))
        label = wording.count(number, "account")
        append(Actor.of(request), "collections.refresh", subject_label=label)
    toast(request, f"Updating {label} in the background.")
    return finish_action(request, f"{WORKLIST.url}?{state.urlencode()}")


@require_safe
@requires("collections.index")
def print_list(request: StaffRequest) -> HttpResponse:
    """All matching accounts on one page, for printing."""
    found = WORKLIST.find(request.GET)
    rows = list(WORKLIST.rows(found.found.select_related("answer")[:MAX_PRINTED]))
    append(
        Actor.of(request),
        "collections.print",
        subject_label="all that match",
        detail={"query": found.query, "filters": found.filters, "rows": len(rows)},
    )
    columns = printed_columns()
    context = {
        "listing": found,
        "columns": columns,
        "rows": [render_cells(columns, row) for row in rows],
        "tabs": aging_tabs(found),
        "due_since": due_since_sum(found),
        "is_cut": found.total > len(rows),
    }
    return render_page(request, "collections/print.html", context)


@require_safe
@requires("collections.index")
def next_in_list(request: StaffRequest) -> HttpResponse:
    """Go to the account after this one, or back to the list at its end."""
    state = request.GET.copy()
    record = next_account(state)
    state.pop("at", None)
    if record is None:
        toast(request, "That was the last account in the list.")
        return HttpResponseRedirect(f"{WORKLIST.url}?{state.urlencode()}")
    return HttpResponseRedirect(account_url(record, state.urlencode()))


# --- Contacts and promises ---


@require_safe
@requires("collections.index")
def contacts(request: StaffRequest, kind: str, uuid: str) -> HttpResponse:
    """The contact log of a borrower or an account, as a page or as a panel of another page."""
    record = _subject_or_404(kind, uuid)
    return _contacts_page(request, record, contact_form(record))


@require_POST
@requires("collections.log")
def log(request: StaffRequest, kind: str, uuid: str) -> HttpResponse:
    """Log a contact. Of two people at once, the second waits and is asked once."""
    record = _subject_or_404(kind, uuid)
    actor = Actor.of(request)
    with transaction.atomic():
        # One may log on the borrower's page, another on an account's. In the order in which answers are saved.
        list(records_of(kind).select_for_update().filter(pk=record.pk))
        list(Borrower.objects.select_for_update().filter(uuid=record.borrower_uuid))
        form = contact_form(record, request.POST)
        is_repeated = is_saved(actor)
        if not is_repeated and form.is_valid():
            save_contact(actor, record, form)
    if is_repeated:
        return finish_action(request, contacts_url(record), event=LOGGED)
    if not form.is_valid():
        return _contacts_page(request, record, form, status=422)
    toast(request, "Promise logged." if form.promised else "Contact logged.")
    return finish_action(request, contacts_url(record), event=LOGGED)


def _subject_or_404(kind: str, uuid: str) -> Any:
    """A borrower, a loan or a line."""
    if kind not in SUBJECTS:
        raise Http404
    return get_object_or_404(records_of(kind), uuid=uuid)


def contacts_url(record: Account | Borrower) -> str:
    return reverse("collections:contacts", args=[record.kind, record.uuid])


def _contacts_page(
    request: StaffRequest, record: Account | Borrower, form: ContactForm, *, status: int = 200
) -> HttpResponse:
    _log_view(request, record)
    is_account = record.kind in ACCOUNTS
    context: dict[str, Any] = {
        "record": record,
        "name": f"{NOUNS[Kind(record.kind)]} {record.uuid[:8]}" if is_account else str(record),
        "log": contact_log(record, request.user),
        "form": form,
        "is_account": is_account,
        "is_beside_list": "beside" in request.GET,
        "takes_focus": not form.is_bound and "again" in request.GET,
        "opens_form": not form.is_bound and "beside" in request.GET and "again" not in request.GET,
    }
    return render_page(
        request, "collections/contacts.html", context, partial=("contacts", "contacts-head"), status=status
    )


def _log_view(request: StaffRequest, record: Account | Borrower) -> None:
    subject = entry_subject(record, label_of(record))
    log_view(Actor.of(request), "collections.view", is_repeat=bool(request.htmx), **subject)


@requires("collections.log")
def withdraw(request: StaffRequest, promise_id: int) -> HttpResponse:
    promise = get_object_or_404(Promise.objects.select_related("contact"), pk=promise_id)
    account = get_object_or_404(Account, kind=promise.contact.account_kind, uuid=promise.account_uuid)
    form = WithdrawForm(request.POST or None)
    if form.is_valid():
        actor, reason = Actor.of(request), form.cleaned_data["reason"]
        with transaction.atomic():
            lock_accounts([promise.account_uuid])
            is_open = Promise.objects.filter(pk=promise.pk, withdrawn_at=None)
            is_first = is_open.update(withdrawn_at=timezone.now(), withdrawn_by=actor.name, reason=reason)
            if is_first:
                decide_promises([promise.account_uuid])
                subject = entry_subject(account, label_of(account))
                append(actor, "collections.withdraw", reason=reason, **subject)
        toast(request, "Promise withdrawn." if is_first else "This promise was already withdrawn.")
        return finish_action(request, contacts_url(account))
    _log_view(request, account)
    context = {"form": form, "promise": promise, "record": account, "back": contacts_url(account)}
    return render_page(request, "collections/withdraw.html", context, status=422 if form.is_bound else 200)


@requires("collections.log")
def undo(request: StaffRequest, contact_id: int) -> HttpResponse:
    """Ask whether to undo one's own contact of today; a POST undoes it."""
    contact = get_object_or_404(Contact, pk=contact_id)
    kind, uuid = contact.account_kind or Kind.BORROWER, contact.account_uuid or contact.borrower_uuid
    record = get_object_or_404(records_of(kind), uuid=uuid)
    back = contacts_url(record)
    if not may_undo(contact, request.user):
        toast(request, "Only the person who logged a contact can undo it, until the end of the day.")
        return finish_action(request, back)
    if request.method == "POST":
        with transaction.atomic():
            undo_contact(Actor.of(request), contact, record)
        toast(request, "Contact undone.")
        return finish_action(request, back)
    _log_view(request, record)
    context = {
        "crumbs": [("Collections", WORKLIST.url), ("Contacts", back)],
        "crumb": "Undo",
        "title": "Undo this contact?",
        "text": f"{contact}. A promise logged with it goes, too; a follow-up stays. The audit trail keeps the entries.",
        "action": request.path,
        "act": "Undo contact",
        "safe": "Cancel",
        "back": back,
    }
    return render_page(request, "ui/question.html", context, partial="dialog")


# --- Owners ---


@require_POST
@requires("collections.take")
@transaction.atomic
def take(request: StaffRequest) -> HttpResponse:
    """Take the selected accounts that no active person owns, or release one's own."""
    records, is_release = _lock_selected(request), "release" in request.POST
    owned = AccountOwner.objects.filter(owner__is_active=True).exclude(owner=request.user)
    others = set(
        owned.filter(account_uuid__in=[one.uuid for one in records]).values_list("account_uuid", flat=True)
    )
    free = [one for one in records if one.uuid not in others]
    changed = _set_owner(Actor.of(request), free, None if is_release else request.user)
    words = f"{changed} account{'' if changed == 1 else 's'} {'released' if is_release else 'taken'}."
    words = f"{words} {len(others)} skipped: owned by colleagues." if others else words
    toast(request, words if records else "Select accounts first.")
    event = TAKEN if "one" in request.POST else None
    return finish_action(request, _back_url(request, records), event=event)


@require_POST
@requires("collections.assign")
@transaction.atomic
def assign(request: StaffRequest) -> HttpResponse:
    """Assign the selected accounts to a colleague or to nobody."""
    records, form = _lock_selected(request), AssignForm(request.POST)
    is_nobody = request.POST.get("owner") == NOBODY
    if not records or not (is_nobody or form.is_valid()):
        context = {"form": form, "back": _back_url(request, records), "number": len(records)}
        return render_page(request, "collections/assign.html", context, status=422)
    owner = None if is_nobody else form.cleaned_data["owner"]
    changed = _set_owner(Actor.of(request), records, owner)
    to_whom = f"assigned to {owner.display_name()}" if owner else "unassigned"
    toast(request, f"{changed} account{'' if changed == 1 else 's'} {to_whom}.")
    return finish_action(request, _back_url(request, records))


def _lock_selected(request: StaffRequest) -> list[Account]:
    """Lock the selected accounts: of two people who take one at once, the second waits."""
    uuids = [uuid for uuid in request.POST.getlist("uuid") if IDENTIFIER.fullmatch(uuid)]
    chosen = WORKLIST.records().filter(uuid__in=uuids[:MAX_ASSIGNED], kind__in=ACCOUNTS)
    return list(chosen.select_for_update().order_by("pk"))


def _back_url(request: StaffRequest, records: list[Account]) -> str:
    """The address of the list in its state, or of the account that was taken on its own page."""
    state = request.POST.get("back", "")
    if "one" in request.POST and records:
        return contacts_url(records[0])
    return f"{WORKLIST.url}?{state.removeprefix('?')}"


def _set_owner(actor: Actor, records: list[Account], owner: User | None) -> int:
    """Set the owner of these accounts, each with an audit entry; return how many changed."""
    uuids = [one.uuid for one in records]
    rows = AccountOwner.objects.filter(account_uuid__in=uuids).select_related("owner")
    before = {one.account_uuid: one.owner for one in rows}
    changed = [one for one in records if before.get(one.uuid) != owner]
    for record in changed:
        if owner is None:
            AccountOwner.objects.filter(account_uuid=record.uuid).delete()
        else:
            AccountOwner.objects.update_or_create(account_uuid=record.uuid, defaults={"owner": owner})
        last = before.get(record.uuid)
        append(
            actor,
            "collections.assign",
            changes={"owner": [last.audit_name() if last else "", owner.audit_name() if owner else ""]},
            **entry_subject(record, label_of(record)),
        )
    return len(changed)


# --- Returned payments ---


class ReturnsShown(NamedTuple):
    days: int
    code: str
    only: bool
    """Whether only conflicts are shown."""
    found: list[ReturnedPayment]
    """Those of the period."""
    conflicts: list[ReturnedPayment]
    """Those with another payment scheduled although the code says not to present again."""
    is_cut: bool
    """Whether the period has more."""

    @property
    def of_codes(self) -> list[ReturnedPayment]:
        """Those that the table of codes counts."""
        return self.conflicts if self.only else self.found

    @property
    def payments(self) -> list[ReturnedPayment]:
        return [one for one in self.of_codes if self.code in ("", one.code)]


@require_safe
@requires("collections.index")
def returns(request: StaffRequest) -> HttpResponse:
    """Failed and returned payments by code and by day."""
    asked = _returns(request)
    log_list(request, count=len(asked.found))
    context = {
        "days": asked.days,
        "code": asked.code,
        "periods": PERIODS,
        "by_code": by_code(asked.of_codes),
        "by_day": by_day(asked.found),
        "payments": asked.payments,
        "conflicts": ReturnGroup("", "", asked.conflicts) if asked.conflicts else None,
        "only": asked.only,
        "chart": chart_of(asked.found, asked.days),
        "rates": return_rates(),
        "sum": ReturnGroup("", "", asked.payments).amount,
        "cut_at": len(asked.found) if asked.is_cut else 0,
    }
    return render_page(request, "collections/returns.html", context)


@require_safe
@requires("collections.index")
def export_returns(request: StaffRequest) -> StreamingHttpResponse:
    """The payments of the page as a file."""
    asked = _returns(request)
    days, rows = asked.days, asked.payments
    detail = {"days": days, "code": asked.code, "rows": len(rows)}
    append(Actor.of(request), "collections.export_returns", subject_label=f"{days} days", detail=detail)
    lines = ([value(one) for value in RETURN_COLUMNS.values()] for one in rows)
    return list_file(request, f"returned-payments-{days}-days", [*RETURN_COLUMNS], lines)


def _returns(request: StaffRequest) -> ReturnsShown:
    days = next((one for one in PERIODS if str(one) == request.GET.get("days")), PERIODS[0])
    found, is_cut = returned_payments(days)
    conflicts = [one for one in found if one.follows.is_conflict]
    only = "conflicts" in request.GET and bool(conflicts)
    code = request.GET.get("code", "")
    code = code if code in {one.code for one in (conflicts if only else found)} else ""
    return ReturnsShown(days, code, only, found, conflicts, is_cut)
