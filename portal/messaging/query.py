"""The local copy, narrowed by what a form asks for: a page of it from any place, and how many there are.

Every index is in the order of time, so a page is one short look into an index wherever it begins. Hides in which form
SQLite answers best: several values of one column are asked for one by one, text by the newest messages that hold it,
and a range of amounts by its index only where few lie in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import cached_property
from heapq import merge
from itertools import islice
from typing import Any, Final

from django.db import connection
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from portal.messaging.facts import facts_asked, words_asked
from portal.messaging.keeping import ONE_DAY, service_zone
from portal.messaging.links import OWNED
from portal.messaging.models import BankAccount, Message, key_from
from portal.messaging.search_index import FACTS, INDEX
from portal.registry.lists import COUNTED
from portal.registry.models import Record

FEW: Final = 5_000
PROBED: Final = 1_000
LOOKED_AT: Final = 10_000
"""So many messages that hold a text are looked at, the newest; and so many of one borrower."""
BATCH: Final = 500
PAGE: Final = 101
COLUMNS: Final = {
    "event": "event",
    "status": "status",
    "product": "product",
    "payment": "payment_status",
}


@dataclass(frozen=True)
class Found:
    """The messages that all filters leave; ``asked`` is the cleaned data of the form."""

    asked: Mapping[str, Any]

    def page(self, size: int, *, beyond: int | None = None, before: int | None = None) -> list[Message]:
        """So many in order: from the first on, or those beyond a key, or those that end before one."""
        keys = list(islice(self.keys(beyond=beyond, before=before), size))
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

    @property
    def is_cut(self) -> bool:
        """Whether more messages hold the text than were looked at."""
        return connection.vendor == "sqlite" and bool(self._expression) and self._holders > LOOKED_AT

    @cached_property
    def is_newest(self) -> bool:
        """Whether there are more messages in these days than were looked at for their borrower."""
        if not self.asked.get("link"):
            return False
        return Message.objects.order_by().filter(self._time)[: LOOKED_AT + 1].count() > LOOKED_AT

    # --- Within ---

    @cached_property
    def parts(self) -> list[QuerySet[Message]]:
        """Parts that have nothing in common, each of which an index answers in order."""
        found = Message.objects.filter(self._time, self._selected)
        least, most = self.asked.get("least"), self.asked.get("most")
        if least is not None or most is not None:
            found = self._by_amount(found, least, most)
        return self._apart(found)

    @cached_property
    def _counted(self) -> list[QuerySet[Message]]:
        """The same for counting, which no order hinders from using the index of amounts."""
        return self._apart(Message.objects.filter(self._time, self._selected, self._amounts))

    def _apart(self, found: QuerySet[Message]) -> list[QuerySet[Message]]:
        several = [(column, self.asked[name]) for name, column in COLUMNS.items() if self.asked.get(name)]
        if not several:
            return [found]
        (column, values), *others = sorted(several, key=_commonness) if len(several) > 1 else several
        for (
            other,
            wanted,
        ) in others:  # Without their indexes: the index of what is rarest knows the others too.
            met = {f"any_{other}": Coalesce(F(other), Value(""))}
            found = found.alias(**met).filter(**{f"any_{other}__in": wanted})
        return [found.filter(**{column: value}) for value in values]

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
        """What few messages have: those of a borrower, with an identifier, with a text."""
        found = Q()
        if borrower := self.asked.get("borrower"):
            found &= Q(pk__in=_newest(of_borrower(borrower.uuid)))
        if identifier := self.asked.get("id"):
            found &= Q(pk__in=_newest(_with_identifier(identifier.strip())))
        if self.asked.get("link"):
            found &= self._unlinked
        return found & self._text

    @property
    def _unlinked(self) -> Q:
        """Those of the newest that nobody knows the borrower of."""
        order = "-pk" if self.descends else "pk"
        newest = Message.objects.filter(self._time).order_by(order).values("pk")[:LOOKED_AT]
        known = Record.objects.filter(uuid=OuterRef("subject_uuid"), kind__in=OWNED).exclude(borrower_uuid="")
        said = BankAccount.objects.filter(uuid=OuterRef("bank_account"))
        return Q(pk__in=newest) & ~Q(Exists(known)) & ~Q(Exists(said))

    @cached_property
    def _words(self) -> list[str]:
        text = self.asked.get("q") or ""
        return facts_asked(text) if self._is_json else words_asked(text)

    @property
    def _is_json(self) -> bool:
        return str(self.asked.get("q") or "").startswith("{")

    @cached_property
    def _text(self) -> Q:
        if not self._words:
            return Q()
        if connection.vendor != "sqlite":
            return Q(*(Q(search_text__contains=word) for word in self._words))
        order = "DESC" if self.descends else "ASC"
        statement = f"{self._matching} ORDER BY rowid {order} LIMIT %s"
        return Q(pk__in=RawSQL(statement, [self._expression, *self._rowids, LOOKED_AT]))  # noqa: S611

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
    def _rowids(self) -> list[int]:
        bounds: dict[str, int] = dict(self._time.children)  # type: ignore[arg-type]  # conditions on the key alone
        return [bounds.get("pk__gte", 0), bounds.get("pk__lt", 2**63 - 1)]

    @cached_property
    def _holders(self) -> int:
        with connection.cursor() as cursor:
            statement = f"SELECT count(*) FROM ({self._matching} LIMIT %s)"  # noqa: S608 - a fixed name
            cursor.execute(statement, [self._expression, *self._rowids, LOOKED_AT + 1])
            return int(cursor.fetchone()[0])

    @cached_property
    def _amounts(self) -> Q:
        bounds = {"amount__gte": self.asked.get("least"), "amount__lte": self.asked.get("most")}
        return Q(**{name: value for name, value in bounds.items() if value is not None})

    def _by_amount(self, found: QuerySet[Message], least: Any, most: Any) -> QuerySet[Message]:
        matching = Message.objects.order_by().filter(self._amounts)
        if matching[: FEW + 1].count() <= FEW:
            return found.filter(pk__in=matching.values("pk"))
        # The index of amounts would bring so many out of order: they are met on the way.
        found = found.alias(sum=F("amount") + 0)
        bounds = {"sum__gte": least, "sum__lte": most}
        return found.filter(**{name: value for name, value in bounds.items() if value is not None})


def _commonness(item: tuple[str, list[str]]) -> int:
    """How common a column's values are: the key of the thousandth message with one; the nearer to now, the commoner."""
    column, values = item
    keys = Message.objects.order_by("-pk").values_list("pk", flat=True)
    probed = (keys.filter(**{column: value})[PROBED : PROBED + 1] for value in values)
    return max(key for found in probed for key in (*found, 0))


def of_borrower(uuid: str) -> list[Q]:
    """Which messages are a borrower's: those about anything of theirs known here, and from a bank account of theirs."""
    known = Record.objects.filter(borrower_uuid=uuid).values_list("uuid", flat=True)
    accounts = BankAccount.objects.filter(borrower_uuid=uuid).values_list("uuid", flat=True)
    return [Q(subject_uuid__in=[uuid, *known]), Q(bank_account__in=list(accounts))]


def _with_identifier(uuid: str) -> list[Q]:
    """Of the message, of the repayment or whatever else it is about, of the loan or line, of the bank account."""
    of_account = Record.objects.filter(parent_uuid=uuid).values_list("uuid", flat=True)
    return [Q(uuid=uuid), Q(subject_uuid__in=[uuid, *of_account]), Q(bank_account=uuid)]


def _newest(conditions: Sequence[Q]) -> list[int]:
    """The keys of those that meet any of the conditions, each of which an index answers."""
    found: set[int] = set()
    for condition in conditions:
        found.update(Message.objects.filter(condition).values_list("pk", flat=True)[:LOOKED_AT])
    return sorted(found, reverse=True)[:LOOKED_AT]


def _keys(part: QuerySet[Message], start: int | None, *, descends: bool) -> Iterator[int]:
    """The keys of a part in order, beyond a key: enough for a page at first, more only where somebody goes on."""
    size, side, order = PAGE, "pk__lt" if descends else "pk__gt", "-pk" if descends else "pk"
    while True:
        beyond = part if start is None else part.filter(**{side: start})
        keys = list(beyond.order_by(order).values_list("pk", flat=True)[:size])
        yield from keys
        if len(keys) < size:
            return
        start, size = keys[-1], FEW
