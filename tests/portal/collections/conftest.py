"""Fixtures and helpers for collections: a sandbox whose date is the business date, and past due loans."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.test import Client as Browser

from portal.accounts.roles import Role
from portal.audit.models import Actor
from portal.core.business_date import CACHE_KEY
from portal.gateway import client as gateway
from portal.gateway import reading
from portal.records.models import Account, Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import CLIENT_ID, SECRET, browser_of

ACTOR = Actor(name="Maya Chen")


@pytest.fixture
def sandbox(db: None, tmp_path: Path, settings: LazySettings) -> Iterator[Sandbox]:
    """A separate sandbox, whose date is the business date."""
    with Sandbox(tmp_path / "s.sqlite3", client_id=CLIENT_ID, secret=SECRET, control=True) as sandbox:
        settings.SERVICING_URL, settings.BUSINESS_DATE_FROM = sandbox.url, "sandbox"
        settings.SERVICING_CLIENT_ID, settings.SERVICING_SECRET = CLIENT_ID, SECRET
        gateway.client.cache_clear()
        cache.clear()
        yield sandbox
    gateway.client.cache_clear()


@pytest.fixture
def servicer(sandbox: Sandbox) -> Browser:
    return browser_of(Role.SERVICER)


def refresh(*accounts: Account) -> None:
    """Read accounts and their repayments again."""
    for account in accounts:
        for copy in reading.account_copies(account):
            assert reading.read_live(ACTOR, copy)
        account.refresh_from_db()


def advance(sandbox: Sandbox, days: int) -> None:
    sandbox.world.advance(days)
    cache.delete(CACHE_KEY)


def late_loan(sandbox: Sandbox, owner: Borrower | None = None, **terms: Any) -> Account:
    """Create a loan of $100 a month with three installments past due, unless ``terms`` change that."""
    opened = sandbox.world.clock.today() - timedelta(days=100)
    values = {"amount": "1200.00", "interest_rate": "0", "opened": opened} | terms
    loan = given.loan(sandbox, owner or given.borrower(sandbox), **values)
    refresh(loan)
    return loan
