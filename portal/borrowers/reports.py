"""Reports that are sent compressed. An uploaded file is checked completely, and never touches this machine's disk.

Hides how XML and JSON are checked without building anything from them: a file with many entities, endless nesting or
another format costs no more than reading it once.
"""

import gzip
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

import msgspec
from django import forms
from django.core.exceptions import ValidationError

from portal.ui.forms import raise_errors
from portal.ui.uploads import max_file_bytes, too_large_message

MAX_DEPTH = 100
COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")
IS_COMPRESSED = "This file is compressed. Choose the original report."
IS_DEEP = f"Nested deeper than {MAX_DEPTH} levels. Check the file."
_DECODER_MESSAGE = re.compile(r"JSON is malformed: (.*) \(byte ([0-9]+)\)")
_ESCAPES = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


@dataclass(frozen=True)
class Report:
    """A valid report: its name, its size, and its compressed bytes."""

    name: str
    size: int
    compressed: bytes

    @property
    def sizes(self) -> str:
        """The sizes, for staff and the audit trail."""
        return f"{self.size:,} bytes, {len(self.compressed):,} after compression"

    @property
    def content(self) -> bytes:
        return gzip.decompress(self.compressed)


class ReportField(forms.FileField):
    """A file field; ``problems`` returns the reasons against a file's content."""

    default_error_messages = {
        "required": "Choose a file, or go back and deselect this report.",
        "empty": "The file is empty.",
        "invalid": "No file received. Choose it again.",
    }

    def __init__(self, *, problems: Callable[[bytes], list[str]], accept: str, **kwargs: Any) -> None:
        super().__init__(widget=forms.FileInput(attrs={"accept": accept}), **kwargs)
        self.problems = problems

    def clean(self, data: Any, initial: Any = None) -> Report | None:
        file = super().clean(data, initial)
        if file is None:
            return None
        if file.size > max_file_bytes():
            raise ValidationError(too_large_message())
        content = file.read().removeprefix(BOM_UTF8)  # Windows writes the mark, which JSON must not have.
        raise_errors(self.problems(content))
        return Report(str(file.name)[:255], len(content), gzip.compress(content, mtime=0))


def json_problems(content: bytes) -> list[str]:
    """Why a file is not a JSON report. It is scanned once; nothing is built from it."""
    if content.startswith(COMPRESSED):
        return [IS_COMPRESSED]
    try:
        content.decode("utf-8")
        msgspec.json.decode(content, type=msgspec.Raw)
    except UnicodeDecodeError:
        return ["Not UTF-8 text. Choose the report’s JSON file."]
    except RecursionError:
        return [IS_DEEP]
    except msgspec.DecodeError as error:
        return [f"This is not JSON ({_malformed(content, str(error))}). Export the report as JSON again."]
    if content.lstrip()[:1] not in (b"{", b"["):
        return ["Not a report: the JSON must be an object or a list."]
    return [IS_DEEP] if _is_deeper(content, MAX_DEPTH) else []


def _malformed(content: bytes, error: str) -> str:
    """Where a file stops being JSON, and why, from the decoder's message. It takes half a pair for a file cut off."""
    found = _DECODER_MESSAGE.fullmatch(error)
    reason, at = (found[1], int(found[2])) if found else ("the file ends too early", len(content))
    half = _first_half_pair(content)
    if half is not None and half < at:
        reason, at = f"half of a character, {content[half : half + 6].decode()}", half
    before = content[:at]
    start = before.rfind(b"\n") + 1
    line, position = before.count(b"\n") + 1, len(content[start:at].decode("utf-8", "replace")) + 1
    return f"line {line}, position {position}: {reason}"


def _first_half_pair(content: bytes) -> int | None:
    """The position of the first escape for half of a surrogate pair; None if all pairs are whole."""
    high: re.Match[bytes] | None = None
    for found in _ESCAPES.finditer(content):
        unit = int(found[1], 16) if found[1] else 0
        if high is None:
            if 0xDC00 <= unit <= 0xDFFF:
                return found.start()
            high = found if 0xD800 <= unit <= 0xDBFF else None
        elif found.start() == high.end() and 0xDC00 <= unit <= 0xDFFF:
            high = None
        else:
            return high.start()
    return high.start() if high else None


def _is_deeper(content: bytes, levels: int) -> bool:
    """Whether brackets remain after removing this many layers from the inside."""
    brackets = _STRINGS.sub(b"", content).translate(_SQUARE, delete=_NO_BRACKETS)
    for _ in range(levels):
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def xml_problems(content: bytes) -> list[str]:
    """Why a file is not an XML report. Declared entities are rejected, and nothing outside the file is fetched."""
    if content.startswith(COMPRESSED):
        return [IS_COMPRESSED]
    reader = expat.ParserCreate()
    depth = 0

    def opened(*_: Any) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise Refused(IS_DEEP)

    def closed(_: str) -> None:
        nonlocal depth
        depth -= 1

    def declared(name: str, *_: Any) -> None:
        raise Refused("It contains entity declarations, which aren’t allowed.")

    reader.StartElementHandler, reader.EndElementHandler, reader.EntityDeclHandler = opened, closed, declared
    try:
        reader.Parse(content, True)
    except Refused as refusal:
        return [str(refusal)]
    except expat.ExpatError as error:
        where = f"{expat.ErrorString(error.code)} in line {error.lineno:,}"
        return [f"This is not XML ({where}). Export the report as XML again."]
    except (ValueError, LookupError):
        return ["Unknown encoding. Save the file as UTF-8."]
    return []


class Refused(Exception):
    """Well-formed XML that is no report."""
