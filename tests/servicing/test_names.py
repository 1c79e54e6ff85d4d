"""The names that the lending service accepts: the verdicts, and the sentences that staff read."""

# ruff: noqa: E501 - tables of examples hold one whole sentence a line.

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicing import rules

PRINTED_NAME = re.compile(r"^([aA-zZ]+[,.]?[ ]?|[aA-zZ]+['’-]?)+$")
"""As the service prints it: it takes exponential time, so for short texts only."""


def test_a_name_gets_the_verdict_of_the_printed_pattern_on_every_short_text() -> None:
    for length in range(6):
        for characters in product("a, '1", repeat=length):  # One of each class that the pattern tells apart.
            text = "".join(characters)
            assert (not rules.name_problems(text)) == bool(PRINTED_NAME.fullmatch(text)), text


def test_every_single_character_gets_the_verdict_of_the_printed_pattern_wherever_it_stands() -> None:
    for character in map(chr, range(0x3000)):
        for text in (character, f"{character}a", f"a{character}", f"a{character}a", f"a {character}"):
            assert (not rules.name_problems(text)) == bool(PRINTED_NAME.fullmatch(text)), text


@given(st.text(max_size=6))
def test_a_name_gets_the_verdict_of_the_printed_pattern_on_any_characters(text: str) -> None:
    assert (not rules.name_problems(text)) == bool(PRINTED_NAME.fullmatch(text))


@pytest.mark.parametrize(
    "name", ["Ann", "O'Neil", "D’Arcy", "Smith-Jones", "Sammy Davis, Jr.", "J. R. Tolkien", "Ann "]
)
def test_usual_names_are_accepted(name: str) -> None:
    assert rules.name_problems(name) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Enter a name."),
        ("AT&T", "“&” at position 3 is not accepted by the lending service; write “and”."),
        ("Henry2", "“2” at position 6: digits are not accepted by the lending service; write words instead."),
        ("Fund 2024", "“2024” at positions 6 to 9: digits are not accepted by the lending service; write words instead."),
        ("Smith  Jones", "2 spaces in a row at position 6: leave only one."),
        (" Ann", "A space at position 1: a name must begin with a letter; delete it."),
        ("-Ann", "“-” at position 1: a name must begin with a letter; delete it."),
        ("J.-P", "“-” at position 3 directly follows “.”: put a letter between them or delete one of them."),
        ("Ann- Lee", "A space at position 5 directly follows “-”: put a letter between them or delete one of them."),
        ("José", "“é” at position 4 is not accepted by the lending service; write “e”."),
        ("Jose\u0301", "A separate accent at position 5 is not accepted by the lending service; type the letter before it again, without an accent."),
        ("Groß", "“ß” at position 4 is not accepted by the lending service; write “ss”."),
        ("Søren", "“ø” at position 2 is not accepted by the lending service; write “o”."),
        ("Anne–Lee", "“–” at position 5 is not accepted by the lending service; write “-”."),
        ("Ann\u00a0Lee", "An invisible character (no-break space) at position 4 is not accepted by the lending service; type an ordinary space."),
        ("Ann\tLee", "A tab at position 4 is not accepted by the lending service; type an ordinary space."),
        ("Ann\n", "A line break at position 4 is not accepted by the lending service; type an ordinary space."),
        ("Ann\x00", "An invisible character (control character) at position 4 is not accepted by the lending service; delete it."),
        ("Ann\u200b", "An invisible character (zero width space) at position 4 is not accepted by the lending service; delete it."),
        ("Жanna", "“Ж” at position 1 is not accepted by the lending service; write the name with the letters A to Z."),
        ("Ann“", "A curly quotation mark at position 4 is not accepted by the lending service; delete it or write it in words."),
        ("Ann@Lee", "“@” at position 4 is not accepted by the lending service; delete it or write it in words."),
    ],
)  # fmt: skip
def test_a_refused_name_says_which_character_where_and_what_to_do(name: str, reason: str) -> None:
    assert rules.name_problems(name) == [reason]


def test_several_reasons_against_a_name_come_together() -> None:
    assert [reason.partition(":")[0] for reason in rules.name_problems(" 3  M")] == [
        "A space at position 1",
        "“3” at position 2",
        "2 spaces in a row at position 3",
    ]


def test_a_name_full_of_refused_characters_gives_a_handful_of_reasons() -> None:
    reasons = rules.name_problems("é" * 1000)
    assert len(reasons) == 6
    assert reasons[-1] == "More is refused further on; correct these first."


def test_a_long_run_of_digits_is_not_repeated_whole() -> None:
    [reason] = rules.name_problems("9" * 1000)
    assert reason.startswith(f"“{'9' * 40}…” at positions 1 to 1000: ")


def test_what_a_reason_tells_to_write_is_itself_accepted() -> None:
    for code_point in range(0x3000):
        reasons = "".join(rules.name_problems(f"a{chr(code_point)}b"))
        if advice := re.search(r"write “(.+)”", reasons):
            assert rules.name_problems(f"a{advice[1]}b") == [], chr(code_point)


def test_a_legal_name_outside_the_pattern_is_a_warning_and_no_refusal() -> None:
    assert rules.legal_name_problems("O'Neil & Daughters, LLC") == []
    assert rules.legal_name_warnings("O'Neil & Daughters, LLC") == [
        "The borrower can be created, but later updates of this name would be refused.",
        "“&” at position 8 is not accepted by the lending service; write “and”.",
    ]


@pytest.mark.parametrize("name", ["Northwind LLC", "", "  "])
def test_a_legal_name_within_the_pattern_or_missing_gives_no_warning(name: str) -> None:
    assert rules.legal_name_warnings(name) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Enter the legal business name."),
        (" \t", "Enter the legal business name."),
        ("North\nwind", "A line break at position 6 of the legal business name is not accepted; delete it."),
        ("N" * 1256, "The legal business name has 1,256 characters; at most 255 are accepted."),
    ],
)
def test_a_legal_name_is_refused_when_missing_too_long_or_unprintable(name: str, reason: str) -> None:
    assert rules.legal_name_problems(name) == [reason]
