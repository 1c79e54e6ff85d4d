"""Finds known records by what staff have in hand; best first: what it is called, a whole line, a beginning, any part.

A record's search text holds one thing a line, between two marks, and a further mark stands before what it is called: so
where a line or a name begins and ends can be looked for like any other letter. Hides the two indexes, which both are a
table of texts for each kind: of trigrams on SQLite, with an index of trigrams on PostgreSQL.
"""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import Any, Final

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Lower

from portal.registry.models import SEARCHED_KINDS, Kind, Record
from portal.registry.query import MAX_LENGTH, Alternatives, Query, fold, read
from portal.registry.search_index import LINES, MARK, SPACE, UNMARKED, index_of

TRIGRAM: Final = 3
# Up to so many matches are fetched by their keys; where there are more, going through the list finds a page sooner.
FEW: Final = 5_000
# Kinds that are found by the name of their borrower too, where somebody asks for them alone.
OWNED: Final = (Kind.APPLICATION, Kind.LOAN, Kind.LINE, Kind.REPAYMENT)
# Kinds whose text names other records, or bank accounts, by identifiers.
MENTIONING: Final = (Kind.LOAN, Kind.REPAYMENT)
# Of so many borrowers at most a list shows what is theirs.
OWNERS: Final = 200
# So many of the newest matches are compared with each other at least.
COMPARED: Final = 50
# How good a match is: the whole name, another whole line, the beginning of the name, of a line, of a word.
FORMS: Final = tuple(form.replace("|", MARK) for form in ("||{}|", "|{}|", "||{}", "|{}", " {}"))


# A statement, in which nothing but names of kinds is written out, and its parameters.
Statement = tuple[str, list[Any]]


def search_text(*parts: str | None) -> str:
    """What a record can be found by, folded, a line each: first what it is called.

    No line is longer than what is read of a typed text, nor than PostgreSQL's index of lines can hold.
    """
    folded = (" ".join(fold(part).translate(UNMARKED).split())[:MAX_LENGTH] for part in parts if part)
    lines = [f"{MARK}{line}{MARK}\n" for line in folded if line]
    return "".join([MARK, *lines]) if lines else ""


def lines_of(record: Record) -> list[str]:
    """The lines by which a record can be found."""
    return [line for line in record.search_text.replace("\n", MARK).split(MARK) if line]


def matching(records: QuerySet[Record], text: str) -> QuerySet[Record]:
    """Those of the records in which all of the text occurs: what is pasted is recognised, operators are not."""
    return narrowed(records, read(text, operators=False))


def narrowed(
    records: QuerySet[Record],
    query: Query,
    kinds: Sequence[Kind] = SEARCHED_KINDS,
    *,
    newest: int | None = None,
    besides: Q | None = None,
) -> QuerySet[Record]:
    """Those of the records, which are all of these kinds, that the query asks for. Archived ones are never found.

    ``newest`` says that no more than so many are wanted, and that nothing else narrows the records; what its text does
    not find ``besides`` may.
    """
    found = besides or Q()
    if query.alternatives:
        found |= _containing(query.alternatives, kinds, None if query.conditions else newest)
    if query.amount is not None:
        found |= _of_amount(query.amount, kinds)
    if not query.is_limited:
        return records.filter(query.conditions, found)
    return records.filter(query.conditions, found, kind__in=query.kinds)


def _of_amount(amount: Decimal, kinds: Sequence[Kind]) -> Q:
    """By their keys while there are few: beside another condition SQLite may not use the index of amounts."""
    equal = Q(amount=amount, kind__in=kinds, archived_at__isnull=True)
    keys = _keys(Record.objects.filter(equal), FEW + 1)
    return Q(pk__in=keys) if len(keys) <= FEW else equal


def of_borrowers(query: Query, kinds: Sequence[Kind]) -> tuple[Q, str]:
    """What of these kinds belongs to the borrowers whom the text finds, and a word where they are too many."""
    if not query.alternatives:
        return Q(), ""
    owners = Record.objects.filter(_containing(query.alternatives, [Kind.BORROWER], OWNERS + 1))
    uuids = list(owners.values_list("uuid", flat=True)[: OWNERS + 1])
    if len(uuids) > OWNERS:
        return Q(), f"More than {OWNERS} borrowers match; write more of a name to see what is theirs."
    theirs = Record.objects.filter(borrower_uuid__in=uuids, kind__in=kinds)
    return (Q(pk__in=theirs.values("pk")) if uuids else Q()), ""


def ranked(kind: Kind, query: Query, limit: int) -> dict[int, int]:
    """The keys of a kind's best matches, best first, each with its rank: 0 is best."""
    if query.is_empty or kind not in query.kinds:
        return {}
    records = Record.objects.filter(query.conditions, kind=kind, archived_at__isnull=True)
    if not query.has_text:
        return dict.fromkeys(_keys(records.order_by(query.order, "-id"), limit), 0)
    found = dict.fromkeys(_keys(records.filter(_itself(query)).order_by("-id"), limit), 0)
    if _has_words(kind, query):
        for key, rank in _by_text(kind, query, limit).items():
            found.setdefault(key, rank)
    if theirs := _theirs(kind, query):
        for key in _keys(records.filter(theirs).order_by("-id"), limit):
            found.setdefault(key, len(FORMS) + 2)
    return dict(list(found.items())[:limit])


def counted(kind: Kind, query: Query, most: int) -> int:
    """How many of a kind match: at most so many."""
    if query.is_empty or kind not in query.kinds:
        return 0
    records = Record.objects.filter(query.conditions, kind=kind, archived_at__isnull=True)
    if not query.has_text:
        return records[:most].count()
    keys = set(_keys(records.filter(_itself(query)), most))
    if _has_words(kind, query):
        keys.update(_matching_keys(kind, query, most))
    if theirs := _theirs(kind, query):
        keys.update(_keys(records.filter(theirs), most))
    return min(len(keys), most)


def _theirs(kind: Kind, query: Query) -> Q:
    """What of a kind belongs to the borrowers whom the text finds; nothing unless kinds were asked for."""
    return of_borrowers(query, [kind])[0] if query.is_limited and kind in OWNED else Q()


def _has_words(kind: Kind, query: Query) -> bool:
    """Whether the texts of a kind are to be searched: an identifier stands in those of some kinds only."""
    return bool(query.alternatives) and (kind in MENTIONING or not query.uuids)


def _keys(records: QuerySet[Record], limit: int) -> list[int]:
    return list(records.values_list("pk", flat=True)[:limit])


def _itself(query: Query) -> Q:
    """What an identifier or an amount stands for."""
    itself = Q(uuid__in=query.uuids)
    return itself if query.amount is None else itself | Q(amount=query.amount)


def _by_text(kind: Kind, query: Query, limit: int) -> dict[int, int]:
    """Matches of the text with their ranks, best first, among equals the newest first.

    The newest matches are looked at, on SQLite then the newest in which the words stand as they were typed. Where there
    are more, the index is asked for each rank, until there are enough.
    """
    enough = max(limit, COMPARED)
    phrases = [" ".join(terms) for terms in query.alternatives]
    as_typed = tuple((phrase,) for phrase in phrases)
    ranks: dict[int, int] = {}

    def look_at(texts: Iterable[tuple[int, str]]) -> int:
        found = {key: _rank(text, phrases) for key, text in texts}
        ranks.update(found)
        return len(found)

    # SQLite finds a whole line sooner among the newest; to PostgreSQL's index of lines it makes no difference.
    looks = (query.alternatives, as_typed) if connection.vendor == "sqlite" else (query.alternatives,)
    for alternatives in dict.fromkeys(looks):
        if look_at(_newest_texts(kind, query, alternatives, enough)) < enough:
            break
    else:
        for rank, form in enumerate(FORMS, 1):
            if sum(one <= rank for one in ranks.values()) >= limit:
                break
            tier = tuple((form.format(phrase),) for phrase in phrases)
            if rank == 1:
                look_at(_called(kind, query, phrases, limit).values_list("pk", "search_text"))
            else:
                look_at(_newest_texts(kind, query, tier, limit))
    return dict(sorted(ranks.items(), key=lambda item: (item[1], -item[0])))


def _called(kind: Kind, query: Query, names: Sequence[str], most: int) -> QuerySet[Record]:
    """The newest borrowers of exactly these names, by the index that orders their list.

    What else has a name is found by its line as well: its letters stand in too many texts to be looked for twice.
    """
    if kind != Kind.BORROWER:
        return Record.objects.none()
    known = Record.objects.filter(query.conditions, kind=kind, archived_at__isnull=True)
    return known.alias(name=Lower("label")).filter(name__in=names).order_by("-id")[:most]


def _newest(kind: Kind, query: Query, alternatives: Alternatives, most: int) -> QuerySet[Record]:
    """The newest of a kind in which any alternative occurs."""
    # The index of a kind holds nothing else: were the kind asked for besides, SQLite might walk all of it.
    found = _containing(alternatives, [kind], None if query.conditions else most)
    order = ("-updated_at", "-id") if query.conditions else ("-id",)
    return Record.objects.filter(query.conditions, found).order_by(*order)[:most]


def _newest_texts(
    kind: Kind, query: Query, alternatives: Alternatives, most: int
) -> Iterable[tuple[int, str]]:
    """The keys of the same with their texts."""
    if query.conditions or connection.vendor == "sqlite":
        return _newest(kind, query, alternatives, most).values_list("pk", "search_text")
    return _newest_by_index(kind, alternatives, most)


def _matching_keys(kind: Kind, query: Query, most: int) -> Iterable[int]:
    """The keys of a kind's matches of the text: at most so many, in no order."""
    if query.conditions or connection.vendor == "sqlite":
        return _keys(_newest(kind, query, query.alternatives, most), most)
    statement, parameters = _texts([kind], query.alternatives, None)
    with connection.cursor() as cursor:
        cursor.execute(f"{statement} LIMIT %s", [*parameters, most])
        return [key for (key,) in cursor.fetchall()]


def _rank(text: str, phrases: Sequence[str]) -> int:
    forms = (
        rank for rank, form in enumerate(FORMS, 1) if any(form.format(phrase) in text for phrase in phrases)
    )
    return next(forms, len(FORMS) + 1)


def _containing(alternatives: Alternatives, kinds: Sequence[Kind], newest: int | None = None) -> Q:
    """The condition that any alternative occurs, in the form that the index answers best."""
    living = reduce(or_, (Q(kind=kind, archived_at__isnull=True) for kind in kinds))
    if connection.vendor == "postgresql":
        if newest and newest < FEW and len(kinds) == 1:
            return Q(pk__in=[key for key, _ in _newest_by_index(kinds[0], alternatives, newest)])
        found = _listed(_texts(kinds, alternatives, newest))
        return found if newest else living & found
    plain = living & reduce(or_, (reduce(and_, map(_occurs, terms)) for terms in alternatives))
    expression = _expression(alternatives)
    if not expression:
        return plain
    is_whole = all(len(form) >= TRIGRAM for terms in alternatives for term in terms for form in _forms(term))
    if is_whole and newest and newest < FEW:
        return _newer(alternatives, kinds, expression, newest)
    if (keys := _few(kinds, expression)) is not None:
        return Q(pk__in=keys) if is_whole else Q(pk__in=keys) & plain
    return _listed(_select(kinds, expression, newest)) if is_whole and newest else plain


def _occurs(term: str) -> Q:
    return reduce(or_, (Q(search_text__contains=form) for form in _forms(term)))


def _forms(term: str) -> tuple[str, ...]:
    """What to look for: a term too short for an index of trigrams only counts where a word begins."""
    return (term,) if len(term) >= TRIGRAM else (f"{MARK}{term}", f" {term}")


def _listed(statement: Statement) -> Q:
    return Q(pk__in=RawSQL(*statement))  # noqa: S611 - names of kinds and parameters only


def _pieces(term: str) -> list[str]:
    """The fewest trigrams that hold all of a term."""
    starts = {*range(0, len(term) - TRIGRAM, TRIGRAM), len(term) - TRIGRAM}
    return [term[start : start + TRIGRAM] for start in sorted(starts)]


# --- The tables of PostgreSQL ---


# Of so many of the newest texts it is looked at how many match; where so many do, the next ones are not far.
SAMPLED: Final = 1_000
FREQUENT: Final = 4
# Of a longer word not all trigrams are looked up; where two words meet stands the rarest of all.
LONG: Final = 12


def _texts(kinds: Sequence[Kind], alternatives: Alternatives, newest: int | None) -> Statement:
    """A statement for the keys, the newest so many of them, and its parameters."""
    where, parameters = _where(alternatives, _has)
    parts = (f"SELECT rowid FROM {name} WHERE {where}" for name in map(index_of, kinds))  # noqa: S608
    statement = " UNION ALL ".join(parts)
    if newest is None:
        return statement, parameters * len(kinds)
    return f"{statement} ORDER BY rowid DESC LIMIT %s", [*parameters * len(kinds), newest]


def _newest_by_index(kind: Kind, alternatives: Alternatives, most: int) -> list[tuple[int, str]]:
    """The newest texts that match, with their keys.

    A sample tells which way is the shorter one: along the newest, or through the index, which finds them in no order.
    The planner knows only roughly how frequent letters are, and would walk through a million for some that are rare.
    """
    table = index_of(kind)
    sample = f"(SELECT * FROM {table} ORDER BY rowid DESC LIMIT {SAMPLED}) AS newest"  # noqa: S608

    def found(source: str, order: str, where: str, parameters: list[Any]) -> list[tuple[int, str]]:
        cursor.execute(
            f"SELECT rowid, search_text FROM {source} WHERE {where} ORDER BY {order} DESC LIMIT %s",  # noqa: S608
            [*parameters, most],
        )
        return [(key, text.replace(SPACE, " ")) for key, text in cursor.fetchall()]

    with connection.cursor() as cursor:
        texts = [] if most < COMPARED else found(sample, "rowid", *_where(alternatives, _has))
        if len(texts) == most:
            return texts
        if len(texts) >= FREQUENT:
            return found(table, "rowid", *_where(alternatives, _has))
        return found(table, "rowid + 0", *_where(alternatives, _by_pieces))


def _where(alternatives: Alternatives, has: Callable[[str], Statement]) -> Statement:
    """The condition that any alternative occurs, and its parameters."""
    parameters: list[Any] = []

    def stands(term: str) -> str:
        parts = [has(form) for form in _forms(term)]
        parameters.extend(value for _, values in parts for value in values)
        return f"({' OR '.join(condition for condition, _ in parts)})"

    return " OR ".join(f"({' AND '.join(map(stands, terms))})" for terms in alternatives), parameters


def _has(form: str) -> Statement:
    return "search_text LIKE %s", [_pattern(form)]


def _by_pieces(form: str) -> Statement:
    """The same for the index: of a long word every third trigram is enough, for what they find is looked at anyway."""
    if form == f"{MARK}{form.strip(MARK)}{MARK}":
        # Letters and marks of a whole line stand in very many texts, in one line or another.
        return f"{LINES} @> %s", [[form.strip(MARK).replace(" ", SPACE)]]
    if len(form) <= LONG or " " in form:
        return _has(form)
    pieces = [_pattern(piece) for piece in _pieces(form)]
    conditions = [*["search_text LIKE %s"] * len(pieces), "strpos(search_text, %s) > 0"]
    return " AND ".join(conditions), [*pieces, form]


def _pattern(form: str) -> str:
    return f"%{connection.ops.prep_for_like_query(form.replace(' ', SPACE))}%"


# --- The trigram tables of SQLite ---


def _expression(alternatives: Alternatives) -> str:
    """What to ask a trigram table; nothing if it cannot narrow every alternative."""
    found = [" AND ".join(filter(None, map(_either, terms))) for terms in alternatives]
    return " OR ".join(f"({terms})" for terms in found) if all(found) else ""


def _either(term: str) -> str:
    forms = _forms(term)
    if min(map(len, forms)) < TRIGRAM:
        return ""
    quoted = (form.replace('"', '""') for form in forms)
    return "({})".format(" OR ".join(f'"{form}"' for form in quoted))


def _newer(alternatives: Alternatives, kinds: Sequence[Kind], expression: str, most: int) -> Q:
    """The newest that match, at most so many, and so few that their texts may be read."""
    are_apart = any(len(terms) > 1 for terms in alternatives)
    is_long = all(len(term) >= TRIGRAM for terms in alternatives for term in terms)
    if len(kinds) == 1 and are_apart and is_long:
        return _listed(_apart(kinds[0], alternatives, most))
    return _listed(_select(kinds, expression, most))


def _select(kinds: Sequence[Kind], expression: str, most: int) -> Statement:
    """A statement for the newest keys, and its parameters."""
    parts = (f"SELECT rowid FROM {name} WHERE {name} MATCH %s" for name in map(index_of, kinds))  # noqa: S608
    return f"{' UNION ALL '.join(parts)} ORDER BY rowid DESC LIMIT %s", [*[expression] * len(kinds), most]


def _apart(kind: Kind, alternatives: Alternatives, most: int) -> Statement:
    """The same for words that may stand apart: the table tells where all their pieces are, the text whether they are.

    Comparing in the table where each three letters of each word stand takes longer than to read the texts it leaves.
    """
    table = index_of(kind)
    pieces = " OR ".join(f"({' AND '.join(map(_matches, terms))})" for terms in alternatives)
    occurs = " OR ".join(
        f"({' AND '.join(['instr(registry_record.search_text, %s)'] * len(terms))})" for terms in alternatives
    )
    words = [term for terms in alternatives for term in terms]
    statement = (
        f"SELECT id FROM {table} CROSS JOIN registry_record ON id = {table}.rowid"  # noqa: S608
        f" WHERE {table} MATCH %s AND ({occurs}) ORDER BY {table}.rowid DESC LIMIT %s"
    )
    return statement, [pieces, *words, most]


def _matches(term: str) -> str:
    return " AND ".join('"{}"'.format(piece.replace('"', '""')) for piece in _pieces(term))


def _few(kinds: Sequence[Kind], expression: str) -> list[int] | None:
    """The keys of all that match; nothing if they are too many."""
    with connection.cursor() as cursor:
        cursor.execute(*_select(kinds, expression, FEW + 1))
        keys = [key for (key,) in cursor.fetchall()]
    return keys if len(keys) <= FEW else None
