"""The command line ``python -m servicing.sandbox``."""

import csv
import inspect
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import requests

from servicing.sandbox import Sandbox
from servicing.sandbox.__main__ import build_parser, main
from servicing.sandbox.choices import Choices
from tests.sandbox.caller import Caller, sign_request

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


@pytest.mark.slow
def test_the_portfolio_is_ready_when_the_port_opens(db: Path) -> None:
    with run_service(db, "--seed", "--auth", "none") as (_, url):
        caller = Caller(url)
        answer = caller.get("/v1/webhooks/endpoints/messages?limit=1")
        assert answer.json()["pagination"]["total"] == 3000
        caller.session.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_service_cleanly(db: Path, number: signal.Signals) -> None:
    with run_service(db) as (process, _):
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
        assert (process.returncode, errors) == (0, "")


@pytest.mark.slow
def test_the_secret_may_come_from_the_environment(db: Path) -> None:
    with run_service(db, SANDBOX_SECRET=SECRET) as (_, url):
        caller = Caller(url, secret=SECRET)
        assert caller.get("/v1/webhooks/endpoints/messages").status_code == 200
        caller.session.close()


@pytest.mark.slow
def test_a_lender_that_differs_in_many_points_is_started_with_flags(
    db: Path, business: dict[str, Any]
) -> None:
    flags = """
        --auth oauth2 --client-id desk --scope loans --token-seconds 90 --values hex --value-iv : --value-key sha256
        --wrap data --wrap-lists payments --wrap-errors problem --errors list --total-at meta --page-cap 2
        --lower-larger-pages --offset rows --filters query --unknown-path-status 410 --allow-json-type
    """
    key = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
    encrypted = "000102030405060708090a0b0c0d0e0f:50c7402d71ad823a98993bc711921fb7"  # From openssl.
    with run_service(db, *flags.split(), SANDBOX_SECRET="s e", SANDBOX_FIELD_KEY=key) as (_, url):
        token = requests.post(
            f"{url}/oauth/token",
            data={"grant_type": "client_credentials", "scope": "loans"},
            auth=("desk", "s+e"),
            timeout=10,
        ).json()
        assert token["expires_in"] == 90
        headers = {"Authorization": f"Bearer {token['access_token']}"}
        with Sandbox(db) as sandbox:
            user = sandbox.world.borrower()["uuid"]
            loan = sandbox.world.loan(user)["uuid"]
            sandbox.world.repayment(loan)
            messages = [sandbox.world.message("a", {})["uuid"] for _ in range(4)]

        def call(path: str, body: object = None) -> tuple[int, Any]:
            method = "GET" if body is None else "POST"
            answer = requests.request(method, url + path, json=body, headers=headers, timeout=10)
            return answer.status_code, answer.json()

        created = call("/v1/users", business | {"EIN": encrypted})
        assert (created[0], created[1]["data"]["email"]) == (200, business["email"])
        refused = {"problem": {"errors": [{"detail": "EIN could not be decrypted to nine digits"}]}}
        assert call("/v1/users", business) == (400, refused)
        assert list(call(f"/v1/users/{user}/loans/{loan}/payments")[1]) == ["payments"]
        page = call("/v1/webhooks/endpoints/messages?limit=9&offset=1")[1]
        assert ([message["uuid"] for message in page["data"]], page["meta"]) == (
            messages[2:0:-1],
            {"total": 4},
        )
        assert call("/v1/nothing")[0] == 410
        headers["Authorization"] += "0"
        assert call(f"/v1/users/{user}/loan/{loan}")[0] == 401


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "headers"),
    [
        ("--auth bearer", {"Authorization": "Bearer t-1"}),
        ("--auth header", {"X-Api-Key": "t-1"}),
        ("--auth api-key --auth-headers Lender_Key", {"Lender_Key": "t-1"}),
    ],
)
def test_the_token_may_come_from_the_environment(db: Path, flags: str, headers: dict[str, str]) -> None:
    with run_service(db, *flags.split(), SANDBOX_TOKEN="t-1") as (_, url):
        path = f"{url}/v1/webhooks/endpoints/messages"
        assert requests.get(path, headers=headers, timeout=10).status_code == 200
        assert requests.get(path, timeout=10).status_code == 401


@pytest.mark.slow
def test_signed_headers_and_the_epochs_unit_are_flags(db: Path) -> None:
    with run_service(db, "--auth-headers", "a,b, c,d", "--epoch", "s") as (_, url):
        path = f"{url}/v1/webhooks/endpoints/messages"
        for digits, status in ((10, 200), (13, 403)):
            signed = sign_request(path, epoch=str(time.time_ns())[:digits])
            headers = dict(zip("abcd", signed.values(), strict=True))
            assert requests.get(path, headers=headers, timeout=10).status_code == status


def test_every_flag_has_the_default_of_its_argument(db: Path) -> None:
    options = build_parser().parse_args([])
    arguments = inspect.signature(Sandbox).parameters | inspect.signature(Choices).parameters
    renamed = {"epoch_unit": "epoch", "message_total": "total_at"}
    differing = {
        name: (getattr(options, renamed.get(name, name)), parameter.default)
        for name, parameter in arguments.items()
        if hasattr(options, renamed.get(name, name))
        and getattr(options, renamed.get(name, name)) != parameter.default
    }
    assert differing == {"port": (8001, 0)}


@pytest.mark.slow
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


@pytest.mark.slow
def test_requests_are_logged_only_with_the_log_option(db: Path) -> None:
    for words, lines in (((), 0), (("--log",), 1)):
        with run_service(db, *words, "--auth", "none") as (process, url):
            caller = Caller(url)
            caller.get("/v1/webhooks/endpoints/messages")
            caller.session.close()
            process.terminate()
            _, errors = process.communicate(timeout=10)
            assert len(errors.splitlines()) == lines


@pytest.mark.slow
def test_the_log_never_holds_credentials_from_a_query(db: Path) -> None:
    with run_service(db, "--log", "--auth", "oauth2") as (process, url):
        requests.post(f"{url}/oauth/token?client_secret=s-1", data={"grant_type": "x"}, timeout=10)
        requests.get(f"{url}/v1/webhooks/endpoints/messages?limit=7", timeout=10)
        process.terminate()
        _, errors = process.communicate(timeout=10)
    lines = [line.split()[-3:] for line in errors.splitlines()]
    assert lines == [
        ["POST", "/oauth/token", "401"],
        ["GET", "/v1/webhooks/endpoints/messages?limit=7", "401"],
    ]


@pytest.mark.parametrize(
    ("started_as", "name"),
    [
        ("/opt/bin/servicing-sandbox", "servicing-sandbox"),
        ("C:/bin/servicing-sandbox.exe", "servicing-sandbox"),
        ("/src/servicing/sandbox/__main__.py", "python -m servicing.sandbox"),
    ],
)
def test_the_help_names_the_command_as_it_was_started(
    monkeypatch: pytest.MonkeyPatch, started_as: str, name: str
) -> None:
    monkeypatch.setattr(sys, "argv", [started_as])
    assert build_parser().format_usage().startswith(f"usage: {name} [-h]")


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
        (("--auth", "basic", "--client-id", "a:b"), "A client ID with a colon can't be sent"),
        (("--auth", "header", "--auth-headers", "a,b"), "auth_headers must name one header"),
        (("--auth", "oauth2", "--token-seconds", "0"), "token_seconds must be 1 or more."),
        (("--values", "hex", "--value-iv", "ab"), "value_iv must be before, after, or a separator"),
        (("--value-key", "hex", "--field-key", "xyz"), "The secret for encrypting fields is not hex."),
        (("--page-cap", "0"), "page_cap must be 1 or more."),
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


@pytest.mark.slow
def test_a_failure_exits_with_1_and_without_a_traceback(db: Path) -> None:
    result = subprocess.run(command_line("ids", "--db", db), capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"{db} doesn’t exist.\n")


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_reset_empties_the_database(db: Path) -> None:
    sandbox = Sandbox(db)
    sandbox.world.borrower()
    with run_service(db, "--reset"):
        assert sandbox.world.users() == []
    sandbox.close()
