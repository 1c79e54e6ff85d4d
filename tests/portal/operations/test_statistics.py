"""What the database plans by is counted in the background."""

import pytest
from django.core.management import call_command
from django.db import connection

from portal.audit.models import Actor
from portal.jobs.models import Job
from portal.jobs.queue import start
from portal.operations.tasks import forget_old
from servicing.sandbox import Sandbox
from tests import given


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL counts by itself")
def test_the_database_knows_how_many_records_there_are(desk: Sandbox) -> None:
    given.borrower(desk)
    start(forget_old, by=Actor.system("test"))
    call_command("work", batch=True)
    assert Job.objects.get(name="operations.forget_old").state == Job.State.DONE
    with connection.cursor() as cursor:
        counted = cursor.execute("SELECT count(*) FROM sqlite_stat1 WHERE tbl = 'registry_record'").fetchone()
    assert counted[0] > 0
