"""When a payment's return was reported: by its message, the first copy that shows it, or its effective date."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Exists, Min, OuterRef, Q
from django.utils import timezone

from portal.messaging.models import Message
from portal.registry.models import Answer, Kind, Snapshot
from portal.registry.records import active_records
from portal.registry.sources import REPAYMENTS_OF
from portal.runtime.business_date import business_date, business_date_at, business_date_of_service
from servicing import Repayment, codec
from servicing.words import normal_word

MAX_DATED = 500
RETURNED, RETURNED_TYPE = "FAILED_AFTER_SUCCESS", "RETURNED"
MESSAGES = Q(event="payment.failed_after_success")


class Returned(NamedTuple):
    """The parts of a returned payment that its day depends on."""

    pk: int
    said_id: int | None
    uuid: str
    key_date: date | None
    updated_at: datetime
    amount: Decimal | None


def returned_since(day: date) -> list[tuple[Returned, date]]:
    """The payments reported as returned on this day or later, latest first."""
    recent = _maybe_returned_since(day, *Returned._fields).order_by("-key_date", "-pk")
    found = [Returned(*row) for row in recent[:MAX_DATED]]
    news = [(one, on) for one, on in _returned_on(found).items() if on and on >= day]
    return sorted(news, key=lambda pair: pair[1], reverse=True)


def accounts_with_returns(day: date) -> set[str]:
    """The accounts of these payments, and perhaps of a few returned earlier: dating each one is the slow part."""
    return {uuid for (uuid,) in _maybe_returned_since(day, "parent_uuid")}


def _maybe_returned_since(day: date, *columns: str) -> Any:
    """Columns of returned payments that may have been reported since then."""
    start = timezone.now() - (business_date() - day) - timedelta(days=1)  # Covers the day in every time zone.
    reported = Message.objects.filter(MESSAGES, recorded_at__gte=start).values("subject_uuid")
    returned = active_records(Kind.REPAYMENT).filter(is_returned()).order_by().values_list(*columns)
    # Separately, each part uses an index; an OR of them would read every repayment.
    return returned.filter(updated_at__gte=start).union(
        returned.filter(key_date__gte=day), returned.filter(uuid__in=reported)
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
    copies: dict[int, list[Snapshot]] = {}
    if without_message := [one.said_id for one in found if one.said_id and one.uuid not in message_days]:
        for copy in Snapshot.objects.filter(answer__in=without_message).order_by("last_at", "id"):
            copies.setdefault(copy.answer_id, []).append(copy)
    return {
        one: message_days.get(one.uuid)
        or _first_copy_with_return(one, copies.get(one.said_id or 0, []))
        or one.key_date
        for one in found
    }


def _first_copy_with_return(record: Returned, earlier: Sequence[Snapshot]) -> date | None:
    """The day of the first copy that shows the return, after one that did not."""
    moments = [*(copy.last_at for copy in earlier), record.updated_at]
    without = [number for number, copy in enumerate(earlier) if not _shows_return(copy)]
    return business_date_at(moments[without[-1] + 1]) if without else None


def _shows_return(copy: Snapshot) -> bool:
    payment = codec.decode(Repayment, copy.body)
    status, kind = normal_word(payment.status), normal_word(payment.payment_type)
    return status == RETURNED or kind == RETURNED_TYPE


def is_returned() -> Q:
    """The condition that a repayment was returned."""
    return Q(status=RETURNED) | Q(subtype=RETURNED_TYPE)


def is_dropped_from_list() -> Exists:
    """The condition that the service no longer lists a repayment: its account's list was read again without it."""
    lists = Answer.objects.filter(kind__in=REPAYMENTS_OF.values(), uuid=OuterRef("parent_uuid"))
    return Exists(lists.filter(last_at__gt=OuterRef("answer_at")))
