"""The list of applications."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.utils import timezone

import servicing
from portal.gateway.reading import LiveCopy
from portal.records import store
from portal.records.models import Application, Kind
from portal.records.rows import with_borrowers
from portal.tables import cells
from portal.tables.columns import COPY_OF, account_columns, money_column, value_column
from portal.tables.filters import date_filters, value_filter
from portal.tables.pages import Action, Column, ListPage, Row
from portal.ui import wording
from portal.ui.templatetags import ui


@dataclass
class ApplicationRow(Row):
    """One application with its last answer."""

    answer: servicing.Application | None = None

    @property
    def offers(self) -> int | None:
        """How many offers it has; ``None`` if it was never read."""
        return len(self.answer.offers) if self.answer else None

    @property
    def best_apr(self) -> Decimal | None:
        """The lowest APR; ``None`` if an offer has none."""
        rates = [offer.apr for offer in self.answer.offers] if self.answer else []
        known = [rate for rate in rates if rate is not None]
        return min(known) if known and len(known) == len(rates) else None


def load_rows(records: Sequence[Application]) -> Iterator[ApplicationRow]:
    for record, borrower in with_borrowers(records):
        yield ApplicationRow(record, borrower, answer=store.last_answer(record, servicing.Application))


def decision(row: ApplicationRow) -> str:
    """The decision, with a note if the service isn't answering for it now."""
    trouble = ""
    if row.record.answer and row.record.answer.failing_since:
        trouble = ui.badge("warn", "Refused" if LiveCopy(row.record).is_refused else "Not responding")
    return cells.join_badges(ui.status_badge(row.record.decision), trouble)


def added(row: ApplicationRow) -> str:
    by = row.record.created_by
    return cells.with_note(ui.ago(row.record.created_at), "" if by == "system" else by)


def submitted(row: ApplicationRow) -> str:
    return ui.remote_time(row.answer and row.answer.created_at)


def added_on(row: ApplicationRow) -> str:
    """The day it was added. An import adds all of them on the same day."""
    return wording.day(timezone.localdate(row.record.created_at)) or ""


APPLICATIONS = ListPage(
    kinds=[Kind.APPLICATION],
    model=Application,
    related="answer",
    area="applications",
    title="Applications",
    noun="application",
    intro="All applications on file. Start a new one from the borrower’s page.",
    search_hint="Borrower, ID, product, decision",
    search_scope="Search by borrower, start of the ID, product or decision.",
    empty="Applications appear here once they’re sent, opened by ID or imported.",
    empty_actions=[Action("Find a borrower", "borrowers:index", icon="building-store")],
    covered="applications for lines",
    covered_kinds=[Kind.APPLICATION],
    load_rows=load_rows,
    columns=[
        *account_columns("Application"),
        value_column("product", "Product", "record.product", cells.word, "sd-widest"),
        money_column("amount", "Requested", "record.amount", ui.money),
        COPY_OF,
        Column(name="decision", head="Decision", value=lambda row: row.record.decision, cell=decision),
        value_column("offers", "Offers", "offers", css="sd-num sd-wide"),
        value_column("best_apr", "Best APR", "best_apr", cells.rate, "sd-num sd-wide"),
        Column(
            name="submitted",
            head="Created",
            value=lambda row: row.answer and row.answer.created_at and row.answer.created_at.text,
            cell=submitted,
            css="sd-wide",
            shared=submitted,
        ),
        Column(name="added", head="Added", cell=added, sort="created", css="sd-widest", shared=added_on),
        Column(
            name="added_at",
            head="Added",
            value=lambda row: row.record.created_at.isoformat(timespec="seconds"),
        ),
        Column(name="added_by", head="Added by", value=lambda row: row.record.created_by),
    ],
    sorts={
        "submitted": "-submitted_at",
        "created": "-created_at",
        "amount": "-amount",
        "decision": "decision",
        "product": "product",
    },
    filters=[
        value_filter(
            Kind.APPLICATION, "product", "Product", "product", prompt="All products", empty="not provided"
        ),
        value_filter(
            Kind.APPLICATION,
            "status",
            "Decision",
            "decision",
            prompt="All decisions",
            empty="not provided",
            words=wording.status_word,
        ),
        *date_filters("created_at", labels=("Added from", "Added to"), is_moment=True),
    ],
    presets={"Approved": "status=APPROVED", "Added this week": "q=added:this-week"},
)
