"""When the return of a payment became news: its message, or the copy that first shows it, or its effective date."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Q

from portal.messaging.models import Message, first_key_at
from portal.registry.models import Kind, Record, Snapshot
from portal.registry.query import midnight
from portal.registry.records import active_records
from servicing import Repayment, codec

MAX_DATED = 500
RETURNED = Q(status__iexact="FAILED_AFTER_SUCCESS") | Q(subtype__iexact="RETURNED")
MESSAGES = Q(event="payment.failed_after_success")


def returned_since(day: date) -> list[tuple[Record, date]]:
    """The payments whose return became news on this day or later, the latest news first."""
    start = midnight(day)
    told = Message.objects.filter(MESSAGES, pk__gte=first_key_at(start)).values("subject_uuid")
    recent = Q(key_date__gte=day) | Q(updated_at__gte=start) | Q(uuid__in=told)
    found = active_records(Kind.REPAYMENT).filter(RETURNED, recent).order_by("-key_date", "-id")
    news = [(record, on) for record, on in returned_on(found[:MAX_DATED]).items() if on and on >= day]
    return sorted(news, key=lambda pair: pair[1], reverse=True)


def returned_on(records: Iterable[Record]) -> dict[Record, date | None]:
    """The day on which the return of each became news."""
    records = list(records)
    told: dict[str, date] = {}
    for message in Message.objects.filter(MESSAGES, subject_uuid__in=[one.uuid for one in records]):
        day = _business_day(message.recorded_at)
        told[message.subject_uuid] = min(day, told.get(message.subject_uuid, day))
    copies: dict[int, list[Snapshot]] = {}
    for copy in Snapshot.objects.filter(record__in=records).order_by("at", "id"):
        copies.setdefault(copy.record_id, []).append(copy)
    return {
        record: told.get(record.uuid)
        or _first_copy_with_return(record, copies.get(record.pk, []))
        or record.key_date
        for record in records
    }


def _first_copy_with_return(record: Record, earlier: Sequence[Snapshot]) -> date | None:
    """The day of the copy that shows the return after one that did not."""
    moments = [*(copy.at for copy in earlier), record.updated_at]
    without = [number for number, copy in enumerate(earlier) if not _shows_return(copy)]
    return _business_day(moments[without[-1] + 1]) if without else None


def _shows_return(copy: Snapshot) -> bool:
    payment = codec.decode(Repayment, copy.answer)
    status, kind = (payment.status or "").upper(), (payment.payment_type or "").upper()
    return status == "FAILED_AFTER_SUCCESS" or kind == "RETURNED"


def _business_day(moment: datetime) -> date:
    return moment.astimezone(ZoneInfo(settings.BUSINESS_TIME_ZONE)).date()
