"""Values of any shape, shown as lines of text."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.applications.details import MAX_LINES, as_text, details

SCALARS = st.none() | st.booleans() | st.integers() | st.decimals(allow_nan=False) | st.text()
ANY_VALUE = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


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
def test_a_value_is_split_into_lines(value: Any, lines: list[tuple[str, str]]) -> None:
    found = details(value)
    assert found is not None
    assert [tuple(line) for line in found.lines] == lines


@pytest.mark.parametrize("value", [None, ""])
def test_null_and_empty_text_have_no_lines(value: Any) -> None:
    assert (details(value), as_text(value)) == (None, None)


def test_long_values_are_cut_with_a_count_of_the_rest() -> None:
    found = details(list(range(2000)))
    assert found is not None
    assert (len(found.lines), found.left_out) == (MAX_LINES, 2000 - MAX_LINES)
    assert (as_text(list(range(2000))) or "").endswith(f"and {2000 - MAX_LINES} more")


@pytest.mark.slow
def test_deep_nesting_is_cut_with_a_count() -> None:
    value: Any = "core"
    for _ in range(5000):
        value = [value]
    assert as_text(value) == "1 1 1: 1 more inside"


@pytest.mark.slow
@given(ANY_VALUE)
def test_any_other_value_has_lines(value: Any) -> None:
    found = details(value)
    assert (found is None) == (value is None or value == "")
    assert found is None or found.lines
