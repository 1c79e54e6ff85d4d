"""The list of borrowers on file: its rows, filters, sorting, paging and columns."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.records import store
from portal.records.models import Account, Borrower, Kind, Source
from portal.ui.paging import MAX_COUNTED
from servicing import Application, Decision, Statement
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx

pytestmark = pytest.mark.postgres


def rows(browser: Browser, query: str = "") -> str:
    answer = browser.get(f"/borrowers/{query}", headers=htmx("borrower-rows"))
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_row_shows_the_borrower_and_its_figures(viewer: Browser, portal_service: Sandbox) -> None:
    people = [{"first_name": "Elena", "last_name": "Ortiz"}, {"first_name": "Priya"}]
    borrower = given.borrower(
        portal_service, first_name="Northwind Baking Co LLC", phone="5125550143", key_people=people
    )
    line = given.account(Kind.LINE, borrower, "line-1")
    given.account(Kind.LOAN, borrower, "loan-1")
    Account.objects.filter(pk=line.pk).update(past_due=Decimal("310"))
    viewer.post("/borrowers/", {"column": ["phone", "people", "past_due"]})
    row = rows(viewer)
    for text in ("Northwind Baking Co LLC", "(512) 555-0143", "Eugene, OR", "Elena Ortiz", "$310.00"):
        assert text in row
    assert f'href="/borrowers/{borrower.uuid}/"' in row


def test_a_borrower_with_only_an_id_is_listed_by_name(viewer: Browser) -> None:
    Borrower.objects.create(uuid="b-1", name="Northwind <LLC>")
    assert "Northwind &lt;LLC&gt;" in rows(viewer)


@pytest.mark.parametrize("query", ["?q=northwind", "?q=(512)+555-0143", "?entity=CORPORATION", "?state=TX"])
def test_text_entity_and_state_filter_the_list(viewer: Browser, portal_service: Sandbox, query: str) -> None:
    place = {
        "line_1": "1 Main St",
        "city": "Austin",
        "state": "TX",
        "zip": "78701",
        "country": "UNITED STATES",
    }
    wanted = {"phone": "5125550143", "entity": "CORPORATION", "address": place}
    given.borrower(portal_service, first_name="Northwind Baking Co LLC", **wanted)
    given.borrower(portal_service, first_name="Acme Farms LLC")
    found = rows(viewer, query)
    assert "Baking Co LLC" in found
    assert "Acme Farms" not in found


def test_names_sort_in_both_directions(viewer: Browser, portal_service: Sandbox) -> None:
    for name in ("Birch LLC", "Acorn LLC", "Cedar LLC"):
        given.borrower(portal_service, first_name=name)
    orders = [
        sorted(("Acorn LLC", "Birch LLC", "Cedar LLC"), key=rows(viewer, f"?sort={sort}").index)
        for sort in ("name", "-name")
    ]
    assert orders == [["Acorn LLC", "Birch LLC", "Cedar LLC"], ["Cedar LLC", "Birch LLC", "Acorn LLC"]]


def test_pages_keep_the_filters(viewer: Browser) -> None:
    for number in range(30):
        Borrower.objects.create(uuid=f"b-{number}", name=f"Borrower {number:02}", state="TX")
    first, second = rows(viewer, "?sort=name&state=TX"), rows(viewer, "?sort=name&state=TX&page=2")
    assert "Borrower 24" in first
    assert "Borrower 25" not in first
    assert "Borrower 25" in second
    assert "state=TX" in second


def listed_names(browser: Browser, query: str) -> str:
    """Return the names in the table, in order."""
    return " ".join(re.findall(r'<th scope="row"><a [^>]*><b>([^<]+)</b></a>', rows(browser, query)))


@pytest.fixture
def three_borrowers(portal_service: Sandbox) -> list[Borrower]:
    """Save three borrowers: Late is past due, Asker has an open application, Quiet has no accounts."""
    late, asker, quiet = (
        given.borrower(portal_service, first_name=name, key_people=[]) for name in ("Late", "Asker", "Quiet")
    )
    line = portal_service.world.line(late.uuid)
    statement = Statement(credit_limit=Decimal(5000), past_due_balance=Decimal("310.50"))
    store.save(store.observe(statement, uuid=line["uuid"], borrower_uuid=late.uuid), source=Source.SERVICE)
    given.account(Kind.APPLICATION, asker, "application-1")
    return [late, asker, quiet]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?past_due=yes", "Late"),
        ("?application=open", "Asker"),
        ("?q=past_due:%3E300", "Late"),
        ("?q=status:open", "Asker"),
        ("?sort=past_due", "Late Quiet Asker"),
        ("?sort=-past_due", "Late Asker Quiet"),
        ("?past_due=yes&sort=name", "Late"),
        ("?past_due=yes&application=open", ""),
    ],
)
def test_accounts_filter_and_sort_the_list(
    viewer: Browser, three_borrowers: list[Borrower], query: str, names: str
) -> None:
    assert listed_names(viewer, query) == names


def test_a_decided_application_is_no_longer_open(
    viewer: Browser, portal_service: Sandbox, three_borrowers: list[Borrower]
) -> None:
    decided = Application(uuid="application-1", status=Decision(decision="APPROVED"))
    store.save(store.observe(decided, borrower_uuid=three_borrowers[1].uuid), source=Source.SERVICE)
    assert listed_names(viewer, "?application=open") == ""
    assert listed_names(viewer, "?q=status:approved") == "Asker"


@pytest.mark.parametrize(
    ("query", "names"), [("?checked=day", "New"), ("?checked=older", "Old"), ("?checked=never", "None")]
)
def test_last_update_filters_the_list(viewer: Browser, query: str, names: str) -> None:
    now = timezone.now()
    for name, checked in (("New", now), ("Old", now - timedelta(days=40)), ("None", None)):
        Borrower.objects.create(uuid=name, name=name, checked_at=checked)
    assert listed_names(viewer, query) == names


def test_date_added_filters_the_list(viewer: Browser) -> None:
    for day in (1, 2, 3):
        record = Borrower.objects.create(uuid=f"b-{day}", name=f"Day{day}")
        # This is evening in the business's time zone, but the next day in UTC.
        Borrower.objects.filter(pk=record.pk).update(created_at=datetime(2026, 11, day + 1, 3, tzinfo=UTC))
    assert listed_names(viewer, "?from=2026-11-02&to=2026-11-02") == "Day2"
    assert listed_names(viewer, "?from=2026-11-02&sort=-created") == "Day2 Day3"


def test_added_by_filters_the_list(servicer: Browser, viewer: Browser) -> None:
    for uuid, name in (("b-1", "Mine"), ("b-2", "Other")):
        servicer.post("/registry/add/", {"kind": "borrower", "uuid": uuid, "label": name})
    Borrower.objects.filter(uuid="b-2").update(created_by="Ana Silva")
    page = viewer.get("/borrowers/").content.decode()
    assert re.findall(r'<option value="(\w[^"]*)">Added by', page) == ["Ana Silva", "Servicer (servicer)"]
    assert listed_names(viewer, "?owner=Ana+Silva") == "Other"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?state=ZZ", "State “ZZ” was ignored. Not a US state or territory."),
        ("?from=2026-02-30", "Added from “2026-02-30” was ignored. Not a date."),
        (
            "?from=2026-11-10&to=2026-11-01",
            "Added to “2026-11-01” was ignored. The end is before the start.",
        ),
        ("?checked=soon", "Last updated “soon” was ignored. Not a valid choice."),
        ("?q=colour:blue", "“colour:” isn’t an operator"),
    ],
)
def test_an_invalid_filter_is_reported(viewer: Browser, query: str, words: str) -> None:
    assert words in rows(viewer, query)


def test_each_active_filter_has_a_removable_chip(viewer: Browser, portal_service: Sandbox) -> None:
    given.borrower(portal_service)
    html = rows(viewer, "?q=LLC&state=TX&past_due=yes&sort=name&page=2")
    chips = re.findall(r'sd-chip-here">\s*([^<]+?)\s*<a href="([^"]+)"', html)
    assert chips == [
        ("Text: “LLC”", "?state=TX&amp;past_due=yes&amp;sort=name"),
        ("State: Texas", "?q=LLC&amp;past_due=yes&amp;sort=name"),
        ("Past due", "?q=LLC&amp;state=TX&amp;sort=name"),
    ]


def test_a_column_header_shows_and_reverses_the_order(viewer: Browser, portal_service: Sandbox) -> None:
    given.borrower(portal_service)
    heads = rows(viewer, "?sort=name&state=&q=")
    ascending = (
        r'<th scope="col"\s+aria-sort="ascending">\s*<a class="sd-sort" id="sort-name" href="\?sort=-name"'
    )
    assert re.search(ascending, heads)
    assert heads.count("aria-sort") == 1
    assert 'aria-sort="descending"' in rows(viewer, "?sort=-name")


def test_paging_lists_tied_rows_once(viewer: Browser) -> None:
    Borrower.objects.bulk_create(
        Borrower(uuid=f"b-{number}", name=f"N{number}", city="Austin") for number in range(60)
    )
    pages = [listed_names(viewer, f"?sort=city&page={page}").split() for page in (1, 2, 3)]
    assert sorted(name for page in pages for name in page) == sorted(f"N{number}" for number in range(60))


@pytest.mark.parametrize(("size", "count"), [("25", 25), ("50", 50), ("100", 60), ("7", 25)])
def test_page_size_limits_the_rows(viewer: Browser, size: str, count: int) -> None:
    Borrower.objects.bulk_create(Borrower(uuid=f"b-{number}", name="N") for number in range(60))
    assert rows(viewer, f"?size={size}").count("data-row") == count


def test_a_filtered_count_stops_at_a_limit(viewer: Browser) -> None:
    given.create_records(MAX_COUNTED + 30, kind=Kind.BORROWER, state="TX")
    assert "1 to 25 of 10,000+<" in rows(viewer, "?state=TX")
    assert "of 10,000<" not in rows(viewer, "?state=TX")
    assert 'id="borrower-total" hx-swap-oob="true">10,000+<' in rows(viewer)
    assert f"9,976 to {MAX_COUNTED:,} of" in rows(viewer, "?page=999")


def test_an_htmx_list_includes_its_total_sort_and_size(viewer: Browser, portal_service: Sandbox) -> None:
    given.borrower(portal_service)
    html = rows(viewer, "?sort=name&size=50&q=llc")
    assert '<span class="sd-count" id="borrower-total" hx-swap-oob="true">1</span>' in html
    assert 'name="sort" value="name"' in html
    assert 'name="size" value="50"' in html
    assert "hx-swap-oob" not in viewer.get("/borrowers/").content.decode()


def test_the_pushed_url_omits_empty_filters(viewer: Browser) -> None:
    answer = viewer.get("/borrowers/?q=a&state=&entity=&page=2", headers=htmx("borrower-rows"))
    assert answer["HX-Push-Url"] == "/borrowers/?q=a&page=2"


def test_chosen_columns_are_saved_until_reset(viewer: Browser, portal_service: Sandbox) -> None:
    given.borrower(portal_service, email="ap@north.example")
    answer = viewer.post("/borrowers/?q=llc&sort=name", {"column": ["email", "loans", "evil"]})
    assert (answer.status_code, answer["Location"]) == (303, "/borrowers/?q=llc&sort=name")
    heads = re.findall(r'<th scope="col"[^>]*>\s*(?:<a[^>]*>)?\s*([A-Z][^<]+?)\s*<', rows(viewer))
    assert heads == ["Name", "Email", "Loans"]
    viewer.post("/borrowers/", {"column": ["email"], "reset": "1"})
    assert "Latest decision" in rows(viewer)


def test_columns_are_chosen_per_user(viewer: Browser, servicer: Browser, portal_service: Sandbox) -> None:
    given.borrower(portal_service)
    viewer.post("/borrowers/", {"column": ["email"]})
    assert "Latest decision" in rows(servicer)


def test_rows_share_one_menu(viewer: Browser, portal_service: Sandbox) -> None:
    given.borrower(portal_service)
    given.borrower(portal_service)
    assert rows(viewer).count("data-menu-of=") == 2
    assert rows(viewer).count("Print summary</a>") == 1


def test_the_row_menu_leaves_out_what_a_role_never_has(
    viewer: Browser, servicer: Browser, portal_service: Sandbox
) -> None:
    borrower = given.borrower(portal_service)
    shown = rows(servicer)
    assert 'data-href="/borrowers/00000000-0000-0000-0000-000000000000/applications/new/"' in shown
    assert f'href="/borrowers/{borrower.uuid}/" role="button" data-menu-of="{borrower.uuid}"' in shown
    assert "applications/new/" not in rows(viewer)


def test_an_archived_borrower_is_not_listed(viewer: Browser, portal_service: Sandbox) -> None:
    borrower = given.borrower(portal_service)
    Borrower.objects.filter(pk=borrower.pk).update(archived_at=timezone.now())
    assert borrower.uuid not in rows(viewer)


def test_an_empty_list_shows_none_on_file(viewer: Browser) -> None:
    assert "None on file" in rows(viewer)


def test_filters_without_matches_show_a_message(viewer: Browser, portal_service: Sandbox) -> None:
    given.borrower(portal_service)
    assert "Nothing matches" in rows(viewer, "?q=nobody+like+this")


@pytest.mark.parametrize(
    "query", ["?sort=evil", "?page=x", "?size=7", "?entity=%00", "?q=%00%22", "?state=" + "x" * 999]
)
def test_invalid_parameters_do_not_break_the_list(
    viewer: Browser, portal_service: Sandbox, query: str
) -> None:
    given.borrower(portal_service)
    assert rows(viewer, query).strip().startswith('<div id="borrower-rows"')


def test_only_a_servicer_is_offered_onboarding(viewer: Browser, servicer: Browser) -> None:
    assert 'href="/borrowers/new/"' not in viewer.get("/borrowers/").content.decode()
    assert 'href="/borrowers/new/"' in servicer.get("/borrowers/").content.decode()


def test_an_htmx_fragment_has_only_the_rows(viewer: Browser) -> None:
    assert rows(viewer).strip().startswith('<div id="borrower-rows"')
