"""The fields of a row as they are saved, for those who check the trail."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Field, JSONField, Model

from portal.ui import wording

FIELD_WORDS = {"id": "ID", "uuid": "ID", "ip": "IP address"}


@dataclass(frozen=True)
class RawRecord:
    """The fields of a row with their names, those with JSON apart. Empty ones are left out."""

    facts: Sequence[tuple[str, Any]]
    documents: Sequence[tuple[str, Any]]


def raw_record(row: Model) -> RawRecord:
    """The fields of a row, each with its name in words."""
    values = [(field, getattr(row, field.attname)) for field in row._meta.concrete_fields]
    return RawRecord(
        facts=[
            (_words(field), _shown(field, value))
            for field, value in values
            if not isinstance(field, JSONField) and value not in (None, "")
        ],
        documents=[
            (str(field.verbose_name), value)
            for field, value in values
            if isinstance(field, JSONField) and value
        ],
    )


def _shown(field: "Field[Any, Any]", value: Any) -> Any:
    if isinstance(value, datetime):
        return wording.moment(value)
    return wording.human(value) if field.choices else value


def _words(field: "Field[Any, Any]") -> str:
    return " ".join(FIELD_WORDS.get(word, word) for word in str(field.verbose_name).split())
