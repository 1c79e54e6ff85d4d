"""Tests of every list: default orders that use an index, counts, and empty lists."""

import re

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client as Browser

from portal.applications.list_page import APPLICATIONS
from portal.borrowers.list_page import BORROWERS
from portal.credit_lines.list_page import LINES
from portal.loans.list_page import LOANS
from portal.records.models import Kind
from portal.repayments.list_page import REPAYMENTS
from portal.tables.pages import ListPage
from portal.ui.paging import MAX_COUNTED
from servicing.sandbox import Sandbox
from tests import given

pytestmark = pytest.mark.postgres

# The worklist sorts the accounts it has: those past due, and those with payments due since their copy.
LISTS = [BORROWERS, APPLICATIONS, LOANS, LINES, REPAYMENTS]


@pytest.mark.parametrize("list_page", LISTS, ids=lambda one: one.area)
def test_the_default_order_uses_an_index(db: None, list_page: ListPage) -> None:
    found = list_page.find(QueryDict("")).found
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # PostgreSQL prefers to sort when there are only some rows.
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off; SET LOCAL enable_incremental_sort = off")
    for keys in (found.values_list("pk")[:25], found.reverse().values_list("pk")[:25]):
        plan = keys.explain()
        assert "Index" in plan or "INDEX" in plan
        assert "Sort" not in plan
        assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("list_page", [BORROWERS, APPLICATIONS])
@pytest.mark.parametrize("span", ["from=2026-01-01&to=2026-12-31", "from=2026-10-01", "to=2026-10-01"])
def test_a_date_range_sorts_by_the_filtered_date(db: None, list_page: ListPage, span: str) -> None:
    listing = list_page.find(QueryDict(span))
    assert listing.sort == "created"
    assert list_page.find(QueryDict(f"{span}&sort=-created")).sort == "-created"
    if connection.vendor == "sqlite":
        plan = listing.found.values_list("pk")[:25].explain()
        assert re.search(r"INDEX \w+_by_created_at", plan)
        assert "TEMP B-TREE" not in plan


@pytest.mark.slow
@pytest.mark.parametrize("area", ["borrowers", "applications", "loans", "lines", "repayments"])
def test_an_empty_list_does_not_blame_its_filters(viewer: Browser, area: str) -> None:
    page = viewer.get(f"/{area}/?status=FAILED&entity=CORPORATION&q=acme").content.decode()
    assert "on file" in page
    assert "The filters hide" not in page


@pytest.mark.slow
def test_the_count_includes_new_records_at_once(viewer: Browser, portal_service: Sandbox) -> None:
    for number in (1, 2):
        given.borrower(portal_service)
        assert f'id="borrower-total">{number}<' in viewer.get("/borrowers/").content.decode()


@pytest.mark.slow
def test_each_long_list_shows_its_own_count(viewer: Browser, portal_service: Sandbox) -> None:
    numbers = {Kind.BORROWER: MAX_COUNTED + 1, Kind.LOAN: 60}
    for kind, number in numbers.items():
        given.create_records(number, kind=kind, label="Many")
    for kind, shown in {Kind.BORROWER: "10,000+", Kind.LOAN: "60"}.items():
        page = viewer.get(f"/{kind.value}s/").content.decode()
        assert f'id="{kind.value}-total">{shown}<' in page
