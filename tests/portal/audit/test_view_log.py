"""Every URL that shows a borrower or a key person records a view in the audit trail."""

from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client as Browser
from django.urls import URLResolver, get_resolver

from portal.accounts.roles import Role
from portal.audit.models import Entry, PageView
from portal.audit.reading import sentence
from portal.records.models import Borrower
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.borrowers.wizard import BUSINESS, Wizard, html
from tests.portal.pages import panel
from tests.portal.places import addresses_with_content

NAME = "Harbor Street Bakery LLC"

# --- Pages, lists and files that show a borrower or a key person ---

PAGES: dict[str, str] = {
    "admin:audit_entry_change": "audit.view",
    "admin:audit_entry_history": "audit.view",
    "admin:audit_remotecall_change": "audit.view",
    "admin:audit_remotecall_history": "audit.view",
    "admin:audit_pageview_change": "audit.view",
    "admin:audit_pageview_history": "audit.view",
    "admin:audit_writeintent_change": "audit.view",
    "admin:audit_writeintent_history": "audit.view",
    "applications:detail": "applications.detail",
    "applications:open": "applications.view",
    "applications:prefer": "applications.view",
    "applications:submit": "applications.view",
    "approvals:detail": "approvals.detail",
    "audit:detail": "audit.view",
    "audit:history": "audit.view",
    "audit:resolve": "audit.view",
    "audit:write": "audit.view",
    "borrowers:detail": "borrowers.detail",
    "borrowers:draft": "borrowers.view",
    "borrowers:edit": "borrowers.edit",
    "borrowers:edit_person": "borrowers.edit",
    "collections:contacts": "collections.view",
    "collections:undo": "collections.view",
    "collections:withdraw": "collections.view",
    "credit_lines:detail": "credit_lines.detail",
    "credit_lines:pdf": "credit_lines.pdf",
    "home:snooze": "home.view",
    "loans:detail": "loans.detail",
    "lookup:archive": "lookup.view",
    "lookup:correct": "lookup.view",
    "lookup:record": "lookup.record",
    "messaging:detail": "messaging.detail",
    "messaging:link": "messaging.view",
    "messaging:note": "notes.view",
    "notes:add": "notes.view",
    "notes:add_follow_up": "notes.view",
    "repayments:detail": "repayments.detail",
    "documents:borrower": "summaries.preview",
    "documents:line": "summaries.preview",
    "documents:loan_schedule": "summaries.preview",
    "documents:long_document": "summaries.view",
    "documents:offer_sheet": "summaries.preview",
    "documents:payment_history": "summaries.preview",
    "documents:portfolio": "summaries.preview",
    "documents:verify": "summaries.view",
    "documents:verify_any": "summaries.view",
}
"""Pages about one borrower or person, with the action of their entry."""

LISTS: dict[str, str] = {
    "admin:audit_entry_changelist": "audit.index",
    "admin:audit_pageview_changelist": "audit.index",
    "admin:audit_remotecall_changelist": "audit.index",
    "admin:audit_writeintent_changelist": "audit.index",
    "applications:index": "applications.index",
    "approvals:index": "approvals.index",
    "borrowers:create": "borrowers.index",
    "borrowers:index": "borrowers.index",
    "collections:index": "collections.index",
    "collections:refresh": "collections.index",
    "collections:returns": "collections.index",
    "credit_lines:index": "credit_lines.index",
    "credit_lines:refresh": "credit_lines.index",
    "home:index": "home.index",
    "loans:index": "loans.index",
    "loans:refresh": "loans.index",
    "lookup:imported": "lookup.index",
    "lookup:open_as": "lookup.index",
    "lookup:search": "lookup.index",
    "messaging:index": "messaging.index",
    "operations:status": "operations.index",
    "portfolio:accounts": "portfolio.index",
    "portfolio:payments": "portfolio.index",
    "portfolio:index": "portfolio.index",
    "repayments:index": "repayments.index",
    "documents:batch": "summaries.index",
}
"""Lists and searches, with the action of their entry, which has the query and the count but no names."""

FILES: dict[str, str] = {
    "admin:audit_entry_export": "audit.export",
    "admin:audit_pageview_export": "audit.export",
    "admin:audit_remotecall_export": "audit.export",
    "admin:audit_writeintent_export": "audit.export",
    "applications:export": "applications.export",
    "applications:export_offers": "applications.export_offers",
    "borrowers:export": "borrowers.export",
    "collections:export": "collections.export",
    "collections:export_returns": "collections.export_returns",
    "collections:print_list": "collections.print",
    "credit_lines:export": "credit_lines.export",
    "loans:export": "loans.export",
    "loans:schedule": "loans.schedule",
    "lookup:export_refused": "lookup.export",
    "messaging:export": "messaging.export",
    "messaging:json": "messaging.download",
    "operations:support_bundle": "operations.support_bundle",
    "portfolio:export": "portfolio.export",
    "portfolio:export_accounts": "portfolio.export_accounts",
    "portfolio:export_payments": "portfolio.export_payments",
    "repayments:export": "repayments.export",
    "documents:batch_download": "summaries.download",
    "documents:borrower_pdf": "summaries.print",
    "documents:line_pdf": "summaries.print",
    "documents:loan_schedule_pdf": "summaries.print",
    "documents:long_download": "summaries.download",
    "documents:offer_sheet_pdf": "summaries.print",
    "documents:payment_history_pdf": "summaries.print",
    "documents:portfolio_pdf": "summaries.print",
}
"""Files, with the action of their entry; every download is recorded, however soon after the last."""

# --- URLs that show neither ---

UNRECORDED: dict[str, frozenset[str]] = {
    "acts that show no page of their own": frozenset(
        {
            "accounts:end_sessions", "accounts:theme", "accounts:without_scripts", "applications:follow",
            "approvals:decide", "audit:save_answer",
            "approvals:withdraw", "borrowers:discard_draft", "borrowers:refresh", "collections:assign",
            "collections:log", "collections:next", "collections:take", "collections:update_due_since", "home:wake",
            "lookup:refresh_portfolio",
            "messaging:check", "messaging:sync", "notes:finish", "notes:unpin", "operations:cancel",
            "portfolio:demo_past",
            "saved_views:delete", "saved_views:save",
        }
    ),
    "forms and progress without a borrower": frozenset(
        {"lookup:add", "lookup:import_records", "operations:first_day", "operations:job", "documents:batch_new"}
    ),
    "the person's own account and what they typed themselves": frozenset(
        {
            "account_change_password", "account_reauthenticate", "account_set_password", "accounts:profile",
            "accounts:resume", "accounts:session", "accounts:sessions", "mfa_activate_totp", "mfa_add_webauthn",
            "mfa_deactivate_totp", "mfa_edit_webauthn", "mfa_generate_recovery_codes", "mfa_index",
            "mfa_list_webauthn", "mfa_reauthenticate", "mfa_reauthenticate_webauthn", "mfa_remove_webauthn",
            "mfa_view_recovery_codes",
        }
    ),
    "signing in and out": frozenset(
        {
            "account_choose_password", "account_forgot_password", "account_inactive", "account_login",
            "account_logout", "mfa_authenticate", "mfa_login_webauthn",
            "openid_connect_callback", "openid_connect_login", "socialaccount_login_cancelled",
            "socialaccount_login_error",
        }
    ),
    "accounts of staff, and the frame of the administration": frozenset(
        {
            "admin:accounts_user_add", "admin:accounts_user_change", "admin:accounts_user_changelist",
            "admin:accounts_user_delete", "admin:accounts_user_history", "admin:app_list",
            "admin:auth_user_password_change", "admin:autocomplete", "admin:index", "admin:jsi18n",
            "admin:login", "admin:logout", "admin:password_change", "admin:password_change_done",
            "admin:view_on_site",
        }
    ),
    "refused to everyone: the trail is read only": frozenset(
        {
            "admin:audit_entry_add", "admin:audit_entry_delete", "admin:audit_pageview_add",
            "admin:audit_pageview_delete", "admin:audit_remotecall_add",
            "admin:audit_remotecall_delete", "admin:audit_writeintent_add", "admin:audit_writeintent_delete",
        }
    ),
    "a panel, recorded as a view of its page (tests/portal/test_panels.py)": frozenset({"borrowers:account"}),
    "leads to the list in the administration": frozenset({"audit:index"}),
    "checks of the platform, figures without records, samples": frozenset(
        {
            "home:help:index", "home:help:page", "home:waiting",
            "operations:favicon", "operations:healthz", "operations:logo",
            "operations:metrics",
            "operations:readyz", "ui:components",
        }
    ),
}  # fmt: skip
"""Names of URLs that record no view, grouped by the reason."""

ACTIONS = PAGES | FILES | LISTS
# These files are created and tested elsewhere.
ELSEWHERE = {
    "documents:batch_download": "tests/portal/documents/test_batch.py",
    "documents:long_download": "tests/portal/documents/test_long.py",
}


def url_names(patterns: Any = None, namespace: str = "") -> list[str]:
    """Return the names of all URLs; those without a name only redirect."""
    found = []
    for pattern in patterns if patterns is not None else get_resolver("portal.urls").url_patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{pattern.namespace}:" if pattern.namespace else ""
            found += url_names(pattern.url_patterns, namespace + inner)
        elif pattern.name:
            found.append(namespace + pattern.name)
    return found


def test_every_url_is_classified() -> None:
    classified = [*PAGES, *LISTS, *FILES, *(name for group in UNRECORDED.values() for name in group)]
    # The component page exists only in local use.
    assert sorted(classified) == sorted({*url_names(), "ui:components"})


@pytest.fixture
def supervisor(portal_service: Sandbox) -> Browser:
    return browser_of(Role.SUPERVISOR)


@pytest.fixture
def borrower(portal_service: Sandbox) -> Borrower:
    return given.borrower(portal_service, first_name=NAME)


@pytest.fixture
def places(
    portal_service: Sandbox, supervisor: Browser, borrower: Borrower, settings: LazySettings
) -> dict[str, str]:
    settings.DEBUG = True  # Allows documents from this machine.
    return addresses_with_content(portal_service, supervisor, borrower)


def recorded(browser: Browser, address: str, **extra: Any) -> list[Any]:
    """Return the page views and entries that one request adds when there was no recent view."""
    PageView.objects.update(first_at="2020-01-01T00:00Z", last_at="2020-01-01T00:00Z")
    start = Entry.objects.latest("id").pk
    posted = {"uuid": "zzqq"} if address == "/search/open/" else None
    answer = browser.post(address, posted) if posted else browser.get(address, follow=True, **extra)
    assert answer.status_code in (200, 422), (address, answer.status_code)
    list(answer)
    return [*PageView.objects.filter(last_at__year__gt=2020), *Entry.objects.filter(pk__gt=start)]


def act_of(row: Any) -> str:
    return str(row.page if isinstance(row, PageView) else row.action)


@pytest.mark.slow
def test_every_page_list_and_file_is_recorded(
    places: dict[str, str], supervisor: Browser, borrower: Borrower
) -> None:
    assert set(places) | set(ELSEWHERE) == set(ACTIONS)
    wrong = []
    for name, address in places.items():
        rows = recorded(supervisor, address)
        if [act_of(one) for one in rows] != [ACTIONS[name]]:
            wrong.append((name, [act_of(one) for one in rows]))
            continue
        (row,) = rows
        if isinstance(row, PageView) == (name in FILES):
            wrong.append((name, type(row).__name__))
        text = f"{row.subject_label} {row.detail}"
        if name in LISTS and (set(row.detail) != {"query", "count"} or NAME in text):
            wrong.append((name, row.detail))
        if name in PAGES and not row.borrower_uuid and name not in WITHOUT_BORROWER:
            wrong.append((name, "no borrower"))
        if isinstance(row, Entry) and row.action in sentence(row):
            wrong.append((name, sentence(row)))
    assert wrong == []


# Drafts have no borrower yet, the borrower of these messages is unknown, and the portfolio has all.
WITHOUT_BORROWER = {
    "borrowers:draft", "documents:portfolio", "messaging:detail", "messaging:link", "messaging:note",
}  # fmt: skip
PARTS = {
    "borrowers:detail": ("borrower-tab", "position"),
    "loans:detail": ("loan", "loan-schedule", "loan-repayments"),
    "credit_lines:detail": ("line", "line-statements", "line-repayments"),
    "applications:detail": ("application",),
    "repayments:detail": ("repayment",),
    "documents:borrower": ("document",),
    "audit:history": ("history",),
    "borrowers:index": ("borrower-rows",),
    "loans:index": ("loan-rows",),
    "repayments:index": ("repayment-rows",),
    "messaging:index": ("messages",),
    "lookup:search": ("results",),
    "operations:status": ("call-rows",),
}


@pytest.mark.slow
def test_a_panel_requested_alone_is_recorded(places: dict[str, str], supervisor: Browser) -> None:
    targets = [(name, part) for name, parts in PARTS.items() for part in parts]
    unrecorded = [
        (name, part)
        for name, part in targets
        if ACTIONS[name]
        not in {
            act_of(one)
            for one in recorded(supervisor, places[name], headers=htmx(part) | {"X-Background": "1"})
        }
    ]
    assert unrecorded == []


def test_panels_of_a_page_add_no_views(
    portal_service: Sandbox, supervisor: Browser, borrower: Borrower
) -> None:
    loan = given.loan(portal_service, borrower)
    supervisor.get(loan.get_absolute_url())
    for part in ("loan", "loan-schedule", "loan-repayments"):
        panel(supervisor, loan.get_absolute_url(), part)
    view = PageView.objects.get(subject_uuid=loan.uuid)
    assert (view.count, view.page) == (1, "loans.detail")


def test_a_search_is_recorded_with_its_query_and_count(supervisor: Browser, borrower: Borrower) -> None:
    for _ in range(2):
        supervisor.get("/search/?q=harbor")
    view = PageView.objects.get(page="lookup.index")
    assert (view.count, view.detail["query"]) == (2, {"q": "harbor"})
    assert view.detail["count"] >= 1


def test_suggestions_are_counted_per_session(supervisor: Browser, borrower: Borrower) -> None:
    for typed in ("h", "ha", "har"):
        supervisor.get(f"/search/?q={typed}", headers=htmx("suggestions"))
    browser_of(Role.SUPERVISOR).get("/search/?q=harbor", headers=htmx("suggestions"))
    views = PageView.objects.filter(page="lookup.suggest").order_by("id")
    assert [view.count for view in views] == [3, 1]
    assert "har" not in str([view.detail for view in views])


@pytest.mark.slow
def test_similar_borrowers_are_counted_like_suggestions(supervisor: Browser, borrower: Borrower) -> None:
    wizard = Wizard(supervisor)
    wizard.fill(first_name="Another Name LLC", email="unknown@unknown.example")
    suggested = PageView.objects.filter(page="lookup.suggest")
    wizard.get("review")
    assert not suggested.exists()
    wizard.post("business", BUSINESS | {"first_name": NAME}, "autosave")
    assert NAME in html(wizard.get("business"))
    assert borrower.get_absolute_url() in html(wizard.get("review"))
    assert suggested.get().count == 2


@pytest.mark.parametrize(
    "query", ["q=%00&%00=x", "&".join(f"n{number}=x" for number in range(200)), "q=" + "x" * 5000]
)
def test_odd_queries_are_recorded(supervisor: Browser, query: str) -> None:
    assert supervisor.get(f"/loans/?{query}").status_code == 200
    detail = PageView.objects.get(page="loans.index").detail
    assert len(str(detail)) < 10_000
