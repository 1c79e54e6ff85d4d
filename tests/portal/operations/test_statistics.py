"""The query planner's statistics are updated by a job, and after large imports and syncs."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection

from portal.audit.models import Actor
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.lookup.imports import import_ids
from portal.messaging import sync
from portal.operations.tasks import forget_old
from portal.records import table_statistics
from portal.records.models import Account, Kind
from portal.records.rows import active_records
from portal.records.table_statistics import ANALYZE_AFTER_ROWS, NEGLIGIBLE_RATIO, analyze
from servicing.sandbox import Sandbox
from tests import given

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL counts by itself"),
]


def has_statistics(table: str = "registry_record") -> bool:
    with connection.cursor() as cursor:
        try:
            cursor.execute("SELECT count(*) FROM sqlite_stat1 WHERE tbl = %s", [table])
        except OperationalError:  # The table is missing before the first update.
            return False
        return bool(cursor.fetchone()[0])


def test_a_job_updates_the_statistics(portal_service: Sandbox) -> None:
    given.loan(portal_service, given.borrower(portal_service))
    assert not has_statistics()
    start_job(forget_old, by=Actor.system("test"))
    call_command("work", batch=True)
    assert Job.objects.get(name="operations.forget_old").state == Job.State.DONE
    assert has_statistics()


def test_only_a_large_import_updates_the_statistics() -> None:
    head, lines = (
        "kind,uuid,borrower_uuid,label\n",
        [f"loan,loan-{n},owner-{n},\n" for n in range(ANALYZE_AFTER_ROWS)],
    )
    import_ids([head, *lines[:10]], by="test")
    assert not has_statistics()
    assert import_ids([head, *lines], by="test").taken == ANALYZE_AFTER_ROWS
    assert has_statistics()


def test_an_import_counts_as_large_relative_to_the_known_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_statistics, "ANALYZE_AFTER_ROWS", 2)
    Account.objects.bulk_create(
        Account(kind=Kind.LOAN, uuid=f"known-{n}") for n in range(2 * NEGLIGIBLE_RATIO)
    )
    for kind, is_large in (("loan", False), ("line", True)):
        lines = [f"{kind},new-{n},owner,\n" for n in range(2)]
        assert import_ids(["kind,uuid,borrower_uuid,label\n", *lines], by="test").taken == 2
        assert has_statistics() == is_large


def test_only_a_large_sync_updates_the_statistics(
    portal_service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "ANALYZE_AFTER_ROWS", 2)
    for number, is_large in enumerate((False, True)):
        for _ in range(number + 1):
            portal_service.world.message("payment.failed", {})
        call_command("sync_messages", stdout=StringIO())
        assert has_statistics("messaging_message") == is_large


def test_counting_the_most_frequent_kind_uses_an_index() -> None:
    Account.objects.bulk_create(
        Account(kind=Kind.LOAN, uuid=f"loan-{n}", borrower_uuid=f"owner-{n}") for n in range(500)
    )
    Account.objects.bulk_create(Account(kind=kind, uuid="other") for kind in Kind)
    analyze()
    assert "COVERING INDEX" in active_records(Kind.LOAN).order_by().values("kind").explain()
