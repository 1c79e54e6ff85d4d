"""Fills the database that DATA_DIR or DATABASE_URL names with invented borrowers and messages.

    python -m tests.bench.generate [--borrowers N] [--messages N]

Hides how rows get into each database quickly: nothing waits for the disk, and all indexes are made after the rows. So
nothing else may use the database, and if this is killed, the database is unusable.
"""

import argparse
import gc
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

import django

from tests.bench.database import gather_statistics, skip_disk_waits

BATCH = 5_000
"""Borrowers or messages in one transaction."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m tests.bench.generate", description=__doc__)
    for name in ("borrowers", "messages"):
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N")
    wanted = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    from django.core.management import call_command

    from portal.core.database import exclusive_use

    with exclusive_use() as is_alone:
        if not is_alone:
            sys.exit("The database is in use. Stop the portal and its workers first.")
        call_command("migrate", verbosity=0)
        if holds_real_data():
            sys.exit("This database holds records. Invented ones are added to it only with DEBUG=1.")
        generate(wanted.borrowers, wanted.messages)
    sys.stdout.write(f"Generated {wanted.borrowers:,} borrowers and {wanted.messages:,} messages.\n")


def holds_real_data() -> bool:
    """Return whether the database has records or messages, and DEBUG is off."""
    from django.conf import settings

    from portal.messaging.models import Message
    from portal.records.models import Account, Borrower

    return not settings.DEBUG and any(one.objects.exists() for one in (Borrower, Account, Message))


def generate(borrowers: int = 0, messages: int = 0) -> None:
    """Add borrowers and messages, then analyze the tables as a server does after a while."""
    skip_disk_waits()
    gc.disable()  # There are no cycles here, and searching for them takes a tenth of the time.
    try:
        add_borrowers(borrowers)
        add_messages(messages)
    finally:
        gc.enable()
        gather_statistics()


def add_borrowers(number: int) -> None:
    from django.db.models import OuterRef, Subquery

    from portal.records.models import Account, Answer, Application, Borrower, KeyPerson, Kind, Repayment
    from portal.records.spelling import save_words
    from tests.bench.households import (
        ANSWER_COLUMNS,
        APPLICATION_COLUMNS,
        BORROWER_COLUMNS,
        COLUMNS,
        PERSON_COLUMNS,
        REPAYMENT_COLUMNS,
        Households,
    )

    stored = Account.objects.count()
    households = Households(seed=stored)
    answer = Answer.objects.filter(kind=OuterRef("kind"), uuid=OuterRef("uuid"))
    tables = {
        Kind.APPLICATION: ("registry_application", APPLICATION_COLUMNS),
        Kind.BORROWER: ("registry_borrower", BORROWER_COLUMNS),
        Kind.KEY_PERSON: ("registry_keyperson", PERSON_COLUMNS),
    }
    with ExitStack() as stack:
        for table in ("registry_record", *(table for table, _ in tables.values())):
            stack.enter_context(create_indexes_last(table, is_worth_it=number > stored))
        for part in parts(0, number):
            rows = list(chain.from_iterable(map(households.rows, part)))
            others = [row for row, _ in rows if row["kind"] not in tables]
            write("registry_record", COLUMNS, [_values(others, COLUMNS)])
            for kind, (table, columns) in tables.items():
                of_kind = [row for row, _ in rows if row["kind"] == kind]
                write(table, columns, [_values(of_kind, columns)])
            write("registry_answer", ANSWER_COLUMNS, [[told for _, told in rows]])
        Account.objects.filter(answer=None, answer_at__isnull=False).update(
            answer=Subquery(answer.values("pk"))
        )
        for model in (Application, Borrower, KeyPerson):
            own = Answer.objects.filter(kind=model.kind, uuid=OuterRef("uuid")).values("pk")
            model._default_manager.filter(answer=None, answer_at__isnull=False).update(answer=Subquery(own))
        for named in (Borrower, KeyPerson):
            save_words(named._default_manager.only("name").iterator(BATCH))
    loan = Account.objects.filter(kind="loan", borrower_uuid=OuterRef("borrower_uuid"))
    with create_indexes_last("registry_repayment", is_worth_it=number > stored):
        write("registry_repayment", REPAYMENT_COLUMNS, [households.repayments])
        Repayment.objects.filter(account=None).update(account=Subquery(loan.values("pk")))


def _values(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> list[list[Any]]:
    return [[row[name] for name in columns] for row in rows]


def add_messages(number: int) -> None:
    from portal.messaging.models import Message
    from tests.bench.messages import row_batches

    stored = Message.objects.count()
    with create_indexes_last("messaging_message", is_worth_it=number > stored):
        columns = [str(field.column) for field in Message._meta.concrete_fields if not field.primary_key]
        write("messaging_message", columns, row_batches(parts(stored, number), stored + number))


def parts(first: int, number: int) -> list[range]:
    """Return the numbers from the first on, in batches."""
    end = first + number
    return [range(start, min(start + BATCH, end)) for start in range(first, end, BATCH)]


def write(table: str, columns: Sequence[str], batches: Iterable[Iterable[list[Any]]]) -> None:
    """Insert rows of database values, with a transaction for each batch."""
    from django.db import connection, transaction

    into = f"{table} ({', '.join(columns)})"
    marks = ", ".join(["%s"] * len(columns))
    for rows in batches:
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                with cursor.copy(f"COPY {into} FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
            else:
                cursor.executemany(f"INSERT INTO {into} VALUES ({marks})", list(rows))


@contextmanager
def create_indexes_last(table: str, *, is_worth_it: bool) -> Iterator[None]:
    """Drop the table's indexes and create them after all rows, which is faster than row by row."""
    if not is_worth_it:
        yield
        return
    from django.db import connection

    with connection.schema_editor() as editor:
        indexes = indexes_of(table)
        for name, _ in indexes:
            editor.execute(f"DROP INDEX {name}")
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            for _, statement in indexes:
                editor.execute(statement)


def indexes_of(table: str) -> list[tuple[str, str]]:
    """Return the name and statement of each index that no constraint needs."""
    from django.db import connection

    found = {
        "sqlite": "SELECT name, sql FROM sqlite_master WHERE tbl_name = %s AND type = 'index' AND sql IS NOT NULL",
        "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s"
        " AND indexname NOT IN (SELECT conname FROM pg_constraint)",
    }
    with connection.cursor() as cursor:
        cursor.execute(found[connection.vendor], [table])
        return list(cursor.fetchall())


if __name__ == "__main__":
    main(sys.argv[1:])
