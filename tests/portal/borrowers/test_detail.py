"""The borrower page: its profile, warnings, tabs and panels."""

import re
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.audit.models import PageView, WriteIntent
from portal.borrowers.page import MAX_ACCOUNT_ROWS, MAX_LIVE_ACCOUNTS
from portal.core.business_date import business_date
from portal.records.models import Account, Answer, Borrower, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx
from tests.portal.borrowers.editor import Editor
from tests.portal.pages import age_record_views, card, cells, load_panels, panel, visible_text

TABS = ["overview", "people", "applications", "loans", "lines", "repayments", "messages", "notes", "history"]
ACCOUNTS = "Loans and lines of credit of this borrower"
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


def test_key_people_stand_beside_the_profile(viewer: Browser, portal_service: Sandbox) -> None:
    people = [{"first_name": "Renata", "middle_name": None, "last_name": "Vance", "phone": "2075550178"}]
    record = given.borrower(portal_service, key_people=people)
    shown = page(viewer, record).partition('aria-labelledby="people"')[2].partition("</section>")[0]
    assert "Renata Vance" in visible_text(shown)
    assert "(207) 555-0178" in visible_text(shown)


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


@pytest.mark.slow
def test_every_tab_opens_with_only_an_id_on_file(viewer: Browser) -> None:
    record = Borrower.objects.create(uuid="b-1", name="Northwind LLC")
    for tab in TABS:
        assert "Northwind LLC" in page(viewer, record, f"?tab={tab}")


def test_the_404_page_offers_to_search_for_the_id(viewer: Browser) -> None:
    uuid = "0f3c2a51-7d7e-4c0f-9d5b-3e6a1b2c4d5e"
    answer = viewer.get(f"/borrowers/{uuid}/")
    assert answer.status_code == 404
    assert f'name="q" value="{uuid}"' in " ".join(answer.content.decode().split())


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_history_lists_a_settled_write_once(servicer: Browser, borrower: Borrower) -> None:
    Editor(servicer, borrower).send(email="payables@northwind.example")
    shown = visible_text(page(servicer, borrower, "?tab=history"))
    assert "Confirmed" in shown
    assert "started changing" not in shown


def test_the_payoff_of_lines_explains_a_missing_total(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    given.line(portal_service, borrower, payoff_balance=Decimal("1200.10"), available_credit=Decimal("800"))
    address = borrower.get_absolute_url()
    assert "Unknown until loaded" in card(page(viewer, borrower), "Payoff")
    load_panels(viewer, address)
    assert card(page(viewer, borrower), "Payoff").endswith("$1,200.10 $800.00 available")
    other = given.line(portal_service, borrower, payoff_balance=None)
    assert "Unknown until 1 more is loaded" in card(page(viewer, borrower), "Payoff")
    panel(viewer, other.get_absolute_url(), "line")
    assert "2 lines — Not totaled" in card(page(viewer, borrower), "Payoff")


def test_accounts_come_first_with_what_is_past_due_on_top(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    line = given.line(
        portal_service, borrower, credit_limit=Decimal("5000"), principal_balance=Decimal("125.5")
    )
    late = given.loan(
        portal_service, borrower, opened=business_date() - timedelta(days=70), autopay_enabled=False
    )
    new = given.loan(
        portal_service, borrower, installments=0, repayments_start_date=None, autopay_enabled=True
    )
    not_loaded = given.loan(portal_service, borrower)
    for record, part in ((line, "line"), (late, "loan"), (new, "loan")):
        panel(viewer, record.get_absolute_url(), part)
    shown = page(viewer, borrower)
    rows = {row["Account"].split()[1]: row for row in cells(shown, ACCOUNTS)}
    assert list(rows) == [one.uuid[:8] for one in (late, not_loaded, new, line)]
    worst = rows[late.uuid[:8]]
    assert worst["Account"].startswith(f"Loan {late.uuid[:8]} Past due Amount $12,000.00")
    assert worst["Past due"].startswith("$")
    days = int(worst["Days past due"])
    assert (worst["Autopay"], worst["Status"]) == ("Off", "Past due")
    assert f"{days} days past due" in visible_text(shown.partition("</h1>")[2].partition("sd-actions")[0])
    assert (rows[new.uuid[:8]]["Past due"], rows[new.uuid[:8]]["Autopay"]) == ("No schedule yet", "On")
    assert rows[new.uuid[:8]]["Status"] == "Active"
    assert rows[line.uuid[:8]]["Account"].endswith("Limit $5,000.00")
    assert (rows[line.uuid[:8]]["Principal"], rows[line.uuid[:8]]["Past due"]) == ("$125.50", "")
    assert rows[not_loaded.uuid[:8]]["Account"].endswith("Not loaded yet")
    assert rows[not_loaded.uuid[:8]]["Principal"] == ""
    table = shown.partition(ACCOUNTS)[2]
    assert all(f'<a href="{one.get_absolute_url()}">' in table for one in (late, new, line))
    assert shown.index(ACCOUNTS) < shown.index('id="timeline"')


def test_of_very_many_accounts_forty_are_shown(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    for number in range(MAX_ACCOUNT_ROWS + 2):
        given.account(Kind.LINE, borrower, f"line-{number}")
    shown = page(viewer, borrower)
    assert len(cells(shown, ACCOUNTS)) == MAX_ACCOUNT_ROWS
    assert "The first 40 of 42, past due first." in card(shown, "Accounts")


def test_repayments_of_the_same_amount_are_one_run(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    loan = given.loan(portal_service, borrower)
    world = portal_service.world
    for day, amount, status in (
        ("2026-01-05", "310.00", "SUCCEEDED"),
        ("2026-02-05", "310.00", "SUCCEEDED"),
        ("2026-03-05", "310.00", "FAILED"),
        ("2026-03-09", "310.00", "FAILED"),
        ("2026-04-05", "310.00", "SUCCEEDED"),
        ("2026-05-05", "310.00", "SUCCEEDED"),
        ("2026-06-05", "310.00", "SUCCEEDED"),
        ("2026-06-30", "95.40", "SUCCEEDED"),
    ):
        world.repayment(loan.uuid, amount=amount, effective_date=day, status=status)
    load_panels(viewer, borrower.get_absolute_url())
    rows = timeline_rows(page(viewer, borrower))
    of = f"Loan {loan.uuid[:8]}"
    assert rows == [
        f"Repayment succeeded Jun 30. {of} $95.40",
        "3 repayments of $310.00 succeeded Jun 5, 2026 · May 5, 2026 · Apr 5, 2026. Open account"
        f" Apr 5 – Jun 5. {of} $930.00",
        f"Repayment failed Mar 9. {of} $310.00",
        f"Repayment failed Mar 5. {of} $310.00",
        "2 repayments of $310.00 succeeded Feb 5, 2026 · Jan 5, 2026. Open account"
        f" Jan 5 – Feb 5. {of} $620.00",
    ]
    assert "Payments 8" in card(page(viewer, borrower), "Timeline")


def test_the_timeline_has_eight_rows_and_shows_earlier_ones(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    loan = given.loan(portal_service, borrower)
    for number in range(12):
        portal_service.world.repayment(loan.uuid, amount=f"{310 + number}.00", status="SUCCEEDED")
    load_panels(viewer, borrower.get_absolute_url())
    shown = page(viewer, borrower, scripted=False)
    assert len(timeline_rows(shown)) == 8
    earlier = re.search(r'id="events-earlier" href="([^"]+)"', shown)
    assert earlier
    shown = page(viewer, borrower, earlier[1].replace("&amp;", "&"), scripted=False)
    assert len(timeline_rows(shown)) == 12
    assert 'id="events-earlier"' not in shown


def timeline_rows(shown: str) -> list[str]:
    """Return the text of each row of the timeline."""
    timeline = shown.partition('class="sd-timeline"')[2].partition("</section>")[0]
    return [visible_text(row) for row in re.findall(r"<li>.*?</li>", timeline, re.DOTALL)]


@pytest.mark.slow
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


@pytest.mark.slow
def test_repeated_views_are_recorded_once(viewer: Browser, borrower: Borrower) -> None:
    page(viewer, borrower)
    page(viewer, borrower, "?tab=people")
    view = PageView.objects.get(page="borrowers.detail")
    assert (view.actor_name, view.subject_uuid, view.count) == ("Viewer (viewer)", borrower.uuid, 2)
    history = page(viewer, borrower, "?tab=history")
    assert "opened borrower" not in history
    assert ">Borrower</th>" not in history


@pytest.mark.slow
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
    assert "Amount $12,000.00" in cells(page(viewer, borrower), ACCOUNTS)[0]["Account"]
    loan.refresh_from_db()
    assert loan.answer.failing_since is not None


def test_the_last_repayment_is_of_today_or_earlier(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    loan, today = given.loan(portal_service, borrower), timezone.localdate()
    for days, amount in ((-1, "10.00"), (0, "20.00"), (1, "30.00")):
        day = today + timedelta(days=days)
        portal_service.world.repayment(loan.uuid, amount=amount, effective_date=day)
    load_panels(viewer, borrower.get_absolute_url())
    shown = card(page(viewer, borrower), "Last repayment")
    assert f"$20.00 {today:%b} {today.day}, {today.year}, succeeded" in shown


def test_an_unknown_borrower_is_not_found(viewer: Browser) -> None:
    assert viewer.get("/borrowers/nobody/").status_code == 404


def test_rows_of_many_accounts_load_themselves(
    viewer: Browser, portal_service: Sandbox, borrower: Borrower
) -> None:
    number = MAX_LIVE_ACCOUNTS + 2
    for _ in range(number):
        given.loan(portal_service, borrower, amount=100)
    address = borrower.get_absolute_url()
    rows = load_panels(viewer, f"{address}?tab=loans")
    assert len(rows) == number
    assert all("$100.00" in row for row in rows.values())
    assert page(viewer, borrower, "?tab=loans").count("<tr data-row") == number


@pytest.mark.slow
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
