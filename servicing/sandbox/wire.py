"""JSON text for answers and for the store. Hides the parser; fractions are ``Decimal`` in both directions."""

from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

import msgspec

JSON = Any
"""A JSON value: dict, list, str, int, Decimal, bool or None."""

T = TypeVar("T")

_encoder = msgspec.json.Encoder(decimal_format="number")
_decoder = msgspec.json.Decoder(float_hook=Decimal)


class NotJSON(Exception):
    """The text is not JSON, or does not have the expected structure."""


def dumps(value: JSON) -> bytes:
    """Compact UTF-8 JSON."""
    return _encoder.encode(value)


def loads(text: bytes | str) -> JSON:
    """Parse JSON; raises :class:`NotJSON`."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidOperation) as problem:
        raise NotJSON(str(problem)) from None


def convert(value: JSON, kind: type[T]) -> T:
    """Convert JSON to a dataclass; raises :class:`NotJSON` with the path that does not fit."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        raise NotJSON(str(problem)) from None
