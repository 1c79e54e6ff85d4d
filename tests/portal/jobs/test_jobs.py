"""Background jobs in one process: starting and running them."""

import pytest
from django.core.management import call_command

from portal.audit.models import Entry
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.lookup.tasks import refresh_portfolio
from portal.records.models import Borrower, Kind
from servicing.sandbox import Sandbox
from tests import given

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


@pytest.fixture
def owner(portal_service: Sandbox) -> Borrower:
    """A borrower with a loan and a line that haven't been read yet."""
    record = given.borrower(portal_service)
    given.loan(portal_service, record)
    given.line(portal_service, record)
    return record


def run_worker() -> None:
    call_command("work", batch=True)


def test_a_job_runs_and_records_its_outcome(owner: Borrower) -> None:
    job = start_job(refresh_portfolio, rate=1000)
    assert (job.state, job.actor_name) == ("waiting", "system")
    run_worker()
    job.refresh_from_db()
    reads = len(given.reads_of(Kind.LOAN, Kind.LINE))
    assert (job.state, job.done, job.total, job.failed, job.attempts) == ("done", reads, reads, 0, 1)
    assert Entry.objects.get(action="lookup.refresh_portfolio").detail == {
        "read": reads,
        "failed": 0,
        "started_by": "system",
    }


def test_a_second_start_joins_the_first(owner: Borrower) -> None:
    assert start_job(refresh_portfolio, rate=1000) == start_job(refresh_portfolio, rate=1000)
    run_worker()
    assert start_job(refresh_portfolio) != Job.objects.earliest("created_at")
