"""Saves totals of a borrower's accounts on the borrower's own row, where lists can filter and sort by them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

from portal.core.business_date import business_date
from portal.records.figures import SavedAccount, parts_of, rank, stored_amount
from portal.records.models import LISTED, Account, Application, Borrower, Kind
from portal.records.rows import update_records
from servicing.figures import PastDue, add_past_due

DECIDED = ("APPROVED", "REJECTED")
OPEN = "OPEN"
_COLUMNS = ["past_due", "past_due_rank", "oldest_unpaid_on", "days_past_due", "is_past_due", "decision"]


@dataclass
class BorrowerTotals:
    today: date
    accounts: list[SavedAccount] = field(default_factory=list)
    decision: str = ""
    has_open_application: bool = False

    @property
    def loans(self) -> int:
        return sum(account.kind == Kind.LOAN for account in self.accounts)

    @property
    def lines(self) -> int:
        return sum(account.kind == Kind.LINE for account in self.accounts)

    @property
    def oldest_copy(self) -> date | None:
        """The business date of the oldest answer about its loans and lines."""
        return min((one.answer_day for one in self.accounts if one.answer_day), default=None)

    @property
    def oldest_late_copy(self) -> date | None:
        """The same of those that are past due."""
        return min(
            (one.answer_day for one in self.accounts if one.is_past_due and one.answer_day), default=None
        )

    @cached_property
    def past_due(self) -> PastDue:
        return add_past_due(parts_of(self.accounts, self.today))


def totals_of(borrower_uuids: Sequence[str]) -> dict[str, BorrowerTotals]:
    """The totals of each of these borrowers, in one query for accounts and one for applications."""
    today = business_date()
    found = {uuid: BorrowerTotals(today) for uuid in borrower_uuids}
    accounts = Account.objects.filter(LISTED, borrower_uuid__in=found)
    rows = accounts.order_by("created_at", "id").values_list("borrower_uuid", *SavedAccount._fields)
    for borrower_uuid, *columns in rows:
        found[borrower_uuid].accounts.append(SavedAccount(*columns))
    applications = Application.objects.filter(LISTED, borrower_uuid__in=found)
    decisions = applications.order_by("created_at", "id").values_list("borrower_uuid", "decision")
    for borrower_uuid, decision in decisions:
        totals = found[borrower_uuid]
        totals.decision = decision
        totals.has_open_application |= decision not in DECIDED
    return found


def borrowers_with_totals(borrower_uuids: Iterable[str]) -> set[str]:
    """Those of these borrowers that have a known past due total."""
    uuids = set(borrower_uuids)
    known = Borrower.objects.filter(uuid__in=uuids, past_due__isnull=False)
    return set(known.values_list("uuid", flat=True)) if uuids else set()


def roll_up(borrower_uuids: Iterable[str]) -> None:
    """Update the sums on the rows of these borrowers.

    Past due is the sum over open loans and lines. A borrower is past due if any of them is. The decision is the latest
    one, or ``OPEN``.
    """
    uuids = set(borrower_uuids)
    if not uuids:
        return
    owners = Borrower.objects.filter(uuid__in=uuids)
    borrowers = list(owners.select_for_update().order_by("id"))
    totals = totals_of([borrower.uuid for borrower in borrowers])
    changed = [borrower for borrower in borrowers if _update_if_changed(borrower, totals[borrower.uuid])]
    update_records(changed, _COLUMNS)


def _update_if_changed(borrower: Borrower, totals: BorrowerTotals) -> bool:
    before = [getattr(borrower, name) for name in _COLUMNS]
    total = totals.past_due
    late = [account for account in totals.accounts if account.is_past_due]
    days = [account.oldest_unpaid_due for account in late if account.oldest_unpaid_due]
    borrower.past_due, borrower.is_past_due = stored_amount(total.amount), total.is_late
    borrower.past_due_rank = rank(borrower.past_due, is_late=total.is_late)
    borrower.oldest_unpaid_on = min(days, default=None)
    borrower.days_past_due = max(
        (one.days_past_due for one in late if one.days_past_due is not None), default=None
    )
    borrower.decision = OPEN if totals.has_open_application else totals.decision
    return before != [getattr(borrower, name) for name in _COLUMNS]
