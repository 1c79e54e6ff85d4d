"""Typed settings from the environment. All missing and invalid ones are reported together, a sentence each.

Every setting ``NAME`` may also be given as ``NAME_FILE``, the path of a file with the value, as for secrets.
"""

import difflib
import io
import os
import re
import sys
import zoneinfo
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from django.core.exceptions import ImproperlyConfigured
from environ import Env
from environ.fileaware_mapping import FileAwareMapping

MISSING = "is missing. Set it in the environment or in .env; docker/settings.md lists every setting."
EMPTY = "must not be empty. Remove the setting to use its default."
HOST = (
    r"(?:[^/\s?#@:;,\[\]]+|\[[\da-fA-F:.]+\])"
    r"(?::(?:6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]?\d{1,4}))?"
)
"""The pattern of a host in an address, with its port if there is one."""
_FLAGS = dict.fromkeys(("on", "yes", "true", "1"), True) | dict.fromkeys(("off", "no", "false", "0"), False)
# Read directly by OpenTelemetry, "manage.py demo" and Python's libraries.
_READ_BY_OTHERS = ("OTEL_", "PORT", "SANDBOX_", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
_environment = FileAwareMapping()
# What is wrong with each rejected setting, by name.
_problems: dict[str, str] = {}
_names_read: set[str] = set()
# The former name under which a setting was given, by its present name.
_given_as: dict[str, str] = {}


def stop(*sentences: str, topic: str = "Settings") -> NoReturn:
    """Exit with sentences, one a line, instead of a traceback."""
    sys.stderr.writelines(f"{topic}: {sentence}\n" for sentence in sentences)
    sys.exit(4)  # Gunicorn's code for an app that can't be loaded; after any other it retries forever.


def read_file(file: Path) -> None:
    """Add the settings of a file, if it exists, to the environment. Values already in the environment win."""
    try:
        content = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as problem:
        stop(f"{file} can’t be read: {getattr(problem, 'strerror', 'it is not UTF-8 text')}.")
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip() and not re.match(r"\s*#|(export )?\w+=", line):
            stop(f"line {number} of {file} must be NAME=value, without spaces before the name or around “=”.")
    Env.read_env(io.StringIO(content))


def reject(name: str, why: str) -> None:
    """Record what is wrong with a setting. The first reason counts, since later ones follow from it."""
    _problems.setdefault(name, why)


def stop_if_invalid() -> None:
    """Exit if any setting was rejected, naming all of them as they were given."""
    if _problems:
        stop(*(f"{_as_given(name)} {why}" for name, why in _problems.items()))


def rename(old: str, name: str) -> None:
    """Accept a setting under its former name, unless the present one is given too."""
    _names_read.add(old)
    for ending in ("", "_FILE"):
        if (value := os.environ.pop(old + ending, None)) is not None and name + ending not in os.environ:
            os.environ[name + ending] = value
            _given_as[name] = old


def _as_given(name: str) -> str:
    return _given_as.get(name, name)


def text(name: str, default: str | None = "") -> str:
    """Read a setting as text; it is required if the default is ``None``."""
    _names_read.add(name)
    try:
        value = _environment.get(name, default)
    except (OSError, UnicodeDecodeError):
        path = os.environ[f"{name}_FILE"]
        reject(name, f"can’t be read from the file in {_as_given(name)}_FILE: {path}")
        value = default
    if not (value and value.strip()) and default is None:
        reject(name, MISSING)
    return (value or "").rstrip()


def flag(name: str, default: bool) -> bool:
    """Read an on/off setting."""
    value = text(name).lower()
    if value and value not in _FLAGS:
        reject(name, f"must be on or off; it is {value!r}.")
    return _FLAGS.get(value, default)


def pattern_text(name: str, default: str | None, pattern: str, problem: str) -> str:
    """Read a setting that must match a pattern; it may be empty only if its default is."""
    value = text(name, default)
    if (value or default) and not re.fullmatch(pattern, value, re.ASCII):
        reject(name, problem)
    return value


def comma_separated(name: str, default: str | None = "") -> list[str]:
    words = [word.strip() for word in text(name, default).split(",") if word.strip()]
    if default is None and not words:
        reject(name, MISSING)
    return words


def one_of(name: str, choices: list[str], default: str) -> str:
    value = text(name, default)
    value = next((choice for choice in choices if choice.casefold() == value.casefold()), value)
    if value not in choices:
        reject(name, f"must be one of {', '.join(filter(None, choices))}; it is {value!r}.")
        return default
    return value


def several_of(name: str, choices: list[str], default: str) -> list[str]:
    """Read a list of choices, or the word ``none``."""
    values = comma_separated(name, default)
    if values == ["none"]:
        return []
    if not values or set(values) - set(choices):
        reject(name, f"must be none, or some of {', '.join(choices)}; it is {','.join(values)!r}.")
    return values


def pairs(name: str, choices: list[str]) -> list[tuple[str, str]]:
    """Read a list of ``key=choice``, in its order."""
    found = [tuple(map(str.strip, word.rpartition("=")[::2])) for word in comma_separated(name)]
    if any(not key or choice not in choices for key, choice in found):
        reject(name, f"must be NAME=ROLE, separated by commas; a role is one of {', '.join(choices)}.")
    return found  # type: ignore[return-value]  # rpartition gives three parts.


def time_zone(name: str, default: str) -> str:
    """Read the name of a time zone known to this machine."""
    value = text(name, default)
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        reject(name, f"isn’t a time zone: {value!r}. Use a name such as America/New_York.")
    return value


def readable_file(name: str) -> str:
    path = text(name)
    if path and not (os.path.isfile(path) and os.access(path, os.R_OK)):
        reject(name, f"must be a readable file; it is {path!r}.")
    return path


def at_least(name: str, minimum: int, default: int) -> int:
    """Read a whole number with a lower bound."""
    value = text(name, str(default))
    if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) >= minimum):
        reject(name, f"must be a whole number, {minimum} or more; it is {value!r}.")
        return default
    return int(value)


def address(name: str, read: Callable[[str], Any], default: str, schemes: list[str]) -> dict[str, Any]:
    """Read the URL of a server with django-environ. It may contain a password, so no message repeats it."""
    value = text(name, default) or default
    try:
        config: dict[str, Any] = read(value) if value.partition("://")[0] in schemes else {}
    except (ImproperlyConfigured, ValueError):
        config = {}
    if not config:
        reject(name, f"must be a valid address that begins with {':// or '.join(schemes)}://.")
    return config or read(default)


# --- What the doctor and the status page say about settings ---


def is_set(name: str) -> bool:
    """Whether it has a value that isn't empty."""
    return bool(os.environ.get(name) or os.environ.get(f"{name}_FILE"))


def set_twice_or_empty() -> Iterator[str]:
    """Settings given both directly and as a file, or as an empty file: valid, but hardly intended."""
    for name in sorted(_names_read):
        path = os.environ.get(f"{name}_FILE")
        given = _as_given(name)
        if path and os.environ.get(name):
            yield f"{given} and {given}_FILE are both set, and the file wins. Remove one of them."
        if path and not Path(path).read_text(encoding="utf-8").strip():
            yield f"{given}_FILE points to an empty file: {path}"


def unknown_names(file: Path) -> Iterator[str]:
    """Unknown names in a settings file, each with the name that may have been meant."""
    for name in re.findall(r"^(?:export )?(\w+)=", file.read_text(encoding="utf-8"), re.MULTILINE):
        if name.removesuffix("_FILE") in _names_read or name.startswith(_READ_BY_OTHERS):
            continue
        meant = difflib.get_close_matches(name, _names_read, n=1)
        yield f"Nothing reads {name} from {file}." + (f" Did you mean {meant[0]}?" if meant else "")
