"""How a job runs: its result, retries, cancellation, and what happens when its worker is lost."""

from collections.abc import Callable
from datetime import timedelta

import pytest
import time_machine
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from portal.jobs import queue
from portal.jobs.execution import MIN_SLICE, RETRY_PAUSE, Progress
from portal.jobs.kinds import JobKind
from portal.jobs.models import Job, Worker
from portal.jobs.queue import start_job
from tests.portal.jobs.scripted import SCRIPTS, patient, scripted

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


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
    assert (job.state, job.result) == ("done", {"new": 12})


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
            assert queue.take_job()
        with transaction.atomic():
            Worker.objects.create(id="an effect", beat_at=timezone.now())
            progress.begin(total=1)

    job = run_worker(start_scripted(lose_job))
    assert (job.state, job.attempts, job.words) == (
        "running",
        2,
        "The worker was lost at attempt 1. Resuming.",
    )
    assert not Worker.objects.exists()


def test_a_job_that_keeps_losing_its_worker_fails() -> None:
    job = start_scripted(lambda progress: None)
    for hour in range(scripted.attempts):
        with time_machine.travel(timezone.now() + timedelta(hours=hour)):
            assert queue.take_job()
    with time_machine.travel(timezone.now() + timedelta(hours=scripted.attempts)):
        assert queue.take_job() is None
    job.refresh_from_db()
    assert (job.state, job.words) == ("failed", "Stopped: the worker was lost 2 times.")


def test_a_canceled_job_whose_worker_was_lost_ends() -> None:
    job = start_scripted(lambda progress: None)
    assert queue.take_job()
    assert job.cancel()
    with time_machine.travel(timezone.now() + timedelta(hours=1)):
        assert queue.take_job() is None
    job.refresh_from_db()
    assert (job.state, job.finished_at is None) == ("cancelled", False)


def test_a_long_job_yields_to_another() -> None:
    def outrun_slice(progress: Progress) -> None:
        start_job(scripted, script="another")
        progress.resume(remaining=1)
        progress._started -= MIN_SLICE.total_seconds()
        progress.resume(remaining=1)
        progress.finish("failed")

    job = run_worker(start_scripted(outrun_slice, patient))
    assert (job.state, job.attempts) == ("waiting", 0)


def test_a_job_is_taken_once() -> None:
    job = start_scripted(lambda progress: None)
    assert (queue.take(job) is None, queue.take(job) is None, queue.take_job()) == (False, True, None)


def test_the_job_that_has_been_due_longest_is_taken_first() -> None:
    first, second = (start_scripted(lambda progress: None) for _ in range(2))
    Job.objects.filter(pk=second.pk).update(due_at=first.due_at - timedelta(minutes=1))
    assert [one and one.pk for one in (queue.take_job(), queue.take_job())] == [second.pk, first.pk]


def test_a_retry_waits_until_it_is_due() -> None:
    job = run_worker(start_scripted(lambda progress: {}["nothing"]))
    assert queue.take_job() is None
    with time_machine.travel(job.due_at):
        taken = queue.take_job()
    assert taken is not None
    assert (taken.pk, taken.attempts) == (job.pk, 2)


def test_a_rolled_back_job_never_starts() -> None:
    with transaction.atomic():
        start_scripted(lambda progress: None)
        transaction.set_rollback(True)
    assert (Job.objects.count(), Worker.objects.count()) == (0, 0)


def test_an_unknown_kind_of_job_fails_with_a_message() -> None:
    job = start_scripted(lambda progress: None)
    Job.objects.update(name="tests.forgotten")
    assert run_worker(job).words == "The worker doesn’t support this kind of job."
