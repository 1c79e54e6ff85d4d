"""Every address that shows a borrower or a key person leaves an entry, whoever asks and however."""

from datetime import date
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
from portal.audit.models import Entry, RemoteCall, Sighting, WriteIntent
from portal.audit.sentences import sentence
from portal.audit.sightings import FILES, LISTS, PAGES, UNRECORDED
from portal.borrowers.models import Draft
from portal.credit_lines import documents
from portal.lookup.models import Upload
from portal.registry.models import Kind, Record
from portal.summaries.models import Batch, LongDocument, Printed
from servicing.sandbox import Sandbox
from tests import given
from tests.conftest import browser_of, htmx
from tests.portal.borrowers.editor import Editor
from tests.portal.pages import panel

NAME = "Harbor Street Bakery LLC"
ACTIONS = PAGES | FILES | {name: action for name, (action, _) in LISTS.items()}
# Where the entry is looked for by the test that makes such a file.
ELSEWHERE = {
    "summaries:batch_download": "tests/portal/summaries/test_batch.py",
    "summaries:long_download": "tests/portal/summaries/test_long.py",
}


def names(patterns: Any = None, namespace: str = "") -> list[str]:
    """The names of all addresses; those without one only lead elsewhere."""
    found = []
    for pattern in patterns if patterns is not None else get_resolver("portal.urls").url_patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{pattern.namespace}:" if pattern.namespace else ""
            found += names(pattern.url_patterns, namespace + inner)
        elif pattern.name:
            found.append(namespace + pattern.name)
    return found


def test_every_address_is_in_one_of_the_two_columns() -> None:
    columns = [*PAGES, *LISTS, *FILES, *(name for group in UNRECORDED.values() for name in group)]
    # The samples exist in local use only.
    assert sorted(columns) == sorted({*names(), "ui:components"})


@pytest.fixture
def supervisor(desk: Sandbox) -> Browser:
    return browser_of(Role.SUPERVISOR)


@pytest.fixture
def borrower(desk: Sandbox) -> Record:
    return given.borrower(desk, first_name=NAME)


@pytest.fixture
def places(desk: Sandbox, supervisor: Browser, borrower: Record, settings: LazySettings) -> dict[str, str]:
    """For each name of the first column an address that shows something."""
    settings.DEBUG = True  # Documents may come from this machine.
    documents._fetcher.cache_clear()
    world, own = desk.world, borrower.get_absolute_url()
    person = Record.objects.filter(kind=Kind.KEY_PERSON, borrower_uuid=borrower.uuid)[0]
    loan, line = given.loan(desk, borrower), given.line(desk, borrower, opened=date(2026, 1, 1))
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
    del supervisor.cookies["js"]
    supervisor.get("/messages/")
    Editor(supervisor, borrower).send(email="new@bakery.example")
    editor = Editor(supervisor, borrower)
    editor.post(editor.checked(first_name="Bay Bakery LLC") | {"reason": "Amended"}, "ask")
    intent = WriteIntent.objects.get()
    unknown = WriteIntent.objects.create(
        submit_id="lost", operation="applications.submit", state="unknown", label="an application",
        borrower_uuid=borrower.uuid, actor_id=User.objects.get(username="supervisor").pk, actor_name="S",
        request_id="r-1", method="POST", path="/",
    )  # fmt: skip
    draft = Draft.objects.create(
        owner=User.objects.get(username="supervisor"), data={"business": [{"first_name": NAME}]}
    )
    upload = Upload.objects.create(what="ids", name="ids.csv", told_at="2026-01-01T00:00Z")
    supervisor.post("/summaries/batches/", {"data": "copies", "chosen": "1"})
    supervisor.get(f"{own}summary.pdf?data=copies")
    subject = {"subject_kind": "borrower", "subject_uuid": borrower.uuid, "borrower_uuid": borrower.uuid}
    me = User.objects.get(username="supervisor").pk
    long = LongDocument.objects.create(title="Statement", actor_id=me, print_entry=subject)
    entry = Entry.objects.filter(subject_uuid=borrower.uuid).latest("id")
    call = RemoteCall.objects.filter(path__contains=borrower.uuid).latest("id")
    cache.clear()
    of_application = application.get_absolute_url()
    offer = supervisor.get(of_application).context["application"].offers[0].uuid
    return {
        "admin:audit_entry_change": f"/admin/audit/entry/{entry.pk}/change/",
        "admin:audit_entry_history": f"/admin/audit/entry/{entry.pk}/history/",
        "admin:audit_remotecall_change": f"/admin/audit/remotecall/{call.pk}/change/",
        "admin:audit_remotecall_history": f"/admin/audit/remotecall/{call.pk}/history/",
        "admin:audit_writeintent_change": f"/admin/audit/writeintent/{intent.pk}/change/",
        "admin:audit_writeintent_history": f"/admin/audit/writeintent/{intent.pk}/history/",
        "admin:audit_entry_changelist": "/admin/audit/entry/?q=bakery",
        "admin:audit_remotecall_changelist": "/admin/audit/remotecall/",
        "admin:audit_writeintent_changelist": "/admin/audit/writeintent/",
        "admin:audit_entry_export": "/admin/audit/entry/export/",
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
        "audit:export": "/audit/export/",
        "audit:history": f"/audit/history/borrower/{borrower.uuid}/",
        "audit:index": "/audit/",
        "audit:resolve": f"/audit/writes/{unknown.pk}/resolve/",
        "audit:write": f"/audit/writes/{intent.pk}/",
        "borrowers:create": "/borrowers/new/",
        "borrowers:detail": own,
        "borrowers:draft": f"/borrowers/new/{draft.pk}/business/",
        "borrowers:edit": f"{own}edit/",
        "borrowers:edit_person": f"{own}people/{person.uuid}/edit/",
        "borrowers:export": "/borrowers/export/",
        "borrowers:index": "/borrowers/?q=harbor",
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
        "summaries:batch": Batch.objects.get().get_absolute_url(),
        "summaries:borrower": f"{own}summary/",
        "summaries:borrower_pdf": f"{own}summary.pdf?data=copies",
        "summaries:line": f"{line.get_absolute_url()}summary/",
        "summaries:line_pdf": f"{line.get_absolute_url()}summary.pdf?data=copies",
        "summaries:loan_schedule": f"{loan.get_absolute_url()}schedule/",
        "summaries:loan_schedule_pdf": f"{loan.get_absolute_url()}schedule.pdf?data=copies",
        "summaries:long_document": long.get_absolute_url(),
        "summaries:offer_sheet": f"{of_application}offer-sheet/",
        "summaries:offer_sheet_pdf": f"{of_application}offer-sheet.pdf?data=copies",
        "summaries:statement_of_account": f"{own}statement-of-account/",
        "summaries:statement_of_account_pdf": f"{own}statement-of-account.pdf?data=copies",
        "summaries:verify": Printed.objects.get().get_absolute_url(),
        "summaries:verify_any": f"/verify/?code={Printed.objects.get().code}",
    }  # fmt: skip


def entries_of(browser: Browser, address: str, **extra: Any) -> list[Entry]:
    """The entries that one request leaves, as if nobody had looked for a while."""
    for one in Sighting.objects.all():
        Sighting.objects.filter(pk=one.pk).update(first_at="2026-01-01T00:00Z")
    start = Entry.objects.latest("id").pk
    posted = {"uuid": "zzqq"} if address == "/search/open/" else None
    answer = browser.post(address, posted) if posted else browser.get(address, **extra)
    assert answer.status_code in (200, 422), (address, answer.status_code)
    list(answer)
    return list(Entry.objects.filter(pk__gt=start).order_by("id"))


def test_every_page_list_and_file_leaves_its_entry(
    places: dict[str, str], supervisor: Browser, borrower: Record
) -> None:
    assert set(places) | set(ELSEWHERE) == set(ACTIONS)
    wrong = []
    for name, address in places.items():
        entries = entries_of(supervisor, address)
        if [one.action for one in entries] != [ACTIONS[name]]:
            wrong.append((name, [one.action for one in entries]))
            continue
        (entry,) = entries
        text = f"{entry.subject_label} {entry.detail}"
        if name in LISTS and (set(entry.detail) != {"query", "count"} or NAME in text):
            wrong.append((name, entry.detail))
        if name in PAGES and not entry.borrower_uuid and name not in NOBODYS:
            wrong.append((name, "no borrower"))
        if entry.action in sentence(entry):
            wrong.append((name, sentence(entry)))
    assert wrong == []


# Drafts have no borrower yet, and these messages none that is known.
NOBODYS = {"borrowers:draft", "messaging:detail", "messaging:link", "messaging:note"}
PARTS = {
    "borrowers:detail": ("borrower-tab", "card-loans", "card-lines"),
    "loans:detail": ("loan", "loan-schedule", "loan-repayments"),
    "credit_lines:detail": ("line", "line-statements", "line-repayments"),
    "applications:detail": ("application",),
    "repayments:detail": ("repayment",),
    "summaries:borrower": ("document",),
    "audit:history": ("history",),
    "borrowers:index": ("borrower-rows",),
    "loans:index": ("loan-rows",),
    "repayments:index": ("repayment-rows",),
    "messaging:index": ("messages",),
    "lookup:search": ("results",),
    "operations:status": ("call-rows",),
}


def test_a_part_that_is_asked_for_alone_leaves_it_too(places: dict[str, str], supervisor: Browser) -> None:
    asked = [(name, part) for name, parts in PARTS.items() for part in parts]
    silent = [
        (name, part)
        for name, part in asked
        if ACTIONS[name]
        not in {
            one.action
            for one in entries_of(supervisor, places[name], headers=htmx(part) | {"X-Background": "1"})
        }
    ]
    assert silent == []


def test_the_parts_of_a_page_are_no_looks_of_their_own(
    desk: Sandbox, supervisor: Browser, borrower: Record
) -> None:
    loan = given.loan(desk, borrower)
    supervisor.get(loan.get_absolute_url())
    for part in ("loan", "loan-schedule", "loan-repayments"):
        panel(supervisor, loan.get_absolute_url(), part)
    look = Sighting.objects.get(subject_uuid=loan.uuid)
    assert (look.count, look.entry.action) == (1, "loans.detail")


def test_a_search_is_recorded_with_its_words_and_how_many_match(
    supervisor: Browser, borrower: Record
) -> None:
    for _ in range(2):
        supervisor.get("/search/?q=harbor")
    look = Sighting.objects.get(entry__action="lookup.index")
    assert (look.count, look.entry.detail["query"]) == (2, {"q": "harbor"})
    assert look.entry.detail["count"] >= 1


def test_suggestions_are_counted_for_each_session(supervisor: Browser, borrower: Record) -> None:
    for typed in ("h", "ha", "har"):
        supervisor.get(f"/search/?q={typed}", headers=htmx("suggestions"))
    browser_of(Role.SUPERVISOR).get("/search/?q=harbor", headers=htmx("suggestions"))
    looks = Sighting.objects.filter(entry__action="lookup.suggest").order_by("id")
    assert [look.count for look in looks] == [3, 1]
    assert "har" not in str([look.entry.detail for look in looks])


@pytest.mark.parametrize(
    "query", ["q=%00&%00=x", "&".join(f"n{number}=x" for number in range(200)), "q=" + "x" * 5000]
)
def test_no_query_is_too_odd_to_be_recorded(supervisor: Browser, query: str) -> None:
    assert supervisor.get(f"/loans/?{query}").status_code == 200
    detail = Entry.objects.get(action="loans.index").detail
    assert len(str(detail)) < 10_000
