"""Pages of very long lists.

Hides how a page is read along an index, and how matches are counted without reading millions of rows.
"""

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.core.cache import cache
from django.core.exceptions import EmptyResultSet
from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet
from django.utils import timezone

from portal.registry.models import Record
from portal.runtime.business_date import business_date
from portal.runtime.database import fetch_rows

if TYPE_CHECKING:
    from django_stubs_ext import ValuesQuerySet

T = TypeVar("T")
# A filtered list is counted only up to here: nobody pages further, and counting would be the slowest part.
MAX_COUNTED = 10_000
COUNT_CACHE_SECONDS = 60


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # Django's own cannot be subscripted
    """Pages of records, counted up to :data:`MAX_COUNTED` unless the count must be exact.

    Records that match ``upcoming`` come after all others, in reverse order.
    """

    object_list: QuerySet[Any]

    def __init__(
        self,
        found: QuerySet[Any],
        size: int,
        *,
        is_exact: bool,
        upcoming: Q | None,
        related: str,
    ) -> None:
        super().__init__(found, size)
        self.counted = found.order_by()
        self.is_exact = is_exact
        self.upcoming = upcoming
        self.related = related

    @cached_property
    def count(self) -> int:
        """The number of records. That there are too many to count is cached for a minute."""
        statement = _statement(self.counted)
        if statement is None:
            return 0
        sql, params = statement
        digest = _digest(statement)
        key = f"registry.many.{digest}"
        if cache.get(key):
            count = MAX_COUNTED
        else:
            ((count,),) = fetch_rows(f"SELECT COUNT(*) FROM ({sql} LIMIT {MAX_COUNTED}) counted", params)  # noqa: S608 - Django's
            if count == MAX_COUNTED:
                cache.set(key, True, COUNT_CACHE_SECONDS)
        return cached_count(self.counted, digest) if self.is_exact and count == MAX_COUNTED else count

    @cached_property
    def upcoming_count(self) -> int:
        """The number of records that come after all others, cached if the number of all is."""
        if not self.upcoming:
            return 0
        upcoming = self.counted.filter(self.upcoming)
        return upcoming.count() if self.count < MAX_COUNTED else cached_count(upcoming)

    def page(self, number: int | str) -> Page[Record]:
        """Read a page: its keys along an index from the nearer end, then the records."""
        if number in (1, "1") and self.upcoming is None and "count" not in self.__dict__:
            number, keys = 1, self._first_keys()
        else:
            number = self.validate_number(number)
            start = (number - 1) * self.per_page
            keys = self._keys(start, min(start + self.per_page, self.count))
        rows = self.object_list.model._default_manager.select_related(self.related).in_bulk(keys)
        return Page([rows[key] for key in keys if key in rows], number, self)

    def _first_keys(self) -> list[int]:
        """The keys of the first page. If they are all, nothing needs to be counted."""
        keys = list(self.object_list.values_list("pk", flat=True)[: self.per_page + 1])
        if len(keys) <= self.per_page:
            self.count = len(keys)
        return keys[: self.per_page]

    def _keys(self, start: int, end: int) -> list[int]:
        """The keys of a range. Upcoming records are read separately and in reverse, so each part follows its index."""
        ordered = self.object_list.values_list("pk", flat=True)
        if self.upcoming is None:
            return self._between(ordered, start, end, self.count)
        last, others = ordered.filter(self.upcoming).reverse(), ordered.exclude(self.upcoming)
        is_whole = self.is_exact or self.count < MAX_COUNTED
        number = self.count - self.upcoming_count if is_whole else others.order_by()[:MAX_COUNTED].count()
        keys = self._between(others, start, min(end, number), number) if start < number else []
        return keys + list(last[max(start - number, 0) : max(end - number, 0)])

    def _between(self, ordered: "ValuesQuerySet[Any, int]", start: int, end: int, count: int) -> list[int]:
        if start > count // 2 and (self.is_exact or self.count < MAX_COUNTED):
            return list(ordered.reverse()[count - end : count - start])[::-1]
        return list(ordered[start:end])


def cached_count(records: QuerySet[Any], digest: str = "") -> int:
    """The number of records, cached for a minute; ``digest`` is that of their statement, if known."""
    key = f"registry.count.{digest or _digest(_statement(records))}"
    return cache.get_or_set(key, records.count, COUNT_CACHE_SECONDS) or 0


def cached_sums(words: str, compute: Callable[[], T]) -> T:
    """Cache the sums of a long list for a minute; ``words`` identify the list and its filters."""
    # Days of a filter begin at the person's midnight.
    words = f"{business_date()} {words} {timezone.get_current_timezone_name()}"
    key = f"registry.sums.{hashlib.sha256(words.encode()).hexdigest()}"
    return cast(T, cache.get_or_set(key, compute, COUNT_CACHE_SECONDS))


def _statement(records: QuerySet[Any]) -> tuple[str, tuple[Any, ...]] | None:
    """The statement that reads their keys; None for an impossible condition, which has none."""
    try:
        return records.order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return None


def _digest(statement: Any) -> str:
    return hashlib.sha256(repr(statement).encode()).hexdigest()
