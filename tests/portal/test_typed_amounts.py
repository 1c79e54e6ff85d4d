"""Tests that an invalid amount is shown again as typed, with an error message."""

from html import escape
from urllib.parse import quote

import pytest
from django.test import Client as Browser

from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import visible_text

STRANGE = {
    "1e5": "Enter an amount in dollars",
    "١٢": "Enter an amount in dollars",
    "1,2,3": "Enter an amount in dollars",
    "<b>": "Enter an amount in dollars",
    "12\t5": "Enter an amount in dollars",
    "25.000": "The amount can have at most two decimal places",
    "1.234": "The amount can have at most two decimal places",
    "$1,234.5000": "The amount can have at most two decimal places",
    "$-5": "The amount must be greater than zero",
    "99999999999999999999": "The amount can be at most $999,999,999.99",
}


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/repayments/", "/messages/"])
@pytest.mark.parametrize("typed", STRANGE)
def test_a_filter_shows_the_invalid_amount_again(viewer: Browser, path: str, typed: str) -> None:
    page = viewer.get(f"{path}?least={quote(typed)}").content.decode()
    assert f'value="{escape(typed)}"' in page
    assert STRANGE[typed] in visible_text(page)


@pytest.mark.slow
@pytest.mark.parametrize("typed", STRANGE)
def test_the_application_form_shows_the_invalid_amount_again(
    servicer: Browser, portal_service: Sandbox, typed: str
) -> None:
    owner = given.borrower(portal_service)
    page = servicer.post(f"{owner.get_absolute_url()}applications/new/", {"amount": typed}).content.decode()
    assert f'value="{escape(typed)}"' in page
    assert STRANGE[typed] in visible_text(page)
