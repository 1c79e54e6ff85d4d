"""Panels: sections of a page that load themselves from the lending service, and how old their copies are.

A page shows saved copies. A panel whose copy is old requests the page's address again with ``?panel=`` and its id as
the htmx target; only then is the service called. Without JavaScript, the page's Refresh button (``?refresh=1``) calls
it and waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import BoundedSemaphore

from django.http import HttpResponse
from django_htmx.http import trigger_client_event

from portal.audit.models import Actor
from portal.audit.service_health import forget_health
from portal.gateway.client import StaffRequest
from portal.gateway.reading import LiveCopy, read_and_wait, read_if_old, saved_again
from portal.records.models import Source

# Half of the threads that may wait for the service (portal/gunicorn.py), so that the others serve everything else.
_places = BoundedSemaphore(8)


def panel_copies(request: StaffRequest, panel: str, copies: Sequence[LiveCopy]) -> Sequence[LiveCopy]:
    """The copies that a panel or its whole page shows, read before if the panel loads itself or is refreshed."""
    # Links of the page are made from its query.
    query = request.GET.copy()
    query.pop("panel", None)
    request.GET = query  # type: ignore[assignment]
    # A panel that loads itself on a page opened with ?refresh=1 doesn't ask for what the page just read.
    force = "refresh" in request.GET and request.htmx.trigger != panel
    if request.htmx.target == panel or (force and not request.htmx):
        return read_copies(request, copies, force=force)
    return copies


def read_copies(request: StaffRequest, copies: Sequence[LiveCopy], *, force: bool = False) -> list[LiveCopy]:
    """The same copies after the service was called for those that are old, or for all.

    A panel that finds too many others waiting shows the copies and looks again. A page without scripts waits.
    """
    actor = Actor.of(request)
    if not request.htmx:
        read_and_wait(actor, copies, force=force)
    elif _places.acquire(blocking=False):
        try:
            read_if_old(actor, copies, force=force)
        finally:
            _places.release()
    copies = saved_again(copies)
    # What was read may have changed what the frame of the page shows.
    if force or any(one.failing_since for one in copies):
        forget_health()
    return copies


def tell_account_read(response: HttpResponse, fresh: "Freshness") -> HttpResponse:
    """Tell the parts of the page that follow a panel to load again, once nobody reads it any more."""
    return response if fresh.is_pending else trigger_client_event(response, "account:read")


@dataclass(frozen=True)
class Freshness:
    """What a panel's footer says about its copies: the age of the oldest, and since when any of them fails."""

    copies: Sequence[LiveCopy]
    has_link: bool = True
    """Whether its footer refreshes it; otherwise a button beside it does."""
    loads_itself: bool = True
    """Whether an old copy is read without a click."""

    @property
    def at(self) -> datetime | None:
        """The time of the oldest copy; ``None`` if any was never answered."""
        answered = [one.at for one in self.copies if one.at]
        return min(answered, default=None) if len(answered) == len(self.copies) else None

    @property
    def partly_loaded(self) -> str:
        """How many copies were ever answered, in words; empty if none or all were."""
        answered = sum(one.at is not None for one in self.copies)
        return f"{answered} of {len(self.copies)} loaded" if 0 < answered < len(self.copies) else ""

    @property
    def may_refresh(self) -> bool:
        """Whether a person may refresh it: the service reads by borrower, which may not be confirmed."""
        return any(one.record.borrower_uuid for one in self.copies)

    @property
    def from_file(self) -> bool:
        return any(one.source == Source.FILE for one in self.copies)

    @property
    def failing_since(self) -> datetime | None:
        """When the first failing copy began to fail."""
        return min((one.failing_since for one in self.copies if one.failing_since), default=None)

    @property
    def failure(self) -> str:
        """Why it fails, in words for staff."""
        return next((one.failure for one in self.copies if one.failing_since), "")

    @property
    def is_refused(self) -> bool:
        """Whether the service rejected every failing copy, rather than not answering."""
        failing = [one for one in self.copies if one.failing_since]
        return bool(failing) and all(one.is_refused for one in failing)

    @property
    def is_pending(self) -> bool:
        """Whether a call is under way."""
        return any(one.is_pending for one in self.copies)

    @property
    def is_awaited(self) -> bool:
        """Whether a newer copy is on its way."""
        return self.is_pending or (self.loads_itself and any(one.is_due for one in self.copies))
