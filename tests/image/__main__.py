"""Lints, builds, runs and uses the image without a container engine.

    make image-check        (as root, on Debian: it installs the tools it needs with apt-get)

Debootstrap builds the base and buildah the image. The containers run as in the compose file, with Debian's PostgreSQL,
Redis and HAProxy: two upgrades at once, then web, worker and sandbox. A servicer signs in and onboards a borrower; the
database is backed up and restored.
"""

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html import unescape
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import psycopg
import requests

from tests.image.containers import (
    ENVIRONMENT,
    PORTS,
    PROFILES,
    ROOT,
    WAIT_SECONDS,
    Containers,
    compose,
    finish,
    output,
    wait_for,
)
from tests.portal.borrowers.wizard import BUSINESS, EIN, ELENA, PRIYA, Wizard

BIN = Path(sys.executable).parent
TOOLS = ["buildah", "debootstrap", "docker-compose", "haproxy", "openssl", "redis-server"]
BASE = "localhost/servicing-desk-base:12"
IMAGES = {"desk": "localhost/servicing-desk:check", "sandbox": "localhost/servicing-desk-sandbox:check"}
PACKAGES = "ca-certificates,python3,python3-venv,python3-pip"
PASSWORD = "image-check-" + secrets.token_hex(8)
STAFF = f"""
from portal.accounts.models import User
User.objects.create_user("servicer", password={PASSWORD!r}, role="servicer")
"""


def main() -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit("image-check: it needs root on Debian, because it mounts and installs.")
    database = os.environ.get("DATABASE_URL") or sys.exit("image-check: run it under docker/postgres.py.")
    install_tools()
    lint()
    make_base()
    build()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="image-check-")))
        for name, port in PORTS.items():
            require_free(name, port)
        secret_files = make_secrets(database)
        secret_files["cache_url"] = stack.enter_context(cache(folder))
        containers = Containers(
            {target: stack.enter_context(mounted_image(image)) for target, image in IMAGES.items()},
            folder,
            secret_files,
            SERVICING_URL=f"http://127.0.0.1:{PORTS['sandbox']}",
            CSRF_TRUSTED_ORIGINS=f"https://localhost:{PORTS['https']}",
            SECOND_FACTOR_REQUIRED="none",
        )
        create_roles(folder, secret_files)
        upgrade(containers)
        with running_services(containers, folder):
            onboard(folder / "certificate.pem")
            check_health(containers)
            check_hardening(containers)
        restore_copy(containers, secret_files)
    say("passed")


# --- Preparation ---


def install_tools() -> None:
    missing = [name for name in TOOLS if not shutil.which(name)]
    if missing:
        say("installing " + " ".join(missing))
        apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
        call(*apt, "update")
        call(*apt, "install", "-y", "--no-install-recommends", *missing)


def lint() -> None:
    say("linting")
    call(str(BIN / "hadolint"), "docker/Dockerfile")
    for profiles in ([], PROFILES):
        compose(*profiles, "config", "--quiet")


def make_base() -> None:
    """Build a small Debian with its own Python, once."""
    if subprocess.run(["buildah", "inspect", BASE], env=ENVIRONMENT, capture_output=True).returncode == 0:
        return
    say("making the base")
    sources = Path("/etc/apt/sources.list.d/debian.sources").read_text()
    mirror = re.search(r"^URIs: *(\S+)", sources, re.MULTILINE)
    with tempfile.TemporaryDirectory(prefix="image-base-") as folder:
        flags = ["--variant=minbase", f"--include={PACKAGES}", "bookworm", folder]
        call("debootstrap", *flags, *([mirror[1]] if mirror else []), quiet=True)
        container = output("buildah", "from", "scratch")
        call("buildah", "add", "--quiet", container, folder, "/", quiet=True)
        call("buildah", "commit", "--quiet", container, BASE, quiet=True)
        call("buildah", "rm", container, quiet=True)


def build() -> None:
    """Build both targets of the Dockerfile; this machine's package settings are mounted, not copied."""
    say("building")
    files = [path for path in ("/etc/pip.conf", os.environ.get("SSL_CERT_FILE", "")) if Path(path).is_file()]
    mounts = [flag for path in files for flag in ("--volume", f"{path}:{path}:ro")]
    revision = output("git", "rev-parse", "HEAD")
    # Only this format has a health check.
    flags = [
        "--format",
        "docker",
        "--pull-never",
        "--layers",
        "--build-arg",
        f"BASE={BASE}",
        "--build-arg",
        f"REVISION={revision}",
    ]
    for target, image in IMAGES.items():
        wanted = ["--target", target, "--tag", image, "--file", "docker/Dockerfile", "."]
        call("buildah", "bud", "--quiet", *mounts, *flags, *wanted, quiet=True)


def require_free(name: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            sys.exit(f"image-check: port {port} ({name}) is in use.")


# --- Running containers ---


@contextmanager
def mounted_image(image: str) -> Iterator[tuple[dict[str, Any], Path]]:
    """Mount an image; yield its configuration and its files."""
    config = json.loads(output("buildah", "inspect", "--type", "image", image))["Docker"]["config"]
    container = output("buildah", "from", "--pull-never", image)
    try:
        yield config, Path(output("buildah", "mount", container))
    finally:
        call("buildah", "rm", container, quiet=True)


def make_secrets(database: str) -> dict[str, str]:
    """Return the files of ``docker/secrets``, with URLs of two roles of one database."""
    web = secrets.token_hex(16)
    host = urlsplit(database)
    return {
        "owner_database_url": database,
        "database_url": host._replace(netloc=f"desk_web:{web}@{host.hostname}:{host.port}").geturl(),
        "secret_key": secrets.token_urlsafe(64),
        "metrics_token": secrets.token_hex(16),
        "servicing_secret": secrets.token_hex(16),
    }


def create_roles(folder: Path, secret_files: dict[str, str]) -> None:
    """Create the roles as the database's container does on its first start."""
    owner, file = urlsplit(secret_files["owner_database_url"]), folder / "database_url"
    file.write_text(secret_files["database_url"])
    settings = {
        "POSTGRES_USER": owner.username,
        "POSTGRES_DB": owner.path[1:],
        "DATABASE_URL_FILE": str(file),
    }
    settings |= {"PGHOST": owner.hostname, "PGPORT": str(owner.port), "PGPASSWORD": owner.password}
    call("sh", "docker/web-role.sh", **{name: str(text) for name, text in settings.items()})


@contextmanager
def cache(folder: Path) -> Iterator[str]:
    """Debian's Redis under the name of Valkey, started by the script of the cache's container."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url, file = f"redis://:{secrets.token_hex(16)}@127.0.0.1:{port}/0", folder / "cache_url"
    file.write_text(url)
    (folder / "valkey-server").symlink_to(shutil.which("redis-server") or "")
    command = ["sh", str(ROOT / "docker/cache.sh"), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    settings = {
        "CACHE_URL_FILE": str(file),
        "TMPDIR": str(folder),
        "PATH": f"{folder}:{os.environ['PATH']}",
    }
    with debian_server([*command, "--dir", str(folder)], port, folder / "cache.log", **settings):
        yield url


@contextmanager
def proxy(folder: Path) -> Iterator[None]:
    """``docker/proxy.cfg`` with a certificate of its own."""
    certificate, key, both = (folder / f"{name}.pem" for name in ("certificate", "key", "both"))
    request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    call("openssl", *request.split(), *names, quiet=True)
    both.write_text(certificate.read_text() + key.read_text())
    settings = {
        "DESK_CERTIFICATE": str(both),
        "DESK_HOST": "localhost",
        "DESK_WEB": f"127.0.0.1:{PORTS['web']}",
    }
    command = ["haproxy", "-db", "-f", str(ROOT / "docker/proxy.cfg")]
    with debian_server(command, PORTS["https"], folder / "proxy.log", **settings):
        yield


@contextmanager
def debian_server(command: list[str], port: int, log: Path, **settings: str) -> Iterator[None]:
    """Run one of Debian's servers for the duration of the block."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=os.environ | settings, stdout=out, stderr=out)
    try:
        wait_for(port, process, log)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def upgrade(containers: Containers) -> None:
    """Run two upgrades at once, as two machines would; then create a user."""
    say("upgrading twice at once")
    both = [containers.start("upgrade", *containers.arguments("upgrade")) for _ in range(2)]
    for one in both:
        finish(one, "upgrade")
    containers.run("web", "python", "manage.py", "shell", "--verbosity", "0", "--command", STAFF)


@contextmanager
def running_services(containers: Containers, folder: Path) -> Iterator[None]:
    """Run all services and the proxy for the duration of the block."""
    with containers.running("sandbox"), containers.running("web"), containers.running("worker"):
        containers.wait_until_healthy()
        with proxy(folder):
            yield


# --- Checks ---


class Visitor:
    """A browser for ``Wizard`` that trusts one certificate."""

    origin = f"https://localhost:{PORTS['https']}"

    def __init__(self, certificate: Path) -> None:
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = str(certificate)
        self.session.headers["Referer"] = f"{self.origin}/"

    def get(self, path: str, **headers: str) -> requests.Response:
        return self.session.get(f"{self.origin}{path}", headers=headers, timeout=WAIT_SECONDS)

    def post(self, path: str, typed: dict[str, Any], **_: Any) -> requests.Response:
        token = {"csrfmiddlewaretoken": self.session.cookies["__Host-csrftoken"]}
        return self.session.post(f"{self.origin}{path}", data=typed | token, timeout=WAIT_SECONDS)


def onboard(certificate: Path) -> None:
    """Sign in and create a borrower, through the proxy."""
    say("signing in and onboarding a borrower")
    visitor = Visitor(certificate)
    plain = visitor.session.get(
        f"http://localhost:{PORTS['http']}/", allow_redirects=False, timeout=WAIT_SECONDS
    )
    assert plain.headers["Location"] == "https://localhost/" or plain.status_code == 308, plain.headers
    visitor.get("/sign-in/")
    home = visitor.post("/sign-in/", {"login": "servicer", "password": PASSWORD})
    assert home.url == f"{visitor.origin}/", home.text
    style = re.search(r'href="(/static/[^"]+[.]css)"', home.text)
    assert style
    assert visitor.get(style[1], **{"Accept-Encoding": "br"}).headers["Content-Encoding"] == "br"
    page = Wizard(cast(Any, visitor)).fill().send()
    assert re.fullmatch(rf"{visitor.origin}/borrowers/[0-9a-f-]{{36}}/", cast(Any, page).url), cast(
        Any, page
    ).url
    assert BUSINESS["first_name"] in unescape(cast(Any, page).text)
    assert visitor.get("/metrics").status_code == 404


def check_health(containers: Containers) -> None:
    """Check that `doctor` finds no problem, and that the logs have views but no personal data."""
    say("asking the doctor")
    containers.run("worker", "python", "manage.py", "verify_audit")
    words = containers.run("web", "python", "manage.py", "doctor")
    sys.stdout.write(words)
    # The sandbox writes times with abbreviations that several zones share, as the service may.
    expected = ("ok ", "warn   The zone of created_at in the messages")
    assert all(line.startswith(expected) for line in words.splitlines()), words
    text = containers.log("web").read_text()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    views = [line for line in lines if "view" in line]
    assert any(line["view"].startswith("borrowers:") for line in views)
    assert all(line["request_id"].startswith("r-") for line in views)
    text += containers.log("worker").read_text()
    people = [one[name] for one in (BUSINESS, ELENA, PRIYA) for name in ("first_name", "email", "phone")]
    assert not [word for word in (EIN, *people) if word in text]


def check_hardening(containers: Containers) -> None:
    attempt = subprocess.run(containers.command("web", "touch", "/app/x"), capture_output=True, text=True)
    assert "Read-only file system" in attempt.stderr, attempt.stderr
    assert subprocess.run(containers.command("web", "python", "-c", "import werkzeug")).returncode
    for tool in ("gcc", "make", "uv"):
        assert subprocess.run(containers.command("web", "which", tool), capture_output=True).returncode, tool


def restore_copy(containers: Containers, secret_files: dict[str, str]) -> None:
    """Back up, drop and restore with the compose file's commands; web's role sees every record again."""
    say("backing up the database, dropping it, restoring it")
    containers.run("backup", *containers.arguments("backup"))
    (copy,) = containers.backups.iterdir()
    before = borrowers(secret_files["database_url"])
    with psycopg.connect(secret_files["owner_database_url"]) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    containers.run(
        "restore", *containers.arguments("restore", f"/backups/{copy.name}", "--replace", "--while-in-use")
    )
    assert borrowers(secret_files["database_url"]) == before > 0
    assert "one unbroken chain" in containers.run("worker", "python", "manage.py", "verify_audit")


def borrowers(database: str) -> int:
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT count(*) FROM registry_borrower").fetchone()
        return int(found[0]) if found else 0


# --- Helpers ---


def call(*command: str, quiet: bool = False, **settings: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT | settings, capture_output=quiet, text=True)
    if done.returncode:
        sys.exit(
            f"image-check: {' '.join(command)} failed.\n{(done.stdout + done.stderr)[-6000:] if quiet else ''}"
        )


def say(text: str) -> None:
    sys.stdout.write(f"image-check: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
