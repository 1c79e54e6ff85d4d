"""Runs a command with a temporary PostgreSQL server, which is stopped afterwards.

    python3 docker/postgres.py [options of the server] -- command …

The command finds the server in ``DATABASE_URL``; where that is given already, it runs on that one.
Standard library only.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HOST, ROLE = "127.0.0.1", "desk"
WAIT_SECONDS = 30
# Room in memory for the databases of the tests, with a wide margin.
MEMORY_BYTES = 4_000_000_000
# PostgreSQL refuses to run as root; Debian's package brings a user for it.
UNPRIVILEGED: dict[str, Any] = (
    {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
)


def main(arguments: list[str]) -> int:
    """Run the command after the dashes and exit with its code."""
    cut = arguments.index("--")
    options, command = arguments[:cut], arguments[cut + 1 :]
    if os.environ.get("DATABASE_URL"):
        return subprocess.call(command)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Whoever ends this program ends the server too.
    with (
        tempfile.TemporaryDirectory(prefix="postgres-", dir=data_location(options)) as folder,
        server(Path(folder), options) as address,
    ):
        return subprocess.call(command, env=os.environ | {"DATABASE_URL": address})


def data_location(options: list[str]) -> str | None:
    """Where the data folder is created: in memory if nothing needs to survive and there is room."""
    memory = Path("/dev/shm")  # noqa: S108 - it gets its own folder there
    if "fsync=off" in options and memory.is_dir() and shutil.disk_usage(memory).free > MEMORY_BYTES:
        return str(memory)
    # The server's user may not be able to read the folder that TMPDIR names.
    return "/tmp" if UNPRIVILEGED else None  # noqa: S108 - it gets its own folder there


@contextmanager
def server(folder: Path, options: list[str]) -> Iterator[str]:
    """The address of a server that answers, until the block ends."""
    password, port, log = secrets.token_hex(16), free_port(), folder / "log"
    create(folder, password)
    flags = ["-p", str(port), "-c", f"listen_addresses={HOST}", "-c", "unix_socket_directories="]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [program("postgres"), "-D", folder / "data", *flags, *options],
            cwd=folder,
            stdout=out,
            stderr=out,
            start_new_session=True,  # Ctrl-C in the terminal is for the command.
            **UNPRIVILEGED,
        )
    try:
        wait_for(process, port, log)
        yield f"postgres://{ROLE}:{password}@{HOST}:{port}/postgres"
    finally:
        process.send_signal(signal.SIGINT)  # Fast shutdown: open connections are closed.
        process.wait(WAIT_SECONDS)


def create(folder: Path, password: str) -> None:
    """An empty data folder whose one role has a password: other people of this machine reach the port too."""
    secret = folder / "password"
    secret.write_text(password)
    if UNPRIVILEGED:
        for path in (folder, secret):
            shutil.chown(path, UNPRIVILEGED["user"], UNPRIVILEGED["group"])
    flags = [
        "--username",
        ROLE,
        "--auth",
        "scram-sha-256",
        "--pwfile",
        secret,
        "--encoding",
        "UTF8",
        "--locale",
        "C.UTF-8",
    ]
    result = subprocess.run(
        [program("initdb"), "-D", folder / "data", *flags],
        cwd=folder,
        capture_output=True,
        text=True,
        **UNPRIVILEGED,
    )
    if result.returncode:
        sys.exit(f"postgres: the data folder could not be created.\n{result.stderr}")


def wait_for(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Until the server lets people in."""
    until = time.monotonic() + WAIT_SECONDS
    asking = [program("pg_isready"), "-q", "-h", HOST, "-p", str(port), "-d", "postgres", "-U", ROLE]
    while subprocess.call(asking):
        if process.poll() is not None or time.monotonic() > until:
            sys.exit(f"postgres: the server did not start.\n{log.read_text()}")
        time.sleep(0.1)


def program(name: str) -> str:
    """One of the server's programs: Debian keeps them outside the path, a folder for each version."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    path = str(found[-1]) if found else shutil.which(name)
    return path or sys.exit(f"postgres: {name} is missing; make setup-test brings it.")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
