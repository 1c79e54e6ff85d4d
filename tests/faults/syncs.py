"""Kills syncs of messages of which two run at once, again and again, and compares what is kept with what there is."""

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
"""So many messages arrive before every two runs, over so many days."""
LEAVING = 40
"""So many leave the list before every two runs."""
DAYS = 4
PATIENCE = 600


def killed(service: Sandbox, times: int) -> Verdict:
    """Kill so many runs, each while it reads; then let two at once read to the end."""
    struck, chance = 0, random.Random(20261121)
    while struck < times:
        _arrive(service, chance)
        runs = [_run(), _run()]
        for run in chance.sample(runs, min(times - struck, chance.choice((1, 2)))):
            struck += _is_killed(run, chance.uniform(0, 0.5))
        for run in runs:
            run.communicate(timeout=PATIENCE)
    last = [_run(), _run()]
    ends = [(run.communicate(timeout=PATIENCE)[0], run.returncode) for run in last]
    return _judged(service, [words for words, code in ends if code])


def _arrive(service: Sandbox, chance: random.Random) -> None:
    """Messages of all of these days, as if they had come now; others leave the list."""
    for message in chance.sample(service.world.messages(), LEAVING) if service.world.messages() else ():
        service.world.remove_message(message["uuid"])
    for number in range(ARRIVING):
        at = timezone.now() - timedelta(days=chance.uniform(0, DAYS))
        service.world.message("payment.succeeded", {"uuid": f"p-{number}", "status": "SUCCEEDED"}, at=at)


def _run() -> "subprocess.Popen[str]":
    told = {
        name: getattr(settings, name)
        for name in ("URL", "CLIENT_ID", "SECRET")
        for name in [f"SERVICING_{name}"]
    }
    environment = (
        os.environ | told | {"DATABASE_URL": database_url(), "LOG_LEVEL": "ERROR", "PYTHONUNBUFFERED": "1"}
    )
    command = [sys.executable, "manage.py", "sync_messages"]
    return subprocess.Popen(
        command, env=environment, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True
    )


def _is_killed(run: "subprocess.Popen[str]", later: float) -> bool:
    """Kill it a moment after it said that it reads, unless it was done before."""
    assert run.stdout
    run.stdout.readline()
    time.sleep(later)
    run.kill()
    return run.wait() == -signal.SIGKILL


def _judged(service: Sandbox, failed: list[str]) -> Verdict:
    """As many as the service has, each once, and two runs at once that end well; the others are gone there."""
    found, told = Verdict(), {message["uuid"] for message in service.world.messages()}
    kept = list(Message.objects.at_service().values_list("uuid", flat=True))
    found.lost = [f"{uuid} is missing" for uuid in told - set(kept)]
    found.doubled = [f"{len(kept) - len(set(kept))} are kept twice"] * (len(kept) != len(set(kept)))
    found.untrue = [f"{uuid} is not at the service" for uuid in set(kept) - told] + failed
    return found
