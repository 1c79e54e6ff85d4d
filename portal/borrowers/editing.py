"""Changing a profile at the lending service: what differs, whether the copy moved meanwhile, and what came of it.

Hides that a version of the copy can be found again among the snapshots, how three versions are merged field by field,
how what was typed is carried from the form to the sending (signed, for one person and one record, for a quarter of an
hour, without SSN and reports), and how an answer is held against what was sent.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core import signing
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.approvals import steps as approvals
from portal.approvals.models import Approval
from portal.audit.intents import Write
from portal.audit.models import Entry, WriteIntent
from portal.borrowers.edit_forms import (
    LATER,
    BusinessProfile,
    IndividualProfile,
    KeyPersonProfile,
    ProfileForm,
    UnknownProfile,
)
from portal.borrowers.profiles import NAMES, Known, known_values, parts_of, text_of, values_of
from portal.borrowers.reports import Report
from portal.registry import memory
from portal.registry.models import Kind, Record
from servicing import Borrower, Client, KeyPerson, codec
from servicing.masking import masked_text

VALID_FOR = timedelta(minutes=15)
EXPLAINED = {*NAMES, "address", "ssn"}
"""What is not changed without a reason."""
NEVER_RETURNED = {"dob", *LATER}
STAND_IN: dict[str, Any] = {"ssn": "000000000", "credit_report": b"<r/>", "asset_report": b"{}"}
"""What the preview puts where the real thing is not given yet; it shows as masked."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Whose profile is changed: a borrower, or one of their key people."""

    record: Record
    borrower: Record

    @cached_property
    def copy(self) -> Borrower | KeyPerson | None:
        """The last known answer; None when only the identifier is known."""
        return self._read(self.record.answer) if self.record.answer else None

    @property
    def is_key_person(self) -> bool:
        return self.record.kind == Kind.KEY_PERSON

    @property
    def is_business(self) -> bool:
        """Whether it is known as one; then there is no SSN."""
        return isinstance(self.copy, Borrower) and self.copy.is_business

    @property
    def label(self) -> str:
        """What the write is called in the audit trail."""
        return f"{self.record} of {self.borrower}" if self.is_key_person else str(self.record)

    @property
    def url(self) -> str:
        """Where it is edited."""
        if self.is_key_person:
            return reverse("borrowers:edit_person", args=[self.borrower.uuid, self.record.uuid])
        return reverse("borrowers:edit", args=[self.record.uuid])

    @property
    def operation(self) -> str:
        return "borrowers.update_key_person" if self.is_key_person else "borrowers.update"

    # --- The copy and the form on it ---

    @property
    def version(self) -> str:
        return memory.version(self.record)

    @cached_property
    def known(self) -> Known:
        """The last known values."""
        return known_values(self.copy)

    def known_at(self, version: str) -> Known | None:
        """The values a form of that version was drawn from; None when that copy is not kept any more."""
        if version == self.version:
            return self.known
        if version == memory.version(Record()):
            return {}  # only the identifier was known
        if not re.fullmatch("[0-9a-f]{16}", version):
            return None
        kept = self.record.snapshots.filter(digest__startswith=version).first()
        return known_values(self._read(kept.answer)) if kept else None

    def _read(self, answer: str) -> Borrower | KeyPerson:
        return codec.decode(KeyPerson, answer) if self.is_key_person else codec.decode(Borrower, answer)

    def form(self, typed: Any = None, *, known: Known | None = None, version: str = "") -> ProfileForm:
        """The form, empty of anything typed or holding it."""
        if self.is_key_person:
            form: type[ProfileForm] = KeyPersonProfile
        elif self.copy is None:
            form = UnknownProfile
        else:
            form = BusinessProfile if self.is_business else IndividualProfile
        known = self.known if known is None else known
        return form(typed, known=known, version=version or self.version, url=self.url)

    def update(self, client: Client, changes: Mapping[str, Any]) -> Borrower | KeyPerson:
        """Send the changes."""
        if self.is_key_person:
            return client.borrowers.update_key_person(self.borrower.uuid, self.record.uuid, **changes)
        return client.borrowers.update(self.record.uuid, **changes)

    def unsettled(self) -> list[WriteIntent]:
        """The latest changes of which nobody knows whether they were made."""
        sent = WriteIntent.objects.filter(operation=self.operation, subject_uuid=self.record.uuid)
        return list(sent.filter(state__in=WriteIntent.OPEN)[:3])


# --- Somebody else changed it meanwhile ---


@dataclass(frozen=True)
class Clash:
    """One field that differs between the copy the form was drawn from, the copy now, and what was typed."""

    name: str
    label: str
    base: str
    theirs: str
    yours: str
    has_moved: bool
    """Whether theirs is not the base."""
    choice: str
    """``theirs`` or ``yours``; empty where a person must decide."""


@dataclass(frozen=True)
class Attempt:
    """What was typed, held against the copy as it is now. With clashes nothing goes on."""

    form: ProfileForm
    clashes: Sequence[Clash] = ()
    is_undecided: bool = False
    """Whether the clashes were seen and something was left open."""


def attempt(subject: Subject, posted: Mapping[str, Any]) -> Attempt:
    """Read what was posted; where the copy moved since then, ``choice-<field>`` says whose value counts."""
    version = posted.get("version") or ""
    base = subject.known_at(version)
    form = subject.form(posted, known=base, version=version)
    if version == subject.version or not form.is_valid():
        return Attempt(form)
    was_seen = posted.get("seen") == subject.version
    found = clashes(subject, form, base, posted if was_seen else {})
    if not any(clash.has_moved for clash in found):
        found = []  # what moved is nothing that can be changed here
    if found and not (was_seen and all(clash.choice for clash in found)):
        return Attempt(form, found, is_undecided=was_seen)
    typed = form.typed | {"version": subject.version}
    for clash in found:
        if clash.choice == "theirs":
            typed |= {part: subject.form().shown(part) for part in parts_of(clash.name)}
    merged = subject.form(typed)
    merged.is_valid()
    return Attempt(merged)


def clashes(
    subject: Subject, form: ProfileForm, base: Known | None, posted: Mapping[str, Any]
) -> list[Clash]:
    """The fields in which what was typed differs from the copy as it is now."""
    found = []
    for name in form.units:
        was = None if base is None else values_of(name, base)
        theirs, yours = values_of(name, subject.known), form.values_of(name)
        if theirs != yours:
            choice = posted.get(f"choice-{name}")
            if choice not in ("theirs", "yours"):
                choice = "yours" if theirs == was else "theirs" if yours == was else ""
            base_text, theirs_text, yours_text = (text_of(name, each) for each in (was or {}, theirs, yours))
            found.append(
                Clash(name, form.label_of(name), base_text, theirs_text, yours_text, was != theirs, choice)
            )
    return found


# --- Before sending ---


@dataclass(frozen=True)
class Change:
    """One row of the preview."""

    name: str
    label: str
    now: str
    new: str
    note: str = ""
    is_later: bool = False
    """Given with the sending, and so not shown yet."""


NOTES = {
    "address": "The whole address is sent: the service does not say whether a part is accepted.",
    "ssn": "Encrypted as it is sent, kept nowhere.",
    "credit_report": "Compressed as it is sent, kept nowhere.",
    "asset_report": "Compressed as it is sent, kept nowhere.",
}


def changed(form: ProfileForm) -> list[Change]:
    """What will be sent."""
    rows = [
        Change(name, form.label_of(name), form.now(name), form.new(name), note_on(name, value))
        for name, value in form.changes.items()
    ]
    later = [Change(name, LATER[name], "", "", NOTES[name], is_later=True) for name in form.later]
    return rows + later


def unchanged(form: ProfileForm) -> list[tuple[str, str]]:
    """What will not be sent, each with its last known value."""
    names = [name for name in form.units if name not in form.changes and name != "dob"]
    return [(form.label_of(name), form.now(name)) for name in names]


def note_on(name: str, value: Any) -> str:
    match name, value:
        case "phone", str():
            return f"Sent as {value}"
        case "dob", date():
            return "Sent as year, month, day; the service never returns it."
        case _, None:
            return "Emptied: sent as null."
    return NOTES.get(name, "")


def must_explain(form: ProfileForm) -> bool:
    """Whether a reason is needed."""
    return not EXPLAINED.isdisjoint([*form.changes, *form.later])


def preview(client: Client, subject: Subject, form: ProfileForm) -> dict[str, Any]:
    """The body that will be sent, masked as it will be recorded. ``InvalidInput`` if the library refuses it."""
    stand_in = {name: STAND_IN[name] for name in form.later}
    body: dict[str, Any] = client.preview(lambda it: subject.update(it, form.changes | stand_in)).body
    return body | {key: "[the chosen file]" for key in body if key.endswith("_gzip")}


def write(
    subject: Subject, form: ProfileForm, given: Mapping[str, Any], approval: Approval | None = None
) -> Write:
    """What staff know of the sending: each field before and after, of what is sensitive only that it was sent."""
    return Write(
        submit_id=str(given["submit_id"]),
        label=subject.label,
        reason=given["reason"],
        subject_kind=subject.record.kind,
        subject_uuid=subject.record.uuid,
        borrower_uuid=subject.borrower.uuid,
        changes=recorded(form, given),
        bind=approvals.tie(approval),
    )


def recorded(form: ProfileForm, given: Mapping[str, Any]) -> dict[str, list[str]]:
    """What the audit trail has of the changes."""
    changes = {}
    for name in (*form.changes, *form.later):
        sent = given.get(name)
        if name in NEVER_RETURNED:
            changes[name] = ["", f"sent, {sent.sizes}" if isinstance(sent, Report) else "sent"]
        else:
            changes[name] = [masked_text(form.now(name)), masked_text(form.new(name))]
    return changes


def send(client: Client, subject: Subject, form: ProfileForm, given: Mapping[str, Any]) -> None:
    """Send what changed and what was announced."""
    later = {name: given[name] for name in form.later}
    contents = {name: each.content if isinstance(each, Report) else each for name, each in later.items()}
    subject.update(client, form.changes | contents)


# --- A second person ---


def waits_for(form: ProfileForm) -> list[str]:
    """What of these changes is not sent before a second person approved, as people call it."""
    names = [*form.changes, *form.later]
    return [
        form.label_of(name)
        for name in names
        if ("legal_name" if name in NAMES else name) in settings.APPROVAL_ACTS
    ]


def meaning(form: ProfileForm) -> str:
    """One text for the same changes, however they were typed."""
    return json.dumps(
        [{name: str(value) for name, value in form.changes.items()}, form.later], sort_keys=True
    )


def asked(subject: Subject, form: ProfileForm, maker: User, reason: str) -> Approval:
    """These changes as they wait: without what is given with the sending."""
    approval = Approval(
        operation=subject.operation,
        subject_kind=subject.record.kind,
        subject_uuid=subject.record.uuid,
        borrower_uuid=subject.borrower.uuid,
        label=subject.label[:300],
        url=subject.url,
        version=subject.version,
        acts=waits_for(form),
        reason=reason,
        maker_id=maker.pk,
        maker_name=maker.display_name(),
    )
    rows = [(change.label, change.now, change.new) for change in changed(form)]
    approval.put({"typed": form.typed | {"reason": reason}, "rows": rows, "meaning": meaning(form)})
    return approval


# --- From the form to the sending ---


def sign(subject: Subject, user: User, typed: Mapping[str, str]) -> tuple[str, datetime]:
    """What was typed as one text that only this person can use, on this record; and until when."""
    return signing.dumps(dict(typed), salt=_salt(subject, user), compress=True), timezone.now() + VALID_FOR


def unsign(subject: Subject, user: User, text: str) -> tuple[dict[str, str], bool]:
    """What was typed, and whether that is too long ago. ``signing.BadSignature`` if this is no such text."""
    salt = _salt(subject, user)
    try:
        return signing.loads(text, salt=salt, max_age=VALID_FOR), False
    except signing.SignatureExpired:
        return signing.loads(text, salt=salt), True


def _salt(subject: Subject, user: User) -> str:
    return f"borrowers.edit:{user.pk}:{subject.record.kind}:{subject.record.uuid}"


# --- After sending ---


class Verdict(Enum):
    """What the answer says of a field that was sent."""

    CONFIRMED = "Confirmed"
    ALTERED = "Altered by the service"
    NOT_RETURNED = "Not returned"


@dataclass(frozen=True)
class Proof:
    """One field as it was sent and as it was answered."""

    label: str
    sent: str
    answered: str
    verdict: Verdict


def proof(subject: Subject, intent: WriteIntent) -> list[Proof]:
    """Each field of a confirmed write, held against the recorded answer."""
    entries = {entry.phase: entry for entry in Entry.objects.filter(intent_id=intent.pk)}
    answer = entries[Entry.Phase.OUTCOME].detail.get("answer")
    answer = answer if isinstance(answer, dict) else {}
    sent = intent.request_body or {}
    form = subject.form()
    order = [*form.units, *LATER, *sent]
    changes = entries[Entry.Phase.ATTEMPT].changes
    return [_proof(form, name, sent[name], answer, changes) for name in sorted(sent, key=order.index)]


def _proof(
    form: ProfileForm, name: str, sent: Any, answer: Mapping[str, Any], changes: Mapping[str, list[str]]
) -> Proof:
    field = name.removesuffix("_xml_gzip").removesuffix("_json_gzip")
    label = form.label_of(field)
    if field in NEVER_RETURNED:  # of a report its sizes were recorded, of the rest nothing
        sizes = changes.get(field, ["", ""])[1].removeprefix("sent").removeprefix(", ")
        return Proof(label, sizes, "", Verdict.NOT_RETURNED)
    before, after = _values(name, sent), _values(name, answer.get(name))
    told = (text_of(name, before), text_of(name, after))
    if name not in answer:
        return Proof(label, *told, Verdict.NOT_RETURNED)
    is_same = before == after if name == "address" else told[0] == told[1]
    return Proof(label, *told, Verdict.CONFIRMED if is_same else Verdict.ALTERED)


def _values(name: str, value: Any) -> dict[str, str]:
    """A value of a body by its parts, as text. A missing line of an address is an empty one."""
    parts = value if isinstance(value, dict) else {name: value}
    return {part: str(each) for part, each in parts.items() if each not in (None, "")}
