"""JSON as people read it: one numbered line per value, coloured by kind; nothing of it is ever taken for HTML.

Each line tells its path and how deep it stands, so that a script can fold it and copy its path. Hides that what is too
long or too much for a page is cut, and said.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

INDENT: Final = "  "
DEEPEST: Final = 24
"""Beyond it lines are indented no further."""
MOST_LINES: Final = 2_000
LONGEST: Final = 5_000
CUT: Final = SafeString("<span><i>more lines are not shown</i></span>")

Line = tuple[str, int, SafeString]


def render(value: Any, label: str) -> SafeString:
    """A region of lines, to be scrolled and read by keyboard too."""
    lines = list(islice(_lines(value), MOST_LINES + 1))
    shown = format_html_join("", '<span data-path="{}" data-level="{}">{}</span>', lines[:MOST_LINES])
    cut = CUT if len(lines) > MOST_LINES else ""
    return format_html(
        '<pre class="sd-json" tabindex="0" role="region" aria-label="{}">{}{}</pre>', label, shown, cut
    )


def _lines(value: Any, path: str = "", level: int = 0, label: str = "", comma: str = "") -> Iterator[Line]:
    indent = INDENT * min(level, DEEPEST)
    items = _items(value, path)
    if not items:
        yield path, level, format_html("{}{}{}{}", indent, label, _scalar(value), comma)
        return
    brackets = "{}" if isinstance(value, Mapping) else "[]"
    yield path, level, format_html("{}{}{}", indent, label, brackets[0])
    for number, (its_path, name, item) in enumerate(items, start=1):
        yield from _lines(item, its_path, level + 1, name, "," if number < len(items) else "")
    yield path, level, format_html("{}{}{}", indent, brackets[1], comma)


def _items(value: Any, path: str) -> list[tuple[str, str, Any]]:
    """What a value holds, each with its path and its name."""
    if isinstance(value, Mapping):
        before = f"{path}." if path else ""
        return [
            (f"{before}{key}"[:LONGEST], format_html("<b>{}</b>: ", _text(str(key))), item)
            for key, item in value.items()
        ]
    if isinstance(value, list | tuple):
        return [(f"{path}[{number}]", "", item) for number, item in enumerate(value)]
    return []


def _scalar(value: Any) -> SafeString:
    if isinstance(value, Mapping | list | tuple):
        return format_html("{}", "{}" if isinstance(value, Mapping) else "[]")
    if value is None or isinstance(value, bool):
        return format_html("<i>{}</i>", json.dumps(value))
    if isinstance(value, str):
        return format_html("<q>{}</q>", _text(value))
    return format_html("<data>{}</data>", value)


def _text(text: str) -> str:
    """As JSON writes it; marks that turn the direction of the text around are written out, and cannot."""
    left = len(text) - LONGEST
    written = json.dumps(text[:LONGEST], ensure_ascii=False)
    plain = "".join(f"\\u{ord(sign):04x}" if sign in _TURNING else sign for sign in written)
    return f"{plain} … {left:,} more characters" if left > 0 else plain


_TURNING: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\x7f\u2028\u2029"
)
