"""The processes that render PDFs: the files they may read, their limits of time and memory, and what they leave."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from django.test import Client as Browser

from portal.audit.models import Entry
from portal.documents.pdf import NotRendered, TookTooLong, render
from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.jobs.test_worker import wait_until

PAGE = '<!doctype html><html lang="en"><title>A page</title><body class="paper">{}</body></html>'
LONG_PAGE = PAGE.format("<table>" + "<tr><td>x<td>y" * 1_000 + "</table>")
KILLED_SERVER = """
import os, signal, django
django.setup()
from portal.documents.pdf import render
render("<p>x")
print(os.listdir(os.environ["TMPDIR"]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
LINKS: list[Callable[[str], str]] = [
    lambda url: f'<img src="{url}">',
    lambda url: f'<link rel="stylesheet" href="{url}">',
    lambda url: f"<style>@import url({url});</style>",
    lambda url: f"<style>@font-face {{font-family: x; src: url({url})}} p {{font-family: x}}</style><p>x",
    lambda url: f'<p style="background: url({url})">x',
    lambda url: f'<object data="{url}"></object>',
    lambda url: f'<link rel="attachment" href="{url}">',
]


def fork_servers() -> list[int]:
    """The process IDs of our process that the rendering processes are forked from."""
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    pids = [int(pid) for one in children for pid in one.read_text().split()]
    return [pid for pid in pids if b"multiprocessing.forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def end_fork_server() -> None:
    """End it, so that the next document starts another one."""
    for pid in fork_servers():
        os.kill(pid, signal.SIGTERM)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.parametrize("link", LINKS)
def test_network_urls_are_not_fetched(link: Callable[[str], str]) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(0.05)
        with pytest.raises(NotRendered, match="URL"):
            render(PAGE.format(link(f"http://127.0.0.1:{listener.getsockname()[1]}/x")))
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/hostname",
        "../portal/settings.py",
        "css/../../pyproject.toml",
        "https://static.invalid/../README.md",
        "css/none.css",
        "icon.svg",
        "data:text/css,p{color:red}",
    ],
)
def test_other_urls_are_rejected(url: str) -> None:
    with pytest.raises(NotRendered, match="URL"):
        render(PAGE.format(f'<link rel="stylesheet" href="{url}">'))


def test_the_print_stylesheet_is_allowed() -> None:
    assert render(PAGE.format('<link rel="stylesheet" href="css/print.css"><p>x')).startswith(b"%PDF-")


@pytest.mark.slow
def test_a_process_is_killed_at_its_time_limit_alone() -> None:
    pages: list[int] = []
    other_thread = threading.Thread(target=render, args=[LONG_PAGE], kwargs={"on_page": pages.append})
    other_thread.start()
    with pytest.raises(TookTooLong):
        render(LONG_PAGE * 20, seconds=1)
    assert [one for one in multiprocessing.active_children() if one.is_alive()], "the other one was killed"
    other_thread.join()
    assert pages == list(range(1, len(pages) + 1))
    assert multiprocessing.active_children() == []


def test_a_document_that_takes_too_much_memory_is_stopped() -> None:
    with pytest.raises(NotRendered, match="too large"):
        render(PAGE.format("<table><tr><td colspan=300000000>x</table>"))
    assert render(PAGE.format("after")).startswith(b"%PDF-")


@pytest.mark.slow
def test_a_killed_process_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end_fork_server()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(TookTooLong):
        render(LONG_PAGE * 20, seconds=3)
    end_fork_server()
    assert list(tmp_path.glob("documents-*")) == []


@pytest.mark.slow
def test_a_killed_server_leaves_no_files(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", KILLED_SERVER], env=environment, cwd=BASE_DIR, capture_output=True
    )
    assert b"documents-" in result.stdout
    wait_until(lambda: list(tmp_path.glob("documents-*")) == [])


@pytest.mark.slow
def test_an_exception_in_a_listener_stops_rendering() -> None:
    def stop(pages: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        render(LONG_PAGE, on_page=stop)
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_a_dead_fork_server_is_replaced() -> None:
    render(PAGE.format("before"))
    end_fork_server()
    assert render(PAGE.format("after")).startswith(b"%PDF-")


@pytest.mark.slow
def test_concurrent_documents_are_all_rendered() -> None:
    pdfs: list[bytes] = []
    threads = [threading.Thread(target=lambda: pdfs.append(render(PAGE.format("x")))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [pdf[:5] for pdf in pdfs] == [b"%PDF-"] * 6


@pytest.mark.slow
def test_missing_libraries_show_the_packages_to_install(
    portal_service: Sandbox, viewer: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "weasyprint"
    engine.mkdir()
    (engine / "__init__.py").write_text("raise OSError('cannot load library libpango-1.0-0')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    end_fork_server()
    page = viewer.get(
        f"/borrowers/{given.borrower(portal_service).uuid}/summary.pdf?data=copies"
    ).content.decode()
    end_fork_server()
    packages = (BASE_DIR / "docker" / "system-packages.txt").read_text().split()
    assert f"apt-get install {' '.join(packages)}" in page
    assert "print this page from the browser" in page


@pytest.mark.slow
def test_a_failed_pdf_returns_503_without_an_audit_entry(portal_service: Sandbox, viewer: Browser) -> None:
    record = given.borrower(portal_service)
    stopped = threading.Event()

    def keep_killing() -> None:
        while not stopped.wait(0.005):
            for process in multiprocessing.active_children():
                process.kill()

    killer = threading.Thread(target=keep_killing)
    killer.start()
    try:
        answer = viewer.get(f"/borrowers/{record.uuid}/summary.pdf")
    finally:
        stopped.set()
        killer.join()
    assert answer.status_code == 503
    assert "The PDF couldn’t be created." in answer.content.decode()
    assert not Entry.objects.filter(action="summaries.print").exists()
    assert viewer.get(f"/borrowers/{record.uuid}/summary.pdf").status_code == 200
