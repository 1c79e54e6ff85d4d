"""Phrases for validation messages: which character, its position, its name, and what to type instead.

Hides Unicode: dashes and spaces from word processors, digits of other scripts, accents, invisible characters.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

MAX_REASONS: Final = 5
DASHES: Final = "‐‑‒–—―−－-"
INVISIBLE: Final = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
"""Invisible characters that copied text may contain, as ranges for a regular expression."""

_CHARACTER_NAMES = {" ": "a space", "\t": "a tab", "\n": "a line break", "\r": "a line break"}
_CHARACTER_NAMES |= dict.fromkeys("“”„", "a curly quotation mark")

# Replacements that removing an accent would not give.
_REPLACEMENTS = {
    "&": "and",
    "ß": "ss",
    "ı": "i",
    "æ": "ae",
    "Æ": "Ae",
    "œ": "oe",
    "Œ": "Oe",
    "þ": "th",
    "Þ": "Th",
}
_REPLACEMENTS |= dict.fromkeys("‘‛ʼ´′", "'") | dict.fromkeys(DASHES, "-")
_REPLACEMENTS |= dict(zip("øØłŁđĐðÐ", "oOlLdDdD", strict=True))


def quote_text(text: str) -> str:
    """The text in quotes, shortened if long; a single character that is hard to see, by its name."""
    if len(text) != 1:
        visible = "".join(c if c.isprintable() else "�" for c in text[:40])
        return f"“{visible}…”" if len(text) > 40 else f"“{visible}”"
    if text in _CHARACTER_NAMES:
        return _CHARACTER_NAMES[text]
    if unicodedata.combining(text):
        return "a separate accent"
    if text.isprintable():
        return f"“{text}”"
    return f"an invisible character ({unicodedata.name(text, 'control character').lower()})"


def describe_position(text: str, start: int) -> str:
    """The start of a sentence, such as ``“2” at position 6``; ``start`` counts from 0, the phrase from 1."""
    place = f"position {start + 1}" if len(text) == 1 else f"positions {start + 1} to {start + len(text)}"
    return f"{_capitalize_first(quote_text(text))} at {place}"


def is_hidden(character: str) -> bool:
    """Whether a character is a control or formatting character, a line end, or half of a surrogate pair."""
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def digits_of(text: str) -> str:
    """The decimal digits of a text in any script, as 0 to 9."""
    return "".join(str(unicodedata.decimal(c)) for c in text if c.isdecimal())


def without_separators(text: str) -> str:
    """The text without white space, dashes and invisible characters."""
    return re.sub(rf"[\s{INVISIBLE}{DASHES}]+", "", text)


def suggest_fix(character: str) -> str:
    """The advice for a character that a name may not contain."""
    letters = [c for c in unicodedata.normalize("NFKD", character) if c.isascii() and c.isalpha()]
    if plain := _REPLACEMENTS.get(character) or "".join(letters):
        return f"write “{plain}”"
    if unicodedata.combining(character):
        return "type the letter before it again, without an accent"
    if character.isspace():
        return "type an ordinary space"
    if character.isalpha():
        return "write the name with the letters A to Z"
    return "delete it" if is_hidden(character) else "delete it or write it in words"


def cap_reasons(reasons: Iterable[str]) -> list[str]:
    """The first `MAX_REASONS` reasons, and one sentence instead of the others."""
    shown = list(islice(reasons, MAX_REASONS + 1))
    if len(shown) > MAX_REASONS:
        shown[-1] = "There are more problems. Fix these first."
    return shown


def line_problems(subject: str, text: str | None, limit: int, *, missing: str = "") -> list[str]:
    """Problems of one line of free text: its length and invisible characters."""
    if not (text and text.strip()):
        return [missing] if missing else []
    problems = cap_reasons(
        f"{describe_position(c, start)} of {subject} isn’t allowed. Delete it."
        for start, c in enumerate(text)
        if is_hidden(c)
    )
    if len(text) > limit:
        problems.append(
            f"{_capitalize_first(subject)} has {len(text):,} characters; at most {limit} are accepted."
        )
    return problems


def code_problems(text: str, known: Mapping[str, str], *, noun: str, example: str) -> list[str]:
    """Problems of a two-letter code. If the input is a name or in lowercase, the sentence gives the right code."""
    if text in known:
        return []
    typed = text.strip().casefold()
    for code, name in known.items():
        if typed in {code.casefold(), name.casefold()}:
            return [f"Write {name} as its two capital letters, “{code}”."]
    return [f"{quote_text(text)} is not {noun}. Enter its name or its code, such as “{example}”."]


def _capitalize_first(words: str) -> str:
    return words[0].upper() + words[1:]
