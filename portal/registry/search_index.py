"""The index behind search: a table for each kind of record, with the texts of those that are not archived.

Each has the columns ``rowid``, the record's key, and ``search_text``; triggers keep it in step. On SQLite it is a
table of trigrams. On PostgreSQL it is a plain one with an index of trigrams, and with statistics of its own: what is
frequent among people may be rare among loans. Nothing but the names of kinds enters the statements.
"""

from collections.abc import Iterator
from typing import Any, Final

from django.db.backends.base.base import BaseDatabaseWrapper

from portal.registry.models import SEARCHED_KINDS, Kind

# Stands before and behind each line of a text. Nobody types it, and PostgreSQL takes it for a letter, so that it is
# part of the trigrams there too.
MARK: Final = "ǂ"
# What stands for a space in PostgreSQL's tables: its trigrams end at a space, and at any other mark alike.
SPACE: Final = "ǀ"
# In what is known or typed they stand for nothing.
UNMARKED: Final = str.maketrans(MARK + SPACE, "  ")
# How good a match is: the whole name, another whole line, the beginning of the name, of a line, of a word.
FORMS: Final = tuple(form.replace("|", MARK) for form in ("||{}|", "|{}|", "||{}", "|{}", " {}"))
TRIGRAM: Final = 3
# The lines of a text there: letters of a frequent word stand in many lines, together in one of few.
LINES: Final = f"string_to_array(search_text, '{MARK}')"


def forms_of(term: str) -> tuple[str, ...]:
    """What to look for: a term too short for an index of trigrams only counts where a word begins."""
    is_form = term.startswith((MARK, " "))
    return (term,) if is_form or len(term) >= TRIGRAM else (f"{MARK}{term}", f" {term}")


def pieces_of(term: str) -> list[str]:
    """The fewest trigrams that hold all of a term."""
    starts = {*range(0, len(term) - TRIGRAM, TRIGRAM), len(term) - TRIGRAM}
    return [term[start : start + TRIGRAM] for start in sorted(starts)]


def index_of(kind: Kind) -> str:
    """The name of the kind's table."""
    return f"registry_search_{kind.value}"


def create(apps: Any, schema_editor: Any) -> None:
    """Make the tables and take in what is known already."""
    connection = schema_editor.connection
    if connection.vendor == "postgresql":
        schema_editor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    schema = _schema(connection)
    for kind in SEARCHED_KINDS:
        for statement in _STATEMENTS[connection.vendor]:
            schema_editor.execute(statement.format(index=index_of(kind), kind=kind.value, schema=schema))
    keep_in_step(connection)


def create_tables(apps: Any, schema_editor: Any) -> None:
    """Put them into the place of the partial indexes that PostgreSQL had once: writing waits, reading does not."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        if index_of(Kind.BORROWER) in connection.introspection.table_names(cursor):
            return
    for kind in SEARCHED_KINDS:
        schema_editor.execute(f"ALTER INDEX {index_of(kind)} RENAME TO {index_of(kind)}_before")
    schema_editor.execute("LOCK TABLE registry_record IN SHARE ROW EXCLUSIVE MODE")
    create(apps, schema_editor)


def drop_indexes(apps: Any, schema_editor: Any) -> None:
    """Take those indexes away: later, for nobody can read until the transaction ends that does it."""
    if schema_editor.connection.vendor == "postgresql":
        for kind in SEARCHED_KINDS:
            schema_editor.execute(f"DROP INDEX IF EXISTS {index_of(kind)}_before")


def renew_triggers(apps: Any, schema_editor: Any) -> None:
    """Let the triggers do what they do now: PostgreSQL's call a function, SQLite's are made anew."""
    connection = schema_editor.connection
    for kind in SEARCHED_KINDS:
        if connection.vendor == "postgresql":
            schema_editor.execute(
                _FUNCTION.format(index=index_of(kind), kind=kind.value, schema=_schema(connection))
            )
        else:
            for name in _TRIGGERS[connection.vendor]:
                schema_editor.execute(f"DROP TRIGGER IF EXISTS {index_of(kind)}_{name}")
    keep_in_step(connection)


def drop(apps: Any, schema_editor: Any) -> None:
    """Take the tables away."""
    on = " ON registry_record" if schema_editor.connection.vendor == "postgresql" else ""
    for kind in SEARCHED_KINDS:
        for name in _TRIGGERS[schema_editor.connection.vendor]:
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {index_of(kind)}_{name}{on}")
        if on:
            schema_editor.execute(f"DROP FUNCTION IF EXISTS {index_of(kind)}()")
        schema_editor.execute(f"DROP TABLE IF EXISTS {index_of(kind)}")


def keep_in_step(connection: BaseDatabaseWrapper) -> None:
    """Make the triggers that are missing: a migration that rebuilds the table of records on SQLite drops them."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        for kind in SEARCHED_KINDS:
            if index_of(kind) in tables:
                for statement in _triggers(connection.vendor, kind):
                    cursor.execute(statement)


def _schema(connection: BaseDatabaseWrapper) -> str:
    """Where PostgreSQL makes tables."""
    if connection.vendor != "postgresql":
        return ""
    with connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_schema())")
        return str(cursor.fetchone()[0])


def _triggers(vendor: str, kind: Kind) -> Iterator[str]:
    head = {"sqlite": "CREATE TRIGGER IF NOT EXISTS", "postgresql": "CREATE OR REPLACE TRIGGER"}[vendor]
    for name, statement in _TRIGGERS[vendor].items():
        yield f"{head} {index_of(kind)}_{name} " + statement.format(index=index_of(kind), kind=kind.value)


# Of what has no text, such as an account of which only the identifier is known, there is nothing to find.
_LIVING = (
    " FROM registry_record WHERE kind = '{kind}' AND archived_at IS NULL AND search_text <> '' ORDER BY id"
)
# It writes as its owner: the role of the portal need not be allowed to yet while this version is rolled out. Were it
# not said where its table is, a temporary one of that role would come first, whose triggers would then do as the owner
# what that role may not.
_FUNCTION = f"""CREATE OR REPLACE FUNCTION {{index}}() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = {{schema}}, pg_temp AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        TRUNCATE {{index}};
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO {{index}} SELECT id, replace(search_text, ' ', '{SPACE}') FROM added
            WHERE kind = '{{kind}}' AND archived_at IS NULL AND search_text <> ''
            ON CONFLICT (rowid) DO UPDATE SET search_text = excluded.search_text;
    ELSIF TG_OP = 'DELETE' OR new.archived_at IS NOT NULL OR new.search_text = '' THEN
        DELETE FROM {{index}} WHERE rowid = old.id;
    ELSE
        INSERT INTO {{index}} VALUES (new.id, replace(new.search_text, ' ', '{SPACE}'))
            ON CONFLICT (rowid) DO UPDATE SET search_text = excluded.search_text;
    END IF;
    RETURN NULL;
END $$"""  # noqa: S608 - names of kinds only
_STATEMENTS = {
    "sqlite": [
        "CREATE VIRTUAL TABLE {index} USING fts5(search_text, content='', tokenize='trigram')",
        # In few large pieces, which takes two thirds of the time; afterwards the usual size again.
        "INSERT INTO {index} ({index}, rank) VALUES ('hashsize', 67108864)",
        "INSERT INTO {index} (rowid, search_text) SELECT id, search_text" + _LIVING,
        "INSERT INTO {index} ({index}, rank) VALUES ('hashsize', 1048576)",
        # What is taken in at once lies in many pieces, which later writing would join little by little.
        "INSERT INTO {index} ({index}) VALUES ('optimize')",
    ],
    # The planner knows by so many samples how frequent letters are, where something else narrows a list besides.
    "postgresql": [
        "CREATE TABLE {index} (rowid bigint PRIMARY KEY, search_text text NOT NULL)",
        "ALTER TABLE {index} ALTER search_text SET STATISTICS 200",
        f"INSERT INTO {{index}} SELECT id, replace(search_text, ' ', '{SPACE}')" + _LIVING,
        "CREATE INDEX {index}_trigrams ON {index} USING gin (search_text gin_trgm_ops)",
        f"CREATE INDEX {{index}}_lines ON {{index}} USING gin (({LINES}))",
        _FUNCTION,
    ],
}
_IS_NEW = "(old.search_text <> new.search_text OR (old.archived_at IS NULL) <> (new.archived_at IS NULL))"
_TRIGGERS = {
    # A table without content forgets a row only when it is told the text that it took in.
    "sqlite": {
        "insert": """AFTER INSERT ON registry_record WHEN new.kind = '{kind}' AND new.archived_at IS NULL
        AND new.search_text <> '' BEGIN
        INSERT INTO {index} (rowid, search_text) VALUES (new.id, new.search_text);
    END""",
        "delete": """AFTER DELETE ON registry_record WHEN old.kind = '{kind}' AND old.archived_at IS NULL
        AND old.search_text <> '' BEGIN
        INSERT INTO {index} ({index}, rowid, search_text) VALUES ('delete', old.id, old.search_text);
    END""",
        "update": f"""AFTER UPDATE OF search_text, archived_at ON registry_record WHEN new.kind = '{{kind}}'
        AND {_IS_NEW} BEGIN
        INSERT INTO {{index}} ({{index}}, rowid, search_text)
            SELECT 'delete', old.id, old.search_text WHERE old.archived_at IS NULL AND old.search_text <> '';
        INSERT INTO {{index}} (rowid, search_text)
            SELECT new.id, new.search_text WHERE new.archived_at IS NULL AND new.search_text <> '';
    END""",
    },
    "postgresql": {
        # All rows of a statement at once: many are imported together.
        "insert": "AFTER INSERT ON registry_record REFERENCING NEW TABLE AS added FOR EACH STATEMENT"
        " EXECUTE FUNCTION {index}()",
        "delete": "AFTER DELETE ON registry_record FOR EACH ROW"
        " WHEN (old.kind = '{kind}') EXECUTE FUNCTION {index}()",
        "update": "AFTER UPDATE OF search_text, archived_at ON registry_record FOR EACH ROW"
        f" WHEN (new.kind = '{{kind}}' AND {_IS_NEW}) EXECUTE FUNCTION {{index}}()",
        "truncate": "AFTER TRUNCATE ON registry_record FOR EACH STATEMENT EXECUTE FUNCTION {index}()",
    },
}
