"""Filters of a list, each with its condition, words and control."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import QueryDict
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from portal.records.figures import aging_of_kinds
from portal.records.models import WITHOUT_FIGURE, Kind
from portal.records.query import NotUnderstood, calendar_day, midnight, parse_query
from portal.records.rows import distinct_values
from portal.ui import wording
from portal.ui.forms import MoneyField
from servicing.figures import AGING_DAYS, Aging
from servicing.rules import known_spelling

Options = Iterable[tuple[str, str]]
# The value that means an empty column.
NONE = "none"


@dataclass(frozen=True)
class RangeEnd:
    """The upper bound of a range, ignored if it is below the lower bound."""

    start: str
    """The name of the filter with the lower bound."""
    read: Callable[[str], Any]
    problem: str


@dataclass(frozen=True, kw_only=True)
class Filter:
    """One filter of a list, and its control above the list."""

    name: str
    label: str
    condition: Callable[[str], Q]
    """Builds the condition for a value; raises :class:`NotUnderstood`."""
    words: Callable[[str], str] = str
    """Describes a value for its chip."""
    is_phrase: bool = False
    """Whether these words say enough without the label."""
    control: str = "select"
    """``select``, ``checkbox``, ``date`` or ``amount``."""
    prompt: str = ""
    """The choice without effect, the words beside a checkbox or above a date, or the placeholder of an amount."""
    options: Callable[[], Options] = field(default=tuple, repr=False)
    """The values of a select or a checkbox with their words."""
    range_end: RangeEnd | None = None
    span_of: str = ""
    """The column of a span of days that it begins or ends."""

    def control_for(self, state: QueryDict) -> dict[str, Any]:
        """What the template needs to render the control."""
        value, options = state.get(self.name, ""), tuple(self.options())
        is_select = self.control == "select" and options
        html = select_options(options, value) if is_select else ""
        return {"filter": self, "value": value, "options": options, "options_html": html}


@lru_cache(256)
def select_options(options: Options, value: str) -> SafeString:
    """The options of a select as HTML, rendered once for the same choices."""
    return format_html_join(
        "",
        '<option value="{}"{}>{}</option>',
        ((one, SafeString(" selected" if one == value else ""), words) for one, words in options),
    )


def value_filter(
    kind: Kind,
    name: str,
    label: str,
    column: str,
    *,
    prompt: str,
    empty: str = "",
    words: Callable[[str], str | None] = wording.human,
) -> Filter:
    """A filter by a column's values; with ``empty``, also by records without one."""

    def in_words(value: str) -> str:
        return empty if empty and value == NONE else words(value) or value

    def options() -> Options:
        values = [(value, in_words(value)) for value in distinct_values(kind, column)]
        return [*values, (NONE, f"{label} {empty}")] if empty else values

    return Filter(
        name=name,
        label=label,
        condition=lambda value: Q(**{column: "" if empty and value == NONE else known_spelling(value)}),
        words=in_words,
        prompt=prompt,
        options=options,
    )


def choice_filter(
    name: str, label: str, choices: Mapping[str, tuple[str, Callable[[], Q]]], *, prompt: str, **more: Any
) -> Filter:
    """A filter by named conditions: phrase and condition by value."""

    def condition(value: str) -> Q:
        if value not in choices:
            raise NotUnderstood("Not a valid choice.")
        return choices[value][1]()

    return Filter(
        name=name,
        label=label,
        condition=condition,
        words=lambda value: choices[value][0],
        prompt=prompt,
        is_phrase=True,
        options=lambda: [(value, words) for value, (words, _) in choices.items()],
        **more,
    )


def flag_filter(
    name: str, label: str, flagged: Q | Callable[[], Q], *, value: str = "yes", prompt: str = ""
) -> Filter:
    """A checkbox filter. Older links have ``1`` instead of its value."""

    def condition(given: str) -> Q:
        if given not in (value, "1"):
            raise NotUnderstood("Not a valid choice.")
        return flagged() if callable(flagged) else flagged

    return Filter(
        name=name,
        label=label,
        condition=condition,
        words=lambda given: prompt or label,
        is_phrase=True,
        control="checkbox",
        prompt=prompt or label,
        options=lambda: [(value, value)],
    )


def not_known_filter() -> Filter:
    """A filter for open accounts whose last answer has no past due amount, though it should."""
    return flag_filter("not_known", "Past due not known", WITHOUT_FIGURE)


def aging_filter(*kinds: Kind) -> Filter:
    phrases = {one: f"{one} past due" for one in AGING_DAYS} | {
        Aging.CURRENT: "Not past due",
        Aging.UNKNOWN: "Days past due not known",
    }
    choices = {one.name.lower(): (phrases[one], partial(aging_of_kinds, kinds, one)) for one in Aging}
    return choice_filter("aging", "Aging", choices, prompt="Any aging")


def date_filters(column: str, *, labels: tuple[str, str], is_moment: bool = False) -> tuple[Filter, Filter]:
    """Filters for the first and last day of a range; for an ``is_moment`` column, in the viewer's time zone."""

    def bound(value: str, days: int) -> Any:
        day = calendar_day(value) + timedelta(days=days)
        return midnight(day) if is_moment else day

    def filter_named(name: str, label: str, condition: Callable[[str], Q], **more: Any) -> Filter:
        return Filter(
            name=name,
            label=label,
            condition=condition,
            words=lambda value: wording.day(value) or value,
            control="date",
            prompt=label,
            span_of=column,
            **more,
        )

    end = RangeEnd("from", calendar_day, wording.DATES_REVERSED)
    return (
        filter_named("from", labels[0], lambda value: Q(**{f"{column}__gte": bound(value, 0)})),
        filter_named("to", labels[1], lambda value: Q(**{f"{column}__lt": bound(value, 1)}), range_end=end),
    )


def amount_filters(column: str) -> tuple[Filter, Filter]:
    """Filters for the least and the greatest amount of a range."""
    end = RangeEnd("least", amount, wording.AMOUNTS_REVERSED)
    return (
        Filter(
            name="least",
            label="At least",
            condition=lambda value: Q(**{f"{column}__gte": amount(value)}),
            control="amount",
            prompt="$ at least",
        ),
        Filter(
            name="most",
            label="At most",
            condition=lambda value: Q(**{f"{column}__lte": amount(value)}),
            control="amount",
            prompt="$ at most",
            range_end=end,
        ),
    )


def amount(value: str) -> Decimal:
    """Parse an amount as people type it."""
    try:
        return MoneyField(required=False).clean(value) or Decimal(0)
    except ValidationError as problem:
        raise NotUnderstood(" ".join(problem.messages)) from None


def chosen_filters(filters: Iterable[Filter], state: QueryDict) -> tuple[dict[Filter, str], Q, list[str]]:
    """The active filters, their condition, and a sentence for each invalid one."""
    chosen: dict[Filter, str] = {}
    conditions, problems = Q(), []
    for one in filters:
        if not (typed := state.get(one.name)) or not (value := parse_query(typed, operators=False).text[:64]):
            continue
        try:
            condition = one.condition(value)
            _check_range(one.range_end, value, {other.name: start for other, start in chosen.items()})
        except NotUnderstood as reason:
            problems.append(f"{one.label} “{value}” was ignored. {reason}")
        else:
            conditions &= condition
            chosen[one] = value
    return chosen, conditions, problems


def _check_range(end: RangeEnd | None, value: str, chosen: Mapping[str, str]) -> None:
    if end and end.start in chosen and end.read(value) < end.read(chosen[end.start]):
        raise NotUnderstood(end.problem)
