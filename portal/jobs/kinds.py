"""The kinds of jobs: what each does, how often, and how to find it by its name."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from django.conf import settings
from django.utils.module_loading import autodiscover_modules

Work = Callable[..., Any]
_kinds: dict[str, "Kind"] = {}
# What every worker does at each round of its clock, on its own host.
_chores: list[Callable[[], Any]] = []


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of job."""

    name: str
    label: str
    work: Work
    single: bool
    attempts: int
    every: str
    gives_way: bool

    @property
    def interval(self) -> timedelta | None:
        """How often the clock begins it; ``None`` where nobody wants it by itself."""
        minutes = getattr(settings, self.every) if self.every else 0
        return timedelta(minutes=minutes) if minutes else None


def job(
    name: str,
    *,
    label: str,
    single: bool = False,
    attempts: int = 3,
    every: str = "",
    gives_way: bool = False,
) -> Callable[[Work], Kind]:
    """Make a function a kind of job.

    ``single``: at most one is open; a second start joins it. ``attempts``: how often it is begun at most, when it
    raises or its worker dies. ``every``: the setting that says how many minutes lie between two runs; 0 is never.
    ``gives_way``: it is long and goes on where it was, so it lets a job that waits go first.
    """

    def decorate(work: Work) -> Kind:
        _kinds[name] = Kind(
            name=name,
            label=label,
            work=work,
            single=single,
            attempts=attempts,
            every=every,
            gives_way=gives_way,
        )
        return _kinds[name]

    return decorate


def chore(work: Callable[[], Any]) -> Callable[[], Any]:
    """Make a function one that every worker calls at each round of its clock, for what lies on its own host."""
    _chores.append(work)
    return work


def chores() -> list[Callable[[], Any]]:
    """Those of all areas."""
    _discover()
    return _chores


@cache
def _discover() -> None:
    autodiscover_modules("tasks")


def kinds() -> list[Kind]:
    """All kinds of all areas."""
    _discover()
    return list(_kinds.values())


def find(name: str) -> Kind | None:
    """The kind of this name; ``None`` if the code no longer has it."""
    _discover()
    return _kinds.get(name)
