"""The borrower page: its profile, warnings, tabs and panels."""

import re
from uuid import uuid4

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import PageView, WriteIntent
from portal.borrowers.page import MAX_LIVE_ACCOUNTS
from portal.records.models import Account, Answer, Borrower, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal.borrowers.editor import Editor
from tests.portal.pages import age_record_views, load_panels, panel, visible_text

TABS = ["overview", "people", "applications", "loans", "lines", "repayments", "messages", "notes", "history"]
pytestmark = pytest.mark.django_db(transaction=True)  # Other threads call the service.


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service, first_name="Northwind Baking Co LLC", phone="5125550143")


def page(browser: Browser, record: Account, query: str = "", *, scripted: bool = True) -> str:
    """Return the page; with scripts on, it is built from saved copies."""
    if scripted:
        browser.cookies["js"] = "1"
    answer = browser.get(f"/borrowers/{record.uuid}/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_page_shows_the_borrowers_profile(viewer: Browser, borrower: Borrower) -> None:
    shown = page(viewer, borrower)
    for text in (
        "Northwind Baking Co LLC",
        "Business",
        "Limited liability company",
        "(512) 555-0143",
        "Eugene",
    ):
        assert text in shown


def test_names_and_emails_are_escaped(viewer: Browser, portal_service: Sandbox) -> None:
    shown = page(
        viewer, given.borrower(portal_service, first_name="<script>alert(1)</script>", email='"><b>@x')
    )
    assert "<script>alert(1)" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert '"><b>@x' not in shown


@pytest.mark.parametrize(
    ("url", "is_link"),
    [("https://pay.example/c/1", True), ("javascript:alert(1)", False), ("http://pay.example/", False)],
)
def test_only_https_urls_become_links(
    viewer: Browser, portal_service: Sandbox, url: str, is_link: bool
) -> None:
    shown = page(viewer, given.borrower(portal_service, provider_customer_url=url))
    assert (f'href="{url}"' in shown) == is_link


def test_every_tab_opens_with_only_an_id_on_file(viewer: Browser) -> None:
    record = Borrower.objects.create(uuid="b-1", name="Northwind LLC")
    for tab in TABS:
        assert "Northwind LLC" in page(viewer, record, f"?tab={tab}")


def test_the_404_page_offers_to_search_for_the_id(viewer: Browser) -> None:
    uuid = "0f3c2a51-7d7e-4c0f-9d5b-3e6a1b2c4d5e"
    answer = viewer.get(f"/borrowers/{uuid}/")
    assert answer.status_code == 404
    assert f'name="q" value="{uuid}"' in " ".join(answer.content.decode().split())


def test_an_individual_has_no_key_people_tab(viewer: Browser, portal_service: Sandbox) -> None:
    record = given.individual(portal_service, first_name="Ines", last_name="Duarte")
    shown = page(viewer, record)
    assert "Ines Duarte" in shown
    assert '"?tab=people"' not in shown
    assert "An individual has no key people" in page(viewer, record, "?tab=people")


def test_a_person_without_a_user_type_is_an_individual(viewer: Browser, portal_service: Sandbox) -> None:
    shown = page(
        viewer, given.individual(portal_service, first_name="Ines", last_name="Duarte", user_type=None)
    )
    assert "Individual" in shown
    assert "?tab=people" not in shown
    assert "No SSN or date of birth on file" in " ".join(shown.split())


def test_the_timeline_shows_changes_and_repayments(
    servicer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    loan = given.loan(portal_service, borrower)
    portal_service.world.repayment(loan.uuid, amount="310.00")
    Editor(servicer, borrower).send(email="payables@northwind.example")
    load_panels(servicer, borrower.get_absolute_url())
    shown = visible_text(page(servicer, borrower))
    assert "changed email of Northwind Baking Co LLC" in shown
    assert f"email: was: {borrower.email} is: payables@northwind.example" in shown
    assert re.search(rf"Repayment \w+ [^$]*Loan {loan.uuid[:8]}", shown)


def test_history_lists_a_settled_write_once(servicer: Browser, borrower: Borrower) -> None:
    Editor(servicer, borrower).send(email="payables@northwind.example")
    shown = visible_text(page(servicer, borrower, "?tab=history"))
    assert "Confirmed" in shown
    assert "started changing" not in shown


def test_the_position_card_explains_a_missing_total(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    loan = given.loan(portal_service, borrower)
    portal_service.world.amend(loan.uuid, amount=None)
    assert "Unknown until loaded" in page(viewer, borrower)
    load_panels(viewer, borrower.get_absolute_url())
    assert "Not provided by the service (" in panel(viewer, f"/borrowers/{borrower.uuid}/", "position")
    given.account(Kind.LOAN, borrower, str(uuid4()))
    assert "Unknown until 1 more is loaded" in page(viewer, borrower)


@pytest.mark.parametrize("tab", [*TABS, "evil", ""])
def test_every_tab_opens_with_all_kinds_of_accounts(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower, tab: str
) -> None:
    world = portal_service.world
    loan, line = world.loan(borrower.uuid, paid=3), world.line(borrower.uuid, drawn="2500.00")
    world.repayment(loan["uuid"], amount="310.00")
    given.account(Kind.LOAN, borrower, loan["uuid"])
    given.account(Kind.LINE, borrower, line["uuid"])
    given.account(Kind.APPLICATION, borrower, world.line_application(borrower.uuid)["uuid"])
    assert 'aria-current="page"' in page(viewer, borrower, f"?tab={tab}", scripted=False)


def test_htmx_fetches_one_tab(viewer: Browser, borrower: Borrower) -> None:
    viewer.cookies["js"] = "1"
    answer = viewer.get(f"/borrowers/{borrower.uuid}/?tab=people", headers=htmx("borrower-tab"))
    fragment = answer.content.decode().strip()
    assert 'id="borrower-tab"' in fragment.partition(">")[0]
    assert "Maya Lindqvist" in fragment


def test_page_warns_of_an_unknown_outcome(viewer: Browser, borrower: Borrower) -> None:
    write = WriteIntent.objects.create(
        submit_id=uuid4().hex, label="Email of Northwind", state="unknown", borrower_uuid=borrower.uuid
    )
    shown = page(viewer, borrower)
    assert "Unclear whether “Email of Northwind” went through:" in shown
    WriteIntent.objects.update(method="PUT", label="Northwind", actor_name="Ana")
    changed = page(viewer, borrower)
    assert "Unclear whether the change to “Northwind” went through:" in changed
    assert "Don’t resend. Ask the lender first." in changed
    assert f'href="{write.get_absolute_url()}"' in shown


def test_an_archived_borrower_is_marked(viewer: Browser, borrower: Borrower) -> None:
    Borrower.objects.filter(pk=borrower.pk).update(archived_at=timezone.now())
    assert "Archived" in page(viewer, borrower)


def test_repeated_views_are_recorded_once(viewer: Browser, borrower: Borrower) -> None:
    page(viewer, borrower)
    page(viewer, borrower, "?tab=people")
    view = PageView.objects.get(page="borrowers.detail")
    assert (view.actor_name, view.subject_uuid, view.count) == ("Viewer (viewer)", borrower.uuid, 2)
    history = page(viewer, borrower, "?tab=history")
    assert "opened borrower" not in history
    assert ">Borrower</th>" not in history


def test_a_failed_read_keeps_the_saved_copy(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    loan = given.loan(portal_service, borrower, amount="12000.00")
    address = borrower.get_absolute_url()
    load_panels(viewer, address)
    loan.refresh_from_db()
    assert (loan.status, loan.checked_at is not None) == ("ACTIVE", True)
    Answer.objects.update(asked_at=None)
    portal_service.fail_next("loans.get", status=500)
    load_panels(viewer, address)
    assert "$12,000.00" in panel(viewer, address, "position")
    loan.refresh_from_db()
    assert loan.answer.failing_since is not None


def test_an_unknown_borrower_is_not_found(viewer: Browser) -> None:
    assert viewer.get("/borrowers/nobody/").status_code == 404


def test_a_total_waits_for_every_account(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    number = MAX_LIVE_ACCOUNTS + 2
    for _ in range(number):
        given.loan(portal_service, borrower, amount=100)
    address = borrower.get_absolute_url()
    rows = load_panels(viewer, f"{address}?tab=loans")
    assert len(rows) == number
    assert all("$100.00" in row for row in rows.values())
    unread = Account.objects.filter(kind=Kind.LOAN)[:2]
    Account.objects.filter(pk__in=[one.pk for one in unread]).update(answer_at=None)
    Answer.objects.filter(pk__in=[one.answer_id for one in unread]).update(
        body="", last_at=None, asked_at=None
    )
    assert "unknown until 2 more are loaded" in panel(viewer, address, "position").lower()
    for loan in unread:
        panel(viewer, f"{loan.get_absolute_url()}?refresh=1", "loan")
    shown = panel(viewer, address, "position")
    assert f"{number} loans" in shown
    assert "$1,400.00" in shown
    assert page(viewer, borrower, "?tab=loans").count("<tr data-row") == number


def test_a_person_is_listed_once_among_recent_viewers(
    viewer: Browser, servicer: Browser, borrower: Borrower
) -> None:
    page(viewer, borrower)
    page(servicer, borrower)
    age_record_views()
    page(viewer, borrower)
    assert PageView.objects.count() == 3
    shown = page(servicer, borrower).partition("Recently viewed by")[2].partition("</ul>")[0]
    assert re.findall(r"<span>(\w+) ", shown) == ["Servicer", "Viewer"]
