"""What repayments add to shared pages."""

from portal.core.areas import Area, HelpPage, ItemKind, NavigationEntry
from portal.repayments.attention import (
    DUE_DAYS,
    accounts_not_known,
    due_since_copy,
    lines_due,
    loans_due,
    past_due_lines,
    past_due_loans,
    returned_payments,
    unscheduled_payments,
)

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Repayments",
            icon="arrows-exchange",
            url_name="repayments:index",
            act="repayments.index",
            key="r",
            group="Accounts",
            order=70,
        )
    ],
    attention=[
        ItemKind(name="returned", title="Returned payments", order=50, sources=[returned_payments]),
        ItemKind(name="past_due", title="Past due", order=60, sources=[past_due_loans, past_due_lines]),
        ItemKind(name="not_known", title="Past due not known", order=70, sources=[accounts_not_known]),
        ItemKind(name="due_since", title="Due since the copy", order=80, sources=[due_since_copy]),
        ItemKind(
            name="unscheduled",
            title="Autopay without a scheduled payment",
            order=90,
            sources=[unscheduled_payments],
        ),
        ItemKind(name="due", title=f"Due in {DUE_DAYS} days", order=100, sources=[lines_due, loans_due]),
    ],
    help=[
        HelpPage(
            address="repayments",
            title="Repayments",
            picture="Repayments: totals by status above the list",
            order=90,
        ),
    ],
    verbs={
        "repayments.export": "exported repayments:",
    },
)
