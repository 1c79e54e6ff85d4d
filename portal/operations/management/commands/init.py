"""Writes the settings file of a new deployment, with new keys, and says what to type next."""

import os
import re
import secrets
import subprocess
import sys
from argparse import ArgumentParser
from getpass import getpass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from portal.core.environment import HOST

QUESTIONS = {
    "host": "Host name of the portal, such as desk.example.com",
    "service": "URL of the lending service, such as https://lender.example (http:// only for a sandbox)",
    "client_id": "Client ID that the lender issued (empty if it issued none)",
    "database": "PostgreSQL, such as postgres://db.example:5432/desk (empty: SQLite on this machine)",
}


class Command(BaseCommand):
    """``manage.py init``: asks for what no flag gives."""

    help = "Write .env for a new deployment. Asks for anything not given as a flag."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the answers and the path of the file."""
        for name, words in QUESTIONS.items():
            parser.add_argument(f"--{name.replace('_', '-')}", help=words)
        parser.add_argument("--secret-file", type=Path, help="file with the client secret (default: asks)")
        parser.add_argument(
            "--setting",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="another setting, such as SERVICING_AUTH=header or SERVICING_TOKEN_FILE=/run/secrets/token",
        )
        parser.add_argument("--data-dir", type=Path, default=Path("/var/lib/servicing-desk"))
        parser.add_argument("--file", type=Path, default=settings.BASE_DIR / ".env")

    def handle(self, *args: Any, file: Path, data_dir: Path, **given: Any) -> None:
        if file.exists():
            raise CommandError(f"{file} already exists. Move it to start over.")
        answers, secret = ask(given)
        name, place = parse_database(answers["database"])
        owner_password, web_password = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        values = {
            "SECRET_KEY": secrets.token_urlsafe(64),
            "ALLOWED_HOSTS": f"{answers['host']},127.0.0.1",  # Monitoring calls the web process directly.
            "CSRF_TRUSTED_ORIGINS": f"https://{answers['host']}",
            "BEHIND_TLS_PROXY": "on",
            "DATA_DIR": str(data_dir),
            "SERVICING_URL": answers["service"],
            "SERVICING_CLIENT_ID": answers["client_id"],
            "SERVICING_SECRET_FILE" if given["secret_file"] else "SERVICING_SECRET": secret,
            "METRICS_TOKEN": secrets.token_urlsafe(32),
        }
        if not all(re.match(r"[A-Z_]+=", pair) for pair in given["setting"]):
            raise CommandError("--setting must be NAME=VALUE, such as SERVICING_AUTH=header.")
        values |= dict(pair.partition("=")[::2] for pair in given["setting"])
        if answers["service"].startswith("http://"):
            values["SERVICING_ENVIRONMENT"] = "sandbox"  # A live service requires TLS.
        if name:
            values["DATABASE_URL"] = f"postgres://{name}_web:{web_password}@{place}"
        if any("'" in value or "\n" in value for value in values.values()):
            raise CommandError("An answer contains a quote. Use --secret-file for the client secret.")
        check(values)
        write_file(file, values, data_dir)
        self.stdout.write(f"Written: {file}. Data folder: {data_dir}.")
        upgrade = ".venv/bin/python manage.py upgrade"
        if name:
            owner_url = f"postgres://{name}:{owner_password}@{place}"
            self.stdout.write(
                "Run as PostgreSQL’s administrator:\n\n"
                f"CREATE ROLE {name} LOGIN CREATEDB PASSWORD '{owner_password}';\n"
                f"CREATE ROLE {name}_web LOGIN PASSWORD '{web_password}';\n"
                f"CREATE DATABASE {name} OWNER {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8';\n"
            )
            upgrade = (
                f"export OWNER_DATABASE_URL='{owner_url}'\n"
                'DATABASE_URL="$OWNER_DATABASE_URL" .venv/bin/python manage.py upgrade\n'
                f'psql "$OWNER_DATABASE_URL" -v web={name}_web -f docker/audit-roles.sql'
            )
        self.stdout.write(f"Next:\n\n{upgrade}")


def ask(given: dict[str, Any]) -> tuple[dict[str, str], str]:
    """Collect the answers from flags or the terminal, including the client secret or its file."""
    try:
        answers = {
            name: (given[name] if given[name] is not None else input(f"{words}: ")).strip()
            for name, words in QUESTIONS.items()
        }
        file = given["secret_file"]
        secret = str(file.resolve()) if file else getpass("Client secret that the lender issued: ")
    except EOFError:
        raise CommandError("Some answers are missing. Give every flag: manage.py init --help") from None
    if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", answers["host"]):
        raise CommandError("Enter a host name without scheme, port or path, such as desk.example.com.")
    return answers, secret


def parse_database(url: str) -> tuple[str, str]:
    """The name of the database, and its host, port and name together; both empty for SQLite."""
    database = re.fullmatch(rf"postgres(?:ql)?://({HOST})/([a-z_][a-z\d_]*)", url)
    if url and not database:
        raise CommandError(
            "Enter a database such as postgres://db.example:5432/desk: no user, the name in lower case."
        )
    return (database[2], f"{database[1]}/{database[2]}") if database else ("", "")


def check(values: dict[str, str]) -> None:
    """Validate the settings as the portal will, without opening a database."""
    given = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    given |= {"ENV_FILE": os.devnull, "DATABASE_URL": "postgres://localhost/desk"} | values
    command = [sys.executable, "-c", "import portal.settings"]
    done = subprocess.run(
        command, env=given, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CommandError(done.stderr.strip())


def write_file(file: Path, values: dict[str, str], data_dir: Path) -> None:
    """Write the settings readable only by their owner, and create the data folder."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as written:
            written.writelines(f"{key}='{value}'\n" for key, value in values.items())
    except OSError as problem:
        raise CommandError(f"{problem.filename} can’t be created: {problem.strerror}.") from None
