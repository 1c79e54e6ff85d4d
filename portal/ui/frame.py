"""The frame of every page: environment, time zone, navigation, and the person's own settings.

A context processor passes one lazy object to the templates, so that a fragment without a frame costs nothing.
Middleware sets ``request.can`` (whether the person may do an action), ``request.health`` (a state and its words) and
``request.waiting`` (the number of waiting items by area).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, tzinfo
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.safestring import SafeString

from portal.core.areas import NavigationEntry, navigation
from portal.core.business_date import business_date
from portal.ui.help import NEWS_COOKIE, VERSION

ZONE_NAMES = {"UTC": "Coordinated Universal Time"} | {
    f"{letters}{season[0]}T": f"{region} {season} Time"
    for letters, region in (
        ("E", "Eastern"),
        ("C", "Central"),
        ("M", "Mountain"),
        ("P", "Pacific"),
        ("AK", "Alaska"),
        ("H", "Hawaii"),
    )
    for season in ("Standard", "Daylight")
}
US_ZONES = ("America/", "US/", "Pacific/Honolulu", "EST", "MST", "HST", "UTC", "Etc/UTC")


def zone_name(zone: tzinfo) -> str:
    """A time zone as it is now, in words if its abbreviation is unambiguous."""
    name = str(zone)
    abbreviation = timezone.localtime(timezone=zone).tzname() or name
    return ZONE_NAMES.get(abbreviation, name) if name.startswith(US_ZONES) else name


@dataclass(frozen=True)
class Link:
    """A navigation entry that this person may follow."""

    label: str
    icon: str
    url: str
    key: str
    is_current: bool
    has_number: bool = False
    waiting: int | None = None
    """The number of waiting items there; None if it isn't counted yet."""


class Frame:
    """The values that ``base.html`` and ``base_plain.html`` read as ``frame``, each computed when used."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._user: Any = getattr(request, "user", None)

    @property
    def environment(self) -> str:
        return str(settings.SERVICING_ENVIRONMENT).upper()

    @property
    def demo_date(self) -> date | None:
        """The business date where the sandbox sets it."""
        return business_date() if settings.BUSINESS_DATE_FROM == "sandbox" else None

    @property
    def zone(self) -> str:
        """The time zone of displayed times."""
        return zone_name(timezone.get_current_timezone())

    @cached_property
    def entries(self) -> tuple[NavigationEntry, ...]:
        return tuple(entry for entry in navigation() if self.can(entry.act))

    @property
    def nav(self) -> SafeString:
        """The navigation groups with their links, without empty groups."""
        match, waiting = self._request.resolver_match, getattr(self._request, "waiting", None)
        numbers = tuple((waiting or {}).get(entry.url_name) for entry in self.entries)
        # The list of the audit trail is in the administration.
        is_audit = bool(match and match.view_name.startswith("admin:audit_entry_"))
        area = "audit" if is_audit else match.namespace if match else ""
        return _render_nav(self.entries, area, numbers)

    @cached_property
    def can(self) -> Callable[[str], bool]:
        """Whether this person may do an action; without a rule, signing in is enough."""
        signed_in = bool(self._user and self._user.is_authenticated)
        return getattr(self._request, "can", lambda act: signed_in)

    @property
    def may_create_borrower(self) -> bool:
        return self.can("borrowers.create")

    @property
    def health(self) -> tuple[str, str] | None:
        return getattr(self._request, "health", None)

    @property
    def has_news(self) -> bool:
        """Whether this browser hasn't yet opened the news of this version."""
        return self._request.COOKIES.get(NEWS_COOKIE) != VERSION

    @property
    def theme(self) -> str:
        return getattr(self._user, "theme", "") or "auto"

    @property
    def density(self) -> str:
        return getattr(self._user, "density", "") or "comfortable"

    @property
    def shortcuts(self) -> str:
        return "on" if getattr(self._user, "shortcuts", True) else "off"

    @property
    def upload_limit(self) -> int:
        return settings.UPLOAD_LIMIT_MB

    @property
    def person(self) -> str:
        signed_in = self._user and self._user.is_authenticated
        return (self._user.preferred_name or self._user.display_name()) if signed_in else ""

    @property
    def initials(self) -> str:
        words = self.person.split()
        return "".join(word[0] for word in (words[:1] + words[-1:] if len(words) > 1 else words)).upper()


@lru_cache(maxsize=500)
def _render_nav(
    entries: tuple[NavigationEntry, ...], namespace: str, numbers: tuple[int | None, ...]
) -> SafeString:
    """The navigation of everyone who may open these, has these numbers waiting and is in this area."""
    groups: dict[str, list[Link]] = {}
    for entry, number in zip(entries, numbers, strict=True):
        groups.setdefault(entry.group, []).append(_link(entry, namespace, number))
    asks = any(entry.has_number and number is None for entry, number in zip(entries, numbers, strict=True))
    return render_to_string("ui/frame.html#nav", {"groups": groups.items(), "asks": asks})


def _link(entry: NavigationEntry, namespace: str, number: int | None) -> Link:
    is_current = entry.url_name.partition(":")[0] == namespace
    url = reverse(entry.url_name)
    return Link(entry.label, entry.icon, url, entry.key, is_current, entry.has_number, number)


def frame(request: HttpRequest) -> dict[str, Frame]:
    return {"frame": Frame(request)}
