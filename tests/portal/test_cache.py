"""Tests of a cache that stops responding: pages still work, and passwords cannot be guessed."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
import time_machine
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.roles import Role
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.portal.jobs.test_worker import wait_until
from tests.portal.operations.test_demo import free_port, is_listening

SERVER = shutil.which("redis-server") or shutil.which("valkey-server")
PAGES = ["/", "/borrowers/", "/loans/", "/status/", "/search/?q=anna", "/audit/", "/messages/"]
PASSWORD = "walnut-harbor-77"

pytestmark = pytest.mark.skipif(SERVER is None, reason="needs a Redis or Valkey server")


@contextmanager
def run_server(port: int, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a cache server that saves nothing to disk."""
    options = ["--save", "", "--appendonly", "no", "--dir", str(folder)]
    command = [str(SERVER), "--port", str(port), "--bind", "127.0.0.1", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: is_listening(port))
        yield process
    finally:
        process.kill()
        process.wait(10)


@pytest.fixture
def port(portal_service: Sandbox, settings: LazySettings) -> int:
    """The port of the portal's cache, where no server runs yet."""
    found = free_port()
    address = f"redis://127.0.0.1:{found}/0"
    settings.CACHES = {"default": {"BACKEND": "portal.runtime.cache.ForgivingCache", "LOCATION": address}}
    return found


@pytest.fixture
def maya(portal_service: Sandbox) -> User:
    return User.objects.create_user("maya", password=PASSWORD, role=Role.SERVICER, first_name="Maya")


def sign_in(password: str = PASSWORD) -> tuple[int, str]:
    answer = Browser().post("/sign-in/", {"login": "maya", "password": password})
    return answer.status_code, answer.content.decode()


def run_doctor() -> str:
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("doctor", stdout=out)
    return out.getvalue()


def test_signed_in_staff_keep_working_without_the_cache(
    portal_service: Sandbox, port: int, maya: User, tmp_path: Path
) -> None:
    given.borrower(portal_service, first_name="Anna")
    staff = browser_of(Role.SUPERVISOR)
    with run_server(port, tmp_path):
        before = {page: staff.get(page).status_code for page in PAGES}
        assert sign_in()[0] == 302
        assert "The cache does not answer" not in staff.get("/status/").content.decode()
        assert "ok     The cache works" in run_doctor()
    assert before == {page: staff.get(page).status_code for page in PAGES} == dict.fromkeys(PAGES, 200)
    assert "The cache isn’t responding" in staff.get("/status/").content.decode()
    ready = Browser().get("/readyz")
    assert (ready.status_code, b"cache: not responding\n" in ready.content) == (200, True)
    assert "WRONG  The cache isn’t responding. Check CACHE_URL." in run_doctor()
    assert sign_in()[0] == 503
    with run_server(port, tmp_path):
        wait_until(lambda: b"cache: ok\n" in Browser().get("/readyz").content)
        assert sign_in()[0] == 302


def test_pages_open_without_a_cache_after_the_clock_was_set_back(port: int) -> None:
    staff = browser_of(Role.SUPERVISOR)
    with time_machine.travel(timezone.now() - timedelta(hours=1)):
        assert {staff.get(page).status_code for page in (*PAGES, "/healthz", "/readyz")} == {200}


def test_sign_in_is_unavailable_without_the_cache(port: int, maya: User) -> None:
    for guess in (PASSWORD, *"abcdefg"):
        status, page = sign_in(guess)
        assert (status, "Sign-in isn’t available right now" in page) == (503, True)
    staff = Browser()
    staff.force_login(maya)
    confirmed = staff.post("/accounts/confirm/", {"password": PASSWORD})
    passkey = Browser().post("/sign-in/passkey/", {"credential": "{}"})
    assert (confirmed.status_code, passkey.status_code) == (503, 503)


def test_failed_sign_ins_are_counted_in_the_cache(port: int, maya: User, tmp_path: Path) -> None:
    with run_server(port, tmp_path):
        for guess in "abcde":
            sign_in(guess)
        assert "Too many attempts" in sign_in()[1]


def test_pages_do_not_each_wait_for_a_silent_cache(port: int) -> None:
    staff = browser_of(Role.SUPERVISOR)
    with socket.create_server(("127.0.0.1", port), backlog=100) as silent:
        assert {staff.get(page).status_code for page in PAGES} == {200}
        assert 0 < count_callers(silent) < len(PAGES)


def count_callers(server: socket.socket) -> int:
    """Count the callers that got no answer, and hang up."""
    server.setblocking(False)
    callers = []
    with suppress(BlockingIOError):
        while True:
            callers.append(server.accept()[0])
    for caller in callers:
        caller.close()
    return len(callers)


def test_a_restarted_cache_server_is_used_at_once(port: int, tmp_path: Path) -> None:
    staff = browser_of(Role.SUPERVISOR)
    for _ in range(2):
        with run_server(port, tmp_path):
            staff.get("/")
            assert b"cache: ok\n" in Browser().get("/readyz").content
