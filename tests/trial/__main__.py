"""Signs people in, kills processes under load, and loses and restores the database of a whole deployment.

    python3 docker/postgres.py -- .venv/bin/python -m tests.trial

Two web processes run behind a proxy with the settings of ``docker/proxy.cfg``, and two workers, all on one PostgreSQL
and one Redis. The servers are Debian's, on loopback: ``haproxy``, and ``redis-server`` because Debian 12 lacks Valkey.
The mail server and the identity provider use TLS with a self-signed certificate.
"""

import os
import queue
import re
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import requests
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from tests.trial.deployment import (
    DEPLOYED,
    GUNICORN,
    HOST,
    PASSWORD,
    ROOT,
    TrustingSession,
    certificate,
    environment,
    free_port,
    process,
    signed_in_session,
)

PAGES = ("/", "/borrowers/", "/loans/", "/search/?q=an")
PEOPLE = 4
BORROWERS, LINES = 500, 10_000
KILLS = 3
"""How often a web process and the workers are killed."""
RUNNING = "SELECT id FROM jobs_job WHERE name = 'lookup.import_file' AND state = 'running' AND done > 0"
WAIT_SECONDS = 180


def main() -> None:
    require("redis-server", "haproxy", "pg_dump", "openssl")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trial-")))
        others = OtherServers(stack, folder)
        deployment = Deployment(stack, folder, others.mail)
        address = stack.enter_context(proxy(folder, deployment))
        wait_until(
            "the proxy finds both processes", lambda: all(map(is_ready, [address, *deployment.addresses]))
        )
        session = signed_in_session(address)
        check_shared_session(session, deployment)
        reset_password(address, deployment, others)
        sign_in_with_the_provider(deployment, others)
        for number in range(KILLS):
            kill_processes(session, address, deployment, number)
        verify_trail(deployment)
        deployment.stop()
        lose_and_restore(deployment, folder / "copy")
    say("all is well")


# --- Processes ---


class Process:
    """A process of the portal, which is killed with its children."""

    def __init__(self, *command: str, **settings: str) -> None:
        self.command, self.settings = command, settings
        self.start()

    def start(self) -> None:
        self.running = subprocess.Popen(self.command, env=self.settings, cwd=ROOT, start_new_session=True)

    def kill(self) -> tuple[float, float]:
        """Kill it without a signal handler, as a power loss would; return when that started and when it was done."""
        began = time.monotonic()
        os.killpg(self.running.pid, signal.SIGKILL)
        self.running.wait()
        return began, time.monotonic()

    def stop(self) -> None:
        """Stop it as a platform does; it must exit cleanly."""
        if self.running.poll() is None:
            self.running.terminate()
            must(self.running.wait(60) in (0, -signal.SIGTERM), "a stopped process exits cleanly")


class Deployment:
    """A cache, a lending service, a database with invented records, and the web processes and workers."""

    def __init__(self, stack: ExitStack, folder: Path, mail: dict[str, str]) -> None:
        server = os.environ.get("DATABASE_URL") or sys.exit("trial: run it under docker/postgres.py.")
        self.database = urlsplit(server)._replace(path="/trial").geturl()
        self.create_database()
        redis, service = free_port(), free_port()
        self.settings = environment(folder, service) | {
            "DATABASE_URL": self.database,
            "CACHE_URL": f"redis://{HOST}:{redis}/0",
            "JOB_LEASE_SECONDS": "6",
            "REFRESH_MINUTES": "0",  # The service lacks the invented records.
            "LOG_LEVEL": "ERROR",
            "WEB_CONCURRENCY": "1",
        }
        cache = ["redis-server", "--port", str(redis), "--bind", HOST, "--save", "", "--loglevel", "warning"]
        sandbox = [sys.executable, "-m", "servicing.sandbox", "--port", str(service), "--seed"]
        stack.enter_context(process([*cache, "--dir", str(folder)], self.settings, redis))
        stack.enter_context(
            process([*sandbox, "--db", str(folder / "sandbox.sqlite3")], self.settings, service)
        )
        self.prepare()
        self.settings |= DEPLOYED | {
            "SECRET_KEY": secrets.token_urlsafe(64),
            "ALLOWED_HOSTS": f"{HOST},localhost",
            **mail,
        }
        self.ports = [free_port(), free_port()]
        self.webs = [
            Process(*(word.format(port) for word in GUNICORN), **self.settings) for port in self.ports
        ]
        self.workers = [Process(*MANAGE, "work", **self.settings) for _ in range(2)]
        stack.callback(self.stop)

    @property
    def addresses(self) -> list[str]:
        return [f"http://{HOST}:{port}" for port in self.ports]

    def prepare(self) -> None:
        """Run two upgrades at once, as two machines would; then add staff and records."""
        upgrades = [Process(*MANAGE, "upgrade", "-v0", **self.settings) for _ in range(2)]
        must(all(one.running.wait(WAIT_SECONDS) == 0 for one in upgrades), "two upgrades at once succeed")
        self.manage("demo_staff")
        self.run(sys.executable, "-m", "tests.bench.generate", "--borrowers", str(BORROWERS))
        self.manage("collectstatic", "--noinput", "-v0", **DEPLOYED)

    def manage(self, *words: str, **settings: str) -> str:
        return self.run(*MANAGE, *words, **settings)

    def run(self, *command: str, **settings: str) -> str:
        done = subprocess.run(command, env=self.settings | settings, cwd=ROOT, capture_output=True, text=True)
        must(done.returncode == 0, f"{' '.join(command)} succeeds: {done.stdout[-500:]}{done.stderr[-500:]}")
        return done.stdout

    def create_database(self) -> None:
        """Create an empty database; drop the old one and its connections."""
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS trial WITH (FORCE)")
            connection.execute("CREATE DATABASE trial")

    def fetch_row(self, query: str, *values: object) -> tuple[object, ...]:
        """Return the first row of a query, or an empty one."""
        with psycopg.connect(self.database) as connection:
            return connection.execute(query.encode(), values).fetchone() or ()

    def stop(self) -> None:
        for one in (*self.webs, *self.workers):
            one.stop()


MANAGE = (sys.executable, "manage.py")


class OtherServers:
    """A mail server that requires STARTTLS and a password, and an identity provider with TLS."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.certificate, self.received = str(certificate(folder)), queue.Queue[str]()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate)
        wanted: dict[str, Any] = {
            "require_starttls": True,
            "auth_required": True,
            "authenticator": self.authenticate,
        }
        port = free_port()
        server = Controller(self, hostname=HOST, port=port, tls_context=context, **wanted)
        server.start()
        stack.callback(server.stop)
        self.mail = {
            "EMAIL_URL": f"smtp+tls://desk:{PASSWORD}@{HOST}:{port}",
            "MAIL_FROM": "desk@desk.example",
            "SSL_CERT_FILE": self.certificate,
        }
        port = free_port()
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "--factory",
            "oidc_provider_mock:app",
            "--interface",
            "wsgi",
        ]
        command += [
            "--port",
            str(port),
            "--ssl-certfile",
            self.certificate,
            "--ssl-keyfile",
            self.certificate,
        ]
        stack.enter_context(process([*command, "--log-level", "warning"], dict(os.environ), port))
        self.provider = f"https://{HOST}:{port}"
        self.single_sign_on = {
            "OIDC_URL": self.provider,
            "OIDC_CLIENT_ID": "desk",
            "OIDC_CLIENT_SECRET": PASSWORD,
            "OIDC_ROLES": "Loan Servicing=supervisor",
            "OIDC_CREATE": "on",
            "REQUESTS_CA_BUNDLE": self.certificate,
        }

    @staticmethod
    def authenticate(_: Any, __: Any, ___: Any, mechanism: str, given: Any) -> AuthResult:
        return AuthResult(success=given.password == PASSWORD.encode(), handled=False)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.received.put(envelope.content.decode())
        return "250 OK"


@contextmanager
def proxy(folder: Path, deployment: Deployment) -> Iterator[str]:
    """Run the product's proxy, but with plain HTTP and with the ports of both processes."""
    text = (ROOT / "docker/proxy.cfg").read_text()
    defaults = text[text.index("defaults") : text.index("# Names of web processes")]
    checks = re.findall(
        r"^    (?:balance|option httpchk|http-check|http-request disable-l7-retry) ?.*$", text, re.MULTILINE
    )
    servers = [
        f"    server web-{port} {HOST}:{port} check inter 500 fall 1 rise 1" for port in deployment.ports
    ]
    port, file = free_port(), folder / "proxy.cfg"
    front = ["frontend outside", f"    bind {HOST}:{port}", "    default_backend web", "backend web"]
    file.write_text("\n".join([defaults, *front, *checks, *servers, ""]))
    with process(["haproxy", "-db", "-f", str(file)], deployment.settings | {"DESK_HOST": "localhost"}, port):
        yield f"http://{HOST}:{port}"


# --- Checks ---


def check_shared_session(session: requests.Session, deployment: Deployment) -> None:
    """Check that each process accepts a session that began behind the proxy."""
    for address in deployment.addresses * 2:
        page = session.get(f"{address}/borrowers/", timeout=30, allow_redirects=False)
        must(page.status_code == 200, f"the session is known at {address}")
    say("a session moves between the processes unnoticed")


def reset_password(address: str, deployment: Deployment, others: OtherServers) -> None:
    """Replace a forgotten password with the link that a worker mails."""
    deployment.fetch_row(
        "UPDATE accounts_user SET email = 'viewer@desk.example' WHERE username = 'viewer' RETURNING id"
    )
    session = new_session()
    send_form(session, f"{address}/sign-in/password/", {"email": "viewer@desk.example"})
    try:
        text = others.received.get(timeout=WAIT_SECONDS)
    except queue.Empty:
        sys.exit("trial: no mail came.")
    link = re.search(r"https://[^/]+(/sign-in/\S+)", text)
    must(link, f"the mail has a link: {text}")
    new = secrets.token_urlsafe(16)
    send_form(session, f"{address}{link[1] if link else ''}", {"new_password1": new, "new_password2": new})
    answer = send_form(session, f"{address}/sign-in/", {"login": "viewer", "password": new})
    must(answer.headers.get("Location") == "/", f"the new password signs in: {answer.status_code}")
    say("a forgotten password was replaced with a link from a mail server with STARTTLS and a password")


def sign_in_with_the_provider(deployment: Deployment, others: OtherServers) -> None:
    """Sign in a new person, who gets the role of a group; `doctor` must accept both servers."""
    claims = {"email": "maya@desk.example", "email_verified": True, "groups": ["Loan Servicing"]}
    user = f"{others.provider}/users/maya"
    requests.put(user, json=claims, verify=others.certificate, timeout=10).raise_for_status()
    settings, port = deployment.settings | others.single_sign_on, free_port()
    address, session = f"http://{HOST}:{port}", new_session()
    with process([word.format(port) for word in GUNICORN], settings, port):
        page = f"{address}/sign-in/with/sso/"
        asked = send_form(session, page, {"next": "/loans/"}, form=f"{address}/sign-in/").headers["Location"]
        must(asked.startswith(others.provider), f"the provider is asked: {asked}")
        signed = requests.post(
            asked, data={"sub": "maya"}, verify=others.certificate, allow_redirects=False, timeout=10
        )
        back = urlsplit(signed.headers["Location"])
        session.get(f"{address}{back.path}?{back.query}", allow_redirects=False, timeout=30)
        must(
            session.get(f"{address}/admin/audit/entry/", timeout=30, allow_redirects=False).status_code
            == 200,
            "a supervisor is in",
        )
    role = deployment.fetch_row("SELECT role FROM accounts_user WHERE email = 'maya@desk.example'")
    must(role == ("supervisor",), f"the group gives the role: {role}")
    # Its exit status is ignored, because it also reports what one machine lacks.
    output = subprocess.run(
        [*MANAGE, "doctor"], env=settings, cwd=ROOT, capture_output=True, text=True
    ).stdout
    for words in (
        "The mail server responds and accepts these",
        f"The identity provider at {others.provider} responds",
    ):
        must(f"ok     {words}" in output, f"{words}: {output}")
    say("a new person signed in with the identity provider and has the role of a group")


def new_session() -> requests.Session:
    """Return a browser that is not signed in."""
    session = TrustingSession()
    session.trust_env = False
    return session


def send_form(
    session: requests.Session, address: str, typed: dict[str, str], form: str = ""
) -> requests.Response:
    """Open the page of a form and send it."""
    page = session.get(form or address, timeout=30)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    must(token, f"{page.url} has a form: {page.status_code}")
    fields = typed | {"csrfmiddlewaretoken": token[1] if token else ""}
    headers = {"Referer": page.url}
    return session.post(address, data=fields, headers=headers, timeout=30, allow_redirects=False)


class Load:
    """People who open pages all the time, with the number of requests and the failed ones."""

    def __init__(self, address: str, cookies: str) -> None:
        self.address, self.cookies = address, cookies
        self.asked, self.failed = 0, list[tuple[float, float, str]]()
        self.is_over = threading.Event()
        self.people = [threading.Thread(target=self.browse, daemon=True) for _ in range(PEOPLE)]

    def __enter__(self) -> "Load":
        for one in self.people:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        for one in self.people:
            one.join(60)

    def browse(self) -> None:
        with requests.Session() as session:
            session.trust_env = False
            session.headers["Cookie"] = self.cookies
            while not self.is_over.is_set():
                for page in PAGES:
                    self.open_page(session, page)

    def open_page(self, session: requests.Session, page: str) -> None:
        began, problem = time.monotonic(), ""
        try:
            answer = session.get(self.address + page, timeout=30, allow_redirects=False)
            if answer.status_code != 200:
                problem = f"{page} answered {answer.status_code}"
        except requests.RequestException as error:
            problem = f"{page}: {type(error).__name__}"
        self.asked += 1
        if problem:
            self.failed.append((began, time.monotonic(), problem))

    def beyond(self, deaths: list[tuple[float, float]]) -> list[str]:
        """Return the requests that failed although no process died during them."""
        return [
            f"{words}, begun {began - deaths[-1][1]:+.3f} s after the last death, {ended - began:.3f} s long"
            for began, ended, words in self.failed
            if not any(began <= end and start <= ended for start, end in deaths)
        ]


def kill_processes(session: requests.Session, address: str, deployment: Deployment, number: int) -> None:
    """Kill the workers and a web process while people open pages and a file is imported; then start them again."""
    cookies = "; ".join(f"{each.name}={each.value}" for each in session.cookies)
    with Load(address, cookies) as load:
        import_file(address, deployment, number)
        wait_until("a worker is in the middle of it", lambda: deployment.fetch_row(RUNNING))
        dying = [*deployment.workers, deployment.webs[number % 2]]
        deaths = [one.kill() for one in deployment.workers]
        time.sleep(2)
        deaths.append(dying[-1].kill())
        time.sleep(4)
        for one in dying:
            one.start()
        wait_until("the import ends whole", lambda: is_import_done(deployment, number))
        wait_until("the web process is back", lambda: all(map(is_ready, deployment.addresses)))
    must(load.asked > 50, f"people could turn pages: {load.asked}")
    must(not load.beyond(deaths), f"no other request failed: {load.beyond(deaths)[:5]}")
    say(
        f"{load.asked} pages while workers and a web process died, {len(load.failed)} lost; the import went on"
    )


def import_file(address: str, deployment: Deployment, number: int) -> None:
    """Import a large file as a supervisor."""
    session = signed_in_session(address, "supervisor")
    page = session.get(f"{address}/registry/import/", timeout=30)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    must(token, "the form has a token")
    (owners,) = deployment.fetch_row("SELECT array_agg(uuid) FROM registry_borrower")
    assert isinstance(owners, list)
    lines = "".join(f"loan,trial-{number}-{line},{owners[line % BORROWERS]},\n" for line in range(LINES))
    today = re.search(r'name="exported_on" value="([\d-]+)"', page.text)
    form = {"csrfmiddlewaretoken": token[1] if token else "", "exported_on": today[1] if today else ""}
    answer = session.post(
        page.url,
        data=form,
        files={"ids": ("ids.csv", f"kind,uuid,borrower_uuid,label\n{lines}")},
        headers={"Referer": page.url},
        allow_redirects=False,
        timeout=60,
    )
    must(answer.status_code == 303, f"the import begins: {answer.status_code}")


def is_import_done(deployment: Deployment, number: int) -> bool:
    """Return whether every line is imported and the job succeeded after more than one attempt."""
    loans = "SELECT count(*) FROM registry_record WHERE kind = 'loan' AND uuid LIKE %s"
    (count,) = deployment.fetch_row(loans, f"trial-{number}-%")
    jobs = (
        "SELECT count(*) FROM jobs_job WHERE name = 'lookup.import_file' AND state = 'done' AND attempts > 1"
    )
    return (count, *deployment.fetch_row(jobs)) == (LINES, number + 1)


def verify_trail(deployment: Deployment) -> int:
    """Check that the audit trail is one unbroken chain; return the number of its entries."""
    words = deployment.manage("verify_audit")
    must("one unbroken chain" in words, f"the trail is whole: {words}")
    (entries,) = deployment.fetch_row("SELECT count(*) FROM audit_entry")
    return int(str(entries))


def lose_and_restore(deployment: Deployment, copy: Path) -> None:
    """Back up, drop the database, and restore the copy."""
    before = verify_trail(deployment)
    deployment.manage("backup", str(copy))
    deployment.create_database()
    deployment.manage("restore", str(copy), "--replace")
    after = verify_trail(deployment)
    must(after >= before, f"no entry is lost: {before}, then {after}")
    (records,) = deployment.fetch_row(
        "SELECT count(*) FROM registry_record WHERE kind = 'loan' AND uuid LIKE %s", "trial-%"
    )
    must(records == KILLS * LINES, f"every record is back: {records}")
    say(
        f"backed up, dropped, restored: {before} entries, then {after}, one unbroken chain; {records} records of files"
    )


# --- Helpers ---


def is_ready(address: str) -> bool:
    try:
        return requests.get(f"{address}/readyz", timeout=5).ok
    except requests.RequestException:
        return False


def wait_until(what: str, happens: Callable[[], object]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not happens():
        must(time.monotonic() < until, f"{what} within {WAIT_SECONDS} seconds")
        time.sleep(0.2)


def require(*programs: str) -> None:
    if missing := [name for name in programs if not shutil.which(name)]:
        sys.exit(f"trial: missing, install Debian's packages: {', '.join(missing)}")


def must(holds: object, what: str) -> None:
    if not holds:
        sys.exit(f"trial: failed: {what}")


def say(words: str) -> None:
    sys.stdout.write(f"trial: {words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
