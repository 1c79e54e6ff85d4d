"""Runs the whole product on one machine: database, staff, its own seeded sandbox, the portal, a worker."""

import ctypes
import io
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from portal.accounts.roles import Role
from portal.collections.management.commands.demo_collections import DEMO_DAYS
from portal.core.database import exclusive_use, mark_in_use
from portal.records.models import Borrower

HOST = "127.0.0.1"
START_WAIT_SECONDS = 60
STOP_SECONDS = 10
PARENT_POLL_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1


class Command(BaseCommand):
    """``manage.py demo`` (what ``make run`` calls)."""

    help = "Run the portal with a seeded sandbox (DEBUG only). PORT and SANDBOX_PORT choose ports."
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the flag for make, which does not pass on every signal."""
        parser.add_argument(
            "--until-parent-stops", action="store_true", help="stop when the calling program is stopped"
        )

    def handle(self, *args: Any, until_parent_stops: bool = False, **options: Any) -> None:
        if not settings.DEBUG:
            raise CommandError("The demo is for local use and needs DEBUG.")
        port, sandbox_port = port_from("PORT", 8000), port_from("SANDBOX_PORT", 8001)
        if port == sandbox_port:
            raise CommandError(f"PORT and SANDBOX_PORT are both {port}; they must differ.")
        os.environ.setdefault("PORTAL_URL", f"http://{HOST}:{port}")
        handle_stop_signals()
        if until_parent_stops:
            threading.Thread(target=stop_with_parent, args=[os.getppid()], daemon=True).start()
        servers: list[subprocess.Popen[bytes]] = []
        with exclusive_use() as is_alone:
            if not is_alone:
                raise CommandError(
                    f"Another demo uses {settings.DATA_DIR}. Stop it, or choose another folder with DATA_DIR=…"
                )
        mark_in_use()
        try:
            call_command("upgrade", verbosity=0)
            call_command("demo_staff", stdout=io.StringIO())
            servers.append(start_sandbox(sandbox_port))
            wait_for(sandbox_port, servers[-1], "The sandbox")
            self.import_known(sandbox_port)
            servers.append(start_portal(port, sandbox_port))
            wait_for(port, servers[-1], "The portal")
            servers.append(start_worker(sandbox_port))
            self.greet(port)
            self.watch(servers)
        finally:
            stop(servers)
            self.stdout.write("Stopped.")

    def import_known(self, sandbox_port: int) -> None:
        """On the first run, import the sandbox's IDs and profiles as a lender's own records, and let the staff work."""
        if Borrower.objects.exists():
            return
        self.stdout.write("Loading the demo portfolio…")
        self.stdout.flush()
        ids, profiles = settings.DATA_DIR / "ids.csv", settings.DATA_DIR / "profiles.jsonl"
        for path in (ids, profiles):
            with path.open("wb") as file:
                subprocess.run(sandbox_command(path.stem), stdout=file, check=True)
        with transaction.atomic():  # The next run would take half an import for a whole one.
            call_command("import_ids", ids, profiles=profiles, stdout=io.StringIO())
        environment, quiet = portal_environment(sandbox_port), subprocess.DEVNULL
        for words in (["refresh_portfolio", "--rate", "500"], ["demo_collections"], ["demo_work"]):
            command = [sys.executable, "manage.py", *words]
            subprocess.run(command, env=environment, cwd=settings.BASE_DIR, stdout=quiet, check=True)

    def greet(self, port: int) -> None:
        """Print the address and how to sign in."""
        self.stdout.write(f"\n{settings.PRODUCT_NAME} is at http://{HOST}:{port}/")
        self.stdout.write(f"Sign in as {', '.join(Role.values)}; the password is {settings.DEMO_PASSWORD}")
        if str(settings.ENV_FILE) == os.devnull and (settings.BASE_DIR / ".env").exists():
            self.stdout.write(".env is for deployments and was not read; ENV_FILE=.env reads it.")
        self.stdout.write("Ctrl-C stops it; the data is kept.\n")
        self.stdout.flush()

    def watch(self, servers: list[subprocess.Popen[bytes]]) -> None:
        """Wait until somebody stops the demo or a server exits."""
        while all(server.poll() is None for server in servers):
            time.sleep(0.5)
        raise CommandError("A server stopped; its messages are above.")


def handle_stop_signals() -> None:
    """Turn stop signals into an exception, so that the servers are stopped; nohup's ignored hang-up stays ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: sys.exit(0))


def stop_with_parent(parent: int) -> None:
    """Stop once the parent is gone or is handling an interrupt or hang-up that only it received, as make does."""
    while os.getppid() == parent and not is_stopping(parent):
        time.sleep(PARENT_POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def is_stopping(pid: int) -> bool:
    """Whether a process is handling an interrupt or a hang-up, which it blocks until it is done."""
    try:
        blocked = re.search(r"SigBlk:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return False
    numbers = (signal.SIGINT, signal.SIGHUP)
    return bool(blocked and any(int(blocked[1], 16) >> (number - 1) & 1 for number in numbers))


def stop_when_parent_dies() -> None:
    """On Linux, have the kernel stop this process when its parent is killed."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a server that never outlives this program."""
    # Code between fork and exec must take no lock. The only other thread, which watches the parent, holds none.
    return subprocess.Popen(command, env=environment, cwd=settings.BASE_DIR, preexec_fn=stop_when_parent_dies)


def port_from(name: str, default: int) -> int:
    """A free port from the environment; stops with a message if it is taken."""
    text = os.environ.get(name, str(default))
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 65536:
        raise CommandError(f"{name} must be a port number from 1 to 65535; it is {text!r}.")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, int(text)))
        except PermissionError:
            raise CommandError(
                f"Port {text} is for the system's administrator. Choose one from 1024 on with {name}=…"
            ) from None
        except OSError:
            raise CommandError(f"Port {text} is in use. Choose another with {name}=…") from None
    return int(text)


def sandbox_command(*words: str) -> list[str]:
    """The sandbox's command line with the demo's database."""
    database = str(settings.DATA_DIR / "sandbox.sqlite3")
    return [sys.executable, "-m", "servicing.sandbox", *words, "--db", database]


def start_sandbox(port: int) -> subprocess.Popen[bytes]:
    """Start the stand-in for the lending service. Its secret is passed in the environment, not in the process list."""
    secret = {"SANDBOX_SECRET": settings.SERVICING_SECRET}
    flags = ["--host", HOST, "--port", str(port), "--seed", "--client-id", settings.SERVICING_CLIENT_ID]
    flags += ["--control"]  # The portal takes its business date from there.
    flags += ["--days-ago", str(DEMO_DAYS)]
    return start(sandbox_command(*flags), os.environ | secret)


def start_portal(port: int, sandbox_port: int) -> subprocess.Popen[bytes]:
    """Start the portal under its real server, configured as in production but with one process."""
    flags = ["--bind", f"{HOST}:{port}", "--workers", "1", "--log-level", "warning"]
    flags += ["--graceful-timeout", str(STOP_SECONDS - 2)]
    command = [sys.executable, "-m", "gunicorn", "--config", "python:portal.gunicorn", "portal.wsgi", *flags]
    return start(command, portal_environment(sandbox_port))


def start_worker(sandbox_port: int) -> subprocess.Popen[bytes]:
    return start([sys.executable, "manage.py", "work"], portal_environment(sandbox_port))


def portal_environment(sandbox_port: int) -> dict[str, str]:
    url = f"http://{HOST}:{sandbox_port}"
    return os.environ | {"DEBUG": "1", "SERVICING_URL": url, "BUSINESS_DATE_FROM": "sandbox"}


def wait_for(port: int, server: subprocess.Popen[bytes], name: str) -> None:
    """Wait until the port answers; fail with a message if the server exits or never opens it."""
    for _ in range(START_WAIT_SECONDS * 20):
        if server.poll() is not None:
            raise CommandError(f"{name} did not start; its messages are above.")
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.05)
    raise CommandError(f"{name} did not open its port within {START_WAIT_SECONDS} s.")


def stop(servers: list[subprocess.Popen[bytes]]) -> None:
    """Stop the servers by their process IDs, the worker first, without interruption."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # The worker and the portal call the sandbox until they stop.
    for server in reversed(servers):
        if server.poll() is None:
            server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
