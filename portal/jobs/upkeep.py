"""What keeps background work going, done again and again by every worker: hand on what was lost, begin what is due.

Each act is one conditional update, so that of several workers who see the same, one does it.
"""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from portal.clocks import match_ahead, match_recent
from portal.jobs import engine, kinds
from portal.jobs.models import LOOK_AGAIN, Job, Schedule, Worker, lease
from portal.jobs.queue import send, start
from portal.jobs.running import LONGEST_PAUSE, worker_id

State = Job.State


def tick() -> None:
    """One round of everything."""
    do_chores()
    hand_on()
    send_due()
    begin_due()


def do_chores() -> None:
    """What belongs to this host, not to a job that any worker may take."""
    for chore in kinds.chores():
        chore()


def hand_on() -> None:
    """Take jobs from workers whose lease ran out; a job that killed its worker too often is given up."""
    now = timezone.now()
    is_leased, running = match_ahead("lease_until", lease()), Job.objects.filter(state=State.RUNNING)
    # After the clock was set back, the job under way in this very process is not lost: it has one more lease.
    running.filter(~is_leased, worker=worker_id(), lease_until__gt=now).update(lease_until=now + lease())
    for job in running.filter(~is_leased):
        kind = kinds.find(job.name)
        lost = running.filter(~is_leased, pk=job.pk, attempts=job.attempts)
        if job.cancel_asked_at:
            lost.update(state=State.CANCELLED, finished_at=now, lease_until=None)
        elif kind and job.attempts < kind.attempts:
            words = f"Its worker was lost at attempt {job.attempts}; it goes on."
            lost.update(state=State.WAITING, due_at=now, lease_until=None, worker="", words=words)
        else:
            words = f"Given up: its worker was lost {job.attempts} times."
            lost.update(state=State.FAILED, finished_at=now, lease_until=None, words=words)


def begin_due() -> None:
    """Begin the repeated jobs whose time has come."""
    now = timezone.now()
    for kind in kinds.kinds():
        if kind.interval is None:
            continue
        Schedule.objects.get_or_create(name=kind.name)
        is_due = ~match_recent("begun_at", kind.interval)
        with transaction.atomic():
            if Schedule.objects.filter(is_due, name=kind.name).update(begun_at=now):
                start(kind)


def forget_old_jobs() -> int:
    """Delete jobs that ended long ago, workers that went long ago, and what the engine still holds of either."""
    limit = timezone.now() - timedelta(days=settings.JOB_DAYS)
    Worker.objects.filter(beat_at__lt=limit).delete()
    engine.forget_before(limit)
    return Job.objects.exclude(state__in=Job.OPEN).filter(created_at__lt=limit).delete()[0]


def send_due() -> None:
    """Hand over jobs that wait for their next attempt, and those that the engine lost; one that fails stays due."""
    now = timezone.now()
    longest = max(LOOK_AGAIN, LONGEST_PAUSE)
    for job in Job.objects.filter(~match_ahead("due_at", longest), state=State.WAITING):
        mine = Job.objects.filter(pk=job.pk, state=State.WAITING, due_at=job.due_at)
        with transaction.atomic():
            if mine.update(due_at=now + LOOK_AGAIN) and not engine.still_has(job):
                send(job)
