"""Long documents, which a worker creates in the background, and the limit of one document per person."""

import json
import multiprocessing
import os
import re
import signal
import threading
import time
from datetime import date, timedelta

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.http import HttpResponse
from django.test import Client as Browser
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.models import Entry
from portal.documents.models import LongDocument, Printed, Turn, remove_expired
from portal.documents.pdf import render
from portal.jobs.models import Job
from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.documents.test_document import figures_of, text_of

pytestmark = pytest.mark.django_db(transaction=True)
ALL = "/repayments/statement-of-account"


def add_repayments(owner: Record, number: int) -> None:
    """Save ``number`` repayments of one borrower, one a day."""
    days = [date(2024, 1, 1) + timedelta(days=offset) for offset in range(number)]
    Record.objects.bulk_create(
        Record(
            kind=Kind.REPAYMENT,
            uuid=f"r-{position}",
            parent_uuid="a-loan",
            borrower_uuid=owner.uuid,
            key_date=day,
            amount=765,
            answer=json.dumps(
                {
                    "uuid": f"r-{position}",
                    "amount": 700 + position,
                    "effective_date": str(day),
                    "status": "SUCCEEDED",
                }
            ),
        )
        for position, day in enumerate(days)
    )


def start_document(browser: Browser, query: str = "") -> LongDocument:
    answer = browser.get(f"{ALL}.pdf{query}")
    assert answer.status_code == 303
    return LongDocument.objects.get(pk=re.findall(r"[0-9a-f-]{36}", answer["Location"])[0])


def test_a_long_statement_is_created_without_blocking_other_users(
    portal_service: Sandbox, viewer: Browser, servicer: Browser
) -> None:
    owner = given.borrower(portal_service)
    add_repayments(owner, 500)
    document = start_document(viewer)
    for _ in range(5):
        answer = viewer.get(f"{ALL}.pdf")
        assert answer.status_code == 429
        assert "One document at a time" in answer.content.decode()
        assert document.get_absolute_url() in answer.content.decode()
        assert int(answer["Retry-After"]) > 0
    assert (
        servicer.get(f"/borrowers/{owner.uuid}/summary.pdf?data=copies")["Content-Type"] == "application/pdf"
    )
    assert "Starts when a worker is free" in viewer.get(document.get_absolute_url()).content.decode()
    call_command("work", batch=True)
    page = viewer.get(document.get_absolute_url()).content.decode()
    assert "Download PDF" in page
    response = viewer.get(f"{document.get_absolute_url()}download/")
    preview, text = viewer.get(f"{ALL}/").content.decode(), text_of(response.content)
    assert response["Content-Type"] == "application/pdf"
    assert {figure for figure in figures_of(preview) if figure not in text} == set()
    printed = Printed.objects.get(code=response["X-Document-Code"])
    assert printed.entry.actor_name == "Viewer (viewer)"
    assert printed.entry.detail["bytes"] == len(response.content)
    assert Entry.objects.filter(action="summaries.download", detail__code=printed.code).count() == 1
    assert viewer.get(f"{ALL}.pdf").status_code == 303, "the next one may begin"


def test_a_statement_of_200_rows_downloads_immediately(portal_service: Sandbox, viewer: Browser) -> None:
    add_repayments(given.borrower(portal_service), 200)
    assert viewer.get(f"{ALL}.pdf")["Content-Type"] == "application/pdf"
    assert "Download PDF" in viewer.get(f"{ALL}/").content.decode()


def test_a_long_schedule_is_created_in_the_background(portal_service: Sandbox, viewer: Browser) -> None:
    owner = given.borrower(portal_service)
    loan = given.loan(portal_service, owner, amount="240000.00", installments=480)
    address = f"/borrowers/{owner.uuid}/loans/{loan.uuid}/schedule"
    assert viewer.get(f"{address}.pdf").status_code == 303
    page = viewer.get(f"{address}/?data=copies").content.decode()
    assert "Create the PDF" in page
    assert "Download PDF" not in page


def test_only_the_requester_can_open_a_long_document(
    portal_service: Sandbox, viewer: Browser, supervisor: Browser
) -> None:
    add_repayments(given.borrower(portal_service), 201)
    document = start_document(viewer)
    call_command("work", batch=True)
    for address in (document.get_absolute_url(), f"{document.get_absolute_url()}download/"):
        assert viewer.get(address).status_code == 200
        assert supervisor.get(address).status_code == 404


def test_a_second_concurrent_document_is_rejected(
    portal_service: Sandbox, viewer: Browser, servicer: Browser
) -> None:
    address = f"/borrowers/{given.borrower(portal_service).uuid}/summary.pdf?data=copies"
    render('<!doctype html><html lang="en"><title>A process is warm</title>')
    warm = multiprocessing.active_children()
    answers: list[HttpResponse] = []

    def request_document() -> None:
        answers.append(viewer.get(address))
        connection.close()

    for process in warm:
        os.kill(process.pid or 0, signal.SIGSTOP)
    first = threading.Thread(target=request_document)
    first.start()
    try:
        while not Turn.objects.exists():
            time.sleep(0.01)
        assert viewer.get(address).status_code == 429
    finally:
        for process in warm:
            os.kill(process.pid or 0, signal.SIGCONT)
        first.join()
    assert [answer.status_code for answer in answers] == [200]
    assert viewer.get(address).status_code == 200
    assert not Turn.objects.exists()


@pytest.mark.parametrize("age", [timedelta(minutes=2), -timedelta(hours=1)])
def test_a_turn_left_by_a_killed_process_expires(
    portal_service: Sandbox, viewer: Browser, age: timedelta
) -> None:
    owner = given.borrower(portal_service)
    person = User.objects.get(username="viewer").pk
    Turn.objects.create(person_id=person, taken_at=timezone.now() - age)
    assert viewer.get(f"/borrowers/{owner.uuid}/summary.pdf?data=copies").status_code == 200


def test_only_the_requester_can_cancel_a_long_document(
    portal_service: Sandbox, viewer: Browser, servicer: Browser
) -> None:
    add_repayments(given.borrower(portal_service), 201)
    document = start_document(viewer)
    assert servicer.post(f"/jobs/{document.job_id}/cancel/").status_code == 403
    assert viewer.post(f"/jobs/{document.job_id}/cancel/").status_code == 303
    call_command("work", batch=True)
    page = viewer.get(document.get_absolute_url()).content.decode()
    assert "Canceled" in page
    assert "Download PDF" not in page
    assert not Printed.objects.exists()
    assert viewer.get(f"{ALL}.pdf").status_code == 303


def test_a_job_that_runs_twice_prints_once(portal_service: Sandbox, viewer: Browser) -> None:
    add_repayments(given.borrower(portal_service), 201)
    document = start_document(viewer)
    call_command("work", batch=True)
    Job.objects.update(state=Job.State.WAITING, finished_at=None)
    call_command("work", batch=True)
    assert Printed.objects.count() == 1
    assert LongDocument.objects.get(pk=document.pk).html == ""


def test_an_expired_long_document_is_removed(portal_service: Sandbox, viewer: Browser) -> None:
    add_repayments(given.borrower(portal_service), 201)
    document = start_document(viewer)
    call_command("work", batch=True)
    LongDocument.objects.update(created_at=timezone.now() - timedelta(days=settings.BATCH_DAYS, minutes=1))
    remove_expired()
    assert viewer.get(document.get_absolute_url()).status_code == 404
    assert Printed.objects.count() == 1


def test_each_user_can_have_one_open_batch(
    portal_service: Sandbox, servicer: Browser, supervisor: Browser
) -> None:
    given.borrower(portal_service)
    choices = {"data": "copies", "chosen": "1"}
    first = servicer.post("/summaries/batches/", choices)
    second = servicer.post("/summaries/batches/", choices)
    assert (first.status_code, second.status_code) == (303, 429)
    assert first["Location"] in second.content.decode()
    assert supervisor.post("/summaries/batches/", choices).status_code == 303
