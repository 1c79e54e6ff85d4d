"""The query planner's statistics are updated by the nightly job."""

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection

from portal.audit.models import Actor
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.operations.tasks import forget_old
from servicing.sandbox import Sandbox
from tests import given


def has_statistics() -> bool:
    with connection.cursor() as cursor:
        try:
            cursor.execute("SELECT count(*) FROM sqlite_stat1 WHERE tbl = %s", ["registry_record"])
        except OperationalError:  # The table is missing before the first update.
            return False
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL counts by itself")
def test_a_job_updates_the_statistics(portal_service: Sandbox) -> None:
    given.loan(portal_service, given.borrower(portal_service))
    assert not has_statistics()
    start_job(forget_old, by=Actor.system("test"))
    call_command("work", batch=True)
    assert Job.objects.get(name="operations.forget_old").state == Job.State.DONE
    assert has_statistics()
