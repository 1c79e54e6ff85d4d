"""Saved views on the home page, each with its current number of records."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.core.cache import cache
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils import timezone

from portal.accounts.models import User
from portal.applications.list_page import APPLICATIONS
from portal.borrowers.list_page import BORROWERS
from portal.credit_lines.list_page import LINES
from portal.home.models import Pin
from portal.loans.list_page import LOANS
from portal.messaging.explorer import Explorer
from portal.messaging.query import capped_count
from portal.repayments.list_page import REPAYMENTS
from portal.tables.models import SavedView

MAX_PINS = 8
COUNT_CACHE_SECONDS = 30
LISTS = {f"{one.area}:index": one for one in (BORROWERS, APPLICATIONS, LOANS, LINES, REPAYMENTS)}


class PinnedView(NamedTuple):
    """A view with its name, its list, its address, and its number of records."""

    name: str
    list_name: str
    url: str
    number: str


def pinned(choices: Iterable[tuple[SavedView, bool]]) -> list[PinnedView]:
    """The pinned views; the presets of the list of borrowers until any is pinned."""
    chosen = [view for view, is_pinned in choices if is_pinned][:MAX_PINS] or [
        SavedView(name=name, list="borrowers:index", query=query) for name, query in BORROWERS.presets.items()
    ]
    return [
        PinnedView(one.name, one.list_name, one.get_absolute_url(), _number(one.list, one.query))
        for one in chosen
    ]


def choices(user: User) -> list[tuple[SavedView, bool]]:
    """Every view that this person can pin, and whether they did."""
    pins = set(Pin.objects.filter(owner=user).values_list("view_id", flat=True))
    return [(view, view.pk in pins) for view in views(user)]


def pin(user: User, keys: Sequence[str]) -> None:
    chosen = [view for view in views(user) if str(view.pk) in keys][:MAX_PINS]
    with transaction.atomic():
        Pin.objects.filter(owner=user).delete()
        # The same form may be posted twice at once.
        Pin.objects.bulk_create((Pin(owner=user, view=view) for view in chosen), ignore_conflicts=True)


def views(user: User) -> QuerySet[SavedView, Any]:
    """This person's own views and the shared ones."""
    return SavedView.objects.filter(Q(owner=user) | Q(is_shared=True))


def _number(page: str, query: str) -> str:
    """The number of records of a view, cached for everyone with the same view and time zone."""
    words = f"{page}?{query} {timezone.get_current_timezone_name()}"
    key = f"home.pinned.{hashlib.sha256(words.encode()).hexdigest()}"
    return cache.get_or_set(key, lambda: _count(page, QueryDict(query)), COUNT_CACHE_SECONDS) or ""


def _count(page: str, state: QueryDict) -> str:
    """The number of records or saved messages of a view; None if only the service knows."""
    if page in LISTS:
        return LISTS[page].find(state).total_words
    explorer = Explorer(state)
    if page != "messaging:index" or not explorer.wants_copy:
        return ""
    return f"{capped_count(explorer.matches):,}"
