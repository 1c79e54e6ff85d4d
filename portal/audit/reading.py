"""Entries for people: sentences with the changed fields, pages of entries, and an entry's neighbors.

Hides that a write's changes are stored with its attempt, while people read its outcome.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from django.db.models import Q, QuerySet

from portal.accounts.roles import ACTS
from portal.audit.models import Entry, PageView
from portal.core.areas import areas
from portal.records.changes import FieldChange
from portal.records.models import Borrower
from portal.records.rows import borrowers_by_uuid

BATCH = 500


# Until 2.0 a page view was an entry with one of these actions.
VIEWS = Q(result="", action__in=[
    "applications.detail", "applications.index", "applications.view", "approvals.detail", "approvals.index",
    "audit.index", "audit.view", "borrowers.detail", "borrowers.edit", "borrowers.index", "collections.index",
    "collections.view", "credit_lines.detail", "credit_lines.index", "credit_lines.pdf", "home.index", "home.view",
    "loans.detail", "loans.index", "lookup.index", "lookup.record", "lookup.suggest", "lookup.view",
    "messaging.detail", "messaging.index", "messaging.view", "notes.view", "operations.index", "repayments.detail",
    "repayments.index", "summaries.index", "summaries.preview", "summaries.view",
])  # fmt: skip


@dataclass(frozen=True)
class EntryLine:
    entry: Entry
    sentence: str
    changes: Sequence[FieldChange]
    borrower: Borrower | None
    """The borrower it is about, if on file."""


def entry_lines(entries: Iterable[Entry]) -> list[EntryLine]:
    """These entries as lines, with two queries for all of them."""
    rows = list(entries)
    outcomes = [entry.intent_id for entry in rows if entry.phase == Entry.Phase.OUTCOME]
    attempts = Entry.objects.filter(intent_id__in=outcomes, phase=Entry.Phase.ATTEMPT).order_by()
    attempted = dict(attempts.values_list("intent_id", "changes"))
    borrowers = borrowers_by_uuid(entry.borrower_uuid for entry in rows)
    return [
        EntryLine(
            entry,
            *_words(entry, entry.changes or attempted.get(entry.intent_id, {})),
            borrowers.get(entry.borrower_uuid),
        )
        for entry in rows
    ]


def stream_lines(entries: QuerySet[Entry]) -> Iterator[EntryLine]:
    remaining = entries.iterator(BATCH)
    while batch := list(islice(remaining, BATCH)):
        yield from entry_lines(batch)


def record_entries(kind: str, uuid: str) -> QuerySet[Entry]:
    """The entries about a record, and for a borrower about its accounts; of a finished write only the outcome."""
    named = {"borrower_uuid": uuid} if kind == "borrower" else {"subject_uuid": uuid}
    entries = Entry.objects.filter(**named).exclude(VIEWS)
    outcomes = entries.filter(phase=Entry.Phase.OUTCOME).order_by().values("intent_id")
    return entries.exclude(phase=Entry.Phase.ATTEMPT, intent_id__in=outcomes)


def adjacent_entries(entry: Entry) -> tuple[Entry | None, Entry | None]:
    """The entries about the same object before and after this one."""
    if not entry.subject_uuid:
        return None, None
    same = Entry.objects.filter(subject_uuid=entry.subject_uuid)
    return same.filter(pk__lt=entry.pk).first(), same.filter(pk__gt=entry.pk).order_by("pk").first()


def _words(entry: Entry, changes: dict[str, Any]) -> tuple[str, list[FieldChange]]:
    pairs = {
        name: pair if isinstance(pair, list) and len(pair) == 2 else ("", pair)
        for name, pair in changes.items()
    }
    fields = [FieldChange(field_words(name), _text(old), _text(new)) for name, (old, new) in pairs.items()]
    return sentence(entry, list(changes)), fields


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- Sentences ---

_VERBS_BY_ENDING = {
    **dict.fromkeys(["view", "detail", "preview"], "opened"),
    "index": "viewed",
    "suggest": "saw",
    "refresh": "refreshed",
}


@cache
def _verbs() -> tuple[dict[str, str], dict[str, str]]:
    """What was done, by act, and what was started."""
    verbs = {act: words for area in areas() for act, words in area.verbs.items()}
    return verbs, {act: words for area in areas() for act, words in area.attempts.items()}


# Actions whose sentence names the changed fields.
_OF_FIELDS = {"borrowers.update", "borrowers.update_key_person", "accounts.staff_changed", "lookup.correct"}
_FIELDS = {
    "first_name": "name",
    "email": "email",
    "dob": "date of birth",
    "ssn": "SSN",
    "credit_report_gzip": "credit report",
    "asset_report_gzip": "asset report",
    "borrower_uuid": "borrower",
}
_MAX_NAMED_FIELDS = 3
_COMMON_NAMES = ("Application for ", "Loan of ", "Line of ")
"""The beginnings of labels that aren't names, and so are lower case within a sentence."""
_OF_DOCUMENTS = {"summaries.print", "summaries.download"}
"""Actions whose subject is the title of a document."""
_OUTCOME_WORDS = {
    "confirmed": "",
    "rejected": "rejected by the service",
    "not_sent": "nothing was sent",
    "unknown": "outcome unknown",
}


def sentence(entry: Entry, fields: Sequence[str] = ()) -> str:
    """What happened, without the actor's name: "changed phone and email of Northwind LLC"."""
    is_done = entry.phase == Entry.Phase.EVENT or entry.result == "confirmed"
    if fields and entry.action in _OF_FIELDS:
        verb = f"{'changed' if is_done else 'started changing'} {_join_fields(fields)} of"
    else:
        usual = _VERBS_BY_ENDING.get(entry.action.rpartition(".")[2], entry.action)
        done, started = _verbs()
        verb = (done if is_done else started).get(entry.action, usual)
    subject = entry.subject_label
    if entry.action == "accounts.refused":
        subject = ACTS[subject].words if subject in ACTS else subject
    if entry.action.startswith("saved_views."):
        subject = f"“{subject}”"
    if entry.action in _OF_DOCUMENTS:
        subject = subject[:1].lower() + subject[1:]
    subject = name_in_sentence(subject)
    text = f"{verb} {subject}".strip()
    ending = _OUTCOME_WORDS.get(entry.result, entry.result) if entry.phase == Entry.Phase.OUTCOME else ""
    return f"{text}; {ending}" if ending else text


def view_sentence(view: PageView) -> str:
    """What somebody opened: "opened borrower Northwind LLC"."""
    return sentence(Entry(action=view.page, subject_label=view.subject_label))


def name_in_sentence(name: str) -> str:
    """A record's name within a sentence: ``loan of $12,000.00``; names of borrowers and people stay as they are."""
    return name[:1].lower() + name[1:] if name.startswith(_COMMON_NAMES) else name


def field_words(name: str) -> str:
    return _FIELDS.get(name, name.replace("_", " "))


def _join_fields(fields: Sequence[str]) -> str:
    words = [field_words(name) for name in fields[:_MAX_NAMED_FIELDS]]
    if len(fields) > _MAX_NAMED_FIELDS:
        words[-1] = f"{len(fields) - _MAX_NAMED_FIELDS + 1} more fields"
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
