"""One page of messages, live from the service or from the local copy, and what is true of it.

The service filters by days and by one event, and pages by offsets whose meaning it does not tell; everything else is
filtered here, among what is kept. Hides which of the two a page is, and that what the service tells is kept on the way.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from functools import cached_property, partial
from itertools import islice
from typing import Any, Final

from django.core.cache import cache
from django.http import QueryDict

from portal.messaging.forms import PASSING, SIZES, FilterForm
from portal.messaging.keeping import keep, kept_as, service_zone
from portal.messaging.links import Row, rows_of
from portal.messaging.models import Message, last_stored
from portal.messaging.query import Found
from portal.messaging.sync import offset_counts
from portal.registry.lists import COUNTED
from portal.ui import wording
from portal.ui.keys import key_in
from servicing import Client, ServicingError
from servicing import Message as Told
from servicing.messages import WALK_LIMIT, Filters
from servicing.resource import Counts, walk

CLAIM_AGE: Final = 30
MOST_SEEN: Final = 50
COUNTS_AGE: Final = 3600
MOST_AT_ONCE: Final = 100_000
"""So many messages go from the service straight into a file; more come from the copy, which takes no memory for it."""
SERVICE_FILTERS: Final = ("start_date", "end_date", "event")


@dataclass(frozen=True)
class Chip:
    """An active filter in words, and the list without it."""

    label: str
    words: str
    remove: str
    is_sent: bool
    """Whether the service applies it; else it is applied here."""


@dataclass
class Explorer:
    """What the address of the list asks for."""

    state: QueryDict
    failure: ServicingError | None = None
    filters_ignored: bool = False
    """Whether the service answered with messages that its own filters leave out."""
    shown: Sequence[Message] = ()
    total: int | None = None
    """How many there are: by the service, or here as far as they are counted."""
    next: str = ""
    previous: str = ""
    first: int = 1
    is_loading: bool = False
    form: FilterForm = field(init=False)

    def __post_init__(self) -> None:
        self.form = FilterForm(self.state)
        self.form.is_valid()

    @cached_property
    def asked(self) -> dict[str, Any]:
        """What the form understood."""
        return {name: value for name, value in self.form.cleaned_data.items() if value not in ("", None, [])}

    @property
    def size(self) -> int:
        return int(self.asked.get("limit", SIZES[0]))

    @cached_property
    def is_copy(self) -> bool:
        """Whether the list comes from the local copy: where it is wanted so, or a filter is none of the service's."""
        own = set(self.asked) - {*SERVICE_FILTERS, "limit", "source"}
        return bool(own) or self.asked.get("source") == "copy" or len(self.asked.get("event", ())) > 1

    @property
    def is_from_copy(self) -> bool:
        """Whether what is shown comes from the local copy, for whatever reason."""
        return self.is_copy or bool(self.failure) or self.filters_ignored

    @property
    def source(self) -> str | None:
        """What links from this list ask for: a place in the copy means nothing in the service's list."""
        return "copy" if self.failure or self.filters_ignored else self.state.get("source")

    @cached_property
    def found(self) -> Found:
        """The same, in the local copy."""
        return Found(self.asked)

    def is_of(self, days: Mapping[str, str | None]) -> bool:
        """Whether it is narrowed to exactly this stretch of time."""
        return all(self.state.get(name, "") == (value or "") for name, value in days.items())

    @property
    def is_filtered(self) -> bool:
        return bool(set(self.asked) - {"limit", "source", "order"})

    @cached_property
    def rows(self) -> list[Row]:
        return rows_of(self.shown)

    @property
    def newest(self) -> datetime | None:
        """When the newest of the shown messages was stored."""
        return max((message.stored_at for message in self.shown), default=None)

    @property
    def is_beyond(self) -> bool:
        """Whether the page lies behind the last one: an old link, while the list became shorter."""
        return not self.shown and bool(self.total)

    @property
    def sizes(self) -> tuple[int, ...]:
        return SIZES

    @property
    def last(self) -> int:
        return self.first + len(self.shown) - 1

    @property
    def total_words(self) -> str:
        """The total as far as it is known: more than are counted is said."""
        if self.total is None:
            return "an unknown number of"
        is_here = self.is_from_copy and self.is_filtered
        more = is_here and (self.total >= COUNTED or bool(self.found.caps))
        return f"{self.total:,}{'+' if more else ''}"

    # --- Reading ---

    def load(self, client: Client) -> None:
        """Fill in the page: from the service, or where that is not asked or fails from the copy."""
        if self.is_copy:
            self._from_copy()
            return
        try:
            self._from_service(client)
        except ServicingError as error:
            self.failure = error
            self._from_copy()

    def _from_service(self, client: Client) -> None:
        number = self.page_number
        list_page = partial(client.messages.list, **self.sent, limit=self.size)
        offset = None if number == 1 else self._offset(client, number)
        page = list_page(offset=offset)
        self.shown = _kept(page)
        if page.filters_ignored:
            self.filters_ignored = True
            self._from_copy()
            return
        self.total, self.first = page.pagination.total, (number - 1) * self.size + 1
        has_more = len(page) == self.size if self.total is None else number * self.size < self.total
        self.next = self.query_string(page=str(number + 1)) if has_more and len(page) else ""
        self.previous = self.query_string(page=str(number - 1)) if number > 1 else ""

    @property
    def sent(self) -> dict[str, Any]:
        """The filters that the service applies."""
        events = self.asked.get("event", ())
        days = {name: self.asked.get(name) for name in ("start_date", "end_date")}
        return days | {"event": events[0] if len(events) == 1 else None}

    @property
    def sent_words(self) -> str:
        """The same in words."""
        days = "date" if self.sent["start_date"] or self.sent["end_date"] else ""
        return " and ".join(filter(None, (days, "event" if self.sent["event"] else "")))

    @property
    def page_number(self) -> int:
        text = self.state.get("page", "")
        return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 7 and int(text) else 1

    def _offset(self, client: Client, number: int) -> int:
        counts = offset_counts() or cache.get("messaging.counts") or self._learned(client)
        return {"rows": (number - 1) * self.size, "pages1": number}.get(counts or "", number - 1)

    def _learned(self, client: Client) -> Counts | None:
        """What offsets count, as two neighbouring answers show it."""
        pages = walk(lambda offset: client.messages.list(**self.sent, limit=self.size, offset=offset))
        *_, step = islice(pages, 2)
        cache.set("messaging.counts", step.place.counts, COUNTS_AGE)
        return step.place.counts

    def everything(self, client: Client) -> Iterator[list[Message]]:
        """All that the filters leave, a page at a time; what the service is asked for is kept on the way.

        Where the service fails in the middle it ends there, and ``failure`` says so.
        """
        if self.is_from_copy:
            yield from self.found.batches()
            return
        page = partial(client.messages.list, **self.sent, limit=WALK_LIMIT)
        filters, zone = Filters(**self.sent), service_zone()
        try:
            for step in walk(lambda offset: page(offset=offset), offset_counts()):
                yield _kept(message for message in step.new if filters.admit(message, zone))
        except ServicingError as error:
            self.failure = error

    @property
    def is_too_long(self) -> bool:
        """Whether the service has more than is fetched from it in one piece."""
        return not self.is_from_copy and (self.total or 0) > MOST_AT_ONCE

    def _from_copy(self) -> None:
        side, _, rest = self.state.get("page", "").partition("_")
        key, _, first = rest.partition("_")
        place = key_in(key)
        backwards = side == "before" and place is not None
        skip = (self.page_number - 1) * self.size if place is None else 0
        if place is None:
            shown = self.found.page(self.size + 1, skip=skip)
        elif backwards:
            shown = self.found.page(self.size + 1, before=place)
        else:
            shown = self.found.page(self.size + 1, beyond=place)
        has_more = len(shown) > self.size
        self.shown = (shown[-self.size :] if backwards else shown[: self.size]) if has_more else shown
        is_inside = place is not None or skip > 0
        self.total = self._count() if has_more or is_inside else len(shown)
        is_number = first.isascii() and first.isdigit() and len(first) < 9
        self.first = max(1, int(first)) if place is not None and is_number else skip + 1
        if self.shown and (has_more or backwards):
            self.next = self._page_link(f"beyond_{self.shown[-1].pk}_{self.first + len(self.shown)}")
        if self.shown and is_inside and (has_more or not backwards):
            start = max(1, self.first - self.size)
            self.previous = self._page_link(f"before_{self.shown[0].pk}_{start}")

    def _page_link(self, page: str) -> str:
        return self.query_string(page=page, source=self.source)

    def _count(self) -> int:
        if self.is_filtered:
            return self.found.count
        last = last_stored()
        key = f"messaging.count.{last and last.timestamp()}"
        return cache.get_or_set(key, Message.objects.order_by().count, CLAIM_AGE) or 0

    def neighbours(self, message: Message) -> tuple[str, str]:
        """The identifiers of the messages before and behind one, in the order of the list."""
        before, behind = self.found.page(1, before=message.pk), self.found.page(1, beyond=message.pk)
        return (before[0].uuid if before else "", behind[0].uuid if behind else "")

    # --- What is true of it ---

    def claim(self, client: Client) -> "Claim":
        """How many messages the service has with those filters that it applies, and how many of them are kept."""
        sent = self.sent
        words = "_".join(str(value or "") for value in sent.values())
        key = f"messaging.claim.{hashlib.sha256(words.encode()).hexdigest()}"  # People typed what is asked.
        claimed = cache.get(key)
        if claimed is None:
            page = client.messages.list(**sent, limit=1)
            claimed = None if page.filters_ignored else page.pagination.total
            cache.set(key, claimed, CLAIM_AGE)
        asked = {name: value for name, value in self.asked.items() if name in ("start_date", "end_date")}
        if sent["event"]:
            asked["event"] = [sent["event"]]
        parts = Found(asked).parts
        kept = sum(part.count() for part in parts)
        if Message.objects.filter(gone_at__isnull=False).exists():
            kept -= sum(part.filter(gone_at__isnull=False).count() for part in parts)
        return Claim(claimed, kept)

    @cached_property
    def chips(self) -> list[Chip]:
        """The filters that are on."""
        sent = {name for name, value in self.sent.items() if value}
        chips = []
        for name, value in self.asked.items():
            if name in ("limit", "source", "order"):
                continue
            words = ", ".join(map(_word, value)) if isinstance(value, list) else _said(value)
            label = str(self.form.fields[name].label)
            is_sent = name in sent and not self.filters_ignored
            chips.append(Chip(label, words, self.query_string(**{name: None}), is_sent))
        return chips

    @property
    def here(self) -> list[str]:
        """The names of what is filtered here."""
        return [f"{chip.label[0].lower()}{chip.label[1:]}" for chip in self.chips if not chip.is_sent]

    def query_string(self, /, **changes: str | None) -> str:
        """The address of the list with some changes, on its first page unless they say another."""
        kept = QueryDict(mutable=True)
        for name, values in self.state.lists():
            if name not in PASSING and name not in changes and any(values):
                kept.setlist(name, [value for value in values if value])
        for name, value in changes.items():
            if value:
                kept[name] = value
        return f"?{kept.urlencode()}"


@dataclass(frozen=True)
class Claim:
    """What the service says it has, and how much of it is kept here."""

    claimed: int | None
    kept: int

    @property
    def missing(self) -> int:
        return max(0, (self.claimed or 0) - self.kept)

    @property
    def claimed_words(self) -> str:
        return f"{self.claimed:,}"

    @property
    def kept_words(self) -> str:
        return f"{self.kept:,}"

    @property
    def missing_words(self) -> str:
        return f"{self.missing:,}"


def _kept(told: Iterable[Told]) -> list[Message]:
    """Messages of the service as they are kept now, in its order."""
    messages = list(told)
    keep(messages)
    uuids = [kept_as(one.uuid) for one in messages]
    kept = Message.objects.in_bulk(uuids, field_name="uuid")
    return [kept[uuid] for uuid in uuids if uuid in kept]


def _word(value: str) -> str:
    return (
        wording.STATUSES[value.upper()].word
        if value.upper() in wording.STATUSES
        else wording.human(value) or value
    )


def _said(value: Any) -> str:
    match value:
        case date():
            return wording.day(value) or ""
        case time():
            return f"{value:%H:%M}"
        case Decimal():
            return wording.money(value) or ""
        case _:
            return str(value)


def seen(column: str) -> list[str]:
    """The values of a column that this desk has seen: one look into its index for each."""
    found: list[str] = []
    values = Message.objects.order_by(column).values_list(column, flat=True)
    while len(found) < MOST_SEEN and (
        value := values.filter(**{f"{column}__gt": found[-1] if found else ""}).first()
    ):
        found.append(value)
    return found
