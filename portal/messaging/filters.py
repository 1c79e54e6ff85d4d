"""The filters of the list of messages: those that the service applies, those applied here, and their form.

Hides how a typed borrower is found, and how text and JSON in one box are distinguished. An invalid value gets its
reason at the field, and the list ignores that filter.
"""

from datetime import date, timedelta
from functools import cached_property
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils import timezone
from django.utils.safestring import SafeString

from portal.messaging.store import ONE_DAY, service_today, service_zone
from portal.messaging.text import SearchError, parse_text
from portal.records.models import Borrower, Kind
from portal.records.query import EARLIEST_YEAR, parse_query, uuid_in
from portal.records.search import Rank, rank_matches
from portal.tables.filters import select_options
from portal.ui import wording
from portal.ui.forms import DayInput, MoneyField, StaffForm, TextField

SERVICE_FILTERS: Final = ("start_date", "end_date", "event")
"""The service applies these, and only one event; all others are applied here."""
DISPLAY_PARAMS: Final = ("limit", "source", "order")
"""These affect only the display."""
TRANSIENT_PARAMS: Final = ("page", "message", "tab", "since", "format", "all")
"""These are transient, and not part of the list's address."""
SIZES: Final = (25, 50, 100)
MAX_SUGGESTIONS: Final = 5
MAX_VALUES: Final = 20
WRONG_DAY: Final = "That date doesn’t exist. Use 2026-11-30."


class ValuesField(forms.Field):
    """Any number of values, on file or not."""

    widget = forms.CheckboxSelectMultiple

    def to_python(self, value: Any) -> list[str]:
        return list(dict.fromkeys(text for text in (value or ()) if text))

    def validate(self, value: list[str]) -> None:
        if any("\ufffd" in text or len(text) > 100 for text in value):
            raise ValidationError("Not a valid value.")
        if len(value) > MAX_VALUES:
            raise ValidationError(f"Choose up to {MAX_VALUES}.")


class BorrowerField(TextField):
    """A borrower on file, by ID or by name."""

    def clean(self, value: Any) -> Borrower | None:
        typed = super().clean(value)
        if not typed:
            return None
        borrowers = Borrower.objects.all()
        if found := borrowers.filter(uuid=uuid_in(typed) or typed).first():
            return found
        ranks = rank_matches([Kind.BORROWER], parse_query(typed), MAX_SUGGESTIONS).get(Kind.BORROWER, {})
        best = [key for key, rank in ranks.items() if rank <= Rank.NAME]
        chosen = list(borrowers.filter(pk__in=best if len(best) == 1 else ranks))
        if not chosen:
            raise ValidationError("No borrower on file matches.")
        if len(chosen) > 1:
            names = wording.with_full_stop("; ".join(map(str, chosen)))
            raise ValidationError(f"Several borrowers match: {names} Enter more of the name.")
        return chosen[0]

    def prepare_value(self, value: Any) -> Any:
        return value.uuid if isinstance(value, Borrower) else value


class LinkForm(StaffForm):
    """The borrower of a bank account; an empty field removes the link."""

    borrower = BorrowerField(
        label="Borrower",
        help_text="Name or ID. Clear the field to remove a link.",
    )


def _check_year(day: date) -> None:
    if day.year == date.max.year:
        raise ValidationError(WRONG_DAY)
    if day.year < EARLIEST_YEAR:
        raise ValidationError(f"Nothing is on file from before {EARLIEST_YEAR}. Check the year.")


def _day_field(label: str) -> forms.DateField:
    errors = {"invalid": WRONG_DAY}
    return forms.DateField(
        label=label, required=False, widget=DayInput, error_messages=errors, validators=[_check_year]
    )


def _time_field(label: str) -> forms.TimeField:
    errors = {"invalid": "Use a time like 14:30."}
    widget = forms.TimeInput({"type": "time"})
    return forms.TimeField(label=label, required=False, widget=widget, error_messages=errors)


def _choice_field(label: str, *choices: tuple[str, str]) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, required=False, choices=choices)


class FilterForm(StaffForm):
    """All filters that the list's address may have."""

    guards_text = False  # A search, whose words are never saved, and masked in the audit trail.

    start_date = _day_field("From")
    end_date = _day_field("To")
    start_time = _time_field("From time")
    end_time = _time_field("To time")
    event = ValuesField(label="Event", required=False)
    status = ValuesField(label="Message status", required=False)
    product = ValuesField(label="Product", required=False)
    payment = ValuesField(label="Payment status", required=False)
    least = MoneyField(label="Amount from", required=False)
    most = MoneyField(label="Amount to", required=False)
    borrower = BorrowerField(label="Borrower", required=False)
    id = TextField(label="ID", required=False)
    q = TextField(label="Text or JSON", required=False, max_length=2000)
    link = _choice_field("Borrower link", ("", "Any"), ("unlinked", "Unlinked"))
    gone = _choice_field("At the service", ("", "Any"), ("gone", "Gone"))
    changed = _choice_field("Payload", ("", "Any"), ("changed", "Changed later"))
    order = _choice_field("Order", ("", "Newest first"), ("oldest", "Oldest first"))
    source = _choice_field("Source", ("", "Lending service"), ("copy", "Local copy"))
    limit = forms.TypedChoiceField(
        label="Messages per page",
        required=False,
        choices=[(size, str(size)) for size in SIZES],
        coerce=int,
        empty_value=None,
        error_messages={"invalid_choice": "A page has 25, 50 or 100 messages."},
    )

    @cached_property
    def typed(self) -> dict[str, str]:
        """What each field holds, whether or not it is valid."""
        return {name: self.data.get(name, "") for name in self.fields}

    @cached_property
    def multi_value_fields(self) -> dict[str, dict[str, Any]]:
        """The fields that take several values: what was typed, and what of it is valid."""
        data: Any = self.data
        return {
            name: {
                "name": name,
                "label": field.label,
                "typed": data.getlist(name),
                "chosen": self.cleaned_data.get(name, ()),
            }
            for name, field in self.fields.items()
            if isinstance(field, ValuesField)
        }

    @property
    def period_inputs(self) -> list[tuple[str, str, str, str, bool]]:
        """Name, label, type and value of each end of the period, and whether it has an error."""
        return [
            (name, str(self.fields[name].label), name[-4:], self.typed[name], name in self.errors)
            for name in ("start_date", "start_time", "end_date", "end_time")
        ]

    @property
    def selects(self) -> list[tuple[str, str, SafeString]]:
        """Name, label and choices of the fields with a few fixed values."""
        fields: Any = ((name, self.fields[name]) for name in ("link", "gone", "changed", "order", "source"))
        return [
            (name, field.label, select_options(tuple(field.choices), self.data.get(name, "")))
            for name, field in fields
        ]

    @property
    def problems(self) -> list[tuple[str, str, str]]:
        """Name and label of each field with an error, and the error."""
        return [
            (name, str(field.label), str(reason))
            for name, field in self.fields.items()
            for reason in self.errors.get(name, ())
        ]

    @property
    def has_time_errors(self) -> bool:
        return any(name.startswith(("start_", "end_")) for name in self.errors)

    def clean_q(self) -> str:
        text: str = self.cleaned_data["q"].strip()
        try:
            if text:
                parse_text(text)
        except SearchError as reason:
            raise ValidationError(str(reason)) from None
        return text

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for moment, day in (("start_time", "start_date"), ("end_time", "end_date")):
            if data.get(moment) and not data.get(day) and day not in self.errors:
                self.add_error(moment, "Choose a day.")
        ranges = [
            ("start_date", "end_date", wording.DATES_REVERSED),
            ("least", "most", wording.AMOUNTS_REVERSED),
        ]
        if data.get("start_date") == data.get("end_date"):
            ranges.append(("start_time", "end_time", wording.DATES_REVERSED))
        for first, last, reason in ranges:
            if None not in (data.get(first), data.get(last)) and data[last] < data[first]:
                self.add_error(last, reason)
        return data


def cleaned_filters(state: QueryDict) -> tuple[FilterForm, dict[str, Any]]:
    """The form for an address, and its valid values."""
    form = FilterForm(state)
    form.is_valid()
    return form, {name: value for name, value in form.cleaned_data.items() if value not in ("", None, [])}


def time_presets() -> dict[str, dict[str, str]]:
    """The usual periods by name, as parameters."""
    # The service filters by day only, so the time of the last 24 hours is filtered here.
    since = timezone.now().astimezone(service_zone()) - ONE_DAY
    presets = {
        "Today": _last_days(1),
        "24 h": {"start_date": f"{since:%Y-%m-%d}", "start_time": f"{since:%H:%M}"},
    }
    return presets | {f"{number} days": _last_days(number) for number in (7, 30, 90, 365)}


def _last_days(number: int) -> dict[str, str]:
    today = service_today()
    return {"start_date": f"{today - timedelta(days=number - 1)}", "end_date": f"{today}"}
