"""`Client.check`, run against sandboxes that differ where the interface is ambiguous."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from servicing import Client, Finding
from servicing.sandbox import Sandbox
from tests.servicing.wire import Wire, response

OpenSandbox = Callable[..., Sandbox]


@pytest.fixture
def open_sandbox(tmp_path: Path) -> Iterator[OpenSandbox]:
    """Return a function that starts a sandbox with some messages."""
    running: list[Sandbox] = []

    def start(messages: int = 3, **choices: Any) -> Sandbox:
        service = Sandbox(tmp_path / f"{len(running)}.db", **choices).start()
        running.append(service)
        with service.world.store.write_transaction():
            for _ in range(messages):
                service.world.message("payment.succeeded", {})
        return service

    yield start
    for service in running:
        service.close()


def run_findings(service: Sandbox, *, known: dict[str, str] | None = None, **settings: Any) -> list[Finding]:
    with Client(service.url, client_id=service.client_id, secret=service.secret, **settings) as client:
        return list(client.check(**(known or {})))


def merge_settings(found: list[Finding]) -> dict[str, Any]:
    return {name: value for finding in found for name, value in finding.settings.items()}


def bad_sentences(found: list[Finding]) -> list[str]:
    return [finding.words for finding in found if finding.grade != "ok"]


def all_sentences(found: list[Finding]) -> str:
    return "\n".join(finding.words for finding in found)


def test_the_check_only_reads_and_finds_every_setting(open_sandbox: OpenSandbox) -> None:
    service = open_sandbox()
    found = run_findings(service)
    assert bad_sentences(found) == []
    assert {call.method for call in service.calls} == {"GET"}
    assert merge_settings(found) == {"message_filters": "query", "offset_counts": "pages0"}
    assert "A page has up to 1,000 messages; a larger limit is rejected." in all_sentences(found)


@pytest.mark.parametrize("ours", ["query", "body"])
@pytest.mark.parametrize("filters", ["query", "body", "both"])
def test_the_filter_location_is_detected_under_any_setting(
    open_sandbox: OpenSandbox, filters: str, ours: str
) -> None:
    found = merge_settings(run_findings(open_sandbox(filters=filters), message_filters=ours))
    assert found["message_filters"] == (ours if filters == "both" else filters)
    assert "message_content_type" not in found


@pytest.mark.parametrize(
    ("offset", "counts"), [("rows", "rows"), ("pages", "pages0"), ("pages-from-1", "pages1")]
)
@pytest.mark.parametrize("filters", ["query", "body"])
@pytest.mark.parametrize("messages", [3, 4, 60])
def test_the_offset_unit_is_detected(
    open_sandbox: OpenSandbox, offset: str, counts: str, filters: str, messages: int
) -> None:
    found = run_findings(open_sandbox(messages, offset=offset, filters=filters))
    assert merge_settings(found)["offset_counts"] == counts


@pytest.mark.parametrize("messages", [0, 1])
def test_the_offset_unit_is_unknown_with_too_few_messages(open_sandbox: OpenSandbox, messages: int) -> None:
    found = run_findings(open_sandbox(messages, offset="rows"))
    assert merge_settings(found) == {"message_filters": "query"}
    assert "What offset counts isn’t known" in all_sentences(found)
    assert bad_sentences(found) == []


def test_an_ignored_offset_is_reported(open_sandbox: OpenSandbox) -> None:
    service = open_sandbox(5)
    service.fail_next("messages.list", times=None, ignored_parameters=("offset",))
    found = run_findings(service)
    (problem,) = bad_sentences(found)
    assert problem.startswith("Offset is ignored")
    assert "offset_counts" not in merge_settings(found)


@pytest.mark.parametrize(
    ("cap", "is_refused", "sentence", "grade"),
    [
        (1000, True, "up to 1,000 messages; a larger limit is rejected.", "ok"),
        (137, True, "up to 137 messages; a larger limit is rejected.", "ok"),
        (40, True, "up to 40 messages; a larger limit is rejected. `messages.iterate` asks for 100", "bad"),
        (40, False, "up to 40 messages; a larger limit is lowered.", "ok"),
        (20_000, True, "10,000 messages or more.", "ok"),
    ],
)
def test_the_page_cap_is_detected(
    open_sandbox: OpenSandbox, cap: int, is_refused: bool, sentence: str, grade: str
) -> None:
    (found,) = (
        finding
        for finding in run_findings(open_sandbox(page_cap=cap, refuses_larger_pages=is_refused))
        if finding.words.startswith("A page")
    )
    assert sentence in found.words
    assert found.grade == grade


def test_ignored_filters_are_reported(open_sandbox: OpenSandbox) -> None:
    service = open_sandbox()
    service.fail_next("messages.list", times=None, ignored_parameters=("start_date", "end_date", "event"))
    found = run_findings(service)
    (problem,) = bad_sentences(found)
    assert "query (limit, no dates), body (limit, no dates)" in problem
    assert merge_settings(found) == {"offset_counts": "pages0"}
    service.heal()
    service.fail_next("messages.list", times=None, ignored_parameters=("end_date", "limit", "offset"))
    assert bad_sentences(run_findings(service)) == [
        "The service reads message filters in neither the query nor the body."
    ]


@pytest.mark.parametrize(("skew", "grade"), [(2, "ok"), (-20, "warn"), (20, "warn"), (45, "bad")])
def test_clock_skew_is_graded(open_sandbox: OpenSandbox, skew: float, grade: str) -> None:
    (clock,) = (
        finding for finding in run_findings(open_sandbox(clock_skew=skew)) if "clock" in finding.words
    )
    assert clock.grade == grade
    if grade != "ok":
        assert ("behind" if skew > 0 else "ahead of") in clock.words


def test_a_rejected_signature_stops_the_check_after_the_clock(open_sandbox: OpenSandbox) -> None:
    found = run_findings(open_sandbox(clock_skew=300))
    assert [finding.grade for finding in found] == ["bad", "bad"]
    assert "rejects these credentials" in found[0].words
    assert "300 seconds behind" in found[1].words or "299 seconds behind" in found[1].words
    found = run_findings(open_sandbox(secret="3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"), auth="none")
    assert [finding.grade for finding in found] == ["bad", "ok"]


@pytest.mark.parametrize("status", [401, 403, 200])
def test_an_unusual_status_for_an_unknown_path_is_reported(open_sandbox: OpenSandbox, status: int) -> None:
    (problem,) = bad_sentences(run_findings(open_sandbox(unknown_path_status=status)))
    assert f"returns {status}, not 404" in problem


def test_the_json_type_check_needs_existing_records(open_sandbox: OpenSandbox) -> None:
    service = open_sandbox(json_type_breaks_reads=False)
    world = service.world
    borrower = world.borrower()["uuid"]
    known = {
        "borrower_id": borrower,
        "loan_id": world.loan(borrower)["uuid"],
        "line_id": world.line(borrower)["uuid"],
        "application_id": world.line_application(borrower)["uuid"],
    }
    assert "breaks none of the four reads" in all_sentences(run_findings(service, known=known))
    del known["loan_id"]
    assert "breaks loans.get isn’t known" in all_sentences(run_findings(service, known=known))
    assert "loans.get, credit_lines.statement, repayments.of_line isn’t known" in all_sentences(
        run_findings(service)
    )


def test_an_unreachable_service_stops_the_check(open_sandbox: OpenSandbox) -> None:
    service = open_sandbox()
    found = []
    with Client(service.url, client_id=service.client_id, secret=service.secret, max_tries=1) as client:
        for finding in client.check():
            found.append(finding)
            service.stop()
    assert found[-1].grade == "bad"
    assert found[-1].words.startswith("The check stopped: ")


def test_unexpected_responses_become_findings(wire: Wire) -> None:
    for body, status in (
        ("<html>", 200),
        ("[]", 200),
        ('{"data": 7}', 200),
        ("{}", 404),
        ("", 302),
        ("", 500),
    ):
        wire.answer(response(body, status))
        with Client(wire.url, auth="none", max_tries=1, sleep=lambda seconds: None) as client:
            found = list(client.check())
        assert found[0].words
        assert any(finding.grade != "ok" for finding in found)
        assert not [finding for finding in found if finding.words.startswith("The check stopped")]


def run_check(service: Sandbox, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "servicing", "check", "--base-url", service.url]
    return subprocess.run(
        [*command, "--client-id", service.client_id, *options],
        env=os.environ | {"SERVICING_SECRET": service.secret} | environment,
        capture_output=True,
        text=True,
    )


def test_the_command_line_prints_the_settings_to_use(open_sandbox: OpenSandbox) -> None:
    result = run_check(open_sandbox(offset="rows", filters="body"))
    assert (result.returncode, result.stderr) == (0, "")
    assert "ok     Offset counts messages." in result.stdout
    assert "  message_filters='body'    SERVICING_MESSAGE_FILTERS=body\n" in result.stdout
    assert "  offset_counts='rows'      SERVICING_OFFSET_COUNTS=rows\n" in result.stdout


def test_the_command_line_exits_with_1_on_a_problem(open_sandbox: OpenSandbox) -> None:
    service = open_sandbox()
    result = run_check(service, SERVICING_SECRET="0123456789abcdef")
    assert result.returncode == 1
    assert "WRONG  The service rejects these credentials: The signature is not valid.\n" in result.stdout
    assert service.secret not in result.stdout + result.stderr
    result = run_check(service, SERVICING_SECRET="")
    assert (result.returncode, result.stderr) == (
        1,
        "The secret is missing; requests cannot be signed without it.\n",
    )


def test_the_command_line_accepts_certificates_and_a_proxy(open_sandbox: OpenSandbox, tmp_path: Path) -> None:
    service = open_sandbox()
    for option in ("--verify", "--cert"):
        result = run_check(service, option, str(tmp_path / "missing.pem"))
        assert (result.returncode, result.stdout) == (1, "")
        assert "cannot be read." in result.stderr
    run_check(service, "--base-url", "http://lender.invalid", "--proxy", service.url)
    assert {call.headers["Host"] for call in service.calls} == {"lender.invalid"}
