"""Search on PostgreSQL: tables with trigram indexes and separate statistics for each kind.

Hides which way is faster, along the newest texts or through an index.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.models import Q

from portal.registry.models import Kind
from portal.registry.query import MARK, SPACE, Alternatives
from portal.registry.search.backend import (
    HAS_CHANGED,
    LIVE_RECORDS,
    MAX_BY_KEYS,
    MIN_COMPARED,
    Statement,
    Texts,
    by_keys,
    in_statement,
)
from portal.registry.search.texts import FORMS, forms_of, index_of, pieces_of
from portal.runtime.database import fetch_rows

FETCHES_ALL_AT_ONCE: Final = True
FINDS_PHRASES_SOONER: Final = False
# Matches are counted in a sample of this many newest texts; with at least FREQUENT, the next ones are near.
SAMPLED: Final = 1_000
FREQUENT: Final = 3
# Not all trigrams of a longer word are looked up. Those between two words and at a line's ends are the rarest.
LONG: Final = 5
# The text's lines: the letters of a frequent word occur in many lines, but together in few.
LINES: Final = f"string_to_array(search_text, '{MARK}')"


def uuid_prefix(prefix: str) -> Q:
    return Q(uuid__startswith=prefix)


def all_by_keys(kinds: Sequence[Kind], alternatives: Alternatives) -> Q | None:
    return by_keys([*chain(*matching_keys(kinds, alternatives, MAX_BY_KEYS + 1).values())])


def containing(kinds: Sequence[Kind], alternatives: Alternatives, limit: int) -> tuple[Q, Q]:
    whole = reduce(or_, (Q(kind=kind, archived_at__isnull=True) for kind in kinds))
    whole &= in_statement(_select_keys(kinds, alternatives, None))
    return whole, in_statement(_select_keys(kinds, alternatives, limit))


def newest_containing(kind: Kind, alternatives: Alternatives, limit: int) -> Q:
    texts, _ = newest_texts([kind], alternatives, limit)
    return Q(pk__in=[key for key, _, _ in texts[kind]])


def _select_keys(kinds: Sequence[Kind], alternatives: Alternatives, newest: int | None) -> Statement:
    """A statement for the keys, limited to the ``newest``, and its parameters."""
    where, parameters = _any_alternative(alternatives, _has_form)
    parts = (f"SELECT rowid FROM {name} WHERE {where}" for name in map(index_of, kinds))  # noqa: S608
    statement = " UNION ALL ".join(parts)
    if newest is None:
        return statement, parameters * len(kinds)
    return f"{statement} ORDER BY rowid DESC LIMIT %s", [*parameters * len(kinds), newest]


def matching_keys(kinds: Sequence[Kind], alternatives: Alternatives, limit: int) -> dict[Kind, list[int]]:
    """The keys of each kind's matching texts, up to a limit, in no particular order."""
    where, parameters = _any_alternative(alternatives, _has_form)
    found = _union_select(
        "rowid", [_Selection(kind, index_of(kind), where, parameters, limit) for kind in kinds]
    )
    return {kind: [key for (key,) in rows] for kind, rows in found.items()}


class _Selection(NamedTuple):
    """What to select from a kind's table."""

    kind: Kind
    source: str
    where: str
    """The condition, and the order."""
    parameters: list[Any]
    limit: int


def newest_texts(
    kinds: Sequence[Kind],
    alternatives: Alternatives,
    enough: int,
    limit: int = 0,
    *,
    best_first: bool = False,
) -> tuple[Texts, list[Kind]]:
    """The newest matching texts of each kind with their keys, and the kinds that may have better ones.

    A sample tells which way is faster: along the newest texts, or through the index, which returns matches in no order
    and so may as well return the best, and more of them. The planner knows letter frequencies only roughly, and would
    walk through a million texts for rare ones.
    """
    along, parameters = _any_alternative(alternatives, _has_form)
    newest = f"{along} ORDER BY rowid DESC"
    occurs, words = _any_alternative(alternatives, _contains_form)
    through, pieces = _any_alternative(alternatives, _has_pieces)
    order, forms = _order_by_rank(alternatives) if best_first else ("rowid + 0 DESC", [])
    rare = f"{through} ORDER BY {order}"
    texts: dict[Kind, list[Any]] = {kind: [] for kind in kinds}
    if enough >= MIN_COMPARED:
        sampled = f"{occurs} ORDER BY rowid DESC"
        samples = [_Selection(kind, _newest_sample(kind), sampled, words, enough) for kind in kinds]
        texts = _union_select("rowid, search_text", samples)
    frequent = [kind for kind in kinds if len(texts[kind]) >= FREQUENT]
    parts = [
        _Selection(kind, index_of(kind), newest, parameters, enough)
        if kind in frequent
        else _Selection(kind, index_of(kind), rare, pieces + forms, max(enough, limit))
        for kind in kinds
        if len(texts[kind]) < enough
    ]
    texts |= _union_select("rowid, search_text", parts)
    found = {
        kind: [(key, text.replace(SPACE, " "), key) for key, text in rows] for kind, rows in texts.items()
    }
    return found, [kind for kind in frequent if len(texts[kind]) >= enough]


def _newest_sample(kind: Kind) -> str:
    return f"(SELECT * FROM {index_of(kind)} ORDER BY rowid DESC LIMIT {SAMPLED}) AS newest"  # noqa: S608


def _order_by_rank(alternatives: Alternatives) -> Statement:
    """The order of matches: best first, newest first among ties."""
    phrases = [" ".join(terms) for terms in alternatives]
    rank_conditions = [
        _any_alternative(tuple((form.format(one),) for one in phrases), _contains_form) for form in FORMS
    ]
    ranks = " ".join(f"WHEN {condition} THEN {rank}" for rank, (condition, _) in enumerate(rank_conditions))
    words = [word for _, values in rank_conditions for word in values]
    return f"CASE {ranks} ELSE {len(FORMS)} END, rowid DESC", words


def _union_select(columns: str, parts: Sequence[_Selection]) -> dict[Kind, list[Any]]:
    """One statement that selects the columns from each kind's table."""
    found: dict[Kind, list[Any]] = {part.kind: [] for part in parts}
    if not parts:
        return found
    statement = " UNION ALL ".join(
        f"(SELECT '{kind.value}', {columns} FROM {source} WHERE {where} LIMIT {limit})"  # noqa: S608 - names of kinds, numbers
        for kind, source, where, _, limit in parts
    )
    for kind, *row in fetch_rows(statement, [value for part in parts for value in part.parameters]):
        found[Kind(kind)].append(row)
    return found


def _any_alternative(alternatives: Alternatives, has: Callable[[str], Statement]) -> Statement:
    """The condition that any alternative matches, and its parameters."""
    parameters: list[Any] = []

    def matches_term(term: str) -> str:
        parts = [has(form) for form in forms_of(term)]
        parameters.extend(value for _, values in parts for value in values)
        return f"({' OR '.join(condition for condition, _ in parts)})"

    return " OR ".join(f"({' AND '.join(map(matches_term, terms))})" for terms in alternatives), parameters


def _has_form(form: str) -> Statement:
    """The condition that a text contains a form, for the index or the planner's guess."""
    return "search_text LIKE %s", [_like_pattern(form)]


def _contains_form(form: str) -> Statement:
    """The same condition for texts that are read anyway, in half the time."""
    return "strpos(search_text, %s) > 0", [form.replace(" ", SPACE)]


def _has_pieces(form: str) -> Statement:
    """The same condition for the index: every third trigram of a long word is enough, as matches are then read."""
    if form == f"{MARK}{form.strip(MARK)}{MARK}":
        # The trigrams of a whole line occur in very many texts.
        return f"{LINES} @> %s", [[form.strip(MARK).replace(" ", SPACE)]]
    if len(form) <= LONG or " " in form or MARK in form:
        return _has_form(form)
    condition, words = _contains_form(form)
    pieces = [_like_pattern(piece) for piece in pieces_of(form)]
    return " AND ".join(["search_text LIKE %s"] * len(pieces) + [condition]), pieces + words


def _like_pattern(form: str) -> str:
    return f"%{connection.ops.prep_for_like_query(form.replace(' ', SPACE))}%"


# --- The tables ---

# The function runs as its owner, because the portal's role may not have permission yet while this version is rolled
# out. Without a schema, that role's temporary table would come first, and its triggers would run with the owner's
# rights.
TRIGGER_FUNCTION = f"""CREATE OR REPLACE FUNCTION {{index}}() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = {{schema}}, pg_temp AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        TRUNCATE {{index}};
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO {{index}} SELECT id, replace(search_text, ' ', '{SPACE}') FROM added
            WHERE kind = '{{kind}}' AND archived_at IS NULL AND search_text <> ''
            ON CONFLICT (rowid) DO UPDATE SET search_text = excluded.search_text;
    ELSIF TG_OP = 'DELETE' OR new.archived_at IS NOT NULL OR new.search_text = '' THEN
        DELETE FROM {{index}} WHERE rowid = old.id;
    ELSE
        INSERT INTO {{index}} VALUES (new.id, replace(new.search_text, ' ', '{SPACE}'))
            ON CONFLICT (rowid) DO UPDATE SET search_text = excluded.search_text;
    END IF;
    RETURN NULL;
END $$"""  # noqa: S608 - names of kinds only
PREPARATION: Final = ("CREATE EXTENSION IF NOT EXISTS pg_trgm",)
TABLE: Final = (
    "CREATE TABLE {index} (rowid bigint PRIMARY KEY, search_text text NOT NULL)",
    "ALTER TABLE {index} ALTER search_text SET STATISTICS 200",
    f"INSERT INTO {{index}} SELECT id, replace(search_text, ' ', '{SPACE}')" + LIVE_RECORDS,
    "CREATE INDEX {index}_trigrams ON {index} USING gin (search_text gin_trgm_ops)",
    f"CREATE INDEX {{index}}_lines ON {{index}} USING gin (({LINES}))",
    TRIGGER_FUNCTION,
)
CREATE_TRIGGER: Final = "CREATE OR REPLACE TRIGGER"
TRIGGERS: Final = {
    # For all rows of a statement at once, because many are imported together.
    "insert": "AFTER INSERT ON registry_record REFERENCING NEW TABLE AS added FOR EACH STATEMENT"
    " EXECUTE FUNCTION {index}()",
    "delete": "AFTER DELETE ON registry_record FOR EACH ROW"
    " WHEN (old.kind = '{kind}') EXECUTE FUNCTION {index}()",
    "update": "AFTER UPDATE OF search_text, archived_at ON registry_record FOR EACH ROW"
    f" WHEN (new.kind = '{{kind}}' AND {HAS_CHANGED}) EXECUTE FUNCTION {{index}}()",
    "truncate": "AFTER TRUNCATE ON registry_record FOR EACH STATEMENT EXECUTE FUNCTION {index}()",
}
REMOVAL: Final = (
    *(f"DROP TRIGGER IF EXISTS {{index}}_{name} ON registry_record" for name in TRIGGERS),
    "DROP FUNCTION IF EXISTS {index}()",
    "DROP TABLE IF EXISTS {index}",
)
