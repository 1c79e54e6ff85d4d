"""Long documents, which a worker creates in the background while short ones pass."""

import json
import multiprocessing
import os
import re
import signal
import threading
import time
from datetime import date, timedelta
from html import unescape

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.http import HttpResponse
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import Entry
from portal.core.business_date import business_date
from portal.documents.models import LongDocument, Printed, remove_expired
from portal.jobs.models import Job
from portal.records.models import Borrower, Repayment
from servicing.sandbox import Sandbox
from tests import given
from tests.drills.batches import run_worker
from tests.portal.documents.test_document import figures_of, text_of
from tests.portal.pages import visible_text

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ALL = "/repayments/statement-of-account"


def add_repayments(
    owner: Borrower,
    number: int,
    *,
    per_day: int = 1,
    first: date = date(2024, 1, 1),
    status: str = "SUCCEEDED",
) -> None:
    """Save ``number`` repayments of one borrower, one a day unless ``per_day`` says otherwise."""
    days = [first + timedelta(days=offset // per_day) for offset in range(number)]
    Repayment.objects.bulk_create(
        Repayment(
            uuid=f"r-{status}-{position}",
            status=status,
            borrower_uuid=owner.uuid,
            effective_on=day,
            amount=765,
            body=json.dumps(
                {
                    "uuid": f"r-{status}-{position}",
                    "amount": 700 + position,
                    "effective_date": str(day),
                    "status": status,
                }
            ),
        )
        for position, day in enumerate(days)
    )


def start_document(browser: Browser, query: str = "") -> LongDocument:
    answer = browser.get(f"{ALL}.pdf{query}")
    assert answer.status_code == 303
    return LongDocument.objects.get(pk=re.findall(r"[0-9a-f-]{36}", answer["Location"])[0])


def read_history(browser: Browser, query: str = "") -> tuple[str, list[str]]:
    """The words of the preview's paper, and the days of its rows."""
    page = browser.get(f"{ALL}/{query}").content.decode().partition('<div class="paper')[2]
    return visible_text(page), re.findall(r'<th scope="row" class="one-line">([^<]*)</th>', page)


class TestLimit:
    """A history prints the newest repayments, and its sums are named by what they cover."""

    def test_everything_is_printed_up_to_the_limit(self, portal_service: Sandbox, viewer: Browser) -> None:
        add_repayments(given.borrower(portal_service), 500)
        words, days = read_history(viewer)
        assert (len(days), days[0], days[-1]) == (500, "Jan 1, 2024", "May 14, 2025")
        assert "repayments printed" not in words
        assert f"Total, 500 succeeded — — — ${sum(range(700, 1200)):,}.00" in words

    def test_the_oldest_is_left_out_beyond_the_limit(self, portal_service: Sandbox, viewer: Browser) -> None:
        add_repayments(given.borrower(portal_service), 501)
        words, days = read_history(viewer)
        assert (len(days), days[0], days[-1]) == (500, "Jan 2, 2024", "May 15, 2025")
        remark = "500 of 501 repayments printed. 1 earlier left out. Sums cover Jan 2, 2024 and later."
        assert (
            words.index(remark)
            < words.index("Succeeded")
            < words.index("Jan 2, 2024 ", words.index("Effective"))
        )
        assert f"Total from Jan 2, 2024, 500 succeeded — — — ${sum(range(701, 1201)):,}.00" in words
        assert (
            f"January 2024 from Jan 2, 2024: 30 of 30 succeeded — — — ${sum(range(701, 731)):,}.00" in words
        )
        assert f"February 2024: 29 of 29 succeeded — — — ${sum(range(731, 760)):,}.00" in words

    @pytest.mark.parametrize(
        ("number", "per_day", "printed", "covers"),
        [
            (601, 3, 499, "Feb 4, 2024 and later"),
            (502, 2, 500, "Jan 2, 2024 and later"),
            (620, 620, 500, "those printed"),
        ],
    )
    def test_a_day_is_printed_whole_unless_it_alone_is_too_long(
        self, portal_service: Sandbox, viewer: Browser, number: int, per_day: int, printed: int, covers: str
    ) -> None:
        add_repayments(given.borrower(portal_service), number, per_day=per_day)
        words, days = read_history(viewer)
        assert len(days) == printed
        limit = f"{printed} of {number} repayments printed. {number - printed} earlier left out. Sums cover {covers}."
        assert limit in words

    def test_scheduled_repayments_leave_room_for_past_ones(
        self, portal_service: Sandbox, viewer: Browser
    ) -> None:
        owner = given.borrower(portal_service)
        add_repayments(owner, 450)
        soon = business_date() + timedelta(days=1)
        add_repayments(owner, 50, first=soon, status="SCHEDULED")
        assert len(read_history(viewer)[1]) == 500
        Repayment.objects.filter(status="SCHEDULED").delete()
        add_repayments(owner, 600, first=soon, status="SCHEDULED")
        words, days = read_history(viewer)
        assert len(days) == 500
        assert "500 of 1,050 repayments printed. 50 earlier left out. 500 scheduled later left out." in words
        assert days[400] == f"{soon:%b} {soon.day}, {soon.year}"


def test_a_long_statement_is_created_in_the_background(
    portal_service: Sandbox, viewer: Browser, supervisor: Browser
) -> None:
    add_repayments(given.borrower(portal_service), 401)
    document = start_document(viewer)
    own, download = document.get_absolute_url(), f"{document.get_absolute_url()}download/"
    assert "Starts when a worker is free" in viewer.get(own).content.decode()
    call_command("work", batch=True)
    assert "Download PDF" in viewer.get(own).content.decode()
    response = viewer.get(download)
    preview, text = viewer.get(f"{ALL}/").content.decode(), text_of(response.content)
    assert response["Content-Type"] == "application/pdf"
    assert {figure for figure in figures_of(preview) if figure not in text} == set()
    printed = Printed.objects.get(code=response["X-Document-Code"])
    assert printed.entry.actor_name == "Viewer (viewer)"
    assert printed.entry.detail["bytes"] == len(response.content)
    assert Entry.objects.filter(action="summaries.download", detail__code=printed.code).count() == 1
    # Another person doesn't get it, a repeated job prints nothing, and it ends with its day.
    assert [supervisor.get(address).status_code for address in (own, download)] == [404, 404]
    Job.objects.update(state=Job.State.WAITING, finished_at=None)
    call_command("work", batch=True)
    assert LongDocument.objects.get(pk=document.pk).html == ""
    LongDocument.objects.update(created_at=timezone.now() - timedelta(days=settings.BATCH_DAYS, minutes=1))
    remove_expired()
    assert viewer.get(own).status_code == 404
    assert Printed.objects.count() == 1


def test_a_short_document_does_not_wait_for_a_long_one(portal_service: Sandbox, viewer: Browser) -> None:
    owner = given.borrower(portal_service)
    add_repayments(owner, 401)
    first = start_document(viewer)
    states: list[tuple[str, str]] = []

    def is_short_one_sent() -> bool:
        if Job.objects.get(pk=first.job_id).state == Job.State.RUNNING:
            answer = viewer.get(f"/borrowers/{owner.uuid}/summary.pdf?data=copies")
            states.append((answer["Content-Type"], Job.objects.get(pk=first.job_id).state))
        return bool(states)

    run_worker(is_short_one_sent)
    assert states == [("application/pdf", Job.State.RUNNING)]
    run_worker(lambda: not Job.objects.filter(state__in=Job.OPEN).exists())
    assert viewer.get(f"{first.get_absolute_url()}download/")["Content-Type"] == "application/pdf"


def test_a_document_that_takes_long_goes_on_in_the_background(
    portal_service: Sandbox, viewer: Browser
) -> None:
    owner = given.borrower(portal_service)
    add_repayments(owner, 400)
    answers: list[HttpResponse] = []

    def request_document() -> None:
        answers.append(viewer.get(f"{ALL}.pdf"))
        connection.close()

    first = threading.Thread(target=request_document)
    first.start()
    while not (processes := multiprocessing.active_children()):
        time.sleep(0.01)
    os.kill(processes[0].pid or 0, signal.SIGSTOP)
    summary = viewer.get(f"/borrowers/{owner.uuid}/summary.pdf?data=copies")
    assert (summary["Content-Type"], answers) == ("application/pdf", [])
    first.join()
    assert answers[0].status_code == 303
    assert not processes[0].is_alive()
    document = LongDocument.objects.get()
    assert answers[0]["Location"] == document.get_absolute_url()
    assert "created in the background" in viewer.get(document.get_absolute_url()).content.decode()
    call_command("work", batch=True)
    download = viewer.get(f"{document.get_absolute_url()}download/")
    assert Printed.objects.filter(code=download["X-Document-Code"]).count() == 1


def test_a_short_document_is_opened_or_downloaded(portal_service: Sandbox, viewer: Browser) -> None:
    add_repayments(given.borrower(portal_service), 20)
    page = viewer.get(f"{ALL}/?status=SUCCEEDED").content.decode()
    assert "Download PDF" in page
    addresses = re.findall(rf'href="({re.escape(ALL)}\.pdf[^"]*)"', unescape(page))
    for address, disposition in zip(addresses, ("attachment", "inline"), strict=True):
        answer = viewer.get(address)
        assert answer["Content-Type"] == "application/pdf"
        assert answer["Content-Disposition"].startswith(f"{disposition}; ")


def test_a_long_schedule_is_created_in_the_background(portal_service: Sandbox, viewer: Browser) -> None:
    owner = given.borrower(portal_service)
    loan = given.loan(portal_service, owner, amount="240000.00", installments=480)
    address = f"/borrowers/{owner.uuid}/loans/{loan.uuid}/schedule"
    first, again = (viewer.get(f"{address}.pdf") for _ in range(2))
    assert (first.status_code, first["Location"]) == (303, again["Location"])
    assert LongDocument.objects.count() == 1
    page = viewer.get(f"{address}/?data=copies").content.decode()
    assert "Create the PDF" in page
    assert "Download PDF" not in page


def test_only_the_requester_can_cancel_a_long_document(
    portal_service: Sandbox, viewer: Browser, servicer: Browser
) -> None:
    add_repayments(given.borrower(portal_service), 401)
    document = start_document(viewer)
    assert servicer.post(f"/jobs/{document.job_id}/cancel/").status_code == 403
    assert viewer.post(f"/jobs/{document.job_id}/cancel/").status_code == 303
    call_command("work", batch=True)
    page = viewer.get(document.get_absolute_url()).content.decode()
    assert "Canceled" in page
    assert "Download PDF" not in page
    assert not Printed.objects.exists()
