"""What the tests of borrowers share: a business and a person that are known, and an edit of each."""

import pytest
from django.conf import LazySettings
from django.test import Client as Browser

from portal.registry.models import Record
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.borrowers.editor import Editor
from tests.portal.borrowers.wizard import Wizard


@pytest.fixture
def borrower(portal_service: Sandbox) -> Record:
    return given.borrower(portal_service)


@pytest.fixture
def editor(servicer: Browser, borrower: Record) -> Editor:
    return Editor(servicer, borrower)


@pytest.fixture
def person(portal_service: Sandbox) -> Record:
    return given.individual(portal_service, middle_name="June")


@pytest.fixture
def of_person(servicer: Browser, person: Record) -> Editor:
    return Editor(servicer, person)


@pytest.fixture(autouse=True)
def nobody_approves(settings: LazySettings) -> None:
    """A second person has tests of their own."""
    settings.APPROVAL_ACTS = []


@pytest.fixture
def wizard(servicer: Browser) -> Wizard:
    """A draft that is ready to be sent."""
    return Wizard(servicer).fill()
