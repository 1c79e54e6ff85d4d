"""The work on past due accounts: their owners, contacts and promises."""

from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import models

from portal.core.folding import fold
from portal.ui import wording
from servicing.promises import PromiseState

LOOKS = {
    PromiseState.OPEN: "waiting",
    PromiseState.PENDING: "waiting",
    PromiseState.KEPT: "ok",
    PromiseState.WAITING: "neutral",
    PromiseState.BROKEN: "bad",
    PromiseState.NOT_KNOWN: "warn",
    PromiseState.WITHDRAWN: "neutral",
}


class AccountOwner(models.Model):
    """The staff member who works on an account."""

    account_uuid = models.CharField(max_length=64, unique=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="collection_accounts"
    )
    since = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.owner} works on {self.account_uuid}"


class Channel(models.TextChoices):
    PHONE = "phone", "Phone"
    EMAIL = "email", "Email"
    TEXT = "text", "Text message"
    LETTER = "letter", "Letter"
    IN_PERSON = "in_person", "In person"


class Outcome(models.TextChoices):
    REACHED = "reached", "Reached"
    LEFT_MESSAGE = "left_message", "Left message"
    WRONG_NUMBER = "wrong_number", "Wrong number"
    PROMISED = "promised", "Promised to pay"
    DISPUTES = "disputes", "Disputes the amount"
    HARDSHIP = "hardship", "Hardship"
    OTHER = "other", "Other"


class Contact(models.Model):
    """One attempt to contact somebody about a borrower or one of its accounts."""

    borrower_uuid = models.CharField(max_length=64, db_index=True)
    account_kind = models.CharField(max_length=16, blank=True)
    account_uuid = models.CharField(max_length=64, blank=True, db_index=True)
    person = models.CharField(max_length=300, help_text="Who was called or written to, with the number.")
    channel = models.CharField(max_length=16, choices=Channel.choices)
    outcome = models.CharField(max_length=16, choices=Outcome.choices)
    note = models.TextField(blank=True)
    next_action = models.CharField(max_length=200, blank=True)
    next_on = models.DateField(null=True)
    folded_text = models.TextField(db_default="", editable=False, help_text="The note and the next action.")
    author_id = models.BigIntegerField()
    author_name = models.CharField(max_length=300)
    at = models.DateTimeField(auto_now_add=True)
    day = models.DateField(help_text="The business date.")

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.get_outcome_display()}: {self.person}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.folded_text = fold(f"{self.note} {self.next_action}")
        super().save(*args, **kwargs)


class Promise(models.Model):
    """An amount promised in a contact, with the day it is due, and what the repayments say about it."""

    contact = models.OneToOneField(Contact, on_delete=models.CASCADE, related_name="promise")
    account_uuid = models.CharField(max_length=64, db_index=True)
    amount = models.DecimalField(max_digits=20, decimal_places=2)
    day = models.DateField(db_index=True)
    logged_on = models.DateField(help_text="The business date.")
    logged_at = models.DateTimeField()
    state = models.CharField(
        max_length=16,
        choices=[(one.name, one.value) for one in PromiseState],
        db_default="",
        help_text="Empty until it is decided for the first time.",
    )
    deadline = models.DateField(null=True, help_text="Its day with the days of grace, when it was decided.")
    paid = models.DecimalField(
        max_digits=20, decimal_places=4, default=Decimal(0), help_text="By the repayments that count for it."
    )
    decided_on = models.DateField(null=True, help_text="The business date on which it was decided.")
    broken_on = models.DateField(null=True, help_text="The business date on which it was first seen broken.")
    withdrawn_at = models.DateTimeField(null=True)
    withdrawn_by = models.CharField(max_length=300, blank=True)
    reason = models.CharField(max_length=200, blank=True, help_text="Why it was withdrawn.")

    class Meta:
        ordering = ["logged_at", "id"]
        indexes = [models.Index(fields=["state", "deadline"], name="promise_state")]

    def __str__(self) -> str:
        return f"${self.amount:,.2f} by {self.day}"

    @property
    def look(self) -> str:
        return LOOKS[PromiseState[self.state]]

    @property
    def words(self) -> str:
        """What was paid, if that says more than the state, or why the promise was withdrawn."""
        if self.state == PromiseState.WITHDRAWN.name:
            return f"by {self.withdrawn_by}: {self.reason}"
        paid, amount = (wording.money(one) for one in (self.paid, self.amount))
        if self.state == PromiseState.WAITING.name:
            return f"{paid} of {amount} by the last update"
        return f"paid {paid} of {amount}" if self.paid or self.state == PromiseState.BROKEN.name else ""
