"""Finds records by what staff type, best match first: the name, a whole line, the beginning of a line, any part."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q, QuerySet, Window
from django.db.models.functions import Lower, RowNumber

from portal.registry.models import NAMED_KINDS, Kind, Record
from portal.registry.query import FIRST_GROUP, MARK, Alternatives, Query, parse_query
from portal.registry.search import postgres, sqlite
from portal.registry.search.backend import MAX_BY_KEYS, MIN_COMPARED, Backend, Texts, by_keys
from portal.registry.search.texts import FORMS, TRIGRAM

# Kinds that are also found by their borrower's name, if the search is limited to them.
OWNED: Final = (Kind.APPLICATION, Kind.LOAN, Kind.LINE, Kind.REPAYMENT)
# Kinds whose texts contain IDs of other records or offers.
MENTIONING: Final = (Kind.APPLICATION, Kind.LOAN)
# The most borrowers whose accounts are included.
MAX_OWNERS: Final = 200
# An ID that begins with the typed text ranks like a line that does.
PREFIX_RANK: Final = FORMS.index(f"{MARK}{{}}") + 1
_HEX_DIGITS: Final = "0123456789abcdefg"
# Keys of records with their ranks; 0 is best.
Ranks = dict[int, int]


class FilteredRecords(NamedTuple):
    """The matching records, and the same for counting, perhaps faster and only up to a limit."""

    found: QuerySet[Record]
    counted: QuerySet[Record]


def backend_of(database: BaseDatabaseWrapper) -> Backend:
    """The search index of a database."""
    return postgres if database.vendor == "postgresql" else sqlite


def filter_by_text(records: QuerySet[Record], text: str) -> QuerySet[Record]:
    """Filter records by a text without operators, all of which must occur."""
    return filter_records(records, parse_query(text, operators=False)).found


def filter_records(
    records: QuerySet[Record],
    query: Query,
    kinds: Sequence[Kind] = NAMED_KINDS,
    *,
    counted: int = MAX_BY_KEYS,
    besides: Q | None = None,
) -> FilteredRecords:
    """Filter active records, all of these kinds, by a query; those that match ``besides`` stay too."""
    others = (besides or Q()) | _with_id(kinds, query)
    if query.value is not None:
        others |= _with_value(query.value, kinds)
    whole, newest = Q(), Q()
    if query.alternatives:
        backend = backend_of(connection)
        matches = backend.all_by_keys(kinds, query.alternatives) if others else None
        whole, newest = (
            (matches, matches) if matches else backend.containing(kinds, query.alternatives, counted)
        )
    records = records.filter(query.conditions)
    if query.is_limited:
        records = records.filter(kind__in=query.kinds)
    found = records.filter(others | whole)
    return FilteredRecords(found, found if query.conditions else records.filter(others | newest))


def owned_by_borrowers(query: Query, kinds: Sequence[Kind]) -> tuple[Q, str]:
    """The records of these kinds that belong to borrowers found by the text, and a sentence if those are too many."""
    uuids, problem = matching_owners(query)
    owned = Record.objects.filter(borrower_uuid__in=uuids, kind__in=kinds)
    return (Q(pk__in=owned.values("pk")) if uuids else Q()), problem


def matching_owners(query: Query) -> tuple[list[str], str]:
    """The IDs of the borrowers that match the words, and a sentence instead if those are too many."""
    if not query.alternatives:
        return [], ""
    newest = backend_of(connection).newest_containing(Kind.BORROWER, query.alternatives, MAX_OWNERS + 1)
    owners = Record.objects.filter(_with_id([Kind.BORROWER], query) | newest)
    uuids = list(owners.values_list("uuid", flat=True)[: MAX_OWNERS + 1])
    if len(uuids) > MAX_OWNERS:
        return [], f"More than {MAX_OWNERS} borrowers match. Enter more of the name."
    return uuids, ""


def begins_with(column: str, start: str) -> Q:
    """The condition that an ID begins with these hexadecimal digits.

    The range reads an index on every database. It ends before the first dash, which databases order differently.
    """
    first = start[:FIRST_GROUP]
    following = first[:-1] + _HEX_DIGITS[_HEX_DIGITS.index(first[-1]) + 1]
    return Q(**{f"{column}__gte": first, f"{column}__lt": following, f"{column}__startswith": start})


def rank_matches(kinds: Iterable[Kind], query: Query, limit: int, *, most: int = 0) -> dict[Kind, Ranks]:
    """The keys of each kind's matches with their ranks.

    The first ``limit`` are the best of all, best first. Up to ``most`` are returned for counting.
    """
    kinds = [] if query.is_empty else [kind for kind in kinds if kind in query.kinds]
    most = max(limit, most)
    if not query.has_text:
        newest = {kind: _filter_by_conditions(kind, query).order_by(query.order, "-id") for kind in kinds}
        return {
            kind: dict.fromkeys(keys, 0) for kind, records in newest.items() if (keys := _keys(records, most))
        }
    by_text = _by_text([kind for kind in kinds if _has_words(kind, query)], query, limit, most)
    by_id = _by_id_or_value(kinds, query, most)
    owned = _owned_by_matches(kinds, query)
    found = {}
    for kind in kinds:
        own, texts = by_id[kind], by_text.get(kind, {})
        better = {key: rank for key, rank in texts.items() if key not in own or rank < own[key]}
        # Ties keep their group, so that the order never depends on ``most``.
        ranks = {key: rank for key, rank in own.items() if key not in better} | better
        if owned and kind in OWNED:
            for key in _keys(_filter_by_conditions(kind, query).filter(owned).order_by("-id"), most):
                ranks.setdefault(key, len(FORMS) + 2)
        if ranks:
            found[kind] = {key: ranks[key] for key in sorted(ranks, key=ranks.__getitem__)[:most]}
    return found


def _filter_by_conditions(kind: Kind, query: Query) -> QuerySet[Record]:
    """The records of a kind that meet the query's conditions, ignoring its text."""
    return Record.objects.filter(query.conditions, kind=kind, archived_at__isnull=True)


def _owned_by_matches(kinds: Iterable[Kind], query: Query) -> Q:
    """The records that belong to borrowers found by the text; none unless the query names their kinds."""
    owned = [kind for kind in kinds if kind in OWNED]
    return owned_by_borrowers(query, owned)[0] if query.is_limited and owned else Q()


def _has_words(kind: Kind, query: Query) -> bool:
    """Whether a kind's texts are searched; only some contain IDs."""
    return bool(query.alternatives) and (kind in MENTIONING or not query.uuids)


def _keys(records: QuerySet[Record], limit: int) -> list[int]:
    return list(records.values_list("pk", flat=True)[:limit])


def _with_value(value: Q, kinds: Sequence[Kind]) -> Q:
    of_kinds = (Q(value, kind=kind, archived_at__isnull=True) for kind in kinds if kind in OWNED)
    equal = reduce(or_, of_kinds, Q(pk__in=[]))
    return by_keys(_keys(Record.objects.filter(equal), MAX_BY_KEYS + 1)) or equal


def _with_id(kinds: Sequence[Kind], query: Query) -> Q:
    """The condition that a record has a typed ID or one that begins with it; without IDs it matches nothing.

    The keys are looked up separately, because with other conditions a database might choose another index.
    """
    prefix = backend_of(connection).uuid_prefix
    starts = [Q(uuid__in=query.uuids)] if query.uuids else [*map(prefix, query.starts)]
    if not starts:
        return Q()
    given = Q(reduce(or_, starts), kind__in=kinds)
    keys = _keys(Record.objects.filter(given), MAX_BY_KEYS + 1)
    return (by_keys(keys) or given) & Q(archived_at__isnull=True) if keys else Q()


def _by_id_or_value(kinds: Sequence[Kind], query: Query, limit: int) -> dict[Kind, Ranks]:
    """The newest of each kind with the typed ID, ID prefix, amount or day."""
    found: dict[Kind, Ranks] = {kind: {} for kind in kinds}
    if query.value is not None:  # Borrowers and people have no such value.
        for kind in set(kinds) & set(OWNED):
            keys = _keys(_filter_by_conditions(kind, query).filter(query.value).order_by("-id"), limit)
            found[kind] = dict.fromkeys(keys, 0)
    if condition := _with_id(kinds, query):
        place = Window(RowNumber(), partition_by="kind", order_by="-id")
        records = Record.objects.filter(query.conditions, condition).annotate(place=place)
        for kind_value, key in records.filter(place__lte=limit).order_by("-id").values_list("kind", "pk"):
            found[Kind(kind_value)].setdefault(key, 0 if query.uuids else PREFIX_RANK)
    return found


def _by_text(kinds: Sequence[Kind], query: Query, limit: int, most: int) -> dict[Kind, Ranks]:
    """Matches of the text with their ranks, best first and newest first among ties.

    The newest matches are compared first, and perhaps the newest with the words exactly as typed. If a kind has more,
    the index is queried rank by rank until there are enough.
    """
    backend = backend_of(connection)
    enough = max(limit, MIN_COMPARED, most if query.conditions and backend.FETCHES_ALL_AT_ONCE else 0)
    phrases = [" ".join(terms) for terms in query.alternatives]
    ranks: dict[Kind, Ranks] = {kind: {} for kind in kinds}
    moments: dict[int, Any] = {}

    def compare(found: Texts) -> None:
        for kind, texts in found.items():
            ranks[kind].update((key, _rank(text, phrases)) for key, text, _ in texts)
            moments.update((key, moment) for key, _, moment in texts)

    texts, numerous = _texts(kinds, query, query.alternatives, enough, most, best_first=True)
    compare(texts)
    kinds = numerous
    # A short word counts only at the beginning of a word, which a phrase can't express.
    as_typed = tuple((phrase,) for phrase in phrases)
    are_long = all(len(term) >= TRIGRAM for terms in query.alternatives for term in terms)
    if backend.FINDS_PHRASES_SOONER and as_typed != query.alternatives and are_long:
        texts, kinds = _texts(kinds, query, as_typed, enough)
        compare(texts)
    for rank, form in enumerate(FORMS, 1):
        kinds = [kind for kind in kinds if sum(one <= rank for one in ranks[kind].values()) < limit]
        if rank == 1:
            compare(_borrowers_named(kinds, query, phrases, limit))
        else:
            compare(_texts(kinds, query, tuple((form.format(one),) for one in phrases), limit)[0])
    found = {}
    for kind, of_kind in ranks.items():
        newest_first = sorted(of_kind, key=moments.__getitem__, reverse=True)
        found[kind] = {key: of_kind[key] for key in sorted(newest_first, key=of_kind.__getitem__)}
    if most > enough:
        for kind, keys in _matching_keys(numerous, query, most).items():
            found[kind] |= {key: len(FORMS) + 1 for key in keys if key not in found[kind]}
    return found


def _rank(text: str, phrases: Sequence[str]) -> int:
    forms = (
        rank for rank, form in enumerate(FORMS, 1) if any(form.format(phrase) in text for phrase in phrases)
    )
    return next(forms, len(FORMS) + 1)


def _texts(
    kinds: Sequence[Kind],
    query: Query,
    alternatives: Alternatives,
    enough: int,
    most: int = 0,
    *,
    best_first: bool = False,
) -> tuple[Texts, list[Kind]]:
    """The newest matching texts of each kind, and the kinds that may have better ones."""
    if not query.conditions:
        return backend_of(connection).newest_texts(kinds, alternatives, enough, most, best_first=best_first)
    texts = {kind: _texts_of(_with_text(kind, query, alternatives, enough), query, enough) for kind in kinds}
    return texts, [kind for kind in kinds if len(texts[kind]) >= enough]


def _with_text(kind: Kind, query: Query, alternatives: Alternatives, limit: int) -> QuerySet[Record]:
    """The records of a kind that meet the conditions and match any alternative."""
    backend = backend_of(connection)
    texts = backend.all_by_keys([kind], alternatives) or backend.containing([kind], alternatives, limit)[0]
    return Record.objects.filter(query.conditions, texts)


def _texts_of(records: QuerySet[Record], query: Query, limit: int) -> list[tuple[int, str, Any]]:
    """The newest of the records; with conditions, the last changed, because that is their indexes' order."""
    if not query.conditions:
        rows = records.order_by("-id").values_list("pk", "search_text")
        return [(key, text, key) for key, text in rows[:limit]]
    changed = records.order_by("-updated_at", "-id").values_list("pk", "search_text", "updated_at")
    return [(key, text, (moment, key)) for key, text, moment in changed[:limit]]


def _borrowers_named(kinds: Sequence[Kind], query: Query, names: Sequence[str], limit: int) -> Texts:
    """The newest borrowers with exactly these names, by the index of their list.

    Other kinds are found by the line with their name, if they are among the newest with it.
    """
    if Kind.BORROWER not in kinds:
        return {}
    named = Q(name__in=names, kind=Kind.BORROWER, archived_at__isnull=True)
    records = Record.objects.alias(name=Lower("label"))
    if query.conditions:
        named = by_keys(_keys(records.filter(named), MAX_BY_KEYS + 1)) or named
    return {Kind.BORROWER: _texts_of(records.filter(query.conditions, named), query, limit)}


def _matching_keys(kinds: Sequence[Kind], query: Query, limit: int) -> Mapping[Kind, Iterable[int]]:
    """The keys of each kind's text matches, up to a limit, in no particular order."""
    if not query.conditions:
        return backend_of(connection).matching_keys(kinds, query.alternatives, limit)
    return {kind: _keys(_with_text(kind, query, query.alternatives, limit), limit) for kind in kinds}
