"""Saved messages of the lending service, their completeness by day, and owners of bank accounts."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

import msgspec
from django.db import models
from django.urls import reverse
from django.utils import timezone

from portal.registry.models import Record
from portal.ui import wording
from servicing import Message as RemoteMessage
from servicing import RemoteTime, Repayment, ServicingError, codec
from servicing.values import calendar_day

SUFFIX_BITS = 31
"""Bits of a key below its second; they distinguish messages of the same second."""
MAX_SECOND = 2**32 - 1
WHOLE_LIST = date.min
"""The "day" of a service that ignores date filters: its whole list."""
DELIVERED = "SUCCESS"
"""The status of a message that arrived."""
RUN_TIMEOUT = timedelta(minutes=2)
"""A run without progress for this long was killed."""


def first_key_at(moment: datetime) -> int:
    """The smallest key of a message at this moment; keys are in order of time."""
    return min(max(int(moment.timestamp()), 0), MAX_SECOND) << SUFFIX_BITS


def moment_of_key(key: int) -> datetime:
    """The moment at which the message with this key was recorded, to the second."""
    return datetime.fromtimestamp(key >> SUFFIX_BITS, tz=UTC)


def _indexes() -> list[models.Index]:
    """One index per filtered column, followed by the others: one index alone answers any two filters."""
    filtered = ["event", "status", "product", "payment_status"]
    narrowed = [[one, "-id", *(other for other in filtered if other != one), "amount"] for one in filtered]
    fields = {f"by_{one[0]}": one for one in narrowed}
    fields |= {f"of_{one}": [one, "-id", *filtered, "amount"] for one in ("subject_uuid", "bank_account")}
    fields["of_amount"] = ["amount", "-id", *filtered]
    fields |= {"of_day": ["day", "is_placed", "gone_at", "id"], "by_stored_at": ["stored_at"]}
    indexes = [models.Index(fields=names, name=f"messages_{name}") for name, names in fields.items()]
    gone = models.Q(gone_at__isnull=False)
    changed = models.Q(changed_payload__isnull=False)
    return [
        *indexes,
        models.Index(fields=["gone_at"], name="messages_by_gone_at", condition=gone),
        models.Index(fields=["id"], name="messages_changed", condition=changed),
    ]


class Fingerprint(NamedTuple):
    """Identifies a set of messages by their number and the sum of their key suffixes."""

    number: int = 0
    digest: int = 0


class MessageQuerySet(models.QuerySet["Message"]):
    """Messages, with fingerprints that distinguish sets of them."""

    def at_service(self) -> Self:
        """Messages that the service still lists, as far as known."""
        return self.filter(gone_at=None)

    def of_day(self, day: date) -> Self:
        """Messages at the service that are certainly of a day; all for :data:`WHOLE_LIST`."""
        return self.at_service() if day == WHOLE_LIST else self.at_service().filter(day=day, is_placed=True)

    def between(self, first: date | None, last: date | None) -> Self:
        """Messages at the service that are certainly of a range of days."""
        days = self.at_service().filter(is_placed=True)
        days = days.filter(day__gte=first) if first else days
        return days.filter(day__lte=last) if last else days

    def fingerprint(self) -> Fingerprint:
        """The fingerprint of all of them."""
        found = self.order_by().aggregate(**_FINGERPRINT)
        return Fingerprint(found["number"], int(found["digest"] or 0))

    def fingerprints(self, first: date, last: date) -> dict[date, Fingerprint]:
        """The fingerprint of each day's messages at the service; days without messages are left out."""
        rows: Any = self.between(first, last).order_by().values("day").annotate(**_FINGERPRINT)
        return {row["day"]: Fingerprint(row["number"], int(row["digest"])) for row in rows}

    def gone_on(self, first: date, last: date) -> dict[date, int]:
        """The number of each day's messages that the service no longer lists."""
        gone = self.order_by().filter(day__gte=first, day__lte=last, gone_at__isnull=False)
        return dict(gone.values_list("day").annotate(models.Count("pk")))


class _Created(msgspec.Struct):
    created_at: Any = None


class Message(models.Model):
    """One message as it was received, with the few columns that filters use.

    The key combines the second and the ID, so every index is in order of time, and any filtered page starts where the
    previous one ended.
    """

    id = models.BigIntegerField(primary_key=True)
    uuid = models.TextField(unique=True)
    event = models.CharField(max_length=100, blank=True)
    status = models.CharField(max_length=40, blank=True)
    day = models.DateField(help_text="The day by which the service counts it.")
    is_placed = models.BooleanField(default=True, help_text="Whether that day is certain, and no guess.")
    product = models.CharField(max_length=40, blank=True)
    payment_status = models.CharField(max_length=40, blank=True)
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    subject_uuid = models.CharField(max_length=64, blank=True, help_text="What the payload is: a repayment.")
    bank_account = models.CharField(max_length=64, blank=True)
    stored_at = models.DateTimeField(default=timezone.now)
    gone_at = models.DateTimeField(null=True, help_text="When the service was found not to list it any more.")
    body = models.TextField(help_text="The message as exact JSON text, with its first payload.")
    changed_payload = models.TextField(  # noqa: DJ001 - "" would make SQLite copy the table to add it
        null=True, help_text="The payload as last listed, if it isn't the first one."
    )
    search_text = models.TextField(blank=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = _indexes()

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

    @property
    def recorded_at(self) -> datetime:
        """Its place in order of time, if uncertain a guess within its day; screens show :attr:`created_at`."""
        return moment_of_key(self.id)

    @cached_property
    def created_at(self) -> RemoteTime | None:
        """The time that the service sent. Lists show only this, so it is decoded alone."""
        try:
            return RemoteTime.from_wire(msgspec.json.decode(self.body, type=_Created).created_at)
        except (ValueError, msgspec.MsgspecError):
            return None

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
    """One of the service's days: its total, the messages listed, and how far it was read."""

    day = models.DateField(primary_key=True)
    claimed = models.PositiveIntegerField()
    checked_at = models.DateTimeField()
    listed = models.PositiveIntegerField(
        null=True,
        db_column="kept",
        help_text="How many messages the service listed when it was last read to its end.",
    )
    digest = models.BigIntegerField(default=0, db_default=0, help_text="Of the IDs that it listed.")
    unusable = models.PositiveIntegerField(
        default=0, db_default=0, help_text="How many it listed without a usable ID, which can't be saved."
    )
    read_at = models.DateTimeField(null=True, help_text="When it was last read to its end.")
    offset = models.PositiveIntegerField(null=True, help_text="Where a reading that was cut off goes on.")
    counts = models.CharField(max_length=6, blank=True, help_text="What an offset was found to count.")
    part_listed = models.PositiveIntegerField(
        default=0, db_default=0, help_text="How many were listed up to there."
    )
    part_digest = models.BigIntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"{self.day}: {self.claimed}"

    def agrees_with(self, saved: Fingerprint) -> bool:
        """Whether exactly the listed messages are saved, and all of them could be."""
        return self.listed is not None and not self.unusable and saved == (self.listed, self.digest)

    @property
    def bounds(self) -> tuple[date | None, date | None]:
        """The days to ask the service for."""
        return (None, None) if self.day == WHOLE_LIST else (self.day, self.day)

    def restart(self) -> None:
        """Make the next run read it from the front."""
        self.offset, self.counts, self.part_listed, self.part_digest = None, "", 0, 0
        self.unusable = 0

    def add_part(self, uuids: Iterable[str]) -> None:
        """Count messages listed before the point at which reading will resume."""
        part = Message.objects.filter(uuid__in=uuids).fingerprint()
        self.part_listed += part.number
        self.part_digest += part.digest


class Run(models.Model):
    """One run of the sync, as shown on the page and in the terminal."""

    started_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(auto_now=True, help_text="When it last said how far it is.")
    ended_at = models.DateTimeField(null=True)
    by = models.CharField(max_length=300)
    since = models.DateField(null=True)
    until = models.DateField(null=True)
    day = models.DateField(null=True, help_text="The day that is being read.")
    claimed = models.PositiveIntegerField(default=0, help_text="How many the service claims in all.")
    missing = models.PositiveIntegerField(default=0, help_text="How many of them were missing when it began.")
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
        default=False, db_default=False, help_text="Whether it read the list without filters."
    )
    failure = models.TextField(blank=True)

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

    account = models.OneToOneField(Record, on_delete=models.CASCADE, related_name="pending_read")
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


_FINGERPRINT: Final[dict[str, Any]] = {
    "number": models.Count("pk"),
    "digest": models.Sum(models.F("pk").bitand(2**SUFFIX_BITS - 1)),
}
