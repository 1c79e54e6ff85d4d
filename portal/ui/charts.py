"""Positions in SVG charts: hundredths of a percent of the width across, tenths of a pixel from the top down."""

from collections.abc import Iterable
from decimal import Decimal

HUNDREDTH = Decimal("0.01")
"""Of a percent: a tenth of a pixel on a plot of 1,000 pixels."""
TENTH = Decimal("0.1")


def x_position(part: int, whole: int) -> Decimal:
    """Distance from the left as a percentage of the width, so that a chart fits any screen."""
    return round_position(Decimal(100) * part / max(whole, 1))


def y_position(value: Decimal, largest: Decimal, height: int, headroom: Decimal = Decimal(0)) -> Decimal:
    """Distance from the top of a plot in which ``largest`` leaves ``headroom`` pixels free."""
    return (height - value * (height - headroom) / largest).quantize(TENTH)


def polyline(
    points: Iterable[tuple[Decimal, Decimal]],
    height: int,
    headroom: Decimal = Decimal(0),
    *,
    largest: Decimal | None = None,
) -> str:
    """The ``points`` attribute of a line over pairs of position and value; a line at zero stays visible.

    ``largest`` is the value at the top, the largest of the points if not given.
    """
    pairs = [(x, max(value, Decimal(0))) for x, value in points]
    largest = largest or max((value for _, value in pairs), default=Decimal(0)) or Decimal(1)
    return " ".join(
        f"{x},{min(y_position(value, largest, height, headroom), height - 1)}" for x, value in pairs
    )


def round_position(value: Decimal) -> Decimal:
    return value.quantize(HUNDREDTH)
