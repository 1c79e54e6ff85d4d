"""The lines of the first page's list, what gives them, and how much there is of each group."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from portal.home.models import Snooze

GROUPS = {"payments": "Payments", "past_due": "Past due", "system": "System"}


@dataclass(frozen=True, kw_only=True)
class Item:
    """One line: what is, what follows, and the one thing to do."""

    key: str
    group: str
    state: str
    icon: str
    fact: str
    rest: str = ""
    meta: str = ""
    borrower_uuid: str = ""
    when: datetime | date | None = None
    url: str
    verb: str
    owner_id: int | None = None

    @property
    def sentence(self) -> str:
        """What is, as plain text."""
        return f"{self.fact} {self.rest}".strip()


@dataclass(frozen=True)
class Source:
    """The lines of one kind. Those that are left out stand in a list of their own, where there is one."""

    items: Sequence[Item]
    total: int
    name: str = ""
    url: str = ""

    @property
    def left_out(self) -> int:
        return max(0, self.total - len(self.items))


@dataclass(frozen=True)
class Attention:
    """The whole list, and how much of it there is of each group."""

    sources: Sequence[Source]
    user_id: int
    snoozed: Sequence[Snooze]

    def shown(self, group: str) -> list[Item]:
        """The lines of one group, those of this person, or all."""
        items = [item for source in self.sources for item in source.items]
        if group == "mine":
            return [item for item in items if item.owner_id == self.user_id]
        return [item for item in items if not group or item.group == group]

    def left_out(self, group: str) -> list[Source]:
        """Of which sources more is there than is shown."""
        return [
            one for one in self.sources if one.items and one.left_out and group in ("", one.items[0].group)
        ]

    @property
    def total(self) -> int:
        return total_of(self.sources)

    @property
    def mine(self) -> int:
        return len(self.shown("mine"))

    @property
    def pills(self) -> list[tuple[str, str, int]]:
        """Name, words and count of each filter."""
        counted = {
            name: sum(one.total for one in self.sources if one.items and one.items[0].group == name)
            for name in GROUPS
        }
        groups = [(name, words, counted[name]) for name, words in GROUPS.items()]
        return [("", "All", self.total), ("mine", "Mine", self.mine), *groups]


def total_of(sources: Iterable[Source]) -> int:
    """How many lines they have in all, those that are left out included."""
    return sum(source.total for source in sources)
