"""The onboarding checklist: a borrower's open tasks, computed from its records and confirmed writes.

Hides how the portal knows that something was sent that the service never returns: confirmed writes have a masked body.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

import servicing
from portal.audit.models import WriteIntent
from portal.borrowers.duplicates import CREATION
from portal.records import store
from portal.records.models import LISTED, Application, Borrower, KeyPerson, Kind

# The list's filter by open checklists covers this many of the latest onboardings.
MAX_ONBOARDINGS = 500
# This many of name, email and phone must be equal for two descriptions to be the same person.
MIN_EQUAL_DETAILS = 2
# Types of an individual; the interface documents only the type of a business.
INDIVIDUAL_TYPES = ("PERSON", "INDIVIDUAL")
PERSON_SECRETS = {"ssn": "SSN", "dob": "date of birth"}
"""Data about a person that the service never returns."""


@dataclass(frozen=True)
class Task:
    """One line of the checklist, open or done (by whom and when)."""

    title: str
    done_at: datetime | None = None
    done_by: str = ""
    url: str = ""
    """The page to do it on."""
    verb: str = ""
    """What the link to that page says."""


Writes = Sequence[WriteIntent]
"""The confirmed writes of one borrower, the latest first."""


def confirmed_writes(borrower_uuids: Iterable[str]) -> Mapping[str, Writes]:
    """The confirmed writes of several borrowers, in one query; empty for a borrower without any."""
    confirmed = WriteIntent.objects.filter(
        state=WriteIntent.State.CONFIRMED, operation__startswith="borrowers."
    )
    found: dict[str, list[WriteIntent]] = {uuid: [] for uuid in borrower_uuids}
    for write in confirmed.filter(borrower_uuid__in=found).order_by("-finished_at"):
        found[write.borrower_uuid].append(write)
    return found


def latest_secrets(writes: Writes, person: Borrower | KeyPerson) -> dict[str, WriteIntent | None]:
    return {field: _latest_with(writes, person, field) for field in PERSON_SECRETS}


def _latest_with(writes: Writes, subject: Borrower | KeyPerson, field: str) -> WriteIntent | None:
    return next((write for write in writes if _body_about(write, subject).get(field)), None)


def _body_about(write: WriteIntent, subject: Borrower | KeyPerson) -> Mapping[str, Any]:
    body = write.request_body if isinstance(write.request_body, dict) else {}
    if write.subject_uuid == subject.uuid:
        return body
    if write.operation != CREATION:
        return {}
    people: list[Mapping[str, Any]] = body.get("key_people") or []
    best = max(people, key=lambda sent: _match_score(sent, subject), default={})
    return best if best and _match_score(best, subject) >= MIN_EQUAL_DETAILS else {}


def _match_score(sent: Mapping[str, Any], person: Borrower | KeyPerson) -> int:
    """The number of details that a person in a creation's body shares with a key person. The body has no uuid."""
    names = (sent.get(part) for part in ("first_name", "middle_name", "last_name"))
    details = (" ".join(filter(None, names)), sent.get("email"), sent.get("phone"))
    known_details = (person.name, person.email, person.phone)
    return sum(one == other for one, other in zip(details, known_details, strict=True))


def onboarding_checklist(
    record: Borrower, people: Sequence[KeyPerson], applications: Sequence[Application], writes: Writes
) -> list[Task]:
    """The tasks: asset report, everyone's SSN and date of birth, the first application and its consent.

    Empty unless the borrower was onboarded here, because what was sent about others is unknown.
    """
    if not any(write.operation == CREATION for write in writes):
        return []
    persons: Sequence[Borrower | KeyPerson] = (
        people if people or record.type not in INDIVIDUAL_TYPES else [record]
    )
    return [
        _report_task(record, writes),
        *(_secret_task(record, person, writes) for person in persons),
        *_application_tasks(record, applications),
    ]


def incomplete_borrowers() -> list[str]:
    """The latest borrowers onboarded here that have open tasks."""
    created = WriteIntent.objects.filter(operation=CREATION, state=WriteIntent.State.CONFIRMED)
    uuids = created.order_by("-finished_at").values_list("subject_uuid", flat=True)[:MAX_ONBOARDINGS]
    return [record.uuid for record, tasks in open_tasks(uuids) if tasks]


def open_tasks(borrower_uuids: Iterable[str]) -> list[tuple[Borrower, list[Task]]]:
    """The open tasks of these borrowers, in as many queries as for one."""
    borrowers = list(Borrower.objects.filter(LISTED, uuid__in=list(borrower_uuids)))
    uuids = [one.uuid for one in borrowers]
    applications: dict[str, list[Application]] = defaultdict(list)
    found_applications = Application.objects.filter(LISTED, borrower_uuid__in=uuids)
    for one in found_applications.select_related("answer").order_by("created_at", "id"):
        applications[one.borrower_uuid].append(one)
    people: dict[str, list[KeyPerson]] = defaultdict(list)
    for person in KeyPerson.objects.filter(LISTED, borrower_uuid__in=uuids).order_by("created_at", "id"):
        people[person.borrower_uuid].append(person)
    writes = confirmed_writes(uuids)
    found = []
    for record in borrowers:
        uuid = record.uuid
        tasks = onboarding_checklist(record, people[uuid], applications[uuid], writes[uuid])
        found.append((record, [task for task in tasks if not task.done_at]))
    return found


def applied_at(record: Application) -> datetime:
    """When an application was created: by the service's clock if known, else by ours."""
    answer = store.last_answer(record, servicing.Application)
    return (answer and answer.created_at and answer.created_at.at) or record.created_at


def _report_task(record: Borrower, writes: Writes) -> Task:
    if write := _latest_with(writes, record, "asset_report_json_gzip"):
        return Task("Asset report sent", write.finished_at, write.actor_name)
    return Task("No asset report", url=reverse("borrowers:edit", args=[record.uuid]), verb="Send")


def _secret_task(record: Borrower, person: Borrower | KeyPerson, writes: Writes) -> Task:
    """The task to send a person's secrets, done once all of them were sent."""
    found = latest_secrets(writes, person)
    if missing := [words for field, words in PERSON_SECRETS.items() if not found[field]]:
        title = f"No {' or '.join(missing)} of {person} on file"
        if person.kind == Kind.BORROWER:
            return Task(title, url=reverse("borrowers:edit", args=[person.uuid]), verb="Send")
        return Task(title, url=reverse("borrowers:edit_person", args=[record.uuid, person.uuid]), verb="Send")
    last = next(write for write in writes if write in found.values())
    title = f"{' and '.join(PERSON_SECRETS.values())} of {person} sent"
    return Task(title, last.finished_at, last.actor_name)


def _application_tasks(record: Borrower, applications: Sequence[Application]) -> list[Task]:
    if not applications:
        return [
            Task("No application yet", url=reverse("applications:submit", args=[record.uuid]), verb="Start")
        ]
    first = min(applications, key=applied_at)
    submitted = Task("First application sent", applied_at(first), first.created_by)
    latest = max(applications, key=applied_at)
    answer = store.last_answer(latest, servicing.Application)
    if answer is None or answer.credit_score_consent is None:
        return [submitted]
    if answer.credit_score_consent:
        return [submitted, Task("Credit-check consent given", latest.answer_at)]
    url = reverse("applications:detail", args=[record.uuid, latest.uuid])
    return [submitted, Task("No credit-check consent", url=url, verb="Open")]
