"""What must never be kept or shown: hides by which names and forms it is recognised.

`masked` is the one redactor for everything that is recorded, logged or previewed. `scrub` is its quick
sibling for answers that are kept whole: the service leaves EIN, SSN, date of birth and reports out of them, and
should it ever not, they are gone before anything sees them.
"""

import re
from typing import Any, Final

HIDDEN: Final = "[hidden]"
MAX_DEPTH: Final = 60

_SENSITIVE: Final = frozenset({"ein", "ssn", "dob"})
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "set-cookie", "x-signature", "secret", "token"})
# Finds the sensitive names in any case, and a few harmless ones, at the price of a single look at every byte.
_LOOKS_SENSITIVE: Final = re.compile(rb'"[sSeEdD][sSiIoO][nNbB]"|_[gG][zZ][iI][pP]"')
# An EIN or SSN in running text: nine digits, plain or in the usual groups, not part of anything longer.
_NINE_DIGITS: Final = re.compile(r"(?<![\w-])(?:\d{9}|\d{3}-\d{2}-\d{4}|\d{2}-\d{7})(?![\w-])", re.ASCII)


class Sensitive(str):
    """Text whose `repr` shows nothing, for places where a traceback or a log might print variables."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN


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
    return masked_text(value) if isinstance(value, str) else value


def masked_text(text: str) -> str:
    """Running text without anything that looks like an EIN or SSN, nor the one character that databases refuse."""
    return _NINE_DIGITS.sub(HIDDEN, text.replace("\0", "\ufffd"))


def _masked_field(key: str, value: Any, depth: int) -> Any:
    name = key.casefold()
    if value is None:
        return None
    if name in _SENSITIVE or name in _CREDENTIALS:
        return HIDDEN
    if name.endswith("_gzip"):
        return f"[{len(value):,} characters]" if isinstance(value, str) else HIDDEN
    if name.endswith("_id") and isinstance(value, str):
        return value.replace("\0", "\ufffd")  # A bank's reference may well have nine digits.
    return masked(value, _depth=depth)


def may_hold_sensitive(text: bytes) -> bool:
    """Whether a JSON text may have a sensitive field anywhere; quick, for every answer is looked at."""
    return _LOOKS_SENSITIVE.search(text) is not None


def scrub(value: Any) -> None:
    """Hide the sensitive fields of a JSON value in place, at any depth."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            waiting += node.values()
            node.update({key: HIDDEN for key, item in node.items() if _must_hide(key, item)})


def _must_hide(key: str, value: Any) -> bool:
    return value is not None and (key.casefold() in _SENSITIVE or key.casefold().endswith("_gzip"))
