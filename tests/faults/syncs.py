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

ADDED = 600
"""Messages that the service adds before each pair of runs, spread over DAYS."""
DROPPED = 40
"""Messages that the service drops before each pair of runs."""
DAYS = 4
LAST_RUNS = 6
RUN_SECONDS = 600


def kill_syncs(service: Sandbox, times: int) -> Verdict:
    """Kill ``times`` runs, one or both of two at once, while they read; then let LAST_RUNS runs finish together."""
    kills, chance = 0, random.Random(20261121)
    while kills < times:
        _change_messages(service, chance)
        runs = [_start_sync(), _start_sync()]
        for run in chance.sample(runs, min(times - kills, chance.choice((1, 2)))):
            kills += _kill_after_start(run, chance.uniform(0, 0.5))
        for run in runs:
            run.communicate(timeout=RUN_SECONDS)
    _change_messages(service, chance)
    last_runs = [_start_sync() for _ in range(LAST_RUNS)]
    results = [(run.communicate(timeout=RUN_SECONDS)[0], run.returncode) for run in last_runs]
    return _compare(service, [words for words, code in results if code])


def _change_messages(service: Sandbox, chance: random.Random) -> None:
    """Add messages on random days, and drop others."""
    for message in chance.sample(service.world.messages(), DROPPED) if service.world.messages() else ():
        service.world.remove_message(message["uuid"])
    for number in range(ADDED):
        at = timezone.now() - timedelta(days=chance.uniform(0, DAYS))
        service.world.message("payment.succeeded", {"uuid": f"p-{number}", "status": "SUCCEEDED"}, at=at)


def _start_sync() -> "subprocess.Popen[str]":
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


def _kill_after_start(run: "subprocess.Popen[str]", delay: float) -> bool:
    """Kill a sync shortly after its first line; return false if it had finished."""
    assert run.stdout
    run.stdout.readline()
    time.sleep(delay)
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
