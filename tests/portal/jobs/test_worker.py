"""Worker processes that are stopped, killed or cut off from the database."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest
from django.core.management import call_command
from django.db import connection

from portal.audit.models import Entry
from portal.jobs.models import Job, Worker
from portal.jobs.queue import start_job
from portal.lookup.tasks import refresh_portfolio
from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.conftest import CLIENT_ID, SECRET
from tests.databases import database_url

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ACCOUNTS = 8


@contextmanager
def worker(
    portal_service: Sandbox, stderr: IO[bytes] | None = None, **settings: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``manage.py work`` alongside the test."""
    service = {
        "SERVICING_URL": portal_service.url,
        "SERVICING_CLIENT_ID": CLIENT_ID,
        "SERVICING_SECRET": SECRET,
    }
    quick = {
        "JOB_LEASE_SECONDS": "3",
        "JOB_GRACE_SECONDS": "1",
        "REFRESH_MINUTES": "0",
        "MESSAGE_SYNC_MINUTES": "0",
        "LOG_LEVEL": "ERROR",
    }
    environment = os.environ | service | quick | {"DATABASE_URL": database_url()} | settings
    process = subprocess.Popen(
        [sys.executable, "manage.py", "work"], env=environment, cwd=BASE_DIR, stderr=stderr
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(10)


def wait_until(holds: Callable[[], object]) -> None:
    for _ in range(1200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to pass")


@pytest.fixture
def job(portal_service: Sandbox) -> Job:
    """A portfolio refresh that takes about two seconds."""
    owner = given.borrower(portal_service)
    for _ in range(ACCOUNTS // 2):
        given.loan(portal_service, owner)
    return start_job(refresh_portfolio, rate=4)


def reload_job(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def test_another_worker_finishes_a_killed_workers_job(portal_service: Sandbox, job: Job) -> None:
    with worker(portal_service) as first:
        wait_until(lambda: reload_job(job).done > 1)
        first.kill()
    assert reload_job(job).state == "running"
    with worker(portal_service):
        wait_until(lambda: not reload_job(job).is_open)
    finished = reload_job(job)
    assert (finished.state, finished.done, finished.total) == ("done", ACCOUNTS, ACCOUNTS)
    assert (
        ACCOUNTS <= len(portal_service.calls) < ACCOUNTS + finished.attempts
    )  # Each further attempt may repeat the read that was cut off.
    assert Entry.objects.filter(action="lookup.refresh_portfolio").count() == 1


def test_a_stopping_worker_returns_its_job(portal_service: Sandbox, job: Job) -> None:
    with worker(portal_service) as process:
        wait_until(lambda: reload_job(job).done > 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    returned = reload_job(job)
    assert (returned.state, returned.attempts, Worker.objects.get().stopped_at is None) == (
        "waiting",
        0,
        False,
    )
    call_command("work", batch=True)
    assert (reload_job(job).state, reload_job(job).done, len(portal_service.calls)) == (
        "done",
        ACCOUNTS,
        ACCOUNTS,
    )


def test_a_stuck_step_is_interrupted_after_the_grace_period(portal_service: Sandbox, job: Job) -> None:
    portal_service.fail_next("loans.get", delay=20)
    with worker(portal_service) as process:
        wait_until(lambda: portal_service.calls)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert (reload_job(job).state, reload_job(job).attempts) == ("waiting", 0)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a table away is an operational error there alone")
def test_a_worker_survives_an_operational_error(portal_service: Sandbox, job: Job) -> None:
    table = Job._meta.db_table
    databases.run(f"ALTER TABLE {table} RENAME TO away")
    with worker(portal_service) as process:
        wait_until(Worker.objects.exists)
        time.sleep(1)
        assert process.poll() is None
        databases.run(f"ALTER TABLE away RENAME TO {table}")
        wait_until(lambda: reload_job(job).state == "done")


def test_a_worker_survives_and_logs_database_errors(
    portal_service: Sandbox, job: Job, tmp_path: Path
) -> None:
    tables = [Worker._meta.db_table, Job._meta.db_table]
    databases.run(*(f"ALTER TABLE {table} RENAME TO away_{table}" for table in tables))
    log = tmp_path / "log"
    with log.open("wb") as stderr, worker(portal_service, stderr, LOG_FORMAT="json") as process:
        wait_until(lambda: log.read_text().count("\n") > 2)
        assert process.poll() is None
        databases.run(*(f"ALTER TABLE away_{table} RENAME TO {table}" for table in tables))
        wait_until(lambda: reload_job(job).state == "done")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"OperationalError", "ProgrammingError"} & {line.get("error") for line in lines}


def test_two_workers_start_each_due_job_once(portal_service: Sandbox) -> None:
    with worker(portal_service, REFRESH_MINUTES="1440"), worker(portal_service, REFRESH_MINUTES="1440"):
        wait_until(lambda: Worker.objects.count() == 2)
        first_beats = {one.pk: one.beat_at for one in Worker.objects.all()}
        wait_until(lambda: all(one.beat_at > first_beats[one.pk] for one in Worker.objects.all()))
        wait_until(lambda: Job.objects.filter(name=refresh_portfolio.name, state="done").exists())
    names = list(Job.objects.values_list("name", flat=True))
    assert len(names) == len(set(names))
