"""Exact sums of amounts, added up by the database."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django.db.models import BigIntegerField, Count, DecimalField, ExpressionWrapper, F, Q, Sum
from django.db.models.functions import Cast, Round

from portal.repayments.sums import PART, UNITS, dollars

TOO_LARGE = 10**14


def add_sums(groups: Any, *names: str) -> Any:
    """Add to each group the inputs of :func:`read_sum` for these amounts, and how many of each are known."""
    return groups.annotate(**_parts(names))


def total_of(rows: Any, *names: str) -> dict[str, Any]:
    return dict(rows.order_by().aggregate(**_parts(names)))


def _parts(names: Iterable[str]) -> dict[str, Any]:
    """Negative amounts are credits, which are no part of a sum."""
    decimal = DecimalField(max_digits=24, decimal_places=4)
    found: dict[str, Any] = {}
    for name in names:
        is_known = Q(**{f"{name}__lt": TOO_LARGE})
        is_debt = is_known & Q(**{f"{name}__gt": 0})
        units = Cast(Round(ExpressionWrapper(F(name) * UNITS, output_field=decimal)), BigIntegerField())
        found[f"{name}_upper"] = Sum(ExpressionWrapper(units / PART, BigIntegerField()), filter=is_debt)
        found[f"{name}_lower"] = Sum(ExpressionWrapper(units % PART, BigIntegerField()), filter=is_debt)
        found[f"{name}_known"] = Count("pk", filter=is_known)
    return found


def read_sum(group: Mapping[str, Any], name: str) -> Decimal:
    return dollars(group.get(f"{name}_upper"), group.get(f"{name}_lower"))
