"""Runs the product as deployed, each process by itself."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
SECRET = "6f0d1a52-7c3e-4b98-a1d4-52e90b7c8f13"
PASSWORD = "servicing-demo"


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
