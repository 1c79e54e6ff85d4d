"""What is left to do after a borrower was onboarded: computed from what is known and from the audit trail (U15)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from portal.audit.models import WriteIntent
from portal.registry.models import Record


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


def handover(record: Record, people: Sequence[Record], applications: Sequence[Record]) -> list[Task]:
    """The asset report, the SSN of each key person, the first application."""
    confirmed = WriteIntent.objects.filter(borrower_uuid=record.uuid, state=WriteIntent.State.CONFIRMED)
    bodies = [(intent, intent.request_body or {}) for intent in confirmed.order_by("finished_at")]
    return [
        _report(record, bodies),
        *(_ssn(record, person, bodies) for person in people),
        _application(record, applications),
    ]


Bodies = list[tuple[WriteIntent, dict[str, object]]]


def _report(record: Record, bodies: Bodies) -> Task:
    for intent, body in bodies:
        if body.get("asset_report_json_gzip"):
            return Task("Asset report sent", intent.finished_at, intent.actor_name)
    return Task("Asset report not sent", url_name="borrowers:edit", url_args=(record.uuid,))


def _ssn(record: Record, person: Record, bodies: Bodies) -> Task:
    for intent, body in bodies:
        if intent.subject_uuid == person.uuid and body.get("ssn"):
            return Task(f"SSN of {person} sent", intent.finished_at, intent.actor_name)
        if intent.operation == "borrowers.create_commercial" and _sent_at_creation(person, body):
            return Task(f"SSN of {person} sent", intent.finished_at, intent.actor_name)
    return Task(
        f"SSN of {person} not sent", url_name="borrowers:edit_person", url_args=(record.uuid, person.uuid)
    )


def _sent_at_creation(person: Record, body: dict[str, object]) -> bool:
    sent = body.get("key_people")
    people = sent if isinstance(sent, list) else []
    return any(
        one.get("ssn") and (one.get("email"), one.get("phone")) == (person.email, person.phone)
        for one in people
    )


def _application(record: Record, applications: Sequence[Record]) -> Task:
    if applications:
        first = min(applications, key=lambda one: one.created_at)
        return Task("First application made", first.answer_at or first.created_at, first.created_by)
    return Task("No application yet", url_name="applications:submit", url_args=(record.uuid,))
