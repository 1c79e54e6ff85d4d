"""What search asks of a database. :mod:`sqlite` and :mod:`postgres` answer it, each with an index of trigrams."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Protocol

from django.db.models import Q
from django.db.models.expressions import RawSQL

from portal.registry.models import Kind
from portal.registry.query import Alternatives

# Up to so many matches are fetched by their keys; of more, a page is found sooner by walking along the list.
MAX_BY_KEYS: Final = 5_000
# So many of the newest matches are compared with each other at least.
MIN_COMPARED: Final = 20

# A record without a text, such as an account of which only the ID is on file, cannot be found by one.
LIVE_RECORDS: Final = (
    " FROM registry_record WHERE kind = '{kind}' AND archived_at IS NULL AND search_text <> '' ORDER BY id"
)
HAS_CHANGED: Final = (
    "(old.search_text <> new.search_text OR (old.archived_at IS NULL) <> (new.archived_at IS NULL))"
)

# Keys of records with their texts, and what orders the newest first.
Texts = Mapping[Kind, Collection[tuple[int, str, Any]]]
# A statement, in which only names of kinds and numbers are written out, and its parameters.
Statement = tuple[str, list[Any]]


class Backend(Protocol):
    """The index of texts in one database."""

    PREPARATION: Sequence[str]
    TABLE: Sequence[str]
    """The statements that create and fill the table of a kind."""
    REMOVAL: Sequence[str]
    TRIGGERS: Mapping[str, str]
    """The triggers that keep a table in step with the records, by name."""
    CREATE_TRIGGER: str
    FETCHES_ALL_AT_ONCE: bool
    """Whether a few matches among conditions take as long as many."""
    FINDS_PHRASES_SOONER: bool
    """Whether a whole line is found sooner among the newest texts."""

    def uuid_prefix(self, prefix: str) -> Q:
        """The condition that an ID begins with this, for the index of kinds and IDs."""

    def all_by_keys(self, kinds: Sequence[Kind], alternatives: Alternatives) -> Q | None:
        """The keys of everything in which any alternative occurs; ``None`` if they are many, or no use."""

    def containing(self, kinds: Sequence[Kind], alternatives: Alternatives, limit: int) -> tuple[Q, Q]:
        """The condition that any alternative occurs, and that it is among the newest in which one does."""

    def newest_containing(self, kind: Kind, alternatives: Alternatives, limit: int) -> Q:
        """The condition that it is one of the newest of a kind in which any alternative occurs."""

    def newest_texts(
        self,
        kinds: Sequence[Kind],
        alternatives: Alternatives,
        enough: int,
        limit: int = 0,
        *,
        best_first: bool,
    ) -> tuple[Texts, list[Kind]]:
        """The newest texts that match, and the kinds that may have better ones than these."""

    def matching_keys(
        self, kinds: Sequence[Kind], alternatives: Alternatives, limit: int
    ) -> Mapping[Kind, list[int]]:
        """The keys of each kind's matches, up to a limit, in no order."""


def by_keys(keys: Sequence[int]) -> Q | None:
    """The records with these keys, if they are few: beside another condition, their index might not be used.

    Of no keys it is a condition, too, that nothing meets.
    """
    return Q(pk__in=keys) if len(keys) <= MAX_BY_KEYS else None


def in_statement(statement: Statement) -> Q:
    """The records whose keys a statement selects."""
    return Q(pk__in=RawSQL(*statement))  # noqa: S611 - names of kinds and parameters only
