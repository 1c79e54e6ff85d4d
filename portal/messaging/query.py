"""Saved messages that match a form's filters: a page from any position, and their number.

Every index is in order of time, so a page is one short index scan wherever it begins. Hides which queries are fastest:
several values of one column are queried one by one, the text's index is used only if few of the messages that match
everything else have the text (SQLite: the newest that have it), and the amounts' index only if few messages are in the
range.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cached_property, reduce
from heapq import merge
from itertools import islice
from operator import or_
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from portal.lists.paging import MAX_COUNTED
from portal.messaging.models import BankAccount, Message, first_key_at
from portal.messaging.search_index import TextSearch
from portal.messaging.store import service_zone, storage_uuid
from portal.registry.models import SEARCHED_KINDS, Record

COLUMNS: Final = {"event": "event", "status": "status", "product": "product", "payment": "payment_status"}
"""The column of each filter that takes several values."""
MAX_FETCHED: Final = 5_000
MAX_COUNTED_AMOUNTS: Final = 50_000
SAMPLE_SIZE: Final = 1_000
"""The number of a part's newest messages that are sampled for a text."""
COMMON_FOR_PAGES: Final = 20
"""With this many hits in the sample, a page is found in order of time, as the text's index would return far more."""
COMMON_FOR_COUNTS: Final = 250
"""With this many hits, matches are counted in order of time too."""
MAX_SEARCHED: Final = 10_000
"""The most messages that are searched for their borrower and, on SQLite, for a text."""
BATCH_SIZE: Final = 500
PAGE_SIZE: Final = 101


class _Split(NamedTuple):
    """Messages that match everything but the text, and exclusive conditions that split them into parts."""

    messages: QuerySet[Message]
    conditions: list[Q]
    hits: list[int]
    """How many of the newest of each part have the text."""


@dataclass(frozen=True)
class MessageQuery:
    """The saved messages that match all filters; ``filters`` is the cleaned data of the form."""

    filters: Mapping[str, Any]

    def page(
        self, size: int, *, beyond: int | None = None, before: int | None = None, skip: int = 0
    ) -> list[Message]:
        """A number of messages in order: from the first, after a key, or up to a key."""
        if len(self.parts) == 1:
            # Only keys are filtered: an index has all of those columns, so no other message is read.
            start, descending = self._direction(beyond, before)
            keys = _in_order(self.parts[0], start, descending=descending).values("pk")[skip : skip + size]
            found = Message.objects.defer("search_text").filter(pk__in=keys)
            messages = list(found.order_by("-pk" if descending else "pk"))
        else:
            messages = _load(list(islice(self.keys(beyond=beyond, before=before), skip, skip + size)))
        return messages[::-1] if before is not None else messages

    def keys(self, *, beyond: int | None = None, before: int | None = None) -> Iterator[int]:
        """The keys in order; with ``before``, backwards from there."""
        start, descending = self._direction(beyond, before)
        return merge(
            *(_iterate_keys(part, start, descending=descending) for part in self.parts), reverse=descending
        )

    def _direction(self, beyond: int | None, before: int | None) -> tuple[int | None, bool]:
        """Where a page starts, and whether keys descend from there."""
        return (beyond, self.is_descending) if before is None else (before, not self.is_descending)

    def batches(self) -> Iterator[list[Message]]:
        """All matches in order, a few hundred at a time."""
        keys = self.keys()
        while batch := list(islice(keys, BATCH_SIZE)):
            yield _load(batch)

    @cached_property
    def count(self) -> int:
        """The number of matches, at most :data:`MAX_COUNTED`."""
        left = MAX_COUNTED
        for part in self._parts_to_count:
            left -= part.order_by()[:left].count() if left > 0 else 0
        return MAX_COUNTED - left

    @property
    def exact_count(self) -> int:
        """The number of matches, without an upper limit."""
        return sum(part.order_by().count() for part in self.parts)

    def count_stored_since(self, moment: datetime) -> int:
        """The number of matches saved after a moment."""
        new = Message.objects.filter(stored_at__gt=moment).values_list("pk", flat=True)[:MAX_SEARCHED]
        keys = list(new)
        return sum(part.filter(pk__in=keys).count() for part in self.parts) if keys else 0

    @property
    def is_descending(self) -> bool:
        return self.filters.get("order") != "oldest"

    @cached_property
    def limits(self) -> list[str]:
        """Sentences about saved messages that were not searched. With any, the count is a lower bound."""
        first = f"Only the {'newest' if self.is_descending else 'oldest'} {MAX_SEARCHED:,} messages"
        limits = []
        if self._sqlite_text and self._sqlite_text.count(self._key_range, MAX_SEARCHED + 1) > MAX_SEARCHED:
            limits.append(f"{first} with this text were searched.")
        in_time = Message.objects.order_by().filter(**self._between("pk"))
        if self.filters.get("link") and in_time[: MAX_SEARCHED + 1].count() > MAX_SEARCHED:
            limits.append(f"{first} from these days were searched by borrower.")
        return limits

    # --- Parts, each of which an index answers ---

    @cached_property
    def parts(self) -> list[QuerySet[Message]]:
        """Mutually exclusive parts, each answered by an index in order, or everything at once."""
        return self._with_text(self._split_for_pages, COMMON_FOR_PAGES)

    @cached_property
    def _parts_to_count(self) -> list[QuerySet[Message]]:
        """The same without order, so that the amounts' index is used if it leaves the fewest."""
        if not self._amounts("amount") or self._number_in_amounts <= MAX_FETCHED:
            return self._with_text(self._split_for_pages, COMMON_FOR_COUNTS)
        messages = Message.objects.filter(self._preselected, **self._amounts("amount"))
        if self._number_in_amounts > MAX_COUNTED_AMOUNTS:
            split = self._split(messages.filter(**self._between("pk")), is_small=self._is_small)
        else:
            split = self._split(messages.alias(key=F("pk") + 0).filter(**self._between("key")), is_small=True)
        return self._with_text(split, COMMON_FOR_COUNTS)

    @cached_property
    def _split_for_pages(self) -> _Split:
        messages = Message.objects.filter(self._preselected, **self._between("pk"))
        if self._number_in_amounts <= MAX_FETCHED:
            messages = messages.filter(pk__in=self._in_amounts.values("pk"))
        elif self._amounts("sum"):  # Their index would return many out of order.
            messages = messages.alias(sum=F("amount") + 0).filter(**self._amounts("sum"))
        return self._split(messages, is_small=self._is_small)

    def _split(self, messages: QuerySet[Message], *, is_small: bool) -> _Split:
        several = [(column, self.filters[name]) for name, column in COLUMNS.items() if self.filters.get(name)]
        if len(several) > 1 and not is_small:
            several.sort(key=_commonness)
        first, others = ([], several) if is_small else (several[:1], several[1:])
        for other, values in others:  # Unindexed: the first column's index has these too.
            messages = messages.alias(**{f"any_{other}": Coalesce(F(other), Value(""))})
            messages = messages.filter(**{f"any_{other}__in": values})
        values = [Q(**{column: value}) for column, values in first for value in values] or [Q()]
        conditions = [subject & value for subject in self._subjects for value in values]
        return _Split(messages, conditions, [self._hits(messages.filter(one)) for one in conditions])

    @property
    def _is_small(self) -> bool:
        """Whether something other than a column leaves few messages, so that columns' indexes would only mislead."""
        is_preselected = self._sqlite_text or any(
            self.filters.get(name) for name in ("link", "gone", "changed")
        )
        return bool(is_preselected) or self._number_in_amounts <= MAX_FETCHED

    # --- Text ---

    @cached_property
    def _text(self) -> TextSearch | None:
        text = TextSearch.parse(self.filters.get("q") or "")
        return text if text.words else None

    @property
    def _sqlite_text(self) -> TextSearch | None:
        return self._text if connection.vendor == "sqlite" else None

    def _with_text(self, split: _Split, common: int) -> list[QuerySet[Message]]:
        """Each part in which the text is common, then all others at once by the text's index."""
        ordered, unordered = split.messages.alias(place=F("pk")), split.messages.alias(place=F("pk") + 0)
        if not self._text or self._sqlite_text:
            return [ordered.filter(one) for one in split.conditions]
        text = self._text.condition
        if self._is_small:  # Reading in order would scan every message.
            return [unordered.filter(one, text) for one in split.conditions]
        pairs = list(zip(split.conditions, split.hits, strict=True))
        parts: list[QuerySet[Message]] = [ordered.filter(one, text) for one, hits in pairs if hits >= common]
        if rare := [one for one, hits in pairs if hits < common]:
            parts.append(unordered.filter(reduce(or_, rare), text, self._text.indexed_condition))
        return parts

    def _hits(self, part: QuerySet[Message]) -> int:
        """How many of a part's newest messages have the text; the most possible if that decides nothing."""
        if not self._text or self._is_small or self._is_common:
            return SAMPLE_SIZE
        return self._probe(part)

    @cached_property
    def _is_common(self) -> bool:
        """Whether so many messages have the text, other filters aside, that its index would return too many."""
        return self._probe(Message.objects.filter(**self._between("pk"))) >= COMMON_FOR_COUNTS

    def _probe(self, part: QuerySet[Message]) -> int:
        newest = Message.objects.order_by().filter(pk__in=part.order_by("-pk").values("pk")[:SAMPLE_SIZE])
        condition = self._text.condition if self._text else None
        found = newest.aggregate(all=Count("pk"), hits=Count("pk", filter=condition))
        return SAMPLE_SIZE if found["all"] < SAMPLE_SIZE else int(found["hits"])

    # --- Single filters ---

    @cached_property
    def _subjects(self) -> list[Q]:
        """The conditions on borrower and subject."""
        borrower, identifier = self.filters.get("borrower"), self.filters.get("id")
        owned = _exclusive(borrower_conditions(borrower.uuid)) if borrower else [Q()]
        about = _exclusive(_with_identifier(identifier.strip())) if identifier else [Q()]
        return [one & other for one in owned for other in about]

    @cached_property
    def _key_range(self) -> dict[str, int]:
        """The keys of the filtered period; days and times of day are the service's."""
        get, zone, keys = self.filters.get, service_zone(), {}
        if day := get("start_date"):
            keys["gte"] = first_key_at(datetime.combine(day, get("start_time") or time.min, zone))
        if day := get("end_date"):
            # Of an hour that comes twice, the second one is the end.
            last_minute = datetime.combine(day, (get("end_time") or time(23, 59)).replace(fold=1), zone)
            keys["lt"] = first_key_at(last_minute.astimezone(UTC) + timedelta(minutes=1))
        return keys

    def _between(self, column: str) -> dict[str, int]:
        return {f"{column}__{operator}": key for operator, key in self._key_range.items()}

    @cached_property
    def _preselected(self) -> Q:
        """Conditions by text (on SQLite), by messages gone or changed at the service, and by a missing borrower."""
        found = Q()
        if self.filters.get("gone"):
            found &= Q(pk__in=Message.objects.order_by().filter(gone_at__isnull=False).values("pk"))
        if self.filters.get("changed"):
            changed = Message.objects.order_by().filter(changed_payload__isnull=False)
            found &= Q(pk__in=changed.values("pk"))
        if self._sqlite_text:
            found &= self._sqlite_text.matches(self._key_range, MAX_SEARCHED, descending=self.is_descending)
        if self.filters.get("link"):
            order = "-pk" if self.is_descending else "pk"
            newest = Message.objects.filter(**self._between("pk")).order_by(order).values("pk")[:MAX_SEARCHED]
            subjects = Record.objects.filter(uuid=OuterRef("subject_uuid"), kind__in=SEARCHED_KINDS)
            manual_links = BankAccount.objects.filter(uuid=OuterRef("bank_account"))
            found &= Q(pk__in=newest) & ~Exists(subjects.exclude(borrower_uuid="")) & ~Exists(manual_links)
        return found

    def _amounts(self, column: str) -> dict[str, Any]:
        bounds = {f"{column}__gte": self.filters.get("least"), f"{column}__lte": self.filters.get("most")}
        return {name: value for name, value in bounds.items() if value is not None}

    @property
    def _in_amounts(self) -> QuerySet[Message]:
        return Message.objects.order_by().filter(**self._amounts("amount"))

    @cached_property
    def _number_in_amounts(self) -> int:
        """The number of messages with such an amount, counted as far as it matters."""
        limit = MAX_COUNTED_AMOUNTS + 1
        return self._in_amounts[:limit].count() if self._amounts("amount") else limit


def borrower_conditions(uuid: str) -> list[Q]:
    """The conditions for a borrower's messages: from its bank accounts, or about anything of it on file."""
    records = Record.objects.filter(borrower_uuid=uuid).values_list("uuid", flat=True)
    accounts = BankAccount.objects.filter(borrower_uuid=uuid).values_list("uuid", flat=True)
    return [*(Q(bank_account=account) for account in accounts), Q(subject_uuid__in=[uuid, *records])]


def _with_identifier(uuid: str) -> list[Q]:
    """The conditions for the ID of the message, its subject, the loan or line, or the bank account."""
    of_account = Record.objects.filter(parent_uuid=uuid).values_list("uuid", flat=True)
    return [Q(uuid=storage_uuid(uuid)), Q(bank_account=uuid), Q(subject_uuid__in=[uuid, *of_account])]


def _exclusive(conditions: Sequence[Q]) -> list[Q]:
    """Make conditions mutually exclusive."""
    return [
        reduce(lambda found, other: found & ~other, conditions[:number], condition)
        for number, condition in enumerate(conditions)
    ]


def _commonness(item: tuple[str, list[str]]) -> int:
    """The key of the thousandth message with one of a column's values. The nearer to now, the more common they are."""
    column, values = item
    keys = Message.objects.order_by("-pk").values_list("pk", flat=True)
    probed = (keys.filter(**{column: value})[SAMPLE_SIZE : SAMPLE_SIZE + 1] for value in values)
    return max(key for found in probed for key in (*found, 0))


def _load(keys: list[int]) -> list[Message]:
    messages = Message.objects.defer("search_text").in_bulk(keys)
    return [messages[key] for key in keys if key in messages]


def _iterate_keys(part: QuerySet[Message], start: int | None, *, descending: bool) -> Iterator[int]:
    """The keys of a part in order, after a key: first enough for a page, more only if needed."""
    size = PAGE_SIZE
    while True:
        keys = list(_in_order(part, start, descending=descending).values_list("pk", flat=True)[:size])
        yield from keys
        if len(keys) < size:
            return
        start, size = keys[-1], MAX_FETCHED


def _in_order(part: QuerySet[Message], start: int | None, *, descending: bool) -> QuerySet[Message]:
    """The messages of a part in order, after a key."""
    side, order = ("pk__lt", "-place") if descending else ("pk__gt", "place")
    return (part if start is None else part.filter(**{side: start})).order_by(order)
