"""`make test-live` against the sandbox, in every form that a lender's service may have."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from servicing.sandbox import Sandbox
from tests.servicing import test_live
from tests.servicing.test_first_day import OpenSandbox, open_sandbox, seed_records

pytestmark = pytest.mark.slow

__all__ = ["open_sandbox"]  # pytest finds the fixture by this import.
ROOT = Path(__file__).parents[2]
(RECIPE,) = re.findall(
    r"^test-live:.*\n(?:\t@.*\n)*\t\$\(BIN\)/pytest (.*)$", (ROOT / "Makefile").read_text(), re.M
)
FIELD_KEY = "00112233-4455-6677-8899-aabbccddeeff"
UNDERSCORES = ("X_Client_Id", "X_Signature", "Epoch", "Content_MD5")
# What the service does, and the settings that it needs.
LENDERS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({}, {}),
    (
        {"auth": "bearer", "wrap": "data", "page_cap": 70},
        {"AUTH": "bearer", "ENVELOPE": "data", "PAGE_SIZE": "70"},
    ),
    (
        {"auth": "header", "auth_headers": ("Lender-Key",), "page_cap": 40, "message_total": "bare"},
        {"AUTH": "header", "AUTH_HEADERS": "Lender-Key", "PAGE_SIZE": "40"},
    ),
    (
        {"auth": "basic", "wrap_lists": "payments", "message_total": "beside", "offset": "rows"},
        {"AUTH": "basic", "LIST_ENVELOPE": "payments", "OFFSET_COUNTS": "rows"},
    ),
    (
        {
            "auth": "oauth2",
            "scope": "read write",
            "wrap_lists": "data",
            "page_cap": 40,
            "refuses_larger_pages": False,
        },
        {"AUTH": "oauth2", "SCOPE": "read write"},
    ),
    (
        {
            "auth": "none",
            "wrap_errors": "problem",
            "errors": "ok",
            "message_total": "meta",
            "offset": "pages-from-1",
        },
        {"AUTH": "none"},
    ),
    (
        {"epoch_unit": "s", "auth_headers": UNDERSCORES, "filters": "body"},
        {
            "EPOCH_UNIT": "s",
            "AUTH_HEADERS": ", ".join(UNDERSCORES),
            "MESSAGE_FILTERS": "body",
            "MESSAGE_CONTENT_TYPE": "off",
        },
    ),
    (
        {"values": "hex", "value_iv": ":", "value_key": "sha256", "field_key": FIELD_KEY},
        {"VALUE_ENCODING": "hex", "VALUE_IV": ":", "VALUE_KEY": "sha256", "FIELD_KEY": FIELD_KEY},
    ),
    (
        {
            "auth": "oauth2",
            "wrap": "result",
            "wrap_lists": "payments",
            "wrap_errors": "result",
            "errors": "oauth",
            "message_total": "bare",
            "page_cap": 40,
            "filters": "body",
            "offset": "rows",
        },
        {
            "AUTH": "oauth2",
            "ENVELOPE": "result",
            "LIST_ENVELOPE": "payments",
            "PAGE_SIZE": "40",
            "MESSAGE_FILTERS": "body",
            "OFFSET_COUNTS": "rows",
        },
    ),
]


def run_live(
    service: Sandbox, known: Mapping[str, str], settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the recipe of `make test-live` with these settings, without the prefix of their variables."""
    settings = {"CLIENT_ID": service.client_id, "SECRET": service.secret} | dict(settings or {})
    if settings.get("AUTH") in ("bearer", "header"):
        settings["TOKEN"] = service.token
    if settings.get("AUTH") == "oauth2":
        settings["TOKEN_URL"] = service.token_url
    variables = {f"SERVICING_{name}": value for name, value in settings.items()}
    variables |= {f"LIVE_{name.removesuffix('_id').upper()}": value for name, value in known.items()}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *RECIPE.split()],
        cwd=ROOT,
        env=os.environ | {"SERVICING_LIVE_URL": service.url} | variables,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("choices", "needed"), LENDERS)
def test_it_passes_against_any_lender_and_only_reads(
    open_sandbox: OpenSandbox, choices: dict[str, Any], needed: dict[str, str]
) -> None:
    service = open_sandbox(130, **choices)
    known = seed_records(service)
    done = run_live(service, known, needed)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.splitlines()[-1].startswith("8 passed in ")
    assert {call.path for call in service.calls if call.method != "GET"} <= {"/oauth/token"}
    assert not [call for call in service.calls if call.status != 200]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "fault", "sentence"),
    [
        ("loans.get", {"changes": {"amount": "a lot"}}, "Loan: amount is not an exact number"),
        (
            "loans.get",
            {"changes": {"opening_date": 7, "term": "x"}},
            "Loan: opening_date is not a date; Loan: term ",
        ),
        ("repayments.of_line", {"changes": {"fees": 0.125}}, "Repayment: fees has more than 2 decimals"),
        (
            "applications.get_for_line",
            {"changes": {"offers": [{"uuid": "o-1", "amount": 1.005}]}},
            "Application: amount has more than 2 decimals",
        ),
        ("messages.list", {"total": 99}, "130 messages were read, but the service counts 99."),
        ("messages.list", {"total": 131}, "130 of 131 records were read."),
        ("messages.list", {"ignored_parameters": ("offset",)}, "IncompleteList"),
        (
            "messages.list",
            {"changes": {"created_at": "2031-01-01 10:00:00 PST"}},
            "Check SERVICING_TIME_ZONE.",
        ),
        ("credit_lines.statement", {"status": 500}, "The lending service returned status 500."),
    ],
)
def test_it_fails_where_it_must(
    open_sandbox: OpenSandbox, operation: str, fault: dict[str, Any], sentence: str
) -> None:
    service = open_sandbox(130)
    known = seed_records(service)
    service.fail_next(operation, times=None, **fault)
    done = run_live(service, known)
    assert done.returncode == 1
    assert sentence in done.stdout
    for secret in (service.secret, "a lot", "31415.92"):
        assert secret not in done.stdout + done.stderr


def test_fields_that_the_interface_lacks_are_a_warning(open_sandbox: OpenSandbox) -> None:
    service = open_sandbox()
    known = seed_records(service)
    service.fail_next("loans.get", times=None, changes={"hue": 1, "grade": "A"})
    done = run_live(service, known)
    assert done.returncode == 0
    assert "The interface has no Loan.hue." in done.stdout
    assert "8 passed, 2 warnings in " in done.stdout


def test_reads_without_an_id_are_skipped_with_a_sentence(open_sandbox: OpenSandbox) -> None:
    service = open_sandbox()
    known = seed_records(service)
    done = run_live(service, {"borrower_id": known["borrower_id"], "loan_id": known["loan_id"]})
    assert done.returncode == 0
    assert "LIVE_LINE not set, so this isn’t read." in done.stdout
    assert "LIVE_APPLICATION not set, so this isn’t read." in done.stdout
    assert "5 passed, 3 skipped in " in done.stdout


def test_secrets_may_be_in_files(open_sandbox: OpenSandbox, tmp_path: Path) -> None:
    service = open_sandbox()
    (tmp_path / "secret").write_text(f"{service.secret}\n")
    assert run_live(service, {}, {"SECRET": "wrong", "SECRET_FILE": str(tmp_path / "secret")}).returncode == 0


def test_every_setting_of_the_portals_client_is_read() -> None:
    gateway = (ROOT / "portal/gateway/client.py").read_text()
    names = {name.lower() for name in re.findall(r"SERVICING_([A-Z_]+)", gateway)}
    read = {*test_live.TEXTS, *test_live.NUMBERS}
    source = Path(test_live.__file__).read_text()
    read |= set(re.findall(r'(?:setting|imported)\("(\w+)"\)', source))
    assert names - read == {"url"}


@pytest.mark.parametrize(
    ("walks", "total", "words"),
    [
        ((["a", "b"], ["a", "b"]), 2, ""),
        ((["a", "b"], ["a", "b"]), None, ""),
        ((["a", "a"], ["a"]), None, "A message was read twice."),
        ((["a", "b"], ["a"]), None, "Pages of another size lose messages: 1 of 2 differ."),
        ((["a"], ["a"]), 2, "1 messages were read, but the service counts 2."),
    ],
)
def test_walks_are_compared(walks: tuple[list[str], list[str]], total: int | None, words: str) -> None:
    assert test_live.compare_walks(*walks, total) == words
