"""The fields of a row as they are saved, for those who check the trail."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Field, JSONField, Model

from portal.ui import wording

FIELD_WORDS = {"id": "ID", "uuid": "ID", "ip": "IP address", "ms": "(ms)"}
DOCUMENT_WORDS = {"request_body": "request, masked", "answer_body": "response, masked"}


@dataclass(frozen=True)
class RawRecord:
    """The fields of a row with their names, those with JSON apart. Empty ones are left out.

    JSON that was cut off as it was saved is text.
    """

    facts: Sequence[tuple[str, Any]]
    documents: Sequence[tuple[str, Any]]
    texts: Sequence[tuple[str, str]]


def raw_record(row: Model) -> RawRecord:
    """The fields of a row, each with its name in words."""
    values = [(field, getattr(row, field.attname)) for field in row._meta.concrete_fields]
    documents = {field: found for field, value in values if (found := _document(field, value))}
    named = [(DOCUMENT_WORDS.get(one.name, str(one.verbose_name)), value) for one, value in documents.items()]
    return RawRecord(
        facts=[
            (_words(field), _shown(field, value))
            for field, value in values
            if not isinstance(field, JSONField) and field not in documents and value not in (None, "")
        ],
        documents=[one for one in named if not isinstance(one[1], str)],
        texts=[one for one in named if isinstance(one[1], str)],
    )


def _document(field: "Field[Any, Any]", value: Any) -> Any:
    """What a field has of a document; its text if that was cut off."""
    if field.name not in DOCUMENT_WORDS and not isinstance(field, JSONField):
        return None
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, parse_float=Decimal)
    except (ValueError, RecursionError):
        return value


def _shown(field: "Field[Any, Any]", value: Any) -> Any:
    if isinstance(value, datetime):
        return wording.moment(value)
    return wording.human(value) if field.choices else value


def _words(field: "Field[Any, Any]") -> str:
    return " ".join(FIELD_WORDS.get(word, word) for word in str(field.verbose_name).split())
