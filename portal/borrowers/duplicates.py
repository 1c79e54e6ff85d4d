"""Finds records with the same email, phone or name: a warning while typing, a question before sending.

Names are compared folded, emails and phones as they are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet

from portal.audit.models import WriteIntent
from portal.core.folding import folded_key
from portal.records.models import LISTED, Borrower, KeyPerson, Kind
from portal.records.rows import with_borrowers
from portal.records.search import find_by_text
from portal.ui import wording

MAX_MATCHES = 20
MAX_SEARCHED = 200
CREATION = "borrowers.create_commercial"
# The values that make two creations similar. EIN and SSN are never stored.
IDENTITY_FIELDS = ("first_name", "email", "phone")


@dataclass(frozen=True)
class Match:
    """A record and the given values that it shares, in lower case and as on the record."""

    record: Borrower | KeyPerson
    owner: Borrower | None
    shared: dict[str, str]

    @property
    def borrower(self) -> Borrower | KeyPerson:
        return self.owner or self.record

    @property
    def description(self) -> str:
        """Such as ``a key person of Tallgrass Farms LP``."""
        if self.record.kind == Kind.BORROWER:
            return f"borrower {self.record}"
        return f"a key person of {self.owner}" if self.owner else f"key person {self.record}"


def find_matches(values: Iterable[str]) -> list[Match]:
    """Borrowers and key people with one of these emails, ten-digit phones or legal names."""
    wanted = {value.casefold(): value for value in values if value}
    if not wanted:
        return []
    names = [folded_key(value) for value in wanted.values()]
    same_name = Borrower.objects.filter(folded_name__in=names)
    contacts = sorted(key for key in wanted if "@" in key or key.isdecimal())
    borrowers = Borrower.objects.filter(
        _in_any([same_name, *(find_by_text(Kind.BORROWER, one) for one in contacts)]), LISTED
    )
    people = KeyPerson.objects.filter(_in_any(find_by_text(Kind.KEY_PERSON, one) for one in contacts), LISTED)
    records: list[Borrower | KeyPerson] = [*borrowers.order_by("name", "id")[:MAX_SEARCHED]]
    records += people.order_by("name", "id")[:MAX_SEARCHED]
    found = with_borrowers(records[:MAX_SEARCHED])
    matches = [Match(record, owner, _shared(record, wanted)) for record, owner in found]
    return [match for match in matches if match.shared][:MAX_MATCHES]


def _in_any(found: Iterable[QuerySet[Any]]) -> Q:
    """The condition that a record is in any of these queries."""
    return reduce(or_, (Q(pk__in=each.values("pk")) for each in found), Q(pk__in=[]))


def _shared(record: Borrower | KeyPerson, wanted: Mapping[str, str]) -> dict[str, str]:
    """The wanted values that a record has, and how it has them."""
    phone, shared = record.phone.removeprefix("+1"), {}
    for key, value in wanted.items():
        if key == record.email.casefold():
            shared[key] = record.email
        elif key == phone:
            shared[key] = wording.phone(phone) or ""
        elif isinstance(record, Borrower) and folded_key(value) == record.folded_name:
            shared[key] = record.name
    return shared


def open_creations(values: Iterable[str], *, except_for: str) -> list[tuple[WriteIntent, list[str]]]:
    """Creations with an unknown outcome that were sent with any of these values, and those values."""
    wanted = {key for value in values if value for key in (value.casefold(), folded_key(value))}
    sent = WriteIntent.objects.filter(operation=CREATION, state__in=WriteIntent.OPEN)
    found = []
    for intent in sent.exclude(submit_id=except_for).order_by("-created_at")[:MAX_MATCHES]:
        body = intent.request_body or {}
        texts = {name: str(body.get(name) or "") for name in IDENTITY_FIELDS}
        keys = {
            name: folded_key(text) if name == "first_name" else text.casefold()
            for name, text in texts.items()
        }
        if shared := [wording.phone(text) or text for name, text in texts.items() if keys[name] in wanted]:
            found.append((intent, shared))
    return found
