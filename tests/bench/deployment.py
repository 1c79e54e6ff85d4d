"""Runs the whole product for benchmarks: a seeded service and the portal, each in its own process."""

import os
import re
import shutil
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
from typing import Any

import requests

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
SECRET = "6f0d1a52-7c3e-4b98-a1d4-52e90b7c8f13"
PASSWORD = "servicing-demo"


@dataclass
class Portal:
    """A running portal with a signed-in session, and controls for the service behind it."""

    address: str
    service: str
    database: Path
    session: requests.Session
    pid: int
    settings: dict[str, str]

    @contextmanager
    def served(self, *command: str) -> Iterator[str]:
        """Run the portal under another server on the same database; yield its address."""
        port = free_port()
        with process([word.format(port) for word in command], self.settings, port):
            yield f"http://{HOST}:{port}"

    def delay_service(self, seconds: float) -> None:
        """Delay each answer of the service from now on."""
        requests.delete(f"{self.service}/_sandbox/faults", timeout=5).raise_for_status()
        if seconds:
            fault = {"operation": "*", "delay": seconds, "times": None}
            requests.post(f"{self.service}/_sandbox/faults", json=fault, timeout=5).raise_for_status()

    def forget_refreshes(self) -> None:
        """Forget when records were last refreshed, so that panels refresh them again."""
        with sqlite3.connect(self.database, timeout=20) as connection:
            connection.execute("UPDATE registry_answer SET asked_at = NULL")
        connection.close()

    def owners_by_accounts(self) -> list[str]:
        """Return the IDs of borrowers, those with the most loans and lines first."""
        query = (
            "SELECT borrower_uuid FROM registry_record WHERE kind IN ('loan', 'line') AND answer_at IS NOT NULL "
            "GROUP BY borrower_uuid ORDER BY count(*) DESC, borrower_uuid"
        )
        with sqlite3.connect(self.database, timeout=20) as connection:
            found = [row[0] for row in connection.execute(query)]
        connection.close()
        return found

    def accounts(self, kind: str) -> list[tuple[str, str]]:
        """Return the borrower's ID and the ID of each loan or line with a saved copy."""
        query = "SELECT borrower_uuid, uuid FROM registry_record WHERE kind = ? AND answer_at IS NOT NULL ORDER BY uuid"
        with sqlite3.connect(self.database, timeout=20) as connection:
            found = connection.execute(query, (kind,)).fetchall()
        connection.close()
        return found


@contextmanager
def running_portal(*, processes: int = 1) -> Iterator[Portal]:
    """Run the product as deployed on its own database, with every account read once."""
    with tempfile.TemporaryDirectory() as name:
        folder, ports = Path(name), [free_port(), free_port()]
        address, service = (f"http://{HOST}:{port}" for port in ports)
        settings = environment(folder, ports[1]) | DEPLOYED | {"WEB_CONCURRENCY": str(processes)}
        database_flags = ["--db", str(folder / "sandbox.sqlite3")]
        prepare(folder)
        # Stop the service first, so that no request waits for its answer.
        with (
            process([word.format(ports[0]) for word in GUNICORN], settings, ports[0]) as started,
            process([*SANDBOX, *database_flags, "--port", str(ports[1]), "--control"], settings, ports[1]),
        ):
            database = folder / "portal.sqlite3"
            yield Portal(address, service, database, signed_in_session(address), started.pid, settings)


GUNICORN = [sys.executable, "-m", "gunicorn", "--config", "python:portal.gunicorn", "portal.wsgi"]
GUNICORN += ["--bind", f"{HOST}:{{}}", "--log-level", "warning"]
DEPLOYED = {
    "DEBUG": "off",
    "SECRET_KEY": "0123456789" * 6,
    "ALLOWED_HOSTS": HOST,
    "SECOND_FACTOR_REQUIRED": "none",
    "SECURE_SSL_REDIRECT": "off",
    "SERVICING_ENVIRONMENT": "sandbox",
    "SERVICING_CLIENT_ID": "sandbox-client",
}
"""The settings of a server without TLS."""


def environment(folder: Path, service_port: int) -> dict[str, str]:
    """Return local settings of the portal and its service, on SQLite unless DATABASE_URL names a PostgreSQL."""
    server = os.environ.get("DATABASE_URL", "")
    database = server if server.startswith("postgres") else f"sqlite:///{folder / 'portal.sqlite3'}"
    return os.environ | {
        "DEBUG": "1",
        "ENV_FILE": os.devnull,
        "DATA_DIR": str(folder),
        "DATABASE_URL": database,
        "SERVICING_URL": f"http://{HOST}:{service_port}",
        "SERVICING_SECRET": SECRET,
        "SANDBOX_SECRET": SECRET,
        "DEMO_PASSWORD": PASSWORD,
    }


def certificate(folder: Path) -> Path:
    """Create a self-signed certificate of this machine, in one file with its key."""
    file = folder / "own.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={HOST}",
    ]
    command += ["-addext", f"subjectAltName=IP:{HOST}", "-keyout", str(file), "-out", str(folder / "public")]
    subprocess.run(command, check=True, capture_output=True)
    with file.open("a") as output:
        output.write((folder / "public").read_text())
    return file


SANDBOX = [sys.executable, "-m", "servicing.sandbox"]


def prepare(folder: Path) -> None:
    """Prepare static files, the database, staff and copies of all records, or copy those that BENCH_DESK names."""
    saved_folder = os.environ.get("BENCH_DESK")
    if not saved_folder:
        _create(folder)
        return
    if not Path(saved_folder).exists():
        Path(saved_folder).mkdir()
        _create(Path(saved_folder))
    shutil.copytree(saved_folder, folder, dirs_exist_ok=True)


def _create(folder: Path) -> None:
    port, names = free_port(), {"ids": "ids.csv", "profiles": "profiles.jsonl"}
    local, database_flags = environment(folder, port), ["--db", str(folder / "sandbox.sqlite3")]
    with process([*SANDBOX, *database_flags, "--port", str(port), "--seed"], local, port):
        for what, name in names.items():
            with (folder / name).open("wb") as out:
                subprocess.run([*SANDBOX, what, *database_flags], stdout=out, env=local, cwd=ROOT, check=True)
        importing = ["import_ids", str(folder / "ids.csv"), "--profiles", str(folder / "profiles.jsonl")]
        refreshing = ["refresh_portfolio", "--rate", "500"]
        filling = [importing, refreshing, ["sync_messages"], ["verify_audit"]]
        for words in (["migrate", "-v0"], ["demo_staff"], *filling):
            manage(local, *words)
        manage(local | DEPLOYED, "collectstatic", "--noinput", "-v0")


def manage(settings: dict[str, str], *words: str) -> None:
    """Run a command of the portal."""
    command = [sys.executable, "manage.py", *words]
    subprocess.run(command, env=settings, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def signed_in_session(address: str, name: str = "servicer") -> requests.Session:
    """Return a signed-in session, like a browser's."""
    session = TrustingSession()
    session.trust_env = False
    page = session.get(f"{address}/", timeout=30)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token, "the sign-in form has no token"
    form = {"login": name, "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    headers = {"Referer": page.url}
    answer = session.post(page.url, data=form, headers=headers, timeout=30, allow_redirects=False)
    assert answer.headers.get("Location") == "/", f"not signed in: {answer.status_code}"
    return session


class TrustingSession(requests.Session):
    """A session that sends secure cookies to this machine without TLS, as browsers do."""

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        answer = super().send(request, **kwargs)
        for cookie in self.cookies:
            cookie.secure = False
        return answer


@contextmanager
def process(command: list[str], settings: dict[str, str], port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server for the duration of the block; waits until its port opens."""
    server = subprocess.Popen(command, env=settings, cwd=ROOT)
    try:
        for _ in range(1200):
            assert server.poll() is None, f"{command[2]} did not start"
            with socket.socket() as probe:
                if probe.connect_ex((HOST, port)) == 0:
                    break
            time.sleep(0.05)
        yield server
    finally:
        server.terminate()
        server.wait(20)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
