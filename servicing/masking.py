"""Masking of EIN, SSN, dates of birth, credentials and reports. Hides how they are recognized.

`masked` redacts everything that is recorded, logged or previewed. `scrub` hides sensitive fields, and EIN and SSN in
texts, in answers that are otherwise kept whole. The service should never send any; if it does, they are hidden before
other code sees them. Both go by what a name means, not how it is written.
"""

import html
import re
import sys
import unicodedata
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from enum import Enum, auto
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

HIDDEN: Final = "[hidden]"
MAX_DEPTH: Final = 60

# Names of fields

_WORDS_OF_NAME: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SENSITIVE_NAME: Final = re.compile(
    r"(?:^|_)(?:fein|eins?|ssns?|[ia]?tins?|dob"
    r"|(?:tax|taxpayers?|tax_payer)_(?:id(?:s|ent\w*)?|num\w*|no|nbr|ref\w*)|taxids?|taxpayerids?"
    r"|employer_?ident\w*|employer_id_num\w*|fed(?:eral)?_?(?:tax_|employer_)?id\w*"
    r"|social|social_?sec\w*|social_?(?:insurance_?)?num\w*|soc_sec\w*|ss_?(?:num\w*|nbr|no)"
    r"|birth(?:_?(?:da(?:te|y)s?|day|month|year))?|(?:date|day|month|year)_?of_?birth|born(?:_on)?"
    r")(?:_|$|\d)|(?:ssn|dob)$|(?:^|_)(?:birthdate|dateofbirth|socialsecurity|taxid|taxpayerid|employerident)"
)
# The name of something else that happens to hold such a word.
_OTHER_NAME: Final = re.compile(
    r"social_(?:media|links?|urls?|profiles?)|birth_?(?:place|city|state|country)"
)
# Fields with digits that only look like an EIN or SSN, which pages need. Staff type values of the second kind, never
# of the first.
_ID_NAME: Final = re.compile(r"_ids?$")
_REFERENCE_NAME: Final = re.compile(
    r"(?:^|_)(?:uuids?|ids?|zip(?:_code)?|postal_code|phone(?:_number)?|fax|urls?"
    r"|(?:routing|account|trace|aba|batch|reference)(?:_number)?)$"
)
_CREDENTIAL_NAME: Final = re.compile(
    r"(?:^|_)(?:authorization|cookies?|signature|secret|token|password|(?:api|secret|private)_key)$"
)
_MONEY_NAME: Final = re.compile(r"amount|balance|principal|interest|fee|total|limit|credit|payment")
_REPORT_NAME: Final = re.compile(r"_gzip$")


class Kind(Enum):
    """What a field holds, by its name."""

    SENSITIVE = auto()
    CREDENTIAL = auto()
    REPORT = auto()
    ID = auto()
    REFERENCE = auto()
    MONEY = auto()
    TEXT = auto()


_KINDS: Final = (
    (_REPORT_NAME, Kind.REPORT),
    (_CREDENTIAL_NAME, Kind.CREDENTIAL),
    (_ID_NAME, Kind.ID),
    (_REFERENCE_NAME, Kind.REFERENCE),
    (_MONEY_NAME, Kind.MONEY),
)
_KEPT_KINDS: Final = (Kind.ID, Kind.REFERENCE)

# Numbers in texts

_FIELD_IN_TEXT: Final = re.compile(
    r"""(?P<field>\\*(?P<quote>["'])(?P<name>[^"'\\]{1,60})\\*(?P=quote)\s*:\s*)(?P<open>\\*(?P=quote))?"""
    r"""(?(open)(?:(?!(?P=quote))[^\\])*|(?!null\b|\[hidden\])[^"'\\,}\]\s]+)"""
)
_ESCAPED: Final = re.compile(r"\\u00([2-7][0-9a-fA-F])")
# Ways to escape a character: HTML entities, percent encoding, and the escapes of logs and JSON.
_ODD: Final = re.compile(
    r"&(?:amp;)*(?P<entity>#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31});"
    r"|(?P<percent>(?:%(?:25)*[0-9a-fA-F]{2})+)"
    r"|\\+(?:u(?P<u>[0-9a-fA-F]{4})|x(?P<x>[0-9a-fA-F]{2})|(?P<blank>[tnrfv]))"
    r"|[^\x00-\x7f]"
)
_TAG: Final = re.compile(r"</?[A-Za-z!][^<>]*>")
_INVISIBLE: Final = "\u200b"
"""The replacement for every invisible character."""
# Invisible characters that Unicode does not classify as formatting.
_BLANK_CHARACTERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
# Letters that look like a dash, such as the one beside the digits of a Japanese keyboard.
_DASH_LETTERS: Final = frozenset("\u0640\u1173\u30fc\u3161\u4e00")
_NINE_DIGIT_NUMBER: Final = re.compile(r"-?\d{9}")
_NUMBER: Final = re.compile(r"-?[\d,]+(?:\.\d+)?")
_DECIMAL: Final = re.compile(r"-?\d+\.\d+")
_SIZE: Final = re.compile(r"\[[\d,]+ characters\]")
_ALPHANUMERIC: Final = re.compile(r"[^\W_]")

_GAP: Final = r"[\W_]{1,12}"
# Nine digits with anything but letters between them. Without a match, the slower patterns are skipped.
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?=[aZ +]|$)")
_NINE_DIGITS: Final = re.compile(r"\d(?:[\W_]{0,12}+\d){8}")
# An SSN or EIN with its usual groups.
_USUAL_GROUPS: Final = re.compile(
    rf"(?<!\d)\d{{3}}{_GAP}\d\d{_GAP}\d{{4}}(?!\d)"
    rf"|(?<!\d)(?<!(?<!\d)\d\d[-/:])\d\d{_GAP}\d{{7}}(?!\d|[\da-f]{{5}})"
)
_DIGITS: Final = re.compile(r"\d+")
_ANY_GAP: Final = re.compile(r"[\W_]{1,20}")
# The separators of a number without a word that names it.
_NARROW_GAP: Final = re.compile(r"""(?:[^\w\n,"']|_){1,3}|,""")
# A word that names an SSN or EIN, also inside a longer one ("mySSNis…").
_STRONG_WORD: Final = re.compile(
    r"(?<![^\W\d_])(?i:social|soc[\W_]{1,2}sec|f?eins?|i?tins?|s\.s\.n|(?:f\.)?e\.i\.n|ss[\W_]{0,2}(?:no|num[a-z]*|#)"
    r"|tax(?:payers?)?[\W_]{0,3}(?:id|ident[a-z]*|num[a-z]*|no))(?![^\W\d_])"
    r"|(?<![A-Z])(?:F?EIN|I?TIN)(?![A-Z])|(?<=[a-z])(?:Fein|Ein|Itin|Tin)(?![a-z])"
    r"|[sS][sS][nN](?![eE][sS][sS]|[aA][mM])"
)
# A word that names one only beside digits that can't be anything else.
_WEAK_WORD: Final = re.compile(r"(?<![^\W\d_])tax(?:es|payers?)?(?![^\W\d_])", re.IGNORECASE)
_WORD_REACH: Final = 20
_MAX_STRAY_LETTERS: Final = 2
"""With more letters attached, nine digits are a code even beside such a word."""

_DAY, _MONTH, _YEAR, _DASH = (
    r"(?:0?[1-9]|[12]\d|3[01])",
    r"(?:0?[1-9]|1[0-2])",
    r"(?:19|20)\d\d",
    "[-\u2010-\u2015\u2212]",
)
_MONTH_NAME: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_NAMED_DAY: Final = (
    rf"{_DAY}[ -]{_MONTH_NAME}[ -,]{{1,2}}{_YEAR}|{_MONTH_NAME} ?{_DAY}(?:st|nd|rd|th)?[, ]{{1,2}}{_YEAR}"
)
# IDs, days and times are never an SSN or EIN.
_ID_OR_TIME: Final = re.compile(
    r"(?<![^\W_])(?:[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}|(?=\d*[a-f])[\da-f]{16,})(?![^\W_])"
    rf"|(?<!\d)(?:{_YEAR}(?P<a>[-/.]){_MONTH}(?P=a){_DAY}|{_MONTH}(?P<b>[-/.]){_DAY}(?P=b)(?:{_YEAR}|\d\d))(?!\d)"
    rf"|(?<![a-z\d])(?:{_NAMED_DAY})(?!\d)"
    r"|(?<![\d:])\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\d:])",
    re.IGNORECASE,
)
_AMOUNT: Final = (
    r"[$€£¥] ?\d[\d,]*(?:\.\d+)?|(?<![\d,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!,?\d)|(?<![\d.])\d+\.\d\d?(?!\.?\d)"
)
# Amounts and other decimals, ZIP+4 codes, addresses of computers and local phone numbers.
_AMOUNT_OR_CODE: Final = re.compile(
    rf"{_AMOUNT}|(?<![\d.])\d+\.\d+(?!\.?\d)|(?<!\d)\d{{5}}{_DASH}\d{{4}}(?!\d)"
    rf"|(?<![\d.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?!\.?\d)|(?<!\d)(?<!\d[^\w])\d{{3}}{_DASH}\d{{4}}(?!\d)"
)
_ONLY_AMOUNT: Final = re.compile(_AMOUNT)
_BIRTH_WORDS: Final = ("birth", "born", "dob", "d.o.b")
# A date in any order, a few characters after a word that marks it as a birth date.
_BIRTH_DATE: Final = re.compile(
    rf"(?P<word>(?<![^\W_])(?:(?:date|day)[\W_]?of[\W_]?)?(?:birth(?:[\W_]?(?:date|day)s?)?|born|dob|d\.o\.b)(?![a-z])\D{{0,{_WORD_REACH}}}?)"
    rf"(?:\d{{1,4}}(?P<gap>[-/. \u2010-\u2015\u2212])\d{{1,2}}(?P=gap)\d{{2,4}}|\d{{8}}|{_NAMED_DAY}"
    rf"|{_DAY}[ -]{_MONTH_NAME}[ -]\d\d)(?!\d)",
    re.IGNORECASE,
)


# Escapes, quotation marks of a field, NUL, and tags.
_MARK: Final = re.compile(r"""["'&%\\\0<]""")
_BIRTH_WORD: Final = re.compile("|".join(map(re.escape, _BIRTH_WORDS)), re.IGNORECASE)


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


class _Reading:
    """A text as people read it, with the positions of its parts in the original."""

    text: str

    def __init__(self, source: "str | _Reading", invisible: str) -> None:
        """`source` is the original, or a reading whose tags are left out."""
        self._source = source
        original, pattern = (source, _ODD) if isinstance(source, str) else (source.text, _TAG)
        self._parts: list[tuple[int, int, int]] = []
        """For each part: its start as read, and its start and end in the original. A plain part has no length."""
        if pattern is _ODD and original.isascii() and not any(mark in original for mark in "&%\\"):
            self.text = original
            return
        pieces: list[str] = []
        length = position = 0
        for found in pattern.finditer(original):
            if (read := _read(found).replace(_INVISIBLE, invisible)) == found[0]:
                continue
            pieces += original[position : found.start()], read
            length += found.start() - position
            position = found.end()
            self._parts += (length, found.start(), position), (length + len(read), position, position)
            length += len(read)
        self.text = "".join(pieces) + original[position:]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The position of a part in the original, with whole entities and escapes."""
        begin, finish = self._origin(start)[0], self._origin(end - 1)[1]
        return (begin, finish) if isinstance(self._source, str) else self._source.span(begin, finish)

    def _origin(self, index: int) -> tuple[int, int]:
        at = bisect_right(self._parts, (index, sys.maxsize, 0)) - 1
        begin, start, end = self._parts[at] if at >= 0 else (0, 0, 0)
        plain = start + index - begin
        return (start, end) if end > start else (plain, plain + 1)


def _read(found: re.Match[str]) -> str:
    """The characters that people read for a tag, an entity, an escape or a character outside ASCII."""
    if found.re is _TAG:
        return _INVISIBLE
    if entity := found["entity"]:
        text = html.unescape(f"&{entity};")
        return found[0] if text.startswith("&") and len(text) > 1 else "".join(map(_read_character, text))
    if percent := found["percent"]:
        text = unquote_to_bytes(percent.replace("%25", "%")).decode(errors="replace")
        return "".join(map(_read_character, text))
    if code := found["u"] or found["x"]:
        return _read_character(chr(int(code, 16)))
    return " " if found["blank"] else _read_character(found[0])


@lru_cache(4096)
def _read_character(character: str) -> str:
    """A digit of any script as a digit, other characters in their plain form, and all invisible ones as one."""
    digit = unicodedata.digit(character, None)
    if digit is not None:
        return str(digit)
    match unicodedata.category(character):
        case "Mn" | "Me" if character not in _BLANK_CHARACTERS:
            return ""  # A combining mark on the character before it, such as the frame of a keycap.
        case "Cf":
            return _INVISIBLE
    if character in _BLANK_CHARACTERS:
        return _INVISIBLE
    plain = unicodedata.normalize("NFKC", character)
    return "-" if plain in _DASH_LETTERS else plain


def tax_numbers(text: str) -> Iterator[TaxNumber]:
    """Possible EINs and SSNs in a text, in digits of any script, with any separator, escaped or marked up."""
    found: list[tuple[int, int]] = []
    # What nobody sees may separate groups or be scattered among the digits.
    for invisible in (_INVISIBLE, ""):
        readings = [_Reading(text, invisible)]
        if _TAG.search(readings[0].text):
            readings.append(_Reading(readings[0], invisible))
        for reading in readings:
            if _NINE_DIGITS.search(reading.text):
                for start, end, is_certain in _tax_numbers(reading.text):
                    span = reading.span(start, end)
                    if not _touches(found, *span):
                        insort(found, span)
                        digits = "".join(_DIGITS.findall(reading.text[start:end]))
                        yield TaxNumber(*span, digits, is_certain)
        if not any(_INVISIBLE in reading.text for reading in readings):
            return


def _tax_numbers(text: str) -> Iterator[tuple[int, int, bool]]:
    never, usual = _spans(_ID_OR_TIME, text), []
    for start, end in _spans(_USUAL_GROUPS, text):
        if not _touches(never, start, end):
            usual.append((start, end))
            yield start, end, True
    strong, weak, seldom = (_spans(each, text) for each in (_STRONG_WORD, _WEAK_WORD, _AMOUNT_OR_CODE))
    amounts = [span for span in _spans(_ONLY_AMOUNT, text) if not _has_nine_whole_digits(text[slice(*span)])]
    last_end = 0
    for start, end, looks_like_one in _nine_digits(text):
        if start < last_end or _touches(usual, start, end) or _touches(never, start, end):
            continue
        near = start - _WORD_REACH - 1, end + _WORD_REACH + 1
        token = _token(text, start, end)
        is_alone = token == (start, end)
        is_certain = (
            _touches(strong, *near)
            and not _touches(amounts, start, end)
            and (token[1] - token[0] - (end - start) <= _MAX_STRAY_LETTERS or _touches(strong, *token))
        )
        if not is_certain and is_alone and not _touches(seldom, start, end):
            is_certain = _touches(weak, *near)
        elif not is_certain:
            continue
        if is_certain or looks_like_one:
            last_end = end
            yield start, end, is_certain


def _nine_digits(text: str) -> Iterator[tuple[int, int, bool]]:
    """Nine digits in any groups, and whether these groups look like one number without a word beside them."""
    runs = [each.span() for each in _DIGITS.finditer(text)]
    gaps = ["", *(text[one[1] : other[0]] for one, other in pairwise(runs)), ""]
    for first, (start, end) in enumerate(runs):
        length, last = end - start, first
        while length < 9 and last + 1 < len(runs) and _ANY_GAP.fullmatch(gaps[last + 1]):
            last += 1
            length += runs[last][1] - runs[last][0]
        if length == 9:
            inner = gaps[first + 1 : last + 1]
            yield start, runs[last][1], _look_like_one(inner, {gaps[first], gaps[last + 1]})


def _look_like_one(gaps: list[str], outer: set[str]) -> bool:
    """Whether these gaps are those of one number, separate from the digits before and after it."""
    if not all(map(_NARROW_GAP.fullmatch, gaps)):
        return False
    if len(set(gaps)) <= 1:
        return not gaps or (len(gaps) in (1, 2, 8) and not outer & set(gaps))
    return len(gaps) == 2 and not any(map(_NARROW_GAP.fullmatch, outer))


def _spans(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    return [found.span() for found in pattern.finditer(text)]


def _touches(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether a part of a text overlaps one of these spans, which are in order and don't overlap each other."""
    at = bisect_left(spans, (end,)) - 1
    return at >= 0 and spans[at][1] > start


def _token(text: str, start: int, end: int) -> tuple[int, int]:
    """The letters and digits without a gap around a part of a text."""
    while start and _ALPHANUMERIC.match(text[start - 1]):
        start -= 1
    while end < len(text) and _ALPHANUMERIC.match(text[end]):
        end += 1
    return start, end


def _has_nine_whole_digits(amount: str) -> bool:
    return len("".join(_DIGITS.findall(amount.partition(".")[0]))) == 9


# Masking


@lru_cache(4096)
def _kind_of(name: str) -> Kind:
    """What a field holds, by its name in any notation."""
    words = "_".join(_WORDS_OF_NAME.findall(name[:200])).lower()
    if _SENSITIVE_NAME.search(words) and not _OTHER_NAME.search(words):
        return Kind.SENSITIVE
    for pattern, kind in _KINDS:
        if pattern.search(words):
            return kind
    return Kind.TEXT


def is_sensitive(name: str) -> bool:
    """Whether a field of this name, in any notation, holds an EIN, SSN or date of birth."""
    return _kind_of(name) is Kind.SENSITIVE


def masked(value: Any, *, _depth: int = 0) -> Any:
    """A copy of a JSON value with EIN, SSN, date of birth, credentials and the content of reports masked."""
    if _depth > MAX_DEPTH:
        return "[nested too deep]"
    if isinstance(value, dict):
        return {
            masked_text(str(key)): _masked_field(_kind_of(str(key)), item, _depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [masked(item, _depth=_depth + 1) for item in value]
    if isinstance(value, int | Decimal):
        return HIDDEN if _NINE_DIGIT_NUMBER.fullmatch(str(value)) else value
    return masked_text(value) if isinstance(value, str) else value


def _masked_field(kind: Kind, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if kind in (Kind.SENSITIVE, Kind.CREDENTIAL):
        return HIDDEN
    if kind is Kind.REPORT:
        if not isinstance(value, str):
            return HIDDEN
        return value if _SIZE.fullmatch(value) else f"[{len(value):,} characters]"
    if kind is Kind.ID and isinstance(value, list):
        return [_masked_field(kind, item, depth + 1) for item in value] if depth < MAX_DEPTH else HIDDEN
    if kind is Kind.ID and isinstance(value, str | int):
        return value.replace("\0", "\ufffd") if isinstance(value, str) else value
    if kind is Kind.MONEY and isinstance(value, int | Decimal):
        return value
    return masked(value, _depth=depth)


def masked_text(text: str) -> str:
    """A text with possible EINs and SSNs masked, and without NUL, which databases reject."""
    if text.isascii() and not (_MARK.search(text) or _NINE_DIGITS.search(text) or _BIRTH_WORD.search(text)):
        return text  # Nearly every text ends here, in a tenth of the time.
    text = text.replace("\0", "\ufffd")
    if "\\u00" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    if '"' in text or "'" in text:
        text = _FIELD_IN_TEXT.sub(_mask_field_in_text, text)
    return _hide(text, tax_numbers(text))


def _mask_field_in_text(found: re.Match[str]) -> str:
    return f"{found['field']}{found['open'] or ''}{HIDDEN}" if is_sensitive(found["name"]) else found[0]


def _hide(text: str, numbers: Iterable[TaxNumber]) -> str:
    """Hide these numbers, and every date of birth."""
    for number in sorted(numbers, reverse=True):
        text = f"{text[: number.start]}{HIDDEN}{text[number.end :]}"
    return _BIRTH_DATE.sub(rf"\g<word>{HIDDEN}", text)


def scrub(value: Any, check_time: Callable[[], None] = lambda: None) -> None:
    """Hide sensitive fields, and EIN and SSN in texts, of a JSON value in place, at any depth.

    `check_time` may raise to stop it. Nine digits in a row stay unless a word beside them or the field's name says that
    they are an EIN or SSN: they are confirmations, check numbers and traces. Objects of one list are searched field by
    field, all at once: one by one takes ten times as long.
    """
    groups: list[tuple[Kind, list[Any]]] = [(Kind.TEXT, [value])]
    while groups:
        kind, nodes = groups.pop()
        check_time()
        lists = [node for node in nodes if isinstance(node, list)]
        if lists and kind not in _KEPT_KINDS:
            for items in lists:
                if not _is_harmless({item for item in items if isinstance(item, str)}):
                    items[:] = [_scrubbed_text(item) if isinstance(item, str) else item for item in items]
        if inner := [item for items in lists for item in items if isinstance(item, dict | list)]:
            groups.append((kind, inner))
        objects = [node for node in nodes if isinstance(node, dict)]
        names = set().union(*objects)
        for name in names:
            groups += _scrub_field(name, objects)
        if not _is_harmless(names):
            hidden = {name: safe for name in names if (safe := _scrubbed_text(name)) != name}
            for node in objects if hidden else ():
                for name in node.keys() & hidden:
                    node[hidden[name]] = node.pop(name)


def _scrub_field(name: str, objects: list[dict[str, Any]]) -> Iterator[tuple[Kind, list[Any]]]:
    """Hide the secrets in one field of these objects; return the values inside it, to search next."""
    kind = _kind_of(name)
    if kind in (Kind.SENSITIVE, Kind.REPORT):
        for node in objects:
            if node.get(name) is not None and not isinstance(node[name], bool):
                node[name] = HIDDEN
        return
    try:
        values = list(map(itemgetter(name), objects))
    except KeyError:
        values = [node.get(name) for node in objects]
    types = set(map(type, values))
    is_text = str in types and kind not in _KEPT_KINDS
    if is_text and not _is_harmless({item for item in values if isinstance(item, str)}):
        for node in objects:
            if isinstance(item := node.get(name), str) and not (
                kind is Kind.MONEY and _NUMBER.fullmatch(item)
            ):
                node[name] = _scrubbed_text(item)
    if dict in types or list in types:
        yield kind, [item for item in values if isinstance(item, dict | list)]


def _is_harmless(texts: set[str]) -> bool:
    """Whether none of these texts can hold nine digits close together, a date of birth, or a field inside it."""
    text = "a".join(texts)
    if not text.isascii() or any(mark in text for mark in '"&%\\<'):
        return False
    if _NINE_DIGITS.search(_TIMESTAMP.sub("", text) if "-" in text else text):
        return False
    text = text.lower()
    return not any(word in text for word in _BIRTH_WORDS)


def _scrubbed_text(text: str) -> str:
    if _DECIMAL.fullmatch(text):  # "14.9200001" is a rate, although an EIN may be written like that.
        return text
    text = _hide(text, [each for each in tax_numbers(text) if each.is_certain])
    return _FIELD_IN_TEXT.sub(_mask_field_in_text, text) if '"' in text else text
