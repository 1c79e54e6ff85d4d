"""The page of a background job, and its region that polls."""

import re

import pytest
from django.core.management import call_command
from django.test import Client as Browser

from portal.records.models import Account
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx


@pytest.fixture
def loan(portal_service: Sandbox) -> Account:
    """A loan, whose refresh reads the loan and its repayments."""
    return given.loan(portal_service, given.borrower(portal_service))


@pytest.mark.slow
def test_the_page_follows_a_job_to_its_end(supervisor: Browser, loan: Account) -> None:
    page = supervisor.post("/registry/refresh/", follow=True)
    assert "Starts when a worker is free" in page.content.decode()
    call_command("work", batch=True)
    region = supervisor.get(page.request["PATH_INFO"], headers=htmx("job"))
    assert (region["HX-Trigger"], "2 of 2" in region.content.decode()) == ('{"job:ended": {}}', True)
    assert "hx-trigger" not in region.content.decode()
    assert re.search(r"2 of 2</span>\s*<span>Ended ", region.content.decode())


def test_the_region_polls_while_the_job_waits(supervisor: Browser, loan: Account) -> None:
    page = supervisor.post("/registry/refresh/", follow=True).request["PATH_INFO"]
    region = supervisor.get(page, headers=htmx("job"))
    assert 'hx-trigger="load delay:2s"' in region.content.decode()
    assert "HX-Trigger" not in region


@pytest.mark.slow
def test_failures_are_shown(supervisor: Browser, loan: Account, portal_service: Sandbox) -> None:
    portal_service.fail_next("loans.get", status=500)
    page = supervisor.post("/registry/refresh/", follow=True).request["PATH_INFO"]
    call_command("work", batch=True)
    content = supervisor.get(page).content.decode()
    assert "Done, with failures" in content
    assert "1 failed" in content
