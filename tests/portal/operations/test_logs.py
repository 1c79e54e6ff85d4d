"""JSON logs: each line has the reference of its request and no personal data."""

import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client as Browser

from portal.core.redaction import LogFilter
from portal.operations.logs import JsonFormatter
from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests import databases

SSN = "912-45-6789"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The lines that ``LOG_FORMAT=json`` writes."""
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(JsonFormatter())
    handler.addFilter(LogFilter())
    root, requests = logging.getLogger(), logging.getLogger("portal.requests")
    root.addHandler(handler)
    requests.setLevel("INFO")
    yield handler.stream
    root.removeHandler(handler)
    requests.setLevel("NOTSET")


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_a_request_is_logged_without_its_query(viewer: Browser, log: io.StringIO) -> None:
    answer = viewer.get("/borrowers/?q=Lindqvist")
    logged = next(line for line in lines(log) if line["logger"] == "portal.requests")
    assert logged["request_id"] == answer["X-Request-ID"]
    assert (logged["view"], logged["method"], logged["status"], logged["level"]) == (
        "borrowers:index",
        "GET",
        200,
        "INFO",
    )
    assert "Lindqvist" not in log.getvalue()


def test_a_failed_request_is_logged_with_its_reference(
    viewer: Browser, portal_service: Sandbox, log: io.StringIO
) -> None:
    portal_service.fail_next("messages.list", status=401, times=3)
    answer = viewer.get("/messages/maya@harbor.example/")
    assert answer.status_code == 404
    failed = next(line for line in lines(log) if line["logger"] == "django.request")
    assert (failed["message"], failed["request_id"]) == ("Not Found", answer["X-Request-ID"])
    assert "harbor" not in log.getvalue()


def test_an_invalid_host_is_logged_with_its_reference(db: None, log: io.StringIO) -> None:
    answer = Browser(headers={"Host": "elsewhere.example"}).get("/")
    assert answer.status_code == 400
    assert {line["request_id"] for line in lines(log)} == {answer["X-Request-ID"]}


def test_a_form_that_cannot_be_read_is_one_line(viewer: Browser, log: io.StringIO) -> None:
    body = (
        f'--x\r\nContent-Disposition: form-data; name="f"; filename="{"n" * 2000}.csv"\r\n\r\n1\r\n--x--\r\n'
    )
    answer = viewer.post("/accounts/profile/", body, content_type="multipart/form-data; boundary=x")
    assert answer.status_code == 400
    rejected = [line for line in lines(log) if line["logger"] == "django.request"]
    assert [line.get("trace") for line in rejected] == [None]


def test_an_error_page_shows_the_logged_reference(viewer: Browser, log: io.StringIO) -> None:
    viewer.raise_request_exception = False
    databases.run("ALTER TABLE registry_record RENAME TO away")
    answer = viewer.get("/borrowers/")
    assert answer.status_code == 500
    told = next(line for line in lines(log) if "error" in line)
    page = answer.content.decode()
    assert f"Reference {told['request_id']}" in page
    assert "This page can’t be shown. Nothing was changed." in page


def test_an_exception_is_logged_without_personal_data(log: io.StringIO) -> None:
    try:
        raise ValueError(f"Maya Lindqvist has {SSN}")
    except ValueError:
        logging.getLogger("portal.test").exception(
            "No row for %s, %s or %s.", "maya@harbor.example", SSN, "(541) 555-0142"
        )
    (logged,) = lines(log)
    assert logged["message"].startswith("No row for [email], ")
    assert logged["error"] == "ValueError"
    assert logged["trace"][0].startswith("tests/portal/operations/test_logs.py:")
    assert not any(word in log.getvalue() for word in ("maya@", SSN, "555-0142", "Lindqvist"))


@pytest.mark.slow
def test_log_format_enables_json() -> None:
    command = [
        sys.executable,
        "-c",
        "import django, logging; django.setup(); logging.getLogger('x').error('Said.')",
    ]
    environment = os.environ | {"LOG_FORMAT": "json"}
    result = subprocess.run(
        command, env=environment, cwd=BASE_DIR, capture_output=True, text=True, check=True
    )
    assert json.loads(result.stderr)["message"] == "Said."


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        f"raise ValueError('Maya Lindqvist has {SSN}')",
        f"import threading; one = threading.Thread(target=int, args=['{SSN}']); one.start(); one.join()",
    ],
)
def test_an_uncaught_exception_is_one_line(code: str) -> None:
    environment = os.environ | {"LOG_FORMAT": "json"}
    command = [sys.executable, "manage.py", "shell", "--no-imports", "--command", code]
    result = subprocess.run(
        command, env=environment, cwd=BASE_DIR, capture_output=True, text=True, check=False
    )
    logged = json.loads(result.stderr)
    assert (logged["level"], logged["error"]) == ("CRITICAL", "ValueError")
    assert SSN not in result.stderr


def test_ids_are_logged_and_numbers_are_masked(log: io.StringIO) -> None:
    task, worker = "2d3c30e5-91f6-4238-8123-456789012349", "8a1be0c47f1234567890123456789047-26362"
    logging.getLogger("portal.jobs").warning(
        "Task id=%s worker_id=%s, %s, %s", task, worker, "541-555-0142", SSN
    )
    digits = ("12345678-1234-1234-1234-123456789012", "4" * 32, f"{worker}{SSN}"[-20:])
    logging.getLogger("portal.test").warning("%s, %s, %s", *digits)
    first, second = (line["message"] for line in lines(log))
    assert first.startswith(f"Task id={task} worker_id={worker}, [number], ")
    assert not re.search(r"\d", first.partition(worker)[2])
    assert not re.search(r"\d{4}", second)
