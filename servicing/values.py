"""Value types that several resources share. Hides how the service writes times and what counts as a number."""

from datetime import date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from servicing.codec import Model, exact_decimal
from servicing.words import normal_word

# The time-zone database does not have these abbreviations. Ambiguous ones, such as IST, are left out.
_UTC_OFFSET_HOURS: Final = {
    "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5, "EST": -5, "EDT": -4,
    "AKST": -9, "AKDT": -8, "HST": -10, "UTC": 0, "GMT": 0, "Z": 0,
}  # fmt: skip
_CONVERTIBLE_YEARS: Final = range(1900, 2200)  # Converting other times between zones may overflow.


class Address(Model, frozen=True, kw_only=True):
    """A US address (section 2.1), both sent and received.

    All fields are text: `zip` has 5 or 9 digits, `state` two letters, `country` is the client's `country` setting in
    capitals. Sending an address that is not a US address raises `InvalidInput`.
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

    `text` is what the service sent. `at` is the moment as an aware `datetime`, or None if that is not certain: no
    zone, an ambiguous zone (`IST`), or an hour that occurs twice when clocks change. Compares by `text`.
    """

    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = _parse_moment(text)

    @classmethod
    def from_wire(cls, value: object) -> "RemoteTime":
        """The timestamp in a JSON value; `ValueError` if that is not text."""
        if not isinstance(value, str) or not value:
            raise ValueError("is not a timestamp")
        return cls(value)

    def guess(self, zone: tzinfo) -> datetime | None:
        """`at`, else its clock time in `zone`, to be put in order; None if the text isn't a time."""
        if self.at:
            return self.at
        try:
            moment = datetime.fromisoformat(self.text[:19]).replace(tzinfo=zone)
        except ValueError:
            return None
        return moment if moment.year in _CONVERTIBLE_YEARS else None

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


def decimal_or_none(value: Any) -> Decimal | None:
    """The number in a field whose type the interface leaves open; None if there is no usable number."""
    try:
        return exact_decimal(value)
    except ValueError:
        return None


def calendar_day(value: Any) -> date | None:
    """The date in a field whose type the interface leaves open, ignoring any time and zone after it."""
    try:
        return date.fromisoformat(value[:10].replace("/", "-")) if isinstance(value, str) else None
    except ValueError:
        return None


def is_same_word(one: str | None, other: str | None) -> bool:
    """Whether two enumeration values are equal, whatever their case, blanks, dashes and underscores."""
    return one is not None and other is not None and normal_word(one) == normal_word(other)


@lru_cache(maxsize=4096)
def _parse_moment(text: str) -> datetime | None:
    moment = _parse_iso_moment(text) or _parse_iso_moment(*text.strip().rpartition(" ")[::2])
    if moment is None or moment.tzinfo is None or moment.year not in _CONVERTIBLE_YEARS:
        return None
    # A time that occurs twice, or never, when clocks change is ambiguous.
    return moment if moment.utcoffset() == moment.replace(fold=1).utcoffset() else None


def _parse_iso_moment(stamp: str, zone: str = "") -> datetime | None:
    try:
        moment = datetime.fromisoformat(stamp)
        return moment.replace(tzinfo=_find_zone(zone)) if zone else moment
    except (ValueError, KeyError, OSError):  # The text is not a time, or the zone is unknown.
        return None


@lru_cache(maxsize=256)
def _find_zone(name: str) -> tzinfo:
    if name in _UTC_OFFSET_HOURS:
        return timezone(timedelta(hours=_UTC_OFFSET_HOURS[name]), name)
    if not name[0].isupper() or name == "Factory":
        raise ValueError("not a place")  # "localtime", for example, would be this machine's own zone.
    return ZoneInfo(name)
