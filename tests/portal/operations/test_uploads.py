"""Oversized uploads are rejected before they are read."""

import select
import socket
from contextlib import suppress
from http.client import HTTPResponse

import pytest
import requests
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client as Browser

from servicing.sandbox import Sandbox
from tests.portal.jobs.test_worker import wait_until
from tests.portal.operations.test_demo import free_port
from tests.portal.operations.test_serving import serving

MEGABYTE = 1024 * 1024


def send_body(port: int, path: str, cookie: str, size: int) -> tuple[int, str, int]:
    """Send a body until an answer arrives, and return its status, its page and the number of bytes sent."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: sessionid={cookie}\r\nContent-Length: {size}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(head.encode())
        sent_bytes = 0
        with suppress(ConnectionError):  # The server closed the connection.
            while sent_bytes < size and not select.select([connection], [], [], 0)[0]:
                sent_bytes += connection.send(bytes(min(MEGABYTE, size - sent_bytes)))
        answer = HTTPResponse(connection)
        answer.begin()
        return answer.status, answer.read().decode(), sent_bytes


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_200_mb_body_is_rejected_before_it_is_read(viewer: Browser, portal_service: Sandbox) -> None:
    port, session = free_port(), viewer.cookies["sessionid"].value
    with serving(portal_service, port):
        wait_until(lambda: requests.get(f"http://127.0.0.1:{port}/readyz", timeout=60).ok)
        for path, cookie in (("/verify/", session), ("/registry/import/", session), ("/sign-in/", "")):
            status, page, sent_bytes = send_body(port, path, cookie, 200 * MEGABYTE)
            assert status == 413
            assert "Files can be up to 20 MB" in page
            assert sent_bytes < 10 * MEGABYTE  # Only the system's buffers were filled.


@pytest.mark.parametrize(("path", "status"), [("/verify/", 200), ("/borrowers/", 413)])
def test_large_files_are_accepted_only_on_upload_pages(viewer: Browser, path: str, status: int) -> None:
    file = SimpleUploadedFile("report.pdf", bytes(5 * MEGABYTE))
    assert viewer.post(path, {"document": file}).status_code == status
