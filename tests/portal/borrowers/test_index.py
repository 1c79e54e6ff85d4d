"""The list of borrowers that this desk knows, with what each one has."""

from decimal import Decimal

import pytest
from django.test import Client as Browser
from django.utils import timezone

from portal.registry.models import Kind, Record
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import htmx


def rows(browser: Browser, query: str = "") -> str:
    answer = browser.get(f"/borrowers/{query}", headers=htmx("borrower-rows"))
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_row_tells_who_it_is_and_what_it_has(viewer: Browser, desk: Sandbox) -> None:
    people = [{"first_name": "Elena", "last_name": "Ortiz"}, {"first_name": "Priya"}]
    borrower = given.borrower(
        desk, first_name="Northwind Baking Co LLC", phone="5125550143", key_people=people
    )
    line = given.account(Kind.LINE, borrower, "line-1")
    given.account(Kind.LOAN, borrower, "loan-1")
    Record.objects.filter(pk=line.pk).update(past_due=Decimal("310"))
    row = rows(viewer)
    for text in ("Northwind Baking Co LLC", "(512) 555-0143", "Eugene, OR", "Elena Ortiz", "$310.00"):
        assert text in row
    assert f'href="/borrowers/{borrower.uuid}/"' in row


def test_a_bare_identifier_is_listed_with_its_name(viewer: Browser) -> None:
    Record.objects.create(kind=Kind.BORROWER, uuid="b-1", borrower_uuid="b-1", label="Northwind <LLC>")
    assert "Northwind &lt;LLC&gt;" in rows(viewer)


@pytest.mark.parametrize("query", ["?q=northwind", "?q=(512)+555-0143", "?entity=CORPORATION", "?state=TX"])
def test_it_is_narrowed_by_text_entity_and_state(viewer: Browser, desk: Sandbox, query: str) -> None:
    place = {
        "line_1": "1 Main St",
        "city": "Austin",
        "state": "TX",
        "zip": "78701",
        "country": "UNITED STATES",
    }
    wanted = {"phone": "5125550143", "entity": "CORPORATION", "address": place}
    given.borrower(desk, first_name="Northwind Baking Co LLC", **wanted)
    given.borrower(desk, first_name="Acme Farms LLC")
    found = rows(viewer, query)
    assert "Baking Co LLC" in found
    assert "Acme Farms" not in found


def test_it_can_be_put_in_order_both_ways(viewer: Browser, desk: Sandbox) -> None:
    for name in ("Birch LLC", "Acorn LLC", "Cedar LLC"):
        given.borrower(desk, first_name=name)
    orders = [
        sorted(("Acorn LLC", "Birch LLC", "Cedar LLC"), key=rows(viewer, f"?sort={sort}").index)
        for sort in ("name", "-name")
    ]
    assert orders == [["Acorn LLC", "Birch LLC", "Cedar LLC"], ["Cedar LLC", "Birch LLC", "Acorn LLC"]]


def test_it_is_paged_and_keeps_its_filters(viewer: Browser) -> None:
    for number in range(30):
        Record.objects.create(
            kind=Kind.BORROWER, uuid=f"b-{number}", label=f"Borrower {number:02}", state="TX"
        )
    first, second = rows(viewer, "?sort=name&state=TX"), rows(viewer, "?sort=name&state=TX&page=2")
    assert "Borrower 24" in first
    assert "Borrower 25" not in first
    assert "Borrower 25" in second
    assert "state=TX" in second


def test_an_archived_borrower_is_gone(viewer: Browser, desk: Sandbox) -> None:
    borrower = given.borrower(desk)
    Record.objects.filter(pk=borrower.pk).update(archived_at=timezone.now())
    assert borrower.uuid not in rows(viewer)


def test_an_empty_list_says_how_borrowers_come_here(viewer: Browser) -> None:
    assert "No borrower is known yet" in rows(viewer)


def test_filters_that_hide_everybody_say_so(viewer: Browser, desk: Sandbox) -> None:
    given.borrower(desk)
    assert "No borrower matches" in rows(viewer, "?q=nobody+like+this")


@pytest.mark.parametrize(
    "query", ["?sort=evil", "?page=x", "?size=7", "?entity=%00", "?q=%00%22", "?state=" + "x" * 999]
)
def test_what_is_not_understood_breaks_nothing(viewer: Browser, desk: Sandbox, query: str) -> None:
    given.borrower(desk)
    rows(viewer, query)


def test_only_who_may_is_offered_to_onboard(viewer: Browser, servicer: Browser) -> None:
    assert 'href="/borrowers/new/"' not in viewer.get("/borrowers/").content.decode()
    assert 'href="/borrowers/new/"' in servicer.get("/borrowers/").content.decode()


def test_a_fragment_holds_the_rows_alone(viewer: Browser) -> None:
    assert rows(viewer).strip().startswith('<div id="borrower-rows"')
