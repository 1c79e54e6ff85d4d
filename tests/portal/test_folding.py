"""Folding texts: equal words are equal however they are written, and every script survives."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.folding import fold, folded_key, folded_pattern

EQUAL = [
    ("obrien", ["O'Brien", "O’Brien", "O‘BRIEN", "OʼBrien", "O`Brien", "O´Brien", "O＇Brien", "O′Brien"]),
    ("walmart", ["Wal-Mart", "WAL‑MART", "Wal–Mart", "Wal−Mart", "Wal\u00adMart", "Wal\u200bMart", "Wal\u2060Mart"]),
    ("bjorn lodz dorde", ["Bjørn Łódź Đorđe", "BJØRN ŁÓDŹ ĐORĐE", "Bjo\u0308rn  Lo\u0301dz Dorđe"]),
    ("aesir oeuvre strasse thor guthrun", ["Æsir Œuvre Straße Þór Guþrún", "ÆSIR ŒUVRE STRASSE ÞÓR GUÞRÚN"]),
    ("orsted aether aer", ["Ǿrsted Ǽther Ǣr", "Ørsted Æther Ær", "O\u0338\u0301rsted ǽther ǣr"]),
    ("isik", ["Işık", "IŞIK", "İşik"]),
    ("jp morgan", ["J.P. Morgan", "J. P. Morgan", "JP Morgan", "j.p. morgan", "J.P Morgan"]),
    ("john f kennedy llc", ["John F. Kennedy L.L.C.", "John F Kennedy LLC"]),
    ("alvarado and lindgren", ["Alvarado & Lindgren", "Alvarado ＆ Lindgren", "Alvarado&Lindgren"]),
    ("juniper ridge", ["“Juniper Ridge”", "«Juniper Ridge»", '"juniper ridge"', "„Juniper\u00a0Ridge‟"]),
    ("3m co 25", ["３Ｍ Ｃｏ ２５", "3M Co 25"]),
    ("finance", ["ﬁnance", "FINANCE"]),
    ("αθηνα", ["Αθήνα", "ΑΘΉΝΑ"]),
    ("москва", ["Москва", "МОСКВА"]),
]  # fmt: skip
SCRIPTS = ["αθηνα", "йошкар ёлка", "שָׁלוֹם", "مُحَمَّد", "हिन्दी", "株式会社がガ", "น้ำไทย", "한국"]


@pytest.mark.parametrize(("folded", "spellings"), EQUAL)
def test_equal_words_are_equal(folded: str, spellings: list[str]) -> None:
    assert {fold(one) for one in spellings} == {folded}
    assert {folded_key(one) for one in spellings} == {folded.replace(" ", "")}


@pytest.mark.parametrize("text", SCRIPTS)
def test_other_scripts_survive(text: str) -> None:
    assert fold(text) == text
    assert folded_key(text) == text.replace(" ", "")


@pytest.mark.parametrize("text", ["1.5", "acme, inc.", "a_b", "#12", "50%", "c++", "a...b", "us..."])
def test_other_marks_stay(text: str) -> None:
    assert fold(text) == text


@pytest.mark.parametrize("text", ["3M", "7", "---", "’", "???", "X"])
def test_every_name_has_a_key(text: str) -> None:
    assert folded_key(text) == folded_key(f" {text}  ") != ""


def test_names_of_different_marks_have_different_keys() -> None:
    assert len({folded_key(one) for one in ("---", "???", "!", "3M", "3N")}) == 5


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold(text) == " ".join(fold(text).split())


@pytest.mark.parametrize(("folded", "spellings"), EQUAL)
def test_a_pattern_finds_every_common_spelling(folded: str, spellings: list[str]) -> None:
    common = [one for one in spellings if not set("æǽǣœßþ３Ｃ２ﬁ＆") & set(one.lower())]
    for stored in common:
        assert re.search(folded_pattern(folded), f"x {stored} y", re.IGNORECASE), stored


def test_a_pattern_takes_typed_marks_literally() -> None:
    assert re.fullmatch(folded_pattern("a+b (c)*"), "a+b (c)*")
    assert not re.search(folded_pattern("a+b"), "aab")
    assert folded_pattern("’") == ""


def test_folding_needs_no_database() -> None:
    code = "import sys, portal.core.folding; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
