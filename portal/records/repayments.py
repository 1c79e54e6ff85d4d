"""Saves the repayments in the lists of accounts, and finds them by what staff type."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db.models import F, Q, QuerySet

import servicing
from portal.core.business_date import business_date_at
from portal.core.folding import fold
from portal.records.canonical import canonical_json
from portal.records.columns import fit_columns
from portal.records.models import Account, Kind, Repayment, RepaymentStatus
from portal.records.query import Query
from portal.records.rows import records_by_key
from portal.records.search import Rank, begins_with, matching_owners, union_of
from servicing import codec
from servicing.return_codes import find_return_code
from servicing.rules import known_spelling
from servicing.words import normal_word

if TYPE_CHECKING:
    from django_stubs_ext import ValuesQuerySet

RETURNED: Final = "FAILED_AFTER_SUCCESS"
RETURNED_TYPE: Final = "RETURNED"
BATCH_SIZE: Final = 500
_REPLACED: Final = [
    *("account", "borrower_uuid", "product", "payment_type", "status", "amount", "effective_on"),
    *("has_failed", "ach_id", "ach_batch_id", "bank_account", "code"),
    *("last_listed_at", "last_listed_on", "returned_at", "updated_at", "body"),
]
"""The columns that a list changes."""


class AccountList(NamedTuple):
    """The list of repayments of one account, for the borrower that was asked about."""

    kind: Kind
    """Of the account."""
    uuid: str
    borrower_uuid: str
    repayments: Sequence[servicing.Repayment]


def save_repayments(lists: Collection[AccountList], at: datetime) -> None:
    """Save the repayments in these lists, received at this time, and what changed in their statuses.

    One that is no longer listed keeps its last copy.
    """
    found = (one.defer("search_text") for one in records_by_key((one.kind, one.uuid) for one in lists))
    accounts = {(one.kind, one.uuid): one for one in chain.from_iterable(found)}
    rows = {
        repayment.uuid: (repayment, accounts.get((one.kind, one.uuid)), one.borrower_uuid)
        for one in lists
        for repayment in one.repayments
    }
    uuids = list(rows)
    for start in range(0, len(uuids), BATCH_SIZE):
        _save_batch({uuid: rows[uuid] for uuid in uuids[start : start + BATCH_SIZE]}, at)


def _save_batch(rows: Mapping[str, tuple[servicing.Repayment, Account | None, str]], at: datetime) -> None:
    day = business_date_at(at)
    known = {one.uuid: one for one in _locked(rows)}
    changed, same, statuses = [], [], []
    for uuid, (answer, account, borrower_uuid) in rows.items():
        before = known.get(uuid)
        if before and before.last_listed_at and at < before.last_listed_at:
            continue
        text = canonical_json(answer)
        # A loan that was answered without a borrower has none, whoever was asked about.
        is_unowned = account and account.kind == Kind.LOAN and account.answer_at and not account.borrower_uuid
        owner = "" if is_unowned else borrower_uuid
        if before and _is_unchanged(before, text, account, owner):
            same.append(before.pk)
            continue
        now = Repayment(uuid=uuid, account=account, borrower_uuid=owner, body=text, **columns_of(answer))
        now.first_seen_at, now.last_listed_at, now.last_listed_on = at, at, day
        if before:
            now.account_id = now.account_id or before.account_id
            now.borrower_uuid = owner or before.borrower_uuid
            now.returned_at = before.returned_at
            if is_returned(now) and not is_returned(before):
                now.returned_at = at
            if now.status != before.status:
                statuses.append(_status_change(before, now, at))
        changed.append(now)
    Repayment.objects.bulk_create(
        changed, update_conflicts=True, unique_fields=["uuid"], update_fields=_REPLACED
    )
    RepaymentStatus.objects.bulk_create(statuses)
    if same:
        Repayment.objects.filter(pk__in=same).update(last_listed_at=at, last_listed_on=day)


def _locked(uuids: Collection[str]) -> QuerySet[Repayment]:
    return Repayment.objects.select_for_update().filter(uuid__in=uuids).order_by("pk")


def _is_unchanged(before: Repayment, text: str, account: Account | None, owner: str) -> bool:
    is_of_account = account is None or account.pk == before.account_id
    return before.body == text and is_of_account and owner in ("", before.borrower_uuid)


def _status_change(before: Repayment, now: Repayment, at: datetime) -> RepaymentStatus:
    return RepaymentStatus(
        repayment=before,
        at=at,
        old=before.status,
        old_last_at=before.last_listed_at,
        new=now.status,
        **fit_columns(RepaymentStatus, {"old_reason": answer_of(before).error_description or ""}),
    )


def columns_of(repayment: servicing.Repayment) -> dict[str, Any]:
    status, payment_type = known_spelling(repayment.status), known_spelling(repayment.payment_type)
    # A payment that succeeded or is still to come hasn't failed, whatever the text says, unless it was returned.
    may_have_failed = status not in ("SUCCEEDED", "SCHEDULED") or payment_type == RETURNED_TYPE
    has_error = may_have_failed and bool((repayment.error_description or "").strip())
    columns = {
        "product": known_spelling(repayment.product),
        "payment_type": payment_type,
        "status": status,
        "amount": repayment.amount,
        "effective_on": repayment.effective_date,
        "has_failed": normal_word(status).startswith("FAILED") or has_error,
        "ach_id": fold(repayment.ach_id or ""),
        "ach_batch_id": fold(repayment.ach_batch_id or ""),
        "bank_account": repayment.borrower_bank_account_uuid or "",
        "code": find_return_code(repayment.error_description),
    }
    return fit_columns(Repayment, columns)


def is_returned(repayment: Repayment) -> bool:
    return repayment.status == RETURNED or repayment.payment_type == RETURNED_TYPE


def answer_of(repayment: Repayment) -> servicing.Repayment:
    """A repayment as it was listed last; without a list, from its columns."""
    if repayment.body:
        return codec.decode(servicing.Repayment, repayment.body)
    return servicing.Repayment(
        uuid=repayment.uuid,
        product=repayment.product or None,
        payment_type=repayment.payment_type or None,
        effective_date=repayment.effective_on,
        amount=repayment.amount,
        status=repayment.status or None,
    )


def copied_on(repayment: Repayment) -> date | None:
    """The business date of the list that contained a repayment last."""
    if repayment.last_listed_on or not repayment.last_listed_at:
        return repayment.last_listed_on
    return business_date_at(repayment.last_listed_at)


def matching_repayments(query: Query, owners: Sequence[str] = ()) -> Q:
    """The condition that a repayment matches a query, or belongs to one of these borrowers."""
    if query.is_empty:
        return Q()
    if Kind.REPAYMENT not in query.kinds:
        return Q(pk__in=[])
    if not query.has_text:
        return Q(pk__in=_meeting_conditions(query).values("pk"))
    parts = [keys for of_rank in _tiers(query, owners).values() for keys in of_rank]
    return Q(pk__in=union_of(parts))


def rank_repayments(query: Query, limit: int) -> dict[int, Rank]:
    """The keys of the best matches with their ranks, best first, and newest first among equals."""
    if query.is_empty or Kind.REPAYMENT not in query.kinds:
        return {}
    if not query.has_text:
        newest = _meeting_conditions(query).order_by(query.order, "-pk").values_list("pk", flat=True)
        return dict.fromkeys(newest[:limit], Rank.EXACT)
    ranks: dict[int, Rank] = {}
    owners = matching_owners(query)[0] if query.is_limited else []
    for rank, parts in _tiers(query, owners).items():
        if len(ranks) < limit:
            for key in union_of(parts).order_by("-pk")[:limit]:
                ranks.setdefault(key, rank)
    return dict(islice(ranks.items(), limit))


def _meeting_conditions(query: Query) -> QuerySet[Repayment]:
    """The repayments that meet the query's conditions, ignoring its text. Other records call that time otherwise."""
    return Repayment.objects.alias(created_at=F("first_seen_at")).filter(query.conditions)


def _tiers(query: Query, owners: Sequence[str]) -> dict[Rank, list["ValuesQuerySet[Repayment, int]"]]:
    """The keys for each condition of a rank, any of which is enough. Each is read by an index of its own."""
    phrases = [" ".join(terms) for terms in query.alternatives]
    words = [*query.uuids, *query.text.split()] if phrases else []
    typed: dict[str, Any] = {
        "uuid__in": words,
        "bank_account__in": words,
        "ach_id__in": phrases,
        "ach_batch_id__in": phrases,
        "code__in": [phrase.upper() for phrase in phrases],
    }
    exact = [Q(**{lookup: values}) for lookup, values in typed.items() if values]
    exact += [begins_with(column, start) for start in query.starts for column in ("uuid", "bank_account")]
    if query.day:
        exact.append(Q(effective_on=query.day))
    elif query.amount is not None:
        exact.append(Q(amount=query.amount))
    tiers = {Rank.EXACT: exact, Rank.OWNER: [Q(borrower_uuid__in=owners)] if owners else []}
    found = _meeting_conditions(query).order_by()
    return {
        rank: [found.filter(one).values_list("pk", flat=True) for one in conditions]
        for rank, conditions in tiers.items()
        if conditions
    }
