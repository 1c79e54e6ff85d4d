"""Lenders that differ in what the interface leaves open: each is met by settings alone."""

import contextlib
import re
from collections.abc import Iterator
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client as Browser

from portal.audit.models import Actor, WriteIntent
from portal.credit_lines import documents
from portal.gateway import client as gateway
from portal.messaging.models import Message
from portal.messaging.sync import Sync
from portal.records.models import Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.borrowers.editor import Editor, html_of_error
from tests.portal.borrowers.wizard import BUSINESS, EIN, SSN, Wizard
from tests.portal.pages import page, visible_text

# Other threads call the service.
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

DAY = "2026-03-15"
FIELD_KEY = "00112233-4455-6677-8899-aabbccddeeff"


class Lender(NamedTuple):
    """What the service does, and the settings that meet it."""

    name: str
    service: dict[str, Any]
    settings: dict[str, Any]


HEADER = {"SERVICING_AUTH": "header", "SERVICING_AUTH_HEADERS": ["X-Api-Key"]}
UNDERSCORES = ["X_Client_Id", "X_Signature", "Epoch", "Content_MD5"]
LENDERS = [
    Lender("bearer", {"auth": "bearer"}, {"SERVICING_AUTH": "bearer"}),
    Lender("API key", {"auth": "header", "auth_headers": ["X-Api-Key"]}, HEADER),
    Lender("basic", {"auth": "basic"}, {"SERVICING_AUTH": "basic"}),
    Lender(
        "OAuth 2",
        {"auth": "oauth2", "scope": "servicing", "token_seconds": 2},
        {"SERVICING_AUTH": "oauth2", "SERVICING_SCOPE": "servicing"},
    ),
    Lender("nothing", {"auth": "none"}, {"SERVICING_AUTH": "none"}),
    Lender(
        "seconds and underscores",
        {"epoch_unit": "s", "auth_headers": UNDERSCORES},
        {"SERVICING_EPOCH_UNIT": "s", "SERVICING_AUTH_HEADERS": UNDERSCORES},
    ),
    Lender("base64url", {"values": "base64url"}, {"SERVICING_VALUE_ENCODING": "base64url"}),
    Lender("hex", {"values": "hex"}, {"SERVICING_VALUE_ENCODING": "hex"}),
    Lender("IV after", {"value_iv": "after"}, {"SERVICING_VALUE_IV": "after"}),
    Lender(
        "IV apart",
        {"values": "hex", "value_iv": ":"},
        {"SERVICING_VALUE_ENCODING": "hex", "SERVICING_VALUE_IV": ":"},
    ),
    Lender("hex key", {"value_key": "hex"}, {"SERVICING_VALUE_KEY": "hex"}),
    Lender("hashed key", {"value_key": "sha256"}, {"SERVICING_VALUE_KEY": "sha256"}),
    Lender("own key", {"field_key": FIELD_KEY}, {"SERVICING_FIELD_KEY": FIELD_KEY}),
    Lender("envelope", {"wrap": "data"}, {"SERVICING_ENVELOPE": "data"}),
    Lender("envelope of errors", {"wrap_errors": "data"}, {}),
    Lender("envelope of lists", {"wrap_lists": "payments"}, {"SERVICING_LIST_ENVELOPE": "payments"}),
    Lender("70 messages a page", {"page_cap": 70}, {"SERVICING_PAGE_SIZE": 70}),
    Lender(
        "40 messages in a bare list",
        {"page_cap": 40, "message_total": "bare"},
        {"SERVICING_PAGE_SIZE": 40},
    ),
    Lender("total beside the data", {"message_total": "beside", "offset": "rows"}, {}),
    Lender("total under meta", {"message_total": "meta", "offset": "pages-from-1"}, {}),
    Lender("OAuth errors", {"errors": "oauth"}, {}),
    Lender("lists of errors", {"errors": "list"}, {}),
    Lender("errors with status 200", {"errors": "ok"}, {}),
    Lender(
        "everything",
        {
            "auth": "oauth2",
            "scope": "read write",
            "values": "hex",
            "value_iv": ":",
            "value_key": "sha256",
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
            "SERVICING_AUTH": "oauth2",
            "SERVICING_SCOPE": "read write",
            "SERVICING_VALUE_ENCODING": "hex",
            "SERVICING_VALUE_IV": ":",
            "SERVICING_VALUE_KEY": "sha256",
            "SERVICING_ENVELOPE": "result",
            "SERVICING_LIST_ENVELOPE": "payments",
            "SERVICING_PAGE_SIZE": 40,
            "SERVICING_MESSAGE_FILTERS": "body",
        },
    ),
]


@contextlib.contextmanager
def lender_at(tmp_path: Path, settings: LazySettings, lender: Lender) -> Iterator[Sandbox]:
    """A service that differs, and the portal with its address and credentials."""
    with Sandbox(tmp_path / "lender.sqlite3", **lender.service) as service:
        settings.SERVICING_URL, settings.SERVICING_CLIENT_ID = service.url, service.client_id
        settings.SERVICING_SECRET, settings.SERVICING_TOKEN = service.secret, service.token
        apply(settings, lender.settings)
        if settings.SERVICING_AUTH == "oauth2":
            apply(settings, {"SERVICING_TOKEN_URL": service.token_url})
        settings.DEBUG = True  # Allows documents from this machine.
        documents._fetcher.cache_clear()
        cache.clear()
        yield service
    gateway.client.cache_clear()
    documents._fetcher.cache_clear()


def apply(settings: LazySettings, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(settings, name, value)
    gateway.client.cache_clear()


@pytest.mark.parametrize("lender", LENDERS, ids=lambda lender: lender.name)
def test_a_lender_that_differs_is_met_by_settings(
    tmp_path: Path, settings: LazySettings, servicer: Browser, lender: Lender
) -> None:
    with lender_at(tmp_path, settings, lender) as service:
        # A borrower is onboarded, with values that only the right key and form can read.
        typed = {"ein": EIN, "ein_again": EIN, "ssn_1": SSN, "ssn_1_again": SSN}
        assert Wizard(servicer).fill().send(typed).status_code == 303
        assert WriteIntent.objects.get().state == "confirmed"
        (user,) = service.world.users()
        record = Borrower.objects.get()
        assert (record.uuid, record.label) == (user["uuid"], BUSINESS["first_name"])
        assert service.world.received_ein(user["uuid"]) == EIN.replace("-", "")
        received = {service.world.received_ssn(one["uuid"]) for one in user["key_people"]}
        assert received == {None, SSN.replace("-", "")}
        # A refused change shows the lender's own words.
        service.fail_next("borrowers.update", status=400, message="phone belongs to a fax")
        refused = html_of_error(Editor(servicer, record).send(phone="(512) 555-0188"))
        assert "phone belongs to a fax" in visible_text(refused)
        # Messages are saved whole.
        for number in range(130):
            service.world.message("payment.succeeded", {"uuid": f"p-{number}", "amount": number})
        run = Sync(Actor.system("test"), report=lambda run: None).read_missing()
        assert (run.failure, Message.objects.count()) == ("", 130)
        # A loan with its repayments, and a statement of a line, are read.
        loan = given.loan(service, record, amount=18000)
        service.world.repayment(loan.uuid, amount="310.25")
        lending = gateway.client_for(Actor.system("test"))
        lending.loans.get(record.uuid, loan.uuid)
        assert len(lending.repayments.of_loan(record.uuid, loan.uuid)) == 1
        shown = visible_text(page(servicer, loan.get_absolute_url()))
        assert "$18,000.00" in shown
        assert "$310.25" in shown
        line = given.line(service, record, opened=date(2026, 1, 1))
        service.world.statement(line.uuid, DAY)
        document = servicer.get(f"{line.get_absolute_url()}statements/{DAY}/pdf/")
        assert b"".join(document.streaming_content).startswith(b"%PDF-")  # type: ignore[attr-defined]


def suggested_settings(report: str) -> dict[str, str]:
    """The settings that a report names, as an operator would copy them."""
    return dict(re.findall(r"^  (SERVICING_\w+)=(.*)$", report, re.MULTILINE))


def run_first_day(ids: dict[str, str]) -> str:
    out = StringIO()
    try:
        call_command("first_day", **ids, stdout=out)
    except CommandError as problem:
        out.write(str(problem))
    return out.getvalue()


@pytest.mark.parametrize(
    "lender",
    [
        one
        for one in LENDERS
        if one.name in ("seconds and underscores", "70 messages a page", "envelope of lists")
    ]
    + [
        Lender(
            "several",
            {
                "epoch_unit": "s",
                "wrap": "result",
                "wrap_lists": "payments",
                "page_cap": 40,
                "filters": "body",
                "offset": "rows",
                "message_total": "meta",
            },
            {},
        )
    ],
    ids=lambda lender: lender.name,
)
def test_the_settings_of_the_report_are_enough(
    tmp_path: Path, settings: LazySettings, db: None, lender: Lender
) -> None:
    with lender_at(tmp_path, settings, lender._replace(settings={})) as service:
        borrower = service.world.borrower()["uuid"]
        ids = {
            "borrower": borrower,
            "loan": service.world.loan(borrower)["uuid"],
            "line": service.world.line(borrower)["uuid"],
            "application": service.world.line_application(borrower)["uuid"],
        }
        for uuid in (ids["loan"], ids["line"]):
            service.world.repayment(uuid, amount="310.25")
        for number in range(50):
            service.world.message("payment.succeeded", {"uuid": f"p-{number}"})
        report = run_first_day(ids)
        assert "\nNot ready. Left: " in report
        environment = {"SERVICING_URL": service.url} | suggested_settings(report)
        apply(settings, {name: parsed(name, text) for name, text in environment.items()})
        assert run_first_day(ids).endswith("\nReady.\n")
        assert {call.method for call in service.calls} == {"GET"}


def parsed(name: str, text: str) -> Any:
    """The value of a setting, as portal/settings.py reads it."""
    match name:
        case "SERVICING_AUTH_HEADERS":
            return text.split(",")
        case "SERVICING_PAGE_SIZE":
            return int(text)
        case "SERVICING_MESSAGE_CONTENT_TYPE":
            return text == "on"
    return text
