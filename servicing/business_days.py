"""Business days of banks: the days on which payments are collected."""

from datetime import date, timedelta
from functools import cache
from typing import Final

_ONE_DAY: Final = timedelta(days=1)
_MONDAY, _THURSDAY, _SATURDAY, _SUNDAY = 0, 3, 5, 6
_FIRST_JUNETEENTH: Final = 2022


@cache
def business_day_after(day: date, number: int) -> date:
    """The day this many business days later."""
    while number:
        day += _ONE_DAY
        number -= is_business_day(day)
    return day


def first_business_day(day: date) -> date:
    """The day itself, or the first business day after it."""
    return day if is_business_day(day) else business_day_after(day, 1)


def is_business_day(day: date) -> bool:
    """Monday to Friday, except the holidays of the Federal Reserve."""
    return day.weekday() < _SATURDAY and day not in federal_reserve_holidays(day.year)


@cache
def federal_reserve_holidays(year: int) -> frozenset[date]:
    """The days of a year on which the Federal Reserve Banks are closed.

    One that falls on a Sunday is observed on Monday; one on a Saturday isn't observed.
    """
    fixed = [date(year, 1, 1), date(year, 7, 4), date(year, 11, 11), date(year, 12, 25)]
    if year >= _FIRST_JUNETEENTH:
        fixed.append(date(year, 6, 19))
    days = (
        *(day + _ONE_DAY if day.weekday() == _SUNDAY else day for day in fixed if day.weekday() != _SATURDAY),
        _nth_weekday(year, 1, _MONDAY, 3),
        _nth_weekday(year, 2, _MONDAY, 3),
        _nth_weekday(year, 6, _MONDAY, 1) - timedelta(days=7),
        _nth_weekday(year, 9, _MONDAY, 1),
        _nth_weekday(year, 10, _MONDAY, 2),
        _nth_weekday(year, 11, _THURSDAY, 4),
    )
    return frozenset(days)


def _nth_weekday(year: int, month: int, weekday: int, number: int) -> date:
    first = date(year, month, 1)
    return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (number - 1))
