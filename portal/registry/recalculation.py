"""Calculates the figures of accounts anew where a business date has passed that changes them.

A job does it right after business midnight. Until it has run, requests do it before they read. Answers that another
version of the portal saved, and accounts without figures, are found the same way; the job alone also recalculates what
follows rules of an earlier version.
"""

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from portal.registry import store
from portal.registry.figures import ACCOUNTS, FIGURE_COLUMNS, FIGURES_VERSION
from portal.registry.models import STALE_FIGURES, Kind, Record
from portal.registry.records import active_records, records_by_key, update_records
from portal.registry.rollup import roll_up
from portal.runtime.business_date import business_date
from portal.runtime.database import write_if_possible
from servicing.figures import FOREVER

BATCH_SIZE = 500
MAX_PER_REQUEST = 1_000


def has_outdated_figures(*, or_earlier_rules: bool = False) -> bool:
    """Whether figures of an account hold no longer, or with ``or_earlier_rules`` were made by an earlier version."""
    found = outdated_accounts(or_earlier_rules=or_earlier_rules)
    parts = [one.values("pk").query.get_compiler(connection=connection).as_sql() for one in found]
    with connection.cursor() as cursor:  # In one statement, because every request asks.
        cursor.execute(
            f"SELECT {' OR '.join(f'EXISTS ({sql})' for sql, _ in parts)}",
            [one for _, parameters in parts for one in parameters],
        )
        return bool(cursor.fetchone()[0])


def outdated_accounts(*, or_earlier_rules: bool) -> list[QuerySet[Record]]:
    """The accounts to recalculate, one query for each step into an index.

    With an OR, PostgreSQL would read the whole index.
    """
    conditions = [
        Q(figures_good_through__lt=business_date()),
        Q(figures_good_through__isnull=True),
        STALE_FIGURES,
    ]
    if or_earlier_rules:
        is_read = Q(answer_at__isnull=False)
        conditions += [
            is_read & Q(figures_version__lt=FIGURES_VERSION),
            is_read & Q(figures_version__isnull=True),
        ]
    return [active_records(kind).filter(condition) for condition in conditions for kind in ACCOUNTS]


def recalculate_batch(size: int = BATCH_SIZE, *, or_earlier_rules: bool = False) -> int:
    """Calculate the figures of some of these accounts, and their borrowers' totals; return how many."""
    with transaction.atomic():
        keys: list[int] = []
        for found in outdated_accounts(or_earlier_rules=or_earlier_rules):
            keys += found.values_list("pk", flat=True)[: size - len(keys)] if len(keys) < size else []
        records = list(Record.objects.filter(pk__in=keys).order_by("pk").select_for_update())
        lists = records_by_key((Kind.LOAN_REPAYMENTS, one.uuid) for one in records if one.kind == Kind.LOAN)
        repayments = {one.uuid: one for one in lists}
        for record in records:
            recalculate(record, repayments.get(record.uuid))
        update_records(records, [*FIGURE_COLUMNS, "opened_on"])
        roll_up({record.borrower_uuid for record in records})
    return len(records)


def recalculate(record: Record, repayments: Record | None) -> None:
    """Set the figures of an account from its saved answer and the saved list of its repayments."""
    answer = store.account_answer(record)
    columns = store.columns_from(answer) if answer else {"figures_good_through": FOREVER}
    for name in (*FIGURE_COLUMNS, "opened_on"):
        if name in columns:
            setattr(record, name, columns[name])
    record.figures_from = record.answer_at
    store.set_repayment_columns(record, repayments, answer)


def ensure_current_figures() -> None:
    """Recalculate before a request reads, as far as that takes no longer than a moment; the job does the rest."""
    if has_outdated_figures():
        write_if_possible(lambda: [recalculate_batch() for _ in range(MAX_PER_REQUEST // BATCH_SIZE)])
