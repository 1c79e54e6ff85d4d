"""Exact sums of repayments, added up by the database."""

from decimal import Decimal
from typing import Any

from django.db.models import (
    BigIntegerField,
    Count,
    DecimalField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    Sum,
)
from django.db.models.functions import Cast, Round

from portal.records.models import RepaymentStatus
from servicing.promises import SCHEDULED
from servicing.repayments import REVERSALS, SUCCEEDED

UNITS = 10_000
"""Amounts are summed as whole ten-thousandths of a dollar: exact in every database."""
PART = 10**6
"""Upper and lower digits are summed separately, because a database's integers have at most nineteen digits."""
SUMMABLE = Q(amount__lt=10**14, amount__gt=-(10**14))


def is_collected() -> Q:
    """The condition that a repayment is collected, by the rule of :func:`servicing.repayments.is_collected`."""
    return Q(status__in=SUCCEEDED) & ~Q(payment_type__in=REVERSALS) & ~Q(amount__lte=0)


def was_scheduled() -> Exists:
    """The condition that a repayment was scheduled before it had the status of now."""
    return Exists(RepaymentStatus.objects.filter(repayment=OuterRef("pk"), old=SCHEDULED))


def with_totals(groups: Any, condition: Q) -> Any:
    """Add to each group its number of rows, and the inputs of :func:`sum_of` for rows that meet a condition."""
    decimal = DecimalField(max_digits=24, decimal_places=4)
    units = Cast(Round(ExpressionWrapper(F("amount") * UNITS, output_field=decimal)), BigIntegerField())
    upper, lower = (ExpressionWrapper(part, BigIntegerField()) for part in (units / PART, units % PART))
    summable = condition & SUMMABLE
    return groups.annotate(
        number=Count("pk"),
        wanted=Count("pk", filter=condition),
        summed=Count("amount", filter=summable),
        upper=Sum(upper, filter=summable),
        lower=Sum(lower, filter=summable),
    )


def sum_of(wanted: int, summed: int, *parts: int | None) -> Decimal | None:
    """The sum of amounts from its parts; None if an amount is missing or absurd."""
    return dollars(*parts) if wanted == summed else None


def dollars(upper: int | None, lower: int | None) -> Decimal:
    """The sum of the known amounts from its parts."""
    return Decimal((upper or 0) * PART + (lower or 0)) / UNITS
