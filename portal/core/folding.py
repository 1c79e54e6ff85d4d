"""Folds texts, so that what is stored and what is typed are compared alike however they were written.

Needs no database and no settings. A change of :func:`fold` needs a migration that folds what is stored again.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

# Letters that Unicode doesn't decompose. Case is folded before.
_LETTERS: Final = {
    "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h", "ŧ": "t", "ŋ": "n",
    "ĸ": "k", "ȷ": "j", "ə": "e", "ɓ": "b", "ɗ": "d", "ƒ": "f", "ɠ": "g", "ɨ": "i", "ƙ": "k", "ɲ": "n", "ɵ": "o",
    "ʉ": "u", "ƶ": "z", "ɫ": "l", "ⱥ": "a", "ɖ": "d",
}  # fmt: skip
_LIGATURES: Final = {"ae": "[æÆǽǼ]", "oe": "[œŒ]", "th": "[þÞ]", "ss": "[ßẞ]"}
"""The single letters that are folded to two."""
_PAIRS: Final = re.compile("|".join(_LIGATURES) + "|.")
# Quotes, primes and dashes outside the categories of punctuation for them.
_MARKS: Final = "'\"`´¨ʹʺʻʼʽʾʿˈˊˋ˝՚՛׳״′″‴‵‶‷„‚‟‛「」『』〝〞〟＂＇｀−⁃﹘﹣－‐‑"
_REMOVED_CATEGORIES: Final = frozenset({"Cf", "Pd", "Pi", "Pf"})
_ACCENTS: Final = re.compile("([a-zα-ω])[\u0300-\u036f]+")
_INITIALS: Final = re.compile(r"(?<!\w)(?:[^\W\d_]\.\s?)+(?=[^\W\d_]\.)|(?<!\w)[^\W\d_]\.(?!\.)")
_THAI_AM: Final = {"\u0e4d\u0e32": "\u0e33", "\u0ecd\u0eb2": "\u0eb3"}
_ASCII: Final = str.maketrans("", "", "'\"`-") | {ord("&"): " and "}


def fold(text: str) -> str:
    """A text in a form in which equal words are equal.

    Without case, accents of Latin and Greek letters, quotes, apostrophes, dashes, dots of initials and format
    characters; "&" is "and", other widths and ligatures are plain, white space is single spaces. Letters of other
    scripts stay as they are.
    """
    # Most texts are ASCII; others take much longer.
    folded = text.lower().translate(_ASCII) if text.isascii() else _fold_unicode(text)
    return " ".join((join_initials(folded) if "." in folded else folded).split())


def folded_key(text: str) -> str:
    """The letters and digits of a text, folded, to compare whole names; without any, its visible characters."""
    folded = fold(text)
    key = "".join(one for one in folded if one.isalnum() or unicodedata.category(one).startswith("M"))
    return key or "".join(unicodedata.normalize("NFKC", text).split())


def join_initials(text: str) -> str:
    """The text with initials as one word without dots, to be split into words."""
    return _INITIALS.sub(lambda found: re.sub(r"[.\s]", "", found[0]), text)


def _fold_unicode(text: str) -> str:
    spread = unicodedata.normalize("NFKC", "".join(map(_without_mark, text))).casefold()
    # Letters that have no accent of their own may still carry one, such as "ǿ".
    spread = "".join(_LETTERS.get(one, one) for one in unicodedata.normalize("NFKD", spread))
    spread = _ACCENTS.sub(r"\1", spread)
    for apart, joined in _THAI_AM.items():
        spread = spread.replace(apart, joined)
    return unicodedata.normalize("NFC", "".join(map(_plain, spread)))


@lru_cache(4096)
def _without_mark(character: str) -> str:
    """Nothing for a quote, a dash or a format character, which normalizing might replace."""
    is_mark = character in _MARKS or unicodedata.category(character) in _REMOVED_CATEGORIES
    return "" if is_mark else character


@lru_cache(4096)
def _plain(character: str) -> str:
    if character == "&":
        return " and "
    return _without_mark(character)


def folded_pattern(text: str) -> str:
    """A regular expression, to be used without regard to case, that finds a text in stored texts that aren't folded.

    It has only what Python, SQLite and PostgreSQL agree on.
    """
    words = (
        r"\s*(?:and|&)\s*" if word == "and" else _GAP.join(map(_spellings, _PAIRS.findall(word)))
        for word in fold(text).split()
    )
    return rf"{_GAP}\s*{_GAP}".join(words)


def _spellings(character: str) -> str:
    """The ways to write a folded character, or two that are folded from one."""
    if len(character) > 1:
        return f"(?:{_GAP.join(map(_spellings, character))}|{_LIGATURES[character]})"
    wide = chr(ord(character) + 0xFEE0) if character.isascii() and character.isalnum() else ""
    letters = wide + "".join(one for one, plain in _accented().items() if plain == character)
    return f"[{character}{letters}]" if letters else re.escape(character)


@lru_cache(1)
def _accented() -> dict[str, str]:
    """Each letter with an accent, of Latin and Greek, and the single letter that it is folded to."""
    codes = (*range(0xC0, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2000))
    folded = {chr(code): fold(chr(code)) for code in codes if chr(code).isalpha()}
    return {letter: plain for letter, plain in folded.items() if len(plain) == 1 and plain != letter.lower()}


# What folding removes between two letters.
_GAP: Final = rf"(?:\.\s?|[\u0300-\u036f\u00ad\u200b-\u200f\u2060\ufeff{_MARKS}‘’‹›“”«»–—―-])*"
