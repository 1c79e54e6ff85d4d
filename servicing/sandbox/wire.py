"""JSON text for the wire and for the store. Hides the parser; broken numbers are ``Decimal`` both ways."""

from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

import msgspec

JSON = Any
"""What JSON can say: dict, list, str, int, Decimal, bool, None."""

T = TypeVar("T")

_encoder = msgspec.json.Encoder(decimal_format="number")
_decoder = msgspec.json.Decoder(float_hook=Decimal)


class NotJSON(Exception):
    """The text is not JSON, or not the JSON that was asked for."""


def dumps(value: JSON) -> bytes:
    """Compact UTF-8 JSON."""
    return _encoder.encode(value)


def loads(text: bytes | str) -> JSON:
    """Read JSON; raises :class:`NotJSON`."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidOperation) as problem:
        raise NotJSON(str(problem)) from None


def fit(value: JSON, kind: type[T]) -> T:
    """JSON as an object of a dataclass; raises :class:`NotJSON` with the place that does not fit."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as misfit:
        raise NotJSON(str(misfit)) from None
