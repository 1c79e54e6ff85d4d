"""One page of messages, live from the service or from saved messages, with its counts and links.

The service filters by days and by one event, and pages by offsets of undocumented meaning; everything else is filtered
here, among saved messages. Hides which of the two sources a page is from. Messages that the service lists are saved on
the way.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from functools import cached_property, partial
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.core.cache import cache
from django.http import QueryDict

from portal.messaging.filters import (
    DISPLAY_PARAMS,
    SERVICE_FILTERS,
    SIZES,
    TRANSIENT_PARAMS,
    cleaned_filters,
)
from portal.messaging.links import LinkedMessage, link_messages
from portal.messaging.models import Message, MessageQuerySet
from portal.messaging.query import (
    COLUMNS,
    capped_count,
    limits,
    matching_messages,
    page_of,
    text_start,
)
from portal.messaging.store import (
    ONE_DAY,
    describe_unusable,
    differs,
    message_row,
    save_messages,
    service_today,
    service_zone,
    storage_uuid,
)
from portal.messaging.sync import MAX_NAMED, offset_counts
from portal.messaging.text import parse_text
from portal.ui import wording
from portal.ui.exports import amount
from portal.ui.frame import zone_name
from portal.ui.keys import row_key
from portal.ui.paging import MAX_COUNTED
from portal.ui.query_strings import Chip, query_string
from servicing import Client, ServicingError
from servicing import Message as RemoteMessage
from servicing.messages import Filters
from servicing.resource import OffsetUnit, iterate_pages

COUNT_CACHE_SECONDS: Final = 30
VALUES_CACHE_SECONDS: Final = 60
OFFSET_CACHE_SECONDS: Final = 3600
MAX_PAGES: Final = 1_000_000
MAX_VALUES_IN_USE: Final = 50
BATCH_SIZE: Final = 500
"""The messages read at a time for a file."""
MAX_LIVE_EXPORT: Final = 100_000
"""Up to this many messages are exported directly from the service; more come from saved ones, to save memory."""


FILE_COLUMNS: Final = (
    *("Message", "Recorded", "Event", "Message status", "Product", "Amount", "Payment status"),
    *("Borrower", "Borrower ID", "Repayment", "Account", "Bank account", "As received"),
)


class RemoteCount(NamedTuple):
    """The number of messages that the service reports, and of those saved here."""

    reported: int | None
    saved: int

    @property
    def missing(self) -> int:
        return max(0, (self.reported or 0) - self.saved)


@dataclass
class Explorer:
    """The list of messages at an address; :meth:`load` fills in its page."""

    sizes = SIZES
    state: QueryDict
    failure: ServicingError | None = None
    filters_ignored: bool = False
    """Whether the service answered with messages that its own filters exclude."""
    shown: Sequence[Message] = ()
    unusable: list[str] = field(default_factory=list)
    """Names of messages of this page that have no usable ID, so that they can't be shown."""
    total: int | None = None
    """The total as reported by the service, or of saved messages as far as they are counted."""
    next: str = ""
    previous: str = ""
    first: int = 1

    def __post_init__(self) -> None:
        """Read the form; ``filters`` are its valid values."""
        self.form, self.filters = cleaned_filters(self.state)

    @property
    def matches(self) -> MessageQuerySet:
        return matching_messages(self.filters)

    @property
    def is_oldest_first(self) -> bool:
        return self.filters.get("order") == "oldest"

    @cached_property
    def limits(self) -> list[str]:
        """Sentences about saved messages that were not searched."""
        return limits(self.filters)

    @property
    def text_start(self) -> date | None:
        """The first day of the texts that are searched, if no period is chosen."""
        return text_start(self.filters)

    @property
    def has_period(self) -> bool:
        return bool(self.filters.get("start_date") or self.filters.get("end_date"))

    @property
    def text_is_exact(self) -> bool:
        """Whether the text is an ID or an amount, which is found at any age."""
        return parse_text(self.filters["q"]).has_any_age if self.filters.get("q") else False

    @property
    def year_query(self) -> str:
        """The address of the list with texts of a year."""
        return self.query_string(start_date=f"{service_today() - 365 * ONE_DAY}")

    @property
    def size(self) -> int:
        size = int(self.filters.get("limit", SIZES[0]))
        return size if self.uses_copy else min(size, settings.SERVICING_PAGE_SIZE)

    @cached_property
    def wants_copy(self) -> bool:
        """Whether saved messages are requested, or needed for a filter that the service lacks."""
        local = self.filters.keys() - {*SERVICE_FILTERS, "limit", "source"}
        return bool(local) or self.filters.get("source") == "copy" or len(self.filters.get("event", ())) > 1

    @property
    def uses_copy(self) -> bool:
        """Whether saved messages are shown, for any reason."""
        return self.wants_copy or bool(self.failure) or self.filters_ignored

    @property
    def source(self) -> str | None:
        """The source for links from this list, since a position among saved messages means nothing to the service."""
        return "copy" if self.failure or self.filters_ignored else self.state.get("source")

    @property
    def is_filtered(self) -> bool:
        return bool(self.filters.keys() - set(DISPLAY_PARAMS))

    @cached_property
    def rows(self) -> list[LinkedMessage]:
        return link_messages(self.shown)

    @property
    def newest_stored_at(self) -> datetime | None:
        return max((message.stored_at for message in self.shown), default=None)

    @property
    def is_beyond_end(self) -> bool:
        """Whether the page is beyond the last one, as in an old link to a list that became shorter."""
        return not self.shown and not self.unusable and bool(self.total)

    @property
    def last(self) -> int:
        return self.first + len(self.shown) - 1

    @property
    def total_words(self) -> str:
        """The total in words; a plus means that there may be more."""
        if self.total is None:
            return "an unknown number of"
        is_counted_here = self.uses_copy and self.is_filtered
        is_lower_bound = is_counted_here and (self.total >= MAX_COUNTED or bool(self.limits))
        return f"{self.total:,}{'+' if is_lower_bound else ''}"

    @cached_property
    def chips(self) -> list[Chip]:
        shown = {name: value for name, value in self.filters.items() if name not in DISPLAY_PARAMS}
        labels = {name: str(self.form.fields[name].label) for name in shown}
        return [
            Chip(labels[name], _in_words(name, value), self.query_string(**{name: None}))
            for name, value in shown.items()
        ]

    @property
    def sent(self) -> dict[str, Any]:
        """The filters that the service applies."""
        events = self.filters.get("event", ())
        days = {name: self.filters.get(name) for name in ("start_date", "end_date")}
        return days | {"event": events[0] if len(events) == 1 else None}

    @property
    def sent_words(self) -> str:
        """The service's filters in words."""
        days = "date" if self.sent["start_date"] or self.sent["end_date"] else ""
        return " and ".join(filter(None, (days, "event" if self.sent["event"] else "")))

    # --- Addresses ---

    def query_string(self, /, **changes: str | None) -> str:
        """The query string of the list with some changes, on its first page unless they say otherwise."""
        return query_string(self.state, TRANSIENT_PARAMS, **changes)

    def has_params(self, params: Mapping[str, str | None]) -> bool:
        """Whether the address has exactly these values."""
        return all(self.state.get(name, "") == (value or "") for name, value in params.items())

    @property
    def page_number(self) -> int:
        number = row_key(self.state.get("page", ""))
        return number if number and number < MAX_PAGES else 1

    def neighbors(self, message: Message) -> tuple[str, str]:
        """The IDs of the messages before and after one, in the order of the list."""
        pages = (
            page_of(self.matches.listed(), 1, oldest_first=oldest_first, place=message)
            for oldest_first in (not self.is_oldest_first, self.is_oldest_first)
        )
        before, after = (page[0].uuid if page else "" for page in pages)
        return before, after

    # --- Reading ---

    def load(self, client: Client) -> None:
        """Fill in the page from the service, or from saved messages if requested or if the service fails."""
        try:
            if not self.wants_copy:
                self._load_live(client)
        except ServicingError as error:
            self.failure = error
        if self.uses_copy:
            self._load_copy()

    def _load_live(self, client: Client) -> None:
        number = self.page_number
        offset = None if number == 1 else self._offset(client, number)
        page = client.messages.list(**self.sent, limit=self.size, offset=offset)
        self.shown, self.filters_ignored = _save(page), page.filters_ignored
        self.unusable = [describe_unusable(one.raw) for one in page.unusable]
        self.total, self.first = page.pagination.total, (number - 1) * self.size + 1
        has_more = len(page) == self.size if self.total is None else number * self.size < self.total
        self.next = self.query_string(page=str(number + 1)) if has_more and len(page) else ""
        self.previous = self.query_string(page=str(number - 1)) if number > 1 else ""

    def _offset(self, client: Client, number: int) -> int:
        counts = offset_counts() or cache.get("messaging.counts") or self._learn_offset_counts(client)
        return {"rows": (number - 1) * self.size, "pages1": number}.get(counts or "", number - 1)

    def _learn_offset_counts(self, client: Client) -> OffsetUnit | None:
        """Find out from two neighboring pages what offsets count."""
        page = partial(client.messages.list, **self.sent, limit=self.size)
        *_, step = islice(iterate_pages(lambda offset: page(offset=offset)), 2)
        cache.set("messaging.counts", step.cursor.counts, OFFSET_CACHE_SECONDS)
        return step.cursor.counts

    def _load_copy(self) -> None:
        side, _, rest = self.state.get("page", "").partition("_")
        key, first = (row_key(part) for part in (rest.partition("_")[0], rest.partition("_")[2]))
        skip = (self.page_number - 1) * self.size if key is None else 0
        is_backwards = side == "before" and key is not None
        place = Message.objects.only("recorded_at").filter(pk=key).first() if key is not None else None
        found: list[Message] = []
        if place or key is None:
            order = self.is_oldest_first != is_backwards
            matches = self.matches.listed()
            found = page_of(matches, skip + self.size + 1, oldest_first=order, place=place)[skip:]
        has_more, is_inside = len(found) > self.size, key is not None or skip > 0
        self.shown = found[: self.size][::-1] if is_backwards else found[: self.size]
        self.total = self._count() if has_more or is_inside else len(found)
        self.first = (first if key is not None else None) or skip + 1
        self.next = self.previous = ""
        if self.shown and (has_more or is_backwards):
            self.next = self._page_link("beyond", self.shown[-1], self.first + len(self.shown))
        if self.shown and is_inside and (has_more or not is_backwards):
            self.previous = self._page_link("before", self.shown[0], max(1, self.first - self.size))

    def _page_link(self, side: str, message: Message, first: int) -> str:
        return self.query_string(page=f"{side}_{message.pk}_{first}", source=self.source)

    def _count(self) -> int:
        return capped_count(self.matches) if self.is_filtered else Message.objects.order_by().count()

    def remote_count(self, client: Client) -> RemoteCount:
        """The number of messages that the service reports for its filters, and of those saved."""

        def count() -> RemoteCount:
            page = client.messages.list(**sent, limit=1)
            saved = matching_messages(sent | {"event": [sent["event"]] if sent["event"] else None}).order_by()
            # Separately, because hardly any are gone, and they have an index of their own.
            number = saved.count() - saved.filter(gone_at__isnull=False).count()
            return RemoteCount(None if page.filters_ignored else page.pagination.total, number)

        sent = self.sent
        words = "_".join(str(value or "") for value in sent.values())
        key = hashlib.sha256(words.encode()).hexdigest()  # Hashed, because people typed it.
        return cache.get_or_set(f"messaging.counts.{key}", count, COUNT_CACHE_SECONDS) or count()

    # --- Files ---

    @property
    def is_too_long(self) -> bool:
        """Whether the service has more messages than one download fetches from it."""
        return not self.uses_copy and (self.total or 0) > MAX_LIVE_EXPORT

    def file_lines(self, client: Client, *, is_whole: bool) -> Iterator[list[Any]]:
        """The lines of a file under :data:`FILE_COLUMNS`. The last one says so if the service failed before the end."""
        number = 0
        if is_whole:
            self.unusable = []
        for batch in self._batches(client) if is_whole else [self.shown]:
            number += len(batch)
            yield from map(_file_line, link_messages(batch))
        if self.failure:
            problem = f"INCOMPLETE: the lending service failed ({self.failure.message}). This file has {number:,} of"
            ending = f"{problem} {self.total_words} messages; the others are missing."
            yield [ending, *[None] * (len(FILE_COLUMNS) - 1)]
        if self.unusable:
            names = "; ".join(self.unusable[:MAX_NAMED])
            ending = f"INCOMPLETE: without a usable ID, so missing: {len(self.unusable):,} ({names})"
            yield [ending, *[None] * (len(FILE_COLUMNS) - 1)]

    def _batches(self, client: Client) -> Iterator[Sequence[Message]]:
        """All messages of the list, a page at a time. It stops if the service fails, and ``failure`` says so."""
        if self.uses_copy:
            found = self.matches.defer("payload", "search_text")
            place = None
            while batch := page_of(found, BATCH_SIZE, oldest_first=self.is_oldest_first, place=place):
                yield batch
                place = batch[-1]
            return
        page = partial(client.messages.list, **self.sent, limit=settings.SERVICING_PAGE_SIZE)
        filters, zone = Filters(**self.sent), service_zone()
        try:
            for step in iterate_pages(lambda offset: page(offset=offset), offset_counts()):
                self.unusable += [describe_unusable(one.raw) for one in step.unusable]
                yield _save(message for message in step.new if filters.matches(message, zone))
        except ServicingError as error:
            self.failure = error


def _file_line(row: LinkedMessage) -> list[Any]:
    message, owner, account = row.message, row.borrower, row.account
    uuid, recorded = message.received.uuid, message.received.created_at
    return [
        *(uuid, recorded.text if recorded else "", message.event, message.status, message.product),
        *(amount(message.amount), message.payment_status, owner and str(owner), owner and owner.uuid),
        *(message.subject_uuid, account and account.uuid, message.bank_account),
        msgspec.Raw(message.body.encode()),
    ]


def _save(messages: Iterable[RemoteMessage]) -> list[Message]:
    """Save new messages from the service, and return all in its order."""
    messages = list(messages)
    uuids = [storage_uuid(message.uuid) for message in messages]
    saved = Message.objects.in_bulk(uuids, field_name="uuid")
    pairs = list(zip(uuids, messages, strict=True))
    if any(uuid not in saved or saved[uuid].gone_at or differs(one, saved[uuid]) for uuid, one in pairs):
        save_messages(messages)
        saved = Message.objects.in_bulk(uuids, field_name="uuid")
    return [saved.get(uuid) or message_row(one) for uuid, one in pairs]


def _in_words(name: str, value: Any) -> str:
    match value:
        case list() if name == "event":
            return ", ".join(wording.event(one) or "" for one in value)
        case list():
            named = [(word, wording.STATUSES.get(word.upper())) for word in value]
            return ", ".join(status.word if status else str(wording.human(word)) for word, status in named)
        case date():
            return wording.day(value) or ""
        case time():
            return f"{wording.time_of_day(value)} {zone_name(service_zone())}"
        case Decimal():
            return wording.money(value) or ""
        case _:
            return str(value)


def values_in_use() -> dict[str, list[str]]:
    """The values of the filtered columns in saved messages, cached for a minute."""
    return cache.get_or_set("messaging.values", _values_in_use, VALUES_CACHE_SECONDS) or {}


def _values_in_use() -> dict[str, list[str]]:
    found = {}
    for name, column in COLUMNS.items():
        values = Message.objects.exclude(**{column: ""}).order_by(column).values_list(column, flat=True)
        found[name] = list(values.distinct()[:MAX_VALUES_IN_USE])
    return found
