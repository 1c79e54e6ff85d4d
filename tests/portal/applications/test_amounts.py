"""Amounts written in words."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.applications.amounts import in_words
from servicing.rules import MAX_AMOUNT_DOLLARS


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ("25000", "twenty-five thousand dollars"),
        ("25000.50", "twenty-five thousand dollars and fifty cents"),
        ("1", "one dollar"),
        ("1.01", "one dollar and one cent"),
        ("0.07", "seven cents"),
        ("11", "eleven dollars"),
        ("40", "forty dollars"),
        ("100", "one hundred dollars"),
        ("512", "five hundred twelve dollars"),
        ("1000019", "one million nineteen dollars"),
        (
            "999999999.99",
            "nine hundred ninety-nine million nine hundred ninety-nine thousand nine hundred ninety-nine dollars "
            "and ninety-nine cents",
        ),
    ],
)
def test_amounts_are_written_as_on_a_check(amount: str, words: str) -> None:
    assert in_words(Decimal(amount)) == words


@given(*[st.decimals("0.01", MAX_AMOUNT_DOLLARS, places=2)] * 2)
def test_different_amounts_read_differently(one: Decimal, other: Decimal) -> None:
    assert (in_words(one) == in_words(other)) == (one == other)
