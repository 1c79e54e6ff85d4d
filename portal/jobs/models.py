"""Jobs, the workers that run them, and when scheduled jobs last started."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.urls import reverse
from django.utils import timezone


def lease() -> timedelta:
    """How long a worker may be silent before its job goes to another worker."""
    return timedelta(seconds=settings.JOB_LEASE_SECONDS)


class Job(models.Model):
    """One piece of background work, over as many attempts as it takes."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Canceled"

    OPEN = [State.WAITING, State.RUNNING]

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=60, db_index=True)
    label = models.CharField(max_length=200)
    key = models.CharField(max_length=60, blank=True, help_text="Of the jobs with a key only one is open.")
    arguments = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=300)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING, db_index=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True)
    failed = models.PositiveIntegerField(default=0)
    words = models.CharField(max_length=300, blank=True)
    result = models.JSONField(null=True, encoder=DjangoJSONEncoder)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    cancel_asked_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(
        default=timezone.now, help_text="When it may start; while it runs, when its worker counts as lost."
    )
    worker = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["state", "due_at"], name="due_jobs")]
        constraints = [
            models.UniqueConstraint(
                fields=["key"],
                condition=models.Q(state__in=["waiting", "running"]) & ~models.Q(key=""),
                name="one_open_job_of_a_kind",
            )
        ]

    def __str__(self) -> str:
        return f"{self.label}: {self.get_state_display()}"

    def get_absolute_url(self) -> str:
        return reverse("operations:job", args=[self.pk])

    @classmethod
    def latest(cls, name: str) -> "Job | None":
        return cls.objects.filter(name=name).first()

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN

    @property
    def is_stopping(self) -> bool:
        """Whether somebody canceled it while it runs."""
        return self.is_open and self.cancel_asked_at is not None

    @property
    def share(self) -> int | None:
        """Percent done; ``None`` while the total is unknown."""
        return min(100, self.done * 100 // self.total) if self.total else None

    @property
    def ends_at(self) -> datetime | None:
        """Estimated end at the speed so far; ``None`` while that is unknown."""
        if self.state != self.State.RUNNING or not (self.started_at and self.total and self.done):
            return None
        now = timezone.now()
        return now + max(now - self.started_at, timedelta()) / self.done * (self.total - self.done)

    def cancel(self) -> bool:
        """Cancel it: at once if it waits, at its next step if it runs. False if it had ended."""
        now = timezone.now()
        waiting = Job.objects.filter(pk=self.pk, state=self.State.WAITING)
        running = Job.objects.filter(pk=self.pk, state=self.State.RUNNING)
        canceled: dict[str, Any] = {"state": self.State.CANCELLED, "finished_at": now, "cancel_asked_at": now}
        return bool(waiting.update(**canceled) or running.update(cancel_asked_at=now))


class Worker(models.Model):
    """A process that runs jobs; one that is silent for longer than a lease is gone."""

    id = models.CharField(primary_key=True, max_length=64)
    started_at = models.DateTimeField(auto_now_add=True)
    beat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, help_text="When it stopped on request.")

    class Meta:
        ordering = ["-beat_at"]

    def __str__(self) -> str:
        return self.id


class Schedule(models.Model):
    """When a scheduled job was last started; the worker that moves this time forward starts it."""

    name = models.CharField(primary_key=True, max_length=60)
    begun_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name
