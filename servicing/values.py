"""Value types that several areas share. Hides how the service writes times and what counts as a number."""

from datetime import date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from servicing.codec import Model, exact_decimal

# Abbreviations that the time-zone database does not have as names. Ambiguous ones are left out on purpose:
# IST is at least three zones.
_OFFSETS: Final = {
    "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5, "EST": -5, "EDT": -4,
    "AKST": -9, "AKDT": -8, "HST": -10, "UTC": 0, "GMT": 0, "Z": 0,
}  # fmt: skip
_CERTAIN_YEARS: Final = range(1900, 2200)  # Beyond them, moving a time between zones may overflow.


class Address(Model, frozen=True, kw_only=True):
    """A US address (section 2.1). The same type is sent and received.

    All texts: `zip` of 5 or 9 digits, `state` of two letters, `country` in capitals as the client's `country`
    setting names it. Sending one that is no US address raises `InvalidInput`.
    """

    line_1: str | None
    line_2: str | None = None
    line_3: str | None = None
    zip: str | None
    city: str | None
    state: str | None
    country: str | None


class RemoteTime:
    """A timestamp of the service, `YYYY-MM-DD HH:MM:SS <zone>` (section 2).

    `text` is what the service sent. `at` is the moment as an aware `datetime`, and None where that is not
    certain: a zone with several meanings (`IST`), none, or an hour that the clocks repeat. Equal by `text`.
    """

    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = _moment(text)

    @classmethod
    def from_wire(cls, value: object) -> "RemoteTime":
        """The time in a JSON value; `ValueError` when it is no text."""
        if not isinstance(value, str) or not value:
            raise ValueError("is not a timestamp")
        return cls(value)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"RemoteTime({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteTime) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[type["RemoteTime"], tuple[str]]:
        return RemoteTime, (self.text,)


def exact(value: Any) -> Decimal | None:
    """The number in a field whose type the interface leaves open, or None where it holds no usable number."""
    try:
        return exact_decimal(value)
    except ValueError:
        return None


def calendar_day(value: Any) -> date | None:
    """The day in a field whose type the interface leaves open, a time behind it left out; never moved by a zone."""
    try:
        return date.fromisoformat(value[:10].replace("/", "-")) if isinstance(value, str) else None
    except ValueError:
        return None


def same_word(one: str | None, other: str | None) -> bool:
    """Whether two enumeration values are the same: the service does not keep to one case."""
    return one is not None and other is not None and one.casefold() == other.casefold()


@lru_cache(maxsize=4096)
def _moment(text: str) -> datetime | None:
    moment = _iso_moment(text) or _iso_moment(*text.strip().rpartition(" ")[::2])
    if moment is None or moment.tzinfo is None or moment.year not in _CERTAIN_YEARS:
        return None
    # An hour that the clocks repeat or skip has two readings, and so no certain one.
    return moment if moment.utcoffset() == moment.replace(fold=1).utcoffset() else None


def _iso_moment(stamp: str, zone: str = "") -> datetime | None:
    try:
        moment = datetime.fromisoformat(stamp)
        return moment.replace(tzinfo=_zone(zone)) if zone else moment
    except (ValueError, KeyError, OSError):  # Not a time, or a zone that the database does not have.
        return None


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    if name in _OFFSETS:
        return timezone(timedelta(hours=_OFFSETS[name]), name)
    if not name[0].isupper() or name == "Factory":
        raise ValueError("not a place")  # "localtime", for one, would be the zone of this very machine.
    return ZoneInfo(name)
