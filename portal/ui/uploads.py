"""How much a browser may send: a view says that it takes files, and what is too long for it is refused unread."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from django.conf import settings

View = TypeVar("View", bound=Callable[..., Any])
FORM: Final = 4 * 1024 * 1024
"""The most bytes of what is typed, with all that stands around it."""


def largest_file() -> int:
    """The most bytes of one file."""
    return settings.UPLOAD_LIMIT_MB * 1024 * 1024


def too_large() -> str:
    """What is said of a larger one."""
    return f"The file is larger than {settings.UPLOAD_LIMIT_MB} MB, which is the most."


def takes_files(number: int) -> Callable[[View], View]:
    """Mark a view that may be sent so many files at once."""

    def mark(view: View) -> View:
        view.files = number  # type: ignore[attr-defined]
        return view

    return mark


def is_too_long(length: str, view: Callable[..., Any]) -> bool:
    """Whether a body, by the length that its browser tells, is longer than anything this view takes."""
    told = int(length) if length.isascii() and length.isdigit() else 0
    return told > FORM + getattr(view, "files", 0) * largest_file()
