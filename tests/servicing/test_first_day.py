"""`Client.first_day` over real HTTP, against services that differ where the interface is ambiguous."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from servicing import Client, FirstDay
from servicing.__main__ import CHOICES, RECORD_KINDS, SECRETS, TEXTS, build_client, build_parser
from servicing.first_day.reads import READS
from servicing.sandbox import Sandbox
from servicing.sandbox.endpoints import OPERATIONS
from tests.servicing.wire import Wire, response

OpenSandbox = Callable[..., Sandbox]

MAX_REFUSED = 3
UNDERSCORES = ("X_Client_Id", "X_Signature", "Epoch", "Content_MD5")
OTHER_SECRET = "3f2b8c1e-9d47-4a60-b1c5-7e8f90a2d364"
# Values of records, none of which a report may contain.
BORROWER = {
    "first_name": "Quillback Orchards LLC",
    "email": "office@quillback.example",
    "phone": "5415550187",
    "EIN": "930184475",
    "key_people": [
        {"first_name": "Wilhelmina", "last_name": "Ashdown", "email": "w.ashdown@quillback.example"}
    ],
}
VALUES = ("Quillback", "Wilhelmina", "Ashdown", "5415550187", "930184475", "31415.92", "27182.81", "1618.03")

PAYLOAD = {"uuid": "p-1", "amount": "1618.03"}


@pytest.fixture
def open_sandbox(tmp_path: Path) -> Iterator[OpenSandbox]:
    """Return a function that starts a sandbox with some messages."""
    running: list[Sandbox] = []

    def start(messages: int = 3, payload: Any = PAYLOAD, **choices: Any) -> Sandbox:
        service = Sandbox(tmp_path / f"{len(running)}.db", **choices).start()
        running.append(service)
        with service.world.store.write_transaction():
            for _ in range(messages):
                service.world.message("payment.succeeded", payload)
        return service

    yield start
    for service in running:
        service.close()


def seed_records(service: Sandbox) -> dict[str, str]:
    """Add a borrower with every kind of record; return the IDs as arguments of `first_day`."""
    world = service.world
    borrower = world.borrower(**BORROWER)["uuid"]
    known = {
        "borrower_id": borrower,
        "loan_id": world.loan(borrower, amount="31415.92", paid=2)["uuid"],
        "line_id": world.line(borrower, limit="27182.81", drawn="100")["uuid"],
        "application_id": world.line_application(borrower)["uuid"],
    }
    for account in (known["loan_id"], known["line_id"]):
        world.repayment(account, amount="1618.03")
    world.statement(known["line_id"], "2026-01-15")
    return known


def first_day(service: Sandbox, known: Mapping[str, str] | None = None, **settings: Any) -> FirstDay:
    """Run it, and check what holds in any case: what it sends, how often it is refused, and what it never says."""
    before = len(service.calls)
    arguments = {"client_id": service.client_id, "secret": service.secret, **settings}
    with Client(service.url, **arguments) as client:
        report = client.first_day(**(known or {}))
    calls = service.calls[before:]
    token_path = arguments.get("token_url", "").removeprefix(service.url)
    assert {(call.method, call.path) for call in calls if call.method != "GET"} <= {("POST", token_path)}
    assert sum(call.status in range(400, 500) for call in calls) <= MAX_REFUSED
    text = report.text()
    kept_out = {service.secret, service.token, *VALUES, *(known or {}).values()}
    assert [value for value in kept_out if value in text] == []
    assert "@" not in text
    assert [read.name for read in report.reads] == ["messages", *(read.name for read in READS)]
    return report


def problems(report: FirstDay) -> list[str]:
    return [found.words for found in report.findings if found.grade != "ok"]


def read_of(report: FirstDay, name: str) -> Any:
    (read,) = (read for read in report.reads if read.name == name)
    return read


def test_a_service_as_documented_is_ready(open_sandbox: OpenSandbox) -> None:
    service = open_sandbox()
    known = seed_records(service)
    report = first_day(service, known)
    assert (problems(report), report.verdict, report.is_usable) == ([], "Ready.", True)
    assert report.settings == {"offset_counts": "pages0"}
    assert report.setting_lines == ["SERVICING_OFFSET_COUNTS=pages0"]
    assert {call.method for call in service.calls} == {"GET"}
    assert {call.operation for call in service.calls} == {
        name for name, operation in OPERATIONS.items() if operation.method == "GET"
    } - {"documents.fetch"}
    assert [(read.problem, read.remarks) for read in report.reads] == [("", [])] * (1 + len(READS))
    text = report.text()
    assert "  amount                      number, 2 decimals\n" in text
    assert "  created_at      time, zone US/Pacific\n" in text
    assert "  opening_date               date, YYYY-MM-DD\n" in text
    assert "  status.decision                      APPROVED\n" in text
    assert text.endswith("\n\nReady.\n")


@pytest.mark.slow
def test_the_settings_of_a_ready_report_are_only_those_found_out(open_sandbox: OpenSandbox) -> None:
    for messages in (0, 1):
        report = first_day(open_sandbox(messages, offset="rows"))
        assert report.settings == {}
        assert "What offset counts isn’t known until there are more messages." in report.text()
    assert "look   The list of messages is empty" in first_day(open_sandbox(0)).text()


@pytest.mark.core
class TestCredentials:
    @pytest.mark.parametrize(
        ("auth", "advice"),
        [
            (
                "bearer",
                "SERVICING_AUTH=bearer with SERVICING_TOKEN, or a token from OAuth 2: SERVICING_AUTH=oauth2",
            ),
            (
                "oauth2",
                "SERVICING_AUTH=bearer with SERVICING_TOKEN, or a token from OAuth 2: SERVICING_AUTH=oauth2",
            ),
            ("basic", "SERVICING_AUTH=basic with SERVICING_CLIENT_ID and SERVICING_SECRET."),
            ("header", "SERVICING_AUTH=header with SERVICING_TOKEN and SERVICING_AUTH_HEADERS."),
        ],
    )
    def test_the_scheme_that_the_service_asks_for_is_named(
        self, open_sandbox: OpenSandbox, auth: str, advice: str
    ) -> None:
        service = open_sandbox(auth=auth)
        report = first_day(service, seed_records(service))
        (problem,) = problems(report)
        assert advice in problem
        assert ("SERVICING_AUTH_HEADERS=X-Api-Key." in problem) == (auth == "header")
        assert len(service.calls) == 1  # Another signature would not help.
        assert {read.problem for read in report.reads} == {
            "Not tried. The service rejects these credentials."
        }
        arguments: dict[str, Any] = {
            "bearer": {"token": service.token},
            "header": {"token": service.token, "auth_headers": ["X-Api-Key"]},
            "oauth2": {"token_url": service.token_url},
        }.get(auth, {})
        assert first_day(service, seed_records(service), auth=auth, **arguments).verdict == "Ready."

    def test_a_service_without_credentials_accepts_any(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(auth="none")
        assert first_day(service, seed_records(service)).verdict == "Ready."

    @pytest.mark.parametrize("configured", ["ms", "s"])
    def test_the_unit_of_the_epoch_is_found(self, open_sandbox: OpenSandbox, configured: str) -> None:
        other = "s" if configured == "ms" else "ms"
        report = first_day(open_sandbox(epoch_unit=other), epoch_unit=configured)
        assert problems(report) == [f"The service takes another signature: set SERVICING_EPOCH_UNIT={other}."]

    def test_header_names_with_underscores_are_found(self, open_sandbox: OpenSandbox) -> None:
        report = first_day(open_sandbox(auth_headers=UNDERSCORES))
        names = "X_Client_Id,X_Signature,Epoch,Content_MD5"
        assert problems(report) == [
            f"The service takes another signature: set SERVICING_AUTH_HEADERS={names}."
        ]

    def test_both_are_found_in_one_run(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(auth_headers=UNDERSCORES, epoch_unit="s", page_cap=40)
        known = seed_records(service)
        report = first_day(service, known)
        assert report.settings == {"epoch_unit": "s", "auth_headers": UNDERSCORES}
        # The three calls that may be refused are used up.
        assert report.untried == ["page size", "message filters"]
        again = "3 calls were refused already. Set what is named here, and run this again."
        assert f"Where message filters are read isn’t known: {again}" in problems(report)
        assert read_of(report, "loan").problem == f"Not tried. {again}"
        report = first_day(service, known, **report.settings)
        assert report.settings == {"page_size": 25, "offset_counts": "pages0"}

    def test_a_wrong_secret_leads_to_the_settings_of_the_scheme(self, open_sandbox: OpenSandbox) -> None:
        (problem,) = problems(first_day(open_sandbox(), secret=OTHER_SECRET))
        assert problem.startswith("The service rejects these credentials: The signature is not valid. Check ")
        settings = "SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_AUTH_HEADERS and SERVICING_EPOCH_UNIT."
        assert f"Check {settings} Or the lender wants something else: a bearer token: " in problem

    def test_no_answer_to_another_signature_settles_nothing(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        service.fail_next("messages.list", status=403)
        service.fail_next("messages.list", status=503, times=2)
        report = first_day(service)
        assert report.settings.keys() <= {"offset_counts"}

    def test_a_wrong_token_leads_to_it(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(auth="bearer")
        (problem,) = problems(first_day(service, auth="bearer", token="another"))
        assert "The token is not valid. Check SERVICING_TOKEN. Or " in problem

    def test_a_token_that_the_service_repeats_is_hidden(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        service.fail_next(
            "*", status=401, message="Key sk_live-77Az~Qq+9= isn’t for GET /v1/users", times=None
        )
        report = first_day(service, auth="bearer", token="sk_live-77Az~Qq+9=")
        assert "Key [hidden] isn’t for GET /v1/users. Check SERVICING_TOKEN." in report.verdict

    @pytest.mark.parametrize(
        ("challenge", "words"),
        [
            (
                "Digest realm=lender, nonce=1",
                "It asks for “digest”, which needs a session of your own: SERVICING_S",
            ),
            ("<Digest>", "Check SERVICING_CLIENT_ID"),
        ],
    )
    def test_another_challenge_needs_a_session(
        self, open_sandbox: OpenSandbox, challenge: str, words: str
    ) -> None:
        service = open_sandbox()
        service.fail_next("*", status=401, headers={"WWW-Authenticate": challenge}, times=None)
        assert words in first_day(service).verdict

    def test_a_token_that_ended_early_is_renewed(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(auth="oauth2")
        with Client(
            service.url,
            client_id=service.client_id,
            secret=service.secret,
            auth="oauth2",
            token_url=service.token_url,
        ) as client:
            assert client.first_day().is_usable
            service.expire_tokens()
            assert client.first_day().is_usable

    @pytest.mark.parametrize("path", ["", "/elsewhere"])
    def test_a_token_that_is_not_given_leads_to_its_settings(
        self, open_sandbox: OpenSandbox, path: str
    ) -> None:
        service = open_sandbox(auth="oauth2", scope="loans")
        report = first_day(
            service, auth="oauth2", token_url=(service.url + path if path else service.token_url)
        )
        (problem,) = problems(report)
        assert "The token service rejected these credentials: " in problem
        assert (
            "Check SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_TOKEN_URL and SERVICING_SCOPE." in problem
        )

    def test_an_unreachable_token_service_is_named(self, open_sandbox: OpenSandbox) -> None:
        report = first_day(open_sandbox(), auth="oauth2", token_url="http://127.0.0.1:9/token")
        assert "The token service didn’t respond: the connection was refused. Check " in report.verdict
        assert "SERVICING_TOKEN_URL" in report.verdict

    @pytest.mark.parametrize(("skew", "grade"), [(2, "ok"), (-20, "warn"), (20, "warn"), (45, "bad")])
    def test_clock_skew_is_graded(self, open_sandbox: OpenSandbox, skew: float, grade: str) -> None:
        report = first_day(open_sandbox(clock_skew=skew))
        (clock,) = (found for found in report.findings if "clock" in found.words)
        assert clock.grade == grade
        if grade != "ok":
            assert ("behind" if skew > 0 else "ahead of") in clock.words

    @pytest.mark.parametrize(("configured", "is_named"), [("X-Api-Key", True), ("lender_key", False)])
    def test_the_header_of_an_api_key_is_named_if_it_is_another(
        self, open_sandbox: OpenSandbox, configured: str, is_named: bool
    ) -> None:
        service = open_sandbox(auth="header", auth_headers=["Lender_Key"])
        (problem,) = problems(first_day(service, auth="header", token="another", auth_headers=[configured]))
        assert "Check SERVICING_TOKEN and SERVICING_AUTH_HEADERS." in problem
        assert ("Its header: SERVICING_AUTH_HEADERS=Lender_Key." in problem) == is_named

    def test_a_wrong_clock_comes_before_the_credentials(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(clock_skew=300)
        clock, credentials = problems(first_day(service))
        assert re.match(r"This machine's clock is (299|300) seconds behind the service's\.", clock)
        assert credentials.endswith(" Correct the clock first.")
        assert len(service.calls) == 1

    def test_without_signatures_the_clock_is_only_mentioned(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(clock_skew=300, auth="basic")
        report = first_day(service, auth="basic")
        assert report.is_usable
        assert "look   This machine's clock is " in report.text()


class TestPages:
    @pytest.mark.slow
    @pytest.mark.parametrize(("cap", "size"), [(70, 50), (40, 25), (20, 20), (7, 7)])
    @pytest.mark.parametrize("errors", ["message", "oauth", "list", "ok"])
    @pytest.mark.parametrize("wrap_errors", ["", "problem"])
    def test_a_smaller_page_is_found(
        self, open_sandbox: OpenSandbox, cap: int, size: int, errors: str, wrap_errors: str
    ) -> None:
        report = first_day(open_sandbox(120, page_cap=cap, errors=errors, wrap_errors=wrap_errors))
        (problem,) = problems(report)
        assert problem == (
            f"The service refuses pages of 100 messages, but not of {size}: set SERVICING_PAGE_SIZE={size}."
        )
        assert report.settings == {"page_size": size, "offset_counts": "pages0"}

    @pytest.mark.parametrize(("cap", "messages", "size"), [(40, 2, 25), (7, 2, 2), (40, 0, 25), (7, 0, None)])
    def test_few_messages_in_a_bare_list_leave_the_size_to_a_try(
        self, open_sandbox: OpenSandbox, cap: int, messages: int, size: int | None
    ) -> None:
        report = first_day(open_sandbox(messages, page_cap=cap, message_total="bare"))
        assert report.settings.get("page_size") == size
        assert ("ask the lender for SERVICING_PAGE_SIZE." in report.text()) == (size is None)

    @pytest.mark.parametrize("total", ["pagination", "beside", "meta"])
    def test_a_page_of_fewer_than_all_messages_shows_its_size(
        self, open_sandbox: OpenSandbox, total: str
    ) -> None:
        report = first_day(open_sandbox(60, page_cap=20, message_total=total))
        assert (report.settings["page_size"], report.untried) == (20, [])

    @pytest.mark.parametrize("total", ["pagination", "beside", "meta"])
    @pytest.mark.parametrize("cap", [70, 40])
    def test_a_lowered_limit_is_fine(self, open_sandbox: OpenSandbox, cap: int, total: str) -> None:
        report = first_day(open_sandbox(120, page_cap=cap, refuses_larger_pages=False, message_total=total))
        assert problems(report) == []

    @pytest.mark.parametrize("total", ["pagination", "beside", "meta", "bare"])
    @pytest.mark.parametrize("messages", [4, 120])
    def test_a_total_is_read_wherever_it_is(
        self, open_sandbox: OpenSandbox, total: str, messages: int
    ) -> None:
        report = first_day(open_sandbox(messages, message_total=total))
        assert problems(report) == []
        assert report.settings == {"offset_counts": "pages0"}
        assert ("The message list says no total" in report.text()) == (total == "bare")


class TestFilters:
    @pytest.mark.parametrize("ours", ["query", "body"])
    @pytest.mark.parametrize("filters", ["query", "body", "both"])
    def test_their_place_is_found(self, open_sandbox: OpenSandbox, filters: str, ours: str) -> None:
        report = first_day(open_sandbox(filters=filters), message_filters=ours)
        if filters in (ours, "both"):
            assert problems(report) == []
            assert f"Message filters are read in the {ours}.\n" in report.text()
        else:
            setting = f"set SERVICING_MESSAGE_FILTERS={filters}."
            assert problems(report) == [f"Message filters are read in the {filters}: {setting}"]
            assert report.settings == {"message_filters": filters, "offset_counts": "pages0"}

    @pytest.mark.parametrize("ours", ["query", "body"])
    def test_a_body_may_have_to_be_untyped(
        self, open_sandbox: OpenSandbox, monkeypatch: pytest.MonkeyPatch, ours: str
    ) -> None:
        operation = replace(OPERATIONS["messages.list"], refuses_json_type=True)
        monkeypatch.setitem(OPERATIONS, "messages.list", operation)
        service = open_sandbox(filters="body")
        report = first_day(service, message_filters=ours)
        if ours == "query":
            assert report.setting_lines[:2] == [
                "SERVICING_MESSAGE_FILTERS=body",
                "SERVICING_MESSAGE_CONTENT_TYPE=off",
            ]
            assert first_day(service, **report.settings).is_usable
        else:
            assert (
                "The message list can’t be read: The lending service returned status 500." in report.verdict
            )

    def test_a_typed_body_is_preferred_to_an_untyped_one(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(filters="body")
        assert problems(first_day(service, message_filters="body", message_content_type=False)) == []
        service = open_sandbox(filters="query")
        report = first_day(service, message_filters="body", message_content_type=False)
        settings = "SERVICING_MESSAGE_FILTERS=query and SERVICING_MESSAGE_CONTENT_TYPE=on"
        assert problems(report) == [f"Message filters are read in the query: set {settings}."]

    def test_a_size_is_found_where_the_limit_is_read(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(120, filters="body", page_cap=40, message_total="meta")
        assert first_day(service).settings == {
            "message_filters": "body",
            "offset_counts": "pages0",
            "page_size": 25,
        }

    def test_ignored_dates_are_reported_and_no_obstacle(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        service.fail_next("messages.list", times=None, ignored_parameters=("start_date", "end_date", "event"))
        report = first_day(service)
        (problem,) = problems(report)
        assert "query (limit, no dates), body (limit, no dates)" in problem
        assert (report.is_usable, report.settings) == (True, {"offset_counts": "pages0"})

    def test_filters_ignored_everywhere_are_a_question_for_the_lender(
        self, open_sandbox: OpenSandbox
    ) -> None:
        service = open_sandbox()
        service.fail_next("messages.list", times=None, ignored_parameters=("end_date", "limit", "offset"))
        neither, offset = problems(first_day(service))
        assert neither == (
            "The service reads message filters in neither the query nor the body. "
            "Ask the lender where limit, offset, start_date and end_date go."
        )
        assert offset.startswith("Offset is ignored")

    def test_refused_filters_are_quoted(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(filters="query")
        service.fail_next("messages.list", times=None, status=400, message="limit isn’t wanted here")
        assert "The message list can’t be read: limit isn’t wanted here." in first_day(service).verdict


class TestOffset:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("offset", "counts"), [("rows", "rows"), ("pages", "pages0"), ("pages-from-1", "pages1")]
    )
    @pytest.mark.parametrize("filters", ["query", "body"])
    @pytest.mark.parametrize("messages", [2, 3, 60])
    @pytest.mark.parametrize("total", ["pagination", "bare"])
    def test_its_unit_is_found(
        self, open_sandbox: OpenSandbox, offset: str, counts: str, filters: str, messages: int, total: str
    ) -> None:
        report = first_day(
            open_sandbox(messages, offset=offset, filters=filters, message_total=total),
            message_filters=filters,
        )
        assert report.settings == {"offset_counts": counts}
        assert report.is_usable
        needs_setting = total == "bare" and counts == "rows"
        assert (
            any("set SERVICING_OFFSET_COUNTS=rows." in words for words in problems(report)) == needs_setting
        )

    def test_another_unit_than_the_configured_one_is_wrong(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(offset="rows")
        report = first_day(service, offset_counts="pages0")
        assert problems(report) == ["Offset counts messages: set SERVICING_OFFSET_COUNTS=rows."]
        assert not report.is_usable
        assert first_day(service, offset_counts="rows").verdict != report.verdict

    @pytest.mark.parametrize("total", ["pagination", "bare"])
    def test_an_ignored_offset_is_reported(self, open_sandbox: OpenSandbox, total: str) -> None:
        service = open_sandbox(5, message_total=total)
        service.fail_next("messages.list", times=None, ignored_parameters=("offset",))
        report = first_day(service)
        (problem,) = problems(report)
        assert problem.startswith("Offset is ignored, so only the first page can be read.")
        assert "offset_counts" not in report.settings

    def test_a_new_message_in_between_leaves_it_open(
        self, open_sandbox: OpenSandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        operation = OPERATIONS["messages.list"]

        def list_messages(request: Any) -> Any:
            answer = operation.handler(request)
            if request.query.get("offset") == "2":
                service.world.message("payment.succeeded", {})
            return answer

        monkeypatch.setitem(OPERATIONS, "messages.list", replace(operation, handler=list_messages))
        service = open_sandbox(5)
        (problem,) = problems(first_day(service))
        assert problem.endswith("because messages arrived in between. Run this again.")

    def test_a_refused_offset_is_quoted(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        for _ in range(4):
            service.fail_next("messages.list", delay=0)
        service.fail_next("messages.list", status=400, message="offset is too large")
        report = first_day(service)
        assert "What offset counts isn’t known: offset is too large." in problems(report)


class TestEnvelopes:
    @pytest.mark.parametrize("name", ["data", "result"])
    def test_a_wrapped_object_is_opened(self, open_sandbox: OpenSandbox, name: str) -> None:
        service = open_sandbox(wrap=name)
        known = seed_records(service)
        report = first_day(service, known)
        assert problems(report) == [f"Objects are wrapped in “{name}”: set SERVICING_ENVELOPE={name}."]
        assert read_of(report, "loan").fields

    @pytest.mark.parametrize("name", ["data", "items", "payments"])
    def test_a_wrapped_list_is_opened(self, open_sandbox: OpenSandbox, name: str) -> None:
        service = open_sandbox(wrap_lists=name)
        report = first_day(service, seed_records(service))
        if name == "payments":
            setting = "set SERVICING_LIST_ENVELOPE=payments."
            assert problems(report) == [f"Lists of repayments are wrapped in “payments”: {setting}"]
        else:
            assert problems(report) == []

    def test_several_envelopes_of_objects_cannot_be_set(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        known = seed_records(service)
        for operation, name in (("loans.get", "loan"), ("credit_lines.statement", "line")):
            kind, record = name, known[f"{name}_id"]
            body = service.world.store.require(kind, record).body
            service.fail_next(operation, times=None, body={name: body | {"statements": []}})
        report = first_day(service, known)
        (problem,) = problems(report)
        assert "different members: the loan in “loan”, the statement in “line”." in problem
        assert "envelope" not in report.settings

    @pytest.mark.parametrize("errors", ["message", "oauth", "list", "ok"])
    @pytest.mark.parametrize("wrap_errors", ["", "data", "problem"])
    def test_the_words_of_an_error_are_found_in_any_form(
        self, open_sandbox: OpenSandbox, errors: str, wrap_errors: str
    ) -> None:
        service = open_sandbox(errors=errors, wrap_errors=wrap_errors)
        known = seed_records(service)
        service.fail_next("loans.get", status=409, message="The loan is being moved", times=None)
        report = first_day(service, known)
        (problem,) = problems(report)
        assert "The loan can’t be read: " in problem
        assert "The loan is being moved." in problem


class TestAnswers:
    def test_differences_of_fields_are_listed(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        known = seed_records(service)
        changes = {
            "hue": "Wilhelmina",
            "amount": "Ashdown",
            "opening_date": "Quillback",
            "status": "IN_LIMBO",
            "product": "Wilhelmina’s orchard",
            "servicing_committed_at": "2026-01-01 10:00:00 IST",
            "external_id": "2026-01-01 10:00:00 by Ashdown",
        }
        service.fail_next("loans.get", changes=changes, times=None)
        service.fail_next(
            "repayments.of_loan", changes={"payment_type": "CRYPTO", "amount": "1618.03"}, times=None
        )
        report = first_day(service, known)
        assert problems(report) == [
            "The loan has fields of another type: amount is not an exact number; opening_date is not a date.",
            "The zone of external_id, servicing_committed_at in the loan isn’t certain. "
            "Such times are shown as they were sent.",
        ]
        loan = read_of(report, "loan")
        assert loan.unknown == ["hue"]
        assert loan.unreadable == ["amount is not an exact number", "opening_date is not a date"]
        assert loan.new_values == ["status: IN_LIMBO"]
        assert read_of(report, "loan repayments").new_values == ["payment_type: CRYPTO"]
        text = report.text()
        assert "  Unknown: hue\n" in text
        assert "  Values not in the interface: status: IN_LIMBO\n" in text
        assert "time in an uncertain zone (IST)\n" in text
        assert "time in an uncertain zone (other text)\n" in text
        assert "  amount                      number, 2 decimals, as text\n" in text

    def test_names_of_members_that_are_values_are_hidden(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        known = seed_records(service)
        named = {"w.ashdown@quillback.example": 1, known["loan_id"]: {"5415550187": 2}}
        service.fail_next("loans.get", changes=named, times=None)
        assert "  [hidden].[hidden] " in first_day(service, known).text()

    def test_inner_records_are_compared_too(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        known = seed_records(service)
        offers = [{"uuid": "o-1", "amount": 1, "hue": 2}, {"uuid": "o-2", "term": "long"}]
        service.fail_next("applications.get_for_line", changes={"offers": offers}, times=None)
        application = read_of(first_day(service, known), "application")
        assert application.unknown == ["offers.hue"]
        assert len(application.unreadable) == 1
        assert "term" in application.unreadable[0]

    def test_absent_fields_are_missing_in_every_record(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        known = seed_records(service)
        rows = [
            {"uuid": "p-1", "amount": 1, "status": "SUCCEEDED"},
            {"uuid": "p-2", "amount": "2.500", "fees": 1},
        ]
        service.fail_next("repayments.of_loan", body=rows, times=None)
        report = first_day(service, known)
        read = read_of(report, "loan repayments")
        assert (read.count, read.problem) == (2, "")
        assert not {"amount", "status", "fees", "uuid"} & set(read.absent)
        assert {"effective_date", "payment_type"} <= set(read.absent)
        assert "  amount  whole number or number, 3 decimals, as text\n" in report.text()

    def test_an_empty_list_and_messages_without_an_id_are_named(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        known = seed_records(service)
        service.fail_next("repayments.of_line", body=[], times=None)
        service.world.replace_message(service.world.messages()[0]["uuid"], {"event": "payment.succeeded"})
        report = first_day(service, known)
        assert problems(report) == [
            "1 of 3 messages have no usable ID.",
            "The list of line repayments is empty, so its records couldn’t be compared.",
        ]

    def test_reads_without_ids_are_left_out(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        known = seed_records(service)
        report = first_day(service)
        every_read = ", ".join(read.name for read in READS)
        assert report.verdict == f"Ready, as far as it was tried. Left: {every_read}."
        assert read_of(report, "statement").problem == "Not tried. No borrower and no line was given."
        del known["line_id"]
        left = first_day(service, known).verdict.partition("Left: ")[2]
        assert left == "statement, line repayments."

    def test_records_that_do_not_exist_are_to_be_checked(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        known = seed_records(service)
        report = first_day(service, known | {"loan_id": known["line_id"]})
        of_loan = [read.name for read in READS if "loan_id" in read.ids]
        unread = [words for words in problems(report) if "can’t be read" in words]
        for name, words in zip(of_loan, unread, strict=True):
            assert words.startswith(f"The {name} can’t be read: ")
            assert words.endswith(" Check its IDs.")
        assert report.verdict.startswith(f"Ready, as far as it was tried. Left: {', '.join(of_loan)}")
        report = first_day(service, known | {"borrower_id": known["line_id"]})
        assert report.is_usable
        assert report.verdict.startswith("Ready, as far as it was tried. Left: application, loan, ")
        again = "3 calls were refused already. Set what is named here, and run this again."
        assert read_of(report, "line repayments").problem == f"Not tried. {again}"

    def test_another_record_than_the_requested_one_is_no_answer(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        known = seed_records(service)
        other = "11111111-2222-3333-4444-555555555555"
        service.fail_next("loans.get", changes={"uuid": other}, times=None)
        report = first_day(service, known)
        assert "The response has the Loan '[hidden]', not the one requested." in report.verdict
        assert other not in report.text()
        assert read_of(report, "loan").fields  # What came instead, without its values.

    def test_forbidden_reads_are_a_question_for_the_lender(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        known = seed_records(service)
        service.fail_next("loans.get", status=403, message="Not for w.ashdown@quillback.example, $31,415.92")
        assert problems(first_day(service, known)) == [
            "The loan can’t be read: Not for [hidden], [hidden]. Ask the lender to let this client read it."
        ]

    @pytest.mark.parametrize("body", [{"error": "Out of order"}, {"message": "Out of order", "status": 200}])
    @pytest.mark.parametrize("operation", ["loans.get", "repayments.of_loan", "messages.list"])
    def test_a_success_with_an_error_inside_is_a_problem(
        self, open_sandbox: OpenSandbox, operation: str, body: dict[str, Any]
    ) -> None:
        service = open_sandbox()
        known = seed_records(service)
        service.fail_next(operation, body=body, times=None)
        report = first_day(service, known)
        assert "Out of order." in report.verdict
        assert not report.is_usable

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            ({"html": True}, "Unreadable response: The response isn’t JSON. Check SERVICING_URL."),
            ({"html": True, "status": 404}, "We are working on it. Check SERVICING_URL."),
            ({"status": 404}, "Simulated error 404. Check SERVICING_URL."),
            (
                {"status": 302, "headers": {"Location": "https://www.lender.example/maya"}},
                "returned status 302. It redirects to https://www.lender.example. Check SERVICING_URL.",
            ),
            ({"status": 302}, "The lending service returned status 302. Check SERVICING_URL."),
            ({"status": 500}, "The lending service returned status 500."),
            ({"status": 503}, "The lending service returned status 503."),
            ({"status": 429}, "The lending service returned status 429."),
            ({"status": 400}, "Simulated error 400."),
            (
                {"cut_before": True},
                "the connection was cut. Check SERVICING_URL, SERVICING_PROXY and SERVICING_CA",
            ),
            ({"body": "[]1"}, "Unreadable response: "),
            ({"body": {"data": 7}}, "neither a list nor an envelope around one."),
        ],
    )
    def test_any_other_answer_is_a_finding(
        self, open_sandbox: OpenSandbox, fault: dict[str, Any], words: str
    ) -> None:
        service = open_sandbox()
        known = seed_records(service)
        for operation in ("messages.list", "*"):
            service.fail_next(operation, times=None, **fault)
            report = first_day(service, known)
            assert f"The message list can’t be read: {words}" in report.verdict or words in report.verdict
            assert not report.is_usable
            service.heal()

    def test_a_list_without_messages_does_not_stop_the_other_reads(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        known = seed_records(service)
        service.fail_next("messages.list", status=404, times=None)
        report = first_day(service, known)
        assert [read.name for read in report.reads if read.problem] == ["messages"]

    def test_an_unreachable_service_is_called_once(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        service.stop()
        report = first_day(service, {"borrower_id": "b-1", "loan_id": "l-1"})
        assert "didn’t respond: the connection was refused. Check SERVICING_URL" in report.verdict
        assert read_of(report, "loan").problem == "Not tried. The service didn’t respond."

    def test_a_service_without_a_date_leaves_the_clock_open(self, wire: Wire) -> None:
        wire.answer(response('{"data": []}'))
        with Client(wire.url, auth="none") as client:
            words = client.first_day().text()
        assert "look   The service’s responses have no date, so its clock can’t be compared.\n" in words


class TestEncryption:
    def test_the_test_value_is_that_of_openssl(self, open_sandbox: OpenSandbox) -> None:
        # The vectors of test_crypto.py.
        iv = "000102030405060708090a0b0c0d0e0f"
        report = first_day(open_sandbox(), field_key=OTHER_SECRET)
        assert (
            report.test_value == f"123456789 with the IV {iv} is AAECAwQFBgcICQoLDA0OD54itJvO43QyLoOxzfk09yI="
        )
        report = first_day(
            open_sandbox(),
            field_key=OTHER_SECRET,
            value_encoding="hex",
            value_iv=":",
            value_key="sha256",
        )
        assert report.test_value.endswith(f" is {iv}:50c7402d71ad823a98993bc711921fb7")
        assert f"Is an EIN encrypted like this? {report.test_value} (if not: " in report.text()
        assert OTHER_SECRET not in report.text()

    def test_without_a_key_the_question_remains(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(auth="bearer")
        report = first_day(service, auth="bearer", token=service.token, client_id="", secret="")
        assert report.test_value == ""
        assert "Which key encrypts EIN and SSN? SERVICING_FIELD_KEY is not set." in report.questions

    def test_a_cipher_of_ones_own_is_tried(self, open_sandbox: OpenSandbox) -> None:
        class Reversing:
            def __init__(self, key: bytes) -> None:
                self.key = key

            def encrypt(self, text: str) -> str:
                return text[::-1]

        class Failing(Reversing):
            def encrypt(self, text: str) -> str:
                raise RuntimeError(self.key)

        assert first_day(open_sandbox(), cipher=Reversing).test_value == "123456789 is 987654321"
        report = first_day(open_sandbox(), cipher=Failing)
        assert problems(report) == ["SERVICING_CIPHER fails to encrypt a test value."]


DIFFERENCES: dict[str, list[Any]] = {
    "epoch_unit": ["both", "ms", "s"],
    "auth_headers": [(), UNDERSCORES],
    "wrap": ["", "data", "result"],
    "wrap_lists": ["", "data", "payments"],
    "wrap_errors": ["", "problem"],
    "errors": ["message", "oauth", "list", "ok"],
    "message_total": ["pagination", "beside", "meta", "bare"],
    "page_cap": [1000, 70, 40, 7],
    "refuses_larger_pages": [True, False],
    "offset": ["pages", "pages-from-1", "rows"],
    "filters": ["both", "query", "body"],
}
CONFIGURED: dict[str, list[Any]] = {
    "message_filters": ["query", "body"],
    "message_content_type": [True, False],
    "offset_counts": [None, "rows", "pages0", "pages1"],
    "epoch_unit": ["ms", "s"],
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_the_settings_of_the_report_lead_to_a_ready_service(open_sandbox: OpenSandbox, seed: int) -> None:
    """Any mixture of differences and settings: apply what the report names, and run it again."""
    random = Random(seed)
    service = open_sandbox(
        number := random.choice([3, 30, 120]),
        **{name: random.choice(choices) for name, choices in DIFFERENCES.items()},
    )
    known = seed_records(service)
    settings = {name: random.choice(choices) for name, choices in CONFIGURED.items()}
    for _ in range(4):
        report = first_day(service, known, **settings)
        settings |= report.settings
        if report.verdict == "Ready.":
            break
    assert report.verdict == "Ready."
    with Client(service.url, client_id=service.client_id, secret=service.secret, **settings) as client:
        assert len(list(client.messages.iterate())) == number
        assert client.loans.get(known["borrower_id"], known["loan_id"]).amount is not None
        assert len(client.repayments.of_line(known["borrower_id"], known["line_id"])) == 1


# The command line


def run_command(service: Sandbox, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "servicing", "first-day", "--base-url", service.url]
    return subprocess.run(
        [*command, "--client-id", service.client_id, *options],
        env=os.environ | {"SERVICING_SECRET": service.secret} | environment,
        capture_output=True,
        text=True,
    )


class TestCommandLine:
    @pytest.mark.slow
    def test_it_prints_the_report(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox(offset="rows", filters="body")
        known = seed_records(service)
        ids = [f"--{name.removesuffix('_id')}={value}" for name, value in known.items()]
        result = run_command(service, *ids, "--message-filters", "body")
        assert (result.returncode, result.stderr) == (0, "")
        assert "ok     Offset counts messages.\n" in result.stdout
        assert "\n  SERVICING_OFFSET_COUNTS=rows\n" in result.stdout
        assert result.stdout.endswith("\n\nReady.\n")

    @pytest.mark.slow
    def test_it_exits_with_1_if_something_is_left(self, open_sandbox: OpenSandbox) -> None:
        service = open_sandbox()
        result = run_command(service, SERVICING_SECRET="0123456789abcdef")
        assert result.returncode == 1
        assert "WRONG  The service rejects these credentials: The signature is not valid." in result.stdout
        result = run_command(service, SERVICING_SECRET="")
        assert (result.returncode, result.stderr) == (
            1,
            "The secret is missing; requests cannot be signed without it.\n",
        )

    @pytest.mark.slow
    def test_certificates_and_a_proxy_are_used(self, open_sandbox: OpenSandbox, tmp_path: Path) -> None:
        service = open_sandbox()
        for option in ("--verify", "--cert"):
            result = run_command(service, option, str(tmp_path / "missing.pem"))
            assert (result.returncode, result.stdout) == (1, "")
            assert "cannot be read." in result.stderr
        run_command(service, "--base-url", "http://lender.invalid", "--proxy", service.url)
        assert {call.headers["Host"] for call in service.calls} == {"lender.invalid"}

    def test_every_option_becomes_an_argument(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for variable in SECRETS.values():
            monkeypatch.setenv(variable, "0123456789abcdef")
        values = {name: f"v-{name}" for name in TEXTS} | {
            name: choices[-1] for name, choices in CHOICES.items()
        }
        values |= {"auth": "hmac", "token_url": "", "scope": "", "value_iv": "after", "page_size": "7"}
        words = [word for name, value in values.items() for word in (f"--{name.replace('_', '-')}", value)]
        names = "A,B, C,D"
        options = build_parser().parse_args(
            ["first-day", "--base-url", "https://lender.example", *words, "--auth-headers", names]
        )
        with given_to_client(monkeypatch) as given:
            build_client(options)
        arguments = {**values, "page_size": 7, "auth_headers": ["A", "B", "C", "D"]}
        arguments |= dict.fromkeys(SECRETS, "0123456789abcdef")
        assert given == arguments

    def test_secrets_come_from_the_environment_only(self) -> None:
        flags = build_parser().parse_args(["first-day", "--base-url", "https://lender.example"])
        assert not vars(flags).keys() & SECRETS.keys()
        assert set(RECORD_KINDS) <= vars(flags).keys()


@contextmanager
def given_to_client(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The arguments that a client is built with."""
    given: dict[str, Any] = {}
    with monkeypatch.context() as patch:
        patch.setattr("servicing.__main__.Client", lambda base_url, **arguments: given.update(arguments))
        yield given
