"""Pages of long lists, with Django's paginator."""

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar, cast

from django.core.cache import cache
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.utils import timezone

from portal.core.business_date import business_date

T = TypeVar("T")
MAX_COUNTED = 10_000
"""A list is counted only up to here and has no later pages: counting more would be the slowest part."""
SUMS_CACHE_SECONDS = 60


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # Django's own cannot be subscripted
    """Pages of records, counted up to :data:`MAX_COUNTED`."""

    object_list: Any

    @cached_property
    def count(self) -> int:
        """The number of records, at most :data:`MAX_COUNTED`."""
        rows = self.object_list
        return capped_count(rows) if isinstance(rows, QuerySet) else min(len(rows), MAX_COUNTED)

    @property
    def words(self) -> str:
        return counted(self.count)


class UpcomingLast:
    """Records in their order, but those that match ``upcoming`` after all others and in reverse: soonest first."""

    def __init__(self, found: QuerySet[Any], upcoming: Q) -> None:
        self.others, self.upcoming = found.exclude(upcoming), found.filter(upcoming).reverse()

    @cached_property
    def number_of_others(self) -> int:
        return capped_count(self.others)

    @cached_property
    def upcoming_count(self) -> int:
        return capped_count(self.upcoming)

    def __len__(self) -> int:
        return self.number_of_others + self.upcoming_count

    def __getitem__(self, page: slice) -> list[Any]:
        rows = list(self.others[page])
        if len(rows) < page.stop - page.start:
            first = max(page.start - self.number_of_others, 0)
            rows += self.upcoming[first : max(page.stop - self.number_of_others, 0)]
        return rows


def counted(number: int) -> str:
    """A count that stops at a limit: "10,000+"."""
    return f"{number:,}{'+' if number >= MAX_COUNTED else ''}"


def capped_count(found: QuerySet[Any]) -> int:
    """The number of rows, at most :data:`MAX_COUNTED`."""
    return found.order_by()[:MAX_COUNTED].count()


def cached_sums(words: str, compute: Callable[[], T]) -> T:
    """Cache the sums of a long list for a minute; ``words`` identify the list and its filters."""
    # Days of a filter begin at the person's midnight.
    words = f"{business_date()} {words} {timezone.get_current_timezone_name()}"
    key = f"registry.sums.{hashlib.sha256(words.encode()).hexdigest()}"
    return cast(T, cache.get_or_set(key, compute, SUMS_CACHE_SECONDS))
