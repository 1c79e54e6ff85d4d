"""Words of the interface, such as statuses and types, in one form to compare them."""

import re
from typing import Final

_GAPS: Final = re.compile(r"[\s_\u002d\u2010-\u2015\u2212]+")


def normal_word(value: str | None) -> str:
    """The word in upper case, with one underscore for blanks, dashes and underscores: `past-due` is `PAST_DUE`."""
    return _GAPS.sub("_", (value or "").strip()).strip("_").upper()
