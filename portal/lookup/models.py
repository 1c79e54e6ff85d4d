"""Uploaded files of a lender's own records, stored until they are imported, and the results of imports.

A file may hold more than is imported from it, even an SSN: it is encrypted, and deleted by the job that reads it.
"""

import base64
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from portal.accounts.encryption import decrypt, encrypt
from portal.jobs.models import Job


class Uploads(models.Manager["Upload"]):
    """Uploads without their large columns: the content, which only the worker reads, and the rejected lines."""

    def get_queryset(self) -> models.QuerySet["Upload"]:
        return super().get_queryset().defer("content", "refused")

    def forget_old(self) -> int:
        """Delete unread files of ended jobs, and uploads older than drafts are kept; return the number of uploads."""
        given_up = Job.objects.exclude(state__in=Job.OPEN).values("pk")
        self.filter(content__isnull=False, job_id__in=given_up).update(content=None)
        limit = timezone.now() - timedelta(days=settings.DRAFT_DAYS)
        forgotten, _ = self.filter(created_at__lt=limit).delete()
        return forgotten


class Upload(models.Model):
    class What(models.TextChoices):
        IDS = "ids", "IDs"
        PROFILES = "profiles", "Profiles"

    what = models.CharField(max_length=10, choices=What.choices)
    name = models.CharField(max_length=300)
    exported_at = models.DateTimeField(help_text="Its profiles hide no answer that is newer.")
    content = models.BinaryField(null=True)
    by_name = models.CharField(max_length=300)
    created_at = models.DateTimeField(auto_now_add=True)
    job_id = models.UUIDField(null=True)
    taken = models.PositiveIntegerField(default=0)
    refused_count = models.PositiveIntegerField(default=0)
    refused = models.JSONField(default=list, help_text="The first refused lines, each with its reason.")
    remark = models.TextField(
        blank=True, default="", db_default="", help_text="What is said of the lines that were taken."
    )
    finished_at = models.DateTimeField(null=True)

    objects = Uploads()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("lookup:imported", args=[self.pk])

    @property
    def file(self) -> bytes:
        """The uploaded file; empty once it was imported."""
        return base64.b64decode(decrypt(bytes(self.content).decode())) if self.content else b""

    @file.setter
    def file(self, data: bytes) -> None:
        self.content = encrypt(base64.b64encode(data).decode()).encode()

    @property
    def at(self) -> datetime | None:
        """The time of its profiles as saved copies; IDs count as of now."""
        return self.exported_at if self.what == self.What.PROFILES else None

    @property
    def is_empty(self) -> bool:
        return self.finished_at is not None and not self.taken and not self.refused_count
