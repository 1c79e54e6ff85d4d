"""What must never be kept or shown: hides by which names and forms it is recognised.

`masked` is the one redactor for everything that is recorded, logged or previewed. `scrub` is its quick
sibling for answers that are kept whole: the service leaves EIN, SSN, date of birth and reports out of them, and
should it ever not, they are gone before anything sees them.
"""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

HIDDEN: Final = "[hidden]"
MAX_DEPTH: Final = 60

_SENSITIVE: Final = frozenset({"ein", "ssn", "dob"})
# Find the sensitive names in any case, and a few harmless ones. Every answer is looked at, and a pattern that begins
# with one certain character takes a third of the time of one with alternatives.
_LOOKS_SENSITIVE: Final = re.compile(rb'"[sSeEdD][sSiIoO][nNbB]"')
_LOOKS_PACKED: Final = re.compile(rb"_[gG][zZ]")
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "set-cookie", "x-signature", "secret", "token"})
_ESCAPED: Final = re.compile(r"\\u00([2-7][0-9a-fA-F])")
_FIELD_IN_TEXT: Final = re.compile(
    r'(\\*"(?:ein|ssn|dob)\\*"\s*:\s*)(\\*")?(?(2)[^"\\]*|(?!null\b|\[hidden\])[^"\\,}\]\s]+)', re.IGNORECASE
)
_MONEY: Final = re.compile(r"amount|balance|principal|interest|fee|total|limit|credit|payment", re.IGNORECASE)

# Nine digits with little between them: where there are none, nothing else has to be looked for.
_NINE_DIGITS: Final = re.compile(r"\d(?:[\W_]{0,3}+\d){8}")
# An SSN or an EIN in its groups, where an EIN is no part of a date and time or of a uuid.
_IN_GROUPS: Final = re.compile(
    r"(?<!\d)\d{3}[\W_]{1,3}\d\d[\W_]{1,3}\d{4}(?!\d)"
    r"|(?<!\d)(?<!(?<!\d)\d\d[-/:])\d\d[\W_]{1,3}\d{7}(?!\d|[\da-f]{5})"
)
# Nine digits in a row or as people space them out; amounts, the decimals of a number and ZIP+4 are something else.
_OTHERWISE: Final = re.compile(
    r"(?<!\d)(?<!\d\.)(?<![$€£])(?<![$€£] )(?:"
    r"\d{9}(?!\.\d\d?(?!\d))"
    r"|\d{3}(?P<dash>[ .\u2010-\u2015-])\d{3}(?P=dash)\d{3}(?!(?P=dash)\d)"
    r"|\d{5}[ .]\d{4}"
    r"|(?<!\d[ .-])\d(?:[ .-]\d){8}(?![ .-]\d)"
    r")(?!\d)"
)
_NINE_DIGIT_NUMBER: Final = re.compile(r"-?\d{9}")
_SIZE: Final = re.compile(r"\[[\d,]+ characters\]")
_LETTER: Final = re.compile(r"[^\W_]")
_TAX_WORD: Final = re.compile(
    r"(?<![^\W\d_])(?:ssns?|social|f?eins?|i?tins?|tax(?:es|payers?)?)(?![^\W\d_])", re.IGNORECASE
)
_TAX_WORD_REACH: Final = 20


class Sensitive(str):
    """Text whose `repr` shows nothing, for places where a traceback or a log might print variables."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN


class TaxNumber(NamedTuple):
    """A place in a text that holds an EIN or SSN, or may hold one."""

    start: int
    end: int
    digits: str
    is_certain: bool
    """Grouped like an EIN or SSN, or near a word that says what it is."""

    @property
    def is_routing_number(self) -> bool:
        """Whether a bank could have it: the Federal Reserve district and the check digit are right."""
        each = [int(digit) for digit in self.digits]
        district = each[0] * 10 + each[1]
        is_district = district <= 12 or 21 <= district <= 32 or 61 <= district <= 72 or district == 80
        weighted = sum(digit * weight for digit, weight in zip(each, (3, 7, 1) * 3, strict=True))
        return is_district and any(each) and weighted % 10 == 0


def tax_numbers(text: str) -> Iterator[TaxNumber]:
    """What in running text is, or may be, an EIN or SSN, in any script and with any separator."""
    if not _NINE_DIGITS.search(text):
        return
    words = [found.span() for found in _TAX_WORD.finditer(text)]
    taken = [found.span() for found in _IN_GROUPS.finditer(text)]
    for start, end in taken:
        yield TaxNumber(start, end, _digits(text[start:end]), True)
    for found in _OTHERWISE.finditer(text):
        start, end = found.span()
        is_part = _is_letter(text, end) or (
            _is_letter(text, start - 1) and not any(start == word_end for _, word_end in words)
        )
        if is_part or any(start < taken_end and taken_start < end for taken_start, taken_end in taken):
            continue
        is_near = any(
            0 <= start - word_end <= _TAX_WORD_REACH or 0 <= word_start - end <= _TAX_WORD_REACH
            for word_start, word_end in words
        )
        yield TaxNumber(start, end, _digits(found[0]), is_near)


def _digits(text: str) -> str:
    return "".join(str(int(each)) for each in text if each.isdecimal())


def _is_letter(text: str, place: int) -> bool:
    return 0 <= place < len(text) and _LETTER.match(text[place]) is not None


def masked(value: Any, *, _depth: int = 0) -> Any:
    """A copy of a JSON value without EIN, SSN, date of birth, credentials and the content of reports."""
    if _depth > MAX_DEPTH:
        return "[nested too deep]"
    if isinstance(value, dict):
        return {
            masked_text(str(key)): _masked_field(str(key), item, _depth + 1) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [masked(item, _depth=_depth + 1) for item in value]
    if isinstance(value, int | Decimal):
        return HIDDEN if _NINE_DIGIT_NUMBER.fullmatch(str(value)) else value
    return masked_text(value) if isinstance(value, str) else value


def masked_text(text: str) -> str:
    """Running text without what is, or may be, an EIN or SSN, nor the one character that databases refuse."""
    text = text.replace("\0", "\ufffd")
    if "\\u00" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    if '"' in text:
        text = _FIELD_IN_TEXT.sub(rf"\1\2{HIDDEN}", text)
    for number in sorted(tax_numbers(text), reverse=True):
        text = f"{text[: number.start]}{HIDDEN}{text[number.end :]}"
    return text


def _masked_field(key: str, value: Any, depth: int) -> Any:
    name = key.casefold()
    if value is None:
        return None
    if name in _SENSITIVE or name in _CREDENTIALS:
        return HIDDEN
    if name.endswith("_gzip"):
        if not isinstance(value, str):
            return HIDDEN
        return value if _SIZE.fullmatch(value) else f"[{len(value):,} characters]"
    if name.endswith("_id") and isinstance(value, str | int):
        return value.replace("\0", "\ufffd") if isinstance(value, str) else value  # A bank's reference.
    if isinstance(value, int | Decimal) and _MONEY.search(name):
        return value
    return masked(value, _depth=depth)


def may_hold_sensitive(text: bytes) -> bool:
    """Whether a JSON text may have a sensitive field anywhere; quick, for every answer is looked at."""
    if b"\\" in text and b"\\u00" in text:
        return True
    if (b"z" in text or b"Z" in text) and _LOOKS_PACKED.search(text):
        return True
    return _LOOKS_SENSITIVE.search(text) is not None


def scrub(value: Any, check_time: Callable[[], None] = lambda: None) -> None:
    """Hide the sensitive fields of a JSON value in place, at any depth; `check_time` raises to end it early."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            check_time()
            waiting += node.values()
            node.update({key: HIDDEN for key, item in node.items() if _must_hide(key, item)})


def _must_hide(key: str, value: Any) -> bool:
    return value is not None and (key.casefold() in _SENSITIVE or key.casefold().endswith("_gzip"))
