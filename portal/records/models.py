"""The records of the lending service that are on file, since the service itself can't list or search them."""

from collections.abc import Sequence
from typing import ClassVar

from django.db import models
from django.db.models.functions import Lower
from django.urls import reverse
from django.utils import timezone

from portal.records.sources import Kind as Kind
from portal.records.sources import operations_in_words
from portal.ui import wording

# The kinds that a lender's own records identify, and that people search for.
NAMED_KINDS = [Kind.BORROWER, Kind.KEY_PERSON, Kind.APPLICATION, Kind.LOAN, Kind.LINE]
SEARCHED_KINDS = [*NAMED_KINDS, Kind.REPAYMENT]
# The kinds that have a name, by which they are found.
PEOPLE = (Kind.BORROWER, Kind.KEY_PERSON)
# The kinds that are rows of `Account`.
RECORDED_KINDS = [Kind.LOAN, Kind.LINE]


class Source(models.TextChoices):
    SERVICE = "service", "From the lending service"
    FILE = "file", "From file"
    STAFF = "staff", "Added by staff"


def kind_choices() -> list[tuple[str, str]]:
    """A function, so that a new kind needs no migration."""
    return Kind.choices


LISTED = models.Q(archived_at__isnull=True)


# The past due loans and lines, with a known or unknown amount.
IS_LATE = models.Q(past_due_rank__isnull=False)
HAS_TEXT = ~models.Q(search_text="")
# Open accounts whose last answer has no past due amount, though it should.
WITHOUT_FIGURE = models.Q(past_due__isnull=True, is_closed=False, answer_at__isnull=False) & (
    models.Q(has_no_schedule_yet__isnull=True) | models.Q(has_no_schedule_yet=False)
)


class Answer(models.Model):
    """What the service or a file said last about one thing, whichever operation said it.

    An account's list of repayments is a thing of its own, with the account's ID.
    """

    kind = models.CharField(max_length=16, choices=kind_choices)
    uuid = models.CharField(max_length=64)
    operation = models.CharField(
        max_length=60, blank=True, help_text="The operation that said it; empty if from file or not known."
    )
    source = models.CharField(max_length=10, choices=Source.choices, blank=True)
    first_at = models.DateTimeField(
        null=True, help_text="When this text was received first; null if version 1.0 saved it."
    )
    last_at = models.DateTimeField(
        null=True, help_text="When this text was received last; null while it was only asked for."
    )
    last_on = models.DateField(
        null=True,
        help_text="The business date of that, which a demo's days that pass don't change; null if not known.",
    )
    asked_at = models.DateTimeField(null=True, help_text="When the service was last asked for it.")
    failed_at = models.DateTimeField(null=True, help_text="When asking failed last.")
    failing_since = models.DateTimeField(null=True, help_text="Since when asking has failed.")
    failure = models.TextField(blank=True, help_text="Why it failed last, in words for staff.")
    first_on = models.DateField(
        null=True, help_text="The business date on which this text was received first; null if not known."
    )
    # A long text comes last, because SQLite reads a row from its beginning, and most queries need only its times.
    body = models.TextField(
        blank=True, help_text="As received, in canonical JSON; empty while it was only asked for."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "uuid"], name="one_answer_per_thing")]
        indexes = [models.Index(fields=["kind", "last_at"], name="answers_by_last_at")]

    def __str__(self) -> str:
        return f"{self.kind} {self.uuid}"

    def why_null(self, *, can_be_read: bool = True) -> str:
        """Why a value is missing in it: the call that didn't provide it, and when; or that nothing was answered."""
        if not self.last_at:
            return "Unknown: never answered" if self.pk else "Unknown: never asked"
        if self.source == Source.FILE:
            return f"Not in the file of {wording.moment(self.last_at)}"
        calls = operations_in_words(Kind(self.kind), can_be_read=can_be_read)
        return wording.not_provided(calls, self.last_at)


class Account(models.Model):
    """A loan or a line, with the columns that lists filter and sort by, most of them from its last answer."""

    FIGURES: ClassVar[Sequence[str]] = (
        *("past_due", "past_due_rank", "is_past_due", "is_closed", "next_due_on", "due_amount", "remaining"),
        *("principal", "available", "oldest_unpaid_due", "due_since_number", "due_since_amount"),
        *("due_since_on", "has_no_schedule_yet", "days_past_due", "needs_check", "is_partly_paid"),
        *("figures_good_through", "opened_on", "has_autopay"),
    )
    """What is worked out again on a new business date."""
    FROM_ANSWER: ClassVar[Sequence[str]] = (
        *("borrower_uuid", "label", "search_text", "answer_id", "answer_at", "answer_day", "checked_at"),
        *("product", "status", "state", "amount", "rate", *FIGURES),
    )
    """What is written again from an answer; the others are ours."""

    kind = models.CharField(max_length=16, choices=kind_choices)
    uuid = models.CharField(max_length=64)
    borrower_uuid = models.CharField(max_length=64, blank=True)
    owner_confirmed = models.BooleanField(
        default=False, db_default=False, help_text="Somebody chose the borrower, whatever the answer says."
    )
    label = models.CharField(max_length=300, blank=True)

    # Not a OneToOneField: SQLite would copy the whole table to add it.
    answer = models.ForeignKey(
        Answer,
        null=True,
        on_delete=models.PROTECT,
        db_index=False,
        related_name="+",
        help_text="What was said about it; null if nobody ever asked or answered. Its text is long.",
    )
    # The answer's times, which lists filter and sort by.
    answer_at = models.DateTimeField(null=True, help_text="When its answer was received last.")
    answer_day = models.DateField(null=True, help_text="The business date of the answer.")
    checked_at = models.DateTimeField(null=True, help_text="When the service last answered for it.")

    product = models.CharField(max_length=40, blank=True)
    status = models.CharField(max_length=40, blank=True)
    is_closed = models.BooleanField(
        default=False, db_default=False, help_text="Whether that status is one of ``CLOSED_STATUSES``."
    )
    state = models.CharField(max_length=10, blank=True)
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    past_due = models.DecimalField(max_digits=20, decimal_places=4, null=True, help_text="Null: not known.")
    next_due_on = models.DateField(null=True)
    rate = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    is_past_due = models.BooleanField(default=False)

    # An account's figures on a business date, as defined by servicing.figures.
    needs_check = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Figures in the answer of an account contradict each other.",
    )
    figures_good_through = models.DateField(
        null=True,
        help_text="The last business date on which they hold; null until they are calculated, also by new rules.",
    )
    past_due_rank = models.DecimalField(
        max_digits=20, decimal_places=4, null=True, help_text="Orders what is past due, not known last."
    )
    oldest_unpaid_due = models.DateField(null=True, help_text="Days past due of a loan are counted from it.")
    due_since_number = models.PositiveIntegerField(
        null=True, help_text="How many payments fell due since the copy; the service may know them as paid."
    )
    due_since_amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    due_since_on = models.DateField(null=True, help_text="The oldest of these due dates.")
    has_no_schedule_yet = models.BooleanField(null=True)
    has_autopay = models.BooleanField(null=True, help_text="Of a loan; null if its answer doesn't say.")
    days_past_due = models.IntegerField(null=True, help_text="Of a line, as reported in its answer.")
    due_amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    is_partly_paid = models.BooleanField(
        null=True, help_text="A repayment of a loan succeeded after its oldest unpaid due date."
    )
    opened_on = models.DateField(null=True, help_text="Of a loan.")
    remaining = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    principal = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    available = models.DecimalField(max_digits=20, decimal_places=4, null=True)

    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    created_by = models.CharField(max_length=300, blank=True)
    archived_at = models.DateTimeField(null=True)

    # A long text comes last, because SQLite reads a row from its beginning, and lists don't need it.
    search_text = models.TextField(blank=True)

    class Meta:
        # As in version 1.0: with a new name, SQLite would copy the tables that refer to it.
        db_table = "registry_record"
        # With this operator class PostgreSQL also uses it to find IDs by their beginning.
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "uuid"],
                name="one_record_per_uuid",
                opclasses=["varchar_ops", "varchar_pattern_ops"],
            ),
            models.UniqueConstraint(
                fields=["answer"], condition=models.Q(answer__isnull=False), name="one_record_per_answer"
            ),
        ]
        # Filters and the default orders have one; other orders are sorted. ``migration_steps`` adds PostgreSQL's own.
        indexes = [
            models.Index(fields=["borrower_uuid", "kind"]),
            models.Index(fields=["kind", "past_due_rank", "id"], name="account_by_past_due_rank"),
            models.Index(fields=["kind", "-created_at", "-id"], name="account_by_created_at"),
            models.Index(fields=["kind", "-updated_at", "-id"], name="account_by_updated_at"),
            *(
                models.Index(fields=["kind", name], name=f"account_by_{name}")
                for name in ("next_due_on", "status", "product", "checked_at")
            ),
            # What a typed amount may be.
            *(
                models.Index(fields=["kind", name], name=f"account_by_{name}")
                for name in ("amount", "past_due", "due_amount")
            ),
            models.Index(fields=["figures_good_through"], name="account_by_good_through"),
            # These have few accounts.
            *(
                models.Index(
                    fields=[name], condition=models.Q(**{f"{name}__isnull": False}), name=f"account_by_{name}"
                )
                for name in ("oldest_unpaid_due", "days_past_due", "due_since_on")
            ),
            models.Index(fields=["past_due_rank", "id"], condition=IS_LATE, name="account_past_due"),
            models.Index(
                fields=["kind", "id"], condition=models.Q(needs_check=True), name="account_to_check"
            ),
            models.Index(
                fields=["kind", "-id", "search_text", "archived_at"],
                condition=HAS_TEXT,
                name="account_by_text",
            ),
        ]

    def __str__(self) -> str:
        return self.label or self.uuid

    def get_absolute_url(self) -> str:
        """The record's own page, or its borrower's where it has none."""
        match self.kind:
            case Kind.LOAN if self.borrower_uuid:
                return reverse("loans:detail", args=[self.borrower_uuid, self.uuid])
            case Kind.LINE if self.borrower_uuid:
                return reverse("credit_lines:detail", args=[self.borrower_uuid, self.uuid])
            case _:
                return reverse("lookup:record", args=[self.kind, self.uuid])

    @property
    def why_null(self) -> str:
        """Why a value is missing; lists select ``answer`` with the record, as this reads it."""
        return (self.answer or Answer()).why_null()

    @property
    def can_be_read(self) -> bool:
        """Whether the service shows it again."""
        return True


class OnFile(models.Model):
    """What is on file about a thing with an ID of the service; generic code reads it like a ``Account``."""

    kind: ClassVar[Kind]
    FROM_ANSWER: ClassVar[Sequence[str]] = ("answer_id", "answer_at", "answer_day", "checked_at")
    """The columns that an answer may change; each model adds its own."""

    uuid = models.CharField(max_length=64)
    answer = models.OneToOneField(
        Answer,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="What was said about it; null if nobody ever asked or answered.",
    )
    # The answer's times.
    answer_at = models.DateTimeField(null=True, help_text="When its answer was received last.")
    answer_day = models.DateField(null=True, help_text="The business date of the answer.")
    checked_at = models.DateTimeField(null=True, help_text="When the service last answered for it.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    created_by = models.CharField(max_length=300, blank=True)
    archived_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    def get_kind_display(self) -> str:
        return self.kind.label

    @property
    def why_null(self) -> str:
        return (self.answer or Answer()).why_null(can_be_read=self.can_be_read)

    @property
    def can_be_read(self) -> bool:
        """Whether the service shows it again."""
        return True


class Named(OnFile):
    """A borrower or a person, who are found by their name."""

    FROM_ANSWER = (
        *OnFile.FROM_ANSWER,
        *("name", "state", "city", "phone", "email", "folded_name", "search_text"),
    )

    name = models.CharField(
        max_length=300, blank=True, help_text="As staff, a file or the service wrote it last."
    )
    state = models.CharField(max_length=10, blank=True)
    city = models.CharField(max_length=100, blank=True)
    phone = models.CharField(max_length=20, blank=True)
    email = models.CharField(max_length=254, blank=True)
    folded_name = models.CharField(
        max_length=300, blank=True, help_text="The letters and digits of the name, folded."
    )
    search_text = models.TextField(blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name or self.uuid

    @property
    def label(self) -> str:
        return self.name

    @label.setter
    def label(self, label: str) -> None:
        self.name = label


class Borrower(Named):
    """A borrower, with the sums of its accounts, which are saved with them."""

    kind = Kind.BORROWER
    FROM_ANSWER = (*Named.FROM_ANSWER, "type", "legal_form")

    type = models.CharField(max_length=40, blank=True)
    legal_form = models.CharField(max_length=40, blank=True)
    past_due = models.DecimalField(max_digits=20, decimal_places=4, null=True, help_text="Null: not known.")
    past_due_rank = models.DecimalField(
        max_digits=20, decimal_places=4, null=True, help_text="Orders what is past due, not known last."
    )
    is_past_due = models.BooleanField(default=False)
    oldest_unpaid_on = models.DateField(null=True, help_text="Of its loans.")
    days_past_due = models.IntegerField(null=True, help_text="The most of its lines, as reported.")
    decision = models.CharField(
        max_length=40, blank=True, help_text="On its latest application, or that one is open."
    )

    class Meta:
        # With this operator class PostgreSQL also uses it to find IDs by their beginning.
        constraints = [
            models.UniqueConstraint(
                fields=["uuid"], name="one_borrower_per_uuid", opclasses=["varchar_pattern_ops"]
            ),
        ]
        indexes = [
            models.Index(fields=["past_due_rank", "id"], name="borrower_by_past_due_rank"),
            models.Index(Lower("name"), "id", name="borrower_by_name"),
            models.Index(fields=["folded_name"], name="borrower_by_folded_name"),
            models.Index(fields=["-updated_at", "-id"], name="borrower_by_updated_at"),
            models.Index(fields=["-created_at", "-id"], name="borrower_by_created_at"),
            *(
                models.Index(fields=[name], name=f"borrower_by_{name}")
                for name in ("past_due", "state", "legal_form", "decision", "checked_at", "created_by")
            ),
            # SQLite searches the texts in this index alone; PostgreSQL has one of trigrams of the same name.
            models.Index(
                fields=["-id", "search_text", "archived_at"], condition=HAS_TEXT, name="borrower_by_text"
            ),
        ]

    def get_absolute_url(self) -> str:
        return reverse("borrowers:detail", args=[self.uuid])

    @property
    def borrower_uuid(self) -> str:
        return self.uuid


class KeyPerson(Named):
    kind = Kind.KEY_PERSON
    FROM_ANSWER = (*Named.FROM_ANSWER, "borrower_uuid", "title")

    borrower_uuid = models.CharField(max_length=64, blank=True)
    title = models.CharField(max_length=40, blank=True)

    class Meta:
        # With this operator class PostgreSQL also uses it to find IDs by their beginning.
        constraints = [
            models.UniqueConstraint(
                fields=["uuid"], name="one_key_person_per_uuid", opclasses=["varchar_pattern_ops"]
            ),
        ]
        indexes = [
            models.Index(fields=["borrower_uuid"], name="people_by_borrower"),
            models.Index(fields=["folded_name"], name="people_by_folded_name"),
            models.Index(fields=["-updated_at", "-id"], name="people_by_updated_at"),
            # As of borrowers.
            models.Index(
                fields=["-id", "search_text", "archived_at"], condition=HAS_TEXT, name="people_by_text"
            ),
        ]

    def get_absolute_url(self) -> str:
        """The tab of its borrower's page."""
        return reverse("borrowers:detail", args=[self.borrower_uuid]) + "?tab=people"


class Application(OnFile):
    """An application for a loan or a line of credit, with the decision on it."""

    kind = Kind.APPLICATION
    FROM_ANSWER = (
        *OnFile.FROM_ANSWER,
        *("borrower_uuid", "label", "product", "decision", "amount", "submitted_at", "search_text"),
    )

    borrower_uuid = models.CharField(max_length=64, blank=True)
    owner_confirmed = models.BooleanField(default=False, help_text="Somebody chose the borrower.")
    label = models.CharField(max_length=300, blank=True, help_text="Its name by staff or a file.")
    product = models.CharField(max_length=40, blank=True)
    decision = models.CharField(max_length=40, blank=True)
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True, help_text="As requested.")
    submitted_at = models.DateTimeField(
        null=True, help_text="When the service created it; a guess if the time zone is uncertain."
    )
    search_text = models.TextField(blank=True, help_text="Its label and the IDs of its offers.")

    class Meta:
        # With this operator class PostgreSQL also uses it to find IDs by their beginning.
        constraints = [
            models.UniqueConstraint(
                fields=["uuid"], name="one_application_per_uuid", opclasses=["varchar_pattern_ops"]
            ),
        ]
        indexes = [
            models.Index(fields=["borrower_uuid"], name="application_by_borrower"),
            models.Index(fields=["submitted_at", "id"], name="application_by_submitted_at"),
            models.Index(fields=["-created_at", "-id"], name="application_by_created_at"),
            models.Index(fields=["product"], name="application_by_product"),
            models.Index(fields=["decision", "submitted_at", "id"], name="application_by_decision"),
            models.Index(
                fields=["-id", "search_text", "archived_at"], condition=HAS_TEXT, name="application_by_text"
            ),
        ]

    def __str__(self) -> str:
        return self.label or self.uuid

    def get_absolute_url(self) -> str:
        if self.borrower_uuid:
            return reverse("applications:detail", args=[self.borrower_uuid, self.uuid])
        return reverse("lookup:record", args=[self.kind, self.uuid])

    @property
    def can_be_read(self) -> bool:
        """Whether the service shows it again: a loan application's only response is the one to its submission."""
        return self.product != "LOAN"


class NameWord(models.Model):
    """A word of the name of any borrower or key person, past or present, that a mistyped one is compared with."""

    word = models.CharField(max_length=60)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["word"], name="one_row_per_word")]

    def __str__(self) -> str:
        return self.word


class Repayment(models.Model):
    """A payment on a loan or a line, as in the last list of its account that contained it."""

    kind: ClassVar[Kind] = Kind.REPAYMENT

    uuid = models.CharField(max_length=64)
    account = models.ForeignKey(
        Account,
        null=True,
        on_delete=models.PROTECT,
        related_name="repayments",
        help_text="The loan or line; null if it isn't on file.",
    )
    borrower_uuid = models.CharField(max_length=64, blank=True)

    product = models.CharField(max_length=40, blank=True)
    payment_type = models.CharField(max_length=40, blank=True)
    status = models.CharField(max_length=40, blank=True)
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    effective_on = models.DateField(null=True)
    has_failed = models.BooleanField(default=False)
    ach_id = models.CharField(max_length=64, blank=True, help_text="Folded, as it is searched for.")
    ach_batch_id = models.CharField(max_length=64, blank=True, help_text="The same.")
    bank_account = models.CharField(max_length=64, blank=True, help_text="The borrower's.")
    code = models.CharField(max_length=8, blank=True, help_text="The return code in the error description.")

    first_seen_at = models.DateTimeField(default=timezone.now)
    last_listed_at = models.DateTimeField(null=True, help_text="When a list contained it last.")
    last_listed_on = models.DateField(null=True, help_text="The business date of that; null if not known.")
    returned_at = models.DateTimeField(
        null=True, help_text="When it was first seen as returned; null if it always was, or never."
    )
    updated_at = models.DateTimeField(auto_now=True)

    # A long text comes last, because SQLite reads a row from its beginning.
    body = models.TextField(blank=True, help_text="Its entry of that list as received, in canonical JSON.")

    class Meta:
        constraints = [
            # With this operator class PostgreSQL also uses it to find IDs by their beginning.
            models.UniqueConstraint(
                fields=["uuid"], name="one_row_per_repayment", opclasses=["varchar_pattern_ops"]
            ),
        ]
        indexes = [
            models.Index(fields=["effective_on", "id"], name="repayments_by_effective_on"),
            models.Index(fields=["status", "effective_on", "id"], name="repayments_by_status_and_day"),
            models.Index(fields=["has_failed", "effective_on", "id"], name="repayments_by_failure_and_day"),
            models.Index(fields=["product", "effective_on", "id"], name="repayments_by_product_and_day"),
            models.Index(fields=["payment_type", "effective_on", "id"], name="repayments_by_type_and_day"),
            models.Index(fields=["amount", "id"], name="repayments_by_amount"),
            models.Index(fields=["first_seen_at"], name="repayments_by_first_seen_at"),
            models.Index(fields=["returned_at"], name="repayments_by_returned_at"),
            models.Index(fields=["borrower_uuid"], name="repayments_by_borrower"),
            models.Index(fields=["bank_account"], name="repayments_by_bank_account"),
            models.Index(fields=["ach_id"], name="repayments_by_ach_id"),
            models.Index(fields=["ach_batch_id"], name="repayments_by_ach_batch_id"),
            models.Index(fields=["code"], name="repayments_by_code"),
        ]

    def __str__(self) -> str:
        return self.uuid

    def get_absolute_url(self) -> str:
        return reverse("repayments:detail", args=[self.uuid])

    def get_kind_display(self) -> str:
        """As for a record, so that a page may be about either."""
        return str(self.kind.label)

    @property
    def why_null(self) -> str:
        listed = Answer(kind=self.kind, source=Source.SERVICE, last_at=self.last_listed_at)
        return listed.why_null()


# A row with an answer of its own.
Answered = Account | Application | Borrower | KeyPerson
# A row of any kind.
Saved = Answered | Repayment


class RepaymentStatus(models.Model):
    """The event that a repayment was seen with another status than before."""

    repayment = models.ForeignKey(Repayment, on_delete=models.CASCADE, related_name="statuses")
    at = models.DateTimeField(help_text="When it was first seen with the new status.")
    old = models.CharField(max_length=40, blank=True)
    old_last_at = models.DateTimeField(null=True, help_text="When it was last seen with the old status.")
    old_reason = models.TextField(blank=True, help_text="What the service said about the old status then.")
    new = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.repayment_id} {self.old} {self.new}"


class Snapshot(models.Model):
    """An earlier answer, saved if it differs from the one before."""

    answer = models.ForeignKey(Answer, on_delete=models.CASCADE, related_name="snapshots", db_index=False)
    first_at = models.DateTimeField(null=True, help_text="When it was received first; null as above.")
    last_at = models.DateTimeField(help_text="When it was received last.")
    first_on = models.DateField(null=True, help_text="The business date of the first; null if not known.")
    last_on = models.DateField(null=True, help_text="The business date of the last; null if not known.")
    source = models.CharField(max_length=10, choices=Source.choices)
    digest = models.CharField(max_length=64)
    body = models.TextField()

    class Meta:
        ordering = ["-last_at", "-id"]
        indexes = [models.Index(fields=["answer", "-last_at"], name="snapshots_of_answer")]

    def __str__(self) -> str:
        return f"{self.answer_id} {self.last_at:%Y-%m-%d %H:%M}"


class PastDueChange(models.Model):
    """The event that an account fell past due or was cured, from the first saved figures that say so."""

    record = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="past_due_changes")
    day = models.DateField(help_text="The business date.")
    is_cured = models.BooleanField()

    class Meta:
        ordering = ["-day", "-id"]
        indexes = [models.Index(fields=["day", "is_cured", "record"], name="past_due_changes_by_day")]

    def __str__(self) -> str:
        return f"{self.record} {'cured' if self.is_cured else 'past due'} {self.day}"
