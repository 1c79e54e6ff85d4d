"""The list of borrowers: what narrows it, what orders it, and its columns, the same on screen and in a file."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.db.models.functions import Lower
from django.utils import timezone

from portal.borrowers.handover import PERSONS, incomplete
from portal.registry.lists import DAYS, OPEN, Filter, Position, known, occurring, positions
from portal.registry.models import Kind, Record
from portal.registry.query import NotUnderstood, calendar_day, midnight
from portal.ui import wording
from servicing import rules

BATCH: Final = 500
MOST_OWNERS: Final = 50

SORTS: Final = {
    "activity": "-updated_at",
    "name": "name",
    "created": "-created_at",
    "city": "city",
    "past_due": "-past_due",
}
ENTITIES: Final = rules.ENTITIES | {"INDIVIDUAL": "Individual"}
CHECKED: Final = {
    "day": "within a day",
    "week": "within a week",
    "older": "more than 30 days ago",
    "never": "never",
}


@dataclass(frozen=True)
class Row:
    """A borrower with what it has."""

    record: Record
    has: Position

    @property
    def entity(self) -> str:
        return self.record.entity or self.record.product


@dataclass(frozen=True)
class Column:
    """One thing told of every borrower."""

    name: str
    head: str
    told: Callable[[Row], Any] = field(repr=False)
    """The value for a file: exact, with no words of the screen."""
    sort: str = ""
    is_number: bool = False
    is_usual: bool = True
    width: str = "sd-wide"
    """The class that says on which screens there is room for it."""


COLUMNS: Final = (
    Column("entity", "Entity", lambda row: wording.human(row.entity), width="sd-widest"),
    Column(
        "place",
        "City, state",
        lambda row: ", ".join(filter(None, (row.record.city, row.record.state))),
        sort="city",
    ),
    Column("phone", "Phone", lambda row: row.record.phone),
    Column("email", "E-mail", lambda row: row.record.email, is_usual=False),
    Column("people", "Key people", lambda row: "; ".join(row.has.people), width="sd-widest"),
    Column("loans", "Loans", lambda row: row.has.loans, is_number=True),
    Column("lines", "Lines", lambda row: row.has.lines, is_number=True),
    Column("past_due", "Past due", lambda row: row.has.past_due, sort="past_due", is_number=True, width=""),
    Column("decision", "Latest decision", lambda row: row.has.decision, width="sd-widest"),
    Column("checked", "Last checked", lambda row: row.record.checked_at, width="sd-widest"),
    Column("activity", "Last activity", lambda row: row.record.updated_at, sort="activity", is_usual=False),
    Column("created", "Known since", lambda row: row.record.created_at, sort="created", is_usual=False),
    Column("owner", "Added by", lambda row: row.record.created_by, is_usual=False),
)


def columns_named(names: Sequence[str]) -> list[Column]:
    """The columns that a person chose, in their usual order; the usual ones while none is chosen."""
    chosen = [column for column in COLUMNS if column.name in names]
    return chosen or [column for column in COLUMNS if column.is_usual]


def borrowers() -> QuerySet[Record]:
    """Every borrower that is not archived; ``name`` is what it is ordered by."""
    return known(Kind.BORROWER).alias(name=Lower("label"))


def rows_of(records: Iterable[Record]) -> Iterator[Row]:
    """Borrowers with what they have, a batch at a time."""
    left = iter(records)
    while batch := list(islice(left, BATCH)):
        has = positions([record.uuid for record in batch])
        yield from (Row(record, has[record.uuid]) for record in batch)


def file_columns(columns: Sequence[Column]) -> list[str]:
    """The heads of a file."""
    return ["Name", *(column.head for column in columns), "Identifier"]


def file_row(columns: Sequence[Column], row: Row) -> list[Any]:
    """One line of a file."""
    return [row.record.label, *(column.told(row) for column in columns), row.record.uuid]


# --- Filters ---


def _entity(value: str) -> Q:
    return Q(entity="", product__in=PERSONS) if value == "INDIVIDUAL" else Q(entity=value)


def _state(value: str) -> Q:
    if value not in rules.US_STATES:
        raise NotUnderstood("It is no US state or territory.")
    return Q(state=value)


def _one_of(choices: Mapping[str, Q], value: str) -> Q:
    if value not in choices:
        raise NotUnderstood("It is not one of the choices.")
    return choices[value]


def _checked(value: str) -> Q:
    now = timezone.now()
    choices = {
        "day": Q(checked_at__gte=now - timedelta(days=1)),
        "week": Q(checked_at__gte=now - timedelta(days=7)),
        "older": Q(checked_at__lt=now - timedelta(days=30)),
        "never": Q(checked_at__isnull=True),
    }
    return _one_of(choices, value)


FILTERS: Final = (
    Filter("entity", "Entity", _entity, lambda value: ENTITIES.get(value, value)),
    Filter("state", "State", _state, lambda value: rules.US_STATES[value]),
    # A list of one value is looked up in the index; a bare truth value is not.
    Filter("past_due", "Past due", lambda value: _one_of({"yes": Q(flagged__in=[True])}, value)),
    Filter("application", "Application", lambda value: _one_of({"open": Q(status=OPEN)}, value)),
    Filter(
        "onboarding", "Onboarding", lambda value: _one_of({"incomplete": Q(uuid__in=incomplete())}, value)
    ),
    Filter("checked", "Last checked", _checked, lambda value: CHECKED[value]),
    Filter("owner", "Added by", lambda value: Q(created_by=value)),
    Filter(
        "from",
        "Known from",
        lambda value: Q(created_at__gte=midnight(calendar_day(value))),
        lambda value: wording.day(value) or value,
    ),
    Filter(
        "to",
        "Known until",
        lambda value: Q(created_at__lt=midnight(calendar_day(value) + timedelta(days=1))),
        lambda value: wording.day(value) or value,
        DAYS,
    ),
)
MORE: Final = ("onboarding", "checked", "owner", "from", "to")
# Views that every list of borrowers begins with.
VIEWS: Final = {
    "Past due": "past_due=yes&sort=past_due",
    "Created this week": "q=created:this-week",
    "Incomplete onboarding": "onboarding=incomplete",
}


def owners() -> list[str]:
    """Who added borrowers."""
    return occurring(Kind.BORROWER, "created_by", MOST_OWNERS)
