"""Printed documents by code, and documents that jobs create."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from portal.audit.models import Actor, Entry
from portal.jobs.models import Job

ACTOR_FIELDS = ("id", "name", "role", "ip")


class Printed(models.Model):
    """One printed document, by the code on its pages. Its audit entry holds the rest."""

    code = models.CharField(max_length=24, primary_key=True)
    entry = models.OneToOneField(Entry, on_delete=models.PROTECT)

    class Meta:
        verbose_name_plural = "printed"

    def __str__(self) -> str:
        return self.code

    def get_absolute_url(self) -> str:
        return reverse("documents:verify", args=[self.code])


class BackgroundPrint(models.Model):
    """A document that a job creates for one person, stored in the database so that every machine has it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=300)
    actor_role = models.CharField(max_length=20, blank=True)
    actor_ip = models.GenericIPAddressField(null=True)
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        abstract = True
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} of {self.created_at:%Y-%m-%d %H:%M}"

    @staticmethod
    def columns_of(actor: Actor) -> dict[str, Any]:
        """The columns that identify who requested it."""
        return {f"actor_{name}": getattr(actor, name) for name in ACTOR_FIELDS}

    @property
    def actor(self) -> Actor:
        """The requester, for the worker's audit entries."""
        known = {name: getattr(self, f"actor_{name}") for name in ACTOR_FIELDS}
        return Actor(**known, request_id=f"{self._meta.model_name}-{self.pk.hex[:12]}")

    @property
    def expires_at(self) -> datetime:
        return self.created_at + timedelta(days=settings.BATCH_DAYS)


class LongDocument(BackgroundPrint):
    """A document too long to be created within a request. Only the requester may download it."""

    title = models.CharField(max_length=300)
    file_name = models.CharField(max_length=140)
    html = models.TextField(help_text="The laid out document; empty once there is a PDF.")
    print_entry = models.JSONField(
        encoder=DjangoJSONEncoder, help_text="What the audit trail will say about it."
    )
    document = models.BinaryField(null=True)
    reason = models.CharField(max_length=500, blank=True, help_text="Why there is no PDF.")

    def get_absolute_url(self) -> str:
        return reverse("documents:long_document", args=[self.pk])


class Batch(BackgroundPrint):
    """Summaries of many borrowers."""

    class Form(models.TextChoices):
        JOINED = "joined", "One PDF with all of them"
        ZIP = "zip", "One PDF each, in a ZIP file"

    form = models.CharField(max_length=10, choices=Form.choices, default=Form.ZIP)
    chosen = models.CharField(max_length=500, help_text="What narrowed the list of borrowers, in words.")
    options = models.TextField(blank=True, help_text="What is printed, as a query string.")
    zone = models.CharField(max_length=50)
    document = models.BinaryField(null=True, help_text="The joined PDF; items of a ZIP file have their own.")
    removed_at = models.DateTimeField(null=True)

    class Meta(BackgroundPrint.Meta):
        verbose_name_plural = "batches"

    def get_absolute_url(self) -> str:
        return reverse("documents:batch", args=[self.pk])


class Item(models.Model):
    """One borrower of a batch: waiting, printed once, or failed with a reason."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    borrower_uuid = models.CharField(max_length=64)
    label = models.CharField(max_length=300)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    reason = models.CharField(max_length=500, blank=True)
    code = models.CharField(max_length=24, blank=True)
    file_name = models.CharField(max_length=140, blank=True)
    document = models.BinaryField(null=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["batch", "borrower_uuid"], name="one_item_per_borrower"),
            models.CheckConstraint(
                condition=Q(state="done") | Q(document__isnull=True), name="only_done_items_have_documents"
            ),
        ]
        indexes = [models.Index(fields=["batch", "state", "position"], name="items_of_batch")]

    def __str__(self) -> str:
        return self.label


def remove_expired() -> int:
    """Delete expired documents, but not their audit entries; return the number of batches."""
    oldest = timezone.now() - timedelta(days=settings.BATCH_DAYS)
    LongDocument.objects.filter(created_at__lt=oldest).delete()
    expired = Batch.objects.filter(created_at__lt=oldest, removed_at__isnull=True)
    Item.objects.filter(batch__in=expired).update(document=None)
    return expired.update(document=None, removed_at=timezone.now())
