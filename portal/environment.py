"""Reads settings of each form from the environment: what is missing or wrong ends the start with one sentence.

Every setting ``NAME`` may also be given as ``NAME_FILE``, the path of a file that holds it, as secrets are.
"""

import os
import sys
import zoneinfo
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from django.core.exceptions import ImproperlyConfigured


def stop(sentence: str) -> NoReturn:
    """End the start with a sentence instead of a traceback."""
    sys.stderr.write(f"Settings: {sentence}\n")
    sys.exit(4)  # Gunicorn's code for what cannot be loaded: any other makes it try again for ever.


def text(name: str, default: str | None = "") -> str:
    """One setting as text; it is needed where there is no default (``None``)."""
    path = os.environ.get(f"{name}_FILE")
    try:
        value = Path(path).read_text(encoding="utf-8").strip() if path else os.environ.get(name, default)
    except (OSError, UnicodeDecodeError):
        stop(f"{name}_FILE names a file that cannot be read: {path}")
    if not value and default is None:
        stop(f"{name} is missing. Set it in the environment or in .env; the README lists every setting.")
    return value or ""


def flag(name: str, default: bool) -> bool:
    """On or off."""
    value = text(name).lower() or ("on" if default else "off")
    if value not in ("on", "off", "1", "0", "yes", "no", "true", "false"):
        stop(f"{name} must be on or off; it is {value!r}.")
    return value in ("on", "1", "yes", "true")


def words(name: str, default: str | None = "") -> list[str]:
    """Several values between commas."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def one_of(name: str, choices: list[str], default: str) -> str:
    """A setting with a closed list of values."""
    value = text(name, default)
    if value not in choices:
        stop(f"{name} must be one of {', '.join(filter(None, choices))}; it is {value!r}.")
    return value


def some_of(name: str, choices: list[str], default: str) -> list[str]:
    """Several of a closed list, or the word ``none``."""
    given = words(name, default)
    if given == ["none"]:
        return []
    if strange := sorted(set(given) - set(choices)):
        stop(f"{name} may hold {', '.join(choices)}, or none; it holds {', '.join(strange)}.")
    return given


def filled(name: str, default: str | None) -> str:
    """A setting that may be left out, and then has its default, but not be empty."""
    value = text(name, default).strip()
    return value or stop(f"{name} must not be empty. Leave it out to have its default.")


def time_zone(name: str, default: str) -> str:
    """A zone that this machine knows."""
    value = text(name, default)
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        stop(f"{name} names no time zone: {value!r}. Use a name such as America/New_York.")
    return value


def at_least(name: str, minimum: int, default: int) -> int:
    """A whole number with a lower bound."""
    value = text(name, str(default))
    if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) >= minimum):
        stop(f"{name} must be a whole number, {minimum} or more; it is {value!r}.")
    return int(value)


def address(name: str, read: Callable[[str], Any], default: str, schemes: list[str]) -> dict[str, Any]:
    """A database or a cache as an address; it may hold a password, so it is never repeated."""
    value = text(name, default) or default
    try:
        found: dict[str, Any] = read(value) if value.partition("://")[0] in schemes else {}
    except (ImproperlyConfigured, ValueError):
        found = {}
    return found or stop(
        f"{name} must be a well-formed address that begins with {':// or '.join(schemes)}://."
    )
