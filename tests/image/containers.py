"""Runs the containers of ``docker/compose.yml`` with their commands, settings and secrets, without a container engine.

Each process has the image as its read-only root and sees only its own secrets. Unlike real containers, all of them
share this machine's network: they listen on loopback and find each other by port.
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
# The platform's mounts are inside the container's root, which is read-only.
ENTER = """
set -e
mount --bind "$1" "$1" && mkdir -p "$1/backups" && mount -o remount,ro,bind "$1"
mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/tmp" && mount -t tmpfs tmpfs "$1/run"
mkdir "$1/run/secrets" && mount --bind "$2/secrets" "$1/run/secrets"
mount --bind "$2/data" "$1/data" && mount --bind "$3" "$1/backups"
root="$1"; user="$4"; shift 4
exec chroot --userspec="$user" "$root" /usr/bin/env --chdir=/app --ignore-environment "$@"
"""


class Containers:
    """The services of the compose file, each with a folder for its secrets and data."""

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
        make_data_folder(self.backups)

    def command(self, service: str, *words: str) -> list[str]:
        """Return the command that starts a container, running these words or else its own."""
        image, root = self.image_of(service)
        settings = settings_of(image["Env"]) | self.services[service]["environment"] | self.settings
        folders = [root, self.service_folder(service), self.backups]
        options = [*map(str, folders), image["User"]]
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", *options]
        return [
            *enter,
            *(f"{name}={text}" for name, text in settings.items()),
            *(words or self.arguments(service)),
        ]

    def image_of(self, service: str) -> tuple[dict[str, Any], Path]:
        """Return the configuration and the files of a service's image."""
        return self.images[self.services[service]["build"]["target"]]

    def arguments(self, service: str, *more: str) -> list[str]:
        """Return what a service runs: the command of the compose file, or else of the image."""
        config = self.services[service]
        words = [*config.get("entrypoint", []), *(more or config.get("command", []))]
        words = words or self.image_of(service)[0]["Cmd"]
        return [word.replace("$$", "$").replace("0.0.0.0", "127.0.0.1") for word in words]

    def service_folder(self, service: str) -> Path:
        """Return the folder with the secrets and data of a service, made on first use."""
        path = self.folder / service
        if not path.exists():
            make_data_folder(path / "data")
            (path / "secrets").mkdir()
            for secret in self.services[service]["secrets"]:
                file = path / "secrets" / secret["source"]
                file.write_text(self.secrets[secret["source"]])
                file.chmod(0o444)
        return path

    def run(self, service: str, *words: str) -> str:
        """Run a container until it ends; it must succeed. Return its output."""
        return finish(self.start(service, *words), f"{service} {' '.join(words)}")

    def start(self, service: str, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command(service, *words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def wait_until_healthy(self) -> None:
        """Wait until the health check of the image succeeds, as a platform does."""
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
        """Run a service for the duration of the block, which starts when its port is open."""
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


def make_data_folder(folder: Path) -> None:
    """Make a folder that the image's user may write to."""
    folder.mkdir(mode=0o700, parents=True)
    shutil.chown(folder, 10001, 10001)


def finish(process: "subprocess.Popen[str]", what: str) -> str:
    words, _ = process.communicate(timeout=WAIT_SECONDS)
    if process.returncode:
        sys.exit(f"image-check: {what} failed.\n{words}")
    return words


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop the program itself: ``unshare`` passes on no signal, but kills the program when it is killed."""
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
    """Run Debian's compose on the file, without ``env_file``: it is too old for one that may be missing."""
    text = (ROOT / "docker/compose.yml").read_text()
    return output(*COMPOSE, *words, stdin_text=re.sub(r"^  env_file: .*$", "", text, flags=re.MULTILINE))


def output(*command: str, stdin_text: str | None = None) -> str:
    return subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True, input=stdin_text
    ).stdout.strip()
