"""Wherever an account is past due, the day of its copy stands beside the amount, unless that is today."""

import csv
import io
from datetime import timedelta
from decimal import Decimal
from typing import Final

import pytest
from django.core.cache import cache
from django.test import Client as Browser

from portal.audit.models import Actor
from portal.core.business_date import business_date
from portal.gateway import reading
from portal.records.models import Account, Borrower, Kind
from portal.records.recalculation import recalculate_batch
from portal.ui import wording
from servicing.sandbox import Sandbox
from tests import given
from tests.portal import pages

pytestmark = pytest.mark.postgres

DAYS_AGO: Final = 3


@pytest.fixture
def line(portal_service: Sandbox) -> Account:
    """A past due line whose next bill fell due since its copy, while the service is out."""
    due = business_date() - timedelta(days=1)
    line = given.line(
        portal_service,
        given.borrower(portal_service, first_name="Quillfeather Looms"),
        past_due_balance=Decimal("418.06"),
        days_past_due=9,
        payment_amount_due=Decimal("77.19"),
        payment_due_date=str(due),
    )
    for copy in reading.account_copies(line):
        assert reading.read_live(Actor(name="Maya Chen"), copy)
    day = business_date() - timedelta(days=DAYS_AGO)
    Account.objects.filter(uuid=line.uuid, kind=Kind.LINE).update(answer_day=day, figures_good_through=day)
    recalculate_batch()
    cache.clear()
    portal_service.fail_next("*", status=503, times=None)
    line.refresh_from_db()
    return line


def day_of_copy() -> str:
    return f"as of {wording.day(business_date() - timedelta(days=DAYS_AGO))}"


@pytest.mark.parametrize("address", ["/", "/search/?q=type:loc+past_due:>400", "line", "borrower"])
def test_the_day_of_the_copy_stands_beside_the_amount(servicer: Browser, line: Account, address: str) -> None:
    own = {"line": line.get_absolute_url(), "borrower": f"/borrowers/{line.borrower_uuid}/"}
    shown = pages.visible_text(servicer.get(own.get(address, address)).content.decode())
    assert "$418.06" in shown
    assert day_of_copy().casefold() in shown.casefold()


def test_a_line_shows_what_fell_due_since_its_copy_in_a_row_of_its_own(
    servicer: Browser, line: Account
) -> None:
    content = servicer.get(line.get_absolute_url()).content.decode()
    assert "<dd>$77.19</dd>" in content  # A sentence there leaves no room for the label.
    assert f"not updated since {day_of_copy().removeprefix('as of ')}" in pages.visible_text(content)


def test_a_total_has_the_oldest_day_of_what_is_past_due(
    servicer: Browser, portal_service: Sandbox, line: Account
) -> None:
    """A newer copy of another past due line, and an older one of a current line, change nothing."""
    owner, today = line.borrower_uuid, business_date()
    portal_service.heal()
    for days_ago, past_due in ((1, "55.50"), (DAYS_AGO + 2, "0")):
        uuid = portal_service.world.line(
            owner, past_due_balance=Decimal(past_due), days_past_due=9 if past_due != "0" else 0
        )["uuid"]
        other = given.account(Kind.LINE, Borrower.objects.get(uuid=owner), uuid)
        for copy in reading.account_copies(other):
            assert reading.read_live(Actor(name="Maya Chen"), copy)
        day = today - timedelta(days=days_ago)
        Account.objects.filter(uuid=uuid).update(answer_day=day, figures_good_through=day)
    recalculate_batch()
    cache.clear()
    portal_service.fail_next("*", status=503, times=None)
    shown = pages.visible_text(servicer.get(f"/borrowers/{owner}/").content.decode())
    assert f"A{day_of_copy()[1:]}" in shown
    listed = pages.visible_text(servicer.get("/borrowers/").content.decode())
    assert f"as of {wording.short_day(today - timedelta(days=DAYS_AGO))}" in listed
    answer = servicer.get("/borrowers/export/?all=1")
    (row,) = csv.DictReader(io.StringIO(answer.getvalue().decode("utf-8-sig")))
    assert (row["Past due"], row["Oldest copy"]) == ("473.56", str(today - timedelta(days=DAYS_AGO + 2)))
