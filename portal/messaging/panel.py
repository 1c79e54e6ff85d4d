"""One message as it is read: its facts, its payment and that payment's life, its JSON, and what is related to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.db.models import QuerySet
from django.utils.http import urlencode

from portal.messaging.explorer import Explorer
from portal.messaging.links import Row, rows_of
from portal.messaging.models import Message
from portal.messaging.query import of_borrower
from portal.messaging.told import messages_of, read, repayment_in
from portal.notes.models import Note
from portal.payments import Row as Payment
from portal.payments.life import Step, life
from portal.registry.models import Kind, Record
from servicing import Message as Told
from servicing import Repayment, codec
from servicing.values import RemoteTime

TABS: Final = {"readable": "Readable", "json": "JSON", "raw": "Raw", "related": "Related"}
RAW: Final = 100_000
RELATED: Final = 10
NOTES: Final = 20


@dataclass(frozen=True)
class Related:
    """Other messages that have something in common with this one."""

    title: str
    rows: Sequence[Row]
    query: str
    has_more: bool


@dataclass(frozen=True)
class Panel:
    """A message with all that is told about it; everything is worked out when asked for."""

    row: Row
    tab: str
    explorer: Explorer
    may_link: bool
    why_not: str
    may_note: bool
    why_no_note: str

    @property
    def message(self) -> Message:
        return self.row.message

    @cached_property
    def told(self) -> Told:
        """It as the library reads it."""
        return read(self.message)

    @property
    def is_renamed(self) -> bool:
        """Whether its own identifier could not be kept."""
        return self.told.uuid != self.message.uuid

    @property
    def created(self) -> RemoteTime | None:
        """When it was recorded, in the service's words."""
        return self.told.created_at

    @cached_property
    def repayment(self) -> Repayment | None:
        return repayment_in(self.message)

    @cached_property
    def payment(self) -> Payment | None:
        """The repayment in it, as repayments are drawn."""
        if not self.repayment:
            return None
        return Payment(self.repayment, self.row.account, self.row.borrower, self.message.why_null)

    @property
    def life(self) -> list[Step]:
        known = self.row.subject if self.row.subject and self.row.subject.kind == Kind.REPAYMENT else None
        return life(known, messages_of(self.message.subject_uuid)) if self.repayment else []

    @property
    def notes(self) -> QuerySet[Note]:
        """What colleagues wrote on it, newest first."""
        return Note.objects.filter(subject_kind="message", subject_uuid=self.message.uuid)[:NOTES]

    @cached_property
    def raw(self) -> Any:
        """It as it was received, with exact numbers."""
        return codec.parse(self.message.body)

    @property
    def text(self) -> str:
        return self.message.body[:RAW]

    @property
    def left_out(self) -> int:
        """How many characters of the text are not shown."""
        return max(0, len(self.message.body) - RAW)

    @cached_property
    def related(self) -> list[Related]:
        found = []
        if uuid := self.message.subject_uuid:
            found.append(self._with("The same payment", [uuid], {"id": uuid}))
        if self.row.account:
            payments = Record.objects.filter(parent_uuid=self.row.account.uuid).values_list("uuid", flat=True)
            title = f"The same {self.row.account.get_kind_display().lower()}"
            found.append(self._with(title, list(payments), {"id": self.row.account.uuid}))
        if self.row.borrower:
            found.append(self._of_borrower(self.row.borrower))
        return [one for one in found if one.rows]

    @property
    def number_related(self) -> int:
        return len({row.message.pk for one in self.related for row in one.rows})

    def _with(self, title: str, uuids: list[str], query: dict[str, str]) -> Related:
        others = Message.objects.filter(subject_uuid__in=uuids).exclude(pk=self.message.pk)
        return self._group(title, list(others[: RELATED + 1]), query)

    def _of_borrower(self, borrower: Record) -> Related:
        parts = [
            Message.objects.filter(condition).exclude(pk=self.message.pk)[: RELATED + 1]
            for condition in of_borrower(borrower.uuid)
        ]
        others = {one.pk: one for part in parts for one in part}
        newest = [others[key] for key in sorted(others, reverse=True)][: RELATED + 1]
        return self._group(f"Of {borrower}", newest, {"borrower": borrower.uuid})

    def _group(self, title: str, others: list[Message], query: dict[str, str]) -> Related:
        return Related(title, rows_of(others[:RELATED]), f"?{urlencode(query)}", len(others) > RELATED)

    @cached_property
    def tabs(self) -> list[tuple[str, str, str]]:
        """Name, words and address of each tab, in the list."""
        return [
            (name, words, self.explorer.query_string(**self._place, message=self.message.uuid, tab=name))
            for name, words in TABS.items()
        ]

    @property
    def _place(self) -> dict[str, str | None]:
        return {"page": self.explorer.state.get("page"), "source": self.explorer.source}

    @property
    def closed(self) -> str:
        """The list without it."""
        return self.explorer.query_string(**self._place)

    @cached_property
    def neighbours(self) -> tuple[str, str]:
        """The addresses of the messages before and behind it, in the list."""
        before, behind = self.explorer.neighbours(self.message)
        return self._address(before), self._address(behind)

    def _address(self, uuid: str) -> str:
        if not uuid:
            return ""
        return self.explorer.query_string(**self._place, message=uuid, tab=self.explorer.state.get("tab"))
