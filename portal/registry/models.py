"""What this dashboard knows of the lending service's records: the service itself cannot list or search them."""

from django.db import models
from django.db.models.functions import Lower
from django.urls import reverse

from portal.ui import wording


class Kind(models.TextChoices):
    BORROWER = "borrower", "Borrower"
    KEY_PERSON = "key_person", "Key person"
    APPLICATION = "application", "Application"
    LOAN = "loan", "Loan"
    LINE = "line", "Line of credit"
    REPAYMENT = "repayment", "Repayment"
    # The list of an account's repayments as one answer; its uuid is the account's.
    LOAN_REPAYMENTS = "loan_repayments", "Repayments of a loan"
    LINE_REPAYMENTS = "line_repayments", "Repayments of a line"


# What a lender names in its own records, and what a person looks for.
NAMED_KINDS = [Kind.BORROWER, Kind.KEY_PERSON, Kind.APPLICATION, Kind.LOAN, Kind.LINE]
SEARCHED_KINDS = [*NAMED_KINDS, Kind.REPAYMENT]


class Source(models.TextChoices):
    SERVICE = "service", "From the lending service"
    FILE = "file", "From file"
    STAFF = "staff", "Added by staff"


# The calls whose answers hold each kind; some are answered by several.
CALLS = {
    Kind.BORROWER: "borrowers.create_commercial or borrowers.update",
    Kind.KEY_PERSON: "borrowers.create_commercial, borrowers.update or borrowers.update_key_person",
    Kind.APPLICATION: "applications.get_for_line",
    Kind.LOAN: "loans.get",
    Kind.LINE: "credit_lines.statement",
    Kind.REPAYMENT: "repayments.of_loan or repayments.of_line",
    Kind.LOAN_REPAYMENTS: "repayments.of_loan",
    Kind.LINE_REPAYMENTS: "repayments.of_line",
}


def _list_indexes() -> list[models.Index]:
    """One for each way to order or to narrow a list, without what is archived; some only for lists that need them.

    A narrowing one ends in the other filters, so that several together are answered without looking at the rows. Of two
    that would do, SQLite takes the later: what usually hides more comes after what hides less. PostgreSQL has a second
    one for each column that may be empty, for the falling order with the empty last (migration ``0007_orders``).
    """
    usual = ["-updated_at", "-id"]
    narrowing = ["entity", "state", "status", "flagged"]
    narrowed = [[one, *usual, *(other for other in narrowing if other != one)] for one in narrowing]
    # The last changed of what was created long ago are far from the last changed of all: an index alone passes those.
    orders = [[*usual, "created_at"], ["-created_at", "-id"], ["amount", "id"], ["due_date", "id"]]
    of_borrowers = [["city", "id"], ["past_due", "id"], ["checked_at", *usual], ["created_by", *usual]]
    of_others = {
        Kind.APPLICATION: [["product", "id"]],
        Kind.LOAN: [["rate", "id"]],
        Kind.LINE: [["past_due", "id"]],
        # The second alone answers every filter of their list, and adds up what they leave. SQLite sees that only where
        # the column of its condition is in it.
        Kind.REPAYMENT: [
            ["product", "id"],
            ["due_date", "id", "status", "product", "entity", "flagged", "amount", "archived_at"],
        ],
    }
    listed = models.Q(archived_at__isnull=True)
    borrowers = models.Q(kind=Kind.BORROWER) & listed

    def index(names: list[str], of: str, condition: models.Q) -> models.Index:
        return models.Index(
            fields=["kind", *names], condition=condition, name=f"{of}_by_{names[0].strip('-')}"
        )

    return [
        # Its last column counts how many were checked within a day.
        index(["checked_at", "id", "product"], "records", listed),
        models.Index(fields=["kind", "status", "id"], condition=listed, name="records_in_status"),
        *(index(names, "records", listed) for names in orders + narrowed),
        models.Index("kind", Lower("label"), "id", condition=borrowers, name="borrowers_by_label"),
        *(index(names, "borrowers", borrowers) for names in of_borrowers),
        *(
            index(names, f"{kind.value}s", models.Q(kind=kind) & listed)
            for kind, orders in of_others.items()
            for names in orders
        ),
    ]


class Record(models.Model):
    """One known record with its last answer, and the few columns that lists filter and sort by."""

    kind = models.CharField(max_length=16, choices=Kind.choices)
    uuid = models.CharField(max_length=64)
    borrower_uuid = models.CharField(max_length=64, blank=True)
    owner_confirmed = models.BooleanField(
        default=False, db_default=False, help_text="Somebody chose the borrower, whatever the answer says."
    )
    parent_uuid = models.CharField(
        max_length=64, blank=True, help_text="The loan or line a repayment belongs to."
    )
    label = models.CharField(max_length=300, blank=True)
    search_text = models.TextField(blank=True)

    # The last answer, as exact JSON text: numbers keep every digit they were sent with.
    answer = models.TextField(blank=True)
    answer_at = models.DateTimeField(null=True)
    source = models.CharField(max_length=10, choices=Source.choices, default=Source.STAFF)
    checked_at = models.DateTimeField(null=True, help_text="When the service last answered for it.")
    asked_at = models.DateTimeField(null=True, help_text="When the service was last asked for it.")
    failed_at = models.DateTimeField(null=True, help_text="When asking failed last.")
    failing_since = models.DateTimeField(null=True, help_text="Since when asking has failed.")
    failure = models.TextField(blank=True, help_text="Why it failed last, in words for staff.")

    product = models.CharField(max_length=40, blank=True)
    status = models.CharField(max_length=40, blank=True)
    entity = models.CharField(max_length=40, blank=True)
    state = models.CharField(max_length=10, blank=True)
    city = models.CharField(max_length=100, blank=True)
    phone = models.CharField(max_length=20, blank=True)
    email = models.CharField(max_length=254, blank=True)
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    past_due = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    due_date = models.DateField(null=True, help_text="Of a loan the first day that is not paid.")
    rate = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    flagged = models.BooleanField(default=False, help_text="Delinquent or past due.")

    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    created_by = models.CharField(max_length=300, blank=True)
    archived_at = models.DateTimeField(null=True)

    class Meta:
        # By this class PostgreSQL finds by it how an identifier begins, too.
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "uuid"],
                name="one_record_per_uuid",
                opclasses=["varchar_ops", "varchar_pattern_ops"],
            )
        ]
        indexes = [
            models.Index(fields=["borrower_uuid", "kind"]),
            models.Index(fields=["parent_uuid", "kind"]),
            *_list_indexes(),
        ]

    def __str__(self) -> str:
        return self.label or self.uuid

    def get_absolute_url(self) -> str:
        """The record's own page, or its borrower's where it has none."""
        match self.kind:
            case Kind.BORROWER:
                return reverse("borrowers:detail", args=[self.uuid])
            case Kind.KEY_PERSON:
                return reverse("borrowers:detail", args=[self.borrower_uuid]) + "?tab=people"
            case Kind.APPLICATION if self.borrower_uuid:
                return reverse("applications:detail", args=[self.borrower_uuid, self.uuid])
            case Kind.LOAN if self.borrower_uuid:
                return reverse("loans:detail", args=[self.borrower_uuid, self.uuid])
            case Kind.LINE if self.borrower_uuid:
                return reverse("credit_lines:detail", args=[self.borrower_uuid, self.uuid])
            case Kind.REPAYMENT:
                return reverse("repayments:detail", args=[self.uuid])
            case _:
                return reverse("lookup:record", args=[self.kind, self.uuid])

    @property
    def why_null(self) -> str:
        """Why a value of it is missing: who was asked, by which call and when; or that nobody ever told."""
        if not self.answer_at:
            return "Unknown: never answered" if self.asked_at else "Unknown: never asked"
        if self.source == Source.FILE:
            return f"Not in the file of {wording.moment(self.answer_at)}"
        is_for_loan = self.kind == Kind.APPLICATION and self.product.upper() == "LOAN"
        call = "applications.submit" if is_for_loan else CALLS[Kind(self.kind)]
        return wording.not_provided(call, self.answer_at)


class Snapshot(models.Model):
    """An earlier answer, kept when it differs from the one before it."""

    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="snapshots")
    at = models.DateTimeField()
    source = models.CharField(max_length=10, choices=Source.choices)
    digest = models.CharField(max_length=64)
    answer = models.TextField()

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["record", "-at"])]

    def __str__(self) -> str:
        return f"{self.record} {self.at:%Y-%m-%d %H:%M}"
