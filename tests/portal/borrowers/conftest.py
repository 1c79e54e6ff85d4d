"""Fixtures for borrower tests: a business, an individual, an editor for each, and an onboarding draft."""

import pytest
from django.conf import LazySettings
from django.test import Client as Browser

from portal.records.models import Account, Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.borrowers.editor import Editor
from tests.portal.borrowers.wizard import Wizard


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service)


@pytest.fixture
def editor(servicer: Browser, borrower: Borrower) -> Editor:
    return Editor(servicer, borrower)


@pytest.fixture
def person(portal_service: Sandbox) -> Account:
    return given.individual(portal_service, middle_name="June")


@pytest.fixture
def person_editor(servicer: Browser, person: Account) -> Editor:
    return Editor(servicer, person)


@pytest.fixture(autouse=True)
def no_approvals(settings: LazySettings) -> None:
    """Turn approvals off; they have their own tests."""
    settings.APPROVAL_ACTS = []


@pytest.fixture
def wizard(servicer: Browser) -> Wizard:
    """Return a draft with every step filled in but the last."""
    return Wizard(servicer).fill()
