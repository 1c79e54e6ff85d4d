"""Masking of EIN, SSN, dates of birth, credentials and reports. Hides how they are recognized.

`masked` redacts everything that is recorded, logged or previewed. `scrub` is faster and hides only fields with a
sensitive name, in answers that are otherwise kept whole. The service should never send any; if it does, they are
hidden before other code sees them.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

HIDDEN: Final = "[hidden]"
MAX_DEPTH: Final = 60

_SENSITIVE: Final = frozenset({"ein", "ssn", "dob"})
# These patterns also match a few harmless names. They run on every answer, and a pattern that starts with a fixed
# character takes a third of the time of one with alternatives.
_LOOKS_SENSITIVE: Final = re.compile(rb'"[sSeEdD][sSiIoO][nNbB]"')
_LOOKS_PACKED: Final = re.compile(rb"_[gG][zZ]")
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "set-cookie", "x-signature", "secret", "token"})
_ESCAPED: Final = re.compile(r"\\u00([2-7][0-9a-fA-F])")
# As logs and JSON write a separator that is not printable ASCII.
_ESCAPED_SEPARATOR: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[tnrfv])")
_FIELD_IN_TEXT: Final = re.compile(
    r'(\\*"(?:ein|ssn|dob)\\*"\s*:\s*)(\\*")?(?(2)[^"\\]*|(?!null\b|\[hidden\])[^"\\,}\]\s]+)', re.IGNORECASE
)
_MONEY: Final = re.compile(r"amount|balance|principal|interest|fee|total|limit|credit|payment", re.IGNORECASE)

# Superscripts, circled digits and the like: people read them as digits, regular expressions don't.
_ODD_DIGITS: Final = {
    code: str(unicodedata.digit(chr(code)))
    for code in range(0x3000)
    if unicodedata.digit(chr(code), None) is not None and not chr(code).isdecimal()
}
_INVISIBLE: Final = "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]"
# Without nine digits close together, a text holds no number to mask, and the slower patterns are skipped.
_NINE_DIGITS: Final = re.compile(r"\d(?:[\W_]{0,12}+\d){8}")
# An SSN or EIN with its usual groups. Parts of a date and time or of a uuid look like an EIN and are excluded.
_GROUPED_NUMBER: Final = re.compile(
    r"(?<!\d)\d{3}[\W_]{1,12}\d\d[\W_]{1,12}\d{4}(?!\d)"
    r"|(?<!\d)(?<!(?<!\d)\d\d[-/:])\d\d[\W_]{1,12}\d{7}(?!\d|[\da-f]{5})"
)
# Nine digits in a row or with usual spacing. Amounts, decimals and ZIP+4 codes are excluded.
_UNGROUPED_NUMBER: Final = re.compile(
    r"(?<!\d)(?<!\d\.)(?<![$€£])(?<![$€£] )(?:"
    rf"\d(?:{_INVISIBLE}*\d){{8}}(?!\.\d\d?(?!\d))"
    r"|\d{3}(?P<dash>[ .\u2010-\u2015-])\d{3}(?P=dash)\d{3}(?!(?P=dash)\d)"
    r"|\d{5}[ .]\d{4}"
    r"|(?<!\d[ .-])\d(?:[ .-]\d){8}(?![ .-]\d)"
    r")(?!\d)"
)
# Nine digits in any groups of one kind, which count only near a word. Amounts, decimals and ZIP+4 codes are excluded.
_GROUPS_NEAR_WORD: Final = re.compile(
    r"(?<!\d)(?<!\d[\W_])(?<![$€£])(?<![$€£] )(?!\d{5}-\d{4}(?!\d))(?!\d{3}(?:,\d{3}){2}(?!\d))"
    r"(?=\d+(?P<mark>[^\w\n]|_)\d)(?=(?:\d(?P=mark)?){8}\d(?!\d|(?P=mark)\d))(?:\d(?P=mark)?){8}\d"
)
_NINE_DIGIT_NUMBER: Final = re.compile(r"-?\d{9}")
_SIZE: Final = re.compile(r"\[[\d,]+ characters\]")
_LETTER: Final = re.compile(r"[^\W_]")
_TAX_WORD: Final = re.compile(
    r"(?<![^\W\d_])(?:ssns?|social|f?eins?|i?tins?|tax(?:es|payers?)?)(?![^\W\d_])", re.IGNORECASE
)
_TAX_WORD_REACH: Final = 20


class Sensitive(str):
    """Text with a `repr` that hides it, for variables that a traceback or a log might print."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN


class TaxNumber(NamedTuple):
    """A possible EIN or SSN in a text."""

    start: int
    end: int
    digits: str
    is_certain: bool
    """Whether it is grouped like an EIN or SSN, or close to a word such as "SSN" or "tax"."""

    @property
    def is_routing_number(self) -> bool:
        """Whether it is a valid bank routing number: Federal Reserve district and check digit match."""
        each = [int(digit) for digit in self.digits]
        district = each[0] * 10 + each[1]
        is_district = district <= 12 or 21 <= district <= 32 or 61 <= district <= 72 or district == 80
        weighted = sum(digit * weight for digit, weight in zip(each, (3, 7, 1) * 3, strict=True))
        return is_district and any(each) and weighted % 10 == 0


def tax_numbers(text: str) -> Iterator[TaxNumber]:
    """Possible EINs and SSNs in a text, in digits of any script and with any separator."""
    if not text.isascii():
        text = text.translate(_ODD_DIGITS)
    if "\\" in text:
        text = _ESCAPED_SEPARATOR.sub(lambda found: " " * len(found[0]), text)
    if not _NINE_DIGITS.search(text):
        return
    words = [found.span() for found in _TAX_WORD.finditer(text)]
    found = [each.span() for each in _GROUPED_NUMBER.finditer(text)]
    for start, end in found:
        yield TaxNumber(start, end, _digits(text[start:end]), True)
    for pattern in (_UNGROUPED_NUMBER, _GROUPS_NEAR_WORD) if words else (_UNGROUPED_NUMBER,):
        for start, end in [each.span() for each in pattern.finditer(text)]:
            is_part = _is_letter(text, end) or (
                _is_letter(text, start - 1) and not any(start == word_end for _, word_end in words)
            )
            if is_part or any(start < other_end and other_start < end for other_start, other_end in found):
                continue
            is_near = any(
                0 <= start - word_end <= _TAX_WORD_REACH or 0 <= word_start - end <= _TAX_WORD_REACH
                for word_start, word_end in words
            )
            if is_near or pattern is _UNGROUPED_NUMBER:
                found.append((start, end))
                yield TaxNumber(start, end, _digits(text[start:end]), is_near)


def _digits(text: str) -> str:
    return "".join(str(int(each)) for each in text if each.isdecimal())


def _is_letter(text: str, index: int) -> bool:
    return 0 <= index < len(text) and _LETTER.match(text[index]) is not None


def masked(value: Any, *, _depth: int = 0) -> Any:
    """A copy of a JSON value with EIN, SSN, date of birth, credentials and the content of reports masked."""
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
    """A text with possible EINs and SSNs masked, and without NUL, which databases reject."""
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
        # Bank references look like an EIN or SSN but are not secret.
        return value.replace("\0", "\ufffd") if isinstance(value, str) else value
    if isinstance(value, int | Decimal) and _MONEY.search(name):
        return value
    return masked(value, _depth=depth)


def may_hold_sensitive(text: bytes) -> bool:
    """Whether a JSON text may contain a sensitive field. Fast, because it runs on every answer."""
    if b"\\" in text and b"\\u00" in text:
        return True
    if (b"z" in text or b"Z" in text) and _LOOKS_PACKED.search(text):
        return True
    return _LOOKS_SENSITIVE.search(text) is not None


def scrub(value: Any, check_time: Callable[[], None] = lambda: None) -> None:
    """Hide the sensitive fields of a JSON value in place, at any depth; `check_time` may raise to stop it."""
    nodes = [value]
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes += node
        elif isinstance(node, dict):
            check_time()
            nodes += node.values()
            node.update({key: HIDDEN for key, item in node.items() if _must_hide(key, item)})


def _must_hide(key: str, value: Any) -> bool:
    return value is not None and (key.casefold() in _SENSITIVE or key.casefold().endswith("_gzip"))
