"""The init command: it writes a complete and private settings file with new keys."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from portal.settings import BASE_DIR

pytestmark = pytest.mark.slow

ANSWERS = ["--host=desk.example.com", "--service=https://lender.example", "--client-id=desk"]


def environment(**given: str) -> dict[str, str]:
    # Browser tests set the last one for this process.
    removed = (
        "DEBUG",
        "ENV_FILE",
        "DATA_DIR",
        "DATABASE_URL",
        "DJANGO_ALLOW_ASYNC_UNSAFE",
    )
    return {name: value for name, value in os.environ.items() if name not in removed} | given


def manage(*words: str, **given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        env=environment(**given),
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def flags(tmp_path: Path) -> list[str]:
    (tmp_path / "secret").write_text("3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364")
    return [
        *ANSWERS,
        f"--secret-file={tmp_path / 'secret'}",
        f"--data-dir={tmp_path / 'data'}",
        f"--file={tmp_path / 'env'}",
    ]


def run_init(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return manage("init", *flags(tmp_path), *words)


def test_the_written_file_starts_a_deployment(tmp_path: Path) -> None:
    done = run_init(tmp_path, "--database=")
    assert done.stdout.endswith("Next:\n\n.venv/bin/python manage.py upgrade\n"), done.stderr
    assert "ALLOWED_HOSTS='desk.example.com,127.0.0.1'\n" in (tmp_path / "env").read_text()
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("env", "data")] == [0o600, 0o700]
    upgraded = manage("upgrade", ENV_FILE=str(tmp_path / "env"))
    assert upgraded.returncode == 0, upgraded.stderr
    assert (tmp_path / "data/portal.sqlite3").exists()
    assert manage("check", "--deploy", "--fail-level=WARNING", ENV_FILE=str(tmp_path / "env")).returncode == 0
    again = run_init(tmp_path, "--database=")
    assert f"{tmp_path / 'env'} already exists." in again.stderr


def test_a_local_sandbox_needs_no_tls(tmp_path: Path) -> None:
    assert run_init(tmp_path, "--database=", "--service=http://127.0.0.1:8001").returncode == 0
    assert manage("check", ENV_FILE=str(tmp_path / "env")).returncode == 0


def test_two_roles_are_printed_for_postgresql(tmp_path: Path) -> None:
    done = run_init(tmp_path, "--database=postgres://db.example/desk")
    (statement,) = (line for line in done.stdout.splitlines() if line.startswith("CREATE ROLE desk_web"))
    password = statement.split("'")[1]
    assert (
        f"DATABASE_URL='postgres://desk_web:{password}@db.example/desk'\n" in (tmp_path / "env").read_text()
    )
    assert "CREATE DATABASE desk OWNER desk " in done.stdout
    assert "-v web=desk_web -f docker/audit-roles.sql" in done.stdout


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="its commands are PostgreSQL's")
def test_the_printed_commands_create_the_roles_and_the_database(tmp_path: Path) -> None:
    server = {name: connection.settings_dict[name.upper()] for name in ("host", "port", "user", "password")}
    done = run_init(tmp_path, f"--database=postgres://{server['host']}:{server['port']}/desk_begun")
    _, sql, commands = re.split("administrator:\n|Next:\n", done.stdout)
    with psycopg.connect(dbname="postgres", autocommit=True, **server) as administrator:
        try:
            for statement in sql.strip().splitlines():
                administrator.execute(statement.encode())
            typed = subprocess.run(
                ["bash", "-e"],
                input=commands.replace(".venv/bin/python", sys.executable),
                env=environment(ENV_FILE=str(tmp_path / "env")),
                cwd=BASE_DIR,
                capture_output=True,
                text=True,
            )
            assert typed.returncode == 0, typed.stderr
            report = manage("doctor", ENV_FILE=str(tmp_path / "env")).stdout
            assert "WRONG  The database" not in report
            assert "this role lacks rights" not in report
            copy = tmp_path / "copy"
            assert manage("backup", str(copy), ENV_FILE=str(tmp_path / "env")).returncode == 0
            (owner,) = re.findall(r"OWNER_DATABASE_URL='(.*)'", commands)
            drill = manage(
                "restore", str(copy), "--check", ENV_FILE=str(tmp_path / "env"), DATABASE_URL=owner
            )
            assert "The backup can be restored." in drill.stdout, drill.stderr
        finally:
            administrator.execute("DROP DATABASE IF EXISTS desk_begun WITH (FORCE)")
            administrator.execute("DROP ROLE IF EXISTS desk_begun")
            administrator.execute("DROP ROLE IF EXISTS desk_begun_web")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--host=https://desk.example.com", "Enter a host name without scheme, port or path"),
        ("--database=mysql://db/desk", "Enter a database such as postgres://"),
        ("--database=postgres://db:port/desk", "Enter a database such as postgres://"),
        ("--database=postgres://desk:password@db/desk", "Enter a database such as postgres://"),
        ("--service=https://lender.example/v1", "SERVICING_URL must end before /v1"),
        ("--client-id=", "SERVICING_CLIENT_ID is missing"),
        ("--secret-file=/nowhere", "SERVICING_SECRET can’t be read from the file"),
        ("--data-dir=/dev/null/data", "can’t be created: Not a directory."),
    ],
)
def test_an_invalid_answer_writes_no_file(tmp_path: Path, words: str, said: str) -> None:
    with pytest.raises(CommandError, match=re.escape(said)):
        call_command("init", *flags(tmp_path), "--database=", words)
    assert not (tmp_path / "env").exists()


def test_without_a_terminal_the_error_points_to_help(tmp_path: Path) -> None:
    assert "manage.py init --help" in manage("init", f"--file={tmp_path / 'env'}").stderr


def test_a_lender_with_an_api_key_is_set_up_by_flags(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k3y")
    settings = {
        "SERVICING_AUTH": "header",
        "SERVICING_AUTH_HEADERS": "X-Api-Key",
        "SERVICING_TOKEN_FILE": str(tmp_path / "key"),
        "SERVICING_VALUE_ENCODING": "hex",
    }
    words = [f"--setting={name}={value}" for name, value in settings.items()]
    done = run_init(tmp_path, "--database=", "--client-id=", *words)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "env").read_text()
    for name, value in settings.items():
        assert f"{name}='{value}'\n" in written


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("SERVICING_AUTH=header", "SERVICING_AUTH_HEADERS must be one header name"),
        (
            "SERVICING_AUTH=kerberos",
            "SERVICING_AUTH must be one of hmac, bearer, header, basic, oauth2, none",
        ),
        ("SERVICING_AUTH", "--setting must be NAME=VALUE"),
    ],
)
def test_a_setting_that_does_not_fit_stops_init(tmp_path: Path, setting: str, sentence: str) -> None:
    done = run_init(tmp_path, "--database=", f"--setting={setting}")
    assert done.returncode == 1
    assert sentence in done.stderr
    assert not (tmp_path / "env").exists()
