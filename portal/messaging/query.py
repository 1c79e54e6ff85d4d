"""Saved messages that match a form's filters, in order of time: pages begin where the one before ended."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q

from portal.messaging.models import BankAccount, Message, MessageQuerySet
from portal.messaging.store import ONE_DAY, service_today, service_zone, storage_uuid
from portal.messaging.text import TypedText, parse_text
from portal.records.models import RECORDED_KINDS, Account, Application, Borrower, KeyPerson, Repayment
from portal.records.query import uuid_in
from portal.ui.paging import MAX_COUNTED

COLUMNS: Final = {"event": "event", "status": "status", "product": "product", "payment": "payment_status"}
"""The column of each filter that takes several values."""
TEXT_DAYS: Final = 30
"""Without a period, texts are searched in this many days."""
MAX_SEARCHED: Final = 10_000
"""The most messages that are searched for their borrower, or counted as new."""


def matching_messages(filters: Mapping[str, Any]) -> MessageQuerySet:
    """The messages that match all filters, the cleaned data of the form."""
    found = Message.objects.filter(period_condition(filters))
    for name, column in COLUMNS.items():
        if values := filters.get(name):
            found = found.filter(**{f"{column}__in": values})
    for name, lookup in (("least", "amount__gte"), ("most", "amount__lte")):
        if filters.get(name) is not None:
            found = found.filter(**{lookup: filters[name]})
    if identifier := filters.get("id"):
        found = found.filter(identifier_condition(identifier))
    if borrower := filters.get("borrower"):
        found = found.filter(borrower_condition(borrower.uuid))
    if filters.get("gone"):
        found = found.filter(gone_at__isnull=False)
    if filters.get("changed"):
        found = found.filter(changed_payload__isnull=False)
    if text := filters.get("q"):
        found = found.filter(_text_condition(parse_text(text), filters))
    if filters.get("link"):
        found = found.filter(_unlinked_condition(filters))
    return found


def capped_count(found: MessageQuerySet) -> int:
    """The number of messages, at most :data:`MAX_COUNTED`."""
    return found.order_by()[:MAX_COUNTED].count()


def page_of(
    found: MessageQuerySet, size: int, *, oldest_first: bool = False, place: Message | None = None
) -> list[Message]:
    """So many messages in order of time, from the first or after another one."""
    found = found.order_by("recorded_at", "id") if oldest_first else found.order_by("-recorded_at", "-id")
    if place:
        side = "gt" if oldest_first else "lt"
        is_beyond = Q(**{f"recorded_at__{side}": place.recorded_at})
        is_beyond |= Q(**{"recorded_at": place.recorded_at, f"id__{side}": place.pk})
        # The first condition alone makes the database begin at the place in its index.
        found = found.filter(is_beyond, **{f"recorded_at__{side}e": place.recorded_at})
    return list(found[:size])


def count_stored_since(found: MessageQuerySet, moment: datetime) -> int:
    """The number of messages saved after a moment."""
    new = list(
        Message.objects.order_by().filter(stored_at__gt=moment).values_list("pk", flat=True)[:MAX_SEARCHED]
    )
    return found.filter(pk__in=new).count() if new else 0


def limits(filters: Mapping[str, Any]) -> list[str]:
    """Sentences about saved messages that were not searched. With any, a count is a lower bound."""
    if not filters.get("link"):
        return []
    newest = Message.objects.order_by().filter(period_condition(filters))
    if newest[: MAX_SEARCHED + 1].count() <= MAX_SEARCHED:
        return []
    end = "oldest" if filters.get("order") == "oldest" else "newest"
    return [f"Only the {end} {MAX_SEARCHED:,} messages from these days were searched by borrower."]


def text_start(filters: Mapping[str, Any]) -> date | None:
    """The first day of the texts that are searched, if there is a text but no period."""
    has_period = filters.get("start_date") or filters.get("end_date")
    return service_today() - (TEXT_DAYS - 1) * ONE_DAY if filters.get("q") and not has_period else None


def period_condition(filters: Mapping[str, Any]) -> Q:
    """The condition of the filtered period; days and times of day are the service's."""
    zone, found = service_zone(), Q()
    if day := filters.get("start_date"):
        found &= Q(recorded_at__gte=datetime.combine(day, filters.get("start_time") or time.min, zone))
    if day := filters.get("end_date"):
        # Of an hour that comes twice, the second one is the end.
        last_minute = datetime.combine(day, (filters.get("end_time") or time(23, 59)).replace(fold=1), zone)
        found &= Q(recorded_at__lt=last_minute.astimezone(UTC) + timedelta(minutes=1))
    return found


def identifier_condition(typed: str) -> Q:
    """The messages with the ID of the message, its subject, its loan or line, or its bank account."""
    uuids = list(dict.fromkeys(filter(None, (uuid_in(typed), typed.strip()))))
    payments = Repayment.objects.filter(account__uuid__in=uuids).values_list("uuid", flat=True)
    found = Q(uuid__in=[storage_uuid(uuid) for uuid in uuids]) | Q(bank_account__in=uuids)
    return found | Q(subject_uuid__in=[*uuids, *payments])


def borrower_condition(uuid: str) -> Q:
    """A borrower's messages: from its bank accounts, or about anything of it on file."""
    records, *others = (
        model._default_manager.filter(borrower_uuid=uuid).values_list("uuid", flat=True)
        for model in (Account, Application, KeyPerson, Repayment)
    )
    accounts = BankAccount.objects.filter(borrower_uuid=uuid).values_list("uuid", flat=True)
    # As lists, because databases answer an "or" of two subqueries by reading every message.
    return Q(subject_uuid__in=[uuid, *records.union(*others)]) | Q(bank_account__in=list(accounts))


def _text_condition(typed: TypedText, filters: Mapping[str, Any]) -> Q:
    """The messages that have a text in the period, or an ID or amount at any age."""
    start = text_start(filters)
    in_period = typed.condition & period_condition({"start_date": start} if start else filters)
    if not typed.has_any_age:
        return in_period
    at_any_age = identifier_condition(typed.uuid) if typed.uuid else Q(amount=typed.amount)
    messages = Message.objects.order_by().values("pk")
    # As a union, because databases answer an "or" of different indexes by reading every message.
    return Q(pk__in=messages.filter(at_any_age).union(messages.filter(in_period)))


def _unlinked_condition(filters: Mapping[str, Any]) -> Q:
    """The messages without a borrower, among the first so many of the period."""
    order = ("recorded_at", "id") if filters.get("order") == "oldest" else ("-recorded_at", "-id")
    first = Message.objects.filter(period_condition(filters)).order_by(*order).values("pk")[:MAX_SEARCHED]
    is_subject = {"uuid": OuterRef("subject_uuid")}
    linked = [
        Account.objects.filter(**is_subject, kind__in=RECORDED_KINDS).exclude(borrower_uuid=""),
        Borrower.objects.filter(**is_subject),
        Application.objects.filter(**is_subject).exclude(borrower_uuid=""),
        KeyPerson.objects.filter(**is_subject).exclude(borrower_uuid=""),
        Repayment.objects.filter(**is_subject).exclude(borrower_uuid=""),
        BankAccount.objects.filter(uuid=OuterRef("bank_account")),
    ]
    return Q(*(~Exists(one) for one in linked), pk__in=first)
