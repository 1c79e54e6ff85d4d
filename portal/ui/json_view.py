"""JSON for people: one numbered and colored line per value, always escaped.

Each line has its path and depth, so that a script can fold it and copy its path. Hides how long values and documents
are cut off; the page says when they are.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

INDENT: Final = "  "
MAX_INDENT_LEVELS: Final = 24
MAX_LINES: Final = 2_000
MAX_TEXT_CHARACTERS: Final = 5_000
CUT: Final = SafeString("<span><i>more lines are not shown</i></span>")

Line = tuple[str, int, SafeString]


def render(value: Any, label: str) -> SafeString:
    """Render a scrollable region of lines."""
    lines = list(islice(_lines(value), MAX_LINES + 1))
    shown = format_html_join("", '<span data-path="{}" data-level="{}">{}</span>', lines[:MAX_LINES])
    cut = CUT if len(lines) > MAX_LINES else ""
    return format_html(
        '<pre class="sd-json" tabindex="0" role="region" aria-label="{}">{}{}</pre>', label, shown, cut
    )


def _lines(value: Any, path: str = "", level: int = 0, label: str = "", comma: str = "") -> Iterator[Line]:
    indent = INDENT * min(level, MAX_INDENT_LEVELS)
    items = _items(value, path)
    if not items:
        yield path, level, format_html("{}{}{}{}", indent, label, _scalar(value), comma)
        return
    brackets = "{}" if isinstance(value, Mapping) else "[]"
    yield path, level, format_html("{}{}{}", indent, label, brackets[0])
    for number, (item_path, name, item) in enumerate(items, start=1):
        yield from _lines(item, item_path, level + 1, name, "," if number < len(items) else "")
    yield path, level, format_html("{}{}{}", indent, brackets[1], comma)


def _items(value: Any, path: str) -> list[tuple[str, str, Any]]:
    if isinstance(value, Mapping):
        before = f"{path}." if path else ""
        return [
            (f"{before}{key}"[:MAX_TEXT_CHARACTERS], format_html("<b>{}</b>: ", _text(str(key))), item)
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
    """A text as JSON, with characters that change the text direction escaped."""
    left = len(text) - MAX_TEXT_CHARACTERS
    written = json.dumps(text[:MAX_TEXT_CHARACTERS], ensure_ascii=False)
    plain = "".join(f"\\u{ord(sign):04x}" if sign in _BIDI_CONTROLS else sign for sign in written)
    return f"{plain} … {left:,} more characters" if left > 0 else plain


_BIDI_CONTROLS: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\x7f\u2028\u2029"
)
