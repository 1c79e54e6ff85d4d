"""Lines for machines: each a JSON object with the reference of its request, and nothing about anybody."""

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

from portal.operations.logs import JsonFormatter
from portal.runtime.redaction import LogFilter
from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests import databases

SSN = "912-45-6789"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What ``LOG_FORMAT=json`` writes."""
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


def test_a_request_is_a_line_with_its_reference_and_without_its_words(
    viewer: Browser, log: io.StringIO
) -> None:
    answer = viewer.get("/borrowers/?q=Lindqvist")
    told = next(line for line in lines(log) if line["logger"] == "portal.requests")
    assert told["request_id"] == answer["X-Request-ID"]
    assert (told["view"], told["method"], told["status"], told["level"]) == (
        "borrowers:index",
        "GET",
        200,
        "INFO",
    )
    assert "Lindqvist" not in log.getvalue()


def test_what_failed_bears_the_same_reference(
    viewer: Browser, portal_service: Sandbox, log: io.StringIO
) -> None:
    portal_service.fail_next("messages.list", status=401, times=3)
    answer = viewer.get("/messages/maya@harbor.example/")
    assert answer.status_code == 404
    failed = next(line for line in lines(log) if line["logger"] == "django.request")
    assert (failed["message"], failed["request_id"]) == ("Not Found", answer["X-Request-ID"])
    assert "harbor" not in log.getvalue()


def test_what_fails_before_a_view_is_reached_bears_one_too(db: None, log: io.StringIO) -> None:
    answer = Browser(headers={"Host": "elsewhere.example"}).get("/")
    assert answer.status_code == 400
    assert {line["request_id"] for line in lines(log)} == {answer["X-Request-ID"]}


def test_the_page_of_what_broke_names_the_reference_of_its_line(viewer: Browser, log: io.StringIO) -> None:
    viewer.raise_request_exception = False
    databases.run("ALTER TABLE registry_record RENAME TO away")
    answer = viewer.get("/borrowers/")
    assert answer.status_code == 500
    told = next(line for line in lines(log) if "error" in line)
    page = answer.content.decode()
    assert f"Reference {told['request_id']}" in page
    assert "This page can’t be shown. Nothing was changed." in page


def test_an_exception_tells_where_it_happened_and_not_what_was_there(log: io.StringIO) -> None:
    try:
        raise ValueError(f"Maya Lindqvist has {SSN}")
    except ValueError:
        logging.getLogger("portal.test").exception(
            "No row for %s, %s or %s.", "maya@harbor.example", SSN, "(541) 555-0142"
        )
    (told,) = lines(log)
    assert told["message"].startswith("No row for [email], ")
    assert told["error"] == "ValueError"
    assert told["trace"][0].startswith("tests/portal/operations/test_logs.py:")
    assert not any(word in log.getvalue() for word in ("maya@", SSN, "555-0142", "Lindqvist"))


def test_the_setting_turns_it_on() -> None:
    command = [
        sys.executable,
        "-c",
        "import django, logging; django.setup(); logging.getLogger('x').error('Said.')",
    ]
    environment = os.environ | {"LOG_FORMAT": "json"}
    done = subprocess.run(command, env=environment, cwd=BASE_DIR, capture_output=True, text=True, check=True)
    assert json.loads(done.stderr)["message"] == "Said."


@pytest.mark.parametrize(
    "code",
    [
        f"raise ValueError('Maya Lindqvist has {SSN}')",
        f"import threading; one = threading.Thread(target=int, args=['{SSN}']); one.start(); one.join()",
    ],
)
def test_what_nobody_catches_is_one_line(code: str) -> None:
    environment = os.environ | {"LOG_FORMAT": "json"}
    command = [sys.executable, "manage.py", "shell", "--no-imports", "--command", code]
    done = subprocess.run(command, env=environment, cwd=BASE_DIR, capture_output=True, text=True, check=False)
    told = json.loads(done.stderr)
    assert (told["level"], told["error"]) == ("CRITICAL", "ValueError")
    assert SSN not in done.stderr


def test_an_identifier_is_told_whole_and_a_number_beside_it_is_not(log: io.StringIO) -> None:
    task, worker = "2d3c30e5-91f6-4238-8123-456789012349", "8a1be0c47f1234567890123456789047-26362"
    logging.getLogger("django_tasks").warning(
        "Task id=%s worker_id=%s, %s, %s", task, worker, "541-555-0142", SSN
    )
    digits = ("12345678-1234-1234-1234-123456789012", "4" * 32, f"{worker}{SSN}"[-20:])
    logging.getLogger("portal.test").warning("%s, %s, %s", *digits)
    first, second = (line["message"] for line in lines(log))
    assert first.startswith(f"Task id={task} worker_id={worker}, [number], ")
    assert not re.search(r"\d", first.partition(worker)[2])
    assert not re.search(r"\d{4}", second)
