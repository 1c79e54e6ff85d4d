"""How a job runs: its result, retries, cancellation, and what happens when its worker is lost."""

from collections.abc import Callable
from datetime import timedelta

import pytest
import time_machine
from django.core.management import call_command
from django.db import DatabaseError, transaction
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from portal.jobs import execution, queue
from portal.jobs.execution import MIN_SLICE, RETRY_PAUSE, Progress
from portal.jobs.kinds import JobKind
from portal.jobs.models import RESEND_AFTER, Job, Worker
from portal.jobs.queue import start_job
from tests import databases
from tests.portal.jobs.scripted import SCRIPTS, patient, scripted

pytestmark = pytest.mark.django_db(transaction=True)


def start_scripted(work: Callable[[Progress], object], kind: JobKind = scripted) -> Job:
    """Start a job that runs this function."""
    SCRIPTS["this"] = work
    return start_job(kind, script="this")


def run_worker(job: Job) -> Job:
    call_command("work", batch=True)
    job.refresh_from_db()
    return job


def test_the_return_value_is_the_job_result() -> None:
    job = run_worker(start_scripted(lambda progress: {"new": 12}))
    assert (job.state, job.result, job.lease_until) == ("done", {"new": 12}, None)


def test_a_failing_job_is_retried_and_then_fails() -> None:
    job = start_scripted(lambda progress: {}["nothing"])
    assert run_worker(job).state == "waiting"
    assert "KeyError. Retrying" in job.words
    assert job.due_at > job.created_at + RETRY_PAUSE
    assert run_worker(job).state == "failed"
    assert job.words == "Failed 2 times, last with KeyError."


def test_a_running_job_is_cancelled_at_its_next_step() -> None:
    def cancel_and_continue(progress: Progress) -> None:
        progress.begin(total=5)
        assert Job.objects.get(pk=progress.job.pk).cancel()
        progress.step(5, words="never told")
        progress.begin(total=1)

    job = run_worker(start_scripted(cancel_and_continue))
    assert (job.state, job.attempts, job.cancel()) == ("cancelled", 1, False)


def test_a_cancelled_job_that_raises_is_not_retried() -> None:
    def cancel_and_raise(progress: Progress) -> None:
        assert Job.objects.get(pk=progress.job.pk).cancel()
        raise KeyError("nothing")

    assert run_worker(start_scripted(cancel_and_raise)).state == "cancelled"


def test_a_worker_that_lost_its_job_cannot_change_it() -> None:
    def lose_job(progress: Progress) -> None:
        with time_machine.travel(timedelta(hours=1) + progress.job.created_at):
            queue.recover_lost_jobs()
        progress.begin(total=1)

    job = run_worker(start_scripted(lose_job))
    assert (job.state, job.attempts, job.words) == (
        "waiting",
        1,
        "The worker was lost at attempt 1. Resuming.",
    )


def test_a_job_that_keeps_losing_its_worker_fails() -> None:
    job = start_scripted(lambda progress: None)
    for _ in range(scripted.attempts):
        assert execution.claim(str(job.pk))
        with time_machine.travel(timedelta(hours=1)):
            queue.recover_lost_jobs()
    job.refresh_from_db()
    assert (job.state, job.words) == ("failed", "Stopped: the worker was lost 2 times.")


def test_a_long_job_gives_way_to_another() -> None:
    def outrun_slice(progress: Progress) -> None:
        start_job(scripted, script="another")
        progress.resume(remaining=1)
        progress._started -= MIN_SLICE.total_seconds()
        progress.resume(remaining=1)
        progress.finish("failed")

    job = run_worker(start_scripted(outrun_slice, patient))
    assert (job.state, job.attempts) == ("waiting", 0)


def test_a_job_delivered_twice_runs_once() -> None:
    job = start_scripted(lambda progress: None)
    execution.run_job(str(job.pk))
    execution.run_job(str(job.pk))
    assert Job.objects.get(pk=job.pk).attempts == 1


def test_only_a_job_the_engine_lost_is_resent() -> None:
    start_scripted(lambda progress: None)
    with time_machine.travel(RESEND_AFTER + timedelta(seconds=1)):
        queue.send_due_jobs()
        assert DBTaskResult.objects.count() == 1
    DBTaskResult.objects.all().delete()
    with time_machine.travel(2 * RESEND_AFTER + timedelta(seconds=2)):
        queue.send_due_jobs()
    assert DBTaskResult.objects.count() == 1


def test_a_job_that_could_not_be_sent_stays_due() -> None:
    start_scripted(lambda progress: None)
    DBTaskResult.objects.all().delete()
    with time_machine.travel(timezone.now() + RESEND_AFTER + timedelta(seconds=1), tick=False):
        databases.reject_inserts(DBTaskResult._meta.db_table)
        with pytest.raises(DatabaseError, match="disk is full"):
            queue.send_due_jobs()
        databases.allow_inserts(DBTaskResult._meta.db_table)
        queue.send_due_jobs()
    assert DBTaskResult.objects.count() == 1


def test_a_rolled_back_job_never_starts() -> None:
    with transaction.atomic():
        start_scripted(lambda progress: None)
        transaction.set_rollback(True)
    assert (Job.objects.count(), DBTaskResult.objects.count(), Worker.objects.count()) == (0, 0, 0)


def test_an_unknown_kind_of_job_fails_with_a_message() -> None:
    job = start_scripted(lambda progress: None)
    Job.objects.update(name="tests.forgotten")
    assert run_worker(job).words == "The worker doesn’t support this kind of job."


def test_the_engine_receives_only_the_job_id() -> None:
    job = start_scripted(lambda progress: None)
    assert DBTaskResult.objects.get().args_kwargs == {"args": [str(job.pk)], "kwargs": {}}
