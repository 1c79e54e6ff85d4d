"""The command ``manage.py demo``: its servers, portfolio, staff accounts and lasting data."""

import csv
import io
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import requests
from django.core.management.base import CommandError

from portal.collections.management.commands.demo_collections import DEMO_DAYS
from portal.operations.management.commands.demo import port_from
from portal.settings import BASE_DIR

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "manage.py", "demo"]
# These tests share a folder.
ONE_WORKER = pytest.mark.xdist_group("demo")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a first start: an empty folder and two free ports."""
    return environment_in(tmp_path)


@pytest.fixture(scope="module")
def used_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the demo may have run before."""
    return environment_in(tmp_path_factory.mktemp("demo"))


def environment_in(folder: Path) -> dict[str, str]:
    system = {
        name: text for name, text in os.environ.items() if name in ("PATH", "HOME") or "COVERAGE" in name
    }
    ports = {"PORT": str(free_port()), "SANDBOX_PORT": str(free_port())}
    return system | ports | {"DEBUG": "1", "ENV_FILE": os.devnull, "DATA_DIR": str(folder)}


@contextmanager
def running(environment: dict[str, str], command: Sequence[str] = COMMAND) -> Iterator[subprocess.Popen[str]]:
    """Start the demo, wait for its greeting, and stop it after the block."""
    # Under nohup, the tests ignore a hangup, and the demo would inherit that.
    command = ["env", "--default-signal=HUP,INT", *command]
    with errors_of(environment).open("w") as errors:
        demo = subprocess.Popen(
            command, env=environment, cwd=BASE_DIR, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    timeout = threading.Timer(600, demo.terminate)
    timeout.start()
    try:
        assert demo.stdout
        assert any("Ctrl-C stops it" in line for line in demo.stdout), "it never said that it was ready"
        yield demo
    finally:
        timeout.cancel()
        with suppress(ProcessLookupError):
            demo.terminate()
        demo.communicate(timeout=60)


def errors_of(environment: dict[str, str]) -> Path:
    """The file with what the demo writes to standard error."""
    return Path(environment["DATA_DIR"], "errors.txt")


def wait_until(holds: Callable[[], object], explain: Callable[[], object] = str) -> None:
    for _ in range(4800):  # The first days of the book are written behind all other jobs.
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError(f"it never came to pass {explain()}")


def failed_calls(environment: dict[str, str]) -> list[Any]:
    with closing(sqlite3.connect(Path(environment["DATA_DIR"], "portal.sqlite3"))) as database:
        calls = "SELECT at, operation, outcome, tries, error FROM audit_remotecall WHERE error <> ''"
        return database.execute(calls).fetchall()


def stop(demo: subprocess.Popen[str], number: signal.Signals) -> str:
    demo.send_signal(number)
    return demo.communicate(timeout=120)[0]


@contextmanager
def signed_in(environment: dict[str, str], name: str) -> Iterator[tuple[requests.Session, str]]:
    """Sign in as the README says, and yield the browser and the portal's address."""
    base = f"http://127.0.0.1:{environment['PORT']}"
    with requests.Session() as browser:
        form = browser.get(f"{base}/sign-in/").text
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
        assert token
        typed = {"login": name, "password": "servicing-demo", "csrfmiddlewaretoken": token[1]}
        assert browser.post(f"{base}/sign-in/", data=typed).url == f"{base}/"
        yield browser, base


def count_borrowers(environment: dict[str, str]) -> int:
    with signed_in(environment, "servicer") as (browser, base):
        found = re.search(r"(\d+) borrowers", browser.get(f"{base}/borrowers/").text)
        assert found
        return int(found[1])


def follow_the_readme(environment: dict[str, str]) -> None:
    """Open each of the README's links to the demo: a form, or a list that links to a record."""
    links = re.findall(r"\(http://127\.0\.0\.1:8000(/\S+)\)", (BASE_DIR / "README.md").read_text())
    assert len(links) == 5
    with signed_in(environment, "supervisor") as (browser, base):
        for link in links:
            page = browser.get(base + link)
            assert (page.status_code, page.url) == (200, base + link)
            assert "/new/" in link or re.search(
                r'href="[^"]*/(\d+|[0-9a-f]{8}-[\w-]{27})/[^"]*"', page.text
            ), link


def check_work(environment: dict[str, str]) -> None:
    """Check that the staff's pages show their work, and that an approval waits for the supervisor."""
    with signed_in(environment, "servicer") as (browser, base):
        home = browser.get(f"{base}/").text
        wanted = ("Ask for the bank statement", "Agree on a payment plan", "Harbor Light Bakery LLC")
        assert [words for words in wanted if words not in home] == []
        # On a busy machine a read may fail; the next one succeeds.
        wait_until(
            lambda: "failing since" not in browser.get(f"{base}/").text, lambda: failed_calls(environment)
        )
        assert "Outcome unknown:" in home
        # A past due account pays tomorrow, so a promise for tomorrow can be kept.
        tomorrow = datetime.now(ZoneInfo("America/Los_Angeles")).date() + timedelta(days=1)
        worklist = browser.get(f"{base}/collections/export.csv?all=1").content.decode("utf-8-sig")
        assert str(tomorrow) in [row["Pending payment"] for row in csv.DictReader(io.StringIO(worklist))]
        assert "after 2 PM." in browser.get(f"{base}/search/?q=cell").text
        assert "$120,000.00" in browser.get(f"{base}/applications/").text
    with signed_in(environment, "supervisor") as (browser, base):
        assert re.search(r'href="/approvals/[0-9a-f-]{36}/"', browser.get(f"{base}/approvals/").text)


def check_book(environment: dict[str, str]) -> None:
    """Check that the days of the first start are written, and right for 50 pairs of account and day."""
    wait_until(lambda: count_rows(environment, "portfolio_bookday") >= DEMO_DAYS)
    wait_until(lambda: not count_rows(environment, "portfolio_run"))
    compare = [sys.executable, "-m", "tests.pairs", "50"]
    done = subprocess.run(compare, env=environment, cwd=BASE_DIR, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("50 pairs, 350 figures compared; 0 pairs differ.")


def count_rows(environment: dict[str, str], table: str) -> int:
    with closing(sqlite3.connect(Path(environment["DATA_DIR"], "portal.sqlite3"))) as database:
        return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def check_rejected_requests(environment: dict[str, str]) -> None:
    """Check that a request that is rejected is a line in the log, and a HEAD request nothing."""
    base = f"http://127.0.0.1:{environment['PORT']}"
    before = errors_of(environment).read_text()
    assert requests.head(f"{base}/sign-in/").status_code == 200
    assert errors_of(environment).read_text() == before
    assert requests.get(base, headers={"Host": "evil.example"}).status_code == 400
    with signed_in(environment, "viewer") as (browser, _):
        assert browser.get(f"{base}/audit/").status_code == 403
    written = errors_of(environment).read_text().removeprefix(before).splitlines()
    assert [line for line in written if not line.startswith("20")] == []
    assert 1 <= len(written) <= 2


def read_start_error(**environment: str) -> str:
    done = subprocess.run(
        COMMAND,
        env=os.environ | environment,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def is_stopped(environment: dict[str, str]) -> bool:
    return not any(is_listening(int(environment[name])) for name in ("PORT", "SANDBOX_PORT"))


def children(process: "subprocess.Popen[Any]") -> list[int]:
    """Return the IDs of its child processes, oldest first."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


@ONE_WORKER
def test_the_demo_keeps_its_data_after_a_stop_or_crash(used_environment: dict[str, str]) -> None:
    with running(used_environment) as demo:
        assert errors_of(used_environment).read_text() == ""
        assert count_borrowers(used_environment) >= 60
        follow_the_readme(used_environment)
        check_work(used_environment)
        check_book(used_environment)
        ports = {"PORT": str(free_port()), "SANDBOX_PORT": str(free_port())}
        folder = used_environment["DATA_DIR"]
        assert f"Another demo uses {folder}. Stop it, or" in read_start_error(**used_environment | ports)
        check_rejected_requests(used_environment)
        assert "Stopped." in stop(demo, signal.SIGINT)
        assert (demo.returncode, is_stopped(used_environment)) == (0, True)

    with running(used_environment) as demo:
        assert count_borrowers(used_environment) >= 60
        demo.kill()
        wait_until(lambda: is_stopped(used_environment))

    with running(used_environment) as demo:
        os.kill(children(demo)[0], signal.SIGKILL)
        assert "Stopped." in demo.communicate(timeout=120)[0]
        assert (demo.returncode, is_stopped(used_environment)) == (1, True)


@ONE_WORKER
def test_stopping_make_stops_the_servers(used_environment: dict[str, str], tmp_path: Path) -> None:
    """Signal only ``make``: with a signal that it passes on, and with one that it can't."""
    recipe = next(
        line for line in (BASE_DIR / "Makefile").read_text().splitlines() if "manage.py demo" in line
    )
    makefile = tmp_path / "Makefile"
    makefile.write_text(f"BIN = {Path(sys.executable).parent}\nrun:\n{recipe}\n")
    for number in (signal.SIGTERM, signal.SIGKILL):
        with running(used_environment, ["make", "--file", str(makefile), "run"]) as make:
            assert count_borrowers(used_environment) >= 60
            make.send_signal(number)
            wait_until(lambda: is_stopped(used_environment))
            assert (
                f"--db {used_environment['DATA_DIR']}"
                not in subprocess.run(["ps", "ax"], capture_output=True, text=True).stdout
            )


def test_a_port_in_use_is_reported(environment: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", int(environment["SANDBOX_PORT"]))):
        assert f"Port {environment['SANDBOX_PORT']} is in use" in read_start_error(**environment)


def test_an_invalid_port_is_rejected(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "PORT must be a port number" in read_start_error(**environment | {"PORT": "eighty"})
    for port in ("0", "65536", "", "²"):
        monkeypatch.setenv("PORT", port)
        with pytest.raises(CommandError, match="PORT must be a port number"):
            port_from("PORT", 8000)


def test_two_servers_need_two_ports(environment: dict[str, str]) -> None:
    assert "they must differ" in read_start_error(**environment | {"PORT": environment["SANDBOX_PORT"]})


def test_a_sandbox_that_cannot_start_is_reported(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "sandbox.sqlite3").write_text("this is no database" * 100)
    done = subprocess.run(
        COMMAND, env=environment, cwd=BASE_DIR, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "The sandbox did not start; its messages are above." in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_requires_debug(environment: dict[str, str]) -> None:
    needed = {"SECRET_KEY": "n" * 64, "ALLOWED_HOSTS": "localhost", "SERVICING_URL": "https://lender.example"}
    needed |= {"SERVICING_CLIENT_ID": "desk", "SERVICING_SECRET": "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"}
    assert "needs DEBUG" in read_start_error(**environment | needed | {"DEBUG": "off"})
