"""The profile as it was sent, for a borrower whose creation got no answer, until an answer says more."""

from dataclasses import dataclass
from datetime import datetime

import servicing
from portal.audit.models import WriteIntent
from portal.borrowers.duplicates import CREATION
from portal.records.columns import full_name
from portal.records.models import Borrower
from servicing import KeyPerson, ServicingError, codec


@dataclass(frozen=True)
class SentProfile:
    """What was sent, when and by whom, and the request that sent it."""

    profile: servicing.Borrower
    write: WriteIntent

    @property
    def at(self) -> datetime:
        return self.write.created_at

    @property
    def people(self) -> list[tuple[str, KeyPerson]]:
        return [(full_name(person), person) for person in self.profile.key_people]


def profile_as_sent(record: Borrower) -> SentProfile | None:
    """The profile that created this borrower; None if an answer has it, or if it wasn't created from here."""
    created = WriteIntent.objects.filter(
        operation=CREATION, state=WriteIntent.State.CONFIRMED, subject_uuid=record.uuid
    )
    write = None if record.answer_at else created.first()
    if write is None or not isinstance(write.request_body, dict):
        return None
    people = [
        {"uuid": f"sent-{number}", **person}
        for number, person in enumerate(write.request_body.get("key_people") or (), 1)
    ]
    try:
        body = {**write.request_body, "uuid": record.uuid, "key_people": people}
        return SentProfile(codec.read(servicing.Borrower, body), write)
    except ServicingError:
        return None
