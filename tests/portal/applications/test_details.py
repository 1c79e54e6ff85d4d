"""Values of any shape become lines."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.applications.details import MAX_LINES, as_text, details

PLAIN = st.none() | st.booleans() | st.integers() | st.decimals(allow_nan=False) | st.text()
ANYTHING = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ("Cash flow is too low", [("", "Cash flow is too low")]),
        (Decimal("17.50"), [("", "17.50")]),
        (False, [("", "no")]),
        (0, [("", "0")]),
        ([], [("", "none")]),
        (["No liens.", "Two banks."], [("", "No liens."), ("", "Two banks.")]),
        ({"score": 712, "checked": None}, [("score", "712"), ("checked", "—")]),
        ({"a": {"b": ["x", "y"]}}, [("a b", "x"), ("a b", "y")]),
        ([{"name": "First"}, {"name": "Second"}], [("1 name", "First"), ("2 name", "Second")]),
        ({"a": {"b": {"c": {"d": 1}}}}, [("a b c", "1 more inside")]),
    ],
)
def test_a_value_becomes_a_line_for_each_plain_part(value: Any, lines: list[tuple[str, str]]) -> None:
    told = details(value)
    assert told is not None
    assert [tuple(line) for line in told.lines] == lines


@pytest.mark.parametrize("value", [None, ""])
def test_nothing_stays_nothing(value: Any) -> None:
    assert (details(value), as_text(value)) == (None, None)


def test_what_is_long_is_cut_and_says_by_how_much() -> None:
    told = details(list(range(2000)))
    assert told is not None
    assert (len(told.lines), told.left_out) == (MAX_LINES, 2000 - MAX_LINES)
    assert (as_text(list(range(2000))) or "").endswith(f"and {2000 - MAX_LINES} more")


def test_what_is_deep_breaks_nothing() -> None:
    value: Any = "core"
    for _ in range(5000):
        value = [value]
    assert as_text(value) == "1 1 1: 1 more inside"


@given(ANYTHING)
def test_any_value_has_lines_or_is_nothing(value: Any) -> None:
    told = details(value)
    assert (told is None) == (value is None or value == "")
    assert told is None or told.lines
