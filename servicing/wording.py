"""How a reason is worded: which character, where, what it is called, and what to type in its place.

Hides Unicode: dashes and blanks that word processors put in, digits of other scripts, accents, characters
that nobody can see.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

MAX_REASONS: Final = 5
DASHES: Final = "‐‑‒–—―−－-"
INVISIBLE: Final = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
"""Ranges for a character class: what a copied text may carry along and nobody can see."""

_SPOKEN = {" ": "a space", "\t": "a tab", "\n": "a line break", "\r": "a line break"}
_SPOKEN |= dict.fromkeys("“”„", "a curly quotation mark")

# What to write instead, where taking the accent off does not tell.
_PLAIN = {"&": "and", "ß": "ss", "ı": "i", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "þ": "th", "Þ": "Th"}
_PLAIN |= dict.fromkeys("‘‛ʼ´′", "'") | dict.fromkeys(DASHES, "-")
_PLAIN |= dict(zip("øØłŁđĐðÐ", "oOlLdDdD", strict=True))


def spoken(text: str) -> str:
    """The text in quotes, shortened when long; a single character that quotes would not show, by name."""
    if len(text) != 1:
        visible = "".join(c if c.isprintable() else "�" for c in text[:40])
        return f"“{visible}…”" if len(text) > 40 else f"“{visible}”"
    if text in _SPOKEN:
        return _SPOKEN[text]
    if unicodedata.combining(text):
        return "a separate accent"
    if text.isprintable():
        return f"“{text}”"
    return f"an invisible character ({unicodedata.name(text, 'control character').lower()})"


def located(text: str, start: int) -> str:
    """``“2” at position 6``, to open a sentence with; ``start`` counts from 0, people from 1."""
    place = f"position {start + 1}" if len(text) == 1 else f"positions {start + 1} to {start + len(text)}"
    return f"{_opening(spoken(text))} at {place}"


def is_hidden(character: str) -> bool:
    """Control and formatting characters, line ends, halves of a surrogate pair."""
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def digits_of(text: str) -> str:
    """The decimal digits of a text, whatever their script, as 0 to 9."""
    return "".join(str(unicodedata.decimal(c)) for c in text if c.isdecimal())


def without_separators(text: str) -> str:
    """The text without blanks, dashes and what cannot be seen."""
    return re.sub(rf"[\s{INVISIBLE}{DASHES}]+", "", text)


def mend(character: str) -> str:
    """What to do about a character that a name of plain letters may not hold."""
    letters = [c for c in unicodedata.normalize("NFKD", character) if c.isascii() and c.isalpha()]
    if plain := _PLAIN.get(character) or "".join(letters):
        return f"write “{plain}”"
    if unicodedata.combining(character):
        return "type the letter before it again, without an accent"
    if character.isspace():
        return "type an ordinary space"
    if character.isalpha():
        return "write the name with the letters A to Z"
    return "delete it" if is_hidden(character) else "delete it or write it in words"


def counted(number: int, noun: str) -> str:
    """``1 digit``, ``9 digits``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def first(reasons: Iterable[str]) -> list[str]:
    """The first few reasons, and a sentence in place of all others."""
    shown = list(islice(reasons, MAX_REASONS + 1))
    if len(shown) > MAX_REASONS:
        shown[-1] = "More is refused further on; correct these first."
    return shown


def line_problems(subject: str, text: str | None, limit: int, *, missing: str = "") -> list[str]:
    """Reasons against one line of free text: only its length and what cannot be seen or printed."""
    if not (text and text.strip()):
        return [missing] if missing else []
    problems = first(
        f"{located(c, start)} of {subject} is not accepted; delete it."
        for start, c in enumerate(text)
        if is_hidden(c)
    )
    if len(text) > limit:
        problems.append(f"{_opening(subject)} has {len(text):,} characters; at most {limit} are accepted.")
    return problems


def code_problems(text: str, known: Mapping[str, str], *, noun: str, example: str) -> list[str]:
    """Reasons against a two-letter code, with the right code where a name or small letters were typed."""
    if text in known:
        return []
    typed = text.strip().casefold()
    for code, name in known.items():
        if typed in {code.casefold(), name.casefold()}:
            return [f"Write {name} as its two capital letters, “{code}”."]
    return [f"{spoken(text)} is not {noun}; use its two capital letters, such as “{example}”."]


def _opening(words: str) -> str:
    return words[0].upper() + words[1:]
