"""What each app adds to pages that all apps share: navigation, search, Home, help, and the words of the audit trail.

An app declares it as ``AREA`` in its module ``area``. Who may do what is in ``portal/accounts/roles.py``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from django.apps import apps
from django.utils.module_loading import module_has_submodule


@dataclass(frozen=True, kw_only=True)
class NavigationEntry:
    """A page in the navigation. Its list may have saved views, and search offers it by its name."""

    label: str
    icon: str
    url_name: str
    act: str
    """The act of :data:`portal.accounts.roles.ACTS` that it takes to open it."""
    key: str
    """The key that opens it, pressed after ``g``."""
    group: str = ""
    order: int
    """Its place, counted over all areas."""
    has_number: bool = False
    """Whether the number of waiting items stands beside it."""


class SearchAction(NamedTuple):
    """Something to do that search offers by its name."""

    label: str
    icon: str
    url_name: str
    act: str
    on_page: str = ""
    """The page that offers it, with the same arguments in its address; empty for every page."""


@dataclass(frozen=True, kw_only=True)
class ItemKind:
    """A kind of items that need attention, on Home."""

    name: str
    title: str
    order: int
    """Its place, most urgent first."""
    sources: Sequence[Callable[[Any, Any], Any]]
    """Functions of the snoozed keys and the person that return :class:`portal.ui.attention.Items`."""


@dataclass(frozen=True, kw_only=True)
class HelpPage:
    """A page of Help, in ``templates/home/help_pages.html`` under its address."""

    address: str
    title: str
    picture: str = ""
    """What ``static/help/<address>.webp`` shows."""
    order: int


@dataclass(frozen=True, kw_only=True)
class Area:
    """All that one app adds."""

    navigation: Sequence[NavigationEntry] = ()
    actions: Sequence[SearchAction] = ()
    operators: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    """Search operators: functions of the value that return kinds of records and a condition."""
    attention: Sequence[ItemKind] = ()
    help: Sequence[HelpPage] = ()
    verbs: Mapping[str, str] = field(default_factory=dict)
    """What an entry of the audit trail says was done, by its act."""
    attempts: Mapping[str, str] = field(default_factory=dict)
    """The same for an attempt whose outcome is another entry."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """Lists with saved views that the navigation doesn't have, by the names of their addresses."""


@cache
def areas() -> Sequence[Area]:
    configs = [one for one in apps.get_app_configs() if module_has_submodule(one.module, "area")]
    return [import_module(f"{one.name}.area").AREA for one in configs]


@cache
def navigation() -> Sequence[NavigationEntry]:
    return sorted((entry for area in areas() for entry in area.navigation), key=lambda entry: entry.order)


@cache
def help_pages() -> Mapping[str, HelpPage]:
    pages = sorted((page for area in areas() for page in area.help), key=lambda page: page.order)
    return {page.address: page for page in pages}
