"""Django's HTML formatting in half the time, because some pages show thousands of values."""

from collections.abc import Iterable
from html import escape
from typing import Any

from django.utils.safestring import SafeString


def format_html(template: str, *values: Any, **named: Any) -> SafeString:
    """Insert escaped values into the template."""
    html = template.format(
        *map(escape_value, values), **{name: escape_value(value) for name, value in named.items()}
    )
    return SafeString(html)


def format_html_join(separator: str, template: str, rows: Iterable[Iterable[Any]]) -> SafeString:
    """Insert the escaped values of each row into the template."""
    return SafeString(escape_value(separator).join(template.format(*map(escape_value, row)) for row in rows))


def escape_value(value: Any) -> str:
    """The value as HTML; HTML is left unchanged."""
    return value.__html__() if hasattr(value, "__html__") else escape(str(value))
