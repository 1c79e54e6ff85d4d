"""axe finds nothing on any page at any width, light or dark, and none scrolls sideways.

Other tests check pages in states that an address alone doesn't lead to, such as a form with errors.
"""

import re

import pytest
from django.conf import settings
from django.test import Client as Browser
from django.urls import reverse
from playwright.sync_api import Page

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.audit.models import Actor
from portal.borrowers.page import TABS
from portal.core.areas import help_pages
from portal.core.business_date import business_date
from portal.gateway import reading
from portal.records.models import Account, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.browser.axe import ALL_RULES, APPEARANCE_RULES, find_problems
from tests.conftest import browser_of
from tests.portal.places import addresses_with_content

pytestmark = pytest.mark.browser

MODES = [
    ("light", 1440, ALL_RULES),
    ("dark", 1440, ["color-contrast"]),  # Nothing else differs in dark,
    ("light", 1024, APPEARANCE_RULES),  # and a wide page says the same things at both widths.
    ("dark", 1024, ["color-contrast"]),
    ("light", 390, ALL_RULES),
    ("dark", 390, ["color-contrast"]),
]
FILES = re.compile(
    r"export|refused|pdf|\.csv|/json/|schedule\.csv|/offers/$|support-bundle|/refresh/|/search/open/"
)
"""Addresses that aren't pages."""
OF_ADMINISTRATORS = [
    "admin:index",
    "admin:accounts_user_changelist",
    "admin:accounts_user_add",
    "operations:status",
]
BESIDES = [
    "accounts:profile",
    "accounts:sessions",
    "account_change_password",
    "mfa_index",
    "mfa_activate_totp",
    "mfa_add_webauthn",
    "home:help:index",
    "lookup:add",
    "lookup:import_records",
    "operations:first_day",
    "admin:audit_entry_changelist",
]
"""Pages that show nothing of one borrower."""
STATES = [
    "/loans/?choose=1&sort=due",
    "/lines/?past_due=yes",
    "/collections/?choose=1",
    "/messages/?status=SUCCESS&q=payment",
    "/messages/?source=copy&limit=0&q=nothing+like+it",
]


def sign_in(page: Page, role: Role) -> None:
    session = browser_of(role).cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": session, "domain": "localhost", "path": "/"}]
    )


def addresses_of(role: Role, portal_service: Sandbox, supervisor: Browser) -> list[str]:
    """The pages of an administrator; or those of a supervisor, who may open all others."""
    if role == Role.ADMIN:
        user = User.objects.get(username=Role.SUPERVISOR).pk
        return [
            *map(reverse, OF_ADMINISTRATORS),
            reverse("admin:accounts_user_change", args=[user]),
            reverse("admin:auth_user_password_change", args=[user]),
        ]
    borrower = given.borrower(portal_service, first_name="Harbor Street Bakery LLC")
    found = addresses_with_content(portal_service, supervisor, borrower)
    loan = Account.objects.get(kind=Kind.LOAN)
    # A wide table of rates, and an entry with a link to a borrower whom its sentence doesn't name.
    for number in range(60):
        error = "R29 - Corporate customer advises not authorized" if number < 12 else None
        status = "FAILED" if error else "SUCCEEDED"
        portal_service.world.repayment(
            loan.uuid, status=status, error_description=error, effective_date=business_date()
        )
    reading.read_and_wait(Actor(name="Maya Chen"), reading.account_copies(loan), force=True)
    supervisor.post(reverse("notes:add", args=[loan.kind, loan.uuid]), {"text": "Pays on Friday."})
    return [
        *(address for address in found.values() if not FILES.search(address)),
        *(f"{found['borrowers:detail']}?tab={tab}" for tab in TABS),
        *map(reverse, BESIDES),
        *STATES,
        *(reverse("home:help:page", args=[address]) for address in help_pages()),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("role", [Role.ADMIN, Role.SUPERVISOR])
def test_no_page_has_a_problem_in_any_mode(
    page: Page, portal_service: Sandbox, supervisor: Browser, role: Role
) -> None:
    sign_in(page, role)
    problems = []
    for address in addresses_of(role, portal_service, supervisor):
        page.goto(address)
        page.wait_for_function("() => !document.querySelector('.htmx-request')")
        problems += [f"{address} {one}" for one in find_problems(page, MODES)]
    assert problems == []
