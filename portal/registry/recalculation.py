"""Calculates the figures of accounts anew where a business date has passed that changes them.

A job does it right after business midnight. Until it has run, requests do it before they read. Records saved before
there were figures have none yet and are found the same way.
"""

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.registry import store
from portal.registry.figures import ACCOUNTS, FIGURE_COLUMNS
from portal.registry.models import Kind, Record
from portal.registry.records import update_records
from portal.registry.rollup import roll_up
from portal.runtime.business_date import business_date
from portal.runtime.database import write_if_possible
from servicing import Loan, Statement
from servicing.figures import FOREVER

BATCH_SIZE = 500
MAX_PER_REQUEST = 1_000


def has_outdated_figures() -> bool:
    """Whether a business date has passed that changes the figures of an account."""
    return any(outdated_accounts(kind).exists() for kind in ACCOUNTS)


def outdated_accounts(kind: Kind) -> QuerySet[Record]:
    """The accounts of a kind whose figures hold no longer, or were never calculated."""
    is_outdated = Q(figures_good_through__lt=business_date()) | Q(figures_good_through__isnull=True)
    return Record.objects.filter(is_outdated, kind=kind, archived_at__isnull=True)


def recalculate_batch(size: int = BATCH_SIZE) -> int:
    """Calculate the figures of some outdated accounts, and their borrowers' totals; return how many."""
    with transaction.atomic():
        keys = [pk for kind in ACCOUNTS for pk in outdated_accounts(kind).values_list("pk", flat=True)[:size]]
        records = list(Record.objects.filter(pk__in=keys[:size]).order_by("pk").select_for_update())
        for record in records:
            recalculate(record)
        update_records(records, FIGURE_COLUMNS)
        roll_up({record.borrower_uuid for record in records})
    return len(records)


def recalculate(record: Record) -> None:
    """Set the figures of an account from its saved answer."""
    answer: Loan | Statement | None = (
        store.last_answer(record, Loan) if record.kind == Kind.LOAN else store.last_answer(record, Statement)
    )
    columns = store.columns_from(answer) if answer else {"figures_good_through": FOREVER}
    for name in FIGURE_COLUMNS:
        if name in columns:
            setattr(record, name, columns[name])


def ensure_current_figures() -> None:
    """Recalculate before a request reads, as far as that takes no longer than a moment; the job does the rest."""
    if has_outdated_figures():
        write_if_possible(lambda: [recalculate_batch() for _ in range(MAX_PER_REQUEST // BATCH_SIZE)])
