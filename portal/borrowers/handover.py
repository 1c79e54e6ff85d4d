"""What is left to do after a borrower was onboarded: computed from what is known and from the audit trail (U15).

Hides how it is known that something was sent that the service never tells back: confirmed writes keep a masked body.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.text import capfirst

from portal.audit.models import WriteIntent
from portal.borrowers.duplicates import CREATION
from portal.registry import memory
from portal.registry.lists import known
from portal.registry.models import Kind, Record
from servicing import Application

# Of so many of the latest onboardings a list can tell which are incomplete.
LOOKED_AT = 500
# Of name, e-mail and phone so many are the same in two descriptions of one person.
LIKE = 2
# What the type of an individual is called; the interface names that of a business alone.
PERSONS = ("PERSON", "INDIVIDUAL")
SECRETS = {"ssn": "SSN", "dob": "date of birth"}


@dataclass(frozen=True)
class Task:
    """One line: done by somebody at a time, or open."""

    title: str
    done_at: datetime | None = None
    done_by: str = ""
    url_name: str = ""
    url_args: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """Where it is done."""
        return reverse(self.url_name, args=self.url_args) if self.url_name else ""


@dataclass(frozen=True)
class Sent:
    """The confirmed writes of one borrower, the latest first."""

    writes: Sequence[WriteIntent] = ()

    @classmethod
    def of(cls, borrower_uuids: Iterable[str]) -> "Mapping[str, Sent]":
        """Those of several borrowers, in one query; nothing of a borrower without any."""
        confirmed = WriteIntent.objects.filter(
            state=WriteIntent.State.CONFIRMED, operation__startswith="borrowers."
        )
        found: dict[str, list[WriteIntent]] = {uuid: [] for uuid in borrower_uuids}
        for write in confirmed.filter(borrower_uuid__in=found).order_by("-finished_at"):
            found[write.borrower_uuid].append(write)
        return {uuid: cls(writes) for uuid, writes in found.items()}

    def about(self, subject: Record, field: str) -> WriteIntent | None:
        """The latest write that held this field of the borrower, or of one of its key people."""
        return next((write for write in self.writes if _body(write, subject).get(field)), None)


def _body(write: WriteIntent, subject: Record) -> Mapping[str, Any]:
    """The part of a write's body that is about the subject."""
    body = write.request_body if isinstance(write.request_body, dict) else {}
    if write.subject_uuid == subject.uuid:
        return body
    if write.operation != CREATION:
        return {}
    people: list[Mapping[str, Any]] = body.get("key_people") or []
    best = max(people, key=lambda one: _likeness(one, subject), default={})
    return best if best and _likeness(best, subject) >= LIKE else {}


def _likeness(sent: Mapping[str, Any], person: Record) -> int:
    """How much somebody in the body of a creation is like a key person: no body holds the uuid that came of it."""
    names = (sent.get(part) for part in ("first_name", "middle_name", "last_name"))
    told = (" ".join(filter(None, names)), sent.get("email"), sent.get("phone"))
    return sum(
        one == other for one, other in zip(told, (person.label, person.email, person.phone), strict=True)
    )


def handover(
    record: Record, people: Sequence[Record], applications: Sequence[Record], sent: Sent | None = None
) -> list[Task]:
    """The asset report, SSN and date of birth of everybody, the first application and its consent."""
    sent = sent or Sent.of([record.uuid])[record.uuid]
    persons = people if people or record.product not in PERSONS else [record]
    return [
        _report(record, sent),
        *(task for person in persons for task in _secrets(record, person, sent)),
        *_application(record, applications),
    ]


def incomplete() -> list[str]:
    """The borrowers among the latest that were created here of whom something is left to do."""
    created = WriteIntent.objects.filter(operation=CREATION, state=WriteIntent.State.CONFIRMED)
    uuids = created.order_by("-finished_at").values_list("subject_uuid", flat=True)[:LOOKED_AT]
    return [record.uuid for record, tasks in left_of(uuids) if tasks]


def left_of(borrower_uuids: Iterable[str]) -> list[tuple[Record, list[Task]]]:
    """These borrowers with what is left to do, in as many questions as for one."""
    borrowers = list(known(Kind.BORROWER).filter(uuid__in=list(borrower_uuids)))
    uuids = [one.uuid for one in borrowers]
    has: dict[tuple[str, str], list[Record]] = defaultdict(list)
    kinds = [Kind.KEY_PERSON, Kind.APPLICATION]
    related = Record.objects.filter(borrower_uuid__in=uuids, kind__in=kinds, archived_at__isnull=True)
    for one in related.order_by("created_at", "id"):
        has[one.borrower_uuid, one.kind].append(one)
    sent = Sent.of(uuids)
    found = []
    for record in borrowers:
        people, applications = has[record.uuid, Kind.KEY_PERSON], has[record.uuid, Kind.APPLICATION]
        tasks = handover(record, people, applications, sent[record.uuid])
        found.append((record, [task for task in tasks if not task.done_at]))
    return found


def _report(record: Record, sent: Sent) -> Task:
    if write := sent.about(record, "asset_report_json_gzip"):
        return Task("Asset report sent", write.finished_at, write.actor_name)
    return Task("Asset report not sent", url_name="borrowers:edit", url_args=(record.uuid,))


def _secrets(record: Record, person: Record, sent: Sent) -> Iterator[Task]:
    """What was sent of somebody, a line each, and in one line what was not."""
    found = {field: sent.about(person, field) for field in SECRETS}
    for field, write in found.items():
        if write:
            title = capfirst(f"{SECRETS[field]} of {person} sent")
            yield Task(title, write.finished_at, write.actor_name)
    if missing := [words for field, words in SECRETS.items() if not found[field]]:
        is_own = person.kind == Kind.BORROWER
        name, args = ("edit", (record.uuid,)) if is_own else ("edit_person", (record.uuid, person.uuid))
        title = capfirst(f"{' and '.join(missing)} of {person} not sent")
        yield Task(title, url_name=f"borrowers:{name}", url_args=args)


def _application(record: Record, applications: Sequence[Record]) -> list[Task]:
    if not applications:
        return [Task("No application yet", url_name="applications:submit", url_args=(record.uuid,))]
    first = min(applications, key=lambda one: one.created_at)
    made = Task("First application made", first.answer_at or first.created_at, first.created_by)
    latest = max(applications, key=lambda one: one.created_at)
    told = memory.last(latest, Application)
    if told is None or told.credit_score_consent is None:
        return [made]
    if told.credit_score_consent:
        return [made, Task("Consent to a credit score given", latest.answer_at)]
    where = (record.uuid, latest.uuid)
    return [made, Task("Consent to a credit score not given", url_name="applications:detail", url_args=where)]
