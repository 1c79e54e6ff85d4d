"""A whole copy of the database in one file, and the way back from it, on SQLite and on PostgreSQL.

Hides the two engines' own tools. A copy is made while everybody works, and is of one moment. It is for its owner alone.
"""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from django.db import connection


class NotCopied(Exception):
    """It did not work; the words say why."""


def back_up(file: Path) -> None:
    """Write a copy of the database; a file that is there already is never overwritten."""
    unfinished = file.with_name(f"{file.name}.part")
    try:
        unfinished.touch(mode=0o600)
        if connection.vendor == "sqlite":
            _copy(_database(), unfinished)
        else:
            _run(
                "pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={unfinished}", _name()
            )
        # A link, unlike a rename, does not take another file's place.
        os.link(unfinished, file)
    except OSError as problem:
        raise NotCopied(f"{file} cannot be written: {os.strerror(problem.errno or 0)}.") from None
    finally:
        unfinished.unlink(missing_ok=True)


def restore(file: Path) -> None:
    """Put a copy in the database's place, all of it or nothing. Nobody may be at work: stop web and workers first."""
    if not file.is_file():
        raise NotCopied(f"There is no file {file}.")
    connection.close()
    if connection.vendor == "sqlite":
        _require_sound(file)
        _copy(file, _database())
    else:
        flags = ["--clean", "--if-exists", "--no-owner", "--no-privileges", "--single-transaction"]
        _run("pg_restore", *flags, f"--dbname={_name()}", str(file))


def _database() -> Path:
    return Path(connection.settings_dict["NAME"])


def _name() -> str:
    return str(connection.settings_dict["NAME"])


def _copy(source: Path, target: Path) -> None:
    try:
        with closing(sqlite3.connect(source)) as before, closing(sqlite3.connect(target)) as after:
            before.backup(after)
    except sqlite3.Error as problem:
        raise NotCopied(f"The database cannot be copied: {problem}.") from None


def _require_sound(file: Path) -> None:
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as found:
            (verdict,) = found.execute("PRAGMA quick_check(1)").fetchone()
            known = found.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit_entry'").fetchone()
    except sqlite3.Error as problem:
        raise NotCopied(f"{file} is no copy of this database: {problem}.") from None
    if verdict != "ok" or not known:
        raise NotCopied(f"{file} is no sound copy of this database.")


def _run(*command: str) -> None:
    """One of PostgreSQL's own programs; the password is in its environment, not in the list of processes."""
    if not shutil.which(command[0]):
        raise NotCopied(f"{command[0]} is missing. Install Debian's package postgresql-client.")
    found = connection.settings_dict
    told = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    environment = os.environ | {name: str(found[key]) for name, key in told.items() if found.get(key)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise NotCopied(f"{command[0]} failed: {done.stderr.strip()}")
