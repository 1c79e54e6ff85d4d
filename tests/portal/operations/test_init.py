"""A deployment begins with one command: its file of settings is whole, private and has fresh keys."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.settings import BASE_DIR

ANSWERS = ["--host=desk.example.com", "--service=https://lender.example", "--client-id=desk"]


def manage(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # The last one is what browser tests set for this process.
    removed = (
        "DEBUG",
        "ENV_FILE",
        "DATA_DIR",
        "DATABASE_URL",
        "AUDIT_CHECKPOINT_DIR",
        "DJANGO_ALLOW_ASYNC_UNSAFE",
    )
    clean = {name: value for name, value in os.environ.items() if name not in removed}
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        env=clean | environment,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def begin(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "secret").write_text("3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364")
    return manage(
        "init",
        *ANSWERS,
        f"--secret-file={tmp_path / 'secret'}",
        f"--data-dir={tmp_path / 'data'}",
        f"--file={tmp_path / 'env'}",
        *words,
    )


def test_the_file_it_writes_starts_a_deployment(tmp_path: Path) -> None:
    done = begin(tmp_path, "--database=")
    assert done.stdout.endswith("Next:\n\n.venv/bin/python manage.py upgrade\n"), done.stderr
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("env", "data")] == [0o600, 0o700]
    upgraded = manage("upgrade", ENV_FILE=str(tmp_path / "env"))
    assert upgraded.returncode == 0, upgraded.stderr
    assert (tmp_path / "data/portal.sqlite3").exists()
    assert manage("check", "--deploy", "--fail-level=WARNING", ENV_FILE=str(tmp_path / "env")).returncode == 0
    again = begin(tmp_path, "--database=")
    assert f"{tmp_path / 'env'} exists already." in again.stderr


def test_two_roles_are_printed_for_postgresql_and_the_file_has_the_one_of_web(tmp_path: Path) -> None:
    done = begin(tmp_path, "--database=postgres://db.example/desk")
    (made,) = (line for line in done.stdout.splitlines() if line.startswith("CREATE ROLE desk_web"))
    password = made.split("'")[1]
    assert (
        f"DATABASE_URL='postgres://desk_web:{password}@db.example:5432/desk'\n"
        in (tmp_path / "env").read_text()
    )
    assert "CREATE DATABASE desk OWNER desk " in done.stdout
    assert "-v web=desk_web -f docker/audit-roles.sql" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--host=https://desk.example.com", "The host name has no scheme, port or path"),
        ("--database=mysql://db/desk", "The database looks like postgres://"),
        ("--data-dir=/dev/null/data", "can’t be made: Not a directory."),
    ],
)
def test_a_wrong_answer_is_one_sentence_and_writes_nothing(tmp_path: Path, words: str, said: str) -> None:
    done = begin(tmp_path, "--database=", words)
    assert done.stderr.startswith("CommandError: ")
    assert said in done.stderr
    assert not (tmp_path / "env").exists()


def test_without_a_terminal_it_says_what_to_give(tmp_path: Path) -> None:
    assert "manage.py init --help" in manage("init", f"--file={tmp_path / 'env'}").stderr
