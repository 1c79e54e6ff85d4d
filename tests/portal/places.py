"""An address with content for every page, list and file that shows records."""

from datetime import date, timedelta
from uuid import uuid4

from django.core.cache import cache
from django.test import Client as Browser

from portal.accounts.models import User
from portal.approvals.models import Approval
from portal.audit.models import Entry, PageView, RemoteCall, WriteIntent
from portal.borrowers.models import Draft
from portal.collections.models import Promise
from portal.core.business_date import business_date
from portal.credit_lines import documents
from portal.documents.models import Batch, LongDocument, Printed
from portal.lookup.models import Upload
from portal.portfolio import writing
from portal.portfolio.accounts import days_between
from portal.portfolio.models import AccountState, Bucket
from portal.records.models import Account, Borrower, KeyPerson, Kind
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.borrowers.editor import Editor
from tests.portal.pages import panel


def addresses_with_content(
    portal_service: Sandbox, supervisor: Browser, borrower: Borrower
) -> dict[str, str]:
    """Create what each page of a borrower shows, and return its address by the name of its URL."""
    documents._fetcher.cache_clear()
    world, own = portal_service.world, borrower.get_absolute_url()
    person = KeyPerson.objects.filter(borrower_uuid=borrower.uuid)[0]
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
    upload = Upload.objects.create(what="ids", name="ids.csv", exported_at="2026-01-01T00:00Z")
    supervisor.post("/summaries/batches/", {"data": "copies", "chosen": "1"})
    supervisor.get(f"{own}summary.pdf?data=copies")
    subject = {"subject_kind": "borrower", "subject_uuid": borrower.uuid, "borrower_uuid": borrower.uuid}
    me = User.objects.get(username="supervisor").pk
    long = LongDocument.objects.create(title="Statement", actor_id=me, print_entry=subject)
    typed = {"person": "Someone else", "channel": "phone", "outcome": "promised", "amount": "100"}
    typed |= {"day": (business_date() + timedelta(days=1)).isoformat()}
    supervisor.post(f"/collections/contacts/loan/{loan.uuid}/log/", typed)
    promise = Promise.objects.get()
    write_book(loan, days=90)
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
        "collections:undo": f"/collections/contact/{promise.contact_id}/undo/",
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
        "portfolio:accounts": "/portfolio/accounts/",
        "portfolio:payments": "/portfolio/payments/?list=due&from=2026-01-01&to=2026-12-31",
        "portfolio:export": "/portfolio/export/",
        "portfolio:export_accounts": "/portfolio/accounts/export/",
        "portfolio:export_payments": "/portfolio/payments/export/?list=due&from=2026-01-01&to=2026-12-31",
        "portfolio:index": "/portfolio/",
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
        "documents:portfolio": "/portfolio/print/",
        "documents:portfolio_pdf": "/portfolio/print.pdf",
        "documents:verify": Printed.objects.get().get_absolute_url(),
        "documents:verify_any": f"/verify/?code={Printed.objects.get().code}",
    }  # fmt: skip


def write_book(loan: Account, *, days: int) -> None:
    """Write this many days up to yesterday, on which this loan is past due."""
    last = business_date() - timedelta(days=1)
    first = last - timedelta(days=days - 1)
    facts = {"bucket": Bucket.DAYS_1_29, "past_due": 100, "principal": 1000, "good_through": date.max}
    AccountState.objects.create(kind=loan.kind, uuid=loan.uuid, from_day=first, last_answer_on=first, **facts)
    for day in days_between(first, last):
        writing.write_day(day, is_last=day == last)
