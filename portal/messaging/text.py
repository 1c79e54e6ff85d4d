"""Texts of messages in the form in which they are searched, and what a typed text asks for.

Hides how values are normalized, so that what is stored and what is typed are compared alike on every database.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.db.models import F, Q
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.lookups import Exact

from portal.core.folding import fold, join_initials
from portal.records.query import uuid_in
from portal.ui.forms import AMOUNT_PATTERN
from servicing import ProtocolError, codec
from servicing.values import decimal_or_none

MAX_SEARCHED_CHARS: Final = 100_000
MAX_DEPTH: Final = 300
MIN_WORD_CHARS: Final = 3
MAX_WORDS: Final = 8
MAX_PATH: Final = 20
MIN_REFERENCE_DIGITS: Final = 7
"""A number of this many digits may be a reference too, so it is also searched as a word."""
QUOTES: Final = str.maketrans(dict.fromkeys("“”„‟«»", '"'))
COLUMNS_BY_NAME: Final = {
    "uuid": "uuid__iexact",
    "event": "event__iexact",
    "status": "status__iexact",
    "created_at": "recorded_text__iexact",
}
"""What JSON may name beside the payload, each with its lookup."""


# --- What is stored ---


def search_text(raw: Any) -> str:
    """Every value of a message, normalized, each on a line of its own."""
    lines, chars_left = [""], MAX_SEARCHED_CHARS
    for value in _values(raw):
        if value is not None and (text := normalized(value)):
            lines.append(text[:chars_left])
            chars_left -= len(text)
            if chars_left <= 0:
                break
    return "\n".join([*lines, ""])


def comparable_payload(value: Any, depth: int = 0) -> Any:
    """A payload in which values are found by their path, as text. No list and nothing deeper can be named."""
    if isinstance(value, dict) and depth < MAX_PATH:
        return {_storable(str(name)): comparable_payload(item, depth + 1) for name, item in value.items()}
    return None if isinstance(value, dict | list) else normalized(value)


def normalized(value: Any) -> str:
    """A plain value for comparison: without case and accents, numbers without trailing zeros."""
    if isinstance(value, str):
        return fold(_storable(value[:MAX_SEARCHED_CHARS]))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    number = decimal_or_none(value)
    return str(value) if number is None else f"{number.normalize():f}"


def _storable(text: str) -> str:
    """The text without what PostgreSQL refuses: NUL and lone surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _values(value: Any, depth: int = 0) -> Iterator[Any]:
    """Each plain value in an object or a list."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _values(item, depth + 1)
    else:
        yield value


# --- What is typed ---


class SearchError(ValueError):
    """A text can't be searched for; the message says why."""


@dataclass(frozen=True, kw_only=True)
class TypedText:
    """What a text asks for. Everything in it must occur, but an amount may also be a value elsewhere."""

    uuid: str = ""
    """The ID that it is."""
    amount: Decimal | None = None
    condition: Q
    """The messages that have the text."""

    @property
    def has_any_age(self) -> bool:
        """Whether an index finds it, so that its age doesn't matter."""
        return bool(self.uuid) or self.amount is not None


def parse_text(text: str) -> TypedText:
    """Parse a typed text that isn't empty; raises :class:`SearchError`."""
    text = text.strip()
    if text.startswith("{"):
        return TypedText(condition=_json_condition(text))
    if (uuid := uuid_in(text)) and fold(text).replace(" ", "") == fold(uuid):
        return TypedText(uuid=uuid, condition=Q(search_text__contains=fold(uuid)))
    if (amount := _amount(text)) is not None:
        return TypedText(amount=amount, condition=_number_condition(text, amount))
    words = _words(text)
    return TypedText(condition=Q(*(Q(search_text__contains=word) for word in words)))


def _amount(text: str) -> Decimal | None:
    """The amount that a text is, as screens and people write it."""
    if len(text) > 40 or not (found := AMOUNT_PATTERN.fullmatch(text)):
        return None
    sign, dollars, cents = found.groups(default="")
    return Decimal(sign.replace("−", "-") + dollars.replace(",", "") + cents)


def _number_condition(text: str, amount: Decimal) -> Q:
    """The messages with a value that is this number, or for many digits, with a text that has them."""
    spellings = {f"{amount.normalize():f}", f"{amount:.2f}", fold(text)}
    found = Q(*(Q(search_text__contains=f"\n{one}\n") for one in sorted(spellings)), _connector=Q.OR)
    is_reference = text.isdigit() and len(text) >= MIN_REFERENCE_DIGITS
    return found | Q(search_text__contains=text) if is_reference else found


def _words(text: str) -> list[str]:
    """The words of a text; quotation marks turn several into one."""
    parts = _storable(text).translate(QUOTES).split('"')
    words = list(map(fold, [*parts[1::2], *join_initials(" ".join(parts[::2])).split()]))
    words = list(dict.fromkeys(word for word in words if word))
    if any(len(word) < MIN_WORD_CHARS for word in words):
        raise SearchError(f"Each word needs at least {MIN_WORD_CHARS} characters.")
    if len(words) > MAX_WORDS:
        raise SearchError(f"Search for at most {MAX_WORDS} words at once.")
    return words


def _json_condition(text: str) -> Q:
    try:
        values = list(_values_with_paths(codec.parse(text)))
    except ProtocolError:
        raise SearchError('Not valid JSON. Use {"payload": {"status": "SUCCEEDED"}}.') from None
    if not values:
        raise SearchError("Name at least one value.")
    return Q(*(_value_condition(path, value) for path, value in values))


def _values_with_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, list):
        raise SearchError("Lists can’t be searched. Search for values at their own path.")
    if not isinstance(value, dict):
        yield path, value
        return
    if len(path) > MAX_PATH:
        raise SearchError(f"Name at most {MAX_PATH} levels of the payload.")
    for name, item in value.items():
        yield from _values_with_paths(item, (*path, name))


def _value_condition(path: tuple[str, ...], value: Any) -> Q:
    first, *names = path
    if first == "payload":
        if any('"' in name or "\\" in name or not name.isprintable() for name in names):
            raise SearchError("Names with quotation marks or backslashes can’t be searched.")
        if not names:
            return Q(payload=normalized(value))
        place: Combinable = F("payload")
        for name in names[:-1]:
            place = KeyTransform(name, place)
        return Q(Exact(KeyTextTransform(names[-1], place), normalized(value)))
    if first in COLUMNS_BY_NAME and not names:
        return Q(**{COLUMNS_BY_NAME[first]: _storable(str(value))})
    raise SearchError("JSON can name uuid, event, status, created_at and what is in payload.")
