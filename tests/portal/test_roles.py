"""Tests that pages offer only allowed acts, and don't show the others."""

import re
from collections.abc import Iterator
from datetime import date

import pytest
from django.test import Client as Browser
from django.urls import Resolver404, resolve
from django.utils.html import strip_tags

from portal.accounts.roles import ACTS, Role
from portal.core.areas import navigation
from portal.records.models import Account, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, browser_of_superuser
from tests.portal.pages import page, panel

LINK_OR_FORM = re.compile(r'<(a|form)\b[^>]*?\b(?:href|action)="(/[^"?#]*)[^"]*"[^>]*>(.*?)</\1>', re.DOTALL)
DISABLED = re.compile(
    r"<(span|button|a)\b[^>]*\b(?:aria-disabled=\"true\"|disabled)[^>]*>(.*?)</\1>", re.DOTALL
)


@pytest.fixture
def places(portal_service: Sandbox) -> list[str]:
    """The URLs of one page of each kind, with records that offer actions."""
    borrower = given.borrower(portal_service)
    loan, line = given.loan(portal_service, borrower), given.line(portal_service, borrower)
    submitted = portal_service.world.line_application(borrower.uuid)["uuid"]
    application = given.account(Kind.APPLICATION, borrower, submitted)
    given.account(Kind.LOAN, borrower, "no-such-loan")
    Account.objects.filter(pk=line.pk).update(is_past_due=True, past_due=10, next_due_on=date(2026, 7, 1))
    supervisor = browser_of(Role.SUPERVISOR)
    for record, name in ((loan, "loan"), (line, "line"), (application, "application")):
        panel(supervisor, record.get_absolute_url(), name)
    own = borrower.get_absolute_url()
    tabs = [f"{own}?tab={tab}" for tab in ("people", "applications", "loans", "notes")]
    records = [one.get_absolute_url() for one in (loan, line, application)]
    lists = [
        "/",
        "/borrowers/",
        "/applications/",
        "/loans/",
        "/lines/",
        "/repayments/",
        "/messages/",
        "/status/",
    ]
    searches = ["/search/?q=5c2d8d0e-9d47-4a60-b1c5-7e8f90a2d364", "/search/?q=zzqqxx"]
    return [*lists, *searches, own, *tabs, *records, f"/registry/loan/{loan.uuid}/"]


def act_of(address: str) -> str:
    """Return the act of the view at an address; empty if every signed-in user may open it."""
    try:
        return str(getattr(resolve(address).func, "act", ""))
    except Resolver404:
        return ""


def text_of(inner: str) -> str:
    """Return the visible text of a link or button without small print."""
    return " ".join(strip_tags(re.sub("<small>.*?</small>", "", inner, flags=re.DOTALL)).split())


def offered_acts(shown: str) -> Iterator[tuple[str, str]]:
    """Yield each act that a page offers, with the text of its link or button."""
    for _, address, inner in LINK_OR_FORM.findall(shown):
        if act := act_of(address):
            yield act, text_of(inner)


@pytest.mark.slow
@pytest.mark.parametrize("role", Role)
def test_no_page_offers_an_act_the_role_lacks(places: list[str], role: Role) -> None:
    offers, superuser_offers = (
        {(place, act) for place in places for act, _ in offered_acts(page(browser, place))}
        for browser in (browser_of(role), browser_of_superuser(role))
    )
    assert len(offers) > 50
    assert [one for one in offers if role not in ACTS[one[1]].roles] == []
    assert superuser_offers == offers


@pytest.mark.slow
def test_a_button_that_a_role_never_has_is_not_shown(places: list[str]) -> None:
    viewer = browser_of(Role.VIEWER)
    disabled = {
        (place, text_of(inner)) for place in places for _, inner in DISABLED.findall(page(viewer, place))
    }
    assert disabled == set()


@pytest.mark.parametrize("role", Role)
def test_the_navigation_lists_only_allowed_areas(portal_service: Sandbox, role: Role) -> None:
    shown = page(browser_of(role), "/")
    areas = set(re.findall(r'data-go="(.)"', shown))
    assert areas == {entry.key for entry in navigation() if role in ACTS[entry.act].roles}


def test_the_home_page_links_supervisors_to_approvals(supervisor: Browser) -> None:
    assert '<a href="/approvals/" data-go="v"' in page(supervisor, "/")
