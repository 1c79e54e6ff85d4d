"""The forms of the contact log: one contact with promise and follow-up, and the withdrawal of a promise."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django import forms

from portal.collections.models import Channel, Outcome
from portal.notes.views import ColleagueField, NearDayField
from portal.records import store
from portal.records.models import Account, Borrower, Kind
from portal.ui import wording
from portal.ui.forms import ChoiceField, MoneyField, StaffForm, TextField
from portal.ui.guard import Question
from servicing import Statement

SOMEONE_ELSE = "Someone else"
PROMISE_FIELDS = ("amount", "day")
FOLLOW_UP_FIELDS = ("next_action", "next_on", "colleague")
NOUNS = {Kind.LOAN: "Loan", Kind.LINE: "Line"}


@dataclass(frozen=True)
class Person:
    """Somebody to contact; as a string, what a contact keeps."""

    name: str
    phone: str | None

    def __str__(self) -> str:
        return ", ".join(filter(None, [self.name, self.phone]))[:300]


class ContactForm(StaffForm):
    """One contact. Asks about a promise above what the account owes, and about a colleague's contact."""

    person = ChoiceField(label="Person")
    account = ChoiceField(label="Account", required=False)
    channel = ChoiceField(label="Channel", choices=Channel.choices)
    outcome = ChoiceField(label="Outcome", choices=[("", "Choose one"), *Outcome.choices])
    amount = MoneyField(label="Promised amount", required=False)
    day = NearDayField(label="Promised date", required=False)
    note = TextField(label="Note", max_length=2000, required=False, widget=forms.Textarea({"rows": 2}))
    next_action = TextField(label="Next action", max_length=200, required=False)
    next_on = NearDayField(label="Due", required=False)
    colleague = ColleagueField(label="Assign to", required=False, empty_label="Me")
    confirmed_amount = forms.DecimalField(required=False, widget=forms.HiddenInput)
    seen = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(
        self,
        data: Any = None,
        *,
        people: Sequence[Person] = (),
        accounts: Iterable[Account] = (),
        subject: Account | Borrower | None = None,
        borrower: Borrower | None = None,
        news: str = "",
        newest: int = 0,
    ) -> None:
        owed = subject.past_due if isinstance(subject, Account) else None
        super().__init__(data, initial={"seen": newest, "amount": owed or None})
        self.accounts = {one.uuid: one for one in accounts}
        self.record, self.borrower, self.news, self.newest = subject, borrower, news, newest
        self.people = people
        persons = [*((str(one), one.name) for one in people), (SOMEONE_ELSE, SOMEONE_ELSE)]
        self.fields["person"].choices = persons  # type: ignore[attr-defined]
        choices = [
            (uuid, f"{NOUNS[Kind(one.kind)]} {uuid[:8]}{_past_due(one)}")
            for uuid, one in self.accounts.items()
        ]
        self.fields["account"].choices = [("", "All accounts"), *choices]  # type: ignore[attr-defined]
        if subject is not None and subject.kind in NOUNS:
            del self.fields["account"]

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if self.errors:
            return found
        self._check_promise(found)
        if bool(found["next_action"]) != bool(found["next_on"]):
            name, reason = (
                ("next_on", "Choose a day.")
                if found["next_action"]
                else ("next_action", "Enter the next action.")
            )
            self.add_error(name, reason)
        elif found["next_action"] and self.borrower is None:
            self.add_error("next_action", "Add the borrower first. Its page keeps the follow-ups.")
        if not self.errors:
            self._ask(found)
        return found

    def _check_promise(self, found: dict[str, Any]) -> None:
        if found["outcome"] != Outcome.PROMISED:
            # The amount is filled in before the outcome is known.
            if found["day"] or found["amount"] not in (None, self.initial["amount"]):
                self.add_error("outcome", "Choose “Promised to pay” to log a promise.")
            return
        if found["amount"] is None:
            self.add_error("amount", "Enter the promised amount.")
        if not found["day"]:
            self.add_error("day", "Choose the promised day.")
        account = self.chosen_account
        if account is None:
            self.add_error("account" if "account" in self.fields else None, "Choose the account.")
        elif account.archived_at:
            self.add_error(None, "This account is archived. Restore it to log a promise.")

    def _ask(self, found: dict[str, Any]) -> None:
        """Ask about a promise above what is owed, and about contacts logged by others since the form was opened."""
        owed, amount = owed_on(self.chosen_account), found["amount"]
        if amount is not None and owed is not None and amount > owed and amount != found["confirmed_amount"]:
            self.questions["amount"] = Question("confirmed_amount", str(amount), "Yes, log it")
            self.add_error("amount", f"More than the {wording.money(owed)} owed. Log it anyway?")
        if self.news and (found["seen"] or 0) < self.newest:
            self.questions["outcome"] = Question("seen", str(self.newest), "Yes, log this one too")
            self.add_error("outcome", f"{self.news} Log this one too?")

    @property
    def contact_fields(self) -> list[Any]:
        apart = PROMISE_FIELDS + FOLLOW_UP_FIELDS
        return [field for field in self.visible_fields() if field.name not in apart]

    @property
    def promise_fields(self) -> list[Any]:
        return [self[name] for name in PROMISE_FIELDS]

    @property
    def follow_up_fields(self) -> list[Any]:
        return [self[name] for name in FOLLOW_UP_FIELDS]

    @property
    def chosen_account(self) -> Account | None:
        """The account that the contact is about; None if it is about the borrower."""
        if isinstance(self.record, Account):
            return self.record
        return self.accounts.get(self.cleaned_data.get("account", ""))

    @property
    def promised(self) -> tuple[Decimal, date] | None:
        found = self.cleaned_data
        return (found["amount"], found["day"]) if found["outcome"] == Outcome.PROMISED else None


def owed_on(account: Account | None) -> Decimal | None:
    """Everything still to be paid on an account, as far as known."""
    if account is None:
        return None
    if account.kind == Kind.LOAN:
        return account.remaining
    line = store.last_answer(account, Statement)
    return line.payoff_balance if line else None


def _past_due(account: Account) -> str:
    return f", {wording.money(account.past_due)} past due" if account.past_due else ""


class WithdrawForm(StaffForm):
    """Why a promise is withdrawn."""

    reason = TextField(label="Reason", max_length=200)


class AssignForm(StaffForm):
    """The owner of the selected accounts."""

    owner = ColleagueField(label="Owner")
