"""Finds records with the same email, phone or name: a warning while typing, a question before sending."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_

from portal.audit.models import WriteIntent
from portal.registry.models import Kind, Record
from portal.registry.records import with_borrowers
from portal.registry.search.find import filter_by_text
from portal.ui import wording

MAX_MATCHES = 20
MAX_SEARCHED = 200
CREATION = "borrowers.create_commercial"
# The values that make two creations similar. EIN and SSN are never stored.
IDENTITY_FIELDS = ("first_name", "email", "phone")


@dataclass(frozen=True)
class Match:
    """A record and the given values that it shares, in lower case and as on the record."""

    record: Record
    owner: Record | None
    shared: dict[str, str]

    @property
    def borrower(self) -> Record:
        """The record to open."""
        return self.owner or self.record

    @property
    def description(self) -> str:
        """Such as ``a key person of Tallgrass Farms LP``."""
        if self.record.kind == Kind.BORROWER:
            return f"borrower {self.record}"
        return f"a key person of {self.owner}" if self.owner else f"key person {self.record}"


def find_matches(values: Iterable[str]) -> list[Match]:
    """Borrowers and key people with one of these emails, ten-digit phones or legal names."""
    wanted = {value.casefold() for value in values if value}
    if not wanted:
        return []
    records = Record.objects.filter(kind__in=[Kind.BORROWER, Kind.KEY_PERSON], archived_at__isnull=True)
    found = reduce(or_, (filter_by_text(records, value) for value in sorted(wanted))).order_by(
        "kind", "label", "id"
    )
    matches = [
        Match(record, owner, {key: shown for key, shown in _values(record).items() if key in wanted})
        for record, owner in with_borrowers(found[:MAX_SEARCHED])
    ]
    return [match for match in matches if match.shared][:MAX_MATCHES]


def _values(record: Record) -> dict[str, str]:
    phone = record.phone.removeprefix("+1")
    values = {record.email.casefold(): record.email, phone: wording.phone(phone) or ""}
    return values | {record.label.casefold(): record.label} if record.kind == Kind.BORROWER else values


def open_creations(values: Iterable[str], *, except_for: str) -> list[tuple[WriteIntent, list[str]]]:
    """Creations with an unknown outcome that were sent with any of these values, and those values."""
    wanted = {value.casefold() for value in values if value}
    sent = WriteIntent.objects.filter(operation=CREATION, state__in=WriteIntent.OPEN)
    found = []
    for intent in sent.exclude(submit_id=except_for).order_by("-created_at")[:MAX_MATCHES]:
        body = intent.request_body or {}
        texts = [str(body.get(name)) for name in IDENTITY_FIELDS]
        if shared := [wording.phone(text) or text for text in texts if text.casefold() in wanted]:
            found.append((intent, shared))
    return found
