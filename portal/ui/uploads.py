"""Size limits of request bodies: a view declares how many files it accepts, and a larger body is rejected unread."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from django.conf import settings

View = TypeVar("View", bound=Callable[..., Any])
MAX_FORM_BYTES: Final = 4 * 1024 * 1024
"""The limit for form fields, without files."""


def max_file_bytes() -> int:
    return settings.UPLOAD_LIMIT_MB * 1024 * 1024


def too_large_message() -> str:
    """The error for a file over the limit."""
    return f"The file is larger than {settings.UPLOAD_LIMIT_MB} MB."


def accepts_files(number: int) -> Callable[[View], View]:
    """Mark a view that accepts this many files in one request."""

    def mark(view: View) -> View:
        view.files = number  # type: ignore[attr-defined]
        return view

    return mark


def is_body_too_long(length: str, view: Callable[..., Any]) -> bool:
    """Whether a body, by its Content-Length header, is longer than anything this view accepts."""
    body_bytes = int(length) if length.isascii() and length.isdigit() else 0
    return body_bytes > MAX_FORM_BYTES + getattr(view, "files", 0) * max_file_bytes()
