"""How a job ends: each way leads to one end, whoever else works on it."""

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


def begun(work: Callable[[Progress], object], kind: JobKind = scripted) -> Job:
    """A job that does this once it is worked off."""
    SCRIPTS["this"] = work
    return start_job(kind, script="this")


def worked_off(job: Job) -> Job:
    call_command("work", batch=True)
    job.refresh_from_db()
    return job


def test_what_it_returns_is_its_result() -> None:
    ended = worked_off(begun(lambda progress: {"new": 12}))
    assert (ended.state, ended.result, ended.lease_until) == ("done", {"new": 12}, None)


def test_what_raises_is_tried_again_later_and_given_up_in_the_end() -> None:
    job = begun(lambda progress: {}["nothing"])
    assert worked_off(job).state == "waiting"
    assert "KeyError. Retrying" in job.words
    assert job.due_at > job.created_at + RETRY_PAUSE
    assert worked_off(job).state == "failed"
    assert job.words == "Failed 2 times, last with KeyError."


def test_one_that_runs_is_cancelled_at_its_next_step() -> None:
    def cancelled(progress: Progress) -> None:
        progress.begin(total=5)
        assert Job.objects.get(pk=progress.job.pk).cancel()
        progress.step(5, words="never told")
        progress.begin(total=1)

    ended = worked_off(begun(cancelled))
    assert (ended.state, ended.attempts, ended.cancel()) == ("cancelled", 1, False)


def test_one_that_was_cancelled_and_then_raises_is_not_tried_again() -> None:
    def cancelled(progress: Progress) -> None:
        assert Job.objects.get(pk=progress.job.pk).cancel()
        raise KeyError("nothing")

    assert worked_off(begun(cancelled)).state == "cancelled"


def test_a_worker_that_lost_its_job_changes_nothing_any_more() -> None:
    def frozen(progress: Progress) -> None:
        with time_machine.travel(timedelta(hours=1) + progress.job.created_at):
            queue.recover_lost_jobs()
        progress.begin(total=1)

    left = worked_off(begun(frozen))
    assert (left.state, left.attempts, left.words) == (
        "waiting",
        1,
        "The worker was lost at attempt 1. Resuming.",
    )


def test_a_job_that_kills_its_worker_every_time_is_given_up() -> None:
    job = begun(lambda progress: None)
    for _ in range(scripted.attempts):
        assert execution.claim(str(job.pk))
        with time_machine.travel(timedelta(hours=1)):
            queue.recover_lost_jobs()
    job.refresh_from_db()
    assert (job.state, job.words) == ("failed", "Stopped: the worker was lost 2 times.")


def test_a_long_one_lets_another_go_first() -> None:
    def long(progress: Progress) -> None:
        start_job(scripted, script="another")
        progress.resume(remaining=1)
        progress._started -= MIN_SLICE.total_seconds()
        progress.resume(remaining=1)
        progress.finish("failed")

    job = worked_off(begun(long, patient))
    assert (job.state, job.attempts) == ("waiting", 0)


def test_a_second_delivery_does_nothing() -> None:
    job = begun(lambda progress: None)
    execution.run_job(str(job.pk))
    execution.run_job(str(job.pk))
    assert Job.objects.get(pk=job.pk).attempts == 1


def test_what_the_engine_lost_is_sent_again_and_what_it_has_is_not() -> None:
    begun(lambda progress: None)
    with time_machine.travel(RESEND_AFTER + timedelta(seconds=1)):
        queue.send_due_jobs()
        assert DBTaskResult.objects.count() == 1
    DBTaskResult.objects.all().delete()
    with time_machine.travel(2 * RESEND_AFTER + timedelta(seconds=2)):
        queue.send_due_jobs()
    assert DBTaskResult.objects.count() == 1


def test_what_could_not_be_sent_stays_due() -> None:
    begun(lambda progress: None)
    DBTaskResult.objects.all().delete()
    with time_machine.travel(timezone.now() + RESEND_AFTER + timedelta(seconds=1), tick=False):
        databases.fill_the_disk(DBTaskResult._meta.db_table)
        with pytest.raises(DatabaseError, match="disk is full"):
            queue.send_due_jobs()
        databases.free_the_disk(DBTaskResult._meta.db_table)
        queue.send_due_jobs()
    assert DBTaskResult.objects.count() == 1


def test_what_was_rolled_back_is_never_begun() -> None:
    with transaction.atomic():
        begun(lambda progress: None)
        transaction.set_rollback(True)
    assert (Job.objects.count(), DBTaskResult.objects.count(), Worker.objects.count()) == (0, 0, 0)


def test_a_kind_that_the_code_no_longer_has_fails_in_words() -> None:
    job = begun(lambda progress: None)
    Job.objects.update(name="tests.forgotten")
    assert worked_off(job).words == "The worker doesn’t support this kind of job."


def test_the_engine_is_told_an_id_and_nothing_else() -> None:
    job = begun(lambda progress: None)
    assert DBTaskResult.objects.get().args_kwargs == {"args": [str(job.pk)], "kwargs": {}}
