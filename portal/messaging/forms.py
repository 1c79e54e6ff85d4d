"""What narrows the list of messages: what the service filters by itself, and what is filtered here.

Hides how a typed borrower is found, how text and JSON in one box are told apart, and which of the filters the interface
has. What is refused is said at its field, and left out of what the list shows.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils import timezone

from portal.messaging.facts import NotJson, facts_asked, words_asked
from portal.messaging.keeping import service_zone, today
from portal.registry.models import Kind, Record
from portal.registry.query import EARLIEST_YEAR, read, uuid_in
from portal.registry.search import ranked
from portal.ui import wording
from portal.ui.forms import DayInput, MoneyField, StaffForm, TextField

SIZES: Final = (25, 50, 100)
SUGGESTED: Final = 5
MOST_VALUES: Final = 20
# What belongs to one moment of the list, not to what it shows.
PASSING: Final = ("page", "message", "tab", "panel", "since", "format", "all")
PRESETS: Final = (7, 30, 90)
NO_TIME: Final = dict.fromkeys(("start_date", "start_time", "end_date", "end_time"))


class SeveralInput(forms.CheckboxSelectMultiple):
    """Several values of one name."""


class SeveralField(forms.Field):
    """Any number of values, whether this desk has seen them or not."""

    widget = SeveralInput

    def to_python(self, value: Any) -> list[str]:
        return list(dict.fromkeys(text for text in (value or ()) if text))

    def validate(self, value: list[str]) -> None:
        if any("\ufffd" in text or len(text) > 100 for text in value):
            raise ValidationError("There can be no such value.")
        if len(value) > MOST_VALUES:
            raise ValidationError(f"Choose at most {MOST_VALUES}.")


class ServiceDayField(forms.DateField):
    """A day by which the service filters."""

    widget: Any = DayInput
    default_error_messages = {"invalid": "There is no such day. Write it like 2026-11-30."}

    def validate(self, value: Any) -> None:
        super().validate(value)
        if value and not EARLIEST_YEAR <= value.year < date.max.year:
            raise ValidationError(self.error_messages["invalid"])


class Several(ValidationError):
    """A name that may mean several borrowers."""

    def __init__(self, borrowers: Sequence[Record]) -> None:
        super().__init__(
            f"Several borrowers match: {wording.ended('; '.join(map(str, borrowers)))} Type more of the name."
        )


class BorrowerField(TextField):
    """A borrower known here, by identifier or by name."""

    def clean(self, value: Any) -> Record | None:
        typed = super().clean(value)
        if not typed:
            return None
        known = Record.objects.filter(kind=Kind.BORROWER)
        if found := known.filter(uuid=uuid_in(typed) or typed).first():
            return found
        ranks = ranked([Kind.BORROWER], read(typed), SUGGESTED).get(Kind.BORROWER, {})
        best = [key for key, rank in ranks.items() if rank <= 1]
        chosen = list(known.filter(pk__in=best if len(best) == 1 else ranks))
        if not chosen:
            raise ValidationError("No borrower known here matches.")
        if len(chosen) > 1:
            raise Several(chosen)
        return chosen[0]

    def prepare_value(self, value: Any) -> Any:
        return value.uuid if isinstance(value, Record) else value


class LinkForm(StaffForm):
    """Whose bank account it is; nobody's takes the link away."""

    borrower = BorrowerField(
        label="Borrower",
        help_text="Name or identifier. Where a link was made, an empty field takes it away.",
    )


class FilterForm(StaffForm):
    guards_text = False  # A search: its words are kept nowhere, and masked in the trail.

    """Everything that the address of the list may hold."""

    start_date = ServiceDayField(label="From", required=False)
    end_date = ServiceDayField(label="until", required=False)
    start_time = forms.TimeField(label="From time", required=False, widget=forms.TimeInput({"type": "time"}))
    end_time = forms.TimeField(label="until time", required=False, widget=forms.TimeInput({"type": "time"}))
    event = SeveralField(label="Event", required=False)
    status = SeveralField(label="Message status", required=False)
    product = SeveralField(label="Product", required=False)
    payment = SeveralField(label="Payment status", required=False)
    least = MoneyField(label="Amount from", required=False)
    most = MoneyField(label="Amount to", required=False)
    borrower = BorrowerField(label="Borrower", required=False)
    id = TextField(label="Identifier", required=False)
    q = TextField(label="Text or JSON", required=False, max_length=2000)
    link = forms.ChoiceField(
        label="Borrower link",
        required=False,
        choices=[("", "Linked or not"), ("unlinked", "Unlinked only")],
    )
    order = forms.ChoiceField(
        label="Order", required=False, choices=[("", "Newest first"), ("oldest", "Oldest first")]
    )
    source = forms.ChoiceField(
        label="Source", required=False, choices=[("", "Lending service"), ("copy", "Local copy")]
    )
    limit = forms.TypedChoiceField(
        label="Messages a page",
        required=False,
        choices=[(size, str(size)) for size in SIZES],
        coerce=int,
        empty_value=None,
        error_messages={"invalid_choice": "A page has 25, 50 or 100 messages."},
    )

    def __init__(self, state: QueryDict) -> None:
        super().__init__(state)
        for name in ("start_time", "end_time"):
            self.fields[name].error_messages["invalid"] = "Write a time like 14:30."

    def clean_q(self) -> str:
        """Refused where nothing could be looked for."""
        text: str = self.cleaned_data["q"].strip()
        try:
            facts_asked(text) if text.startswith("{") else words_asked(text)
        except NotJson as reason:
            raise ValidationError(str(reason)) from None
        return text

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        start, end = data.get("start_date"), data.get("end_date")
        if start and end and end < start:
            self.add_error("end_date", wording.DAYS_TURNED_ROUND)
        for moment, day in (("start_time", "start_date"), ("end_time", "end_date")):
            if data.get(moment) and not data.get(day) and day not in self.errors:
                self.add_error(moment, "Say of which day.")
        if start and start == end and (data.get("end_time") or data.get("start_time")):
            late, early = data.get("end_time"), data.get("start_time")
            if late and early and late < early:
                self.add_error("end_time", wording.DAYS_TURNED_ROUND)
        least, most = data.get("least"), data.get("most")
        if least is not None and most is not None and most < least:
            self.add_error("most", wording.AMOUNTS_TURNED_ROUND)
        return data


def last_days(number: int) -> dict[str, str]:
    """So many days, the service's today included."""
    return {"start_date": f"{today() - timedelta(days=number - 1)}", "end_date": f"{today()}"}


def last_day_and_night() -> dict[str, str]:
    """Since this time yesterday: the service filters by days only, so the time is filtered here."""
    since = timezone.now().astimezone(service_zone()) - timedelta(days=1)
    return {"start_date": f"{since:%Y-%m-%d}", "start_time": f"{since:%H:%M}"}
