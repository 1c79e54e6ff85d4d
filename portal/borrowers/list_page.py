"""The list of borrowers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

from portal.borrowers.checklist import INDIVIDUAL_TYPES, incomplete_borrowers
from portal.records.figures import days_of
from portal.records.models import IS_LATE, LISTED, Borrower, KeyPerson, Kind
from portal.records.query import NotUnderstood
from portal.records.rollup import OPEN, BorrowerTotals, totals_of
from portal.records.rows import distinct_values
from portal.tables import cells
from portal.tables.columns import CHECKED, value_column
from portal.tables.filters import Filter, choice_filter, date_filters, flag_filter
from portal.tables.pages import Action, Column, ListPage, Row
from portal.ui import wording
from portal.ui.exports import amount
from portal.ui.templatetags import ui
from servicing import rules
from servicing.schedules import total

MAX_OWNERS: Final = 50
ENTITIES: Final = rules.ENTITIES | {"INDIVIDUAL": "Individual"}


@dataclass(kw_only=True)
class BorrowerRow(Row):
    """A borrower with its accounts and people."""

    totals: BorrowerTotals
    people: Sequence[str]
    """The names of its key people."""

    @property
    def entity(self) -> str:
        return str(self.record.legal_form or self.record.type)

    @property
    def due_since(self) -> Decimal | None:
        """The known amounts that fell due since the copies of its accounts."""
        return total(one.amount for one in self.totals.past_due.due_since if one.amount is not None)

    @property
    def place(self) -> str:
        return ", ".join(filter(None, (self.record.city, self.record.state)))


def load_rows(records: Sequence[Borrower]) -> Iterator[BorrowerRow]:
    uuids = [record.uuid for record in records]
    totals, people = totals_of(uuids), _names_of_people(uuids)
    return (BorrowerRow(one, totals=totals[one.uuid], people=people.get(one.uuid, [])) for one in records)


def _names_of_people(borrower_uuids: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    people = KeyPerson.objects.filter(LISTED, borrower_uuid__in=borrower_uuids).order_by("created_at", "id")
    for borrower_uuid, one in people.values_list("borrower_uuid", "name"):
        found.setdefault(borrower_uuid, []).append(one)
    return found


def phone(number: str) -> str:
    return cells.no_wrap(ui.phone(number or None))


def day(moment: datetime) -> str:
    return cells.no_wrap(ui.day(moment))


def name(row: BorrowerRow) -> str:
    return cells.record_name(row.record, " · ".join(filter(None, (row.place, wording.human(row.entity)))))


def people(row: BorrowerRow) -> str:
    """The first key person, and the number of others."""
    first, *others = row.people or [""]
    return f"{first} and {len(others)} more" if others else ui.or_dash(first)


def of_entity(value: str) -> Q:
    if value == "INDIVIDUAL":
        return Q(legal_form="", type__in=INDIVIDUAL_TYPES)
    return Q(legal_form=value)


def in_state(value: str) -> Q:
    if value not in rules.US_STATES:
        raise NotUnderstood("Not a US state or territory.")
    return Q(state=value)


def checked_after(days: int) -> Q:
    return Q(checked_at__gte=timezone.now() - timedelta(days=days))


COLUMNS: Final = [
    Column(
        name="name",
        head="Name",
        value=lambda row: row.record.name,
        cell=name,
        is_fixed=True,
        reads=["name"],
    ),
    Column(
        name="entity",
        head="Entity",
        value=lambda row: wording.human(row.entity),
        reads=["legal_form", "type"],
        cell=lambda row: ui.human(row.entity),
        css="sd-widest",
        is_default=False,
    ),
    value_column(
        "place", "City, state", "place", css="sd-wide", sort="city", is_default=False, reads=["city", "state"]
    ),
    value_column("phone", "Phone", "record.phone", phone, "sd-widest"),
    value_column("email", "Email", "record.email", css="sd-wide", is_default=False),
    Column(
        name="people",
        head="Key people",
        value=lambda row: "; ".join(row.people),
        reads=[],
        cell=people,
        css="sd-widest",
        is_default=False,
    ),
    value_column("loans", "Loans", "totals.loans", cells.count, "sd-num sd-wide", reads=[]),
    value_column("lines", "Lines", "totals.lines", cells.count, "sd-num sd-wide", reads=[]),
    Column(
        name="past_due",
        head="Past due",
        value=lambda row: amount(row.totals.past_due.amount),
        reads=[],
        cell=cells.past_due_total,
        css="sd-num",
    ),
    Column(
        name="unknown",
        head="Accounts with past due not known",
        value=lambda row: row.totals.past_due.unknown or None,
        reads=[],
        beside="past_due",
    ),
    Column(
        name="due_since",
        head="Due since the copy",
        value=lambda row: amount(row.due_since),
        reads=[],
        beside="past_due",
    ),
    Column(
        name="copy_of",
        head="Oldest copy",
        value=lambda row: row.totals.oldest_copy,
        reads=[],
        beside="past_due",
    ),
    Column(
        name="days",
        head="Days past due",
        value=lambda row: days_of(row.record) if row.record.is_past_due else None,
        reads=["is_past_due", "oldest_unpaid_on", "days_past_due"],
        cell=cells.days_past_due,
        css="sd-num sd-wide",
    ),
    value_column(
        "decision",
        "Latest decision",
        "totals.decision",
        lambda word: ui.status_badge(word) if word else "",
        "sd-widest",
        reads=[],
    ),
    replace(CHECKED, is_default=False),
    value_column("activity", "Last activity", "record.updated_at", cells.age, "sd-wide", is_default=False),
    value_column("created", "Added", "record.created_at", day, "sd-wide", is_default=False),
    value_column("owner", "Added by", "record.created_by", css="sd-wide", is_default=False),
    Column(name="uuid", head="ID", value=lambda row: row.record.uuid, reads=["uuid"]),
]
BORROWERS: Final = ListPage(
    kinds=[Kind.BORROWER],
    model=Borrower,
    related="answer",
    area="borrowers",
    title="Borrowers",
    noun="borrower",
    intro="Borrowers on file here. The service can’t list borrowers, so add others by ID.",
    search_hint="Name, phone, email, city",
    search_scope="Search by name, phone, email, city, state, ZIP, key person or ID.",
    empty="Borrowers appear here once they’re onboarded, added by ID or imported.",
    empty_actions=[
        Action("New borrower", "borrowers:create", "borrowers.create", icon="plus"),
        Action("Import records", "lookup:import_records", "lookup.import_records", icon="upload"),
    ],
    covered="accounts",
    actions=[
        Action("Add by ID", "lookup:add", "lookup.add", "?kind=borrower"),
    ],
    tools=[
        Action("Print summaries", "documents:batch_new", "summaries.batch", icon="printer", css="sd-btn-sm")
    ],
    row_menu="borrowers/row_menu.html",
    load_rows=load_rows,
    columns=COLUMNS,
    sorts={
        "past_due": "-past_due_rank",
        "activity": "-updated_at",
        "name": Lower("name"),
        "created": "-created_at",
        "city": "city",
    },
    filters=[
        Filter(
            name="entity",
            label="Entity",
            condition=of_entity,
            words=lambda value: ENTITIES.get(value, value),
            prompt="All entities",
            options=ENTITIES.items,
        ),
        Filter(
            name="state",
            label="State",
            condition=in_state,
            words=lambda value: rules.US_STATES[value],
            prompt="All states",
            options=rules.US_STATES.items,
        ),
        flag_filter("past_due", "Past due", IS_LATE),
        flag_filter("application", "Application", Q(decision=OPEN), value="open", prompt="Open application"),
        *date_filters("created_at", labels=("Added from", "Added to"), is_moment=True),
        choice_filter(
            "onboarding",
            "Onboarding",
            {"incomplete": ("Onboarding incomplete", lambda: Q(uuid__in=incomplete_borrowers()))},
            prompt="Any onboarding status",
        ),
        choice_filter(
            "checked",
            "Last updated",
            {
                "day": ("Updated in the last 24 hours", lambda: checked_after(days=1)),
                "week": ("Updated in the last 7 days", lambda: checked_after(days=7)),
                "older": (
                    "Updated more than 30 days ago",
                    lambda: Q(checked_at__lt=timezone.now() - timedelta(days=30)),
                ),
                "never": ("Never updated", lambda: Q(checked_at__isnull=True)),
            },
            prompt="Updated any time",
        ),
        Filter(
            name="owner",
            label="Added by",
            condition=lambda value: Q(created_by=value),
            prompt="Added by anyone",
            options=lambda: [
                (one, f"Added by {one}") for one in distinct_values(Kind.BORROWER, "created_by", MAX_OWNERS)
            ],
        ),
    ],
    presets={
        "Past due": "past_due=yes&sort=past_due",
        "Added this week": "q=added:this-week",
        "Incomplete onboarding": "onboarding=incomplete",
    },
)
