"""Who is known here already under the same e-mail, phone or name. A warning at first, a question before sending."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_

from portal.audit.models import WriteIntent
from portal.registry.lists import with_borrowers
from portal.registry.models import Kind, Record
from portal.registry.search import matching
from portal.ui import wording

LIMIT = 20
CREATION = "borrowers.create_commercial"
# What a creation is told by: EIN and SSN are kept nowhere.
IDENTITY = ("first_name", "email", "phone")


@dataclass(frozen=True)
class Match:
    """A known record, and which of the given values it shares: in small letters, and as it has them."""

    record: Record
    owner: Record | None
    shared: dict[str, str]

    @property
    def borrower(self) -> Record:
        """The record to open."""
        return self.owner or self.record

    @property
    def who(self) -> str:
        """For instance ``a key person of Tallgrass Farms LP``."""
        if self.record.kind == Kind.BORROWER:
            return f"borrower {self.record}"
        return f"a key person of {self.owner}" if self.owner else f"key person {self.record}"


def known_here(values: Iterable[str]) -> list[Match]:
    """Borrowers and key people that have one of these e-mail addresses, ten-digit phones or legal names."""
    wanted = {value.casefold() for value in values if value}
    if not wanted:
        return []
    kept = Record.objects.filter(kind__in=[Kind.BORROWER, Kind.KEY_PERSON], archived_at__isnull=True)
    found = reduce(or_, (matching(kept, value) for value in sorted(wanted))).order_by("kind", "label", "id")
    matches = [
        Match(record, owner, {key: shown for key, shown in _values(record).items() if key in wanted})
        for record, owner in with_borrowers(found[:200])
    ]
    return [match for match in matches if match.shared][:LIMIT]


@dataclass(frozen=True)
class OpenCreation:
    """A creation whose outcome nobody knows yet, and which of the given values it was sent with."""

    intent: WriteIntent
    shared: list[str]


def open_creations(values: Iterable[str], *, besides: str) -> list[OpenCreation]:
    """Those that were sent with one of these values; not the one under the submit id ``besides``."""
    wanted = {value.casefold() for value in values if value}
    sent = WriteIntent.objects.filter(operation=CREATION, state__in=WriteIntent.OPEN)
    found = []
    for intent in sent.exclude(submit_id=besides).order_by("-created_at")[:LIMIT]:
        body = intent.request_body or {}
        told = {str(body.get(name)).casefold(): str(body.get(name)) for name in IDENTITY}
        if shared := [shown for key, shown in told.items() if key in wanted]:
            found.append(OpenCreation(intent, [wording.phone(one) or one for one in shared]))
    return found


def _values(record: Record) -> dict[str, str]:
    phone = record.phone.removeprefix("+1")
    values = {record.email.casefold(): record.email, phone: wording.phone(phone) or ""}
    return values | {record.label.casefold(): record.label} if record.kind == Kind.BORROWER else values
