"""Kills message syncs while two run at once, and compares the saved messages with the service."""

import os
import random
import signal
import subprocess
import sys
import time
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from portal.messaging.models import Message
from servicing.sandbox import Sandbox
from tests.databases import database_url
from tests.faults.writes import Verdict

ARRIVING = 600
"""Messages that arrive before each pair of runs, spread over DAYS."""
LEAVING = 40
"""Messages that the service drops before each pair of runs."""
DAYS = 4
LAST_RUNS = 6
RUN_SECONDS = 600


def kill_syncs(service: Sandbox, times: int) -> Verdict:
    """Kill ``times`` runs, one or both of two at once, while they read; then let LAST_RUNS runs finish together."""
    kills, chance = 0, random.Random(20261121)
    while kills < times:
        _arrive(service, chance)
        runs = [_run(), _run()]
        for run in chance.sample(runs, min(times - kills, chance.choice((1, 2)))):
            kills += _is_killed(run, chance.uniform(0, 0.5))
        for run in runs:
            run.communicate(timeout=RUN_SECONDS)
    _arrive(service, chance)
    last = [_run() for _ in range(LAST_RUNS)]
    ends = [(run.communicate(timeout=RUN_SECONDS)[0], run.returncode) for run in last]
    return _compare(service, [words for words, code in ends if code])


def _arrive(service: Sandbox, chance: random.Random) -> None:
    """Add messages on random days, and drop others."""
    for message in chance.sample(service.world.messages(), LEAVING) if service.world.messages() else ():
        service.world.remove_message(message["uuid"])
    for number in range(ARRIVING):
        at = timezone.now() - timedelta(days=chance.uniform(0, DAYS))
        service.world.message("payment.succeeded", {"uuid": f"p-{number}", "status": "SUCCEEDED"}, at=at)


def _run() -> "subprocess.Popen[str]":
    client = {
        name: getattr(settings, name)
        for name in ("URL", "CLIENT_ID", "SECRET")
        for name in [f"SERVICING_{name}"]
    }
    environment = (
        os.environ | client | {"DATABASE_URL": database_url(), "LOG_LEVEL": "ERROR", "PYTHONUNBUFFERED": "1"}
    )
    command = [sys.executable, "manage.py", "sync_messages"]
    return subprocess.Popen(
        command, env=environment, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True
    )


def _is_killed(run: "subprocess.Popen[str]", later: float) -> bool:
    """Kill it shortly after its first line; false if it had finished."""
    assert run.stdout
    run.stdout.readline()
    time.sleep(later)
    run.kill()
    return run.wait() == -signal.SIGKILL


def _compare(service: Sandbox, failed: list[str]) -> Verdict:
    """Compare saved messages with the service's; the last runs must succeed."""
    found, sent = Verdict(), {message["uuid"] for message in service.world.messages()}
    saved = list(Message.objects.at_service().values_list("uuid", flat=True))
    found.lost = [f"{uuid} is missing" for uuid in sent - set(saved)]
    found.doubled = [f"{len(saved) - len(set(saved))} are saved twice"] * (len(saved) != len(set(saved)))
    found.untrue = [f"{uuid} is not at the service" for uuid in set(saved) - sent] + failed
    return found
