"""Saved views on the first page, each with how many records it has now."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.core.cache import cache
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.applications.views import applications
from portal.borrowers import listed
from portal.credit_lines.views import LIST as LINES
from portal.home.models import Pin
from portal.loans.views import LIST as LOANS
from portal.messaging.explorer import Explorer
from portal.portfolio import Portfolio
from portal.registry.lists import known, listing
from portal.registry.models import Kind
from portal.repayments.views import repayments
from portal.saved_views.models import SavedView

MOST = 8
COUNT_KEPT = 30


def _borrowers(state: QueryDict) -> str:
    kinds = [Kind.BORROWER]
    found = listing(listed.borrowers(), state, sorts=listed.SORTS, filters=listed.FILTERS, kinds=kinds)
    return found.total_words


def _accounts(of: Portfolio, state: QueryDict) -> str:
    return listing(known(of.kind), state, sorts=of.sorts, filters=of.filters, kinds=[of.kind]).total_words


def _messages(state: QueryDict) -> str:
    """Only of the local copy: the service is asked by nobody's first page."""
    explorer = Explorer(state)
    return f"{explorer.found.count:,}" if explorer.is_copy else ""


# How many a view has, is known of these lists; a view of another stands without a number.
COUNTS: Mapping[str, Callable[[QueryDict], str]] = {
    "borrowers:index": _borrowers,
    "applications:index": lambda state: applications(state).total_words,
    "loans:index": partial(_accounts, LOANS),
    "credit_lines:index": partial(_accounts, LINES),
    "repayments:index": lambda state: repayments(state).total_words,
    "messaging:index": _messages,
}


class Pinned(NamedTuple):
    """A view by its name, where it leads, and how many it has."""

    name: str
    url: str
    number: str


def pinned(user: User) -> list[Pinned]:
    """The views that this person keeps on the first page; until they choose, those every list of borrowers has."""
    kept = views(user).filter(pin__owner=user)[:MOST]
    if kept:
        return [_pinned(one.name, one.list, one.query) for one in kept]
    return [_pinned(name, "borrowers:index", query) for name, query in listed.VIEWS.items()]


def choices(user: User) -> list[tuple[SavedView, bool]]:
    """Every view that they may keep there, and whether they do."""
    kept = set(Pin.objects.filter(owner=user).values_list("view_id", flat=True))
    return [(view, view.pk in kept) for view in views(user)]


def pin(user: User, keys: Sequence[str]) -> None:
    """Keep these views there, and no others."""
    chosen = [view for view in views(user) if str(view.pk) in keys][:MOST]
    with transaction.atomic():
        Pin.objects.filter(owner=user).delete()
        Pin.objects.bulk_create(Pin(owner=user, view=view) for view in chosen)


def views(user: User) -> QuerySet[SavedView, Any]:
    """One's own and the shared ones."""
    return SavedView.objects.filter(Q(owner=user) | Q(is_shared=True))


def _pinned(name: str, of: str, query: str) -> Pinned:
    return Pinned(name, f"{reverse(of)}?{query}", _number(of, query) if of in COUNTS else "")


def _number(of: str, query: str) -> str:
    """Counted once for everybody who keeps the same view, and whose day begins at the same time."""
    told = f"{of}?{query} {timezone.get_current_timezone_name()}"
    key = f"home.pinned.{hashlib.sha256(told.encode()).hexdigest()}"
    return cache.get_or_set(key, lambda: COUNTS[of](QueryDict(query)), COUNT_KEPT) or ""
