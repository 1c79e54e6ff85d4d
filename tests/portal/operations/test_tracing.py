"""Traces of requests and jobs, as a collector receives them from real processes: without personal data."""

import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests
from django.conf import LazySettings
from django.test import Client as Browser
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.lookup.tasks import refresh_portfolio
from portal.operations import doctor
from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests import given
from tests.databases import database_url
from tests.portal.borrowers.wizard import EIN, SIGNED, Wizard
from tests.portal.jobs.test_worker import wait_until, worker
from tests.portal.operations.test_demo import free_port
from tests.portal.operations.test_serving import serving

pytestmark = pytest.mark.django_db(transaction=True)
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
STEP = "/borrowers/new/<uuid:draft_id>/<str:step>/"
# The only attributes that a span may have.
ALLOWED_ATTRIBUTES = {
    "http.request.method", "http.route", "http.response.status_code", "error.type",
    "desk.request_id", "desk.role", "desk.outcome", "desk.tries", "desk.job", "desk.interrupted_by",
}  # fmt: skip


class Collector:
    """A server that receives traces over HTTP."""

    def __init__(self) -> None:
        self.url = ""
        self.answer = 200
        self.bodies: list[bytes] = []
        self.authorization: set[str | None] = set()

    def receive(self, path: str, headers: Any, body: bytes) -> None:
        assert path == "/v1/traces"
        self.authorization.add(headers["Authorization"])
        self.bodies.append(body)

    @property
    def spans(self) -> list[Span]:
        parts = [
            part for body in self.bodies for part in ExportTraceServiceRequest.FromString(body).resource_spans
        ]
        return [span for part in parts for scope in part.scope_spans for span in scope.spans]

    def find_span(self, name: str) -> Span:
        (span,) = [span for span in self.spans if span.name == name]
        return span

    def children(self, of: Span) -> list[Span]:
        return [
            span for span in self.spans if (span.trace_id, span.parent_span_id) == (of.trace_id, of.span_id)
        ]

    def assert_contains_none_of(self, *words: str) -> None:
        assert {name for span in self.spans for name in attributes(span)} <= ALLOWED_ATTRIBUTES
        assert not any(span.events or span.links or span.status.message for span in self.spans)
        content = b"".join(self.bodies).lower()
        assert [word for word in words if word.lower().encode() in content] == []


@pytest.fixture
def collector() -> Iterator[Collector]:
    receiver = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.receive(self.path, self.headers, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(receiver.answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        yield receiver
        server.shutdown()


class Visitor:
    """A browser for a server in another process, with the session of a test client."""

    def __init__(self, port: int, browser: Browser) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.session = requests.Session()
        token = secrets.token_hex(16)
        self.session.cookies.update({"sessionid": browser.cookies["sessionid"].value, "csrftoken": token})
        self.session.headers["X-CSRFToken"] = token

    def get(self, path: str, **headers: str) -> requests.Response:
        return self.session.get(self.base + path, headers=headers, timeout=30)

    def post(self, path: str, typed: dict[str, str]) -> requests.Response:
        return self.session.post(self.base + path, typed, allow_redirects=False, timeout=30)


def attributes(span: Span) -> dict[str, Any]:
    """Return the attributes of a span."""
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def test_requests_and_calls_are_traced_without_personal_data(
    servicer: Browser, portal_service: Sandbox, collector: Collector, tmp_path: Path
) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service, first_name="Hathaway Tulip Farms"))
    (tmp_path / "headers").write_text("authorization=Bearer%20of-the-collector")
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS_FILE": str(tmp_path / "headers"),
        "TRUSTED_PROXIES": "1",
    }
    port = free_port()
    with serving(portal_service, port, **environment):
        visitor = Visitor(port, servicer)
        wizard = Wizard(visitor).fill()
        sent = wizard.send(SIGNED)
        visitor.get("/search/?q=Hathaway")
        visitor.get(loan.get_absolute_url(), traceparent=f"00-{TRACE}-{PARENT}-01")
        visitor.get("/healthz")
    create = collector.find_span("borrowers.create_commercial")
    (form,) = [span for span in collector.spans if create in collector.children(span)]
    assert (form.name, form.kind) == (f"POST {STEP}", Span.SPAN_KIND_SERVER)
    assert attributes(form) == {
        "http.request.method": "POST",
        "http.route": STEP,
        "http.response.status_code": 303,
        "desk.request_id": sent.headers["X-Request-ID"],
        "desk.role": "servicer",
    }
    assert (attributes(create)["desk.outcome"], create.kind) == ("confirmed", Span.SPAN_KIND_CLIENT)
    assert attributes(create)["desk.request_id"].startswith(sent.headers["X-Request-ID"])
    page = collector.find_span("GET /borrowers/<str:borrower_uuid>/loans/<str:loan_uuid>/")
    assert (page.trace_id.hex(), page.parent_span_id.hex()) == (TRACE, PARENT)
    assert {"loans.get", "repayments.of_loan"} == {span.name for span in collector.children(page)}
    assert "GET /search/" in {span.name for span in collector.spans}
    assert "healthz" not in str(collector.spans)
    assert collector.authorization == {"Bearer of-the-collector"}
    uuids = [
        loan.uuid,
        loan.borrower_uuid,
        wizard.url,
        *(user["uuid"] for user in portal_service.world.users()),
    ]
    typed = [EIN, EIN.replace("-", ""), "O'Neil", "Elena", "oneil.example", "Hathaway"]
    collector.assert_contains_none_of(*uuids, *typed, "search/?", "select ", "127.0.0.1")


def test_a_job_and_its_calls_are_traced(portal_service: Sandbox, collector: Collector) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    portal_service.fail_next("loans.get", status=401)
    job = start_job(refresh_portfolio)
    with worker(portal_service, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as process:
        wait_until(lambda: not Job.objects.get(pk=job.pk).is_open)
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    work = collector.find_span("lookup.refresh_portfolio")
    assert (work.kind, work.parent_span_id) == (Span.SPAN_KIND_CONSUMER, b"")
    assert attributes(work) == {"desk.job": str(job.pk), "desk.tries": 1}
    calls = {span.name: span for span in collector.children(work)}
    assert set(calls) == {"loans.get", "repayments.of_loan"}
    refused = calls["loans.get"]
    assert (refused.status.code, work.status.code) == (Status.STATUS_CODE_ERROR, Status.STATUS_CODE_UNSET)
    assert (attributes(refused)["error.type"], attributes(refused)["http.response.status_code"]) == (
        "forbidden",
        401,
    )
    collector.assert_contains_none_of(loan.uuid, loan.borrower_uuid)


@pytest.mark.urls("tests.portal.trial_urls")
def test_only_the_type_of_an_exception_is_traced(
    servicer: Browser, collector: Collector, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = collector.url
    servicer.raise_request_exception = False
    servicer.post(
        "/trial/give-ssn/",
        {"before": "1", "ssn": "912-45-6789"},
        headers={"traceparent": f"00-{TRACE}-{PARENT}-01"},
    )
    wait_until(lambda: collector.spans)
    (span,) = collector.spans
    assert (attributes(span)["error.type"], span.status.code) == ("LookupError", Status.STATUS_CODE_ERROR)
    assert b"912-45" not in collector.bodies[0]
    # Without a trusted proxy, the browser's trace is not continued.
    assert span.parent_span_id == b""


def test_a_silent_collector_blocks_no_page_and_is_logged_once(
    viewer: Browser, portal_service: Sandbox, tmp_path: Path
) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as silent, (tmp_path / "log").open("wb") as log:
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "OTEL_BSP_SCHEDULE_DELAY": "10",
            "WEB_CONCURRENCY": "1",
        }
        with serving(portal_service, port, log, **environment) as server:
            visitor = Visitor(port, viewer)
            assert visitor.get("/borrowers/").ok
            wait_until(lambda: b"lost" in (tmp_path / "log").read_bytes())
            assert visitor.get("/borrowers/").ok
            server.send_signal(signal.SIGTERM)
            assert server.wait(15) == 0
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert line.endswith(
        "WARNING portal.runtime.opentelemetry_sdk The collector does not take traces: they are lost."
    )


def test_the_doctor_checks_the_collector(collector: Collector, settings: LazySettings) -> None:
    (off,) = doctor.traces()
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = collector.url
    (accepted,) = doctor.traces()
    collector.answer = 401
    (refused,) = doctor.traces()
    assert [found.grade for found in (off, accepted, refused)] == ["ok", "ok", "bad"]
    assert refused.words.startswith(f"The collector at {collector.url} doesn’t accept traces.")


def test_opentelemetry_is_imported_only_when_configured(db: None) -> None:
    script = """
import sys
from portal.wsgi import application
from django.test import Client
answer = Client(SERVER_NAME="127.0.0.1").get("/sign-in/")
print(answer.status_code, [name for name in sys.modules if name.startswith("opentelemetry")])
"""
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"DATABASE_URL": database_url()},
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == "200 []"
