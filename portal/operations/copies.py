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
        _replay(file)


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


# A table that an older copy does not know would stand in the way when the copy is brought to this version.
_EMPTY = """DO $$ DECLARE one regclass; BEGIN
    FOR one IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace LOOP
        EXECUTE format('DROP TABLE %s CASCADE', one);
    END LOOP;
END $$"""


def _replay(file: Path) -> None:
    """One transaction, which ends well only when all of the copy was read."""
    read = [
        _program("pg_restore"),
        "--clean",
        "--if-exists",
        "--no-owner",
        "--no-privileges",
        "--file=-",
        str(file),
    ]
    quiet = ["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1"]
    steps = [
        "--command=SET client_min_messages = warning",
        "--command=BEGIN",
        f"--command={_EMPTY}",
        "--file=-",
    ]
    write = [_program("psql"), *quiet, *steps, _name()]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(write, env=_environment(), stdin=pipe, stdout=nothing, stderr=pipe) as writing:  # noqa: S603
        reading = subprocess.run(read, stdout=writing.stdin, stderr=pipe, check=False)  # noqa: S603
        _, words = writing.communicate(b"" if reading.returncode else b"COMMIT;\n")
    if reading.returncode or writing.returncode:
        raise NotCopied(f"The copy cannot be put back: {(words or reading.stderr).decode().strip()}")


def _run(*command: str) -> None:
    done = subprocess.run(  # noqa: S603
        [_program(command[0]), *command[1:]], env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotCopied(f"{command[0]} failed: {done.stderr.strip()}")


def _program(name: str) -> str:
    """Where one of PostgreSQL's own programs is."""
    if path := shutil.which(name):
        return path
    raise NotCopied(f"{name} is missing. Install Debian's package postgresql-client.")


def _environment() -> dict[str, str]:
    """Where they find the database; the password is there, not in the list of processes."""
    found = connection.settings_dict
    told = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD"}
    return os.environ | {name: str(found[key]) for name, key in told.items() if found.get(key)}
