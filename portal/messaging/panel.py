"""One message, beside the list or on its own page: facts, JSON, and related messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from django.db.models import Q, QuerySet
from django.utils.http import urlencode

from portal.messaging.explorer import Explorer
from portal.messaging.links import LinkedMessage, link_messages
from portal.messaging.models import Message
from portal.messaging.query import borrower_condition
from portal.notes.models import Note
from portal.records.models import Repayment
from servicing import codec

TABS: Final = {"readable": "Readable", "json": "JSON", "raw": "Raw", "related": "Related"}
MAX_RAW_CHARS: Final = 100_000
MAX_RELATED: Final = 10
MAX_NOTES: Final = 20


class RelatedGroup(NamedTuple):
    """Other messages that share something with this one, and a link to all of them."""

    title: str
    rows: Sequence[LinkedMessage]
    query: str
    has_more: bool


@dataclass(frozen=True)
class Panel:
    """A message with everything that a page shows, each part computed when a template uses it."""

    row: LinkedMessage
    tab: str
    explorer: Explorer

    @property
    def message(self) -> Message:
        return self.row.message

    @property
    def shows_payment(self) -> bool:
        """Whether the open tab already shows the payment, its amount and its error."""
        return self.tab == "readable" and bool(self.message.repayment)

    @property
    def notes(self) -> QuerySet[Note]:
        return Note.objects.filter(subject_kind="message", subject_uuid=self.message.uuid)[:MAX_NOTES]

    @cached_property
    def raw(self) -> Any:
        """The message as received, with exact numbers."""
        return codec.parse(self.message.body)

    @property
    def text(self) -> str:
        return self.message.body[:MAX_RAW_CHARS]

    @property
    def left_out(self) -> int:
        """The number of characters of the text that are not shown."""
        return max(0, len(self.message.body) - MAX_RAW_CHARS)

    @cached_property
    def related(self) -> list[RelatedGroup]:
        """Messages about the same payment, the same account and the same borrower."""
        subject, account, borrower = self.message.subject_uuid, self.row.account, self.row.borrower
        groups = []
        if subject:
            groups.append(self._group("The same payment", Q(subject_uuid=subject), id=subject))
        if account:
            title = f"The same {account.get_kind_display().lower()}"
            payments = list(Repayment.objects.filter(account=account).values_list("uuid", flat=True))
            groups.append(self._group(title, Q(subject_uuid__in=payments), id=account.uuid))
        if borrower:
            groups.append(
                self._group(f"Of {borrower}", borrower_condition(borrower.uuid), borrower=borrower.uuid)
            )
        return [group for group in groups if group.rows]

    def _group(self, title: str, condition: Q, **query: str) -> RelatedGroup:
        others = Message.objects.listed().filter(condition).exclude(pk=self.message.pk)
        newest = list(others[: MAX_RELATED + 1])
        rows = link_messages(newest[:MAX_RELATED])
        return RelatedGroup(title, rows, f"?{urlencode(query)}", len(newest) > MAX_RELATED)

    @property
    def number_related(self) -> int:
        return len({row.message.pk for group in self.related for row in group.rows})

    @cached_property
    def tabs(self) -> list[tuple[str, str, str]]:
        """Name, label and address of each tab beside the list."""
        return [(name, words, self._address(self.message.uuid, name)) for name, words in TABS.items()]

    @cached_property
    def neighbors(self) -> list[str]:
        """The addresses of the messages before and after it in the list; empty at an end."""
        uuids = self.explorer.neighbors(self.message)
        return [self._address(uuid, self.explorer.state.get("tab")) if uuid else "" for uuid in uuids]

    @property
    def closed(self) -> str:
        return self._address(None, None)

    def _address(self, uuid: str | None, tab: str | None) -> str:
        page = self.explorer.state.get("page")
        return self.explorer.query_string(page=page, source=self.explorer.source, message=uuid, tab=tab)
