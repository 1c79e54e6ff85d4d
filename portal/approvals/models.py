"""A change that one person requests and another approves before it is sent.

A pending request holds no SSN and no report: those are entered when it is sent. The rest is personal, so it is stored
encrypted, and deleted once the request is sent, rejected, withdrawn or expired.
"""

import json
import uuid
from typing import Any

from django.db import models
from django.urls import reverse
from django.utils import timezone

from portal.accounts.encryption import CannotDecrypt, decrypt, encrypt


class Approval(models.Model):
    """One requested change with its state."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        APPROVED = "approved", "Approved"
        REFUSED = "refused", "Rejected"
        WITHDRAWN = "withdrawn", "Withdrawn"
        EXPIRED = "expired", "Expired"
        SENDING = "sending", "Being sent"
        UNKNOWN = "unknown", "Outcome unknown"
        SENT = "sent", "Sent"

    OPEN = [State.WAITING, State.APPROVED]
    IN_FLIGHT = [State.SENDING, State.UNKNOWN]
    """Its write (``intent_id``) was committed and is not confirmed."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING, db_index=True)
    operation = models.CharField(max_length=60)
    subject_kind = models.CharField(max_length=20)
    subject_uuid = models.CharField(max_length=64, db_index=True)
    borrower_uuid = models.CharField(max_length=64, db_index=True)
    label = models.CharField(max_length=300)
    url = models.CharField(max_length=300, help_text="Where its maker sends it.")
    version = models.CharField(max_length=64, help_text="The copy that it changes.")
    acts = models.JSONField(default=list, help_text="What of it needs a second person.")
    sealed = models.TextField(blank=True, help_text="What was typed and what it changes.")
    reason = models.CharField(max_length=500, blank=True)
    maker_id = models.BigIntegerField(db_index=True)
    maker_name = models.CharField(max_length=300)
    asked_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(db_index=True)
    checker_name = models.CharField(max_length=300, blank=True)
    decided_at = models.DateTimeField(null=True)
    comment = models.CharField(max_length=500, blank=True)
    intent_id = models.UUIDField(null=True)

    class Meta:
        ordering = ["-asked_at"]

    def __str__(self) -> str:
        return f"{self.label}: {self.get_state_display().lower()}"

    def get_absolute_url(self) -> str:
        return reverse("approvals:detail", args=[self.pk])

    @property
    def send_url(self) -> str:
        """The page on which the requester sends it after approval."""
        return f"{self.url}?approval={self.pk}"

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN

    @property
    def may_be_sent(self) -> bool:
        """Whether the requester may send it, or send it again because the outcome is unknown."""
        return self.state in (self.State.APPROVED, self.State.UNKNOWN)

    @property
    def proposal(self) -> dict[str, Any]:
        """``typed`` (the form), ``rows`` (field, now, new) and ``meaning``; empty once it is closed."""
        try:
            found: dict[str, Any] = json.loads(decrypt(self.sealed)) if self.sealed else {}
        except CannotDecrypt:
            return {}  # The key was replaced, so approval must be requested again.
        return found

    def store_proposal(self, proposal: dict[str, Any]) -> None:
        self.sealed = encrypt(json.dumps(proposal))
