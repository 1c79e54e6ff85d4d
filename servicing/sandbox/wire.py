"""JSON text for the wire and for the store. Hides the parser; broken numbers are ``Decimal`` both ways."""

from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

JSON = Any
"""What JSON can say: dict, list, str, int, Decimal, bool, None."""

_encoder = msgspec.json.Encoder(decimal_format="number")
_decoder = msgspec.json.Decoder(float_hook=Decimal)


class NotJSON(Exception):
    """The text is not JSON."""


def dumps(value: JSON) -> bytes:
    """Compact UTF-8 JSON."""
    return _encoder.encode(value)


def loads(text: bytes | str) -> JSON:
    """Read JSON; raises :class:`NotJSON`."""
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidOperation) as problem:
        raise NotJSON(str(problem)) from None
