"""What is kept of printed documents: where a code leads, and the batches that wait to be fetched."""

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.fields.json import KT
from django.urls import reverse
from django.utils import timezone

from portal.audit.models import Actor, Entry
from portal.jobs.models import Job


class PrintedQuerySet(models.QuerySet["Printed"]):
    """Documents that were handed out, and those of them that the trail does not know."""

    def unrecorded(self) -> "PrintedQuerySet":
        """Documents whose entry is gone, or is about something else."""
        recorded = Entry.objects.annotate(code=KT("detail__code")).filter(
            pk=OuterRef("entry_id"), action="summaries.print", code=OuterRef("code")
        )
        return self.exclude(Exists(recorded))


class Printed(models.Model):
    """One document that was handed out, by the code that its pages carry. The rest stands in its audit entry."""

    code = models.CharField(max_length=24, primary_key=True)
    entry = models.OneToOneField(Entry, on_delete=models.PROTECT)

    objects = PrintedQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "printed"

    def __str__(self) -> str:
        return self.code

    def get_absolute_url(self) -> str:
        """The page that tells what it is."""
        return reverse("summaries:verify", args=[self.code])


class Batch(models.Model):
    """Summaries of many borrowers, drawn in the background and kept where every machine finds them: in the database."""

    class Form(models.TextChoices):
        ZIP = "zip", "One PDF each, in a ZIP file"
        JOINED = "joined", "One PDF with all of them"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    form = models.CharField(max_length=10, choices=Form.choices, default=Form.ZIP)
    chosen = models.CharField(max_length=500, help_text="What narrowed the list of borrowers, in words.")
    options = models.TextField(blank=True, help_text="What is printed, as a query string.")
    zone = models.CharField(max_length=50)
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=300)
    actor_role = models.CharField(max_length=20, blank=True)
    actor_ip = models.GenericIPAddressField(null=True)
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]
        verbose_name_plural = "batches"

    def __str__(self) -> str:
        return f"Summaries of {self.created_at:%Y-%m-%d %H:%M}"

    def get_absolute_url(self) -> str:
        """Its page."""
        return reverse("summaries:batch", args=[self.pk])

    @property
    def actor(self) -> Actor:
        """Who asked for it, for what the worker records."""
        request_id = f"batch-{self.pk.hex[:12]}"
        return Actor(
            id=self.actor_id,
            name=self.actor_name,
            role=self.actor_role,
            ip=self.actor_ip,
            request_id=request_id,
        )

    @property
    def expires_at(self) -> datetime:
        """When its documents are removed."""
        return self.created_at + timedelta(days=settings.BATCH_DAYS)


class Item(models.Model):
    """One borrower of a batch: waiting, drawn once, or failed with a reason."""

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
        indexes = [models.Index(fields=["batch", "state", "position"])]

    def __str__(self) -> str:
        return self.label


def remove_expired() -> int:
    """Take the documents of old batches away; what was printed stays in the audit. How many batches that were."""
    oldest = timezone.now() - timedelta(days=settings.BATCH_DAYS)
    expired = Batch.objects.filter(created_at__lt=oldest, removed_at__isnull=True)
    Item.objects.filter(batch__in=expired).update(document=None)
    return expired.update(removed_at=timezone.now())
