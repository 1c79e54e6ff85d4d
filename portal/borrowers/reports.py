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
        """The uploaded content."""
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
        where = str(error).removeprefix("JSON is malformed: ")
        where = where.replace("Input data was truncated", "the file ends too early")
        return [f"This is not JSON ({where}). Export the report as JSON again."]
    if content.lstrip()[:1] not in (b"{", b"["):
        return ["Not a report: the JSON must be an object or a list."]
    return [IS_DEEP] if _is_deeper(content, MAX_DEPTH) else []


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
