"""Amounts in words, as on a check, so that a typo shows before the amount is sent."""

from decimal import Decimal
from typing import Final

_SMALL: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS: Final = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES: Final = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))


def in_words(amount: Decimal) -> str:
    """``25000.50`` as "twenty-five thousand dollars and fifty cents"; only for amounts that an application may have."""
    dollars, cents = divmod(int(amount * 100), 100)
    parts = [_counted(dollars, "dollar")] if dollars or not cents else []
    return " and ".join(parts + ([_counted(cents, "cent")] if cents else []))


def _counted(number: int, unit: str) -> str:
    return f"{_words(number)} {unit}{'' if number == 1 else 's'}"


def _words(number: int) -> str:
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return f"{_TENS[tens]}-{_SMALL[ones]}" if ones else _TENS[tens]
    size, name = next((size, name) for size, name in _SCALES if number >= size)
    count, rest = divmod(number, size)
    return f"{_words(count)} {name}{f' {_words(rest)}' if rest else ''}"
