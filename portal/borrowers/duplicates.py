"""Who is known here already under the same e-mail, phone or name. A warning at first, a question before sending."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_

from portal.registry.lists import with_borrowers
from portal.registry.models import Kind, Record
from portal.registry.search import matching

LIMIT = 20


@dataclass(frozen=True)
class Match:
    """A known record, and which of the given values it shares."""

    record: Record
    owner: Record | None
    shared: tuple[str, ...]

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
    sharing = ((record, owner, wanted & _values(record)) for record, owner in with_borrowers(found[:200]))
    return [Match(record, owner, tuple(sorted(shared))) for record, owner, shared in sharing if shared][
        :LIMIT
    ]


def _values(record: Record) -> set[str]:
    values = {record.email.casefold(), record.phone.removeprefix("+1")}
    return values | {record.label.casefold()} if record.kind == Kind.BORROWER else values
