"""The portal under gunicorn: stopping, replacing processes, memory, waiting requests and logs."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import pytest
import requests
from django.test import Client as Browser

from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import CLIENT_ID, SECRET, htmx
from tests.portal.jobs.test_worker import database_url, wait_until
from tests.portal.operations.test_demo import children, free_port, is_listening

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@contextmanager
def serving(
    portal_service: Sandbox,
    port: int,
    stderr: IO[bytes] | None = None,
    level: str = "error",
    recycled_after: int = 2000,
    **settings: str,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run gunicorn with two processes, set up by ``portal.gunicorn``."""
    service = {
        "SERVICING_URL": portal_service.url,
        "SERVICING_CLIENT_ID": CLIENT_ID,
        "SERVICING_SECRET": SECRET,
    }
    environment = os.environ | service | {"DATABASE_URL": database_url(), "WEB_CONCURRENCY": "2"} | settings
    command = [sys.executable, "-m", "gunicorn", "--config", "python:portal.gunicorn", "portal.wsgi"]
    process = subprocess.Popen(
        [
            *(*command, "--bind", f"127.0.0.1:{port}", "--log-level", level),
            *("--max-requests", str(recycled_after), "--max-requests-jitter", "0"),
        ],
        env=environment,
        cwd=BASE_DIR,
        stderr=stderr,
    )
    try:
        wait_until(lambda: is_listening(port))
        yield process
    finally:
        process.terminate()
        process.wait(40)


def test_a_running_request_finishes_before_the_server_stops(viewer: Browser, portal_service: Sandbox) -> None:
    port = free_port()
    cookies = {"sessionid": viewer.cookies["sessionid"].value}
    with serving(portal_service, port) as server, ThreadPoolExecutor() as pool:
        base = f"http://127.0.0.1:{port}"
        wait_until(lambda: requests.get(f"{base}/readyz", timeout=60).ok)
        portal_service.fail_next("messages.list", delay=2)
        slow = pool.submit(requests.get, f"{base}/messages/", cookies=cookies, timeout=60)
        wait_until(lambda: portal_service.calls)
        server.send_signal(signal.SIGTERM)
        assert slow.result().status_code == 200
        assert server.wait(40) == 0
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{base}/healthz", timeout=5)


def count_arenas(pid: int) -> int:
    """Count the allocator's heaps for threads: aligned to 64 MB, with an unreadable rest."""
    maps = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    spans = [(*(int(edge, 16) for edge in fields[0].split("-")), fields[1]) for fields in maps]
    heap = 64 * 2**20
    return sum(
        start % heap == 0 and (access, rest) == ("rw-p", "---p") and end == follows and stop == start + heap
        for (start, end, access), (follows, stop, rest) in pairwise(spans)
    )


def test_threads_share_their_memory(viewer: Browser, portal_service: Sandbox) -> None:
    port = free_port()
    cookies = {"sessionid": viewer.cookies["sessionid"].value}
    with serving(portal_service, port, WEB_CONCURRENCY="1") as server, ThreadPoolExecutor(32) as pool:
        paths = ["/loans/", "/messages/?source=copy"] * 32
        for answer in pool.map(
            lambda path: requests.get(f"http://127.0.0.1:{port}{path}", cookies=cookies, timeout=60), paths
        ):
            assert answer.ok
        (process,) = children(server)
        assert count_arenas(process) <= 1


def test_pages_and_health_checks_do_not_wait_for_panels(
    viewer: Browser, servicer: Browser, portal_service: Sandbox
) -> None:
    port = free_port()
    given.loan(portal_service, given.borrower(portal_service))
    base = f"http://127.0.0.1:{port}"

    def get(path: str, **options: Any) -> requests.Response:
        cookies = {"sessionid": viewer.cookies["sessionid"].value, "js": "1"}
        return requests.get(base + path, cookies=cookies, timeout=30, **options)

    with serving(portal_service, port, WEB_CONCURRENCY="1"), ThreadPoolExecutor(60) as pool:
        wait_until(lambda: get("/loans/").ok)
        portal_service.fail_next("*", times=None, delay=8)
        panels = [
            pool.submit(get, f"/messages/?page={number}", headers=htmx("messages")) for number in range(40)
        ]
        wait_until(lambda: len(portal_service.calls) >= 16)
        for path in ("/healthz", "/readyz", "/loans/"):
            assert get(path).ok
        assert not any(panel.done() for panel in panels)
        portal_service.heal()


def test_replacing_a_process_drops_no_request(portal_service: Sandbox) -> None:
    port = free_port()

    def statuses(_: int) -> set[int]:
        with requests.Session() as browser:
            addresses = [f"http://127.0.0.1:{port}/healthz"] * 60
            return {
                browser.get(one, timeout=30, headers={"Connection": "close"}).status_code for one in addresses
            }

    with (
        serving(portal_service, port, WEB_CONCURRENCY="1", recycled_after=50) as server,
        ThreadPoolExecutor(4) as pool,
    ):
        first = children(server)
        wait_until(lambda: requests.get(f"http://127.0.0.1:{port}/healthz", timeout=30).ok)
        assert set().union(*pool.map(statuses, range(4))) == {200}
        wait_until(lambda: len(children(server)) == 1 and children(server) != first)


def test_the_servers_own_log_is_json(portal_service: Sandbox, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"
    with log.open("wb") as out, serving(portal_service, port, out, "info", LOG_FORMAT="json"):
        requests.get(f"http://127.0.0.1:{port}/borrowers/?q=Lindqvist", timeout=60)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["logger"] for line in lines} >= {"gunicorn.error"}
    assert "Lindqvist" not in log.read_text()


@pytest.mark.parametrize("log_format", ["line", "json"])
def test_an_ssn_in_an_invalid_request_is_not_logged(
    portal_service: Sandbox, tmp_path: Path, log_format: str
) -> None:
    port, log = free_port(), tmp_path / "log"
    unreadable = [
        "GET / HTTP/1.1\r\nNo colon 517-28-4039",
        "GET / 517-28-4039",
        "517-28-4039 / HTTP/1.1\r\nHost: a",
    ]
    with (
        log.open("wb") as out,
        serving(portal_service, port, out, "info", LOG_FORMAT=log_format, LOG_LEVEL="INFO"),
    ):
        for request in unreadable:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
                client.sendall(f"{request}\r\n\r\n".encode())
                assert client.recv(1000)
    assert "Invalid HTTP Header" in log.read_text()
    assert "_OTHER" in log.read_text()
    assert "517-28-4039" not in log.read_text()
