"""The processes that render PDFs: the files they may read, their time limit, and their replacement."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from django.test import Client as Browser

from portal.audit.models import Entry
from portal.documents.pdf import NotRendered, render
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


def end_rendering_processes() -> bool:
    """End the rendering processes with SIGTERM, so coverage counts their code; return whether any ran."""
    workers = multiprocessing.active_children()
    for worker in workers:
        if worker.pid:
            with suppress(ProcessLookupError):  # The process has just exited.
                os.kill(worker.pid, signal.SIGTERM)
    return bool(workers)


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


def test_the_next_document_renders_after_a_timeout() -> None:
    with pytest.raises(NotRendered, match="too long"):
        render(PAGE.format("<table>" + "<tr><td>x<td>y" * 40_000), time_limit=1)
    assert render(PAGE.format("after")).startswith(b"%PDF-")


def test_a_timeout_kills_only_its_own_process() -> None:
    render(PAGE.format("A process is warm."))
    warm = multiprocessing.active_children()
    pages: list[int] = []
    other_thread = threading.Thread(target=render, args=[LONG_PAGE], kwargs={"on_page": pages.append})
    other_thread.start()
    with pytest.raises(NotRendered, match="too long"):
        render(LONG_PAGE * 20, time_limit=1)
    other_thread.join()
    assert pages == list(range(1, len(pages) + 1)), "the other document was begun again"
    assert [process for process in warm if process.is_alive()]


def test_a_hanging_process_is_killed() -> None:
    render(PAGE.format("A process is warm."))
    hanging = multiprocessing.active_children()
    for process in hanging:
        os.kill(process.pid or 0, signal.SIGSTOP)
    for _ in hanging:
        with pytest.raises(NotRendered, match="too long"):
            render(LONG_PAGE, time_limit=1)
    assert render(PAGE.format("after")).startswith(b"%PDF-")
    assert [process for process in hanging if process.is_alive()] == []


def test_a_killed_process_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end_rendering_processes()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(NotRendered, match="too long"):
        render(LONG_PAGE * 20, time_limit=2)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_server_leaves_no_files(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", KILLED_SERVER], env=environment, cwd=BASE_DIR, capture_output=True
    )
    assert b"documents-" in result.stdout
    wait_until(lambda: list(tmp_path.iterdir()) == [])


def test_an_exception_in_a_page_listener_stops_rendering() -> None:
    def stop(pages: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        render(LONG_PAGE, on_page=stop)
    assert render(PAGE.format("after")).startswith(b"%PDF-")


def test_a_dead_idle_process_is_replaced() -> None:
    render(PAGE.format("before"))
    assert end_rendering_processes()
    assert render(PAGE.format("after")).startswith(b"%PDF-")


def test_concurrent_documents_are_all_rendered() -> None:
    pdfs: list[bytes] = []
    threads = [threading.Thread(target=lambda: pdfs.append(render(PAGE.format("x")))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [pdf[:5] for pdf in pdfs] == [b"%PDF-"] * 6


def test_missing_libraries_show_the_packages_to_install(
    portal_service: Sandbox, viewer: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "weasyprint"
    engine.mkdir()
    (engine / "__init__.py").write_text("raise OSError('cannot load library libpango-1.0-0')")
    monkeypatch.syspath_prepend(tmp_path)
    end_rendering_processes()
    page = viewer.get(
        f"/borrowers/{given.borrower(portal_service).uuid}/summary.pdf?data=copies"
    ).content.decode()
    end_rendering_processes()
    packages = (BASE_DIR / "docker" / "system-packages.txt").read_text().split()
    assert f"apt-get install {' '.join(packages)}" in page
    assert "print this page from the browser" in page


def test_a_failed_pdf_returns_503_without_an_audit_entry(portal_service: Sandbox, viewer: Browser) -> None:
    record = given.borrower(portal_service)
    stopped = threading.Event()

    def keep_ending_workers() -> None:
        while not stopped.wait(0.005):
            end_rendering_processes()

    killer = threading.Thread(target=keep_ending_workers)
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
