"""Values of any shape as lines of text: decision details, purpose, explanation.

Hides their depth and length: a page gets a few lines, and the number of lines left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from django.template.defaultfilters import linebreaksbr
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

MAX_LINES: Final = 40
MAX_DEPTH: Final = 3


class DetailLine(NamedTuple):
    """One plain value with the keys that lead to it; none if it is alone or in a list."""

    label: str
    text: str


class Details(NamedTuple):
    """The first lines of a value, and the number of further ones."""

    lines: list[DetailLine]
    left_out: int

    @property
    def html(self) -> SafeString:
        """A single value as text with its line breaks, else a list."""
        if len(self.lines) == 1 and not self.lines[0].label:
            return linebreaksbr(self.lines[0].text)
        items = format_html_join(
            "",
            "<li>{}{}</li>",
            (
                (format_html("<code>{}</code> ", one.label) if one.label else "", one.text)
                for one in self.lines
            ),
        )
        more = format_html('<li class="sd-meta">{} more in the raw data</li>', self.left_out)
        return format_html('<ul class="sd-told">{}{}</ul>', items, more if self.left_out else "")


def details(value: Any) -> Details | None:
    """The value as lines; ``None`` where the service gave nothing."""
    if value is None or value == "":
        return None
    lines = list(_lines(value, (), 0))
    return Details(lines[:MAX_LINES], max(0, len(lines) - MAX_LINES))


def as_text(value: Any) -> str | None:
    """The value on one line, for a table cell."""
    found = details(value)
    if found is None:
        return None
    parts = [f"{label}: {text}" if label else text for label, text in found.lines]
    return "; ".join(parts + ([f"and {found.left_out} more"] if found.left_out else []))


def _lines(value: Any, keys: tuple[str, ...], depth: int) -> Iterator[DetailLine]:
    if not isinstance(value, Mapping | list) or not value or depth == MAX_DEPTH:
        yield DetailLine(" ".join(keys), _plain(value))
        return
    for key, item in _items(value):
        yield from _lines(item, (*keys, key) if key else keys, depth + 1)


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    """Number the objects in a list; plain values need no number."""
    if isinstance(value, Mapping):
        return ((str(key), item) for key, item in value.items())
    return ((str(n) if isinstance(item, Mapping | list) else "", item) for n, item in enumerate(value, 1))


def _plain(value: Any) -> str:
    match value:
        case None:
            return "—"
        case bool():
            return "yes" if value else "no"
        case Decimal():
            return f"{value:f}"
        case Mapping() | list():
            return f"{len(value)} more inside" if value else "none"
    return str(value)
