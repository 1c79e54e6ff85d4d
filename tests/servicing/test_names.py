"""The names that the lending service accepts, and the messages for invalid ones."""

# ruff: noqa: E501 - the example tables keep each sentence on one line.

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicing import rules

NAME_PATTERN = re.compile(r"^([aA-zZ]+[,.]?[ ]?|[aA-zZ]+['’-]?)+$")
"""The pattern from the interface. It backtracks exponentially, so use it only on short text."""


def test_short_names_follow_the_interface_pattern() -> None:
    for length in range(6):
        for characters in product("a, '1", repeat=length):  # One character of each class in the pattern.
            text = "".join(characters)
            assert (not rules.name_problems(text)) == bool(NAME_PATTERN.fullmatch(text)), text


@pytest.mark.slow
def test_every_character_follows_the_interface_pattern() -> None:
    for character in map(chr, range(0x3000)):
        for text in (character, f"{character}a", f"a{character}", f"a{character}a", f"a {character}"):
            assert (not rules.name_problems(text)) == bool(NAME_PATTERN.fullmatch(text)), text


@given(st.text(max_size=6))
def test_random_names_follow_the_interface_pattern(text: str) -> None:
    assert (not rules.name_problems(text)) == bool(NAME_PATTERN.fullmatch(text))


@pytest.mark.parametrize(
    "name", ["Ann", "O'Neil", "D’Arcy", "Smith-Jones", "Sammy Davis, Jr.", "J. R. Tolkien", "Ann "]
)
def test_common_names_are_accepted(name: str) -> None:
    assert rules.name_problems(name) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Enter a name."),
        ("AT&T", "“&” at position 3 isn’t allowed; write “and”."),
        ("Henry2", "Names can’t contain digits (“2”)."),
        ("Fund 2024", "Names can’t contain digits (“2024”)."),
        ("Smith  Jones", "2 spaces in a row at position 6: leave only one."),
        (" Ann", "A space at position 1: a name must start with a letter. Delete it."),
        ("-Ann", "“-” at position 1: a name must start with a letter. Delete it."),
        ("J.-P", "“-” at position 3 directly follows “.”: put a letter between them or delete one of them."),
        ("Ann- Lee", "A space at position 5 directly follows “-”: put a letter between them or delete one of them."),
        ("José", "“é” at position 4 isn’t allowed; write “e”."),
        ("Jose\u0301", "A separate accent at position 5 isn’t allowed; type the letter before it again, without an accent."),
        ("Groß", "“ß” at position 4 isn’t allowed; write “ss”."),
        ("Søren", "“ø” at position 2 isn’t allowed; write “o”."),
        ("Anne–Lee", "“–” at position 5 isn’t allowed; write “-”."),
        ("Ann\u00a0Lee", "An invisible character (no-break space) at position 4 isn’t allowed; type an ordinary space."),
        ("Ann\tLee", "A tab at position 4 isn’t allowed; type an ordinary space."),
        ("Ann\n", "A line break at position 4 isn’t allowed; type an ordinary space."),
        ("Ann\x00", "An invisible character (control character) at position 4 isn’t allowed; delete it."),
        ("Ann\u200b", "An invisible character (zero width space) at position 4 isn’t allowed; delete it."),
        ("Жanna", "“Ж” at position 1 isn’t allowed; write the name with the letters A to Z."),
        ("Ann“", "A curly quotation mark at position 4 isn’t allowed; delete it or write it in words."),
        ("Ann@Lee", "“@” at position 4 isn’t allowed; delete it or write it in words."),
    ],
)  # fmt: skip
def test_a_name_problem_gives_character_position_and_fix(name: str, reason: str) -> None:
    assert rules.name_problems(name) == [reason]


def test_all_problems_of_a_name_are_reported() -> None:
    assert [reason.partition(":")[0] for reason in rules.name_problems(" 3  M")] == [
        "A space at position 1",
        "Names can’t contain digits (“3”).",
        "2 spaces in a row at position 3",
    ]


def test_a_long_list_of_name_problems_is_shortened() -> None:
    reasons = rules.name_problems("é" * 1000)
    assert len(reasons) == 6
    assert reasons[-1] == "There are more problems. Fix these first."


def test_a_long_run_of_digits_is_shortened() -> None:
    [reason] = rules.name_problems("9" * 1000)
    assert reason.startswith(f"Names can’t contain digits (“{'9' * 40}…”).")


def test_a_suggested_replacement_is_valid() -> None:
    for code_point in range(0x3000):
        reasons = "".join(rules.name_problems(f"a{chr(code_point)}b"))
        if advice := re.search(r"write “(.+)”", reasons):
            assert rules.name_problems(f"a{advice[1]}b") == [], chr(code_point)


def test_a_legal_name_outside_the_pattern_is_only_a_warning() -> None:
    assert rules.legal_name_problems("O'Neil & Daughters, LLC") == []
    assert rules.legal_name_warnings("O'Neil & Daughters, LLC") == [
        "The borrower can be created, but the service rejects this name in later updates.",
        "“&” at position 8 isn’t allowed; write “and”.",
    ]


@pytest.mark.parametrize("name", ["Northwind LLC", "", "  "])
def test_a_legal_name_that_matches_or_is_missing_has_no_warning(name: str) -> None:
    assert rules.legal_name_warnings(name) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Enter the legal business name."),
        (" \t", "Enter the legal business name."),
        ("North\nwind", "A line break at position 6 of the legal business name isn’t allowed. Delete it."),
        ("N" * 1256, "The legal business name has 1,256 characters; at most 255 are accepted."),
    ],
)
def test_an_invalid_legal_name_is_explained(name: str, reason: str) -> None:
    assert rules.legal_name_problems(name) == [reason]
