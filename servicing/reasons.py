"""Reads errors in the body of an answer, whatever its shape: the service's own reasons, and whether it is an error.

Hides the many forms of error objects: lists of fields, problem details, JSON:API, OAuth, faults, violations. Names of
fields are compared without case, underscores and dashes.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from servicing.masking import masked_text

MAX_REASONS: Final = 50
MAX_REASON_CHARACTERS: Final = 500
MAX_DEPTH: Final = 8

# In the order in which they are read out.
_SENTENCES: Final = (
    "message", "messages", "msg", "defaultmessage", "errormessage", "errormsg", "error", "errors", "detail",
    "details", "description", "errordescription", "reason", "reasons", "fault", "faults", "faultstring",
)  # fmt: skip
# Lists of fields with their problems, which follow the sentence about all of them.
_FIELD_LISTS: Final = ("invalidparams", "violations", "fieldviolations", "constraints")
_ERROR_LISTS: Final = frozenset({"errors", *_FIELD_LISTS})
_FIELD_NAMES: Final = (
    "field", "loc", "propertypath", "instancepath", "param", "parameter", "pointer", "attribute", "property",
    "target", "path", "source", "name",
)  # fmt: skip
# Parts of a path that name where in the request a field is, and not the field.
_PLACES: Final = frozenset({"body", "query", "path", "header", "cookie", "data", "attributes", "$", "#", ""})
# What an error object may have beside its sentences.
_ERROR_WORDS: Final = frozenset({
    *_SENTENCES, *_FIELD_LISTS, "code", "errorcode", "faultcode", "exception", "title", "trace", "stacktrace",
    "timestamp",
})  # fmt: skip
_ERRORS: Final = frozenset({
    "err", "errcode", "errmsg", "error", "errors", "errorcode", "errordescription", "errordetail", "errordetails",
    "errorinfo", "errormessage", "errormessages", "errormsg", "errorreason", "errortype", "exception",
    "exceptionmessage", "fault", "faults", "faultcode", "faultstring", "haserror", "haserrors", "iserror",
})  # fmt: skip
# What an answer is wrapped in by services that wrap their errors too.
_ENVELOPES: Final = frozenset({"body", "content", "data", "payload", "response", "result"})
_SUCCESSES: Final = frozenset(
    {"success", "issuccess", "issuccessful", "successful", "succeeded", "ok", "isok"}
)
_FAILED: Final = frozenset({"error", "fail", "failed", "failure", "timeout"})
_STATUSES: Final = frozenset({"status", "statuscode", "httpstatus", "httpstatuscode"})
_OF_ENVELOPES: Final = _STATUSES | {"code", "result", "state"}
_HTTP_FAILURE: Final = re.compile(r"[45][0-9]{2}(?![0-9])")
_NO: Final = frozenset({"false", "no", "n", "f"})
_NO_ERROR: Final = frozenset({*_NO, "none", "null", "ok", "success", "no error"})


def reasons_in(value: Any) -> tuple[str, ...]:
    """The service's own reasons in a body of any shape, masked and without repeats."""
    found = islice(_reasons(value), MAX_REASONS)
    return tuple(
        dict.fromkeys(masked_text(text.strip())[:MAX_REASON_CHARACTERS] for text in found if text.strip())
    )


def reasons_beside_data(value: Any) -> tuple[str, ...]:
    """The service's own reasons in a body that may also hold data, or be a list of records and errors."""
    rows = value
    if isinstance(value, dict):
        rows = next((value[name] for name in ("data", "items") if name in value), ())
        value = _error_fields(value)
    if isinstance(rows, list):
        errors = [row if isinstance(row, str) else _error_fields(row) for row in rows if _is_only_error(row)]
        value = errors if value is rows else [value, errors]
    return reasons_in(value)


def says_error(value: Mapping[str, Any]) -> bool:
    """Whether an object says that it is an error, or no success, whatever else it holds."""
    return any(
        (plain_name(name) in _ERRORS and _is_error(item))
        or (plain_name(name) in _SUCCESSES and says_no(item))
        for name, item in value.items()
    )


def says_failed_status(value: Mapping[str, Any]) -> bool:
    """Whether the envelope around a list reports a failed status, in a word or as a number of HTTP."""
    statuses = [
        str(item).strip().casefold() for name, item in value.items() if plain_name(name) in _OF_ENVELOPES
    ]
    return any(one in _FAILED or _HTTP_FAILURE.match(one) for one in statuses)


def has_failed_http_status(value: Mapping[str, Any]) -> bool:
    """Whether an object has the number of a failed HTTP status, which no record has as its status."""
    return any(
        plain_name(name) in _STATUSES and _HTTP_FAILURE.fullmatch(str(item).strip()) is not None
        for name, item in value.items()
    )


def says_success(value: Mapping[str, Any]) -> bool:
    """Whether an object says that it is a success."""
    return any(
        plain_name(name) in _SUCCESSES and has_content(item) and not says_no(item)
        for name, item in value.items()
    )


def mentions_error(value: Any) -> bool:
    """Whether an object has any field of an error object."""
    return isinstance(value, Mapping) and (
        says_error(value)
        or any(plain_name(name) in _ERROR_WORDS and has_content(item) for name, item in value.items())
    )


def has_content(value: Any, depth: int = 0) -> bool:
    """Whether a value is not blank; an object or list of blanks is blank."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth < MAX_DEPTH and any(has_content(item, depth + 1) for item in inner)
    return bool(value.strip() if isinstance(value, str) else value)


def says_no(value: Any) -> bool:
    """Whether a flag is off: false, zero or such a word. A missing one is neither on nor off."""
    return value is not None and (value == 0 or str(value).strip().casefold() in {*_NO, "0"})


def plain_name(name: str) -> str:
    """The name of a field without case, underscores and dashes."""
    return name.casefold().replace("_", "").replace("-", "")


def _error_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if plain_name(name) in _ERROR_WORDS}


def _is_only_error(value: Any) -> bool:
    """Whether an element of a list is an error: its text, or an object with nothing else but an ID."""
    if not isinstance(value, dict):
        return isinstance(value, str)
    return all(name == "uuid" or plain_name(name) in ENVELOPE_FIELDS for name in value)


def _is_error(value: Any) -> bool:
    """Whether a field that is named for an error holds one: a code of zeros or "none" is no error."""
    if isinstance(value, str):
        return value.strip().casefold().strip("0") not in {"", *_NO_ERROR}
    return has_content(value)


def _reasons(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _reasons(item, depth + 1)
    elif isinstance(value, dict):
        yield from _reasons_of_object(value, depth + 1)


def _reasons_of_object(value: dict[str, Any], depth: int) -> Iterator[str]:
    """The reasons in the known fields; if there are none, every value counts as reasons against its field."""
    items = {plain_name(name): item for name, item in value.items()}
    found = [name for name in _SENTENCES if has_content(items.get(name))]
    # A title only repeats what a sentence says in full.
    titles = ["title"] if not set(found) - _ERROR_LISTS and has_content(items.get("title")) else []
    names = titles + found + [name for name in _FIELD_LISTS if has_content(items.get(name))]
    if not names:
        for name, item in value.items():
            is_envelope = plain_name(name) in _ENVELOPES and mentions_error(item)
            yield from (reason if is_envelope else f"{name}: {reason}" for reason in _reasons(item, depth))
        return
    subject = _field_name(items) or _text_of(items, "errorcode")
    for name in names:
        if name == "constraints" and isinstance(items[name], dict):  # Its keys name rules.
            items[name] = list(items[name].values())
        for reason in _reasons(items[name], depth):
            yield f"{subject}: {reason}" if subject and subject != reason else reason


def _field_name(items: Mapping[str, Any]) -> str:
    """The field that an error object is about, dotted if nested; empty if it names none."""
    for name in _FIELD_NAMES:
        value = items.get(name)
        if name == "source" and isinstance(value, dict):
            return _field_name({plain_name(each): item for each, item in value.items()})
        if name == "path" and isinstance(value, str) and {"timestamp", "status"} & items.keys():
            continue  # The address of the request.
        parts = value if isinstance(value, list) else _path_parts(value) if isinstance(value, str) else []
        if field := ".".join(_without_places([str(part) for part in parts if isinstance(part, str | int)])):
            return field
    return ""


def _path_parts(path: str) -> list[str]:
    """The parts of a name, a dotted path or a JSON pointer."""
    pointer = path.removeprefix("#")
    if pointer.startswith("/"):
        return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")]
    return path.split(".") if path.startswith(("$.", "data.", "body.")) else [path]


def _without_places(parts: list[str]) -> list[str]:
    while len(parts) > 1 and parts[0] in _PLACES:
        parts = parts[1:]
    return [] if parts == [""] else parts


def _text_of(items: Mapping[str, Any], name: str) -> str:
    value = items.get(name)
    return value.strip() if isinstance(value, str) and _is_error(value) else ""


ENVELOPE_FIELDS: Final[Collection[str]] = frozenset({
    *_ERROR_WORDS, *_SUCCESSES, "status", "statuscode", "type", "path", "requestid",
})  # fmt: skip
"""Plain names of the fields that a rejection may have."""
