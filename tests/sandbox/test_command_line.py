"""The command line ``python -m servicing.sandbox``."""

import csv
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import pytest

from servicing.sandbox import Sandbox
from servicing.sandbox.__main__ import main
from tests.sandbox.caller import Caller

SECRET = "a35a7ee0-1f0c-4e7a-8f7e-0d9c6a4b5d21"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "service.db"


def command_line(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "servicing.sandbox", *map(str, words)]


@pytest.fixture(autouse=True)
def restore_signals() -> Iterator[None]:
    """Restore the signal handlers that the command line replaces."""
    handlers = {
        number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)
    }
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def run_command(*words: str | Path) -> str:
    """Run a command; return its output, or its error message if it fails."""
    out = io.TextIOWrapper(io.BytesIO())
    with redirect_stdout(out):
        try:
            main([*map(str, words)])
        except SystemExit as error:
            return str(error.code)
        out.seek(0)
        return out.read()


@contextmanager
def run_service(db: Path, *words: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the service in a process; yield it with its URL."""
    process = subprocess.Popen(
        command_line("--db", db, "--port", "0", *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | variables,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.communicate()


def test_the_portfolio_is_ready_when_the_port_opens(db: Path) -> None:
    with run_service(db, "--seed", "--auth", "none") as (_, url):
        caller = Caller(url)
        answer = caller.get("/v1/webhooks/endpoints/messages?limit=1")
        assert answer.json()["pagination"]["total"] == 3000
        caller.session.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_service_cleanly(db: Path, number: signal.Signals) -> None:
    with run_service(db) as (process, _):
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
        assert (process.returncode, errors) == (0, "")


def test_the_secret_may_come_from_the_environment(db: Path) -> None:
    with run_service(db, SANDBOX_SECRET=SECRET) as (_, url):
        caller = Caller(url, secret=SECRET)
        assert caller.get("/v1/webhooks/endpoints/messages").status_code == 200
        caller.session.close()


def test_an_update_survives_kill_9(db: Path) -> None:
    with run_service(db, "--auth", "none") as (process, url):
        caller = Caller(url)
        sandbox = Sandbox(db)
        user = sandbox.world.borrower()
        answer = caller.put(f"/v1/users/{user['uuid']}", {"email": "after@restart.example"})
        assert answer.status_code == 200
        process.send_signal(signal.SIGKILL)
        process.wait()
        caller.session.close()
        sandbox.close()
    sandbox = Sandbox(db)
    assert sandbox.world.user(user["uuid"])["email"] == "after@restart.example"
    sandbox.close()


def test_requests_are_logged_only_with_the_log_option(db: Path) -> None:
    for words, lines in (((), 0), (("--log",), 1)):
        with run_service(db, *words, "--auth", "none") as (process, url):
            caller = Caller(url)
            caller.get("/v1/webhooks/endpoints/messages")
            caller.session.close()
            process.terminate()
            _, errors = process.communicate(timeout=10)
            assert len(errors.splitlines()) == lines


def test_a_port_in_use_is_reported_in_one_sentence(db: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        sentence = run_command("--db", db, "--port", port)
    assert sentence == (
        f"Port {port} of 127.0.0.1 can't be opened (address already in use). Choose another with --port."
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--secret", "short"), "The secret for encrypting fields has 5 characters"),
        (("--port", "65536"), "--port must be 0 to 65535."),
        (("--db", "/nowhere/at/all"), "/nowhere/at/all can't be used as the sandbox's database"),
        (("--db", __file__), "can't be used as the sandbox's database: file is not a database."),
        (("ids", "--db", "/nowhere"), "/nowhere doesn’t exist."),
        (("advance", "--db", __file__, "--days", "0"), "--days must be 1 or more."),
    ],
)
def test_a_failure_is_reported_in_one_sentence(db: Path, words: tuple[str, ...], sentence: str) -> None:
    output = run_command(*words) if "--db" in words else run_command("--db", db, *words)
    assert output.count("\n") == 0
    assert sentence in output


def test_a_failure_exits_with_1_and_without_a_traceback(db: Path) -> None:
    result = subprocess.run(command_line("ids", "--db", db), capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"{db} doesn’t exist.\n")


def test_advance_works_while_the_service_runs(db: Path) -> None:
    with run_service(db, "--auth", "none") as (_, url):
        sandbox = Sandbox(db)
        user = sandbox.world.borrower()["uuid"]
        loan = sandbox.world.loan(user)["uuid"]
        assert run_command("advance", "--db", db, "--days", "40").startswith("It is ")
        caller = Caller(url)
        first = caller.get(f"/v1/users/{user}/loan/{loan}").json()["installments"][0]
        assert first["status"] == "PAID"
        caller.session.close()
        sandbox.close()


def test_ids_are_printed_as_csv(db: Path) -> None:
    sandbox = Sandbox(db)
    user = sandbox.world.borrower(first_name='Ñandú, "Ltd"')
    records = {
        "borrower": user,
        "key_person": user["key_people"][0],
        "application": sandbox.world.line_application(user["uuid"]),
        "loan": sandbox.world.loan(user["uuid"]),
        "line": sandbox.world.line(user["uuid"]),
    }
    sandbox.close()
    rows = list(csv.DictReader(io.StringIO(run_command("ids", "--db", db))))
    assert list(rows[0]) == ["kind", "uuid", "borrower_uuid", "label"]
    assert [(row["kind"], row["uuid"]) for row in rows] == [
        (kind, body["uuid"]) for kind, body in records.items()
    ]
    assert {row["borrower_uuid"] for row in rows} == {user["uuid"]}
    assert rows[0]["label"] == 'Ñandú, "Ltd"'


def test_profiles_are_printed_as_json_lines(db: Path) -> None:
    sandbox = Sandbox(db)
    users = [sandbox.world.borrower(first_name="Ñandú"), sandbox.world.individual()]
    sandbox.close()
    assert [json.loads(line) for line in run_command("profiles", "--db", db).splitlines()] == users


def test_a_reset_empties_the_database(db: Path) -> None:
    sandbox = Sandbox(db)
    sandbox.world.borrower()
    with run_service(db, "--reset"):
        assert sandbox.world.users() == []
    sandbox.close()
