"""When a payment's return was reported: by its message, the first list that shows it, or its effective date."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Exists, Min, OuterRef, Q
from django.utils import timezone

from portal.core.business_date import business_date, business_date_at, business_date_of_service
from portal.messaging.models import Message
from portal.records.models import Answer, Repayment
from portal.records.repayments import RETURNED, RETURNED_TYPE
from portal.records.sources import REPAYMENTS_OF

MAX_DATED = 500
MESSAGES = Q(event="payment.failed_after_success")


class Returned(NamedTuple):
    """The parts of a returned payment that its day depends on."""

    pk: int
    uuid: str
    effective_on: date | None
    returned_at: datetime | None
    amount: Decimal | None


class ReturnedSince(NamedTuple):
    """Returned payments with the days on which they were reported."""

    payments: list[tuple[Returned, date]]
    is_cut: bool
    """Whether there are more than were read."""


def returned_since(day: date, *, limit: int | None = MAX_DATED) -> ReturnedSince:
    """The payments reported as returned on this day or later, latest first."""
    recent = _maybe_returned_since(day, *Returned._fields).order_by("-effective_on", "-pk")
    found = [Returned(*row) for row in recent[: limit and limit + 1]]
    news = [(one, on) for one, on in _returned_on(found[:limit]).items() if on and on >= day]
    news.sort(key=lambda pair: pair[1], reverse=True)
    return ReturnedSince(news, limit is not None and len(found) > limit)


def _maybe_returned_since(day: date, *columns: str) -> Any:
    """Columns of returned payments that may have been reported since then."""
    start = timezone.now() - (business_date() - day) - timedelta(days=1)  # Covers the day in every time zone.
    reported = Message.objects.filter(MESSAGES, recorded_at__gte=start).values("subject_uuid")
    returned = Repayment.objects.filter(is_returned()).order_by().values_list(*columns)
    # Separately, each part uses an index; an OR of them would read every repayment.
    return returned.filter(returned_at__gte=start).union(
        returned.filter(effective_on__gte=day), returned.filter(uuid__in=reported)
    )


def _returned_on(found: Sequence[Returned]) -> dict[Returned, date | None]:
    """The day on which each return was reported."""
    if not found:
        return {}
    messages = Message.objects.filter(MESSAGES, subject_uuid__in=[one.uuid for one in found]).order_by()
    message_days = {
        uuid: business_date_of_service(moment)
        for uuid, moment in messages.values_list("subject_uuid").annotate(Min("recorded_at"))
    }
    return {
        one: message_days.get(one.uuid)
        or (business_date_at(one.returned_at) if one.returned_at else one.effective_on)
        for one in found
    }


def is_returned() -> Q:
    return Q(status=RETURNED) | Q(payment_type=RETURNED_TYPE)


def is_dropped_from_list() -> Exists:
    """The condition that the service no longer lists a repayment: its account's list was read again without it."""
    lists = Answer.objects.filter(kind__in=REPAYMENTS_OF.values(), uuid=OuterRef("account__uuid"))
    return Exists(lists.filter(last_at__gt=OuterRef("last_listed_at")))
