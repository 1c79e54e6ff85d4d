"""The book as it was at the end of each business day, which no later answer changes.

An account has a row for each run of days on which nothing changed. What the page shows of a day is added up when the
day is written.
"""

from collections.abc import Iterable
from datetime import date
from typing import Any, Final

from django.db import models
from django.db.models import Q

from servicing.figures import Aging


class Bucket(models.TextChoices):
    """Where an account stands: one of these on each day."""

    CURRENT = "current", str(Aging.CURRENT)
    DUE_SINCE = "due_since", "Due since the copy"
    DAYS_1_29 = "days_1_29", str(Aging.DAYS_1_29)
    DAYS_30_59 = "days_30_59", str(Aging.DAYS_30_59)
    DAYS_60_89 = "days_60_89", str(Aging.DAYS_60_89)
    DAYS_90 = "days_90", str(Aging.DAYS_90)
    NOT_KNOWN = "not_known", str(Aging.UNKNOWN)
    CLOSED = "closed", "Closed"
    NOT_CERTAIN = "not_certain", "Not certain"
    """On such a day it can't be told which answer was the latest."""


LATE: Final = (Bucket.DAYS_1_29, Bucket.DAYS_30_59, Bucket.DAYS_60_89, Bucket.DAYS_90)
OPEN: Final = (Bucket.CURRENT, Bucket.DUE_SINCE, *LATE, Bucket.NOT_KNOWN)
"""The rows of the aging table, in order."""


def _money(**more: Any) -> Any:
    return models.DecimalField(max_digits=20, decimal_places=4, **more)


def _holds_on(day: date) -> Q:
    """The condition that a row holds at the end of a day."""
    return Q(Q(to_day__isnull=True) | Q(to_day__gte=day), from_day__lte=day)


class AccountStateQuerySet(models.QuerySet["AccountState"]):
    def on(self, day: date) -> "AccountStateQuerySet":
        return self.filter(_holds_on(day))

    def of_accounts(self, uuids: Iterable[str]) -> "AccountStateQuerySet":
        return self.filter(uuid__in=list(uuids))


class AccountState(models.Model):
    """The state of a loan or a line over days on which nothing changed."""

    kind = models.CharField(max_length=16)
    uuid = models.CharField(max_length=64)
    from_day = models.DateField()
    to_day = models.DateField(null=True, help_text="The last day; null while it holds.")

    bucket = models.CharField(max_length=12, choices=Bucket.choices)
    product = models.CharField(max_length=40, blank=True)
    status = models.CharField(max_length=40, blank=True)
    owner_id = models.BigIntegerField(null=True, help_text="The colleague who works on the account.")
    past_due = _money(null=True, help_text="Null: not known.")
    oldest_unpaid_on = models.DateField(null=True, help_text="Days past due of a loan are counted from it.")
    reported_days = models.IntegerField(null=True, help_text="Days past due of a line, as reported.")
    due_since_amount = _money(null=True)
    due_since_on = models.DateField(null=True)
    principal = _money(null=True)
    due_next_on = models.DateField(null=True)
    due_next_amount = _money(null=True)

    first_answer_on = models.DateField(null=True, help_text="The first day of the answers that say so.")
    last_answer_on = models.DateField(null=True, help_text="The last one.")
    answer_at = models.DateTimeField(null=True, help_text="When the text of the last one was received first.")
    good_through = models.DateField(help_text="The last day on which the same answer says the same.")

    objects = AccountStateQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "uuid", "from_day"], name="one_state_of_an_account_per_day"
            )
        ]
        indexes = [
            models.Index(fields=["bucket", "to_day", "from_day"], name="states_by_bucket"),
            models.Index(fields=["to_day", "from_day"], name="states_by_day"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.uuid} {self.bucket} from {self.from_day}"


class Due(models.Model):
    """A payment that was still due on its day, and how much of it was paid within a week."""

    kind = models.CharField(max_length=16)
    uuid = models.CharField(max_length=64)
    day = models.DateField()
    amount = _money(null=True, help_text="Null: not known.")
    paid = _money(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "uuid", "day"], name="one_due_per_account_and_day")
        ]
        indexes = [models.Index(fields=["day"], name="dues_by_day")]

    def __str__(self) -> str:
        return f"{self.kind} {self.uuid} {self.day}"


class BookDay(models.Model):
    day = models.DateField(unique=True)
    written_at = models.DateTimeField(auto_now_add=True)
    not_certain = models.PositiveIntegerField(
        help_text="Accounts that can't be told; with any, the day is a gap."
    )
    oldest_answer_on = models.DateField(null=True)
    has_lines = models.BooleanField(default=False, help_text="Whether a line had a copy, or there is none.")
    roll_since = models.DateField(null=True, help_text="The day with which its roll begins.")
    returned = _money(null=True, help_text="Payments reported as returned on this day.")
    returned_number = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return str(self.day)


class BucketSum(models.Model):
    """The accounts of one kind in one bucket on a day."""

    day = models.DateField()
    kind = models.CharField(max_length=16)
    bucket = models.CharField(max_length=12, choices=Bucket.choices)
    number = models.PositiveIntegerField()
    principal = _money()
    principal_known = models.PositiveIntegerField()
    past_due = _money()
    past_due_known = models.PositiveIntegerField()
    due_since = _money()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "kind", "bucket"], name="one_sum_per_bucket")]

    def __str__(self) -> str:
        return f"{self.day} {self.kind} {self.bucket}: {self.number}"


class RollCell(models.Model):
    """The accounts that went from one bucket to another by a day, since the day with which its roll begins."""

    NEW: Final = "new"
    ARCHIVED: Final = "archived"

    day = models.DateField()
    was = models.CharField(max_length=12, help_text="A bucket, or “new”.")
    now = models.CharField(max_length=12, help_text="A bucket, or “archived”.")
    number = models.PositiveIntegerField()
    before = _money(help_text="Their principal on the first day.")
    principal = _money(help_text="Their principal on the last day.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "was", "now"], name="one_cell_of_a_roll")]

    def __str__(self) -> str:
        return f"{self.day} {self.was} to {self.now}: {self.number}"


class View(models.TextChoices):
    """Three views of the same days, which never add up."""

    SCHEDULED = "scheduled", "Scheduled"
    UNSCHEDULED = "unscheduled", "Due, unscheduled"
    PROMISED = "promised", "Promised"


class ExpectedQuerySet(models.QuerySet["Expected"]):
    def on_day(self, day: date) -> "ExpectedQuerySet":
        return self.filter(_holds_on(day))


class Expected(models.Model):
    """A payment that was expected, and the days on which it was: the rows behind forecasts."""

    view = models.CharField(max_length=12, choices=View.choices)
    kind = models.CharField(max_length=16)
    uuid = models.CharField(max_length=64)
    subject = models.CharField(
        max_length=64, blank=True, help_text="The scheduled repayment’s ID, or the promise’s key."
    )
    on = models.DateField(help_text="The day that it is expected for.")
    amount = _money()
    from_day = models.DateField()
    to_day = models.DateField(null=True, help_text="The last day; null while it is expected.")

    objects = ExpectedQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["uuid", "to_day"], name="expected_of_accounts"),
            models.Index(fields=["on", "view"], name="expected_by_day"),
        ]

    def __str__(self) -> str:
        return f"{self.view} {self.amount} of {self.uuid} on {self.on}"


class ReturnedPayment(models.Model):
    """A payment that was reported as returned on a day: the rows behind a day’s sum."""

    day = models.DateField(db_index=True)
    kind = models.CharField(max_length=16, blank=True)
    uuid = models.CharField(max_length=64, blank=True, help_text="Its account, if that is on file.")
    repayment_uuid = models.CharField(max_length=64)
    amount = _money(null=True, help_text="Null: not known.")

    def __str__(self) -> str:
        return f"{self.repayment_uuid} on {self.day}"


class Forecast(models.Model):
    """What was expected at the end of a day for one of the next 30."""

    day = models.DateField(help_text="When it was forecast.")
    on = models.DateField(help_text="The day that it is for.", db_index=True)
    scheduled = _money(help_text="Payments that the service had scheduled.")
    unscheduled = _money(help_text="Due, without a scheduled payment.")
    promised = _money()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "on"], name="one_forecast_per_day")]

    def __str__(self) -> str:
        return f"{self.day} for {self.on}"


class OwnerSum(models.Model):
    """The past due accounts of one colleague, or of nobody, on a day, and the work on them since its month began."""

    day = models.DateField()
    owner_id = models.BigIntegerField(null=True)
    owner_name = models.CharField(max_length=300, blank=True)
    number = models.PositiveIntegerField()
    past_due = _money()
    reached = models.PositiveIntegerField()
    promised = models.PositiveIntegerField()
    kept = models.PositiveIntegerField()
    decided = models.PositiveIntegerField()
    cured = models.PositiveIntegerField()

    class Meta:
        indexes = [models.Index(fields=["day"], name="owner_sums_by_day")]

    def __str__(self) -> str:
        return f"{self.day} {self.owner_id}: {self.number}"


class Correction(models.Model):
    """Days of an account that a later answer contradicts. They stay as they were written."""

    kind = models.CharField(max_length=16)
    uuid = models.CharField(max_length=64)
    first_day = models.DateField()
    last_day = models.DateField()
    seen_on = models.DateField(help_text="The day of that answer.")

    class Meta:
        indexes = [models.Index(fields=["last_day", "first_day"], name="corrections_by_day")]

    def __str__(self) -> str:
        return f"{self.kind} {self.uuid} {self.first_day} to {self.last_day}"


class Run(models.Model):
    """The writing of days that isn't finished: where another worker goes on."""

    first_day = models.DateField()
    last_day = models.DateField()
    last_key = models.BigIntegerField(default=0, help_text="The last account whose states are written.")

    def __str__(self) -> str:
        return f"{self.first_day} to {self.last_day}"
