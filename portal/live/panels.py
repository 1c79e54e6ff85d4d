"""The panels of a page: what they show, how old it is, and one response for all panels that waited for the service.

A page is sent with saved copies and one hidden element, the loader, which requests every panel that waits for the
service. The response replaces the panels that changed, what depends on them, and the health in the header; for a panel
that did not change, only its age. Without JavaScript (no ``js`` cookie) the page waits for the service, up to a
deadline.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.audit.models import Actor
from portal.audit.service_health import forget_health
from portal.gateway import StaffRequest
from portal.live.reading import NO_SCRIPT_WAIT_SECONDS, LiveCopy, ask_and_wait, start_reads
from portal.registry.models import Record, Source
from portal.registry.recalculation import account_state
from portal.ui.htmx import render_page, requested_partial

PAGE_WAIT_SECONDS = 0.04
LOADER = "panels"
"""The id of the loader, and so the target of its requests."""
SHOWN_HEADER = "Panels-Shown"
"""A header rather than a parameter, so that links in the response don't carry it."""


def show_panels(request: StaffRequest, panels: Mapping[str, Sequence[Record]]) -> dict[str, list[LiveCopy]]:
    """The copies that each panel of a page shows, by the panel's HTML id.

    The loader waits for all copies, a panel that is refreshed for its own (``?refresh=1`` calls even for fresh ones).
    A whole page waits a moment, so that the answers of a fast service need not be rendered a second time. Without
    JavaScript it waits longer.
    """
    force, actor = "refresh" in request.GET, Actor.of(request)
    everything = {record.pk: record for records in panels.values() for record in records}
    is_scripted = request.COOKIES.get("js") == "1"
    if request.htmx:
        target = request.htmx.target or ""
        asked = everything.values() if target == LOADER else panels.get(target, ())
        ask_and_wait(actor, list(asked), force=force)
    elif is_scripted:
        running = start_reads(actor, list(everything.values()), force=force)
        if not running:
            return {name: [LiveCopy(record) for record in records] for name, records in panels.items()}
        wait(running, timeout=PAGE_WAIT_SECONDS)
    else:
        ask_and_wait(actor, list(everything.values()), force=force, deadline=NO_SCRIPT_WAIT_SECONDS)
    if not request.htmx:
        request.account_state = account_state()  # What was read may have changed what the frame counts.
    stored = Record.objects.in_bulk(everything)
    return {
        name: [LiveCopy(stored.get(record.pk, record)) for record in records]
        for name, records in panels.items()
    }


@dataclass(frozen=True)
class Freshness:
    """What a panel's footer says about its copies: the age of the oldest, and since when any of them fails."""

    copies: Sequence[LiveCopy]
    has_link: bool = True
    """Whether its footer refreshes it; otherwise a button beside it does."""

    @property
    def at(self) -> datetime | None:
        """The time of the oldest copy; ``None`` if any was never answered."""
        answered = [one.at for one in self.copies if one.at]
        return min(answered, default=None) if len(answered) == len(self.copies) else None

    @property
    def from_file(self) -> bool:
        """Whether any copy is from a file."""
        return any(one.record.source == Source.FILE for one in self.copies)

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
        """Whether a call is due or under way, so that the panel is loaded again."""
        return any(one.is_due or one.is_pending for one in self.copies)

    @property
    def digest(self) -> str:
        """A digest of what the panel shows, without the time of the answers."""
        found = hashlib.sha256()
        for one in self.copies:
            found.update(f"{one.record.pk} {one.failing_since} {one.failure} {one.record.answer}\0".encode())
        return found.hexdigest()[:16]


class Panels:
    """The panels of a page by name, and which of them this request renders."""

    def __init__(
        self,
        request: StaffRequest,
        panels: Mapping[str, Freshness],
        followers: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """``followers`` are the parts of the page that change with a panel."""
        self._request, self._panels = request, panels
        self._target = requested_partial(request, (*panels, LOADER))
        shown = (
            _shown(request.headers.get(SHOWN_HEADER, ""))
            if self._target == LOADER
            else {self._target or "": ""}
        )
        self._asked = {name: shown[name] for name in panels if name in shown}
        changed = [name for name, digest in self._asked.items() if panels[name].digest != digest]
        self._drawn = dict.fromkeys(
            part for name in changed for part in (name, *(followers or {}).get(name, ()))
        )

    def draws(self, name: str) -> bool:
        """Whether the response renders this panel or part; a whole page renders all."""
        return self._target is None or name in self._drawn

    @property
    def unchanged(self) -> list[tuple[str, Freshness]]:
        """The panels for which only the age is sent."""
        return [(name, self._panels[name]) for name in self._asked if name not in self._drawn]

    @property
    def loader(self) -> SafeString:
        """The element that requests the waiting panels; after a panel was refreshed, only if that one waits."""
        # What is still due was just requested in vain, so another request would not help.
        waiting = [
            name
            for name, fresh in self._panels.items()
            if (fresh.is_pending if name in self._asked else fresh.is_awaited)
        ]
        if self._target in self._panels and self._target not in waiting:
            return SafeString("")
        return self._loader(waiting)

    @property
    def refresher(self) -> SafeString:
        """A loader that calls the service for all panels."""
        return self._loader(list(self._panels), refresh="1")

    def _loader(self, names: Sequence[str], **changes: str) -> SafeString:
        request = self._request
        place = format_html('id="{}" hidden', LOADER)
        if request.htmx and self._target != LOADER:
            place += SafeString(' hx-swap-oob="true"')
        if not names:
            return format_html("<div {}></div>", place)
        query = request.GET.copy()
        query.pop("refresh", None)
        # Only what is on screen after this response can be unchanged later.
        shown = {name: self._panels[name].digest for name in names if not self._target or name in self._asked}
        query["panel"] = LOADER
        query.update(changes)
        headers = json.dumps({SHOWN_HEADER: ",".join(f"{name}.{shown.get(name, '')}" for name in names)})
        trigger = "load delay:1s" if request.htmx and not changes else "load"
        return format_html(
            '<div {} hx-get="{}?{}" hx-headers="{}" hx-trigger="{}" hx-target="this" hx-swap="outerHTML"></div>',
            place,
            request.path,
            query.urlencode(),
            headers,
            trigger,
        )

    def render(
        self,
        template: str,
        context: Mapping[str, Any],
        *,
        partial: str | tuple[str, ...] = (),
        status: int = 200,
    ) -> HttpResponse:
        """Render the page, one of its other parts, or the panels for this request."""
        context = {**context, "panels": self}
        if self._target is None:
            return render_page(self._request, template, context, partial=partial, status=status)
        if "refresh" in self._request.GET or any(self._panels[name].failing_since for name in self._asked):
            forget_health()
        context["parts"] = [f"{template}#{name}" for name in self._drawn]
        return render_page(self._request, "ui/panels.html#answer", context, status=status)


def _shown(header: str) -> dict[str, str]:
    """The digest of each panel on screen, as sent by the loader."""
    return {name: digest for name, _, digest in (one.partition(".") for one in header.split(","))}
