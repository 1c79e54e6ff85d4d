"""The page of a piece of background work, and the region that asks for its news."""

import re

import pytest
from django.core.management import call_command
from django.test import Client as Browser

from portal.registry.models import Record
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx


@pytest.fixture
def loan(portal_service: Sandbox) -> Record:
    """Two things to read: the loan and its repayments."""
    return given.loan(portal_service, given.borrower(portal_service))


def test_whoever_starts_it_follows_it_to_its_end(supervisor: Browser, loan: Record) -> None:
    page = supervisor.post("/registry/refresh/", follow=True)
    assert "Starts when a worker is free" in page.content.decode()
    call_command("work", batch=True)
    news = supervisor.get(page.request["PATH_INFO"], headers=htmx("job"))
    assert (news["HX-Trigger"], "2 of 2" in news.content.decode()) == ('{"job:ended": {}}', True)
    assert "hx-trigger" not in news.content.decode()
    assert re.search(r"2 of 2</span>\s*<span>Ended ", news.content.decode())


def test_while_it_waits_the_region_asks_again(supervisor: Browser, loan: Record) -> None:
    page = supervisor.post("/registry/refresh/", follow=True).request["PATH_INFO"]
    news = supervisor.get(page, headers=htmx("job"))
    assert 'hx-trigger="load delay:2s"' in news.content.decode()
    assert "HX-Trigger" not in news


def test_failures_are_told_beside_what_was_done(
    supervisor: Browser, loan: Record, portal_service: Sandbox
) -> None:
    portal_service.fail_next("loans.get", status=500)
    page = supervisor.post("/registry/refresh/", follow=True).request["PATH_INFO"]
    call_command("work", batch=True)
    told = supervisor.get(page).content.decode()
    assert "Done, with failures" in told
    assert "1 failed" in told
