"""The search interface of a database, implemented by :mod:`sqlite` and :mod:`postgres` with trigram indexes."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Protocol

from django.db.models import Q
from django.db.models.expressions import RawSQL

from portal.registry.models import Kind
from portal.registry.query import Alternatives

# Up to this many matches are fetched by their keys; with more, walking along the list finds a page sooner.
MAX_BY_KEYS: Final = 5_000
# At least this many of the newest matches are compared with each other.
MIN_COMPARED: Final = 20

# A record without text, such as an account with only an ID, can't be found by text.
LIVE_RECORDS: Final = (
    " FROM registry_record WHERE kind = '{kind}' AND archived_at IS NULL AND search_text <> '' ORDER BY id"
)
HAS_CHANGED: Final = (
    "(old.search_text <> new.search_text OR (old.archived_at IS NULL) <> (new.archived_at IS NULL))"
)

# Keys of records with their texts, and the order of newest first.
Texts = Mapping[Kind, Collection[tuple[int, str, Any]]]
# A statement and its parameters; only names of kinds and numbers are written into the statement.
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
    """Whether finding a few matches with conditions takes as long as finding many."""
    FINDS_PHRASES_SOONER: bool
    """Whether a whole line is found faster among the newest texts."""

    def uuid_prefix(self, prefix: str) -> Q:
        """The condition that an ID begins with a prefix, for the index of kinds and IDs."""

    def all_by_keys(self, kinds: Sequence[Kind], alternatives: Alternatives) -> Q | None:
        """The keys of everything that matches any alternative; ``None`` if there are many, or keys are of no use."""

    def containing(self, kinds: Sequence[Kind], alternatives: Alternatives, limit: int) -> tuple[Q, Q]:
        """The condition that any alternative matches, and that the record is among the newest matches."""

    def newest_containing(self, kind: Kind, alternatives: Alternatives, limit: int) -> Q:
        """The condition that a record is one of a kind's newest matches of any alternative."""

    def newest_texts(
        self,
        kinds: Sequence[Kind],
        alternatives: Alternatives,
        enough: int,
        limit: int = 0,
        *,
        best_first: bool,
    ) -> tuple[Texts, list[Kind]]:
        """The newest matching texts, and the kinds that may have better matches."""

    def matching_keys(
        self, kinds: Sequence[Kind], alternatives: Alternatives, limit: int
    ) -> Mapping[Kind, list[int]]:
        """The keys of each kind's matches, up to a limit, in no particular order."""


def by_keys(keys: Sequence[int]) -> Q | None:
    """The condition for records with these few keys; combined with others, their index might not be used.

    Without keys, it is a condition that nothing meets.
    """
    return Q(pk__in=keys) if len(keys) <= MAX_BY_KEYS else None


def in_statement(statement: Statement) -> Q:
    """The condition for records whose keys a statement selects."""
    return Q(pk__in=RawSQL(*statement))  # noqa: S611 - names of kinds and parameters only
