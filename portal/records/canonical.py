"""The canonical text of an answer: equal answers give equal texts, and numbers stay exact."""

from collections.abc import Sequence

import msgspec

from servicing import codec

_ENCODER = msgspec.json.Encoder(decimal_format="number", order="sorted")


def canonical_json(answer: codec.Model | Sequence[codec.Model]) -> str:
    raw = [one.raw for one in answer] if isinstance(answer, Sequence) else answer.raw
    return _ENCODER.encode(raw).decode()
