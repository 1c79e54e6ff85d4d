"""A PostgreSQL server that is stopped in the middle: nobody waits for it for long, and a slow query is not cut off."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from docker import postgres
from portal.runtime.postgres import SILENCE_SECONDS, STOPPED_SECONDS, WatchedConnection

LONGEST_SECONDS = 5


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server of our own, which may be stopped while other tests use theirs."""
    with TemporaryDirectory(dir="/tmp") as folder, postgres.server(Path(folder), ["-c", "fsync=off"]) as url:
        yield url


@contextmanager
def frozen(url: str) -> Iterator[None]:
    """Every process of the server stopped, as in a container that was paused."""
    with psycopg.connect(url) as other:
        data = other.execute("SHOW data_directory").fetchone()
    main = int(Path(*(data or ()), "postmaster.pid").read_text().split()[0])
    os.kill(main, signal.SIGSTOP)
    pids = [main, *map(int, Path(f"/proc/{main}/task/{main}/children").read_text().split())]
    for pid in pids[1:]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):  # A connection that was closing.
                os.kill(pid, signal.SIGCONT)


def test_a_stopped_server_costs_a_few_seconds_and_frees_the_thread(server: str) -> None:
    with WatchedConnection.connect(server) as first, WatchedConnection.connect(server) as second:
        first.execute("SELECT 1")
        with frozen(server):
            began = time.monotonic()
            with pytest.raises(psycopg.OperationalError, match="stopped answering"):
                first.execute("SELECT 1")
            # The second one of a page waits hardly at all.
            with pytest.raises(psycopg.OperationalError, match="stopped answering"):
                second.execute("SELECT 1")
            assert time.monotonic() - began < LONGEST_SECONDS
    with WatchedConnection.connect(server) as again:
        assert again.execute("SELECT 1").fetchone() == (1,)


def test_a_slow_query_of_a_server_that_is_there_goes_on(server: str) -> None:
    with WatchedConnection.connect(server) as link:
        assert link.execute("SELECT 1 FROM pg_sleep(%s)", [2 * SILENCE_SECONDS]).fetchone() == (1,)


def test_a_server_that_was_stopped_for_a_moment_is_waited_for_again(server: str) -> None:
    with WatchedConnection.connect(server) as link, frozen(server), pytest.raises(psycopg.OperationalError):
        link.execute("SELECT 1")
    time.sleep(STOPPED_SECONDS)
    with WatchedConnection.connect(server) as link:
        assert link.execute("SELECT 1 FROM pg_sleep(1)").fetchone() == (1,)
