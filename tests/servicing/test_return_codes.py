"""The table of return codes, and finding a code in a text."""

import pytest

from servicing.return_codes import RETURN_CODES, find_return_code


def test_every_published_code_has_a_short_description() -> None:
    numbers = [*range(1, 48), *range(50, 54), 61, 62, *range(67, 78), *range(80, 86)]

    assert list(RETURN_CODES) == [f"R{number:02}" for number in numbers]
    assert len(RETURN_CODES) == 70
    assert all(0 < len(code.description) < 90 for code in RETURN_CODES.values())
    assert len({code.description for code in RETURN_CODES.values()}) == 70


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("R01", "R01"),
        ("R01_INSUFFICIENT_FUNDS", "R01"),
        ("r02-Account closed", "R02"),
        ("ach_return_r10", "R10"),
        ("Returned (R29).", "R29"),
        ("R08, payment stopped", "R08"),
        ("Codes R01/R09", "R01"),
        ("R01,R09", "R01"),
        ("Return R01: 2 tries", "R01"),
        ("Order R12-3344 failed with R03", "R03"),
        ("R99 unheard of", "R99"),
        ("Order R12-3344 failed", ""),
        ("R12-A3344", ""),
        ("3344-R12", ""),
        ("R12.50", ""),
        ("R123", ""),
        ("R1", ""),
        ("XR01", ""),
        ("7R01", ""),
        ("R01A", ""),
        ("R01é", ""),
        ("R٠١", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_a_code_is_found_only_where_it_stands_alone(text: str | None, code: str) -> None:
    assert find_return_code(text) == code
