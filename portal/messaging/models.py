"""Saved messages of the lending service, when each day of them was compared, and owners of bank accounts."""

from datetime import date, timedelta
from functools import cached_property
from typing import Any, Self

from django.db import models
from django.urls import reverse
from django.utils import timezone

from portal.records.models import Account
from portal.ui import wording
from servicing import Message as RemoteMessage
from servicing import RemoteTime, Repayment, ServicingError, codec
from servicing.values import calendar_day

DELIVERED = "SUCCESS"
"""The status of a message that arrived."""
RUN_TIMEOUT = timedelta(minutes=2)
"""A run without progress for this long was killed."""


class MessageQuerySet(models.QuerySet["Message"]):
    """Messages, by what the service still lists."""

    def listed(self) -> Self:
        """Without the long texts, which lists don't show."""
        return self.defer("body", "payload", "search_text")

    def at_service(self) -> Self:
        """Messages that the service still lists, as far as known."""
        return self.filter(gone_at=None)

    def of_days(self, first: date | None, last: date | None) -> Self:
        """Messages at the service that are certainly of these days, both included."""
        days = self.at_service().filter(is_placed=True)
        days = days.filter(day__gte=first) if first else days
        return days.filter(day__lte=last) if last else days


class Message(models.Model):
    """One message as it was received, with columns for what is filtered and listed."""

    uuid = models.TextField(unique=True)
    event = models.CharField(max_length=100, blank=True)
    status = models.CharField(max_length=40, blank=True)
    recorded_at = models.DateTimeField(
        default=timezone.now, help_text="Its place in order of time; if uncertain, a guess within its day."
    )
    recorded_text = models.TextField(blank=True, help_text="The time as the service sent it.")
    day = models.DateField(help_text="The day by which the service counts it.")
    is_placed = models.BooleanField(default=True, help_text="Whether that day is certain, and no guess.")
    product = models.CharField(max_length=40, blank=True)
    payment_status = models.CharField(max_length=40, blank=True)
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    subject_uuid = models.CharField(max_length=64, blank=True, help_text="What the payload is: a repayment.")
    bank_account = models.CharField(max_length=64, blank=True)
    stored_at = models.DateTimeField(default=timezone.now, help_text="When it was first seen here.")
    gone_at = models.DateTimeField(null=True, help_text="When the service was found not to list it any more.")
    body = models.TextField(help_text="The message as exact JSON text, with its first payload.")
    changed_payload = models.TextField(  # noqa: DJ001 - "" would make SQLite copy the table to add it
        null=True, help_text="The payload as last listed, if it isn't the first one."
    )
    payload = models.JSONField(
        null=True, help_text="The first payload with folded texts, to find values at their path. Never shown."
    )
    search_text = models.TextField(blank=True, help_text="Every value, folded, one a line.")

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["-recorded_at", "-id"]
        indexes = [
            models.Index(fields=["recorded_at", "id"], name="messages_by_time"),
            models.Index(fields=["event", "recorded_at", "id"], name="messages_by_event"),
            models.Index(fields=["status", "recorded_at", "id"], name="messages_by_status"),
            models.Index(fields=["product", "recorded_at", "id"], name="messages_by_product"),
            models.Index(fields=["payment_status", "recorded_at", "id"], name="messages_by_payment_status"),
            models.Index(fields=["amount"], name="messages_by_amount"),
            models.Index(fields=["subject_uuid"], name="messages_by_subject_uuid"),
            models.Index(fields=["bank_account"], name="messages_by_bank_account"),
            models.Index(fields=["day", "is_placed", "gone_at"], name="messages_by_day"),
            models.Index(fields=["stored_at"], name="messages_by_stored_at"),
            models.Index(
                fields=["recorded_at"], name="messages_gone", condition=models.Q(gone_at__isnull=False)
            ),
            models.Index(
                fields=["recorded_at"],
                name="messages_changed",
                condition=models.Q(changed_payload__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.uuid[:8]}"

    def get_absolute_url(self) -> str:
        return reverse("messaging:detail", args=[self.uuid])

    @property
    def label(self) -> str:
        """Its name in the audit trail."""
        return f"message {self.uuid[:8]}"

    @property
    def why_null(self) -> str:
        """Why a value is missing."""
        return wording.not_provided("messages.list", self.stored_at)

    @cached_property
    def created_at(self) -> RemoteTime | None:
        """The time that the service sent, as screens show it."""
        return RemoteTime(self.recorded_text) if self.recorded_text else None

    @property
    def local_day(self) -> date:
        """Its day in the viewer's time zone, or as sent if the zone is uncertain."""
        created = self.created_at
        if created and created.at:
            return timezone.localdate(created.at)
        return (created and calendar_day(created.text)) or self.day

    @cached_property
    def received(self) -> RemoteMessage:
        """The message as the client library reads it."""
        return codec.decode(RemoteMessage, self.body)

    @cached_property
    def later_payload(self) -> Any:
        """The payload as last listed, if it isn't the first one."""
        return codec.parse(self.changed_payload) if self.changed_payload else None

    @cached_property
    def repayment(self) -> Repayment | None:
        """The repayment in a payment event; other events have none."""
        if not self.event.startswith("payment."):
            return None
        try:
            return codec.read(Repayment, self.received.payload)
        except ServicingError:
            return None


class Day(models.Model):
    """One of the service's days: how many messages it reported, and when they were compared with the saved ones."""

    day = models.DateField(primary_key=True)
    claimed = models.PositiveIntegerField()
    checked_at = models.DateTimeField()
    listed = models.PositiveIntegerField(
        null=True, help_text="How many messages the service listed when they were last compared."
    )
    unusable = models.PositiveIntegerField(
        default=0, db_default=0, help_text="How many it listed without a usable ID, which can't be saved."
    )
    compared_at = models.DateTimeField(null=True, help_text="When each message was last compared.")

    def __str__(self) -> str:
        return f"{self.day}: {self.claimed}"


class Run(models.Model):
    """One run of the sync, as shown on the page and in the terminal.

    A run that reads new messages and stops early is a mark: the next one reads on from there to the last unbroken run.
    """

    started_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(auto_now=True, help_text="When it last said how far it is.")
    ended_at = models.DateTimeField(null=True)
    by = models.CharField(max_length=300)
    since = models.DateField(null=True)
    until = models.DateField(null=True)
    day = models.DateField(null=True, help_text="The day that is being read.")
    claimed = models.PositiveIntegerField(default=0, help_text="How many messages the service listed.")
    missing = models.PositiveIntegerField(
        default=0, help_text="How many messages seemed to be missing when it began."
    )
    added = models.PositiveIntegerField(default=0)
    already_here = models.PositiveIntegerField(default=0, db_default=0)
    gone = models.PositiveIntegerField(
        default=0, db_default=0, help_text="How many the service no longer has."
    )
    unusable = models.PositiveIntegerField(
        default=0, db_default=0, help_text="How many messages have no usable ID, so they can't be saved."
    )
    unusable_names = models.TextField(blank=True, default="", db_default="", help_text="The first of them.")
    filters_ignored = models.BooleanField(
        default=False, db_default=False, help_text="Whether the service ignored the days."
    )
    failure = models.TextField(blank=True)
    newest = models.JSONField(default=list, help_text="The IDs on the first page of the list that it read.")
    reached = models.JSONField(
        null=True,
        help_text="The last page that it saved: its limit, offset, what that counts, and the total.",
    )
    is_unbroken = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether every message at or below its newest ones is saved.",
    )

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M} by {self.by}"

    @property
    def is_alive(self) -> bool:
        """Whether it is running. A killed run has no end either, but stops reporting."""
        return self.ended_at is None and timezone.now() - self.seen_at <= RUN_TIMEOUT


class PendingRead(models.Model):
    """The news about an account: why and when it is to be read, and when it was last read for that."""

    account = models.OneToOneField(Account, on_delete=models.CASCADE, related_name="pending_read")
    news_at = models.DateTimeField(help_text="The time of the newest message; the newest is read first.")
    payment_uuid = models.CharField(max_length=64, blank=True, help_text="The payment that it is about.")
    noticed_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True, db_index=True, help_text="Null: nothing to read.")
    read_at = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0, help_text="Reads that failed, or missed the payment.")

    def __str__(self) -> str:
        return f"{self.account} since {self.noticed_at:%Y-%m-%d %H:%M}"


class BankAccount(models.Model):
    """A borrower's bank account, linked by staff because the service does not say whose it is."""

    uuid = models.CharField(max_length=64, primary_key=True)
    borrower_uuid = models.CharField(max_length=64, db_index=True)
    linked_by = models.CharField(max_length=300)
    linked_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.uuid} of {self.borrower_uuid}"
