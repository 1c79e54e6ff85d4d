"""Reads settings of each form from the environment: all that are missing or wrong end the start, with a sentence each.

Every setting ``NAME`` may also be given as ``NAME_FILE``, the path of a file that holds it, as secrets are.
"""

import difflib
import os
import re
import sys
import zoneinfo
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from django.core.exceptions import ImproperlyConfigured

# What is wrong with the settings that were read so far, by name.
_refused: dict[str, str] = {}
# What the SDK of traces and "manage.py demo" read for themselves.
_READ_BY_OTHERS = ("OTEL_", "PORT", "SANDBOX_")
# Every setting that was read.
_read: set[str] = set()


def stop(*sentences: str) -> NoReturn:
    """End the start with sentences, a line each, instead of a traceback."""
    sys.stderr.writelines(f"Settings: {sentence}\n" for sentence in sentences)
    sys.exit(4)  # Gunicorn's code for what cannot be loaded: any other makes it try again for ever.


def refuse(name: str, why: str) -> None:
    """Remember what is wrong with a setting. The first reason counts: the others follow from it."""
    _refused.setdefault(name, why)


def settle() -> None:
    """End the start if anything was refused, and name all of it at once."""
    if _refused:
        stop(*(f"{name} {why}" for name, why in _refused.items()))


def text(name: str, default: str | None = "") -> str:
    """One setting as text; it is needed where there is no default (``None``)."""
    _read.add(name)
    path = os.environ.get(f"{name}_FILE")
    try:
        value = Path(path).read_text(encoding="utf-8").strip() if path else os.environ.get(name, default)
    except (OSError, UnicodeDecodeError):
        value = default
        refuse(name, f"cannot be read from the file that {name}_FILE names: {path}")
    if not value and default is None:
        refuse(
            name, "is missing. Set it in the environment or in .env; docker/README.md lists every setting."
        )
    return value or ""


def is_given(name: str) -> bool:
    """Whether somebody set it; what it holds may come from a default all the same."""
    return bool(os.environ.get(name) or os.environ.get(f"{name}_FILE"))


def misgiven() -> Iterator[str]:
    """What was given in two ways, or by a file that holds nothing: the start takes it, but nobody meant it."""
    for name in sorted(_read):
        path = os.environ.get(f"{name}_FILE")
        if path and os.environ.get(name):
            yield f"{name} and {name}_FILE are both given, and the file counts. Take one of them away."
        if path and not Path(path).read_text(encoding="utf-8").strip():
            yield f"{name}_FILE names an empty file: {path}"


def unread(file: Path) -> Iterator[str]:
    """Names in a file of settings that are none, misspelt ones above all."""
    for name in re.findall(r"^(?:export )?(\w+)=", file.read_text(encoding="utf-8"), re.MULTILINE):
        if name.removesuffix("_FILE") in _read or name.startswith(_READ_BY_OTHERS):
            continue
        meant = difflib.get_close_matches(name, _read, n=1)
        yield f"Nothing reads {name} from {file}." + (f" Is {meant[0]} meant?" if meant else "")


def flag(name: str, default: bool) -> bool:
    """On or off."""
    value = text(name).lower() or ("on" if default else "off")
    if value not in ("on", "off", "1", "0", "yes", "no", "true", "false"):
        refuse(name, f"must be on or off; it is {value!r}.")
    return value in ("on", "1", "yes", "true")


def words(name: str, default: str | None = "") -> list[str]:
    """Several values between commas."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def one_of(name: str, choices: list[str], default: str) -> str:
    """A setting with a closed list of values."""
    value = text(name, default)
    if value not in choices:
        refuse(name, f"must be one of {', '.join(filter(None, choices))}; it is {value!r}.")
        return default
    return value


def some_of(name: str, choices: list[str], default: str) -> list[str]:
    """Several of a closed list, or the word ``none``."""
    given = words(name, default)
    if given == ["none"]:
        return []
    if strange := sorted(set(given) - set(choices)):
        refuse(name, f"may hold {', '.join(choices)}, or none; it holds {', '.join(strange)}.")
    return given


def filled(name: str, default: str | None) -> str:
    """A setting that may be left out, and then has its default, but not be empty."""
    value = text(name, default).strip()
    if not value:
        refuse(name, "must not be empty. Leave it out to have its default.")
    return value


def time_zone(name: str, default: str) -> str:
    """A zone that this machine knows."""
    value = text(name, default)
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        refuse(name, f"names no time zone: {value!r}. Use a name such as America/New_York.")
    return value


def at_least(name: str, minimum: int, default: int) -> int:
    """A whole number with a lower bound."""
    value = text(name, str(default))
    if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) >= minimum):
        refuse(name, f"must be a whole number, {minimum} or more; it is {value!r}.")
        return default
    return int(value)


def address(name: str, read: Callable[[str], Any], default: str, schemes: list[str]) -> dict[str, Any]:
    """A database or a cache as an address; it may hold a password, so it is never repeated."""
    value = text(name, default) or default
    try:
        found: dict[str, Any] = read(value) if value.partition("://")[0] in schemes else {}
    except (ImproperlyConfigured, ValueError):
        found = {}
    if not found:
        refuse(name, f"must be a well-formed address that begins with {':// or '.join(schemes)}://.")
    return found or read(default)
