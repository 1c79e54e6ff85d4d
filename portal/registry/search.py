"""Finds known records by what staff have in hand; best first: what it is called, a whole line, a beginning, any part.

A record's search text holds one thing a line, between two marks, and a further mark stands before what it is called: so
where a line or a name begins and ends can be looked for like any other letter. Hides the two indexes, which both are a
table of texts for each kind: of trigrams on SQLite, with an index of trigrams on PostgreSQL.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from itertools import chain
from operator import and_, or_
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.models import Q, QuerySet, Window
from django.db.models.expressions import RawSQL
from django.db.models.functions import Lower, RowNumber

from portal.registry.models import SEARCHED_KINDS, Kind, Record
from portal.registry.query import MAX_LENGTH, Alternatives, Query, fold, read
from portal.registry.rows import starting
from portal.registry.search_index import FORMS, MARK, TRIGRAM, UNMARKED, forms_of, index_of, pieces_of
from portal.registry.search_postgres import COMPARED, Statement, Texts, by_index, keys_of, statement_of

# Up to so many matches are fetched by their keys; where there are more, going through the list finds a page sooner.
FEW: Final = 5_000
# Kinds that are found by the name of their borrower too, where somebody asks for them alone.
OWNED: Final = (Kind.APPLICATION, Kind.LOAN, Kind.LINE, Kind.REPAYMENT)
# Kinds whose text names other records, or bank accounts, by identifiers.
MENTIONING: Final = (Kind.LOAN, Kind.REPAYMENT)
# Of so many borrowers at most a list shows what is theirs.
OWNERS: Final = 200
# How good a match an identifier is that begins with what was typed: as any line is that does.
BEGINS: Final = FORMS.index(f"{MARK}{{}}") + 1
# Keys of records, each with how good a match it is.
Ranks = dict[int, int]


def search_text(called: str | None = None, *others: str | None) -> str:
    """What a record can be found by, folded, a line each: first what it is called. Its identifier is found by itself.

    No line is longer than what is read of a typed text, nor than PostgreSQL's index of lines can hold.
    """
    name, *rest = (
        " ".join(fold(part or "").translate(UNMARKED).split())[:MAX_LENGTH] for part in (called, *others)
    )
    return "".join([MARK if name else "", *(f"{MARK}{line}{MARK}\n" for line in (name, *rest) if line)])


def lines_of(record: Record) -> list[str]:
    """The lines by which a record can be found."""
    return [line for line in record.search_text.replace("\n", MARK).split(MARK) if line]


class Narrowed(NamedTuple):
    """Those of some records that were asked for, and as many of them as are to be counted, in a quicker way."""

    found: QuerySet[Record]
    counted: QuerySet[Record]


def matching(records: QuerySet[Record], text: str) -> QuerySet[Record]:
    """Those of the records in which all of the text occurs: what is pasted is recognised, operators are not."""
    return narrowed(records, read(text, operators=False)).found


def narrowed(
    records: QuerySet[Record],
    query: Query,
    kinds: Sequence[Kind] = SEARCHED_KINDS,
    *,
    counted: int = FEW,
    besides: Q | None = None,
) -> Narrowed:
    """Those of the records, which are all of these kinds, that the query asks for. Archived ones are never found.

    So many of them can be counted in the quicker way, provided that nothing else narrows the records. What the text
    does not find ``besides`` may.
    """
    others = (besides or Q()) | _identified(kinds, query)
    if query.amount is not None:
        others |= _of_amount(query.amount, kinds)
    whole, newest = Q(), Q()
    if query.alternatives:
        few = _few_of_texts(kinds, query.alternatives) if others else None
        whole, newest = (few, few) if few else _containing(query.alternatives, kinds, counted)
    records = records.filter(query.conditions)
    if query.is_limited:
        records = records.filter(kind__in=query.kinds)
    found = records.filter(others | whole)
    return Narrowed(found, found if query.conditions else records.filter(others | newest))


def _few_of_texts(kinds: Sequence[Kind], alternatives: Alternatives) -> Q | None:
    """All in which any alternative occurs, if they are few; SQLite looks for itself."""
    if connection.vendor == "sqlite":
        return None
    return _by_keys([*chain(*keys_of(kinds, alternatives, FEW + 1).values())])


def _of_amount(amount: Decimal, kinds: Sequence[Kind]) -> Q:
    equal = Q(amount=amount, kind__in=kinds, archived_at__isnull=True)
    return _by_keys(_keys(Record.objects.filter(equal), FEW + 1)) or equal


def _by_keys(keys: Sequence[int]) -> Q | None:
    """Those with the keys, if they are few: beside another condition the index that found them may not be used.

    Of no keys it is a condition, too, which nothing fulfils.
    """
    return Q(pk__in=keys) if len(keys) <= FEW else None


def of_borrowers(query: Query, kinds: Sequence[Kind]) -> tuple[Q, str]:
    """What of these kinds belongs to the borrowers whom the text finds, and a word where they are too many."""
    if not query.alternatives:
        return Q(), ""
    named = _identified([Kind.BORROWER], query)
    owners = Record.objects.filter(named | _newest_containing(query.alternatives, Kind.BORROWER, OWNERS + 1))
    uuids = list(owners.values_list("uuid", flat=True)[: OWNERS + 1])
    if len(uuids) > OWNERS:
        return Q(), f"More than {OWNERS} borrowers match; write more of a name to see what is theirs."
    theirs = Record.objects.filter(borrower_uuid__in=uuids, kind__in=kinds)
    return (Q(pk__in=theirs.values("pk")) if uuids else Q()), ""


def ranked(kinds: Iterable[Kind], query: Query, limit: int, *, most: int = 0) -> dict[Kind, Ranks]:
    """For each kind that has any the keys of its matches, each with its rank: 0 is best.

    The first ``limit`` are the best of all, best first. There may be ``most`` of them, so that they can be counted.
    """
    kinds = [] if query.is_empty else [kind for kind in kinds if kind in query.kinds]
    most = max(limit, most)
    if not query.has_text:
        newest = {kind: _known(kind, query).order_by(query.order, "-id") for kind in kinds}
        return {
            kind: dict.fromkeys(keys, 0) for kind, records in newest.items() if (keys := _keys(records, most))
        }
    by_text = _by_text([kind for kind in kinds if _has_words(kind, query)], query, limit, most)
    themselves = _themselves(kinds, query, most)
    theirs = _theirs(kinds, query)
    found = {}
    for kind in kinds:
        own, texts = themselves[kind], by_text.get(kind, {})
        better = {key: rank for key, rank in texts.items() if key not in own or rank < own[key]}
        # Each stands among those that are as good for the same reason: however many are asked for, their order is one.
        ranks = {key: rank for key, rank in own.items() if key not in better} | better
        if theirs and kind in OWNED:
            for key in _keys(_known(kind, query).filter(theirs).order_by("-id"), most):
                ranks.setdefault(key, len(FORMS) + 2)
        if ranks:
            found[kind] = {key: ranks[key] for key in sorted(ranks, key=ranks.__getitem__)[:most]}
    return found


def _known(kind: Kind, query: Query) -> QuerySet[Record]:
    """Those of a kind that fulfil the query's conditions, whatever its text."""
    return Record.objects.filter(query.conditions, kind=kind, archived_at__isnull=True)


def _theirs(kinds: Iterable[Kind], query: Query) -> Q:
    """What of the kinds belongs to the borrowers whom the text finds; nothing unless kinds were asked for."""
    owned = [kind for kind in kinds if kind in OWNED]
    return of_borrowers(query, owned)[0] if query.is_limited and owned else Q()


def _has_words(kind: Kind, query: Query) -> bool:
    """Whether the texts of a kind are to be searched: an identifier stands in those of some kinds only."""
    return bool(query.alternatives) and (kind in MENTIONING or not query.uuids)


def _keys(records: QuerySet[Record], limit: int) -> list[int]:
    return list(records.values_list("pk", flat=True)[:limit])


def _themselves(kinds: Sequence[Kind], query: Query, most: int) -> dict[Kind, Ranks]:
    """The newest of each kind for which an identifier, its beginning or an amount stands."""
    found: dict[Kind, Ranks] = {kind: {} for kind in kinds}
    if query.amount is not None:  # Neither borrowers nor people have one.
        for kind in set(kinds) & set(OWNED):
            keys = _keys(_known(kind, query).filter(amount=query.amount).order_by("-id"), most)
            found[kind] = dict.fromkeys(keys, 0)
    if named := _identified(kinds, query):
        place = Window(RowNumber(), partition_by="kind", order_by="-id")
        newest = Record.objects.filter(query.conditions, named).annotate(place=place).filter(place__lte=most)
        for of_kind, key in newest.order_by("-id").values_list("kind", "pk"):
            found[Kind(of_kind)].setdefault(key, 0 if query.uuids else BEGINS)
    return found


def _identified(kinds: Sequence[Kind], query: Query) -> Q:
    """The condition that it has an identifier which was given, or one that begins with what was; of none nothing.

    Their keys are looked for with nothing else besides: no other index then looks more promising.
    """
    starts = [Q(uuid__in=query.uuids)] if query.uuids else [*map(starting, query.starts)]
    if not starts:
        return Q()
    given = Q(reduce(or_, starts), kind__in=kinds)
    keys = _keys(Record.objects.filter(given), FEW + 1)
    return (_by_keys(keys) or given) & Q(archived_at__isnull=True) if keys else Q()


def _by_text(kinds: Sequence[Kind], query: Query, limit: int, most: int) -> dict[Kind, Ranks]:
    """Matches of the text with their ranks, best first, among equals the newest first.

    The newest matches are looked at, on SQLite then the newest in which the words stand as they were typed. Of kinds
    that have more, the index is asked for each rank, until there are enough.
    """
    # With conditions, few take PostgreSQL as long as many: all that is to be counted is asked for at once.
    is_at_once = query.conditions and connection.vendor == "postgresql"
    enough = max(limit, COMPARED, most if is_at_once else 0)
    phrases = [" ".join(terms) for terms in query.alternatives]
    ranks: dict[Kind, Ranks] = {kind: {} for kind in kinds}
    moments: dict[int, Any] = {}

    def look_at(found: Texts) -> None:
        for kind, texts in found.items():
            ranks[kind].update((key, _rank(text, phrases)) for key, text, _ in texts)
            moments.update((key, moment) for key, _, moment in texts)

    texts, numerous = _first_texts(kinds, query, query.alternatives, enough, most)
    look_at(texts)
    kinds = numerous
    # SQLite finds a whole line sooner among the newest; to PostgreSQL's index of lines it makes no difference. A short
    # word counts only where it begins one, which a phrase does not tell.
    as_typed = tuple((phrase,) for phrase in phrases)
    if connection.vendor == "sqlite" and as_typed != query.alternatives and _is_long(query.alternatives):
        texts = _newest_texts(kinds, query, as_typed, enough)
        look_at(texts)
        kinds = [kind for kind in kinds if len(texts[kind]) >= enough]
    for rank, form in enumerate(FORMS, 1):
        kinds = [kind for kind in kinds if sum(one <= rank for one in ranks[kind].values()) < limit]
        if rank == 1:
            look_at(_called(kinds, query, phrases, limit))
        else:
            look_at(_newest_texts(kinds, query, tuple((form.format(one),) for one in phrases), limit))
    found = {}
    for kind, of_kind in ranks.items():
        newest_first = sorted(of_kind, key=moments.__getitem__, reverse=True)
        found[kind] = {key: of_kind[key] for key in sorted(newest_first, key=of_kind.__getitem__)}
    if most > enough:
        for kind, keys in _matching_keys(numerous, query, most).items():
            found[kind] |= {key: len(FORMS) + 1 for key in keys if key not in found[kind]}
    return found


def _first_texts(
    kinds: Sequence[Kind], query: Query, alternatives: Alternatives, enough: int, most: int
) -> tuple[Texts, list[Kind]]:
    """Texts of each kind that match, and the kinds of which there may be better ones."""
    if _is_by_index(query):
        return by_index(kinds, alternatives, enough, most, best_first=True)
    texts = _newest_texts(kinds, query, alternatives, enough)
    return texts, [kind for kind in kinds if len(texts[kind]) >= enough]


def _is_by_index(query: Query) -> bool:
    """Whether PostgreSQL's tables alone can answer: they know nothing but the texts."""
    return connection.vendor == "postgresql" and not query.conditions


def _called(kinds: Sequence[Kind], query: Query, names: Sequence[str], most: int) -> Texts:
    """The newest borrowers of exactly these names, by the index that orders their list.

    What else has a name is found by its line as well, if it is among the newest of that line: its letters stand in too
    many texts to be looked for twice.
    """
    if Kind.BORROWER not in kinds:
        return {}
    called = Q(name__in=names, kind=Kind.BORROWER, archived_at__isnull=True)
    records = Record.objects.alias(name=Lower("label"))
    if query.conditions:
        called = _by_keys(_keys(records.filter(called), FEW + 1)) or called
    return {Kind.BORROWER: _told(query, records.filter(query.conditions, called), most)}


def _with_text(kind: Kind, query: Query, alternatives: Alternatives, most: int) -> QuerySet[Record]:
    """Those of a kind in which any alternative occurs; provided that nothing else narrows them, only the newest."""
    # The index of a kind holds nothing else: were the kind asked for besides, SQLite might walk all of it.
    if not query.conditions:
        return Record.objects.filter(_newest_containing(alternatives, kind, most))
    texts = _few_of_texts([kind], alternatives) or _containing(alternatives, [kind], most)[0]
    return Record.objects.filter(query.conditions, texts)


def _newest_texts(kinds: Sequence[Kind], query: Query, alternatives: Alternatives, most: int) -> Texts:
    """The keys of the newest of them with their texts, of each kind."""
    if _is_by_index(query):
        return by_index(kinds, alternatives, most)[0]
    return {kind: _told(query, _with_text(kind, query, alternatives, most), most) for kind in kinds}


def _told(query: Query, records: QuerySet[Record], most: int) -> list[tuple[int, str, Any]]:
    """The newest of the records, which are the last changed where an index of conditions is in that order."""
    if not query.conditions:
        return [
            (key, text, key) for key, text in records.order_by("-id").values_list("pk", "search_text")[:most]
        ]
    found = records.order_by("-updated_at", "-id").values_list("pk", "search_text", "updated_at")
    return [(key, text, (moment, key)) for key, text, moment in found[:most]]


def _matching_keys(kinds: Sequence[Kind], query: Query, most: int) -> Mapping[Kind, Iterable[int]]:
    """The keys of each kind's matches of the text: at most so many, in no order."""
    if _is_by_index(query):
        return keys_of(kinds, query.alternatives, most)
    return {kind: _keys(_with_text(kind, query, query.alternatives, most), most) for kind in kinds}


def _rank(text: str, phrases: Sequence[str]) -> int:
    forms = (
        rank for rank, form in enumerate(FORMS, 1) if any(form.format(phrase) in text for phrase in phrases)
    )
    return next(forms, len(FORMS) + 1)


def _containing(alternatives: Alternatives, kinds: Sequence[Kind], most: int) -> tuple[Q, Q]:
    """The condition that any alternative occurs, and that it is one of the newest so many in which any does."""
    living = reduce(or_, (Q(kind=kind, archived_at__isnull=True) for kind in kinds))
    if connection.vendor == "postgresql":
        whole = living & _listed(statement_of(kinds, alternatives, None))
        return whole, _listed(statement_of(kinds, alternatives, most))
    plain = living & reduce(or_, (reduce(and_, map(_occurs, terms)) for terms in alternatives))
    if not (expression := _expression(alternatives)):
        return plain, plain
    is_whole = _is_whole(alternatives)
    if few := _few(kinds, expression):
        few = few if is_whole else few & plain
        return few, few
    return plain, _listed(_select(kinds, expression, most)) if is_whole else plain


def _newest_containing(alternatives: Alternatives, kind: Kind, most: int) -> Q:
    """The condition that it is one of the newest of a kind in which any alternative occurs."""
    if connection.vendor == "postgresql" and most < FEW:
        texts, _ = by_index([kind], alternatives, most)
        return Q(pk__in=[key for key, _, _ in texts[kind]])
    if connection.vendor == "sqlite" and most < FEW and _is_whole(alternatives):
        return _newer(alternatives, kind, _expression(alternatives), most)
    _, newest = _containing(alternatives, [kind], most)
    return newest


def _is_whole(alternatives: Alternatives) -> bool:
    """Whether an index of trigrams alone can tell."""
    return all(len(form) >= TRIGRAM for terms in alternatives for term in terms for form in forms_of(term))


def _is_long(alternatives: Alternatives) -> bool:
    """Whether every word counts wherever it stands, not only where it begins one."""
    return all(len(term) >= TRIGRAM for terms in alternatives for term in terms)


def _occurs(term: str) -> Q:
    return reduce(or_, (Q(search_text__contains=form) for form in forms_of(term)))


def _listed(statement: Statement) -> Q:
    return Q(pk__in=RawSQL(*statement))  # noqa: S611 - names of kinds and parameters only


# --- The trigram tables of SQLite ---


def _expression(alternatives: Alternatives) -> str:
    """What to ask a trigram table; nothing if it cannot narrow every alternative."""
    found = [" AND ".join(filter(None, map(_either, terms))) for terms in alternatives]
    return " OR ".join(f"({terms})" for terms in found) if all(found) else ""


def _either(term: str) -> str:
    forms = forms_of(term)
    if min(map(len, forms)) < TRIGRAM:
        return ""
    quoted = (form.replace('"', '""') for form in forms)
    return "({})".format(" OR ".join(f'"{form}"' for form in quoted))


def _newer(alternatives: Alternatives, kind: Kind, expression: str, most: int) -> Q:
    """The newest that match, at most so many, and so few that their texts may be read."""
    are_apart = any(len(terms) > 1 for terms in alternatives)
    if are_apart and _is_long(alternatives):
        return _listed(_apart(kind, alternatives, most))
    return _listed(_select([kind], expression, most))


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
    return " AND ".join('"{}"'.format(piece.replace('"', '""')) for piece in pieces_of(term))


def _few(kinds: Sequence[Kind], expression: str) -> Q | None:
    """All that match, if they are few."""
    with connection.cursor() as cursor:
        cursor.execute(*_select(kinds, expression, FEW + 1))
        return _by_keys([key for (key,) in cursor.fetchall()])
