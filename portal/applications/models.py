"""The offer that staff prefer: an internal note that is never sent to the lending service."""

from django.db import models


class Preference(models.Model):
    """The preferred offer of an application, with the reason; its history is in the audit trail."""

    application_uuid = models.CharField(max_length=64, unique=True)
    offer_uuid = models.CharField(max_length=64)
    reason = models.CharField(max_length=200)
    author_name = models.CharField(max_length=300)
    at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.offer_uuid[:8]} preferred by {self.author_name}"
