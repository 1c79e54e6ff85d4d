"""The whole product as staff meet it, for benchmarks: a seeded service and the portal, each in a process of its own."""

import os
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
SECRET = "6f0d1a52-7c3e-4b98-a1d4-52e90b7c8f13"
PASSWORD = "servicing-demo"


@dataclass
class Desk:
    """A running portal with a signed-in session, and the buttons of the service behind it."""

    address: str
    service: str
    database: Path
    session: requests.Session

    def slow(self, seconds: float) -> None:
        """From now on the service is silent that long before each answer."""
        requests.delete(f"{self.service}/_sandbox/faults", timeout=5).raise_for_status()
        if seconds:
            fault = {"operation": "*", "delay": seconds, "times": None}
            requests.post(f"{self.service}/_sandbox/faults", json=fault, timeout=5).raise_for_status()

    def forget_asking(self) -> None:
        """As if nobody had asked the service for half a minute."""
        with sqlite3.connect(self.database, timeout=20) as connection:
            connection.execute("UPDATE registry_record SET asked_at = NULL")
        connection.close()

    def owners_by_accounts(self) -> list[str]:
        """The borrowers with the most loans and lines first."""
        query = (
            "SELECT borrower_uuid FROM registry_record WHERE kind IN ('loan', 'line') AND answer <> '' "
            "GROUP BY borrower_uuid ORDER BY count(*) DESC, borrower_uuid"
        )
        with sqlite3.connect(self.database, timeout=20) as connection:
            found = [row[0] for row in connection.execute(query)]
        connection.close()
        return found

    def accounts(self, kind: str) -> list[tuple[str, str]]:
        """Borrower and uuid of each known loan or line."""
        query = (
            "SELECT borrower_uuid, uuid FROM registry_record WHERE kind = ? AND answer <> '' ORDER BY uuid"
        )
        with sqlite3.connect(self.database, timeout=20) as connection:
            found = connection.execute(query, (kind,)).fetchall()
        connection.close()
        return found


@contextmanager
def running() -> Iterator[Desk]:
    """The product on a database of its own, every account read once, stopped at the end."""
    with tempfile.TemporaryDirectory() as name:
        folder, ports = Path(name), [_free_port(), _free_port()]
        environment = os.environ | {
            "DEBUG": "1",
            "ENV_FILE": os.devnull,
            "DATA_DIR": name,
            "SERVICING_URL": f"http://{HOST}:{ports[1]}",
            "SERVICING_SECRET": SECRET,
            "SANDBOX_SECRET": SECRET,
            "DEMO_PASSWORD": PASSWORD,
        }
        file = ["--db", str(folder / "sandbox.sqlite3")]
        service = [
            sys.executable,
            "-m",
            "servicing.sandbox",
            *file,
            "--port",
            str(ports[1]),
            "--seed",
            "--control",
        ]
        portal = [sys.executable, "-m", "gunicorn", "--config", "python:portal.serving", "portal.wsgi"]
        portal += ["--bind", f"{HOST}:{ports[0]}", "--workers", "1", "--log-level", "warning"]
        with _process(service, environment, ports[1]):
            _prepare(folder, environment, file)
            with _process(portal, environment, ports[0]):
                address = f"http://{HOST}:{ports[0]}"
                yield Desk(
                    address, environment["SERVICING_URL"], folder / "portal.sqlite3", _signed_in(address)
                )


def _prepare(folder: Path, environment: dict[str, str], file: list[str]) -> None:
    """Database, staff, everything the service has, read once."""
    names = {"ids": "ids.csv", "profiles": "profiles.jsonl"}
    for what, name in names.items():
        with (folder / name).open("wb") as out:
            command = [sys.executable, "-m", "servicing.sandbox", what, *file]
            subprocess.run(command, stdout=out, env=environment, cwd=ROOT, check=True)
    importing = ["import_ids", str(folder / "ids.csv"), "--profiles", str(folder / "profiles.jsonl")]
    for words in (["migrate", "-v0"], ["demo_staff"], importing, ["refresh_portfolio", "--rate", "500"]):
        command = [sys.executable, "manage.py", *words]
        subprocess.run(command, env=environment, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def _signed_in(address: str) -> requests.Session:
    """A session as a browser has it once a servicer has signed in."""
    session = requests.Session()
    session.trust_env = False
    page = session.get(f"{address}/", timeout=30)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token, "the sign-in form has no token"
    form = {"login": "servicer", "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    answer = session.post(page.url, data=form, headers={"Referer": page.url}, timeout=30)
    assert "sessionid" in session.cookies, f"not signed in: {answer.status_code} {answer.url}"
    return session


@contextmanager
def _process(command: list[str], environment: dict[str, str], port: int) -> Iterator[None]:
    """A server for as long as the block lasts, from when its port opens."""
    server = subprocess.Popen(command, env=environment, cwd=ROOT)
    try:
        for _ in range(1200):
            assert server.poll() is None, f"{command[2]} did not start"
            with socket.socket() as probe:
                if probe.connect_ex((HOST, port)) == 0:
                    break
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait(20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
