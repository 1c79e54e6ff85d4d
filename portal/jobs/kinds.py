"""The kinds of jobs: what each does, how often, and how to find it by name."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from django.conf import settings
from django.utils.module_loading import autodiscover_modules

Work = Callable[..., Any]
_kinds: dict[str, "JobKind"] = {}
_chores: list[Callable[[], Any]] = []


@dataclass(frozen=True, kw_only=True)
class JobKind:
    name: str
    label: str
    work: Work
    single: bool = False
    """Whether at most one is open at a time; a second start joins it."""
    attempts: int = 3
    """How often it is tried if it raises or its worker dies."""
    every: str | int = ""
    """The minutes between two runs, or the setting that has them; 0 means never."""
    yields_to_others: bool = False
    """Whether it lets a waiting job go first: it takes long and resumes where it was."""

    @property
    def interval(self) -> timedelta | None:
        """How often it is scheduled; ``None`` if it isn't."""
        minutes = self.every
        if isinstance(minutes, str):
            minutes = getattr(settings, minutes) if minutes else 0
        return timedelta(minutes=minutes) if minutes else None


def job(name: str, *, label: str, **options: Any) -> Callable[[Work], JobKind]:
    """Register a function as a kind of job; ``options`` are the other fields of :class:`JobKind`."""

    def register(work: Work) -> JobKind:
        _kinds[name] = JobKind(name=name, label=label, work=work, **options)
        return _kinds[name]

    return register


def chore(work: Callable[[], Any]) -> Callable[[], Any]:
    """Register a function that every worker calls in each round of upkeep, for work that isn't a job."""
    _chores.append(work)
    return work


@cache
def _discover_tasks() -> None:
    autodiscover_modules("tasks")


def all_chores() -> list[Callable[[], Any]]:
    _discover_tasks()
    return _chores


def all_kinds() -> list[JobKind]:
    _discover_tasks()
    return list(_kinds.values())


def find_kind(name: str) -> JobKind | None:
    """Return the kind of this name; ``None`` if the code no longer has it."""
    _discover_tasks()
    return _kinds.get(name)
