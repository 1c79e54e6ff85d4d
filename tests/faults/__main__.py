"""Run the fault drills and print one table: `python -m tests.faults [part …]`.

The parts are load, writes, answers, rivals, held, processes, kills, batches, syncs, silence, inputs and wire; without
a name all of them run. Load and silence measure time, so run them on an idle machine. A proxy between portal and
sandbox injects network faults. Under ``docker/postgres.py`` the parts use PostgreSQL, which is also restarted and
stopped.

FAULTS_ROUNDS: repetitions of writes, rivals, held and processes (5)
FAULTS_KILLS: kills of the portal (200)
FAULTS_SUMMARIES, FAULTS_WORKERS: borrowers in a printed batch, and kills of its worker (300, 6)
FAULTS_SYNCS: kills of message syncs, two running at once (20)
FAULTS_INPUTS: hostile inputs (10,000)
FAULTS_MUTANTS: mutated answers (1,000)
FAULTS_LOAD: minutes that fifty people click (10)
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from django.test import Client as Browser

    from tests.faults.proxy import ProxiedSandbox
    from tests.faults.writes import Verdict

ROUNDS = int(os.environ.get("FAULTS_ROUNDS", "5"))
KILLS = int(os.environ.get("FAULTS_KILLS", "200"))
SUMMARIES = int(os.environ.get("FAULTS_SUMMARIES", "300"))
WORKERS = int(os.environ.get("FAULTS_WORKERS", "6"))
SYNCS = int(os.environ.get("FAULTS_SYNCS", "20"))
MUTANTS = int(os.environ.get("FAULTS_MUTANTS", "1000"))
INPUTS = int(os.environ.get("FAULTS_INPUTS", "10000"))
LOAD = float(os.environ.get("FAULTS_LOAD", "10"))
FLOWS = [
    "tests/portal/test_clocks.py",
    "tests/portal/jobs/test_worker.py",
    "tests/portal/operations/test_serving.py",
    "tests/portal/operations/test_copies.py",
    "tests/portal/operations/test_demo.py",
]
OWN_SETTINGS = {"DEBUG", "ENV_FILE", "DATA_DIR", "DJANGO_SETTINGS_MODULE", "APPROVAL_ACTS"}
CLIENT_ID, SECRET = "faults-desk", "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"


@contextmanager
def temporary_database() -> Iterator[None]:
    """Set up Django on a temporary database, or on the one of DATABASE_URL."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "DEBUG": "on",
            "ENV_FILE": os.devnull,
            "DATA_DIR": folder,
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "SERVICING_CLIENT_ID": CLIENT_ID,
            "SERVICING_SECRET": SECRET,
            "APPROVAL_ACTS": "none",
        }
        import logging

        import django

        django.setup()
        logging.disable()  # The table reports the results.
        from django.core.management import call_command
        from django.db import connections

        call_command("migrate", verbosity=0)
        yield
        connections.close_all()


def main(selected: list[str]) -> int:
    with temporary_database(), tempfile.TemporaryDirectory() as folder:
        from tests.faults.answers import stop_servers
        from tests.faults.proxy import ProxiedSandbox

        with (
            ExitStack() as at_end,
            ProxiedSandbox(Path(folder) / "service.sqlite3", client_id=CLIENT_ID, secret=SECRET) as service,
        ):
            from django.conf import settings

            settings.SERVICING_URL = service.url
            at_end.callback(stop_servers)  # Later parts use a database server that an earlier part restarted.
            show("| fault | tries | lost | doubled | untrue | stuck |\n|---|---:|---:|---:|---:|---:|")
            failures = 0
            for part in selected or PARTS:
                for name, tries, *found in PARTS[part](service) if part in PARTS else ():
                    show(f"| {name} | {' | '.join(map(str, (tries, *found)))} |")
                    failures += sum(found)
    return 1 if failures else 0


def show(text: str) -> None:
    """Print at once, so that a stopped run has shown its results."""
    print(text, flush=True)  # noqa: T201 - a command line tool


Figures = tuple[str, int, int, int, int, int]


def lost_answers(service: "ProxiedSandbox") -> list[Figures]:
    """Each write under each network fault, ROUNDS times."""
    from django.conf import settings

    from portal import gateway
    from portal.audit.models import Actor, Outage, WriteIntent
    from portal.audit.writes import resolve
    from tests.faults.writes import NETWORK_FAULTS, TIMEOUT_SECONDS, WRITES, Verdict, check_write

    rows, browser = [], staff()
    for fault in NETWORK_FAULTS:
        settings.SERVICING_TIMEOUT = TIMEOUT_SECONDS if fault.name == "silence" else 20
        gateway.client.cache_clear()
        total = Verdict()
        for operation in list(WRITES) * ROUNDS:
            found = check_write(operation, fault, browser, service)
            # Unknown writes block the next one, so release them.
            for intent in WriteIntent.objects.filter(state="unknown"):
                resolve(
                    intent, Actor.system("faults"), WriteIntent.State.RELEASED, note="released by the drill"
                )
            Outage.objects.all().delete()
            say(f"{fault.name}, {operation}", found.words)
            total += found
        rows.append(table_row(fault.name, len(WRITES) * ROUNDS, total))
    return rows


def answers(service: "ProxiedSandbox") -> list[Figures]:
    """Each write while the database is locked, full or restarted, or the portal is killed, as the answer arrives."""
    from django.conf import settings
    from django.db import connection

    from tests.faults.answers import HOLD_SECONDS, LOSSES, RESTART, check_write
    from tests.faults.writes import WRITES, Verdict

    os.environ["DATA_DIR"] = str(settings.DATA_DIR)
    rows = []
    for loss in LOSSES + ([RESTART] if connection.vendor == "postgresql" else []):
        total = Verdict()
        for operation in WRITES:
            found = check_write(operation, loss, service, HOLD_SECONDS)
            say(f"database {loss.name}, {operation}", found.words)
            total += found
        rows.append(table_row(f"database {loss.name} as the answer comes", len(WRITES), total))
    return rows


def rivals(service: "ProxiedSandbox") -> list[Figures]:
    """Simultaneous changes of one record, and approved changes whose answer is lost."""
    from tests.faults.rivals import LOST, lose_approved_answers, race_changes

    races, approvals = race_changes(service, 10 * ROUNDS), lose_approved_answers(service, ROUNDS)
    say("two changes at once", races.words)
    say("approved changes", approvals.words)
    return [
        table_row("two changes of one borrower at once", 10 * ROUNDS, races),
        table_row("approved change lost or killed", len(LOST) * ROUNDS, approvals),
    ]


def locked(service: "ProxiedSandbox") -> list[Figures]:
    """The database locked by another program, and on PostgreSQL also stopped."""
    from django.db import connection

    from tests.faults.locked import send_while_away

    rows = []
    for way in ["locked"] + ["stopped"] * (connection.vendor == "postgresql"):
        found, sent = send_while_away(service, way, ROUNDS)
        say(f"database {way}", found.words)
        rows.append(table_row(f"database {way} {ROUNDS} times", sent, found))
    return rows


def processes(service: "ProxiedSandbox") -> list[Figures]:
    """The tests of clocks, restarts, recycling and restores, ROUNDS times."""
    from tests.faults.writes import Verdict

    found, tries = Verdict(), 0
    for _ in range(ROUNDS):
        with tempfile.NamedTemporaryFile(suffix=".xml") as report:
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                f"--junitxml={report.name}",
            ]
            subprocess.run([*command, *FLOWS], stdout=subprocess.DEVNULL, env=clean_environment())
            cases = list(ElementTree.parse(report.name).iter("testcase"))
        tries += len(cases)
        found.stuck += [
            f"{case.get('classname')} {case.get('name')}"
            for case in cases
            if case.find("failure") is not None or case.find("error") is not None
        ]
    say("clocks and processes", found.words)
    return [table_row("clocks set back, processes replaced and stopped", tries, found)]


def clean_environment() -> dict[str, str]:
    """Return the environment for pytest, without this process's own settings."""
    return {name: value for name, value in os.environ.items() if name not in OWN_SETTINGS}


def kills(service: "ProxiedSandbox") -> list[Figures]:
    """The portal killed KILLS times while eight people write."""
    from tests.faults.killing import kill_portal

    found, forms = kill_portal(service, KILLS)
    say("kill -9", found.words)
    return [table_row(f"kill -9 of the portal, {forms} forms sent", KILLS, found)]


def batches(service: "ProxiedSandbox") -> list[Figures]:
    """The worker killed WORKERS times while it prints a batch of SUMMARIES borrowers."""
    from portal.documents.models import Batch
    from tests import given
    from tests.faults.batches import kill_worker

    for number in range(SUMMARIES):
        given.borrower(service, first_name=f"Printed {number}")
    staff().post("/summaries/batches/?q=printed", {"data": "copies", "chosen": "1"})
    found = kill_worker(Batch.objects.latest("pk"), WORKERS)
    say("kill -9 of the worker", found.words)
    return [table_row(f"kill -9 of the worker, {SUMMARIES} summaries", WORKERS, found)]


def syncs(service: "ProxiedSandbox") -> list[Figures]:
    """Message syncs that run at once, SYNCS of them killed."""
    from tests.faults.syncs import LAST_RUNS, kill_syncs

    found = kill_syncs(service, SYNCS)
    say("kill -9 of syncs", found.words)
    return [table_row(f"kill -9 of one or both of two syncs, then {LAST_RUNS} at once", SYNCS, found)]


def silence(service: "ProxiedSandbox") -> list[Figures]:
    """The service silent for a whole run, and down for another."""
    from tests.faults.outage import WAYS, open_pages

    rows = []
    for way in WAYS:
        found, took = open_pages(service, way)
        say(way, found.words)
        rows.append(table_row(f"the service {way}, slowest page {max(took):.2f} s", len(took), found))
    return rows


def inputs(service: "ProxiedSandbox") -> list[Figures]:
    """Hostile input to every form and query string."""
    from tests import given
    from tests.faults.hostile import attack
    from tests.faults.writes import Verdict

    loan = given.loan(service, given.borrower(service), paid=3)
    shares = {"supervisor": 0.8, "admin": 0.15, "": 0.05}
    starts = {"supervisor": ["/", loan.get_absolute_url()], "admin": ["/admin/"], "": ["/sign-in/"]}
    found = Verdict()
    for role, share in shares.items():
        wrong = attack(staff(role), starts[role], round(INPUTS * share))
        found.untrue += [str(one) for one in wrong]
    say("hostile inputs", found.words)
    return [table_row("hostile inputs (untrue: answers of 500)", INPUTS, found)]


def wire(service: "ProxiedSandbox") -> list[Figures]:
    """Malformed HTTP answers to the client library alone."""
    from tests.faults.wire import ALL, MAX_BOMB_MEGABYTES, bombs, drill

    found = drill(mutants=MUTANTS)
    say("wire", found.wrong)
    results = {name: (megabytes, error) for name, megabytes, error in bombs()}
    say("bombs, in MB of memory", [f"{name} {megabytes}" for name, (megabytes, _) in results.items()])
    too_large = [name for name, (megabytes, _) in results.items() if megabytes > MAX_BOMB_MEGABYTES]
    doubled = sum("times" in words for words in found.wrong)
    name = f"{len(ALL)} faults of a connection, {MUTANTS:,} mutated answers; slowest {found.slowest_seconds:.1f} s"
    return [
        (name, found.calls, 0, doubled, len(found.wrong) - doubled, 0),
        ("answers that unpack to 32 MB and more", len(results), 0, 0, len(too_large), 0),
    ]


def load(service: "ProxiedSandbox") -> list[Figures]:
    """Fifty people click for LOAD minutes. `lost` counts failed requests, `untrue` missed limits."""
    from tests.faults.load import PAUSE_SECONDS, STAFF, run_load

    found = run_load(service, LOAD * 60)
    say("load", [*found.errors, *found.missed])
    say("load, 95th percentile in ms", [f"{view} {ms}" for view, ms in found.views.items()])
    pace = "a click each every {:g} to {:g} s".format(*PAUSE_SECONDS)
    name = f"{STAFF} staff on two web processes, {pace}, {LOAD:g} minutes: {found}"
    return [(name, found.requests, len(found.errors), 0, len(found.missed), 0)]


PARTS: dict[str, Callable[["ProxiedSandbox"], list[Figures]]] = {
    "load": load,
    "writes": lost_answers,
    "answers": answers,
    "rivals": rivals,
    "held": locked,
    "processes": processes,
    "kills": kills,
    "batches": batches,
    "syncs": syncs,
    "silence": silence,
    "inputs": inputs,
    "wire": wire,
}


def staff(role: str = "servicer") -> "Browser":
    """Return a browser that is signed in with this role, or signed out."""
    from django.conf import settings
    from django.test import Client as Browser

    from portal.accounts.models import User

    browser = Browser(SERVER_NAME="localhost")
    if role:
        user, _ = User.objects.get_or_create(username=role, defaults={"role": role})
        browser.force_login(user, backend=settings.AUTHENTICATION_BACKENDS[-1])
    return browser


def table_row(name: str, tries: int, verdict: "Verdict") -> Figures:
    lost, doubled, untrue, stuck = map(len, verdict.columns)
    return name, tries, lost, doubled, untrue, stuck


def say(where: str, words: list[str]) -> None:
    """Print problems to stderr as they are found."""
    for one in words:
        sys.stderr.write(f"{where}: {one}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
