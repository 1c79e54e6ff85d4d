"""What the search box answers: hits by kind, pages and acts, and for an unknown identifier what could resolve it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from django.core.paginator import Page, Paginator
from django.urls import reverse

from portal.lookup.messages import MessageHits
from portal.registry.lists import with_borrowers
from portal.registry.models import Kind, Record
from portal.registry.query import Query, fold, read
from portal.registry.search import OWNED, lines_of, of_borrowers, ranked
from portal.registry.search_index import forms_of
from portal.ui import wording
from portal.ui.frame import AREAS

SHORTEST: Final = 2
MOST: Final = 1_000
SUGGESTED: Final = 5
SHOWN: Final = 10
PER_PAGE: Final = 25
OWNERS: Final = 5

PLURALS: Final = {
    Kind.BORROWER: "Borrowers",
    Kind.KEY_PERSON: "Key people",
    Kind.APPLICATION: "Applications",
    Kind.LOAN: "Loans",
    Kind.LINE: "Lines of credit",
    Kind.REPAYMENT: "Repayments",
}
ICONS: Final = {
    Kind.BORROWER: "building-store",
    Kind.KEY_PERSON: "user",
    Kind.APPLICATION: "file-text",
    Kind.LOAN: "cash",
    Kind.LINE: "wallet",
    Kind.REPAYMENT: "arrows-exchange",
}


@dataclass(frozen=True)
class Place:
    """A page or an act of this desk that a person may go to."""

    label: str
    icon: str
    url: str


# A line of search text that is a name of a person or a place.
_NAME = re.compile(r"[^\W\d_]+(?:[ '.,-]+[^\W\d_]+)*\.?")
ACTS: Final = (
    ("New borrower", "plus", "borrowers:create", "borrowers.create"),
    ("Add existing by identifier", "plus", "lookup:add", "lookup.add"),
    ("Import records", "upload", "lookup:import_records", "lookup.import_records"),
    ("Your settings", "settings", "accounts:profile", "accounts.profile"),
)


@dataclass(frozen=True)
class Hit:
    """A record that matches."""

    record: Record
    borrower: Record | None
    words: Sequence[str]
    starts: Sequence[str]
    """What identifiers were to be, or to begin with."""
    is_best: bool = False

    @property
    def title(self) -> str:
        """The name, or what it is and how its identifier begins."""
        return self.record.label or f"{self.record.get_kind_display()} {self.record.uuid[:8]}"

    @cached_property
    def reason(self) -> str:
        """What matches, where the title does not show it."""
        if self._shows(fold(self.title)):
            return ""
        line = next(filter(self._shows, lines_of(self.record)), "")
        return line.title() if _NAME.fullmatch(line) else wording.phone(line) or ""

    @property
    def is_identified(self) -> bool:
        """Whether its identifier begins so."""
        return self.record.uuid.startswith(tuple(self.starts))

    def _shows(self, line: str) -> bool:
        """Whether a word stands there as the search counts it: a short one only where a word begins."""
        return any(form in f" {line}" for word in self.words for form in forms_of(word))

    @property
    def marks(self) -> list[str]:
        """What to mark in the title and in the reason; of a phone number all, however it was typed."""
        return [*self.words, *([self.reason] if self.reason.startswith("(") else [])]


@dataclass(frozen=True)
class Group:
    """The hits of one kind, best first: those of one page."""

    kind: Kind
    hits: Sequence[Hit]
    page: Page[int]

    @property
    def name(self) -> str:
        return PLURALS[self.kind]

    @property
    def icon(self) -> str:
        return ICONS[self.kind]

    @property
    def total(self) -> int:
        return self.page.paginator.count

    @property
    def total_words(self) -> str:
        """How many, as far as they were counted."""
        return f"{self.total:,}{'+' if self.total >= MOST else ''}"


def suggested(query: Query) -> list[Group]:
    """A few hits of each kind; the best of all is marked, it is what Enter opens."""
    found = ranked(_kinds(query), query, SUGGESTED)
    best = min(found, key=lambda kind: next(iter(found[kind].values())), default=None)
    return _groups(
        {kind: Paginator(list(keys), SUGGESTED).page(1) for kind, keys in found.items()}, query, best
    )


def results(query: Query, *, kind: str, page: str | None) -> list[Group]:
    """The hits of each kind, counted; of the chosen kind one page, of the others the first few."""
    found = ranked(_kinds(query), query, SHOWN, most=MOST)
    pages = {
        one: Paginator(list(ranks), PER_PAGE).get_page(page)
        if one == kind
        else Paginator(list(ranks), SHOWN).get_page(1)
        for one, ranks in found.items()
    }
    for one, shown in pages.items():
        if one == kind:  # Up to this page its matches have to be in order.
            best = list(ranked([one], query, shown.end_index()).get(one, ()))
            shown.object_list = best[shown.start_index() - 1 :]
    return _groups(pages, query)


def too_many(query: Query) -> str:
    """Why nothing of those whom the text finds is shown, where too many borrowers match."""
    theirs = [kind for kind in _kinds(query) if kind in OWNED]
    return of_borrowers(query, theirs)[1] if query.is_limited and theirs else ""


def _kinds(query: Query) -> Sequence[Kind]:
    return query.kinds if len(query.text) >= SHORTEST else ()


def _groups(pages: Mapping[Kind, Page[int]], query: Query, best: Kind | None = None) -> list[Group]:
    """The records of each kind's page and their borrowers, read for all kinds at once."""
    starts = (*query.starts, *query.uuids)
    stored = Record.objects.in_bulk([key for shown in pages.values() for key in shown])
    rows = {record.pk: (record, borrower) for record, borrower in with_borrowers(stored.values())}
    groups = []
    for kind, shown in pages.items():
        found = [rows[key] for key in shown if key in rows]
        marked = kind == best
        hits = [Hit(*row, query.words, starts, is_best=marked and row is found[0]) for row in found]
        groups.append(Group(kind, hits, shown))
    return groups


def places(query: Query, may: Callable[[str], bool]) -> list[Place]:
    """Pages and acts whose name has words that begin like those typed."""
    words = fold(query.text).split()
    areas = ((area.label, area.icon, area.url_name, area.act) for group in AREAS.values() for area in group)
    return [
        Place(label, icon, reverse(url_name))
        for label, icon, url_name, act in (*areas, *ACTS)
        if words and may(act) and all(_begins(word, label) for word in words)
    ][:SUGGESTED]


def _begins(word: str, label: str) -> bool:
    return any(one.startswith(word) for one in fold(label).split())


@dataclass(frozen=True)
class Unknown:
    """Pasted identifiers that this desk does not know, or has put away, and whose they might be."""

    uuids: Sequence[str]
    archived: Sequence[Record]
    owners: Sequence[Record]
    of: str
    """What was typed to find the borrower."""


def unknown(query: Query, of: str, *, told: MessageHits | None) -> Unknown | None:
    """What of the pasted identifiers cannot be shown as a hit; nothing if there is nothing of that sort."""
    stored = list(Record.objects.filter(kind__in=Kind, uuid__in=query.uuids))
    known = {record.uuid for record in stored} | ({str(told.asked.get("id"))} if told else set())
    missing = [uuid for uuid in query.uuids if uuid not in known]
    archived = [record for record in stored if record.archived_at]
    if not missing and not archived:
        return None
    return (
        Unknown(missing, archived, list(_owners(stored, of)), of)
        if missing
        else Unknown((), archived, (), "")
    )


def _owners(beside: Iterable[Record], of: str) -> Iterator[Record]:
    """The borrowers of what was pasted together, then those that are searched for."""
    keys = ranked([Kind.BORROWER], read(of), OWNERS).get(Kind.BORROWER, ()) if len(of) >= SHORTEST else ()
    pasted = {record.borrower_uuid for record in beside}
    yield from Record.objects.filter(kind=Kind.BORROWER, uuid__in=pasted, archived_at__isnull=True)
    stored = Record.objects.in_bulk(keys)
    yield from (stored[key] for key in keys if stored[key].uuid not in pasted)
