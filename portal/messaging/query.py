"""The local copy, narrowed by what a form asks for: a page of it from any place, and how many there are.

Every index is in the order of time, so a page is one short look into an index wherever it begins. Hides in which form
a database answers best: several values of one column are asked for one by one, a text by its index only where few of
what else is asked for hold it (SQLite: by the newest that do), and a range of amounts only where few lie in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal
from functools import cached_property, reduce
from heapq import merge
from itertools import islice
from operator import or_
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.models import Count, Exists, F, Func, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce, StrIndex
from django.db.models.lookups import GreaterThan

from portal.messaging.facts import FACT, facts_asked, words_asked
from portal.messaging.keeping import ONE_DAY, kept_as, service_zone
from portal.messaging.links import OWNED
from portal.messaging.models import BankAccount, Message, key_from
from portal.messaging.search_index import FACTS, INDEX
from portal.registry.lists import COUNTED
from portal.registry.models import Record

FEW: Final = 5_000
MANY: Final = 50_000
PROBED: Final = 1_000
MET: Final = 20
"""Where so many of them hold a text, a page meets those that do on the way: its index would bring far more."""
COMMON: Final = 250
"""Where so many do, they are counted so too."""
LOOKED_AT: Final = 10_000
"""So many messages are looked at for their borrower, and on SQLite so many that hold a text."""
BATCH: Final = 500
PAGE: Final = 101
COLUMNS: Final = {
    "event": "event",
    "status": "status",
    "product": "product",
    "payment": "payment_status",
}


class _Cut(NamedTuple):
    """What a form leaves before its text is looked for, and the conditions that cut it into parts."""

    found: QuerySet[Message]
    conditions: list[Q]
    hits: list[int]
    """How many of the newest of each part hold the text."""


@dataclass(frozen=True)
class Found:
    """The messages that all filters leave; ``asked`` is the cleaned data of the form."""

    asked: Mapping[str, Any]

    def page(
        self, size: int, *, beyond: int | None = None, before: int | None = None, skip: int = 0
    ) -> list[Message]:
        """So many in order: from the first on, or those beyond a key, or those that end before one."""
        keys = list(islice(self.keys(beyond=beyond, before=before), skip, skip + size))
        rows = Message.objects.in_bulk(keys)
        shown = [rows[key] for key in keys if key in rows]
        return shown[::-1] if before is not None else shown

    def keys(self, *, beyond: int | None = None, before: int | None = None) -> Iterator[int]:
        """Their keys in order; ``before`` gives them backwards from there."""
        descends = self.descends if before is None else not self.descends
        start = beyond if before is None else before
        return merge(*(_keys(part, start, descends=descends) for part in self.parts), reverse=descends)

    def batches(self) -> Iterator[list[Message]]:
        """All of them in order, some hundreds at a time."""
        keys = self.keys()
        while batch := list(islice(keys, BATCH)):
            rows = Message.objects.in_bulk(batch)
            yield [rows[key] for key in batch if key in rows]

    @cached_property
    def count(self) -> int:
        """How many there are, at most :data:`COUNTED`."""
        left = COUNTED
        for part in self._counted:
            left -= part.order_by()[:left].count() if left > 0 else 0
        return COUNTED - left

    def has(self, message: Message) -> bool:
        """Whether this one is among them."""
        return any(part.filter(pk=message.pk).exists() for part in self.parts)

    def arrived(self, since: datetime) -> int:
        """How many of them were stored after a moment."""
        new = Message.objects.filter(stored_at__gt=since).values_list("pk", flat=True)[:LOOKED_AT]
        keys = list(new)
        return sum(part.filter(pk__in=keys).count() for part in self.parts) if keys else 0

    @property
    def descends(self) -> bool:
        return self.asked.get("order") != "oldest"

    @cached_property
    def caps(self) -> list[str]:
        """What of the copy was not looked at, a sentence each: with one of them a count is a least count."""
        first = f"Only the {'newest' if self.descends else 'oldest'} {LOOKED_AT:,} messages"
        told = [
            (self._is_cut, f"{first} that hold this text were looked at."),
            (self._is_more_to_link, f"{first} of these days were looked at for their borrower."),
        ]
        return [sentence for is_true, sentence in told if is_true]

    # --- Within ---

    @cached_property
    def parts(self) -> list[QuerySet[Message]]:
        """Parts that have nothing in common, each of which an index answers in order, or all at once."""
        return self._holding(self._cut, MET)

    @cached_property
    def _cut(self) -> _Cut:
        found = Message.objects.filter(self._time, self._selected)
        if self._by_sum <= FEW:
            found = found.filter(pk__in=self._of_amount.values("pk"))
        elif self._bounds:  # Its index would bring so many out of order: they are met on the way.
            bounds = {name.replace("amount", "sum"): value for name, value in self._bounds.items()}
            found = found.alias(sum=F("amount") + 0).filter(**bounds)
        return self._apart(found, is_small=self._is_small)

    @cached_property
    def _counted(self) -> list[QuerySet[Message]]:
        """The same for counting, which no order hinders from using the index of amounts where it leaves the fewest."""
        if not self._bounds or self._by_sum <= FEW:
            return self._holding(self._cut, COMMON)
        if self._by_sum > MANY:
            found = Message.objects.filter(self._time, self._selected, **self._bounds)
            return self._holding(self._apart(found, is_small=self._is_small), COMMON)
        times = {name.replace("pk", "key"): value for name, value in self._time_bounds.items()}
        found = Message.objects.alias(key=F("pk") + 0).filter(self._selected, **self._bounds, **times)
        return self._holding(self._apart(found, is_small=True), COMMON)

    @property
    def _is_small(self) -> bool:
        """Whether something else than a column leaves few: then the indexes of columns only lead astray."""
        is_listed = bool(self._words) and connection.vendor == "sqlite"
        return is_listed or bool(self.asked.get("link")) or self._by_sum <= FEW

    def _apart(self, found: QuerySet[Message], *, is_small: bool) -> _Cut:
        several = [(column, self.asked[name]) for name, column in COLUMNS.items() if self.asked.get(name)]
        if len(several) > 1 and not is_small:
            several.sort(key=_commonness)
        first, others = ([], several) if is_small else (several[:1], several[1:])
        for other, wanted in others:  # Without their indexes: that of what leads knows these columns too.
            met = {f"any_{other}": Coalesce(F(other), Value(""))}
            found = found.alias(**met).filter(**{f"any_{other}__in": wanted})
        values = [Q(**{column: value}) for column, values in first for value in values] or [Q()]
        conditions = [owned & value for owned in self._owned for value in values]
        return _Cut(found, conditions, [self._hits(found.filter(one)) for one in conditions])

    def _holding(self, cut: _Cut, least: int) -> list[QuerySet[Message]]:
        """Each part that holds the text often; behind them all others at once, by the index of the text."""
        ordered, listed = cut.found.alias(place=F("pk")), cut.found.alias(place=F("pk") + 0)
        if not self._words or connection.vendor == "sqlite":
            return [ordered.filter(one) for one in cut.conditions]
        if self._is_small:  # In order it would look at every message there is, here as with an index.
            return [listed.filter(one, self._held) for one in cut.conditions]
        pairs = list(zip(cut.conditions, cut.hits, strict=True))
        parts: list[QuerySet[Message]] = [
            ordered.filter(one, self._held) for one, hits in pairs if hits >= least
        ]
        if rare := [one for one, hits in pairs if hits < least]:
            parts.append(listed.filter(reduce(or_, rare), self._held, self._indexed))
        return parts

    def _hits(self, part: QuerySet[Message]) -> int:
        """How many of the newest of a part hold the text; all, as it were, where the part is small."""
        if not self._words or self._is_small or self._is_common:
            return PROBED
        return self._probe(part)

    def _probe(self, part: QuerySet[Message]) -> int:
        newest = Message.objects.order_by().filter(pk__in=part.order_by("-pk").values("pk")[:PROBED])
        found = newest.aggregate(all=Count("pk"), held=Count("pk", filter=self._held))
        return PROBED if found["all"] < PROBED else int(found["held"])

    @cached_property
    def _owned(self) -> list[Q]:
        """Whose they are and what they are about, each case without those before it."""
        borrower, identifier = self.asked.get("borrower"), self.asked.get("id")
        theirs = _disjoint(of_borrower(borrower.uuid)) if borrower else [Q()]
        named = _disjoint(_with_identifier(identifier.strip())) if identifier else [Q()]
        return [one & other for one in theirs for other in named]

    @cached_property
    def _time(self) -> Q:
        """The days are the service's, and so are the times of day."""
        asked, zone, found = self.asked, service_zone(), Q()
        if day := asked.get("start_date"):
            start = datetime.combine(day, asked.get("start_time") or time.min, zone)
            found &= Q(pk__gte=key_from(start))
        if day := asked.get("end_date"):
            end = datetime.combine(day + ONE_DAY, time.min, zone)
            if moment := asked.get("end_time"):
                end = datetime.combine(day, moment, zone) + timedelta(minutes=1)
            found &= Q(pk__lt=key_from(end))
        return found

    @cached_property
    def _selected(self) -> Q:
        """What hold a text, on SQLite, and of whom nobody knows the borrower."""
        listed = self._listed if self._words and connection.vendor == "sqlite" else Q()
        return listed & self._unlinked if self.asked.get("link") else listed

    @property
    def _unlinked(self) -> Q:
        """Those of the newest that nobody knows the borrower of."""
        order = "-pk" if self.descends else "pk"
        newest = Message.objects.filter(self._time).order_by(order).values("pk")[:LOOKED_AT]
        known = Record.objects.filter(uuid=OuterRef("subject_uuid"), kind__in=OWNED).exclude(borrower_uuid="")
        said = BankAccount.objects.filter(uuid=OuterRef("bank_account"))
        return Q(pk__in=newest) & ~Q(Exists(known)) & ~Q(Exists(said))

    @property
    def _is_more_to_link(self) -> bool:
        if not self.asked.get("link"):
            return False
        return Message.objects.order_by().filter(self._time)[: LOOKED_AT + 1].count() > LOOKED_AT

    @cached_property
    def _words(self) -> list[str]:
        text = self.asked.get("q") or ""
        return facts_asked(text) if self._is_json else words_asked(text)

    @property
    def _is_json(self) -> bool:
        return str(self.asked.get("q") or "").startswith("{")

    @property
    def _listed(self) -> Q:
        """On SQLite: the newest that hold the text."""
        order = "DESC" if self.descends else "ASC"
        statement = f"{self._matching} ORDER BY rowid {order} LIMIT %s"
        return Q(pk__in=RawSQL(statement, [self._expression, *self._rowids, LOOKED_AT]))  # noqa: S611

    @property
    def _indexed(self) -> Q:
        return Q(*(Q(search_text__contains=word) for word in self._words))

    @cached_property
    def _held(self) -> Q:
        """On PostgreSQL: which hold the words, by the text itself; a part of a digest is no value."""
        text: Any = F("search_text")
        if not self._is_json:
            text = Func(text, Value(FACT), Value(1), function="split_part", output_field=TextField())
        return Q(*(Q(GreaterThan(StrIndex(text, Value(word)), 0)) for word in self._words))

    @cached_property
    def _is_common(self) -> bool:
        """Whether so many hold the text, whatever else is asked for, that its index would bring too many."""
        return self._probe(Message.objects.filter(self._time)) >= COMMON

    @property
    def _expression(self) -> str:
        """What to ask a table of trigrams or of digests."""
        quoted = (word.replace('"', '""') for word in self._words)
        return " AND ".join(f'"{word}"' for word in quoted)

    @property
    def _matching(self) -> str:
        index = FACTS if self._is_json else INDEX
        return f"SELECT rowid FROM {index} WHERE {index} MATCH %s AND rowid >= %s AND rowid < %s"  # noqa: S608

    @property
    def _time_bounds(self) -> dict[str, int]:
        return dict(self._time.children)  # type: ignore[arg-type]  # conditions on the key alone

    @property
    def _rowids(self) -> list[int]:
        return [self._time_bounds.get("pk__gte", 0), self._time_bounds.get("pk__lt", 2**63 - 1)]

    @property
    def _is_cut(self) -> bool:
        """Whether more messages hold the text than SQLite looks at."""
        if connection.vendor != "sqlite" or not self._words:
            return False
        with connection.cursor() as cursor:
            statement = f"SELECT count(*) FROM ({self._matching} LIMIT %s)"  # noqa: S608 - a fixed name
            cursor.execute(statement, [self._expression, *self._rowids, LOOKED_AT + 1])
            return bool(cursor.fetchone()[0] > LOOKED_AT)

    @cached_property
    def _bounds(self) -> dict[str, Decimal]:
        """The amounts that are asked for."""
        bounds = {"amount__gte": self.asked.get("least"), "amount__lte": self.asked.get("most")}
        return {name: value for name, value in bounds.items() if value is not None}

    @property
    def _of_amount(self) -> QuerySet[Message]:
        return Message.objects.order_by().filter(**self._bounds)

    @cached_property
    def _by_sum(self) -> int:
        """How many messages have such an amount, as far as it matters."""
        return self._of_amount[: MANY + 1].count() if self._bounds else MANY + 1


def _commonness(item: tuple[str, list[str]]) -> int:
    """How common a column's values are: the key of the thousandth message with one; the nearer to now, the commoner."""
    column, values = item
    keys = Message.objects.order_by("-pk").values_list("pk", flat=True)
    probed = (keys.filter(**{column: value})[PROBED : PROBED + 1] for value in values)
    return max(key for found in probed for key in (*found, 0))


def of_borrower(uuid: str) -> list[Q]:
    """Which messages are a borrower's: those from a bank account of theirs, and about anything of theirs known here."""
    known = Record.objects.filter(borrower_uuid=uuid).values_list("uuid", flat=True)
    accounts = BankAccount.objects.filter(borrower_uuid=uuid).values_list("uuid", flat=True)
    return [*(Q(bank_account=account) for account in accounts), Q(subject_uuid__in=[uuid, *known])]


def _with_identifier(uuid: str) -> list[Q]:
    """Of the message, of the repayment or whatever else it is about, of the loan or line, of the bank account."""
    of_account = Record.objects.filter(parent_uuid=uuid).values_list("uuid", flat=True)
    return [Q(uuid=kept_as(uuid)), Q(bank_account=uuid), Q(subject_uuid__in=[uuid, *of_account])]


def _disjoint(conditions: Sequence[Q]) -> list[Q]:
    """The same, each without what meets one before it."""
    return [
        reduce(lambda found, other: found & ~other, conditions[:number], condition)
        for number, condition in enumerate(conditions)
    ]


def _keys(part: QuerySet[Message], start: int | None, *, descends: bool) -> Iterator[int]:
    """The keys of a part in order, beyond a key: enough for a page at first, more only where somebody goes on."""
    size, side, order = PAGE, "pk__lt" if descends else "pk__gt", "-place" if descends else "place"
    while True:
        beyond = part if start is None else part.filter(**{side: start})
        keys = list(beyond.order_by(order).values_list("pk", flat=True)[:size])
        yield from keys
        if len(keys) < size:
            return
        start, size = keys[-1], FEW
