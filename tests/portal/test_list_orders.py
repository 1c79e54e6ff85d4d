"""What every list promises: each order is read along an index, on either database; an empty one says that it is."""

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client as Browser

from portal.applications import views as applications
from portal.borrowers import listed
from portal.credit_lines import views as lines
from portal.loans import views as loans
from portal.registry.lists import known, listing
from portal.registry.models import Kind
from portal.repayments import views as repayments
from servicing.sandbox import Sandbox
from tests import given

SORTS = {
    Kind.BORROWER: listed.SORTS,
    Kind.APPLICATION: applications.SORTS,
    Kind.LOAN: loans.LIST.sorts,
    Kind.LINE: lines.LIST.sorts,
    Kind.REPAYMENT: repayments.SORTS,
}
ORDERS = [(kind, f"{dash}{sort}") for kind in SORTS for sort in SORTS[kind] for dash in ("", "-")]


@pytest.mark.parametrize(("kind", "sort"), ORDERS)
def test_an_order_is_read_along_an_index(db: None, kind: Kind, sort: str) -> None:
    records = listed.borrowers() if kind == Kind.BORROWER else known(kind)
    found = listing(records, QueryDict(f"sort={sort}"), sorts=SORTS[kind], kinds=[kind]).found
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # Few rows would rather be read and put in order.
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off; SET LOCAL enable_incremental_sort = off")
    for keys in (found.values_list("pk")[:25], found.reverse().values_list("pk")[:25]):
        plan = keys.explain()
        assert "Index" in plan or "INDEX" in plan
        assert "Sort" not in plan
        assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("area", ["borrowers", "applications", "loans", "lines", "repayments"])
def test_filters_hide_nothing_of_an_empty_list(viewer: Browser, area: str) -> None:
    page = viewer.get(f"/{area}/?status=FAILED&entity=CORPORATION&q=acme").content.decode()
    assert "known yet" in page
    assert "The filters hide" not in page


def test_a_list_without_filters_counts_what_was_added_just_now(viewer: Browser, desk: Sandbox) -> None:
    for number in (1, 2):
        given.borrower(desk)
        assert f"All {number}" in viewer.get("/borrowers/").content.decode()
