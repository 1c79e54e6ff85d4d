"""JSON as people read it: one numbered line per value, coloured by kind; nothing of it is ever taken for HTML."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

INDENT = "  "


def render(value: Any, label: str) -> SafeString:
    """A region of lines, to be scrolled and read by keyboard too."""
    lines = format_html_join("", "<span>{}</span>", ((line,) for line in _lines(value)))
    return format_html(
        '<pre class="sd-json" tabindex="0" role="region" aria-label="{}">{}</pre>', label, lines
    )


def _lines(value: Any, indent: str = "", label: str = "", comma: str = "") -> Iterator[SafeString]:
    items = _items(value)
    if not items:
        yield format_html("{}{}{}{}", indent, label, _scalar(value), comma)
        return
    brackets = "{}" if isinstance(value, Mapping) else "[]"
    yield format_html("{}{}{}", indent, label, brackets[0])
    for number, (name, item) in enumerate(items, start=1):
        yield from _lines(item, indent + INDENT, name, "," if number < len(items) else "")
    yield format_html("{}{}{}", indent, brackets[1], comma)


def _items(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(format_html("<b>{}</b>: ", _text(str(key))), item) for key, item in value.items()]
    return [("", item) for item in value] if isinstance(value, list | tuple) else []


def _scalar(value: Any) -> SafeString:
    if isinstance(value, Mapping | list | tuple):
        return format_html("{}", "{}" if isinstance(value, Mapping) else "[]")
    if value is None or isinstance(value, bool):
        return format_html("<i>{}</i>", json.dumps(value))
    if isinstance(value, str):
        return format_html("<q>{}</q>", _text(value))
    return format_html("<data>{}</data>", value)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
