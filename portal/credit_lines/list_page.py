"""The list of lines of credit."""

from django.db.models import Q
from django.utils.html import format_html

from portal.records.models import Kind
from portal.tables import cells
from portal.tables.columns import CHECKED, account_columns, money_column, past_due_columns
from portal.tables.filters import aging_filter, flag_filter
from portal.tables.pages import Action, Column, ListPage, Row
from portal.ui import wording
from portal.ui.exports import amount
from portal.ui.templatetags import ui
from servicing.figures import percent_of_limit

METER = (
    '<svg class="sd-meter sd-meter-small" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
    '<rect class="sd-meter-track" width="100" height="8"/><rect class="sd-meter-bar" width="{}" height="8"/></svg>'
    "{}% of limit"
)


def percent(row: Row) -> int | None:
    """The principal as a share of the limit."""
    return wording.whole_percent(percent_of_limit(row.record.principal, row.record.amount))


def principal(row: Row) -> str:
    """The principal, and its share of the limit with a small bar."""
    share = percent(row)
    note = "" if share is None else format_html(METER, max(0, min(100, share)), share)
    return cells.with_note(ui.known_money(row.record.principal), note)


LINES = ListPage(
    kinds=[Kind.LINE],
    area="credit_lines",
    title="Lines of credit",
    noun="line",
    intro="All lines of credit on file.",
    search_hint="Borrower, ID",
    search_scope="Search by borrower or start of the ID.",
    empty="Lines of credit appear here once they’re added by ID or imported.",
    covered="lines",
    covered_kinds=[Kind.LINE],
    actions=[Action("Add by ID", "lookup:add", "lookup.add", "?kind=line")],
    can_refresh=True,
    columns=[
        *account_columns("Line"),
        money_column("limit", "Limit", "record.amount", ui.money, css="sd-widest"),
        Column(
            name="principal",
            head="Principal",
            value=lambda row: amount(row.record.principal),
            reads=["principal"],
            cell=principal,
            css="sd-num sd-wide",
        ),
        Column(
            name="percent",
            head="Principal as % of limit",
            value=percent,
            beside="principal",
            reads=["principal", "amount"],
        ),
        money_column("available", "Available", "record.available", css="sd-wide"),
        *past_due_columns(),
        CHECKED,
    ],
    sorts={
        "past_due": "-past_due_rank",
        "due": "next_due_on",
        "limit": "-amount",
        "created": "-created_at",
        "checked": "checked_at",
    },
    filters=[
        flag_filter("past_due", "Past due", Q(flagged__in=[True])),
        aging_filter(Kind.LINE),
        flag_filter("due_since", "Due since the copy", Q(due_since_on__isnull=False)),
        flag_filter("check", "Needs a data check", Q(needs_check__in=[True])),
    ],
    presets={
        "Past due": "past_due=yes&sort=past_due",
        "Due next first": "sort=due",
        "Needs a data check": "check=yes",
        "Oldest copy first": "sort=checked",
    },
)
