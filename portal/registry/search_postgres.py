"""Asks PostgreSQL's tables of texts: hides which way is the shorter one, along the newest texts or through an index."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from django.db import connection

from portal.registry.models import Kind
from portal.registry.query import Alternatives
from portal.registry.search_index import FORMS, LINES, MARK, SPACE, forms_of, index_of, pieces_of

# So many of the newest matches are compared with each other at least.
COMPARED: Final = 20
# Of so many of the newest texts it is looked at how many match; where so many do, the next ones are not far.
SAMPLED: Final = 1_000
FREQUENT: Final = 3
# Of a longer word not all trigrams are looked up; where two words meet, and at the ends of a line, stand the rarest.
LONG: Final = 5

# Keys of records with their texts, and by what the newest of them are known.
Texts = Mapping[Kind, Collection[tuple[int, str, Any]]]
# A statement or a part of one, in which nothing but names of kinds and numbers is written out, and its parameters.
Statement = tuple[str, list[Any]]


def statement_of(kinds: Sequence[Kind], alternatives: Alternatives, newest: int | None) -> Statement:
    """A statement for the keys, the newest so many of them, and its parameters."""
    where, parameters = _where(alternatives, _has)
    parts = (f"SELECT rowid FROM {name} WHERE {where}" for name in map(index_of, kinds))  # noqa: S608
    statement = " UNION ALL ".join(parts)
    if newest is None:
        return statement, parameters * len(kinds)
    return f"{statement} ORDER BY rowid DESC LIMIT %s", [*parameters * len(kinds), newest]


def keys_of(kinds: Sequence[Kind], alternatives: Alternatives, most: int) -> dict[Kind, list[int]]:
    """The keys of each kind's texts that match: at most so many, in no order."""
    where, parameters = _where(alternatives, _has)
    found = _selected("rowid", [_Part(kind, index_of(kind), where, parameters, most) for kind in kinds])
    return {kind: [key for (key,) in rows] for kind, rows in found.items()}


class _Part(NamedTuple):
    """What to select of a kind."""

    kind: Kind
    source: str
    where: str
    """The condition, and the order."""
    parameters: list[Any]
    most: int


def by_index(
    kinds: Sequence[Kind], alternatives: Alternatives, enough: int, most: int = 0, *, best_first: bool = False
) -> tuple[Texts, list[Kind]]:
    """The newest texts of each kind that match, with their keys, and the kinds of which there may be better ones.

    A sample tells which way is the shorter one: along the newest, or through the index, which finds them in no order;
    so it may as well give the best, and more of them. The planner knows only roughly how frequent letters are, and
    would walk through a million for some that are rare.
    """
    along, parameters = _where(alternatives, _has)
    newest = f"{along} ORDER BY rowid DESC"
    occurs, words = _where(alternatives, _holds)
    through, pieces = _where(alternatives, _by_pieces)
    order, forms = _best_first(alternatives) if best_first else ("rowid + 0 DESC", [])
    rare = f"{through} ORDER BY {order}"
    texts: dict[Kind, list[Any]] = {kind: [] for kind in kinds}
    if enough >= COMPARED:
        sampled = f"{occurs} ORDER BY rowid DESC"
        samples = [_Part(kind, _sample_of(kind), sampled, words, enough) for kind in kinds]
        texts = _selected("rowid, search_text", samples)
    frequent = [kind for kind in kinds if len(texts[kind]) >= FREQUENT]
    parts = [
        _Part(kind, index_of(kind), newest, parameters, enough)
        if kind in frequent
        else _Part(kind, index_of(kind), rare, pieces + forms, max(enough, most))
        for kind in kinds
        if len(texts[kind]) < enough
    ]
    texts |= _selected("rowid, search_text", parts)
    found = {
        kind: [(key, text.replace(SPACE, " "), key) for key, text in rows] for kind, rows in texts.items()
    }
    return found, [kind for kind in frequent if len(texts[kind]) >= enough]


def _sample_of(kind: Kind) -> str:
    return f"(SELECT * FROM {index_of(kind)} ORDER BY rowid DESC LIMIT {SAMPLED}) AS newest"  # noqa: S608


def _best_first(alternatives: Alternatives) -> Statement:
    """An order: the better match first, of equal ones the newest."""
    phrases = [" ".join(terms) for terms in alternatives]
    stands = [_where(tuple((form.format(one),) for one in phrases), _holds) for form in FORMS]
    ranks = " ".join(f"WHEN {condition} THEN {rank}" for rank, (condition, _) in enumerate(stands))
    words = [word for _, values in stands for word in values]
    return f"CASE {ranks} ELSE {len(FORMS)} END, rowid DESC", words


def _selected(columns: str, parts: Sequence[_Part]) -> dict[Kind, list[Any]]:
    """The columns of what is to be selected of each kind, in one statement."""
    found: dict[Kind, list[Any]] = {part.kind: [] for part in parts}
    if not parts:
        return found
    statement = " UNION ALL ".join(
        f"(SELECT '{kind.value}', {columns} FROM {source} WHERE {where} LIMIT {most})"  # noqa: S608 - names of kinds, numbers
        for kind, source, where, _, most in parts
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for part in parts for value in part.parameters])
        for kind, *row in cursor.fetchall():
            found[Kind(kind)].append(row)
    return found


def _where(alternatives: Alternatives, has: Callable[[str], Statement]) -> Statement:
    """The condition that any alternative occurs, and its parameters."""
    parameters: list[Any] = []

    def stands(term: str) -> str:
        parts = [has(form) for form in forms_of(term)]
        parameters.extend(value for _, values in parts for value in values)
        return f"({' OR '.join(condition for condition, _ in parts)})"

    return " OR ".join(f"({' AND '.join(map(stands, terms))})" for terms in alternatives), parameters


def _has(form: str) -> Statement:
    """The condition that a form stands in a text, for the index or the planner's guess."""
    return "search_text LIKE %s", [_pattern(form)]


def _holds(form: str) -> Statement:
    """That it stands there, of texts that are read anyway: it takes half as long."""
    return "strpos(search_text, %s) > 0", [form.replace(" ", SPACE)]


def _by_pieces(form: str) -> Statement:
    """That it stands there, by the index: of a long word every third trigram is enough, what they find is read."""
    if form == f"{MARK}{form.strip(MARK)}{MARK}":
        # Letters and marks of a whole line stand in very many texts, in one line or another.
        return f"{LINES} @> %s", [[form.strip(MARK).replace(" ", SPACE)]]
    if len(form) <= LONG or " " in form or MARK in form:
        return _has(form)
    condition, words = _holds(form)
    pieces = [_pattern(piece) for piece in pieces_of(form)]
    return " AND ".join(["search_text LIKE %s"] * len(pieces) + [condition]), pieces + words


def _pattern(form: str) -> str:
    return f"%{connection.ops.prep_for_like_query(form.replace(' ', SPACE))}%"
