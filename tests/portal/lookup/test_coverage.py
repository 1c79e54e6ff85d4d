"""Lists show how many of their records were updated in the last 24 hours."""

from datetime import timedelta

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.records.models import Answer, Kind
from portal.records.rows import records_of
from portal.records.sources import REPAYMENTS_OF
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import plain

KINDS = [Kind.LOAN, Kind.LINE, Kind.APPLICATION]


@pytest.fixture
def accounts(portal_service: Sandbox) -> None:
    """Save three records of each kind with their lists: one updated now, one 25 hours ago, one never."""
    owner, now = given.borrower(portal_service), timezone.now()
    for kind in KINDS:
        for number, checked in enumerate((now, now - timedelta(hours=25), None)):
            record = given.account(kind, owner, f"{kind.value}-{number}")
            records_of(kind).filter(pk=record.pk).update(checked_at=checked)
            if (of_account := REPAYMENTS_OF.get(kind)) and checked:
                given.put_answer(of_account, record.uuid, "[]")
                Answer.objects.filter(kind=of_account, uuid=record.uuid).update(last_at=checked)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/borrowers/", "2 of 6 accounts"),
        ("/applications/", "1 of 3 applications for lines"),
        ("/loans/", "1 of 3 loans"),
        ("/lines/", "1 of 3 lines"),
        ("/repayments/", "2 of 6 lists of repayments"),
    ],
)
def test_a_list_shows_how_many_records_are_recent(
    viewer: Browser, accounts: None, address: str, words: str
) -> None:
    assert f"{words}</span> updated in the last 24 hours." in plain(viewer, address)


def test_an_empty_list_shows_no_update_count(viewer: Browser) -> None:
    assert "updated in the last" not in plain(viewer, "/loans/")
