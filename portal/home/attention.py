"""What needs a person, as one list, the worst first, from what is known here. Nothing is asked of the service.

A source gives its lines and how many there are in all; it looks at few more records than are shown. A line is known by
its key, under which somebody may put it aside for a while.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from urllib.parse import urlencode

from django.conf import settings
from django.core.cache import cache
from django.db.models import F, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import can
from portal.approvals.models import Approval
from portal.approvals.steps import open_ones
from portal.audit.intents import settle_stale
from portal.audit.models import Entry, WriteIntent
from portal.borrowers.handover import Task, left_of
from portal.borrowers.models import Draft
from portal.clocks import is_recent
from portal.home.lines import Attention, Item, Source, total_of
from portal.home.models import Snooze
from portal.jobs.state import state
from portal.messaging.models import Message, key_from
from portal.registry import memory
from portal.registry.lists import COUNTED, known
from portal.registry.models import Kind, Record
from portal.registry.query import midnight
from portal.ui import wording
from servicing import Loan, Statement
from servicing.schedules import schedule_of, total

SHOWN = 25
"""Lines of one source."""
RETURNED_DAYS = 7
DUE_DAYS = 5
ONBOARDED_DAYS = 30
DELIVERED = "SUCCESS"
COUNT_KEPT = 10
COMMON = "attention"

VERBS = {Kind.LOAN: "Open loan", Kind.LINE: "Open line", Kind.REPAYMENT: "Open payment"}


def attention(user: User) -> Attention:
    """Everything that waits for somebody, as this person sees it."""
    snoozed = _snoozed()
    hidden = {one.key for one in snoozed}
    common, own = _of_everybody(hidden), _of_person(hidden, user)
    cache.set_many({COMMON: total_of(common), _own(user): total_of(own)}, COUNT_KEPT)
    (trail, worker, *accounts), (writes, approvals, drafts) = common, own
    sources = (trail, worker, writes, approvals, *accounts, drafts)
    return Attention([source for source in sources if source.items], user.pk, snoozed)


def waiting(user: User) -> dict[str, int]:
    """How much waits, for the navigation: the name of an area to a number, from a few seconds ago."""
    common = cache.get_or_set(COMMON, lambda: total_of(_of_everybody(_hidden())), COUNT_KEPT)
    own = cache.get_or_set(_own(user), lambda: total_of(_of_person(_hidden(), user)), COUNT_KEPT)
    return {"home:index": (common or 0) + (own or 0)}


def count_again(user: User) -> None:
    """A line was put aside or brought back."""
    cache.delete_many([COMMON, _own(user)])


def _own(user: User) -> str:
    """Where the number of what waits for one person is kept."""
    return f"attention:{user.pk}"


def _snoozed() -> list[Snooze]:
    return list(Snooze.objects.filter(until__gt=timezone.localdate()))


def _hidden() -> set[str]:
    return {one.key for one in _snoozed()}


def _of_everybody(hidden: set[str]) -> tuple[Source, ...]:
    """What is the same for everybody."""
    today = timezone.localdate()
    return (
        _trail(hidden),
        _worker(hidden),
        _returned(hidden, today),
        _lines_past_due(hidden),
        _loans_delinquent(hidden),
        _messages(hidden, today),
        _lines_due(hidden, today),
        _loans_due(hidden, today),
        _handovers(hidden),
    )


def _of_person(hidden: set[str], user: User) -> tuple[Source, Source, Source]:
    return _writes(hidden, user), _approvals(hidden, user), _drafts(hidden, user)


# --- Sources, the worst first ---


def _source(
    records: QuerySet[Record],
    hidden: set[str],
    item: Callable[[Record], Item | None],
    name: str = "",
    url: str = "",
) -> Source:
    """The first lines of a query that are not put aside, and how many it has."""
    rows = list(records[: SHOWN + len(hidden) + 1])
    items = [one for row in rows if (one := item(row)) and one.key not in hidden]
    is_cut = len(rows) > SHOWN + len(hidden)
    return Source(items[:SHOWN], records.count() if is_cut else len(items), name, url)


def _trail(hidden: set[str]) -> Source:
    """The audit trail failed its last check, or the check no longer runs."""
    checks = Entry.objects.filter(action="audit.verify")
    last = checks.first() or Entry.objects.order_by("pk").first()
    if last is None:
        return Source([], 0)
    is_broken = last.result == "broken"
    is_late = settings.VERIFY_MINUTES and not is_recent(
        last.at, timedelta(minutes=2 * settings.VERIFY_MINUTES)
    )
    if not (is_broken or is_late):
        return Source([], 0)
    item = Item(
        key=f"trail:{last.pk}",
        group="system",
        state="bad",
        icon="alert-circle",
        fact="The audit trail failed its check."
        if is_broken
        else "The audit trail was not checked on schedule.",
        rest="",
        meta=last.detail.get("problem", "")[:300] if is_broken else "",
        when=last.at,
        url=reverse("operations:status"),
        verb="Open status",
    )
    return Source([], 0) if item.key in hidden else Source([item], 1)


def _worker(hidden: set[str]) -> Source:
    """Nobody works in the background, though somebody did, or something waits for it."""
    work = state()
    since = work.silent_since or work.oldest
    if work.is_working or since is None or f"worker:{since.timestamp():.0f}" in hidden:
        return Source([], 0)
    item = Item(
        key=f"worker:{since.timestamp():.0f}",
        group="system",
        state="bad",
        icon="alert-circle",
        fact="Background work stands still,",
        rest="no worker is running",
        meta=f"{work.waiting:,} waiting" if work.waiting else "new messages are not fetched",
        when=since,
        url=reverse("operations:status"),
        verb="Open status",
    )
    return Source([item], 1)


def _writes(hidden: set[str], user: User) -> Source:
    settle_stale()
    unknown = WriteIntent.objects.filter(state=WriteIntent.State.UNKNOWN)
    may_settle = can(user, "audit.resolve")
    items = [_of_write(one, may_settle) for one in unknown[: SHOWN + len(hidden)]]
    kept = [one for one in items if one.key not in hidden]
    return Source(kept[:SHOWN], len(kept))


def _of_write(intent: WriteIntent, may_settle: bool) -> Item:
    is_change = intent.method == "PUT"
    equal = "an equal one of others" if is_change else "an equal one"
    return Item(
        key=f"write:{intent.pk}",
        group="system",
        state="bad",
        icon="help-circle",
        fact="Outcome unknown:",
        rest=f"change of {intent.label}" if is_change else intent.label,
        meta=f"sent by {intent.actor_name}; {equal} is refused until this is settled",
        borrower_uuid=intent.borrower_uuid,
        when=intent.created_at,
        url=reverse("audit:resolve", args=[intent.pk]) if may_settle else intent.get_absolute_url(),
        verb="Settle it" if may_settle else "Open the write",
        owner_id=intent.actor_id,
    )


def _approvals(hidden: set[str], user: User) -> Source:
    """Changes that wait for this person's word, and their own that are waiting or may be sent now."""
    may_decide = can(user, "approvals.decide")
    found = [
        _of_approval(one, user)
        for one in open_ones()
        if one.is_open and (one.maker_id == user.pk or (may_decide and one.state == Approval.State.WAITING))
    ]
    items = [one for one in found if one.key not in hidden]
    return Source(items[:SHOWN], len(items), "approvals", reverse("approvals:index"))


def _of_approval(approval: Approval, user: User) -> Item:
    is_approved = approval.state == Approval.State.APPROVED
    is_mine = approval.maker_id == user.pk
    return Item(
        key=f"approval:{approval.pk}:{approval.state}",
        group="",
        state="ok" if is_approved else "waiting",
        icon="check" if is_approved else "users",
        fact="Approved, to be sent:" if is_approved else "Approval waiting:",
        rest=f"{approval.label} ({', '.join(approval.acts).lower()})",
        meta=f"by {approval.checker_name}" if is_approved else f"asked for by {approval.maker_name}",
        borrower_uuid=approval.borrower_uuid,
        when=approval.decided_at or approval.asked_at,
        url=approval.send_url if is_approved else approval.get_absolute_url(),
        verb="Check and send" if is_approved else "Open" if is_mine else "Look at it",
        owner_id=approval.maker_id,
    )


def _returned(hidden: set[str], today: date) -> Source:
    since = today - timedelta(days=RETURNED_DAYS)
    returned = Q(status__iexact="FAILED_AFTER_SUCCESS") | Q(entity__iexact="RETURNED")
    found = known(Kind.REPAYMENT).filter(returned, due_date__gte=since, due_date__lte=today)
    listed = f"{reverse('repayments:index')}?error=1&from={since}&to={today}"
    return _source(found.order_by("-due_date", "-id"), hidden, _of_returned, "returned payments", listed)


def _of_returned(record: Record) -> Item:
    after = record.status.upper() == "FAILED_AFTER_SUCCESS"
    return Item(
        key=f"repayment:{record.uuid}",
        group="payments",
        state="bad",
        icon="arrow-back-up",
        fact=f"Repayment of {_money(record)} returned",
        rest="after it had succeeded" if after else "",
        meta=f"account {record.parent_uuid[:8]}" if record.parent_uuid else "",
        borrower_uuid=record.borrower_uuid,
        when=record.due_date,
        url=record.get_absolute_url(),
        verb=VERBS[Kind.REPAYMENT],
    )


def _lines_past_due(hidden: set[str]) -> Source:
    # A list of one value is looked up in the index.
    lines = known(Kind.LINE).filter(flagged__in=[True]).order_by(F("past_due").desc(nulls_last=True), "-id")
    listed = f"{reverse('credit_lines:index')}?past_due=yes&sort=past_due"
    return _source(lines, hidden, _of_past_due, "lines past due", listed)


def _of_past_due(record: Record) -> Item:
    told = memory.last(record, Statement)
    days = told.days_past_due if told else None
    fact = f"{wording.money(record.past_due)} past due" if record.past_due else "Past due"
    return Item(
        key=f"line:{record.uuid}",
        group="past_due",
        state="bad",
        icon="alert-circle",
        fact=f"{fact}," if days else fact,
        rest=f"{days} day{'' if days == 1 else 's'}" if days else "",
        meta=f"line {record.uuid[:8]}",
        borrower_uuid=record.borrower_uuid,
        when=timezone.localdate() - timedelta(days=days) if days and 0 < days < 36_500 else record.answer_at,
        url=record.get_absolute_url(),
        verb=VERBS[Kind.LINE],
    )


def _loans_delinquent(hidden: set[str]) -> Source:
    """What has been unpaid for longest stands first: how much is overdue only the schedules tell."""
    loans = known(Kind.LOAN).filter(flagged__in=[True]).order_by(F("due_date").asc(nulls_last=True), "id")
    listed = f"{reverse('loans:index')}?delinquent=yes&sort=due"
    return _source(loans, hidden, _of_delinquent, "delinquent loans", listed)


def _messages(hidden: set[str], today: date) -> Source:
    """Messages of the last days that did not reach whom they were for, as one line; new ones make it a new one."""
    since = today - timedelta(days=RETURNED_DAYS)
    # Most messages were delivered: the index of statuses leads past them, "not equal" would look at each.
    others = Q(status__gt="", status__lt=DELIVERED) | Q(status__gt=DELIVERED)
    found = Message.objects.filter(others, pk__gte=key_from(midnight(since)))
    newest = found.first()
    if newest is None or f"messages:{newest.pk}" in hidden:
        return Source([], 0)
    count = found[:COUNTED].count()
    statuses = sorted(found.order_by("status").values_list("status", flat=True).distinct())
    query = urlencode({"source": "copy", "status": statuses, "start_date": since}, doseq=True)
    item = Item(
        key=f"messages:{newest.pk}",
        group="system",
        state="warn",
        icon="webhook",
        fact=f"{count:,} message{'' if count == 1 else 's'} not successful,",
        rest=f"newest {newest.event or 'without an event'}",
        meta=f"since {wording.day(since)}, from the local copy",
        when=newest.at,
        url=f"{reverse('messaging:index')}?{query}",
        verb="Show messages",
    )
    return Source([item], 1)


def _of_delinquent(record: Record) -> Item:
    loan = memory.last(record, Loan)
    overdue = schedule_of(loan).overdue(timezone.localdate()) if loan else []
    amount = wording.money(total(row.total for row in overdue))
    words = f"{len(overdue)} installment{'' if len(overdue) == 1 else 's'} overdue"
    return Item(
        key=f"loan:{record.uuid}",
        group="past_due",
        state="bad",
        icon="alert-circle",
        fact="Loan delinquent," if overdue else "Loan delinquent",
        rest=f"{words}, {amount}" if amount else words if overdue else "",
        meta=f"loan {record.uuid[:8]}",
        borrower_uuid=record.borrower_uuid,
        when=overdue[0].due_date if overdue else record.answer_at,
        url=record.get_absolute_url(),
        verb=VERBS[Kind.LOAN],
    )


def _lines_due(hidden: set[str], today: date) -> Source:
    """Payments of the next days, the soonest first; accounts past due stand above."""
    listed = f"{reverse('credit_lines:index')}?sort=due"
    return _source(_due(Kind.LINE, today), hidden, _of_line_due, "lines with a payment due", listed)


def _loans_due(hidden: set[str], today: date) -> Source:
    listed = f"{reverse('loans:index')}?sort=due"
    return _source(_due(Kind.LOAN, today), hidden, _of_loan_due, "loans with a payment due", listed)


def _due(kind: Kind, today: date) -> QuerySet[Record]:
    until = today + timedelta(days=DUE_DAYS)
    found = known(kind).filter(flagged=False, due_date__gte=today, due_date__lte=until)
    return found.order_by("due_date", "id")


def _of_line_due(record: Record) -> Item | None:
    told = memory.last(record, Statement)
    amount = told.payment_amount_due if told else None
    if not record.due_date or (amount is not None and amount <= 0):
        return None
    return _of_due(record, record.due_date, wording.money(amount), "")


def _of_loan_due(record: Record) -> Item | None:
    loan, today = memory.last(record, Loan), timezone.localdate()
    row = schedule_of(loan).next_due(today) if loan else None
    if not loan or not row or not row.due_date or row.due_date > today + timedelta(days=DUE_DAYS):
        return None
    autopay = {True: ", autopay on", False: ", autopay off", None: ""}[loan.autopay_enabled]
    return _of_due(record, row.due_date, wording.money(row.total), autopay)


def _of_due(record: Record, day: date, amount: str | None, autopay: str) -> Item:
    return Item(
        key=f"due:{record.uuid}:{day}",
        group="payments",
        state="waiting",
        icon="calendar-event",
        fact=f"Payment of {amount} due" if amount else "Payment due",
        rest=wording.day(day, weekday=True) or "",
        meta=f"{record.get_kind_display().split()[0].lower()} {record.uuid[:8]}{autopay}",
        borrower_uuid=record.borrower_uuid,
        when=day,
        url=record.get_absolute_url(),
        verb=VERBS[Kind(record.kind)],
    )


def _handovers(hidden: set[str]) -> Source:
    """Borrowers created here lately of whom something was not yet sent."""
    since = timezone.now() - timedelta(days=ONBOARDED_DAYS)
    created = WriteIntent.objects.filter(
        operation="borrowers.create_commercial", state=WriteIntent.State.CONFIRMED, finished_at__gte=since
    )
    looked_at = list(created[: SHOWN + len(hidden)])
    left = {record.uuid: tasks for record, tasks in left_of(one.borrower_uuid for one in looked_at)}
    found = [_of_handover(one, left[one.borrower_uuid]) for one in looked_at if left.get(one.borrower_uuid)]
    items = [one for one in found if one.key not in hidden]
    return Source(items, len(items))


def _of_handover(intent: WriteIntent, tasks: Sequence[Task]) -> Item:
    more = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
    return Item(
        key=f"handover:{intent.borrower_uuid}",
        group="",
        state="waiting",
        icon="list-check",
        fact=tasks[0].title,
        rest=more.strip(),
        meta="hand-over list",
        borrower_uuid=intent.borrower_uuid,
        when=intent.finished_at,
        url=f"{intent.borrower_url}#handover",
        verb="Complete",
        owner_id=intent.actor_id,
    )


def _drafts(hidden: set[str], user: User) -> Source:
    old = Draft.objects.filter(owner=user, updated_at__lt=timezone.now() - timedelta(days=1))
    items = [_of_draft(one) for one in old[: SHOWN + len(hidden)]]
    kept = [one for one in items if one.key not in hidden]
    return Source(kept[:SHOWN], len(kept))


def _of_draft(draft: Draft) -> Item:
    return Item(
        key=f"draft:{draft.pk}",
        group="",
        state="neutral",
        icon="file-pencil",
        fact="Draft not sent:",
        rest=draft.title,
        meta=f"at the step {draft.step_label}",
        when=draft.updated_at,
        url=draft.get_absolute_url(),
        verb="Go on",
        owner_id=draft.owner_id,
    )


def _money(record: Record) -> str:
    return wording.money(record.amount) or "an amount that was not told"


def borrowers_of(items: Iterable[Item]) -> Mapping[str, Record]:
    """The borrower of each line by uuid, in one query."""
    uuids = {item.borrower_uuid for item in items}
    return {one.uuid: one for one in Record.objects.filter(kind=Kind.BORROWER, uuid__in=uuids)}
