"""Search results: records by kind, messages, pages and actions, and possible owners of an unknown ID."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property, reduce
from itertools import chain
from operator import or_
from typing import Any

from django.apps import apps
from django.core.paginator import Page, Paginator
from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber
from django.urls import ResolverMatch, reverse
from django.utils.http import urlencode

from portal.core.areas import areas, help_pages, navigation
from portal.core.folding import fold
from portal.messaging.links import LinkedMessage, link_messages
from portal.messaging.models import Message
from portal.messaging.query import capped_count, matching_messages
from portal.notes.models import Note
from portal.records.figures import ACCOUNTS, days_of, is_account, old_copy_day
from portal.records.models import (
    LISTED,
    NAMED_KINDS,
    Account,
    Answered,
    Application,
    Borrower,
    KeyPerson,
    Kind,
    Repayment,
    Saved,
)
from portal.records.query import Query, parse_query
from portal.records.repayments import rank_repayments
from portal.records.rows import MODELS, active_records, records_by_key, records_of, with_borrowers
from portal.records.search import OWNED, Rank, forms_of, matching_owners, rank_matches
from portal.records.spelling import similar_names
from portal.records.texts import lines_of
from portal.ui import wording
from servicing.rules import US_STATES

# The least number of characters for a search.
MIN_CHARACTERS = 2
MIN_MESSAGE_CHARACTERS = 3
# Numbers of hits: counted, suggested for each kind, shown for each kind, and on a page of one kind.
MAX_COUNTED = 1_000
SUGGESTED = 5
SHOWN = 10
PER_PAGE = 25
MAX_OWNERS = 5
SHOWN_ACCOUNTS = 5

PLURALS = {
    Kind.BORROWER: "Borrowers",
    Kind.KEY_PERSON: "Key people",
    Kind.APPLICATION: "Applications",
    Kind.LOAN: "Loans",
    Kind.LINE: "Lines of credit",
    Kind.REPAYMENT: "Repayments",
}
ICONS = {
    Kind.BORROWER: "building-store",
    Kind.KEY_PERSON: "user",
    Kind.APPLICATION: "file-text",
    Kind.LOAN: "cash",
    Kind.LINE: "wallet",
    Kind.REPAYMENT: "arrows-exchange",
}


@dataclass(frozen=True)
class Destination:
    """A page or an action that a person may open."""

    label: str
    icon: str
    url: str


# A line of search text that is the name of a person or a place.
_NAME = re.compile(r"[^\W\d_]+(?:[ '.,-]+[^\W\d_]+)*\.?")


@dataclass(frozen=True)
class Hit:
    """A record that matches."""

    record: Saved
    borrower: Borrower | None
    words: Sequence[str]
    starts: Sequence[str]
    """The IDs, or beginnings of IDs, that were searched for."""
    day: date | None = None
    """The date that was searched for."""
    is_best: bool = False
    accounts: "Sequence[Hit]" = ()
    """The first loans and lines of a borrower, most past due first."""
    has_more_accounts: bool = False

    @property
    def days_past_due(self) -> int | None:
        return days_of(self.record) if isinstance(self.record, Account | Borrower) else None

    @property
    def is_person(self) -> bool:
        return isinstance(self.record, Borrower | KeyPerson)

    @property
    def is_past_due(self) -> bool:
        """Whether a loan, a line or a borrower is past due."""
        if isinstance(self.record, Borrower):
            return self.record.is_past_due
        return is_account(self.record) and self.record.is_past_due

    @property
    def old_copy_day(self) -> date | None:
        """The day of the copy of a loan or a line, unless that is today."""
        return old_copy_day(self.record) if is_account(self.record) else None

    @property
    def title(self) -> str:
        """The name, else the kind and the beginning of the ID."""
        return self.name or f"{self.record.get_kind_display()} {self.record.uuid[:8]}"

    @property
    def name(self) -> str:
        return "" if isinstance(self.record, Repayment) else self.record.label

    @property
    def product(self) -> str:
        match self.record:
            case Application() | Repayment():
                return self.record.product
            case Account():
                return self.record.product
            case _:
                return ""

    @property
    def status(self) -> str:
        """The status, or the decision on an application; people have none."""
        match self.record:
            case Application():
                return self.record.decision
            case Account() | Repayment():
                return self.record.status
            case _:
                return ""

    @property
    def mentions(self) -> str:
        """The text with the IDs of others in it."""
        if isinstance(self.record, Repayment):
            return f"{self.record.bank_account} {self.record.ach_id} {self.record.ach_batch_id}"
        return self.record.search_text

    @cached_property
    def reason(self) -> str:
        """The match, if the title does not show it."""
        if isinstance(self.record, Repayment):
            return f"Effective {wording.day(self.day)}" if self.day == self.record.effective_on else ""
        if self.day and isinstance(self.record, Account) and self.day == self.record.next_due_on:
            return f"Due {wording.day(self.day)}"
        if self._shows(fold(self.title)):
            return ""
        line = next(filter(self._shows, lines_of(self.record.search_text)), "")
        if line.upper() in US_STATES:
            return line.upper()
        return line.title() if _NAME.fullmatch(line) else wording.phone(line) or ""

    @property
    def icon(self) -> str:
        return ICONS[Kind(self.record.kind)]

    @property
    def place(self) -> str:
        """A borrower's city and state, or a key person's borrower."""
        if isinstance(self.record, Borrower):
            return ", ".join(filter(None, (self.record.city, self.record.state)))
        return f"Key person of {self.borrower or 'an unknown borrower'}"

    @property
    def is_identified(self) -> bool:
        return self.record.uuid.startswith(tuple(self.starts))

    def _shows(self, line: str) -> bool:
        """Whether a line has a word as the search counts it: short ones match only at the beginning of a word."""
        return any(form in f"\n{line}" for word in self.words for form in forms_of(word))

    @property
    def marks(self) -> list[str]:
        """The text to highlight; for a phone number the whole number, however it was typed."""
        return [*self.words, *([self.reason] if self.reason.startswith("(") else [])]


@dataclass(frozen=True)
class HitGroup:
    """One page of the hits of one kind, best first."""

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
        """The number of hits in words, as far as they were counted."""
        return f"{self.total:,}{'+' if self.total >= MAX_COUNTED else ''}"


def suggest(query: Query) -> list[HitGroup]:
    """Find a few hits of each kind, and mark the best one, which Enter opens."""
    found = _ranked(_kinds(query), query, SUGGESTED)
    best = min(found, key=lambda kind: next(iter(found[kind].values())), default=None)
    pages = {kind: Paginator(list(keys), SUGGESTED).page(1) for kind, keys in found.items()}
    borrowers = len(found.get(Kind.BORROWER, ()))
    return _groups(pages, query, best, most_accounts=SUGGESTED // max(borrowers, 1))


def find_results(query: Query, *, kind: str, page: str | None) -> list[HitGroup]:
    """Find and count the hits of each kind: a page of the chosen kind, the first few of all others."""
    found = _ranked(_kinds(query), query, MAX_COUNTED)
    pages = {
        one: Paginator(list(ranks), PER_PAGE).get_page(page)
        if one == kind
        else Paginator(list(ranks), SHOWN).page(1)
        for one, ranks in found.items()
    }
    return _groups(pages, query)


def suggest_names(query: Query) -> list[Hit]:
    """Find borrowers and key people with a name similar to a mistyped one."""
    return [Hit(record, borrower, (), ()) for record, borrower in with_borrowers(similar_names(query))]


def limit_problem(query: Query) -> str:
    """A sentence if accounts of matching borrowers are left out because too many borrowers match."""
    owned = [kind for kind in _kinds(query) if kind in (*OWNED, Kind.REPAYMENT)]
    return matching_owners(query)[1] if query.is_limited and owned else ""


def _kinds(query: Query) -> Sequence[Kind]:
    return query.kinds if len(query.text) >= MIN_CHARACTERS else ()


def _ranked(kinds: Sequence[Kind], query: Query, limit: int) -> dict[Kind, dict[int, Rank]]:
    """The keys of each kind's best matches with their ranks, best first."""
    found = rank_matches(kinds, query, limit)
    repayments = rank_repayments(query, limit) if Kind.REPAYMENT in kinds else {}
    return found | ({Kind.REPAYMENT: repayments} if repayments else {})


def _groups(
    pages: Mapping[Kind, Page[int]],
    query: Query,
    best: Kind | None = None,
    most_accounts: int = SHOWN_ACCOUNTS,
) -> list[HitGroup]:
    """Read the records of each kind's page with their borrowers, all kinds at once, and the accounts of borrowers."""
    starts = (*query.starts, *query.uuids)
    recorded = [key for kind, shown in pages.items() if kind not in MODELS for key in shown]
    stored: list[Saved] = [*Account.objects.filter(pk__in=recorded)]
    for kind in pages.keys() & MODELS.keys():
        stored += records_of(kind).filter(pk__in=list(pages[kind]))
    rows = {(one.kind, one.pk): (one, borrower) for one, borrower in with_borrowers(stored)}
    # With operators, accounts that match are hits themselves.
    borrowers = [] if query.conditions else [one for one in stored if isinstance(one, Borrower)]
    owned = _first_accounts(borrowers, most_accounts)
    groups = []
    for kind, shown in pages.items():
        hits = [Hit(*rows[kind, key], query.words, starts, query.day) for key in shown if (kind, key) in rows]
        if kind == Kind.BORROWER:
            hits = [
                replace(
                    hit, accounts=accounts[:most_accounts], has_more_accounts=len(accounts) > most_accounts
                )
                for hit in hits
                for accounts in [owned.get(hit.record.uuid, [])]
            ]
        if kind == best and hits:
            hits[0] = replace(hits[0], is_best=True)
        groups.append(HitGroup(kind, hits, shown))
    return groups


def _first_accounts(borrowers: Sequence[Borrower], limit: int) -> dict[str, list[Hit]]:
    """The first loans and lines of each borrower by its ID, most past due first, and one more than the limit."""
    if not borrowers:
        return {}
    worst_first = (F("past_due_rank").desc(nulls_last=True), F("pk").desc())
    numbered = Account.objects.filter(
        LISTED, kind__in=ACCOUNTS, borrower_uuid__in=[one.uuid for one in borrowers]
    ).annotate(number=Window(RowNumber(), partition_by="borrower_uuid", order_by=worst_first))
    owned: dict[str, list[Hit]] = {}
    for one in numbered.filter(number__lte=limit + 1).order_by("number"):
        owned.setdefault(one.borrower_uuid, []).append(Hit(one, None, (), ()))
    return owned


def find_destinations(
    query: Query, may: Callable[[str], bool], page: ResolverMatch | None
) -> list[Destination]:
    """Find pages and actions, first those of this page, whose names have words that begin with the typed ones."""
    words = fold(query.text).split()
    actions = [action for area in areas() for action in area.actions if may(action.act)]
    pages = [Destination(one.label, one.icon, reverse(one.url_name)) for one in navigation() if may(one.act)]
    pages += [Destination(one.label, one.icon, reverse(one.url_name)) for one in actions if not one.on_page]
    if page:
        pages[:0] = [
            Destination(one.label, one.icon, reverse(one.url_name, kwargs=page.kwargs))
            for one in actions
            if one.on_page == page.view_name
        ]
    pages += [
        Destination(f"Help: {one.title}", "help-circle", reverse("home:help:page", args=[one.address]))
        for one in help_pages().values()
    ]
    return [
        page
        for page in pages
        if words and all(any(part.startswith(word) for part in fold(page.label).split()) for word in words)
    ][:SUGGESTED]


# --- Messages ---


@dataclass(frozen=True)
class MessageHits:
    """The newest matching messages, and the address of all of them."""

    asked: Mapping[str, Any]
    rows: Sequence[LinkedMessage]

    @cached_property
    def total(self) -> int:
        return capped_count(matching_messages(self.asked))

    @property
    def url(self) -> str:
        """The address of the message list with the same filters."""
        return f"{reverse('messaging:index')}?{urlencode(self.asked)}"


def find_messages(query: Query, limit: int) -> MessageHits | None:
    """Find the newest messages; ``None`` if none matches or the query is only about records."""
    asked = _message_filters(query)
    found = list(matching_messages(asked).listed()[:limit]) if asked else []
    return MessageHits(asked, link_messages(found)) if found else None


def other_messages_url(query: Query) -> str:
    """The address of the messages with the query's text, of which only the newest days are searched; or empty."""
    asked = _message_filters(query)
    return MessageHits(asked, ()).url if asked.get("q") else ""


def _message_filters(query: Query) -> dict[str, Any]:
    if query.conditions or query.is_limited:
        return {}
    if query.uuids:
        return {"id": query.uuids[0]}
    if query.amount is not None:
        return {"least": query.amount, "most": query.amount}
    if query.day:
        return {"start_date": query.day, "end_date": query.day}
    if len(query.alternatives) != 1 and not query.read_as:
        return {}
    words = next(iter(query.alternatives), ())
    if not words or any(len(term) < MIN_MESSAGE_CHARACTERS or '"' in term for term in words):
        return {}
    # The list reads a quoted text as one word, and a text that begins with a brace as JSON.
    return {"q": " ".join(f'"{term}"' if " " in term or term.startswith("{") else term for term in words)}


# --- Notes and contacts ---


@dataclass(frozen=True)
class NoteHit:
    """A note, or what a contact was about, that matches, and the record or message it is about."""

    text: str
    author: str
    at: datetime
    subject: Saved | Message


def find_notes(query: Query, limit: int) -> list[NoteHit]:
    """Find the newest notes and contacts that contain all words; none if the query is only about records."""
    if query.conditions or query.is_limited or len(query.text) < MIN_MESSAGE_CHARACTERS:
        return []
    # Of marks alone nothing is left, which every text contains.
    wanted = [words for words in (*query.alternatives, (fold(query.text),)) if all(words)]
    if not wanted:
        return []
    matches = reduce(or_, (Q(*(Q(folded_text__contains=word) for word in words)) for words in wanted))
    notes = list(Note.objects.filter(matches).order_by("-pk")[:limit])
    # Areas don't import each other's models.
    contacts = list(apps.get_model("collections", "Contact").objects.filter(matches).order_by("-pk")[:limit])
    subjects = _subjects_of(notes, contacts)
    found = [
        *(
            NoteHit(one.text, one.author_name, one.created_at, subjects[key])
            for one in notes
            if (key := one.subject_uuid) in subjects
        ),
        *(
            NoteHit(one.note or one.next_action, one.author_name, one.at, subjects[key])
            for one in contacts
            if (key := one.account_uuid or one.borrower_uuid) in subjects
        ),
    ]
    return sorted(found, key=lambda hit: hit.at, reverse=True)[:limit]


def _subjects_of(notes: Sequence[Note], contacts: Sequence[Any]) -> dict[str, Saved | Message]:
    pairs = [(one.subject_kind, one.subject_uuid) for one in notes]
    pairs += [(one.account_kind or Kind.BORROWER, one.account_uuid or one.borrower_uuid) for one in contacts]
    records = chain.from_iterable(records_by_key(pairs))
    subjects: dict[str, Saved | Message] = {record.uuid: record for record in records}
    if unknown := {uuid for _, uuid in pairs} - subjects.keys():
        subjects |= {message.uuid: message for message in Message.objects.filter(uuid__in=unknown)}
    return subjects


# --- Unknown IDs ---


@dataclass(frozen=True)
class UnknownIds:
    """Pasted IDs that are archived or not on file, and borrowers that may own them."""

    uuids: Sequence[str]
    archived: Sequence[Answered]
    owners: Sequence[Borrower]
    of: str
    """The search for the borrower."""


def find_unknown_ids(
    query: Query, of: str, *, hits: MessageHits | None, groups: Iterable[HitGroup]
) -> UnknownIds | None:
    """Find the pasted IDs that no hit shows; ``None`` if there are none."""
    keys = [(kind, uuid) for kind in NAMED_KINDS for uuid in query.uuids]
    stored: list[Answered] = [*chain.from_iterable(records_by_key(keys))]
    shown = [hit for group in groups for hit in group.hits]
    known = {one.uuid for one in (*stored, *(hit.record for hit in shown))}
    known |= {str(hits.asked.get("id"))} if hits else set()
    mentioned = [hit.mentions for hit in shown]
    missing = [
        uuid
        for uuid in query.uuids
        if uuid not in known and not any(fold(uuid) in text for text in mentioned)
    ]
    archived = [record for record in stored if record.archived_at]
    if not missing and not archived:
        return None
    return UnknownIds(missing, archived, list(_possible_owners(stored, of)) if missing else (), of)


def _possible_owners(pasted_records: Iterable[Answered], of: str) -> Iterator[Borrower]:
    """The borrowers of records pasted with the ID, then those that match the search."""
    pasted = {record.borrower_uuid for record in pasted_records}
    yield from active_records(Kind.BORROWER).filter(uuid__in=pasted)
    if len(of) >= MIN_CHARACTERS:
        keys = rank_matches([Kind.BORROWER], parse_query(of), MAX_OWNERS).get(Kind.BORROWER, ())
        stored = Borrower.objects.in_bulk(keys)
        yield from (stored[key] for key in keys if stored[key].uuid not in pasted)
