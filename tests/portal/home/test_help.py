"""Help: its terms appear on the screens, every area has a page, and search finds the pages."""

import re
from datetime import date
from html import unescape
from io import BytesIO

import pytest
from django.conf import LazySettings
from django.test import Client as Browser
from django.urls import reverse
from PIL import Image

from portal.accounts.roles import Role
from portal.audit.models import WriteIntent
from portal.core.areas import help_pages, navigation
from portal.records.models import Account
from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from servicing.version import __version__
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.applications.answers import offer, saved_application
from tests.portal.pages import page, panel, visible_text

NEW = 'Help <span class="sd-badge sd-accent">New</span>'

NOT_REPORTED = ["Forbearance"]
"""Staff ask for it, and help says that the service doesn't report it."""


def screen_text(sandbox: Sandbox) -> str:
    """The text a supervisor sees in every area and on a page of each kind."""
    supervisor = browser_of(Role.SUPERVISOR)
    borrower = given.borrower(sandbox)
    loan, line = given.loan(sandbox, borrower), given.line(sandbox, borrower)
    sandbox.world.repayment(loan.uuid, amount="250.10")
    application = saved_application(borrower, offer(0), offer(1))
    own = application.get_absolute_url()
    supervisor.post(f"{own}prefer/", {"offer": offer(0)["uuid"], "reason": "Cheaper"})
    read = [(loan, "loan"), (line, "line"), (application, "application")]
    read.append((given.loan(sandbox, borrower, status="CHARGED_OFF"), "loan"))
    panels = [panel(supervisor, record.get_absolute_url(), name) for record, name in read]
    Account.objects.filter(pk=line.pk).update(is_past_due=True, past_due=10, next_due_on=date(2026, 7, 1))
    unknown_write = WriteIntent.objects.create(
        submit_id="lost", operation="applications.submit", state="unknown", label="an application",
        borrower_uuid=borrower.uuid, actor_id=1, actor_name="S",
    )  # fmt: skip
    tabs = [f"{borrower.get_absolute_url()}?tab={tab}" for tab in ("overview", "loans", "notes")]
    areas = [reverse(entry.url_name) for entry in navigation() if entry.label != "Audit"]
    areas.append(reverse("admin:audit_entry_changelist"))
    addresses = [*areas, *tabs, line.get_absolute_url(), own, reverse("audit:write", args=[unknown_write.pk])]
    mains = [page(supervisor, address).partition("<main")[2] for address in addresses]
    return visible_text(" ".join([*panels, *mains])).casefold()


@pytest.mark.slow
def test_every_help_term_appears_on_a_screen(portal_service: Sandbox, viewer: Browser) -> None:
    shown = page(viewer, "/help/")
    terms = re.findall(r"<dt>([^<]+)</dt>", shown.partition("data-terms")[2].partition("</dl>")[0])
    assert len(terms) > 15
    text = screen_text(portal_service)
    assert [term for term in terms if term.casefold() not in text] == NOT_REPORTED


@pytest.mark.slow
def test_every_area_has_a_help_page(portal_service: Sandbox, viewer: Browser) -> None:
    for entry in navigation():
        assert help_pages()[entry.url_name.partition(":")[0]].picture
    index = unescape(page(viewer, "/help/"))
    for address, help_page in help_pages().items():
        assert f'href="/help/{address}/"' in index
        shown = page(viewer, f"/help/{address}/")
        assert f"<h1>{help_page.title}</h1>" in shown
        assert len(visible_text(shown.partition("sd-prose")[2].partition("</section>")[0])) > 100
        pictures = re.findall(r'<img class="sd-card sd-picture" src="/static/([^"]+)" alt="([^"]+)"', shown)
        assert pictures == [(f"help/{address}.webp", help_page.picture)] * bool(help_page.picture)
    assert viewer.get("/help/unheard-of/").status_code == 404


def test_help_lists_the_changes_that_need_approval(
    portal_service: Sandbox, viewer: Browser, settings: LazySettings
) -> None:
    assert "need an approval: legal name, SSN, date of birth." in page(viewer, "/help/onboarding/")
    settings.APPROVAL_ACTS = ["email"]
    assert "need an approval: email." in page(viewer, "/help/onboarding/")
    settings.APPROVAL_ACTS = []
    assert "need an approval" not in page(viewer, "/help/onboarding/")


@pytest.mark.slow
def test_help_pictures_are_small() -> None:
    """A first visit may weigh 130 kB, and a Help page without its picture weighs 117 kB."""
    for address in [one.address for one in help_pages().values() if one.picture]:
        content = (BASE_DIR / f"static/help/{address}.webp").read_bytes()
        assert len(content) < 12_500
        assert Image.open(BytesIO(content)).size == (700, 420)


@pytest.mark.slow
def test_first_day_links_open(portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    given.loan(portal_service, borrower)
    given.line(portal_service, borrower)
    saved_application(borrower, offer(0), offer(1))
    for role in (Role.VIEWER, Role.SERVICER):
        browser = browser_of(role)
        tasks = page(browser, "/help/first-day/").partition("sd-prose")[2].partition("</ol>")[0]
        links = re.findall(r'<li><a href="([^"]+)">', tasks)
        assert len(links) == 8
        assert {browser.get(link).status_code for link in links} == {200}


def test_first_day_has_no_dead_links_without_records(portal_service: Sandbox, viewer: Browser) -> None:
    tasks = page(viewer, "/help/first-day/").partition("sd-prose")[2].partition("</ol>")[0]
    assert (tasks.count("<li>"), tasks.count("<a "), tasks.count("nothing on file yet")) == (8, 2, 6)


def test_help_is_in_the_menu_and_explains_search_operators(portal_service: Sandbox, viewer: Browser) -> None:
    assert 'href="/help/"' in viewer.get("/").content.decode()
    assert "past_due:" in page(viewer, "/help/")


def test_search_suggests_help_pages(portal_service: Sandbox, viewer: Browser) -> None:
    def suggestions(text: str) -> str:
        return viewer.get("/search/", {"q": text}, headers=htmx("suggestions")).content.decode()

    assert 'href="/help/loans/"' in suggestions("help loan")
    assert 'href="/help/collections/"' in suggestions("collections")
    assert 'href="/help/first-day/"' in suggestions("first day")
    assert "/help/" not in suggestions("new borrower")


@pytest.mark.slow
def test_each_version_marks_news_as_new_until_opened(portal_service: Sandbox, viewer: Browser) -> None:
    assert NEW in page(viewer, "/loans/")
    news = page(viewer, "/help/news/")
    assert ("Newest changes" if ".dev" in __version__ else f"Version {__version__}") in news
    newest = re.findall(r"\*\*(.+?)\*\*", (BASE_DIR / "CHANGELOG.md").read_text())[0]
    assert f"<b>{newest}</b>" in news
    assert "**" not in news
    assert NEW not in page(viewer, "/loans/")
    viewer.cookies["news"] = "0.1.0"
    assert NEW in page(viewer, "/loans/")
