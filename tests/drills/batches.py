"""Kills the worker repeatedly while it prints a batch of summaries, and checks each borrower's document."""

import io
import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from hashlib import sha256

from django.conf import settings

from portal.audit.models import Entry
from portal.documents.batches import zip_documents
from portal.documents.models import Batch, Item
from portal.jobs.models import Job
from tests.databases import database_url
from tests.drills.writes import Verdict

WORKER_SECONDS = 1200
"""Seconds that a worker may take for its share of the documents."""
QUICK = {
    "JOB_LEASE_SECONDS": "3",
    "REFRESH_MINUTES": "0",
    "MESSAGE_SYNC_MINUTES": "0",
    "LOG_LEVEL": "ERROR",
}


def kill_worker(batch: Batch, times: int) -> Verdict:
    """Kill the worker ``times`` times, let another one finish the batch, and check each borrower."""
    waiting = batch.items.filter(state=Item.State.WAITING)
    total = waiting.count()
    for number in range(1, times + 1):
        left = total - total * number // (times + 1)
        run_worker(lambda left=left: waiting.count() <= left, without_children=number % 2 == 1)
    run_worker(lambda: not Job.objects.get(pk=batch.job_id).is_open)
    return _check(batch, total)


def run_worker(is_done: Callable[[], bool], *, without_children: bool = False) -> None:
    """Run a worker until ``is_done``, then kill it, with its children (as a power loss would) or without."""
    service = {
        "SERVICING_URL": settings.SERVICING_URL,
        "SERVICING_CLIENT_ID": settings.SERVICING_CLIENT_ID,
        "SERVICING_SECRET": settings.SERVICING_SECRET,
    }
    environment = os.environ | service | QUICK | {"DATABASE_URL": database_url()}
    command = [sys.executable, "manage.py", "work"]
    worker = subprocess.Popen(command, env=environment, cwd=settings.BASE_DIR, start_new_session=True)
    try:
        until = time.monotonic() + WORKER_SECONDS
        while not is_done():
            if time.monotonic() > until or worker.poll() is not None:
                raise AssertionError("the batch made no progress, or its worker exited")
            time.sleep(0.05)
        time.sleep(random.uniform(0, 0.3))  # Kill it anywhere between rendering and recording.
    finally:
        (worker.kill if without_children else lambda: os.killpg(worker.pid, signal.SIGKILL))()
        worker.wait()


def _check(batch: Batch, total: int) -> Verdict:
    """Check that each borrower has one document and one audit entry with its hash, and the job's result."""
    found = Verdict()
    entries = Entry.objects.filter(action="summaries.print", request_id=batch.actor.request_id)
    printed = Counter(entries.values_list("subject_uuid", flat=True))
    codes = {entry.detail["code"]: entry.detail["sha256"] for entry in entries}
    for item in batch.items.iterator(10):
        if item.state != Item.State.DONE or not item.document:
            found.lost.append(f"{item.label} is {item.state}: {item.reason}")
        elif codes.get(item.code) != sha256(item.document).hexdigest():
            found.untrue.append(f"{item.label} has a document that the audit trail does not have")
        if printed[item.borrower_uuid] != 1:
            found.doubled.append(f"{item.label} was printed {printed[item.borrower_uuid]} times")
    job = Job.objects.get(pk=batch.job_id)
    if (job.state, job.result) != (Job.State.DONE, {"done": total, "failed": 0}):
        found.untrue.append(f"the job is {job.state} ({job.words}) with {job.result}")
    with zipfile.ZipFile(io.BytesIO(b"".join(zip_documents(batch)))) as archive:
        if len(set(archive.namelist())) != total or archive.testzip():
            found.lost.append(f"the file holds {len(archive.namelist())} documents")
    return found
