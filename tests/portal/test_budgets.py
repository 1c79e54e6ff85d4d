"""What a page costs: its statements and its bytes, which may fall but never grow unnoticed.

After a change that makes a page cheaper, lower its budget. One that has to grow gets its new numbers and, in a comment
beside them, the reason. The numbers are those of the second request; Home also has those with empty caches.
"""

from http import HTTPStatus

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext

from portal.accounts.roles import Role
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of
from tests.portal.places import addresses_with_content

pytestmark = pytest.mark.postgres

BORROWERS = 30
TABS = ("people", "applications", "loans", "lines", "repayments", "messages", "notes", "history")
COLD = "home:index, caches empty"
# Statements on SQLite, statements on PostgreSQL, and kilobytes of HTML, by the name of the URL.
BUDGETS: dict[str, tuple[int, int, int]] = {
    "admin:audit_entry_changelist": (13, 16, 23),
    "admin:audit_entry_history": (9, 12, 13),
    "admin:audit_pageview_change": (8, 11, 14),
    "admin:audit_pageview_changelist": (11, 14, 18),
    "admin:audit_pageview_history": (9, 12, 13),
    "admin:audit_remotecall_change": (8, 11, 18),  # A response is shown line by line, as other JSON.
    "admin:audit_remotecall_changelist": (13, 16, 21),
    "admin:audit_remotecall_history": (9, 12, 13),
    "admin:audit_writeintent_changelist": (9, 12, 17),
    "admin:audit_writeintent_history": (9, 12, 13),
    "applications:detail": (12, 15, 35),
    "applications:index": (12, 16, 20),
    "applications:open": (7, 10, 14),
    "applications:prefer": (7, 10, 14),
    "applications:submit": (9, 12, 17),
    "approvals:detail": (9, 12, 15),
    "approvals:index": (9, 12, 13),
    # Each has its raw record, folded.
    "audit:detail": (16, 19, 20),
    "audit:history": (12, 15, 19),
    "audit:resolve": (18, 21, 18),
    "audit:write": (16, 19, 19),
    "borrowers:create": (8, 11, 34),
    # Applications have a table of their own. Each account has a row.
    "borrowers:detail": (26, 29, 30),
    "borrowers:detail, applications": (18, 21, 24),
    "borrowers:detail, history": (21, 24, 28),
    "borrowers:detail, lines": (18, 21, 24),
    "borrowers:detail, loans": (18, 21, 25),
    "borrowers:detail, messages": (21, 24, 24),
    "borrowers:detail, notes": (20, 23, 24),
    "borrowers:detail, people": (19, 22, 26),
    "borrowers:detail, repayments": (18, 21, 25),
    "borrowers:draft": (8, 11, 35),
    "borrowers:edit": (11, 14, 24),
    "borrowers:edit_person": (12, 15, 27),
    # Key people and applications have tables of their own.
    "borrowers:index": (14, 19, 47),
    "collections:contacts": (17, 20, 19),  # Looks first whether a deadline has passed.
    "collections:index": (12, 16, 17),
    "collections:print_list": (12, 16, 13),
    "collections:refresh": (22, 26, 14),
    "collections:returns": (10, 13, 18),
    "collections:undo": (8, 11, 13),
    "collections:withdraw": (8, 11, 13),
    "credit_lines:detail": (15, 19, 21),
    # Counts the accounts without a figure.
    "credit_lines:index": (13, 18, 49),
    "credit_lines:refresh": (10, 13, 14),
    "documents:batch": (11, 14, 14),
    "documents:borrower": (18, 21, 30),
    "documents:line": (9, 12, 18),
    "documents:loan_schedule": (9, 12, 27),
    "documents:long_document": (7, 10, 12),
    "documents:offer_sheet": (8, 11, 19),
    "documents:payment_history": (14, 17, 17),
    "documents:portfolio": (14, 17, 43),
    "documents:verify": (7, 10, 15),
    "documents:verify_any": (7, 10, 15),
    "home:help:page": (5, 8, 13),
    # Each bar of the last seven days is a link with its words.
    "home:index": (39, 52, 26),
    "home:index, caches empty": (49, 98, 26),
    "home:snooze": (30, 39, 14),  # Looks for the item among all.
    "home:waiting": (28, 35, 1),
    "loans:detail": (12, 14, 35),
    "loans:index": (15, 19, 52),  # The same.
    "loans:refresh": (10, 12, 14),
    "lookup:archive": (8, 10, 14),
    "lookup:correct": (7, 9, 14),
    "lookup:imported": (8, 10, 13),
    "lookup:record": (9, 11, 14),
    # Contacts are searched too, and each borrower has its accounts below it.
    "lookup:search": (21, 23, 31),
    "messaging:detail": (11, 13, 15),
    "messaging:index": (14, 18, 36),
    "messaging:link": (8, 10, 13),
    "messaging:note": (8, 10, 14),
    "notes:add": (7, 9, 14),
    "notes:add_follow_up": (8, 10, 14),
    "operations:status": (33, 36, 24),
    "portfolio:accounts": (13, 16, 18),  # With the menu of saved views.
    # Ninety bars, and their table. One statement more beside last week’s forecast, for the promises of its days.
    "portfolio:index": (14, 17, 78),
    "portfolio:payments": (9, 12, 14),
    "repayments:detail": (11, 13, 21),
    "repayments:index": (16, 22, 20),
}


@pytest.fixture
def supervisor(portal_service: Sandbox) -> Browser:
    return browser_of(Role.SUPERVISOR)


@pytest.fixture
def addresses(portal_service: Sandbox, supervisor: Browser) -> dict[str, str]:
    """The pages of one of many borrowers, and lists that fill a page."""
    for number in range(BORROWERS):
        owner = given.borrower(portal_service, first_name=f"Harbor Bakery {number:02} LLC")
        given.loan(portal_service, owner)
        given.line(portal_service, owner)
    borrower = given.borrower(portal_service, first_name="Harbor Street Bakery LLC")
    found = addresses_with_content(portal_service, supervisor, borrower)
    found |= {f"borrowers:detail, {tab}": f"{found['borrowers:detail']}?tab={tab}" for tab in TABS}
    found |= {
        COLD: "/",
        "borrowers:index": "/borrowers/",
        "home:help:page": "/help/loans/",
        "home:waiting": "/attention/waiting/",
    }
    found["admin:audit_entry_changelist"] = "/admin/audit/entry/"
    found["admin:audit_pageview_changelist"] = "/admin/audit/pageview/"
    return found


def cost(browser: Browser, name: str, address: str) -> tuple[int, int] | None:
    """The statements and bytes of a page; None for a file."""
    if (
        "/export" in address
        or ".pdf" in address
        or "/pdf/" in address
        or address.endswith((".csv", "/json/"))
    ):
        return None
    answer = browser.get(address)
    if answer.status_code != HTTPStatus.OK or not answer["Content-Type"].startswith("text/html"):
        return None
    statements = []
    for _ in range(2):  # A cache that ends between two requests costs a few statements more.
        if name == COLD:
            cache.clear()
        with CaptureQueriesContext(connection) as queries:
            answer = browser.get(address)
        statements.append(len(queries))
    return min(statements), len(answer.content)


@pytest.mark.slow
def test_no_page_costs_more_than_its_budget(addresses: dict[str, str], supervisor: Browser) -> None:
    found = {name: cost(supervisor, name, address) for name, address in sorted(addresses.items())}
    costs = {name: each for name, each in found.items() if each}
    on_postgres = connection.vendor == "postgresql"
    over = []
    for name, (statements, size) in costs.items():
        on_sqlite, on_postgresql, kilobytes = BUDGETS.get(name, (0, 0, 0))
        budget = on_postgresql if on_postgres else on_sqlite
        if statements > budget:
            over.append(f"{name} ({addresses[name]}): {statements} statements instead of {budget}")
        if size > kilobytes * 1000:
            over.append(f"{name} ({addresses[name]}): {size:,} bytes instead of {kilobytes},000")
    assert over == []
    assert set(BUDGETS) == set(costs)
