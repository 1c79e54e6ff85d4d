"""Backup and restore of the whole database as one file, on SQLite and on PostgreSQL.

Hides the two databases' own tools. A backup is taken while people work, is consistent, and is readable only by its
owner.
"""

import os
import re
import secrets
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from django.db import connection

from portal.core.database import sqlite_file
from portal.core.environment import text

_DATED = re.compile(r"\d{8}T\d{6}Z\.copy")


class BackupError(Exception):
    """A backup or restore failed; the message says why."""


def back_up(file: Path) -> None:
    """Write a backup; an existing file is never overwritten."""
    unfinished = file.with_name(f"{file.name}.part")
    try:
        unfinished.touch(mode=0o600)
        if database := sqlite_file():
            _copy_sqlite(database, unfinished)
        else:
            _dump(unfinished)
        # Unlike a rename, a link does not replace an existing file.
        os.link(unfinished, file)
    except OSError as problem:
        raise BackupError(f"{file} cannot be written: {os.strerror(problem.errno or 0)}.") from None
    finally:
        with suppress(OSError):
            unfinished.unlink()


def delete_oldest(newest: Path, keep: int) -> list[Path]:
    """Delete all but the newest scheduled backups beside the one just written, which are recognized by their names."""
    found = (file for file in newest.parent.iterdir() if _DATED.fullmatch(file.name))
    # Those named by a later time were written before the clock was set back.
    copies = sorted(found, key=lambda file: (file.name <= newest.name, file.name))
    for file in copies[:-keep]:
        try:
            file.unlink()
        except OSError as problem:
            raise BackupError(f"{file} cannot be deleted: {os.strerror(problem.errno or 0)}.") from None
    return copies[:-keep]


def restore(file: Path) -> None:
    """Replace the database with a backup, completely or not at all. Web and workers must be stopped."""
    if not file.is_file():
        raise BackupError(f"{file} doesn’t exist.")
    connection.close()
    if database := sqlite_file():
        _require_valid(file)
        _copy_sqlite(file, database)
    else:
        _restore_dump(file)


@contextmanager
def scratch_database() -> Iterator[dict[str, str]]:
    """Create a temporary, empty database beside this one; yield the environment for a command that uses it."""
    database = sqlite_file()
    with TemporaryDirectory(dir=database and database.parent) as folder:
        url = Path(folder) / "url"
        environment = {"DATABASE_URL_FILE": str(url), "AUDIT_CHECKPOINT_DIR": ""}
        if database:
            url.write_text(f"sqlite:///{folder}/portal.sqlite3")
            yield environment
            return
        name = f"check_{secrets.token_hex(6)}"
        url.touch(mode=0o600)
        url.write_text(urlsplit(text("DATABASE_URL"))._replace(path=f"/{name}").geturl())
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
            try:
                yield environment
            finally:
                cursor.execute(f"DROP DATABASE {name}")


def _copy_sqlite(source: Path | str, target: Path | str) -> None:
    try:
        with closing(sqlite3.connect(source)) as before, closing(sqlite3.connect(target)) as after:
            before.backup(after)
    except sqlite3.Error as problem:
        raise BackupError(f"The database can’t be copied: {problem}.") from None


def _require_valid(file: Path) -> None:
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as found:
            (verdict,) = found.execute("PRAGMA quick_check(1)").fetchone()
            known = found.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit_entry'").fetchone()
    except sqlite3.Error as problem:
        raise BackupError(f"{file} isn’t a backup of this database: {problem}.") from None
    if verdict != "ok" or not known:
        raise BackupError(f"{file} is a damaged backup of this database.")


def _dump(file: Path) -> None:
    flags = ["--format=custom", "--no-owner", "--no-privileges", f"--file={file}"]
    command = [_program("pg_dump"), *flags, connection.settings_dict["NAME"]]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise BackupError(f"pg_dump failed: {done.stderr.strip()}")


# A table that an older backup lacks would make its migrations fail.
_EMPTY = """DO $$ DECLARE one regclass; BEGIN
    FOR one IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace LOOP
        EXECUTE format('DROP TABLE %s CASCADE', one);
    END LOOP;
END $$"""


def _restore_dump(file: Path) -> None:
    """Restore in one transaction, which commits only after the whole dump was read."""
    flags = ["--clean", "--if-exists", "--no-owner", "--no-privileges", "--file=-"]
    dump_command = [_program("pg_restore"), *flags, str(file)]
    quiet = ["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1"]
    steps = ["SET client_min_messages = warning", "BEGIN", _EMPTY]
    psql_command = [
        _program("psql"),
        *quiet,
        *(f"--command={step}" for step in steps),
        "--file=-",
        connection.settings_dict["NAME"],
    ]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(psql_command, env=_environment(), stdin=pipe, stdout=nothing, stderr=pipe) as psql:  # noqa: S603
        dump = subprocess.run(dump_command, stdout=psql.stdin, stderr=pipe, check=False)  # noqa: S603
        _, words = psql.communicate(b"" if dump.returncode else b"COMMIT;\n")
    if dump.returncode or psql.returncode:
        raise BackupError((words or dump.stderr).decode().strip())


def _program(name: str) -> str:
    """The path of one of PostgreSQL's programs."""
    if path := shutil.which(name):
        return path
    raise BackupError(f"{name} is missing. Install Debian's package postgresql-client.")


def _environment() -> dict[str, str]:
    """The environment with the database's address, so that no process list shows the password."""
    address = connection.settings_dict
    names = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    return os.environ | {name: str(address[key]) for name, key in names.items() if address.get(key)}
