"""Tests that EINs, SSNs, birth dates and the service's secret never reach the database, log or responses."""

import base64
import gzip
import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client as Browser

from portal.accounts.encryption import CannotDecrypt
from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.models import WriteIntent
from portal.borrowers.models import Draft, Step
from portal.records.models import NAMED_KINDS, Borrower, KeyPerson
from portal.records.rows import records_of
from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests import databases, given
from tests.conftest import CLIENT_ID, SECRET, browser_of
from tests.portal.borrowers.wizard import BUSINESS, Wizard, people

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.portal.trial_urls"),
]

EIN, SSN, OTHER_SSN = "84-0917263", "517-28-4039", "608-39-5140"
DIGITS = [text.replace("-", "") for text in (EIN, SSN, OTHER_SSN)]
SECRETS = [EIN, SSN, OTHER_SSN, *DIGITS, SECRET, SECRET.replace("-", ""), "1987/04/19"]


class LeakDetector:
    """Collects responses and the log, and searches them and the database for secrets."""

    def __init__(self, sandbox: Sandbox, log: io.StringIO) -> None:
        self.sandbox = sandbox
        self.log = log
        self.responses: list[str] = []

    def record(self, response: HttpResponse) -> HttpResponse:
        cookies = response.cookies.output()
        self.responses.append(f"{response.headers}\n{cookies}\n{response.content.decode()}")
        return response

    def ciphertexts(self) -> list[str]:
        """Return the encrypted EINs and SSNs that were sent, which must not be stored either."""
        return [
            text
            for call in self.sandbox.calls
            for text in re.findall(r'"(?:EIN|ssn)": ?"([^"]{20,})"', call.body.decode())
        ]

    def assert_no_secrets(self) -> None:
        wire = self.ciphertexts()
        assert wire, "nothing secret was sent: this test would prove nothing"
        sessions = json.dumps([session.get_decoded() for session in Session.objects.all()])
        places = {
            "responses": "\n".join(self.responses),
            "log": self.log.getvalue(),
            "sessions": sessions,
            "database": database_text(),
            "encrypted fields": databases.decrypted_bytes().decode(),
        }
        found = [
            (place, secret)
            for place, text in places.items()
            for secret in [*SECRETS, *wire]
            if secret in text
        ]
        assert found == []


def database_text() -> str:
    found = databases.stored_bytes()
    assert len(found) > 10_000
    return found.decode("latin-1")


@pytest.fixture
def detector(portal_service: Sandbox, caplog: pytest.LogCaptureFixture) -> Iterator[LeakDetector]:
    """A detector that reads the terminal log at the DEBUG level."""
    caplog.set_level(logging.DEBUG)
    terminal = next(h for h in logging.getLogger().handlers if type(h) is logging.StreamHandler)
    log = io.StringIO()
    before = terminal.setStream(log)
    yield LeakDetector(portal_service, log)
    terminal.setStream(before)


def onboard_borrower(detector: LeakDetector, browser: Browser) -> HttpResponse:
    """Onboard a business and its owner with every secret, then open the pages that show them."""
    wizard = Wizard(browser)
    wizard.fill()
    typed = {"ein": EIN, "ein_again": EIN, "ssn_1": SSN, "ssn_1_again": SSN}
    detector.record(wizard.send(typed | {"ein_again": "84-0917264"}))
    answer = detector.record(wizard.send(typed))
    for intent in WriteIntent.objects.all():
        detector.record(browser.get(intent.get_absolute_url()))
    for record in (one for kind in NAMED_KINDS for one in records_of(kind)):
        detector.record(browser.get(f"{record.get_absolute_url()}?refresh=1"))
    for address in ("/", "/borrowers/", "/status/", "/search/?q=oneil"):
        detector.record(browser.get(address))
    auditor = browser_of(Role.AUDITOR)
    for address in ("/audit/", "/admin/audit/remotecall/", "/admin/audit/entry/"):
        detector.record(auditor.get(address))
    return answer


class TestOnboarding:
    @pytest.mark.slow
    def test_onboarding_stores_no_secrets(self, detector: LeakDetector, servicer: Browser) -> None:
        assert onboard_borrower(detector, servicer).status_code == 303
        (user,) = detector.sandbox.world.users()
        assert detector.sandbox.world.received_ein(user["uuid"]) == DIGITS[0]
        assert {detector.sandbox.world.received_ssn(p["uuid"]) for p in user["key_people"]} == {
            None,
            DIGITS[1],
        }
        detector.assert_no_secrets()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "fault",
        [
            {"status": 400, "message": f"EIN {EIN} ({DIGITS[0]}) is taken, as is SSN {SSN}"},
            {
                "status": 400,
                "body": {"errors": {"EIN": [DIGITS[0]], "key_people": [{"ssn": SSN, "dob": "1987/04/19"}]}},
            },
            {"status": 500, "html": True},
            {"cut_after_commit": True},
            {"truncate": True},
            {"changes": {"EIN": DIGITS[0], "key_people": [{"uuid": "p", "ssn": SSN}]}},
        ],
        ids=["refused", "refused by field", "failed", "cut", "cut short", "repeated"],
    )
    def test_failed_onboarding_stores_no_secrets(
        self, detector: LeakDetector, servicer: Browser, fault: dict[str, Any]
    ) -> None:
        detector.sandbox.fail_next("borrowers.create_commercial", **fault)
        onboard_borrower(detector, servicer)
        assert WriteIntent.objects.get().state != "sending"
        detector.assert_no_secrets()

    @pytest.mark.slow
    def test_a_draft_stores_no_secrets(self, detector: LeakDetector, servicer: Browser) -> None:
        wizard = Wizard(servicer)
        person = {"first_name": "Elena", "ssn": SSN, "ssn_again": SSN}
        detector.record(wizard.post("people", people(person) | {"ein": EIN}, act="save"))
        detector.record(wizard.get("people"))
        onboard_borrower(detector, servicer)
        detector.assert_no_secrets()

    @pytest.mark.slow
    def test_a_draft_and_its_report_are_stored_encrypted_until_discarded(
        self, detector: LeakDetector, servicer: Browser, settings: LazySettings
    ) -> None:
        wizard = Wizard(servicer)
        wizard.post("business", BUSINESS)
        wizard.post("people", people({"first_name": "Zephyrine", "date_of_birth": "04/19/1987"}))
        content = json.dumps({"owner": {"ssn": SSN}, "accounts": ["Okonkwo Trust"]}).encode()
        report = io.BytesIO(content)
        report.name = "zephyrine-assets.json"
        wizard.post("reports", {"asset_report": report}, act="upload")
        Draft.objects.get().save_refusal(
            {"quotes": [["people", "Zephyrine is too young"]]}, resume_at=Step.PEOPLE
        )
        compressed = gzip.compress(content, mtime=0)
        forms = [text.decode("latin-1") for text in (compressed, base64.b64encode(compressed))]
        stored = database_text()
        shown = [
            word for word in ("ephyrine", "1987", "too young", *forms, compressed.hex()) if word in stored
        ]
        assert shown == []
        old = settings.SECRET_KEY
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another-" * 8, [old]
        call_command("reencrypt", stdout=io.StringIO())
        settings.SECRET_KEY_FALLBACKS = []
        draft = Draft.objects.get()
        assert gzip.decompress(draft.asset_report) == content
        assert (draft.asset_report_name, draft.typed(Step.PEOPLE)[0]["first_name"]) == (
            report.name,
            "Zephyrine",
        )
        assert draft.refusal["quotes"] == [["people", "Zephyrine is too young"]]
        servicer.force_login(User.objects.get())
        servicer.post(f"/borrowers/new/{draft.pk}/discard/")
        assert not Draft.objects.exists()

    @pytest.mark.slow
    def test_a_draft_without_its_key_is_typed_again(
        self, servicer: Browser, settings: LazySettings, portal_service: Sandbox
    ) -> None:
        wizard = Wizard(servicer)
        wizard.fill()
        report = io.BytesIO(b"[1]")
        report.name = "assets.json"
        wizard.post("reports", {"asset_report": report}, act="upload")
        before = Draft.objects.get().data
        old, settings.SECRET_KEY = settings.SECRET_KEY, "another-" * 8
        with pytest.raises(CannotDecrypt):
            call_command("reencrypt", stdout=io.StringIO())
        servicer.force_login(User.objects.get())
        assert "Unnamed borrower" in servicer.get("/").content.decode()
        page = wizard.get("reports")
        assert (page.status_code, "assets.json" in page.content.decode()) == (200, False)
        settings.SECRET_KEY = old
        assert Draft.objects.get().data == before

    @pytest.mark.slow
    def test_the_debug_page_shows_no_secrets(
        self, detector: LeakDetector, portal_service: Sandbox, settings: LazySettings
    ) -> None:
        settings.DEBUG = True
        browser = browser_of(Role.SERVICER, raise_request_exception=False)
        databases.reject_inserts("audit_entry", "NEW.phase = 'attempt'")
        try:
            answer = onboard_borrower(detector, browser)
        finally:
            databases.allow_inserts("audit_entry")
        assert answer.status_code == 500
        assert "the disk is full" in answer.content.decode()
        assert "the disk is full" in detector.log.getvalue()
        send_ssn(detector, browser)
        detector.assert_no_secrets()


def send_ssn(detector: LeakDetector, browser: Browser, **extra: str) -> HttpResponse:
    person = KeyPerson.objects.filter().first() or given.borrower(detector.sandbox)
    owner = Borrower.objects.get(uuid=person.borrower_uuid)
    key_person = KeyPerson.objects.filter(borrower_uuid=owner.uuid)[0]
    typed = {"submit_id": uuid4().hex, "borrower": owner.uuid, "person": key_person.uuid, "ssn": OTHER_SSN}
    return detector.record(browser.post("/trial/give-ssn/", typed | extra))


class TestUpdate:
    @pytest.mark.parametrize(
        "fault", [{}, {"status": 400, "message": f"SSN {OTHER_SSN} is taken"}, {"cut_before": True}]
    )
    def test_an_update_stores_no_secrets(
        self, detector: LeakDetector, servicer: Browser, fault: dict[str, Any]
    ) -> None:
        if fault:
            detector.sandbox.fail_next("borrowers.update_key_person", **fault)
        send_ssn(detector, servicer)
        detector.record(servicer.get(WriteIntent.objects.get().get_absolute_url()))
        detector.assert_no_secrets()

    @pytest.mark.slow
    @pytest.mark.parametrize("debug", [True, False])
    def test_an_exception_that_contains_an_ssn_is_masked(
        self, detector: LeakDetector, settings: LazySettings, debug: bool
    ) -> None:
        settings.DEBUG = debug
        for when, accept in (("before", "text/html"), ("after", "text/html"), ("after", "text/plain")):
            browser = browser_of(Role.SERVICER, raise_request_exception=False, headers={"Accept": accept})
            answer = send_ssn(detector, browser, **{when: "on"})
            assert (answer.status_code, "LookupError" in answer.content.decode()) == (500, debug)
        assert "the SSN [hidden] was sent" in detector.log.getvalue()
        detector.assert_no_secrets()


POST_SCRIPT = """
import sys, django
django.setup()
from django.conf import settings
settings.ROOT_URLCONF = "tests.portal.trial_urls"
settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"  # none collected
from django.test import Client
from portal.accounts.models import User
browser = Client(raise_request_exception=False, SERVER_NAME="localhost")
browser.force_login(User.objects.get())
typed = {"submit_id": "one", "ssn": sys.stdin.read(), "before": "on"}
print(browser.post("/trial/give-ssn/", typed).content.decode())
"""


@pytest.mark.slow
@pytest.mark.parametrize("debug", ["on", "off"])
def test_a_real_terminal_shows_no_secrets(servicer: Browser, portal_service: Sandbox, debug: str) -> None:
    """In a separate process, every logger writes to its real output."""
    environment = {
        "DEBUG": debug,
        "SECRET_KEY": "n" * 64,
        "ALLOWED_HOSTS": "localhost",
        "SECURE_SSL_REDIRECT": "off",
        "SECOND_FACTOR_REQUIRED": "none",
        "SERVICING_ENVIRONMENT": "sandbox",
        "DATABASE_URL": databases.database_url(),
        "SERVICING_URL": portal_service.url,
        "SERVICING_CLIENT_ID": CLIENT_ID,
        "SERVICING_SECRET": SECRET,
        "LOG_LEVEL": "DEBUG",
    }
    process = subprocess.run(
        [sys.executable, "-c", POST_SCRIPT],
        input=OTHER_SSN,
        env=os.environ | environment,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "LookupError: no person has the SSN [hidden]" in process.stderr
    assert ("LookupError" in process.stdout) == (debug == "on")
    printed = process.stdout + process.stderr
    plain = [OTHER_SSN, DIGITS[2], SECRET, base64.b64encode(OTHER_SSN.encode()).decode()]
    assert [secret for secret in plain if secret in printed] == []
