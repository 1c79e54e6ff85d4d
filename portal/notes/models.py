"""Notes, pinned warnings and follow-ups about a record, for colleagues only. Nothing is sent to the service."""

from typing import Any

from django.db import models

from portal.core.business_date import business_date
from portal.core.folding import fold


class Note(models.Model):
    """A note on a borrower, or on one of its accounts."""

    borrower_uuid = models.CharField(max_length=64, db_index=True)
    subject_kind = models.CharField(max_length=16)
    subject_uuid = models.CharField(max_length=64, db_index=True)
    text = models.TextField()
    folded_text = models.TextField(db_default="", editable=False)
    author_id = models.BigIntegerField()
    author_name = models.CharField(max_length=300)
    created_at = models.DateTimeField(auto_now_add=True)
    pinned_until = models.DateField(null=True, help_text="Shown as a warning up to and including this day.")

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return self.text[:80]

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.folded_text = fold(self.text)
        super().save(*args, **kwargs)


class FollowUp(models.Model):
    """A task about a borrower with an owner and a due date."""

    borrower_uuid = models.CharField(max_length=64, db_index=True)
    title = models.CharField(max_length=200)
    due = models.DateField()
    owner_id = models.BigIntegerField(db_index=True)
    owner_name = models.CharField(max_length=300)
    created_at = models.DateTimeField(auto_now_add=True)
    done_at = models.DateTimeField(null=True)
    done_by = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["due", "id"]

    def __str__(self) -> str:
        return self.title

    @property
    def is_due(self) -> bool:
        return self.done_at is None and self.due <= business_date()
