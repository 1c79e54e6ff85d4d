"""Runs every command of the operator's guide in order, on an empty Debian.

    .venv/bin/python -m tests.trial.guide      (as root, on Debian; it needs the ports in ``PORTS``)

The commands are those of the `sh` blocks in docker/README.md. They are typed into a terminal in a root of debootstrap,
and questions are answered as they appear. ``REPLACED`` lists addresses that this machine lacks, with their
replacements. Without systemd, a stand-in starts the units as their users. ``GUIDE_ROOT`` may name a folder with an
empty Debian, which saves making one.
"""

import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.trial.deployment import ROOT

SUITE = "bookworm"
GUIDE = ROOT / "docker/README.md"
PORTS = (80, 443, 5432, 6379, 8000, 8001, 8025, 8443)
WAIT_SECONDS = 900
REPLACED = {
    "https://git.example.com/servicing-desk.git": "file:///srv/servicing-desk.git",
    "https://lender.example.com": "http://127.0.0.1:8001",
    "smtp+tls://desk:password@mail.example.com:587": "smtp://127.0.0.1:8025",
    "https://sso.example.com": "https://sso.example.com:8443",
}
SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"  # The sandbox's, which stands in for the lender.
PASSWORD = "walnut-harbor-77"
ENTER = """
set -e
mount --make-rprivate /; mount --bind "$1" "$1"; mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"
exec chroot "$1" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  DEBIAN_FRONTEND=noninteractive PS1='<<$?>>' PS2= bash --norc --noprofile --noediting -i
"""
STAND_IN = '''#!/usr/bin/python3
"""systemctl where there is no systemd: starts what a unit says, as its user. The trial of the guide puts it here."""
import configparser, os, pathlib, shlex, signal, subprocess, sys, time

verb, *names = [word for word in sys.argv[1:] if not word.startswith("-")]
for name in names:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    file = name.replace(".timer", ".service") if "." in name else f"{name}.service"
    assert unit.read(f"/etc/systemd/system/{file}"), file
    service, pid = unit["Service"], pathlib.Path(f"/run/{file}.pid")
    if verb in ("stop", "restart") and pid.exists():
        os.killpg(int(pid.read_text()), signal.SIGTERM)
        while subprocess.run(["pgrep", "--session", pid.read_text()], capture_output=True).returncode == 0:
            time.sleep(0.2)
        pid.unlink()
    if verb in ("enable", "start", "restart"):
        settings = os.environ | dict([service["Environment"].split("=", 1)] if "Environment" in service else [])
        command = ["runuser", "--user", service["User"], "--", *shlex.split(service["ExecStart"])]
        options = dict(cwd=service["WorkingDirectory"], env=settings, stdin=subprocess.DEVNULL)
        if service.get("Type") == "oneshot":
            subprocess.run(command, check=True, **options)
        else:
            log = open(f"/var/log/{file}.log", "ab")
            started = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **options)
            pid.write_text(str(started.pid))
'''


def main() -> None:
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        sys.exit("guide: needs root and debootstrap. Type: apt-get install debootstrap")
    for port in PORTS:
        require_free(port)
    commands = commands_of(GUIDE.read_text())
    for words, other in REPLACED.items():
        say(f"{words} is {other} here")
    with tempfile.TemporaryDirectory(prefix="guide-") as folder:
        root = Path(folder) / "root"
        make_root(root)
        servers = [
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
            for command in server_commands(folder)
        ]
        terminal = Terminal(root)
        try:
            for number, command in enumerate(commands, 1):
                say(f"{number}/{len(commands)} $ {command}")
                terminal.type(command)
        finally:
            terminal.close()
            for server in servers:
                server.terminate()
                server.wait()
    say(f"{len(commands)} commands of the guide succeeded")


def commands_of(text: str) -> list[str]:
    """Return the commands of the `sh` blocks, each with its continuation lines and here-document."""
    found: list[str] = []
    for block in re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        lines = iter(re.sub(r"(?m)^   ", "", block).splitlines())
        for line in lines:
            while line.endswith("\\"):
                line += "\n" + next(lines)
            if mark := re.search(r"<<'?(\w+)'?$", line):
                for more in lines:
                    line += "\n" + more
                    if more == mark[1]:
                        break
            if line.strip():
                found.append(line)
    return found


# --- The machine ---


def make_root(root: Path) -> None:
    """Make an empty Debian with this machine's package settings, the source, a certificate and the stand-in."""
    say("making an empty Debian")
    saved_root = Path(os.environ.get("GUIDE_ROOT", ""))
    if saved_root.name and saved_root.is_dir():
        call("cp", "--archive", str(saved_root), str(root))
    else:
        call("debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE, str(root))
    for path in ("/etc/pip.conf", "/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"):
        if Path(path).exists():
            shutil.copyfile(path, f"{root}{path}")
    for folder in ("sources.list.d", "apt.conf.d"):
        shutil.copytree(f"/etc/apt/{folder}", root / "etc/apt" / folder, dirs_exist_ok=True)
    (root / "etc/hosts").write_text("127.0.0.1 localhost desk.example.com sso.example.com\n")
    call("git", "clone", "--quiet", "--bare", str(ROOT), str(root / "srv/servicing-desk.git"))
    certificate = f"{root}/usr/local/share/ca-certificates/sso.crt"
    request = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=sso.example.com"
    names = ["-addext", "subjectAltName=DNS:sso.example.com"]
    call("openssl", *request.split(), *names, "-keyout", f"{root.parent}/sso.key", "-out", certificate)
    systemctl = root / "usr/local/bin/systemctl"
    systemctl.write_text(STAND_IN)
    systemctl.chmod(0o755)


def server_commands(folder: str) -> list[list[str]]:
    """Return the commands of a lending service, a mail server and an identity provider."""
    credentials = ["--client-id", "desk", "--secret", SECRET]
    sandbox = [
        "servicing.sandbox",
        *credentials,
        "--port",
        "8001",
        "--db",
        f"{folder}/sandbox.sqlite3",
        "--seed",
    ]
    mail = ["aiosmtpd", "--nosetuid", "--listen", "127.0.0.1:8025"]
    provider = ["uvicorn", "--factory", "oidc_provider_mock:app", "--interface", "wsgi", "--port", "8443"]
    provider += ["--ssl-certfile", f"{folder}/root/usr/local/share/ca-certificates/sso.crt"]
    provider += ["--ssl-keyfile", f"{folder}/sso.key", "--log-level", "warning"]
    return [[sys.executable, "-m", *words] for words in (sandbox, mail, provider)]


def require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            sys.exit(f"guide: port {port} is in use.")


class Terminal:
    """A shell in the root, into which commands are typed."""

    def __init__(self, root: Path) -> None:
        self.sql = ""
        self.owner = self.token = ""
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            enter = [
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
            ]
            os.execvp(enter[0], enter)
        self.wait()
        for command in ("stty -echo", "export SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"):
            self.type(command)

    def type(self, command: str) -> None:
        """Type a command of the guide; it must succeed."""
        for words, other in REPLACED.items():
            command = command.replace(words, other)
        os.write(self.screen, command.encode() + b"\n")
        status, shown = self.wait()
        if status:
            sys.exit(f"guide: this ended with {status}: {command}\n{shown[-4000:]}")
        self.read(shown)

    def read(self, shown: str) -> None:
        """Type the SQL and the commands that ``init`` printed, as a reader would."""
        if found := re.search(r"administrator:\s+(CREATE ROLE.*?;)\s+Next:\s+(.*)$", shown, re.DOTALL):
            self.sql = found[1]
            say("typing what init printed")
            self.type("runuser -u postgres -- psql")
            for command in found[2].strip().splitlines():
                self.type(command)

    def wait(self) -> tuple[int, str]:
        """Wait for the prompt and answer questions; return the status and the output."""
        shown, until = "", time.monotonic() + WAIT_SECONDS
        answers = self.answers()
        while not (prompt := re.search(r"<<(\d+)>>$", shown)):
            if time.monotonic() > until:
                sys.exit(f"guide: no prompt: {shown[-2000:]}")
            if not select.select([self.screen], [], [], 1)[0]:
                continue
            try:
                shown += os.read(self.screen, 65536).decode(errors="replace").replace("\r", "")
            except OSError:
                sys.exit(f"guide: the terminal is gone. {shown[-2000:]}")
            for question in [one for one in answers if re.search(one, shown)]:
                os.write(self.screen, answers.pop(question).encode() + b"\n")
        return int(prompt[1]), shown[: prompt.start()]

    def answers(self) -> dict[str, str]:
        return {
            r"Client secret that the lender issued: $": SECRET,
            r"Password: $": PASSWORD,
            r"Password \(again\): $": PASSWORD,
            r"postgres=# $": f"{self.sql}\n\\q",
        }

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


# --- Helpers ---


def call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"guide: {' '.join(command)}: {done.stdout[-1000:]}{done.stderr[-1000:]}")


def say(words: str) -> None:
    sys.stdout.write(f"guide: {words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
