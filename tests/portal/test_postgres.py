"""Tests of a PostgreSQL server that stops responding: queries fail soon, but slow queries may finish."""

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
    """The URL of a separate server, which can be stopped without affecting other tests."""
    with TemporaryDirectory(dir="/tmp") as folder, postgres.server(Path(folder), ["-c", "fsync=off"]) as url:
        yield url


@contextmanager
def freeze_server(url: str) -> Iterator[None]:
    """Stop every process of the server, as pausing a container does."""
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
            with suppress(ProcessLookupError):  # The process of a closing connection may be gone.
                os.kill(pid, signal.SIGCONT)


def test_queries_on_a_stopped_server_fail_within_seconds(server: str) -> None:
    with WatchedConnection.connect(server) as first, WatchedConnection.connect(server) as second:
        first.execute("SELECT 1")
        with freeze_server(server):
            began = time.monotonic()
            with pytest.raises(psycopg.OperationalError, match="stopped answering"):
                first.execute("SELECT 1")
            # After the first failure, other connections fail almost at once.
            with pytest.raises(psycopg.OperationalError, match="stopped answering"):
                second.execute("SELECT 1")
            assert time.monotonic() - began < LONGEST_SECONDS
    with WatchedConnection.connect(server) as third:
        assert third.execute("SELECT 1").fetchone() == (1,)


def test_a_slow_query_is_not_interrupted(server: str) -> None:
    with WatchedConnection.connect(server) as connection:
        assert connection.execute("SELECT 1 FROM pg_sleep(%s)", [2 * SILENCE_SECONDS]).fetchone() == (1,)


def test_a_resumed_server_runs_slow_queries_again(server: str) -> None:
    with (
        WatchedConnection.connect(server) as connection,
        freeze_server(server),
        pytest.raises(psycopg.OperationalError),
    ):
        connection.execute("SELECT 1")
    time.sleep(STOPPED_SECONDS)
    with WatchedConnection.connect(server) as connection:
        assert connection.execute("SELECT 1 FROM pg_sleep(1)").fetchone() == (1,)
