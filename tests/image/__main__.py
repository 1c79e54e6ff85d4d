"""Proves the image without a container engine: lints it, builds it, starts it, and does a day's first work with it.

    make image-check        (as root, on Debian: it installs the tools it needs with apt-get)

The base is made by debootstrap, the image by buildah. It runs as the user it names, on a root file system that cannot
be written to, behind its own proxy, and somebody signs in and onboards a borrower against the sandbox.
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
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html import unescape
from pathlib import Path
from typing import Any, cast

import requests

from tests.portal.borrowers.wizard import BUSINESS, Wizard

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
TOOLS = ["buildah", "debootstrap", "docker-compose", "haproxy", "openssl"]
BASE, IMAGE = "localhost/servicing-desk-base:12", "localhost/servicing-desk:check"
PACKAGES = "ca-certificates,python3,python3-venv,python3-pip"
PORTS = {"web": 8000, "sandbox": 8001, "http": 8080, "https": 8443}
PASSWORD = "image-check-" + secrets.token_hex(8)
PATIENCE = 90
ENVIRONMENT = os.environ | {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}


def main() -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit("image-check: it needs root on Debian, for it mounts and installs.")
    install_tools()
    lint()
    make_base()
    build()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="image-check-")))
        for name, port in PORTS.items():
            require_free(name, port)
        root = stack.enter_context(mounted())
        inside = Inside(root, folder, secrets_in(folder))
        inside.run("python", "manage.py", "upgrade", "--verbosity", "0")
        inside.run("python", "manage.py", "shell", "--verbosity", "0", "--command", STAFF)
        stack.enter_context(
            inside.server("sandbox", "python", "-m", "servicing.sandbox", "--db", "/data/sandbox.sqlite3")
        )
        web = ["gunicorn", "--config", "python:portal.serving", "--bind", "127.0.0.1:8000", "portal.wsgi"]
        stack.enter_context(inside.server("web", *web))
        stack.enter_context(inside.worker())
        inside.wait_until_healthy()
        stack.enter_context(proxy(folder))
        onboard(folder / "certificate.pem")
        look_after(inside, folder)
        refuse_writing(inside)
    say("all is well")


# --- Before anything runs ---


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
    for profile in ([], ["--profile", "sandbox", "--profile", "tools"]):
        call("docker-compose", "--file", "docker/compose.yml", *profile, "config", "--quiet")


def make_base() -> None:
    """A small Debian with its own Python; made once."""
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
    """Every step of the Dockerfile; this machine's package settings are lent to it, and do not enter the image."""
    say("building")
    told = [path for path in ("/etc/pip.conf", os.environ.get("SSL_CERT_FILE", "")) if Path(path).is_file()]
    mounts = [flag for path in told for flag in ("--volume", f"{path}:{path}:ro")]
    revision = output("git", "rev-parse", "HEAD")
    flags = ["--pull-never", "--layers", "--build-arg", f"BASE={BASE}", "--build-arg", f"REVISION={revision}"]
    call(
        "buildah",
        "bud",
        "--quiet",
        *mounts,
        *flags,
        "--tag",
        IMAGE,
        "--file",
        "docker/Dockerfile",
        ".",
        quiet=True,
    )


def require_free(name: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            sys.exit(f"image-check: port {port} ({name}) is in use.")


# --- The image at work ---


@contextmanager
def mounted() -> Iterator[Path]:
    """The image's files."""
    container = output("buildah", "from", "--pull-never", IMAGE)
    try:
        yield Path(output("buildah", "mount", container))
    finally:
        call("buildah", "rm", container, quiet=True)


def secrets_in(folder: Path) -> dict[str, str]:
    """Settings as ``docker/compose.yml`` gives them, secrets as files; the database is SQLite's."""
    kept = folder / "secrets"
    kept.mkdir()
    shared = secrets.token_hex(16)
    texts = {
        "SECRET_KEY": secrets.token_urlsafe(64),
        "SERVICING_SECRET": shared,
        "METRICS_TOKEN": shared[::-1],
    }
    for name, text in texts.items():
        (kept / name).write_text(text)
        (kept / name).chmod(0o444)
    files = {f"{name}_FILE": f"/run/secrets/{name}" for name in texts}
    return files | {
        "ALLOWED_HOSTS": "localhost",
        "CSRF_TRUSTED_ORIGINS": "https://localhost:8443",
        "BEHIND_TLS_PROXY": "on",
        "SECOND_FACTOR_REQUIRED": "none",
        "SERVICING_URL": f"http://127.0.0.1:{PORTS['sandbox']}",
        "SERVICING_ENVIRONMENT": "sandbox",
        "SERVICING_CLIENT_ID": "sandbox-client",
        "SANDBOX_SECRET": shared,
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "INFO",
    }


STAFF = f"""
from portal.accounts.models import User
User.objects.create_user("servicer", password={PASSWORD!r}, role="servicer")
"""
# The root cannot be written to; what the platform gives a container stands in it.
ENTER = """
set -e
mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"
mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/tmp" && mount -t tmpfs tmpfs "$1/run"
mkdir "$1/run/secrets" && mount --bind "$2/secrets" "$1/run/secrets" && mount --bind "$2/data" "$1/data"
root="$1"; shift 2
exec chroot --userspec=10001:10001 "$root" /usr/bin/env --chdir=/app --ignore-environment "$@"
"""


class Inside:
    """The image's own programs, started as a platform would."""

    def __init__(self, root: Path, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        (folder / "data").mkdir(mode=0o700)
        shutil.chown(folder / "data", 10001, 10001)
        image = output(
            "buildah",
            "inspect",
            "--type",
            "image",
            "--format",
            "{{range .OCIv1.Config.Env}}{{.}}\n{{end}}",
            IMAGE,
        )
        self.words = [*image.split("\n"), *(f"{name}={text}" for name, text in settings.items())]
        self.enter = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            ENTER,
            "sh",
            str(root),
            str(folder),
        ]

    def command(self, *words: str) -> list[str]:
        return [*self.enter, *self.words, *words]

    def run(self, *words: str) -> str:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            sys.exit(f"image-check: {' '.join(words)} failed.\n{done.stdout}{done.stderr}")
        return done.stdout

    def wait_until_healthy(self) -> None:
        """As a platform does before it lets the proxy in: a port opens before there is anybody to answer."""
        until = time.monotonic() + PATIENCE
        while subprocess.run(
            self.command("python", "docker/health.py"), capture_output=True, check=False
        ).returncode:
            if time.monotonic() > until:
                sys.exit(f"image-check: it never became healthy.\n{(self.folder / 'web.log').read_text()}")

    @contextmanager
    def server(self, name: str, *words: str) -> Iterator[None]:
        with self.started(name, *words) as process:
            wait_for(PORTS[name], process, self.folder / f"{name}.log")
            yield

    @contextmanager
    def worker(self) -> Iterator[None]:
        with self.started("worker", "python", "manage.py", "work"):
            yield

    @contextmanager
    def started(self, name: str, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(self.command(*words), stdout=log, stderr=log)
        try:
            yield process
        finally:
            stop(process)


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Tell the program itself: what encloses it lets no signal through, but takes it along when it is killed."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGTERM)
    try:
        process.wait(50)
    finally:
        process.kill()


@contextmanager
def proxy(folder: Path) -> Iterator[None]:
    """``docker/proxy.cfg`` with a certificate of its own."""
    certificate, key, both = (folder / f"{name}.pem" for name in ("certificate", "key", "both"))
    request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    call("openssl", *request.split(), *names, quiet=True)
    both.write_text(certificate.read_text() + key.read_text())
    told = {"DESK_CERTIFICATE": str(both), "DESK_HOST": "localhost", "DESK_WEB": f"127.0.0.1:{PORTS['web']}"}
    with (folder / "proxy.log").open("wb") as log:
        command = ["haproxy", "-db", "-f", str(ROOT / "docker/proxy.cfg")]
        process = subprocess.Popen(command, env=os.environ | told, stdout=log, stderr=log)
    try:
        wait_for(PORTS["https"], process, folder / "proxy.log")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


# --- What a person does with it ---


class Visitor:
    """A browser, as the tests' own walk through onboarding uses one, that trusts one certificate."""

    origin = f"https://localhost:{PORTS['https']}"

    def __init__(self, certificate: Path) -> None:
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = str(certificate)
        self.session.headers["Referer"] = f"{self.origin}/"

    def get(self, path: str, **headers: str) -> requests.Response:
        return self.session.get(f"{self.origin}{path}", headers=headers, timeout=PATIENCE)

    def post(self, path: str, typed: dict[str, Any], **_: Any) -> requests.Response:
        token = {"csrfmiddlewaretoken": self.session.cookies["__Host-csrftoken"]}
        return self.session.post(f"{self.origin}{path}", data=typed | token, timeout=PATIENCE)


def onboard(certificate: Path) -> None:
    """Sign in and create a borrower, through the proxy."""
    say("signing in and onboarding a borrower")
    visitor = Visitor(certificate)
    plain = visitor.session.get(f"http://localhost:{PORTS['http']}/", allow_redirects=False, timeout=PATIENCE)
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


def look_after(inside: Inside, folder: Path) -> None:
    """What an operator does."""
    say("asking the doctor, copying the database")
    inside.run("python", "manage.py", "verify_audit")
    sys.stdout.write(inside.run("python", "manage.py", "doctor"))
    inside.run("python", "manage.py", "backup", "/data/copy")
    lines = [json.loads(line) for line in (folder / "web.log").read_text().splitlines() if line[:1] == "{"]
    told = [line for line in lines if line.get("view", "").startswith("borrowers:")]
    assert told
    assert all(line["request_id"].startswith("r-") for line in told)


def refuse_writing(inside: Inside) -> None:
    tried = subprocess.run(inside.command("touch", "/app/x"), capture_output=True, text=True, check=False)
    assert "Read-only file system" in tried.stderr, tried.stderr
    for tool in ("gcc", "make", "uv"):
        assert subprocess.run(inside.command("which", tool), capture_output=True, check=False).returncode, (
            tool
        )


# --- Small things ---


def wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"image-check: port {port} never opened.\n{log.read_text()}")


def call(*command: str, quiet: bool = False) -> None:
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=quiet, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"image-check: {' '.join(command)} failed.\n{(done.stdout + done.stderr)[-6000:] if quiet else ''}"
        )


def output(*command: str) -> str:
    return subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def say(text: str) -> None:
    sys.stdout.write(f"image-check: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
