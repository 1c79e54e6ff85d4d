"""Every URL that shows a borrower or a key person records a view in the audit trail."""

from datetime import date, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.test import Client as Browser
from django.urls import URLResolver, get_resolver

from portal.accounts.models import User
from portal.accounts.roles import Role
from portal.approvals.models import Approval
from portal.audit.models import Entry, PageView, RemoteCall, WriteIntent
from portal.audit.reading import sentence
from portal.borrowers.models import Draft
from portal.collections.models import Promise
from portal.credit_lines import documents
from portal.documents.models import Batch, LongDocument, Printed
from portal.lookup.models import Upload
from portal.registry.models import Kind, Record
from portal.runtime.business_date import business_date
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.borrowers.editor import Editor
from tests.portal.borrowers.wizard import BUSINESS, Wizard, html
from tests.portal.pages import panel

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
    "repayments:export": "repayments.export",
    "documents:batch_download": "summaries.download",
    "documents:borrower_pdf": "summaries.print",
    "documents:line_pdf": "summaries.print",
    "documents:loan_schedule_pdf": "summaries.print",
    "documents:long_download": "summaries.download",
    "documents:offer_sheet_pdf": "summaries.print",
    "documents:payment_history_pdf": "summaries.print",
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
            "home:help:index", "home:help:page", "operations:favicon", "operations:healthz", "operations:logo",
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
def borrower(portal_service: Sandbox) -> Record:
    return given.borrower(portal_service, first_name=NAME)


@pytest.fixture
def places(
    portal_service: Sandbox, supervisor: Browser, borrower: Record, settings: LazySettings
) -> dict[str, str]:
    """Return an address with content for each recorded URL name."""
    settings.DEBUG = True  # Allows documents from this machine.
    documents._fetcher.cache_clear()
    world, own = portal_service.world, borrower.get_absolute_url()
    person = Record.objects.filter(kind=Kind.KEY_PERSON, borrower_uuid=borrower.uuid)[0]
    loan, line = (
        given.loan(portal_service, borrower),
        given.line(portal_service, borrower, opened=date(2026, 1, 1)),
    )
    world.statement(line.uuid, "2026-03-15")
    payment = world.repayment(loan.uuid, amount="250.10")["uuid"]
    application = given.account(Kind.APPLICATION, borrower, world.line_application(borrower.uuid)["uuid"])
    for record, part in (
        (loan, "loan"),
        (loan, "loan-repayments"),
        (line, "line"),
        (application, "application"),
    ):
        panel(supervisor, record.get_absolute_url(), part)
    message = world.message("payment.succeeded", {"borrower_bank_account_uuid": str(uuid4()), "amount": 12})
    supervisor.get("/messages/")
    Editor(supervisor, borrower).send(email="new@bakery.example")
    editor = Editor(supervisor, borrower)
    editor.post(editor.review_fields(first_name="Bay Bakery LLC") | {"reason": "Amended"}, "ask")
    intent = WriteIntent.objects.get()
    unknown = WriteIntent.objects.create(
        submit_id="lost", operation="applications.submit", state="unknown", label="an application",
        borrower_uuid=borrower.uuid, actor_id=User.objects.get(username="supervisor").pk, actor_name="S",
        request_id="r-1", method="POST", path="/",
    )  # fmt: skip
    draft = Draft.objects.create(
        owner=User.objects.get(username="supervisor"), data={"business": [{"first_name": "Not on file LLC"}]}
    )
    upload = Upload.objects.create(what="ids", name="ids.csv", told_at="2026-01-01T00:00Z")
    supervisor.post("/summaries/batches/", {"data": "copies", "chosen": "1"})
    supervisor.get(f"{own}summary.pdf?data=copies")
    subject = {"subject_kind": "borrower", "subject_uuid": borrower.uuid, "borrower_uuid": borrower.uuid}
    me = User.objects.get(username="supervisor").pk
    long = LongDocument.objects.create(title="Statement", actor_id=me, print_entry=subject)
    typed = {"person": "Someone else", "channel": "phone", "outcome": "promised", "amount": "100"}
    typed |= {"day": (business_date() + timedelta(days=1)).isoformat()}
    supervisor.post(f"/collections/contacts/loan/{loan.uuid}/log/", typed)
    promise = Promise.objects.get()
    entry = Entry.objects.filter(subject_uuid=borrower.uuid).latest("id")
    view = PageView.objects.filter(borrower_uuid=borrower.uuid).latest("id")
    call = RemoteCall.objects.filter(path__contains=borrower.uuid).latest("id")
    cache.clear()
    of_application = application.get_absolute_url()
    offer = supervisor.get(of_application).context["application"].offers[0].uuid
    return {
        "admin:audit_entry_change": f"/admin/audit/entry/{entry.pk}/change/",
        "admin:audit_entry_history": f"/admin/audit/entry/{entry.pk}/history/",
        "admin:audit_pageview_change": f"/admin/audit/pageview/{view.pk}/change/",
        "admin:audit_pageview_history": f"/admin/audit/pageview/{view.pk}/history/",
        "admin:audit_remotecall_change": f"/admin/audit/remotecall/{call.pk}/change/",
        "admin:audit_remotecall_history": f"/admin/audit/remotecall/{call.pk}/history/",
        "admin:audit_writeintent_change": f"/admin/audit/writeintent/{intent.pk}/change/",
        "admin:audit_writeintent_history": f"/admin/audit/writeintent/{intent.pk}/history/",
        "admin:audit_entry_changelist": "/admin/audit/entry/?q=bakery",
        "admin:audit_pageview_changelist": "/admin/audit/pageview/?q=bakery",
        "admin:audit_remotecall_changelist": "/admin/audit/remotecall/",
        "admin:audit_writeintent_changelist": "/admin/audit/writeintent/",
        "admin:audit_entry_export": "/admin/audit/entry/export/",
        "admin:audit_pageview_export": "/admin/audit/pageview/export/",
        "admin:audit_remotecall_export": "/admin/audit/remotecall/export/",
        "admin:audit_writeintent_export": "/admin/audit/writeintent/export/",
        "applications:detail": of_application,
        "applications:export_offers": f"{of_application}offers/",
        "applications:open": f"{own}applications/open/",
        "applications:prefer": f"{of_application}prefer/?offer={offer}",
        "applications:submit": f"{own}applications/new/",
        "applications:index": "/applications/",
        "applications:export": "/applications/export/",
        "approvals:detail": Approval.objects.get().get_absolute_url(),
        "approvals:index": "/approvals/",
        "audit:detail": f"/audit/{entry.pk}/",
        "audit:history": f"/audit/history/borrower/{borrower.uuid}/",
        "audit:resolve": f"/audit/writes/{unknown.pk}/resolve/",
        "audit:write": f"/audit/writes/{intent.pk}/",
        "borrowers:create": "/borrowers/new/",
        "borrowers:detail": own,
        "borrowers:draft": f"/borrowers/new/{draft.pk}/business/",
        "borrowers:edit": f"{own}edit/",
        "borrowers:edit_person": f"{own}people/{person.uuid}/edit/",
        "borrowers:export": "/borrowers/export/",
        "borrowers:index": "/borrowers/?q=harbor",
        "collections:contacts": f"/collections/contacts/loan/{loan.uuid}/",
        "collections:export": "/collections/export.csv",
        "collections:export_returns": "/collections/returns/export.csv",
        "collections:index": "/collections/",
        "collections:print_list": "/collections/print/",
        "collections:refresh": f"/collections/refresh/?uuid={loan.uuid}&since=2026-01-01T00:00:00%2B00:00",
        "collections:returns": "/collections/returns/",
        "collections:withdraw": f"/collections/promises/{promise.pk}/withdraw/",
        "credit_lines:detail": line.get_absolute_url(),
        "credit_lines:export": "/lines/export.csv",
        "credit_lines:index": "/lines/",
        "credit_lines:pdf": f"{line.get_absolute_url()}statements/2026-03-15/pdf/",
        "credit_lines:refresh": f"/lines/refresh/?uuid={line.uuid}&since=2026-01-01T00:00:00%2B00:00",
        "home:index": "/",
        "home:snooze": f"/attention/snooze/?item=write:{unknown.pk}",
        "loans:detail": loan.get_absolute_url(),
        "loans:export": "/loans/export.csv",
        "loans:index": "/loans/",
        "loans:refresh": f"/loans/refresh/?uuid={loan.uuid}&since=2026-01-01T00:00:00%2B00:00",
        "loans:schedule": f"{loan.get_absolute_url()}schedule.csv",
        "lookup:archive": f"/registry/loan/{loan.uuid}/archive/",
        "lookup:correct": f"/registry/loan/{loan.uuid}/correct/",
        "lookup:export_refused": f"/registry/import/{upload.pk}/refused/",
        "lookup:imported": f"/registry/import/{upload.pk}/",
        "lookup:open_as": "/search/open/",
        "lookup:record": f"/registry/key_person/{person.uuid}/",
        "lookup:search": "/search/?q=harbor",
        "messaging:detail": f"/messages/{message['uuid']}/",
        "messaging:export": "/messages/export/?source=copy",
        "messaging:index": "/messages/?source=copy",
        "messaging:json": f"/messages/{message['uuid']}/json/",
        "messaging:link": f"/messages/{message['uuid']}/link/",
        "messaging:note": f"/messages/{message['uuid']}/note/",
        "notes:add": f"/notes/new/borrower/{borrower.uuid}/",
        "notes:add_follow_up": f"/notes/follow-ups/new/{borrower.uuid}/",
        "operations:status": "/status/",
        "operations:support_bundle": "/status/support-bundle/",
        "repayments:detail": f"/repayments/{payment}/",
        "repayments:export": "/repayments/export.csv",
        "repayments:index": "/repayments/",
        "documents:batch": Batch.objects.get().get_absolute_url(),
        "documents:borrower": f"{own}summary/",
        "documents:borrower_pdf": f"{own}summary.pdf?data=copies",
        "documents:line": f"{line.get_absolute_url()}summary/",
        "documents:line_pdf": f"{line.get_absolute_url()}summary.pdf?data=copies",
        "documents:loan_schedule": f"{loan.get_absolute_url()}schedule/",
        "documents:loan_schedule_pdf": f"{loan.get_absolute_url()}schedule.pdf?data=copies",
        "documents:long_document": long.get_absolute_url(),
        "documents:offer_sheet": f"{of_application}offer-sheet/",
        "documents:offer_sheet_pdf": f"{of_application}offer-sheet.pdf?data=copies",
        "documents:payment_history": f"{own}statement-of-account/",
        "documents:payment_history_pdf": f"{own}statement-of-account.pdf?data=copies",
        "documents:verify": Printed.objects.get().get_absolute_url(),
        "documents:verify_any": f"/verify/?code={Printed.objects.get().code}",
    }  # fmt: skip


def recorded(browser: Browser, address: str, **extra: Any) -> list[Any]:
    """Return the page views and entries that one request adds when there was no recent view."""
    PageView.objects.update(first_at="2020-01-01T00:00Z", last_at="2020-01-01T00:00Z")
    start = Entry.objects.latest("id").pk
    posted = {"uuid": "zzqq"} if address == "/search/open/" else None
    answer = browser.post(address, posted) if posted else browser.get(address, **extra)
    assert answer.status_code in (200, 422), (address, answer.status_code)
    list(answer)
    return [*PageView.objects.filter(last_at__year__gt=2020), *Entry.objects.filter(pk__gt=start)]


def act_of(row: Any) -> str:
    return str(row.page if isinstance(row, PageView) else row.action)


def test_every_page_list_and_file_is_recorded(
    places: dict[str, str], supervisor: Browser, borrower: Record
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


# Drafts have no borrower yet, and the borrower of these messages is unknown.
WITHOUT_BORROWER = {"borrowers:draft", "messaging:detail", "messaging:link", "messaging:note"}
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
    portal_service: Sandbox, supervisor: Browser, borrower: Record
) -> None:
    loan = given.loan(portal_service, borrower)
    supervisor.get(loan.get_absolute_url())
    for part in ("loan", "loan-schedule", "loan-repayments"):
        panel(supervisor, loan.get_absolute_url(), part)
    view = PageView.objects.get(subject_uuid=loan.uuid)
    assert (view.count, view.page) == (1, "loans.detail")


def test_a_search_is_recorded_with_its_query_and_count(supervisor: Browser, borrower: Record) -> None:
    for _ in range(2):
        supervisor.get("/search/?q=harbor")
    view = PageView.objects.get(page="lookup.index")
    assert (view.count, view.detail["query"]) == (2, {"q": "harbor"})
    assert view.detail["count"] >= 1


def test_suggestions_are_counted_per_session(supervisor: Browser, borrower: Record) -> None:
    for typed in ("h", "ha", "har"):
        supervisor.get(f"/search/?q={typed}", headers=htmx("suggestions"))
    browser_of(Role.SUPERVISOR).get("/search/?q=harbor", headers=htmx("suggestions"))
    views = PageView.objects.filter(page="lookup.suggest").order_by("id")
    assert [view.count for view in views] == [3, 1]
    assert "har" not in str([view.detail for view in views])


def test_similar_borrowers_are_counted_like_suggestions(supervisor: Browser, borrower: Record) -> None:
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
