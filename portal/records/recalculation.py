"""Recalculates the figures of accounts that a new business date changes.

A job does it right after business midnight; until then, requests do it before they read. A migration that changes a
rule empties ``figures_good_through``, so that the same job recalculates every account.
"""

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.core.business_date import business_date
from portal.records import store
from portal.records.columns import columns_from
from portal.records.figures import (
    Lateness,
    copy_day,
    save_changes,
)
from portal.records.models import LISTED, Account, Answer, Kind
from portal.records.rollup import roll_up
from portal.records.rows import answers_by_key, update_records
from servicing.figures import FOREVER

BATCH_SIZE = 500
MAX_PER_REQUEST = 1_000


def outdated_accounts() -> QuerySet[Account]:
    good_through = Q(figures_good_through__lt=business_date()) | Q(figures_good_through__isnull=True)
    return Account.objects.filter(LISTED, good_through)


def recalculate_batch() -> int:
    """Recalculate some of these accounts and their borrowers' totals; return how many."""
    with transaction.atomic():
        keys = list(outdated_accounts().values_list("pk", flat=True)[:BATCH_SIZE])
        found = Account.objects.filter(pk__in=keys).order_by("pk").select_related("answer")
        records = list(found.select_for_update(of=("self",)))
        lists = answers_by_key((Kind.LOAN_REPAYMENTS, one.uuid) for one in records if one.kind == Kind.LOAN)
        repayments = {one.uuid: one for one in lists}
        # What other rules say differently is no event.
        same_rules = [record for record in records if record.figures_good_through]
        lateness = [(record, Lateness.of(record)) for record in same_rules]
        for record in records:
            recalculate(record, repayments.get(record.uuid))
        save_changes(lateness)
        update_records(records, Account.FIGURES)
        roll_up({record.borrower_uuid for record in records})
    return len(records)


def recalculate(record: Account, repayments: Answer | None) -> None:
    """Set an account's figures from its saved answer and its saved list of repayments."""
    answer = store.account_answer(record)
    columns = columns_from(answer, copy_day(record)) if answer else {"figures_good_through": FOREVER}
    for name in Account.FIGURES:
        if name in columns:
            setattr(record, name, columns[name])
    store.set_repayment_columns(record, repayments, answer)


def ensure_current_figures() -> None:
    """Recalculate for a moment before a request reads; the job does the rest."""
    for _ in range(MAX_PER_REQUEST // BATCH_SIZE):
        if not outdated_accounts().exists():
            return
        recalculate_batch()
