"""Finds records by what staff type, in tiers, best first; each is read only if those before it left room.

Borrowers and key people are found by their text. Accounts and applications are found by IDs, amounts, days, and
through their borrower if the search is limited to them. Repayments have a module of their own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import reduce
from itertools import islice
from operator import and_, or_
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db.models import F, Model, Q, QuerySet

from portal.core.folding import folded_key
from portal.records.models import LISTED, NAMED_KINDS, PEOPLE, RECORDED_KINDS, SEARCHED_KINDS, Borrower, Kind
from portal.records.query import FIRST_GROUP, Query, parse_query
from portal.records.rows import records_of
from servicing.words import normal_word

if TYPE_CHECKING:
    from django_stubs_ext import ValuesQuerySet

# Kinds that are also found by their borrower, if the search is limited to them.
OWNED: Final = (Kind.APPLICATION, Kind.LOAN, Kind.LINE)
ACCOUNTS: Final = (Kind.LOAN, Kind.LINE)
# The most borrowers whose accounts are included.
MAX_OWNERS: Final = 200
# Shorter words match only the beginning of a word.
MIN_ANYWHERE: Final = 3
# What operators are about, by the names of other kinds.
ALIASES: Final = {
    Kind.APPLICATION: {"status": F("decision")},
    Kind.BORROWER: {"is_past_due": F("is_past_due"), "status": F("decision")},
}
# The columns that are searched for a status or a product.
SPELLED: Final = {Kind.APPLICATION: ("decision", "product"), Kind.LOAN: ("status", "product")}
_HEX_DIGITS: Final = "0123456789abcdefg"
_Model = TypeVar("_Model", bound=Model)


class Rank(IntEnum):
    """How well a record matches."""

    EXACT = 0
    NAME = 1
    BEGINNING = 2
    WORDS = 3
    OWNER = 4


# The conditions of each tier, any of which is enough. Each is read by an index of its own.
Tiers = dict[Rank, list[Q]]


def rank_matches(kinds: Iterable[Kind], query: Query, limit: int) -> dict[Kind, dict[int, Rank]]:
    """The keys of each kind's best matches with their ranks, best first, and newest first among equals."""
    kinds = [] if query.is_empty else _named(kinds, query)
    is_owned = query.is_limited and any(kind in OWNED for kind in kinds)
    owners = matching_owners(query)[0] if is_owned else []
    found = {kind: _ranks(kind, query, owners, limit) for kind in kinds}
    return {kind: ranks for kind, ranks in found.items() if ranks}


def matching(kinds: Iterable[Kind], query: Query, owners: Sequence[str] = ()) -> Q:
    """The condition that a record of these kinds, all in one table, matches in any tier, or has one of these owners."""
    if query.is_empty:
        return Q()
    kinds = _named(kinds, query)
    if not query.has_text:
        if kinds and all(kind in RECORDED_KINDS for kind in kinds):
            return query.conditions & Q(kind__in=kinds)
        return reduce(or_, (Q(pk__in=_records(kind, query).values("pk")) for kind in kinds), Q(pk__in=[]))
    parts = [
        keys_of(kind, query, condition)
        for kind in kinds
        for rank, conditions in _tiers(kind, query, owners).items()
        if rank != Rank.BEGINNING  # Whatever begins with the text has all of its words.
        for condition in conditions
    ]
    return Q(pk__in=union_of(parts)) if parts else Q(pk__in=[])


def matching_owners(query: Query) -> tuple[list[str], str]:
    """The IDs of the borrowers that match the words, and a sentence instead if those are too many."""
    if not query.alternatives:
        return [], ""
    words = replace(query, conditions=Q(), kinds=tuple(SEARCHED_KINDS), amount=None, day=None)
    found = Borrower.objects.filter(matching([Kind.BORROWER], words)).values_list("uuid", flat=True)
    uuids = list(found[: MAX_OWNERS + 1])
    if len(uuids) > MAX_OWNERS:
        return [], f"More than {MAX_OWNERS} borrowers match. Enter more of the name."
    return uuids, ""


def find_by_text(kind: Kind, text: str) -> QuerySet[Any]:
    """The records of a kind with a text without operators, all of which must occur."""
    return records_of(kind).filter(matching([kind], parse_query(text, operators=False)))


def with_text(condition: Q) -> Q:
    """The condition as the index of texts needs it, which leaves out those that are empty."""
    return condition & ~Q(search_text="")


def has_words(terms: Iterable[str]) -> Q:
    """The condition that a record's text has all of these folded words."""
    return reduce(and_, map(has_word, terms))


def has_word(term: str) -> Q:
    """The condition that a record's text has a folded word."""
    return reduce(or_, (Q(search_text__contains=form) for form in forms_of(term)))


def forms_of(term: str) -> tuple[str, ...]:
    """What to look for in a text: a short word only at the beginning of a word."""
    return (term,) if len(term) >= MIN_ANYWHERE else (f"\n{term}", f" {term}")


def begins_with(column: str, start: str) -> Q:
    """The condition that an ID begins with these hexadecimal digits.

    The range reads an index on every database. It ends before the first dash, which databases order differently.
    """
    first = start[:FIRST_GROUP]
    following = first[:-1] + _HEX_DIGITS[_HEX_DIGITS.index(first[-1]) + 1]
    return Q(
        **{f"{column}__gte": first, f"{column}__lt": following, f"{column}__startswith": start},
    )


def _named(kinds: Iterable[Kind], query: Query) -> list[Kind]:
    return [kind for kind in kinds if kind in NAMED_KINDS and kind in query.kinds]


def _ranks(kind: Kind, query: Query, owners: Sequence[str], limit: int) -> dict[int, Rank]:
    if not query.has_text:
        newest = _records(kind, query).order_by(query.order, "-pk").values_list("pk", flat=True)
        return dict.fromkeys(newest[:limit], Rank.EXACT)
    ranks: dict[int, Rank] = {}
    tiers = _tiers(kind, query, owners)
    words: list[int] | None = None
    if Rank.BEGINNING in tiers:
        # A name that begins with the text has all of its words, so if those are few, nothing else is read.
        words = list(_best(kind, query, tiers[Rank.WORDS], limit))
        if len(words) < limit:
            tiers[Rank.BEGINNING] = [Q(one, pk__in=words) for one in tiers[Rank.BEGINNING] if words]
    for rank, conditions in tiers.items():
        if len(ranks) < limit:
            found = words if rank == Rank.WORDS else None
            for key in _best(kind, query, conditions, limit) if found is None else found:
                ranks.setdefault(key, rank)
    return dict(islice(ranks.items(), limit))


def _best(kind: Kind, query: Query, conditions: Sequence[Q], limit: int) -> Iterable[int]:
    """The newest keys that meet any of the conditions."""
    parts = [keys_of(kind, query, condition) for condition in conditions]
    return union_of(parts).order_by("-pk")[:limit] if parts else ()


def _records(kind: Kind, query: Query) -> QuerySet[Any]:
    """The records of a kind that meet the query's conditions, ignoring its text."""
    found: QuerySet[Any] = records_of(kind).alias(**ALIASES.get(kind, {}))
    return found.filter(query.conditions, LISTED)


def keys_of(kind: Kind, query: Query, condition: Q) -> "ValuesQuerySet[Any, int]":
    """The keys of a kind's records that meet a condition and those of the query."""
    return _records(kind, query).filter(condition).order_by().values_list("pk", flat=True)


def union_of(parts: Sequence["ValuesQuerySet[_Model, int]"]) -> "ValuesQuerySet[_Model, int]":
    """What any of these find. Databases answer an "or" of different indexes by reading every row."""
    first, *others = parts
    return first.union(*others) if others else first


def _tiers(kind: Kind, query: Query, owners: Sequence[str]) -> Tiers:
    phrases = [" ".join(terms) for terms in query.alternatives]
    tiers: Tiers = {rank: [] for rank in Rank}
    tiers[Rank.EXACT] = [*_with_id(query), *_with_value(kind, query)]
    if phrases and not (kind in PEOPLE and query.uuids):
        words = with_text(reduce(or_, map(has_words, query.alternatives)))
        tiers[Rank.EXACT if query.phone else Rank.WORDS].append(words)
    if kind in PEOPLE and phrases and not query.uuids and not query.phone:
        tiers[Rank.NAME].append(Q(folded_name__in=[*map(folded_key, phrases)]))
        begins = reduce(or_, (Q(search_text__startswith=f"\n{phrase}") for phrase in phrases))
        tiers[Rank.BEGINNING].append(with_text(begins))
    spelled = [word for word in map(normal_word, phrases) if word.replace("_", "").isalpha()]
    if spelled:
        tiers[Rank.WORDS] += [Q(**{f"{column}__in": spelled}) for column in SPELLED.get(kind, ())]
    if owners and kind in OWNED:
        tiers[Rank.OWNER].append(Q(borrower_uuid__in=owners))
    return {rank: conditions for rank, conditions in tiers.items() if conditions}


def _with_id(query: Query) -> list[Q]:
    exact = [Q(uuid__in=query.uuids)] if query.uuids else []
    return exact + [begins_with("uuid", start) for start in query.starts]


def _with_value(kind: Kind, query: Query) -> list[Q]:
    """The conditions that a record has the typed amount or day."""
    if query.day:
        return [Q(next_due_on=query.day)] if kind in ACCOUNTS else []
    if query.amount is None or kind not in OWNED:
        return []
    # Nearly every account owes nothing.
    columns = ("amount", *(("past_due", "due_amount") if kind in ACCOUNTS and query.amount else ()))
    return [Q(**{column: query.amount}) for column in columns]
