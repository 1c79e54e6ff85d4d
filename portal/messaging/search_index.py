"""Search in messages of any structure: their search text, and the database's index of it.

The search text of a message has every value, normalized, one a line, and then for each value a digest of its path and
itself. So one index answers both words anywhere in a payload and values at a path. PostgreSQL has a trigram index.
SQLite has a table of trigrams for values and one of whole words for digests, kept up to date by triggers. Digests are
searched only whole, and their trigrams would take more space than everything else that is saved of a message.
"""

import hashlib
from base64 import b32encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import connections
from django.db.models import F, Func, Q, TextField, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import StrIndex
from django.db.models.lookups import GreaterThan

from portal.runtime.database import fetch_rows
from portal.runtime.folding import fold, join_initials
from servicing import ProtocolError, codec
from servicing.values import decimal_or_none

VALUE_INDEX: Final = "messaging_search"
DIGEST_INDEX: Final = "messaging_facts"
DIGEST_MARK: Final = "ǂ"
"""Digests begin with it, and no value has it."""
MAX_SEARCHED_CHARS: Final = 100_000
MAX_DEPTH: Final = 300
MIN_WORD_CHARS: Final = 3
MAX_WORDS: Final = 8
QUOTES: Final = str.maketrans(dict.fromkeys("“”„‟«»", '"'))


# --- The search text ---


def search_text(raw: Any) -> str:
    """Every value of a message, normalized, one a line; then a digest of the path and value of each."""
    values: list[str] = []
    digests: list[str] = []
    chars_left = MAX_SEARCHED_CHARS
    for path, value in _values_with_paths(raw):
        text = _normalize(value)
        if text and value is not None:
            values.append(text[:chars_left].replace(DIGEST_MARK, "\ufffd"))
        digests.append(_digest(path, text))
        chars_left -= len(text)
        if chars_left <= 0:
            break
    return "\n".join([*values, *dict.fromkeys(digests)]).replace("\0", "\ufffd")


def _values_with_paths(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Each plain value with its path; the elements of a list share one path."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _values_with_paths(item, f"{path}.{name}" if path else str(name), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _values_with_paths(item, f"{path}[]", depth + 1)
    else:
        yield path, value


def _normalize(value: Any) -> str:
    """A plain value for comparison: without case and accents, numbers without trailing zeros."""
    if isinstance(value, str):
        return fold(value[:MAX_SEARCHED_CHARS])
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    number = decimal_or_none(value)
    return str(value) if number is None else f"{number.normalize():f}"


def _digest(path: str, text: str) -> str:
    digest = hashlib.blake2b(f"{path}={text}".encode("utf-8", "surrogatepass"), digest_size=5).digest()
    return f"{DIGEST_MARK}{b32encode(digest).decode().lower()}"


# --- Searching ---


class SearchError(ValueError):
    """A text can't be searched for; the message says why."""


@dataclass(frozen=True)
class TextSearch:
    """Words that must all occur, or for JSON the digests of values at their paths."""

    words: list[str]
    is_json: bool

    @classmethod
    def parse(cls, text: str) -> "TextSearch":
        """Parse typed text; raises :class:`SearchError`."""
        is_json = text.startswith("{")
        return cls(_digests_of(text) if is_json else _words_of(text), is_json)

    @property
    def condition(self) -> Q:
        """On PostgreSQL: the condition that the text has all words, in its values and not in digests."""
        text: Any = F("search_text")
        if not self.is_json:
            text = Func(text, Value(DIGEST_MARK), Value(1), function="split_part", output_field=TextField())
        return Q(*(Q(GreaterThan(StrIndex(text, Value(word)), 0)) for word in self.words))

    @property
    def indexed_condition(self) -> Q:
        """On PostgreSQL: the same by the index, which may return a few messages too many."""
        return Q(*(Q(search_text__contains=word) for word in self.words))

    def matches(self, keys: Mapping[str, int], limit: int, *, descending: bool) -> Q:
        """On SQLite: the newest or oldest messages in a range of keys that have all words."""
        statement, params = self._statement(keys)
        order = "DESC" if descending else "ASC"
        return Q(pk__in=RawSQL(f"{statement} ORDER BY rowid {order} LIMIT %s", [*params, limit]))  # noqa: S611

    def count(self, keys: Mapping[str, int], limit: int) -> int:
        """On SQLite: how many messages in a range of keys have all words, up to a limit."""
        statement, params = self._statement(keys)
        counted = f"SELECT count(*) FROM ({statement} LIMIT %s)"  # noqa: S608 - fixed names
        return int(fetch_rows(counted, [*params, limit])[0][0])

    def _statement(self, keys: Mapping[str, int]) -> tuple[str, list[str | int]]:
        index = DIGEST_INDEX if self.is_json else VALUE_INDEX
        quoted = (word.replace('"', '""') for word in self.words)
        match = " AND ".join(f'"{word}"' for word in quoted)
        statement = f"SELECT rowid FROM {index} WHERE {index} MATCH %s AND rowid >= %s AND rowid < %s"  # noqa: S608
        return statement, [match, keys.get("gte", 0), keys.get("lt", 2**63 - 1)]


def _words_of(text: str) -> list[str]:
    """The words of a text; quotation marks turn several into one."""
    parts = text.translate(QUOTES).replace(DIGEST_MARK, "\ufffd").split('"')
    words = list(map(fold, [*parts[1::2], *join_initials(" ".join(parts[::2])).split()]))
    words = list(dict.fromkeys(word for word in words if word))
    if any(len(word) < MIN_WORD_CHARS for word in words):
        raise SearchError(f"Each word needs at least {MIN_WORD_CHARS} characters.")
    if len(words) > MAX_WORDS:
        raise SearchError(f"Search for at most {MAX_WORDS} words at once.")
    return words


def _digests_of(text: str) -> list[str]:
    """The digests of all values in a JSON object."""
    try:
        found = list(_values_with_paths(codec.parse(text)))
    except ProtocolError:
        raise SearchError('Not valid JSON. Use {"payload": {"status": "SUCCEEDED"}}.') from None
    if not found:
        raise SearchError("Name at least one value.")
    if any("[]" in path for path, _ in found):
        raise SearchError("Lists can’t be searched. Search for values at their own path.")
    return [_digest(path, _normalize(value)) for path, value in found]


# --- The index ---


def create(apps: Any, schema_editor: Any) -> None:
    """Create the index with the messages already saved."""
    run = schema_editor.execute
    if schema_editor.connection.vendor == "postgresql":
        run("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        run(f"CREATE INDEX {VALUE_INDEX} ON messaging_message USING gin (search_text gin_trgm_ops)")
        return
    options = {VALUE_INDEX: "tokenize='trigram'", DIGEST_INDEX: "tokenize='ascii', detail='none'"}
    for table, part in _parts("messaging_message").items():
        run(f"CREATE VIRTUAL TABLE {table} USING fts5(search_text, content='', {options[table]})")
        rows = f"SELECT id, {part} FROM messaging_message ORDER BY id"  # noqa: S608 - fixed names
        run(f"INSERT INTO {table} (rowid, search_text) {rows}")
    create_missing_triggers(using=schema_editor.connection.alias)


def drop(apps: Any, schema_editor: Any) -> None:
    """Drop the index."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP INDEX IF EXISTS {VALUE_INDEX}")
        return
    for name in _TRIGGERS:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {VALUE_INDEX}_{name}")
    for table in (VALUE_INDEX, DIGEST_INDEX):
        schema_editor.execute(f"DROP TABLE IF EXISTS {table}")


def create_missing_triggers(*, using: str, **_: Any) -> None:
    """On SQLite: create triggers again that a migration dropped by rebuilding the table of messages."""
    database = connections[using]
    if database.vendor != "sqlite":
        return
    with database.cursor() as cursor:
        if VALUE_INDEX in database.introspection.table_names(cursor):
            for name, statement in _TRIGGERS.items():
                cursor.execute(f"CREATE TRIGGER IF NOT EXISTS {VALUE_INDEX}_{name} {statement}")


def _parts(row: str) -> dict[str, str]:
    """The part of a row's search text for each table; digests follow all values."""
    first_digest = f"instr({row}.search_text, '{DIGEST_MARK}')"
    return {
        VALUE_INDEX: f"substr({row}.search_text, 1, {first_digest} - 1)",
        DIGEST_INDEX: f"substr({row}.search_text, {first_digest})",
    }


def _trigger(moment: str, row: str, columns: str, values: str) -> str:
    inserts = (
        f"INSERT INTO {table} ({columns.format(table)}) VALUES ({values}, {part});"  # noqa: S608 - fixed names
        for table, part in _parts(row).items()
    )
    return f"AFTER {moment} ON messaging_message BEGIN {' '.join(inserts)} END"


# The search text of a message is never changed.
_TRIGGERS = {
    "insert": _trigger("INSERT", "new", "rowid, search_text", "new.id"),
    "delete": _trigger("DELETE", "old", "{}, rowid, search_text", "'delete', old.id"),
}
