"""The local copy of the lending service's messages, how complete it is, and who a bank account belongs to."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple, Self

from django.db import models
from django.urls import reverse
from django.utils import timezone

from portal.clocks import is_recent
from portal.ui import wording

PLACES = 31
"""Bits of a key behind its second; they tell messages of one second apart."""
LATEST = 2**32 - 1
WHOLE_LIST = date.min
"""Stands for the whole list where the service does not filter by day."""
SILENCE = timedelta(minutes=2)
"""A run that says nothing for so long is dead."""


def key_from(moment: datetime) -> int:
    """The least key of a message at this moment: keys are in the order of time."""
    return min(max(int(moment.timestamp()), 0), LATEST) << PLACES


def _indexes() -> list[models.Index]:
    """One for each column that filters; it ends in the others, so that two filters are answered by an index alone."""
    narrowing = ["event", "status", "product", "payment_status"]
    narrowed = [[one, "-id", *(other for other in narrowing if other != one), "amount"] for one in narrowing]
    fields = {f"by_{one[0]}": one for one in narrowed}
    fields |= {f"of_{one}": [one, "-id", *narrowing, "amount"] for one in ("subject_uuid", "bank_account")}
    fields["of_amount"] = ["amount", "-id", *narrowing]
    fields |= {"of_day": ["day", "is_placed", "gone_at", "id"], "by_stored_at": ["stored_at"]}
    indexes = [models.Index(fields=names, name=f"messages_{name}") for name, names in fields.items()]
    gone = models.Q(gone_at__isnull=False)
    return [*indexes, models.Index(fields=["gone_at"], name="messages_by_gone_at", condition=gone)]


class Fingerprint(NamedTuple):
    """What tells one set of messages from another: how many they are, and the sum of their marks."""

    number: int = 0
    digest: int = 0


class MessageQuerySet(models.QuerySet["Message"]):
    """Messages, counted by identity."""

    def at_service(self) -> Self:
        """Those that the service still has, as far as is known."""
        return self.filter(gone_at=None)

    def of_day(self, day: date) -> Self:
        """Those at the service that certainly are of a day; of :data:`WHOLE_LIST` all of them."""
        return self.at_service() if day == WHOLE_LIST else self.at_service().filter(day=day, is_placed=True)

    def fingerprint(self) -> Fingerprint:
        """Of all of them."""
        found = self.order_by().aggregate(**_FINGERPRINT)
        return Fingerprint(found["number"], int(found["digest"] or 0))

    def fingerprints(self, first: date, last: date) -> dict[date, Fingerprint]:
        """Of those at the service that certainly are of each day; days without any are left out."""
        days = self.at_service().order_by().filter(day__gte=first, day__lte=last, is_placed=True)
        rows: Any = days.values("day").annotate(**_FINGERPRINT)
        return {row["day"]: Fingerprint(row["number"], int(row["digest"])) for row in rows}

    def gone_on(self, first: date, last: date) -> dict[date, int]:
        """How many of each day the service no longer has."""
        gone = self.order_by().filter(day__gte=first, day__lte=last, gone_at__isnull=False)
        return dict(gone.values_list("day").annotate(models.Count("pk")))


class Message(models.Model):
    """One message as it was received, and the few columns that filters use.

    The key is made of the second and of the identifier, so every index is in the order of time by itself, and a page of
    whatever is filtered begins where the one before it ended.
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
    body = models.TextField(help_text="The message as exact JSON text.")
    search_text = models.TextField(blank=True)
    stored_at = models.DateTimeField(default=timezone.now)
    gone_at = models.DateTimeField(null=True, help_text="When the service was found not to list it any more.")

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = _indexes()

    def __str__(self) -> str:
        return f"{self.event} {self.uuid[:8]}"

    def get_absolute_url(self) -> str:
        return reverse("messaging:detail", args=[self.uuid])

    @property
    def why_null(self) -> str:
        """Why a value of it is missing."""
        return wording.not_provided("messages.list", self.stored_at)

    @property
    def at(self) -> datetime:
        """When it was recorded; where its time is not certain, the best guess within its day."""
        return datetime.fromtimestamp(self.id >> PLACES, tz=UTC)


def last_stored() -> datetime | None:
    """When the newest of them was stored: as long as that is the same, what was counted holds."""
    at: datetime | None = Message.objects.aggregate(at=models.Max("stored_at"))["at"]
    return at


class Day(models.Model):
    """One of the service's days: what the service says of it, what it listed, and how far reading it got."""

    day = models.DateField(primary_key=True)
    claimed = models.PositiveIntegerField()
    checked_at = models.DateTimeField()
    listed = models.PositiveIntegerField(
        null=True,
        db_column="kept",
        help_text="How many messages the service listed when it was last read to its end.",
    )
    digest = models.BigIntegerField(default=0, db_default=0, help_text="Of the identifiers that it listed.")
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
        """Whether exactly those messages are saved that the service listed."""
        return self.listed is not None and saved == (self.listed, self.digest)


class Run(models.Model):
    """One run of the sync, as the page and the terminal tell it."""

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
        """Whether it is under way; one that was killed says nothing more, and leaves no end."""
        return self.ended_at is None and is_recent(self.seen_at, SILENCE)


class BankAccount(models.Model):
    """What staff know and the service does not tell: whose bank account this is."""

    uuid = models.CharField(max_length=64, primary_key=True)
    borrower_uuid = models.CharField(max_length=64, db_index=True)
    linked_by = models.CharField(max_length=300)
    linked_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.uuid} of {self.borrower_uuid}"


_FINGERPRINT: Final[dict[str, Any]] = {
    "number": models.Count("pk"),
    "digest": models.Sum(models.F("pk").bitand(2**PLACES - 1)),
}
