"""What is too large is refused before it is read, whoever sends it and wherever to."""

import select
import socket
from contextlib import suppress
from http.client import HTTPResponse

import pytest
import requests
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client as Browser

from servicing.sandbox import Sandbox
from tests.portal.jobs.test_worker import until
from tests.portal.operations.test_demo import free_port
from tests.portal.operations.test_serving import serving

MEGABYTE = 1024 * 1024


def sent(port: int, path: str, cookie: str, size: int) -> tuple[int, str, int]:
    """Send a body until an answer comes: its status, its page, and how much had left by then."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: sessionid={cookie}\r\nContent-Length: {size}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(head.encode())
        number = 0
        with suppress(ConnectionError):  # It was hung up on.
            while number < size and not select.select([connection], [], [], 0)[0]:
                number += connection.send(bytes(min(MEGABYTE, size - number)))
        answer = HTTPResponse(connection)
        answer.begin()
        return answer.status, answer.read().decode(), number


@pytest.mark.django_db(transaction=True)
def test_a_body_of_200_megabytes_is_refused_and_not_read(viewer: Browser, portal_service: Sandbox) -> None:
    port, session = free_port(), viewer.cookies["sessionid"].value
    with serving(portal_service, port):
        until(lambda: requests.get(f"http://127.0.0.1:{port}/readyz", timeout=60).ok)
        for path, cookie in (("/verify/", session), ("/registry/import/", session), ("/sign-in/", "")):
            status, page, number = sent(port, path, cookie, 200 * MEGABYTE)
            assert status == 413
            assert "Files can be up to 20 MB" in page
            assert number < 10 * MEGABYTE  # what the system's buffers hold


@pytest.mark.parametrize(("path", "status"), [("/verify/", 200), ("/borrowers/", 413)])
def test_a_page_is_sent_a_file_only_where_it_asks_for_one(viewer: Browser, path: str, status: int) -> None:
    file = SimpleUploadedFile("report.pdf", bytes(5 * MEGABYTE))
    assert viewer.post(path, {"document": file}).status_code == status
