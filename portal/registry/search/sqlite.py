"""Search on SQLite: full-text tables of trigrams, with the positions of letters but not the texts themselves."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Final

from django.db.models import Q

from portal.registry.models import Kind, Record
from portal.registry.query import Alternatives
from portal.registry.search.backend import (
    HAS_CHANGED,
    LIVE_RECORDS,
    MAX_BY_KEYS,
    Statement,
    Texts,
    by_keys,
    in_statement,
)
from portal.registry.search.texts import TRIGRAM, forms_of, index_of, pieces_of
from portal.runtime.database import fetch_rows

FETCHES_ALL_AT_ONCE: Final = False
FINDS_PHRASES_SOONER: Final = True


def uuid_prefix(prefix: str) -> Q:
    return Q(uuid__gte=prefix, uuid__lt=prefix[:-1] + chr(ord(prefix[-1]) + 1))


def all_by_keys(kinds: Sequence[Kind], alternatives: Alternatives) -> Q | None:
    """Return ``None``: :func:`containing` itself looks for few matches."""
    return None


def containing(kinds: Sequence[Kind], alternatives: Alternatives, limit: int) -> tuple[Q, Q]:
    plain = reduce(or_, (Q(kind=kind, archived_at__isnull=True) for kind in kinds))
    plain &= reduce(or_, (reduce(and_, map(_occurs, terms)) for terms in alternatives))
    if not (expression := _expression(alternatives)):
        return plain, plain
    index_suffices = _index_suffices(alternatives)
    if matches := _few_matches(kinds, expression):
        matches = matches if index_suffices else matches & plain
        return matches, matches
    return plain, in_statement(_select_newest(kinds, expression, limit)) if index_suffices else plain


def newest_containing(kind: Kind, alternatives: Alternatives, limit: int) -> Q:
    if statement := _select_matches(kind, alternatives, limit):
        return in_statement(statement)
    return containing([kind], alternatives, limit)[1]


def newest_texts(
    kinds: Sequence[Kind],
    alternatives: Alternatives,
    enough: int,
    limit: int = 0,
    *,
    best_first: bool = False,
) -> tuple[Texts, list[Kind]]:
    texts = {}
    for kind in kinds:
        if statement := _select_matches(kind, alternatives, enough):
            keys, parameters = statement
            select = f"SELECT id, search_text FROM registry_record WHERE id IN ({keys}) ORDER BY id DESC"  # noqa: S608
            rows = fetch_rows(select, parameters)
        else:
            found = Record.objects.filter(containing([kind], alternatives, enough)[1]).order_by("-id")
            rows = list(found.values_list("pk", "search_text")[:enough])
        texts[kind] = [(key, text, key) for key, text in rows]
    return texts, [kind for kind in kinds if len(texts[kind]) >= enough]


def matching_keys(kinds: Sequence[Kind], alternatives: Alternatives, limit: int) -> Mapping[Kind, list[int]]:
    keys = {}
    for kind in kinds:
        if statement := _select_matches(kind, alternatives, limit):
            keys[kind] = [key for (key,) in fetch_rows(*statement)]
        else:
            found = Record.objects.filter(containing([kind], alternatives, limit)[1])
            keys[kind] = list(found.values_list("pk", flat=True)[:limit])
    return keys


def _index_suffices(alternatives: Alternatives) -> bool:
    """Whether the trigram index can decide alone."""
    return all(len(form) >= TRIGRAM for terms in alternatives for term in terms for form in forms_of(term))


def _are_long(alternatives: Alternatives) -> bool:
    """Whether every word matches anywhere, not only at the beginning of a word."""
    return all(len(term) >= TRIGRAM for terms in alternatives for term in terms)


def _occurs(term: str) -> Q:
    return reduce(or_, (Q(search_text__contains=form) for form in forms_of(term)))


def _expression(alternatives: Alternatives) -> str:
    """The full-text expression; empty if it can't narrow every alternative."""
    found = [" AND ".join(filter(None, map(_any_form, terms))) for terms in alternatives]
    return " OR ".join(f"({terms})" for terms in found) if all(found) else ""


def _any_form(term: str) -> str:
    forms = forms_of(term)
    if min(map(len, forms)) < TRIGRAM:
        return ""
    return "({})".format(" OR ".join(map(_quoted, forms)))


def _quoted(text: str) -> str:
    return '"{}"'.format(text.replace('"', '""'))


def _select_matches(kind: Kind, alternatives: Alternatives, limit: int) -> Statement | None:
    """Select the keys of a kind's newest matches, if they are few and the index can decide alone."""
    if limit >= MAX_BY_KEYS or not _index_suffices(alternatives):
        return None
    if any(len(terms) > 1 for terms in alternatives) and _are_long(alternatives):
        return _select_by_pieces(kind, alternatives, limit)
    return _select_newest([kind], _expression(alternatives), limit)


def _select_newest(kinds: Sequence[Kind], expression: str, limit: int) -> Statement:
    parts = (f"SELECT rowid FROM {name} WHERE {name} MATCH %s" for name in map(index_of, kinds))  # noqa: S608
    return f"{' UNION ALL '.join(parts)} ORDER BY rowid DESC LIMIT %s", [*[expression] * len(kinds), limit]


def _select_by_pieces(kind: Kind, alternatives: Alternatives, limit: int) -> Statement:
    """The same for words in any position: the table finds all their pieces, then the text decides.

    Comparing positions of all trigrams in the table takes longer than reading the texts it leaves.
    """
    table = index_of(kind)
    pieces = " OR ".join(f"({' AND '.join(map(_all_pieces, terms))})" for terms in alternatives)
    occurs = " OR ".join(
        f"({' AND '.join(['instr(registry_record.search_text, %s)'] * len(terms))})" for terms in alternatives
    )
    words = [term for terms in alternatives for term in terms]
    statement = (
        f"SELECT id FROM {table} CROSS JOIN registry_record ON id = {table}.rowid"  # noqa: S608
        f" WHERE {table} MATCH %s AND ({occurs}) ORDER BY {table}.rowid DESC LIMIT %s"
    )
    return statement, [pieces, *words, limit]


def _all_pieces(term: str) -> str:
    return " AND ".join(map(_quoted, pieces_of(term)))


def _few_matches(kinds: Sequence[Kind], expression: str) -> Q | None:
    """All matches, if they are few."""
    return by_keys([key for (key,) in fetch_rows(*_select_newest(kinds, expression, MAX_BY_KEYS + 1))])


# --- The tables ---

PREPARATION: Final = ()
TABLE: Final = (
    "CREATE VIRTUAL TABLE {index} USING fts5(search_text, content='', tokenize='trigram')",
    # In a few large segments, which takes two thirds of the time; afterwards the usual size again.
    "INSERT INTO {index} ({index}, rank) VALUES ('hashsize', 67108864)",
    "INSERT INTO {index} (rowid, search_text) SELECT id, search_text" + LIVE_RECORDS,
    "INSERT INTO {index} ({index}, rank) VALUES ('hashsize', 1048576)",
    # A bulk import leaves many segments, which later writes would merge little by little.
    "INSERT INTO {index} ({index}) VALUES ('optimize')",
)
CREATE_TRIGGER: Final = "CREATE TRIGGER IF NOT EXISTS"
TRIGGERS: Final = {
    "insert": """AFTER INSERT ON registry_record WHEN new.kind = '{kind}' AND new.archived_at IS NULL
        AND new.search_text <> '' BEGIN
        INSERT INTO {index} (rowid, search_text) VALUES (new.id, new.search_text);
    END""",
    "delete": """AFTER DELETE ON registry_record WHEN old.kind = '{kind}' AND old.archived_at IS NULL
        AND old.search_text <> '' BEGIN
        INSERT INTO {index} ({index}, rowid, search_text) VALUES ('delete', old.id, old.search_text);
    END""",
    "update": f"""AFTER UPDATE OF search_text, archived_at ON registry_record WHEN new.kind = '{{kind}}'
        AND {HAS_CHANGED} BEGIN
        INSERT INTO {{index}} ({{index}}, rowid, search_text)
            SELECT 'delete', old.id, old.search_text WHERE old.archived_at IS NULL AND old.search_text <> '';
        INSERT INTO {{index}} (rowid, search_text)
            SELECT new.id, new.search_text WHERE new.archived_at IS NULL AND new.search_text <> '';
    END""",
}
REMOVAL: Final = (
    *(f"DROP TRIGGER IF EXISTS {{index}}_{name}" for name in TRIGGERS),
    "DROP TABLE IF EXISTS {index}",
)
