"""What a person may not do stands on the page, disabled and with the reason; no link leads to a refusal."""

import re
from collections.abc import Iterator
from datetime import date

import pytest
from django.test import Client as Browser
from django.urls import Resolver404, resolve
from django.utils.html import strip_tags

from portal.accounts.roles import ACTS, Role
from portal.registry.models import Kind, Record
from portal.ui.frame import AREAS
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, browser_of_superuser
from tests.portal.pages import page, panel

OFFER = re.compile(r'<(a|form)\b[^>]*?\b(?:href|action)="(/[^"?#]*)[^"]*"[^>]*>(.*?)</\1>', re.DOTALL)
DISABLED = re.compile(
    r"<(span|button|a)\b[^>]*\b(?:aria-disabled=\"true\"|disabled)[^>]*>(.*?)</\1>", re.DOTALL
)
# Where one enters: who may not, does not see the door.
DOORS = {area.act for areas in AREAS.values() for area in areas} | {"audit.detail", "accounts.staff"}


@pytest.fixture
def places(portal_service: Sandbox) -> list[str]:
    """A page of each kind, with something on it that could be done."""
    borrower = given.borrower(portal_service)
    loan, line = given.loan(portal_service, borrower), given.line(portal_service, borrower)
    submitted = portal_service.world.line_application(borrower.uuid)["uuid"]
    application = given.account(Kind.APPLICATION, borrower, submitted)
    given.account(Kind.LOAN, borrower, "no-such-loan")
    Record.objects.filter(pk=line.pk).update(flagged=True, past_due=10, key_date=date(2026, 7, 1))
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
    found = ["/search/?q=5c2d8d0e-9d47-4a60-b1c5-7e8f90a2d364", "/search/?q=zzqqxx"]
    return [*lists, *found, own, *tabs, *records, f"/registry/loan/{loan.uuid}/"]


def act_at(address: str) -> str:
    """The act behind an address; none where everybody who is signed in may."""
    try:
        return str(getattr(resolve(address).func, "act", ""))
    except Resolver404:
        return ""


def words_of(inner: str) -> str:
    """What is written on it."""
    return " ".join(strip_tags(re.sub("<small>.*?</small>", "", inner, flags=re.DOTALL)).split())


def seen(browser: Browser, address: str) -> str:
    """The page without what is only said aloud."""
    return re.sub(r'<span\s+class="visually-hidden">.*?</span>', "", page(browser, address), flags=re.DOTALL)


def offered(shown: str) -> Iterator[tuple[str, str]]:
    """Each act that a page leads to, with the words on its link or button."""
    for _, address, inner in OFFER.findall(shown):
        if act := act_at(address):
            yield act, words_of(inner)


@pytest.mark.parametrize("role", Role)
def test_no_page_leads_where_a_person_may_not_go(places: list[str], role: Role) -> None:
    offers, superuser_offers = (
        {(place, act) for place in places for act, _ in offered(page(browser, place))}
        for browser in (browser_of(role), browser_of_superuser(role))
    )
    assert len(offers) > 50
    assert [one for one in offers if role not in ACTS[one[1]].roles] == []
    assert superuser_offers == offers


def test_what_a_supervisor_may_do_a_viewer_sees_disabled_with_the_reason(places: list[str]) -> None:
    supervisor, viewer = browser_of(Role.SUPERVISOR), browser_of(Role.VIEWER)
    missing, compared = [], 0
    for place in places:
        disabled = {words_of(inner) for _, inner in DISABLED.findall(seen(viewer, place))}
        for act, words in set(offered(seen(supervisor, place))):
            if Role.VIEWER not in ACTS[act].roles and act not in DOORS:
                compared += 1
                missing += [] if words in disabled else [(place, act, words)]
    assert compared > 30
    assert missing == []


@pytest.mark.parametrize("role", Role)
def test_the_navigation_has_the_areas_one_may_enter_and_no_other(portal_service: Sandbox, role: Role) -> None:
    shown = page(browser_of(role), "/")
    areas = set(re.findall(r'data-go="(.)"', shown))
    assert areas == {area.key for group in AREAS.values() for area in group if role in ACTS[area.act].roles}


def test_a_supervisor_finds_what_waits_for_approval(supervisor: Browser) -> None:
    assert '<a href="/approvals/" data-go="v"' in page(supervisor, "/")
