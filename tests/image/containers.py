"""Containers of ``docker/compose.yml`` without a container engine: with the words, settings and secrets it gives them.

Hides how a process gets the image for its root, which it cannot write to, and sees no secret but its own. What differs:
all share this machine's network, listen on loopback alone, and find each other there by port.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
PORTS = {"web": 8000, "sandbox": 8001, "http": 8080, "https": 8443}
WAIT_SECONDS = 90
ENVIRONMENT = os.environ | {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
COMPOSE = ["docker-compose", "--file", "-", "--project-directory", "docker"]
PROFILES = ["--profile", "sandbox", "--profile", "tools"]
# What the platform gives a container is in its root, which is read-only.
ENTER = """
set -e
mount --bind "$1" "$1" && mkdir -p "$1/backups" && mount -o remount,ro,bind "$1"
mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/tmp" && mount -t tmpfs tmpfs "$1/run"
mkdir "$1/run/secrets" && mount --bind "$2/secrets" "$1/run/secrets"
mount --bind "$2/data" "$1/data" && mount --bind "$3" "$1/backups"
mkdir -p "$1/data/spool" && mount --bind "$4" "$1/data/spool"
root="$1"; user="$5"; shift 5
exec chroot --userspec="$user" "$root" /usr/bin/env --chdir=/app --ignore-environment "$@"
"""


class Containers:
    """The services of the compose file, each with a folder of its own for what it is given."""

    def __init__(
        self,
        images: dict[str, tuple[dict[str, Any], Path]],
        folder: Path,
        secrets: dict[str, str],
        **settings: str,
    ) -> None:
        self.images, self.folder, self.secrets, self.settings = images, folder, secrets, settings
        self.services: dict[str, Any] = yaml.safe_load(compose(*PROFILES, "config"))["services"]
        self.backups = folder / "backups"
        self.spool = folder / "spool"
        owned(self.backups)
        owned(self.spool)

    def command(self, service: str, *words: str) -> list[str]:
        """What starts a container of that service, with other words than its own where some are given."""
        image, root = self.image_of(service)
        given = settings_of(image["Env"]) | self.services[service]["environment"] | self.settings
        folders = [root, self.given(service), self.backups, self.spool]
        entered = [*map(str, folders), image["User"]]
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", *entered]
        return [*enter, *(f"{name}={text}" for name, text in given.items()), *(words or self.words(service))]

    def image_of(self, service: str) -> tuple[dict[str, Any], Path]:
        """What the image of a service says of itself, and its files."""
        return self.images[self.services[service]["build"]["target"]]

    def words(self, service: str, *more: str) -> list[str]:
        """What it runs: the image's own words where the compose file has none."""
        config = self.services[service]
        words = [*config.get("entrypoint", []), *(more or config.get("command", []))]
        words = words or self.image_of(service)[0]["Cmd"]
        return [word.replace("$$", "$").replace("0.0.0.0", "127.0.0.1") for word in words]

    def given(self, service: str) -> Path:
        """The folder with its secrets and its data."""
        place = self.folder / service
        if not place.exists():
            owned(place / "data")
            (place / "secrets").mkdir()
            for secret in self.services[service]["secrets"]:
                file = place / "secrets" / secret["source"]
                file.write_text(self.secrets[secret["source"]])
                file.chmod(0o444)
        return place

    def run(self, service: str, *words: str) -> str:
        """Until it ends, which it does well."""
        return finish(self.begin(service, *words), f"{service} {' '.join(words)}")

    def begin(self, service: str, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command(service, *words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def wait_until_healthy(self) -> None:
        """As a platform does before it lets the proxy in, by the image's own check."""
        (kind, *words), until = (
            self.image_of("web")[0]["Healthcheck"]["Test"],
            time.monotonic() + WAIT_SECONDS,
        )
        assert kind == "CMD", kind
        while subprocess.run(self.command("web", *words), capture_output=True, check=False).returncode:
            if time.monotonic() > until:
                sys.exit(f"image-check: it never became healthy.\n{self.log('web').read_text()}")

    @contextmanager
    def running(self, service: str) -> Iterator[None]:
        """A service for as long as the block lasts, from when its port opens."""
        with self.log(service).open("ab") as log:
            process = subprocess.Popen(self.command(service), stdout=log, stderr=log)
        try:
            if service in PORTS:
                wait_for(PORTS[service], process, self.log(service))
            yield
        finally:
            stop(process)

    def log(self, service: str) -> Path:
        return self.folder / f"{service}.log"


def settings_of(lines: list[str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines)


def owned(folder: Path) -> None:
    """A folder that the image's user may write to."""
    folder.mkdir(mode=0o700, parents=True)
    shutil.chown(folder, 10001, 10001)


def finish(process: "subprocess.Popen[str]", what: str) -> str:
    words, _ = process.communicate(timeout=WAIT_SECONDS)
    if process.returncode:
        sys.exit(f"image-check: {what} failed.\n{words}")
    return words


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Tell the program itself: what encloses it lets no signal through, but takes it along when it is killed."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGTERM)
    try:
        process.wait(50)
    finally:
        process.kill()


def wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while process.poll() is None and time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"image-check: port {port} never opened.\n{log.read_text()}")


def compose(*words: str) -> str:
    """What Debian's compose makes of the file; it is too old for an environment file that may be missing."""
    text = (ROOT / "docker/compose.yml").read_text()
    return output(*COMPOSE, *words, given=re.sub(r"^  env_file: .*$", "", text, flags=re.MULTILINE))


def output(*command: str, given: str | None = None) -> str:
    return subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True, input=given
    ).stdout.strip()
