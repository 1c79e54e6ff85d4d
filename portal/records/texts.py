"""The text by which a record is found: folded lines, its name first, each between two line breaks.

So the beginning of a name, and a whole line, are found like any other part.
"""

from portal.core.folding import fold

MAX_LINE_CHARACTERS = 500


def search_text(name: str | None = None, *others: str | None) -> str:
    """The lines of a record without a name begin with an empty one; UUIDs are found without it."""
    first, *rest = (_line(part) for part in (name, *others))
    return _joined(first, *rest)


def with_name(text: str, name: str) -> str:
    """The text with this name first; the names that it had still find the record."""
    line = _line(name)
    return _joined(line, *(one for one in lines_of(text) if one != line)) if line else text


def lines_of(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def _line(text: str | None) -> str:
    return fold(text or "")[:MAX_LINE_CHARACTERS].strip()


def _joined(first: str, *others: str) -> str:
    lines = [first, *filter(None, others)]
    return "".join(f"\n{line}" for line in lines) + "\n" if any(lines) else ""
