"""Entries for people: sentences with the changed fields, pages of entries, and an entry's neighbors.

Hides that a write's changes are stored with its attempt, while people read its outcome.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet

from portal.accounts.roles import ACTS
from portal.audit.models import Entry, PageView
from portal.registry.changes import FieldChange
from portal.registry.models import Kind, Record
from portal.registry.records import records_by_uuid

MAX_COUNTED = 10_000
"""Nobody pages further, and counting more would be the slowest part."""
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
    """One entry as a line of a list."""

    entry: Entry
    sentence: str
    changes: Sequence[FieldChange]
    borrower: Record | None
    """The borrower it is about, if on file."""


class EntryPages(Paginator):  # type: ignore[type-arg]  # Django's own cannot be subscripted
    """Pages of a table of the trail, counted up to :data:`MAX_COUNTED`."""

    object_list: QuerySet[Any]

    @cached_property
    def count(self) -> int:
        """The number of rows, at most :data:`MAX_COUNTED`."""
        return self.object_list.order_by()[:MAX_COUNTED].count()

    @property
    def words(self) -> str:
        """The count as shown."""
        return f"{self.count:,}{'+' if self.count >= MAX_COUNTED else ''}"


def entry_lines(entries: Iterable[Entry]) -> list[EntryLine]:
    """These entries as lines, with two queries for all of them."""
    rows = list(entries)
    outcomes = [entry.intent_id for entry in rows if entry.phase == Entry.Phase.OUTCOME]
    attempts = Entry.objects.filter(intent_id__in=outcomes, phase=Entry.Phase.ATTEMPT).order_by()
    attempted = dict(attempts.values_list("intent_id", "changes"))
    borrowers = records_by_uuid([Kind.BORROWER], (entry.borrower_uuid for entry in rows))
    return [
        EntryLine(
            entry,
            *_words(entry, entry.changes or attempted.get(entry.intent_id, {})),
            borrowers.get(entry.borrower_uuid),
        )
        for entry in rows
    ]


def stream_lines(entries: QuerySet[Entry]) -> Iterator[EntryLine]:
    """Every entry as a line, read in batches."""
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
    """An entry's sentence and its changes."""
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

_VERBS = {
    "borrowers.create_commercial": "created borrower",
    "borrowers.update": "changed the profile of",
    "borrowers.update_key_person": "changed key person",
    "borrowers.no_change": "saved without changes:",
    "applications.submit": "sent",
    "applications.open": "opened by ID",
    "applications.prefer": "changed the preferred offer of",
    "applications.follow": "checked the funding of",
    "applications.export": "exported applications:",
    "applications.export_offers": "exported the offers of",
    "lookup.record": "opened the record of",
    "lookup.add": "added",
    "lookup.correct": "corrected the record of",
    "lookup.archive": "archived",
    "lookup.restore": "restored",
    "lookup.upload": "uploaded",
    "lookup.import_records": "imported",
    "operations.forget_old": "deleted expired records",
    "operations.backup": "backed up the database to",
    "operations.restore": "restored the database from",
    "lookup.refresh_portfolio": "refreshed all accounts",
    "operations.cancel": "canceled the job:",
    "operations.support_bundle": "downloaded",
    "operations.first_day": "ran",
    "notes.add": "added a note to",
    "notes.unpin": "unpinned a note:",
    "notes.add_follow_up": "added a follow-up on",
    "notes.finish": "finished a follow-up:",
    "collections.log": "logged a contact about",
    "collections.promise": "logged a promise to pay on",
    "collections.withdraw": "withdrew a promise to pay on",
    "collections.assign": "changed the owner of",
    "collections.export": "exported the worklist:",
    "collections.export_returns": "exported returned payments:",
    "collections.print": "printed the worklist:",
    "portfolio.export": "exported the portfolio of",
    "portfolio.export_accounts": "exported the accounts of",
    "saved_views.save": "saved the view",
    "saved_views.delete": "deleted the view",
    "accounts.sign_in": "signed in",
    "accounts.sign_in_failed": "failed to sign in as",
    "accounts.sign_out": "signed out",
    "accounts.refused": "was not allowed to",
    "accounts.keep_number": "confirmed that nine digits aren’t an SSN or EIN",
    "accounts.profile": "changed their preferences",
    "accounts.staff_created": "created the account",
    "accounts.staff_deleted": "deleted the account",
    "accounts.staff_changed": "changed the account",
    "accounts.session_ended": "ended sessions of",
    "accounts.password_changed": "changed the password of",
    "accounts.password_link_requested": "asked for a password link for",
    "accounts.password_link_sent": "sent a password link to",
    "accounts.single_sign_on_connected": "connected single sign-on to",
    "accounts.single_sign_on_changed": "changed the single sign-on of",
    "accounts.single_sign_on_removed": "disconnected single sign-on from",
    "accounts.second_factor_added": "added a second factor to",
    "accounts.second_factor_changed": "changed a second factor of",
    "accounts.second_factor_removed": "removed a second factor of",
    "approvals.detail": "opened the change to",
    "approvals.ask": "requested approval of the change to",
    "approvals.approve": "approved the change to",
    "approvals.refuse": "rejected the change to",
    "approvals.withdraw": "withdrew the change to",
    "approvals.expire": "closed the expired change to",
    "approvals.send": "sent the approved change to",
    "borrowers.detail": "opened borrower",
    "borrowers.edit": "opened the form to change",
    "borrowers.export": "exported borrowers:",
    "loans.schedule": "exported the schedule of",
    "loans.export": "exported loans:",
    "lookup.export": "exported the rejected lines of",
    "credit_lines.pdf": "opened",
    "credit_lines.download": "downloaded",
    "credit_lines.export": "exported lines of credit:",
    "messaging.download": "downloaded message",
    "messaging.export": "exported messages:",
    "messaging.sync": "synced messages",
    "messaging.link": "linked the bank account of",
    "summaries.borrower": "opened the summary of",
    "summaries.print": "printed",
    "summaries.verify": "compared a file with document",
    "summaries.batch": "started printing",
    "summaries.download": "fetched",
    "home.snooze": "snoozed",
    "home.wake": "restored:",
    "repayments.export": "exported repayments:",
    "audit.resolve": "resolved the unknown outcome of",
    "audit.correct": "corrected the resolved outcome of",
    "audit.save_answer": "saved the answer of",
    "audit.discard_answer": "discarded the saved response to a request that isn’t in the database:",
    "audit.export": "exported the audit trail as",
    "audit.verify": "checked the whole audit trail",
    "audit.checkpoint": "signed the audit trail",
    "audit.accept": "accepted an audit trail that differs from its checkpoints",
    "audit.guard": "restored the database protection of the audit trail",
}
_VERBS_BY_ENDING = {
    **dict.fromkeys(["view", "detail", "preview"], "opened"),
    "index": "viewed",
    "suggest": "saw",
    "refresh": "refreshed",
}
_ATTEMPT_VERBS = {
    "borrowers.create_commercial": "started creating borrower",
    "borrowers.update": "started changing the profile of",
    "borrowers.update_key_person": "started changing key person",
    "applications.submit": "started sending",
}
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
    "rejected": "the service rejected",
    "not_sent": "nothing was sent",
    "unknown": "the outcome is unknown",
}


def sentence(entry: Entry, fields: Sequence[str] = ()) -> str:
    """What happened, without the actor's name: "changed phone and email of Northwind LLC"."""
    is_done = entry.phase == Entry.Phase.EVENT or entry.result == "confirmed"
    if fields and entry.action in _OF_FIELDS:
        verb = f"{'changed' if is_done else 'started changing'} {_join_fields(fields)} of"
    else:
        usual = _VERBS_BY_ENDING.get(entry.action.rpartition(".")[2], entry.action)
        verb = (_VERBS if is_done else _ATTEMPT_VERBS).get(entry.action, usual)
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
    return f"{text}: {ending}" if ending else text


def view_sentence(view: PageView) -> str:
    """What somebody opened: "opened borrower Northwind LLC"."""
    return sentence(Entry(action=view.page, subject_label=view.subject_label))


def name_in_sentence(name: str) -> str:
    """A record's name within a sentence: ``loan of $12,000.00``; names of borrowers and people stay as they are."""
    return name[:1].lower() + name[1:] if name.startswith(_COMMON_NAMES) else name


def field_words(name: str) -> str:
    """A field's name in words."""
    return _FIELDS.get(name, name.replace("_", " "))


def _join_fields(fields: Sequence[str]) -> str:
    words = [field_words(name) for name in fields[:_MAX_NAMED_FIELDS]]
    if len(fields) > _MAX_NAMED_FIELDS:
        words[-1] = f"{len(fields) - _MAX_NAMED_FIELDS + 1} more fields"
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
