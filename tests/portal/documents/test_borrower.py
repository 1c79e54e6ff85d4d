"""The printed borrower summary: its preview page and its PDF, which show the same figures."""

import io
import json
import re
import sys
from datetime import timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import given as for_any
from hypothesis import strategies as st
from pypdf import PdfReader

from portal.audit.models import Actor, Entry, PageView
from portal.core.business_date import business_date
from portal.documents.borrower_summary import account_copies_of, document
from portal.documents.document import Stamp
from portal.documents.options import Mode, Options
from portal.documents.pdf import render
from portal.gateway.reading import read_live
from portal.notes.models import Note
from portal.records import store
from portal.records.models import Account, Answer, Borrower, KeyPerson, Kind, Source
from portal.ui import wording
from servicing import Application, codec
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps
from tests import given
from tests.portal.documents.test_document import download
from tests.portal.pages import panel, visible_text

FIGURE = re.compile(r"[−-]?\$[\d,]+\.\d\d|\d+(?:\.\d+)?%|[A-Z][a-z]{2} \d{1,2}, \d{4}")
SECRETS = {"EIN": "918273645", "key_people": [{"ssn": "567438291", "dob": "1971/02/03"}]}


def borrower_with_accounts(sandbox: Sandbox, *, is_read: bool = True) -> Account:
    """Create a borrower with one of each account and an application; load the accounts if ``is_read``."""
    record = given.borrower(sandbox, **SECRETS)
    loan = sandbox.world.loan(record.uuid, amount="24000.00", installments=36, paid=8)
    line = sandbox.world.line(record.uuid, limit="20000.00", drawn="7600.00")
    sandbox.world.repayment(loan["uuid"], amount="765.43")
    sandbox.world.repayment(
        line["uuid"], amount="310.00", status="FAILED_AFTER_SUCCESS", error_description="R01"
    )
    given.account(Kind.LOAN, record, loan["uuid"])
    given.account(Kind.LINE, record, line["uuid"])
    for copy in account_copies_of(record) if is_read else []:
        assert read_live(Actor.system("test"), copy)
    save_application(sandbox.world.loan_application(record.uuid, amount="25000.00"), record)
    return record


def save_application(application: dict[str, Any], record: Account) -> None:
    decoded = codec.decode(Application, dumps(application))
    store.save(store.observe(decoded, borrower_uuid=record.uuid), source=Source.SERVICE)


def summary_page(browser: Browser, record: Account) -> str:
    return browser.get(f"/borrowers/{record.uuid}/summary/").content.decode()


def document_text(page: str) -> str:
    """Return the text of the document on a page, without text that only screen readers or tooltips show."""
    inside = page.partition('<div class="paper on-')[2].partition("<")[2].partition('<div class="sd-age')[0]
    return re.sub(r"<[^>]*>", " ", inside)


def text_of(pdf: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)


class TestPage:
    def test_shows_accounts_repayments_and_the_application(
        self, portal_service: Sandbox, viewer: Browser
    ) -> None:
        page = summary_page(viewer, borrower_with_accounts(portal_service))
        assert "Principal is 38% of the limit" in page
        assert "8 of 36 installments are paid" in page
        assert "Returned after posting" in page
        assert "Returned after posting, Returned" not in page
        assert "$25,000.00" in page

    @pytest.mark.slow
    @pytest.mark.django_db(transaction=True)
    def test_loads_missing_accounts_in_its_panel(self, portal_service: Sandbox, viewer: Browser) -> None:
        record = borrower_with_accounts(portal_service, is_read=False)
        viewer.cookies["js"] = "1"
        portal_service.fail_next("*", delay=1, times=2)
        assert "Not loaded yet: only the ID is on file." in summary_page(viewer, record)
        section = panel(viewer, f"/borrowers/{record.uuid}/summary/", "document")
        assert section.startswith('<section class="sd-card" id="document"')
        assert "Not loaded yet" not in section

    @pytest.mark.slow
    @pytest.mark.django_db(transaction=True)
    def test_shows_saved_copies_while_the_service_is_down(
        self, portal_service: Sandbox, viewer: Browser
    ) -> None:
        record = borrower_with_accounts(portal_service)
        portal_service.fail_next("*", times=12, status=503)
        later = panel(viewer, f"/borrowers/{record.uuid}/summary/?refresh=1", "document")
        assert "couldn’t be refreshed since" in later
        assert "$24,000.00" in later

    @pytest.mark.slow
    def test_a_view_is_recorded(self, portal_service: Sandbox, viewer: Browser) -> None:
        record = borrower_with_accounts(portal_service)
        summary_page(viewer, record)
        assert PageView.objects.filter(page="summaries.preview", subject_uuid=record.uuid).count() == 1
        assert PageView.objects.get(subject_uuid=record.uuid).actor_name == "Viewer (viewer)"

    def test_shows_a_borrower_with_only_an_id(self, viewer: Browser) -> None:
        record = Borrower.objects.create(uuid="only-this")
        page = summary_page(viewer, record)
        assert "No profile on file" in page
        assert "No loans or lines" in page

    def test_an_unknown_borrower_returns_404(self, viewer: Browser) -> None:
        assert viewer.get("/borrowers/nobody/summary/").status_code == 404
        assert viewer.get("/borrowers/nobody/summary.pdf").status_code == 404

    def test_anonymous_users_must_sign_in(self, anonymous: Browser) -> None:
        for name in ("summary/", "summary.pdf"):
            assert "/sign-in/" in anonymous.get(f"/borrowers/any/{name}")["Location"]

    def test_the_borrower_page_links_to_the_summary(self, portal_service: Sandbox, viewer: Browser) -> None:
        record = given.borrower(portal_service)
        assert (
            f'href="/borrowers/{record.uuid}/summary/"'
            in viewer.get(record.get_absolute_url()).content.decode()
        )


class TestPdf:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "query",
        [
            "",
            "mode=borrower&paper=a4&chosen=1&section=loans&section=lines&section=repayments",
            "schedules=1&chosen=1&section=loans",
        ],
    )
    def test_has_every_figure_of_the_page_and_no_secret(
        self, portal_service: Sandbox, viewer: Browser, query: str
    ) -> None:
        record = borrower_with_accounts(portal_service)
        page = viewer.get(f"/borrowers/{record.uuid}/summary/?{query}").content.decode()
        text = text_of(viewer.get(f"/borrowers/{record.uuid}/summary.pdf?{query}").content)
        figures = set(FIGURE.findall(document_text(page)))
        assert len(figures) > 40
        assert {figure for figure in figures if figure not in text} == set()
        for secret in ("918273645", "567438291", "••••"):
            assert secret not in text
        # As a word: a random ID may hold the digits of a year.
        assert not re.search(r"\b1971\b", text)

    @pytest.mark.slow
    def test_the_borrower_copy_omits_internal_details(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        record = borrower_with_accounts(portal_service)
        Note.objects.create(
            borrower_uuid=record.uuid, subject_kind=Kind.BORROWER, subject_uuid=record.uuid,
            text="Calls at night", author_id=1, author_name="Ana",
        )  # fmt: skip
        address = f"/borrowers/{record.uuid}/summary.pdf"
        inside, outside = (
            text_of(servicer.get(f"{address}?mode={mode}").content) for mode in ("internal", "borrower")
        )
        person = KeyPerson.objects.filter(borrower_uuid=record.uuid)[0]
        for words in ("Calls at night", record.uuid, person.email, "Internal notes and checks"):
            assert words in inside
            assert words not in outside
        assert record.uuid[:8] in outside
        names = [servicer.get(f"{address}?mode={mode}").headers["Content-Disposition"] for mode in Mode]
        assert [mode for mode, name in zip(Mode, names, strict=True) if "-internal-" in name] == ["internal"]

    @pytest.mark.slow
    def test_a_closed_loan_is_marked_as_not_in_totals(self, portal_service: Sandbox, viewer: Browser) -> None:
        record = given.borrower(portal_service)
        given.loan(portal_service, record, status="CHARGED_OFF")
        given.loan(portal_service, record)
        pdf = text_of(viewer.get(f"/borrowers/{record.uuid}/summary.pdf?mode=borrower").content)
        assert " ".join(pdf.split()).count("not in totals") == 1

    @pytest.mark.slow
    def test_a_closed_loan_is_in_no_total(self, portal_service: Sandbox, viewer: Browser) -> None:
        record = given.borrower(portal_service)
        for amount, status in (("1000.00", "ACTIVE"), ("2000.00", "ACTIVE"), ("4000.00", "CHARGED_OFF")):
            given.loan(portal_service, record, amount=amount, status=status, interest_rate="0")
        for copy in account_copies_of(record):
            assert read_live(Actor.system("test"), copy)
        (totals,) = re.findall(r"<tfoot>(.*?)</tfoot>", summary_page(viewer, record), re.DOTALL)[:1]
        assert visible_text(totals).startswith("Total $3,000.00 ")

    @pytest.mark.parametrize(("days", "is_scheduled"), [(-1, False), (0, True), (1, True)])
    def test_a_payment_is_scheduled_through_its_day(
        self, portal_service: Sandbox, viewer: Browser, days: int, is_scheduled: bool
    ) -> None:
        record = given.borrower(portal_service)
        loan = given.loan(portal_service, record)
        day = business_date() + timedelta(days=days)
        portal_service.world.repayment(loan.uuid, amount="765.43", status="SCHEDULED", effective_date=day)
        for copy in account_copies_of(record):
            assert read_live(Actor.system("test"), copy)
        text = visible_text(document_text(summary_page(viewer, record)))
        words = f"1 more is scheduled, the next for {wording.day(day)}: $765.43 on loan {loan.uuid[:8]}."
        assert (words in text) == is_scheduled
        assert text.count("$765.43") == 1

    @pytest.mark.slow
    def test_a_borrower_copy_of_three_accounts_fits_on_one_page(
        self, portal_service: Sandbox, viewer: Browser
    ) -> None:
        record = borrower_with_accounts(portal_service)
        other = given.loan(portal_service, record, installments=36, paid=4)
        for _ in range(15):
            portal_service.world.repayment(other.uuid, amount="100.00")
        address = f"/borrowers/{record.uuid}/summary.pdf?mode=borrower"
        # Sections selected for the internal copy must not apply to the borrower copy.
        for query in ("", "&chosen=internal&section=loans&section=people"):
            (page,) = PdfReader(io.BytesIO(viewer.get(address + query).content)).pages
            text = page.extract_text()
            # Past due amounts come first, each with its source and the date of its copy.
            order = [text.index(words) for words in ("Past due: ", "as reported", "calculated from", "Phone")]
            assert order == sorted(order)
            assert text.count(wording.day(timezone.localdate())) >= 4
            assert f"Loan {other.uuid[:8]}" in text.partition("Last repayments")[2]
        selected = viewer.get(f"{address}&chosen=borrower&section=loans")
        assert "Next installments" in text_of(selected.content)

    @pytest.mark.slow
    def test_has_bookmarks_for_its_sections(self, portal_service: Sandbox, viewer: Browser) -> None:
        record = borrower_with_accounts(portal_service)
        outline = PdfReader(io.BytesIO(viewer.get(f"/borrowers/{record.uuid}/summary.pdf").content)).outline
        missing = {str(record), "Position", "Latest application"} - set(
            re.findall(r"'/Title': '([^']*)'", str(outline))
        )
        assert missing == set()

    @pytest.mark.slow
    def test_has_metadata_paper_size_and_page_numbers(self, portal_service: Sandbox, viewer: Browser) -> None:
        record = borrower_with_accounts(portal_service)
        summary_page(viewer, record)
        answer = viewer.get(f"/borrowers/{record.uuid}/summary.pdf")
        pdf = PdfReader(io.BytesIO(answer.content))
        assert pdf.metadata is not None
        assert pdf.metadata.title == f"Borrower summary: {record}"
        assert pdf.metadata.author == "Servicing Desk"
        assert pdf.trailer["/Root"]["/Lang"] == "en"
        assert pdf.trailer["/Root"]["/MarkInfo"]["/Marked"]
        assert [round(float(side)) for side in pdf.pages[0].mediabox[2:]] == [612, 792]
        assert f"Page 1 of {len(pdf.pages)}" in text_of(answer.content)
        assert answer["Content-Type"] == "application/pdf"
        assert "no-store" in answer["Cache-Control"]

    @pytest.mark.slow
    def test_embeds_its_own_fonts(self, portal_service: Sandbox, viewer: Browser) -> None:
        pdf = PdfReader(
            io.BytesIO(
                viewer.get(f"/borrowers/{borrower_with_accounts(portal_service).uuid}/summary.pdf").content
            )
        )
        fonts = [str(font.get_object()["/BaseFont"]) for font in pdf.pages[0]["/Resources"]["/Font"].values()]
        assert fonts
        assert all("Inter" in font for font in fonts)

    @pytest.mark.slow
    def test_repeats_table_headers_after_a_page_break(self, portal_service: Sandbox, viewer: Browser) -> None:
        record = given.borrower(portal_service, key_people=[{"first_name": f"Person {n}"} for n in range(50)])
        pdf = PdfReader(io.BytesIO(viewer.get(f"/borrowers/{record.uuid}/summary.pdf").content))
        assert [page.extract_text().count("Email\n") for page in pdf.pages] == [2, 1]

    @pytest.mark.slow
    def test_the_audit_entry_has_the_digest_of_the_pdf(
        self, portal_service: Sandbox, servicer: Browser
    ) -> None:
        record = borrower_with_accounts(portal_service)
        document = servicer.get(f"/borrowers/{record.uuid}/summary.pdf").content
        entry = Entry.objects.get(action="summaries.print")
        assert entry.detail["sha256"] == sha256(document).hexdigest()
        assert entry.subject_uuid == record.uuid

    @pytest.mark.slow
    def test_is_rendered_in_another_process(self, portal_service: Sandbox, viewer: Browser) -> None:
        assert (
            viewer.get(f"/borrowers/{borrower_with_accounts(portal_service).uuid}/summary.pdf").status_code
            == 200
        )
        assert "weasyprint" not in sys.modules

    @pytest.mark.slow
    def test_html_in_names_is_printed_as_text(self, portal_service: Sandbox, viewer: Browser) -> None:
        hostile = "<img src=http://127.0.0.1:9/x><link rel=attachment href=file:///etc/passwd>"
        record = given.borrower(
            portal_service, first_name=hostile, email='"><script>alert(1)</script>@x.example'
        )
        text = text_of(viewer.get(f"/borrowers/{record.uuid}/summary.pdf").content)
        assert "<img src=http://127.0.0.1:9/x>" in text.replace("\n", "")
        assert "<script>alert(1)</script>" in text.replace("\n", "")


LOAN = {
    "product": "LOAN", "state": "TX", "amount": Decimal("12000.00"), "interest_rate": Decimal("9.5"),
    "apr": Decimal("10.25"), "term": 12, "term_frequency": "MONTHLY", "opening_date": "2026-01-15",
    "repayments_start_date": "2026-02-15", "maturity_date": "2027-01-15", "autopay_enabled": True,
    "origination_fee": Decimal("120"), "status": "ACTIVE", "delinquent": False,
}  # fmt: skip
ROW = {
    "number": 1, "due_date": "2026-02-15", "principal": Decimal("900"), "interest": Decimal("95"),
    "fees": Decimal("0"), "total": Decimal("995"), "balance": Decimal("11100"), "status": "SCHEDULED",
}  # fmt: skip
STATEMENT = {
    "next_billing_date": "2026-12-01", "principal_balance": Decimal("1"), "interest_balance": Decimal("0"),
    "payoff_balance": Decimal("1"), "days_past_due": 0, "past_due_balance": Decimal("0"),
    "payment_amount_due": Decimal("25"), "payment_due_date": "2026-12-15", "suspense_balance": Decimal("0"),
    "credit_limit": Decimal("100"), "available_credit": Decimal("99"), "current_credit": Decimal("99"),
}  # fmt: skip
REPAYMENT = {
    "product": "LOAN", "payment_type": "RETURNED", "effective_date": "2026-10-01", "amount": Decimal("10"),
    "principal": Decimal("9"), "interest": Decimal("1"), "fees": None, "error_description": "",
    "status": "SUCCEEDED",
}  # fmt: skip
OFFER = {
    "product": "LOAN", "apr": Decimal("10"), "amount": Decimal("5000"), "term": 12, "interest_rate": Decimal("9"),
    "term_frequency": "MONTHLY", "origination_fee": Decimal("50"), "installment": Decimal("440"),
    "interest_amount": Decimal("280"), "start_date": "2026-12-01",
}  # fmt: skip
UNEXPECTED = st.sampled_from(
    [None, "NEVER_SEEN", "", 0, -1, [], {}, {"deep": [{"er": None}]}, "é" * 300, True]
)


def variants_of(valid: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Generate objects whose fields may be missing, null, or of an unexpected value."""
    fields = {name: st.one_of(st.just(value), UNEXPECTED) for name, value in valid.items()}
    return st.fixed_dictionaries({}, optional=fields)


def save_answer(owner: Borrower, kind: Kind, answer: Any) -> Any:
    saved = given.account(kind, owner, f"{kind}-of-anything")
    return given.put_on_file(saved, json.dumps(answer, default=str))


def summary_html(record: Account, mode: Mode) -> str:
    summary = document(record, account_copies_of(record), Options(mode=mode), today=timezone.localdate())
    return summary.html(Stamp(timezone.now(), "Ana", "BS-1"))


@pytest.mark.django_db
class TestUnusualAnswers:
    @pytest.mark.slow
    @settings(
        max_examples=12,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @for_any(
        loan=variants_of(LOAN), rows=st.lists(variants_of(ROW), max_size=3), line=variants_of(STATEMENT),
        paid=st.lists(variants_of(REPAYMENT), max_size=3), offers=st.lists(variants_of(OFFER), max_size=2),
        decision=UNEXPECTED, mode=st.sampled_from(Mode),
    )  # fmt: skip
    def test_any_answer_prints_every_figure_and_no_secrets(
        self, db: None, loan: Any, rows: Any, line: Any, paid: Any, offers: Any, decision: Any, mode: Mode
    ) -> None:
        profile = json.dumps({"uuid": "b", "user_type": "BUSINESS", "EIN": "918273645", "first_name": "B"})
        record, _ = Borrower.objects.get_or_create(uuid="b", name="B")
        given.put_on_file(record, profile)
        save_answer(record, Kind.LOAN, loan | {"uuid": "loan", "installments": rows})
        save_answer(record, Kind.LINE, line | {"statements": [{}, {"billing_date": None, "url": None}]})
        repayments = [repayment | {"uuid": str(index)} for index, repayment in enumerate(paid)]
        given.put_answer(Kind.LOAN_REPAYMENTS, "loan-of-anything", json.dumps(repayments, default=str))
        offers_with_ids = [offer | {"uuid": str(index)} for index, offer in enumerate(offers)]
        save_answer(
            record,
            Kind.APPLICATION,
            {"uuid": "a", "offers": offers_with_ids, "status": {"details": decision}},
        )
        html = summary_html(record, mode)
        text = text_of(render(html))
        figures = set(FIGURE.findall(re.sub(r"<[^>]*>", " ", html.partition("<body")[2])))
        assert {figure for figure in figures if figure not in text.replace("\n", " ")} == set()
        assert "918273645" not in text

    @pytest.mark.slow
    def test_long_lists_are_cut_and_counted(self, viewer: Browser) -> None:
        record = Borrower.objects.create(uuid="b", name="B" * 300)
        rows = [
            ROW | {"number": n, "due_date": str(timezone.localdate() + timedelta(days=n))}
            for n in range(2000)
        ]
        loan = save_answer(record, Kind.LOAN, LOAN | {"uuid": "loan", "installments": rows})
        Account.objects.bulk_create(
            Account(kind=Kind.LINE, uuid=f"line-{n}", borrower_uuid="b") for n in range(2000)
        )
        paid = [REPAYMENT | {"uuid": str(n)} for n in range(2000)]
        given.put_answer(Kind.LOAN_REPAYMENTS, loan.uuid, json.dumps(paid, default=str))
        text = text_of(viewer.get("/borrowers/b/summary.pdf").content)
        assert "1988 later installments not printed" in text
        assert "1988 earlier repayments not printed" in text
        assert "1976 more lines of credit" in text

    @pytest.mark.slow
    def test_each_loan_prints_its_first_120_installments(self, viewer: Browser) -> None:
        record = Borrower.objects.create(uuid="b", name="B")
        today = timezone.localdate()
        rows = [ROW | {"number": n, "due_date": str(today + timedelta(days=30 * n))} for n in range(360)]
        for number in range(3):
            loan = save_answer(record, Kind.LOAN, LOAN | {"uuid": f"loan-{number}", "installments": rows})
            Account.objects.filter(pk=loan.pk).update(uuid=f"loan-{number}")
            Answer.objects.filter(pk=loan.answer_id).update(uuid=f"loan-{number}")
        text = text_of(download(viewer, "/borrowers/b/summary.pdf?data=copies&schedules=1"))
        assert text.count("240 later installments not printed") == 3

    @pytest.mark.slow
    def test_long_words_do_not_push_columns_off_the_page(self) -> None:
        record = Borrower.objects.create(uuid="b", name="B" * 200)
        save_answer(
            record, Kind.LOAN, LOAN | {"uuid": "loan", "status": "NEVER_SEEN_" * 8, "installments": [ROW]}
        )
        Note.objects.create(borrower_uuid="b", text="x" * 300, author_id=1, author_name="A" * 100)
        starts: list[float] = []
        for page in PdfReader(io.BytesIO(render(summary_html(record, Mode.INTERNAL)))).pages:
            page.extract_text(visitor_text=lambda _, at, text, *more: starts.append(at[0] * text[4] + at[4]))
        assert 500 < max(starts) < 612 - 40

    def test_an_unreadable_answer_returns_422(self, viewer: Browser) -> None:
        given.put_on_file(Borrower.objects.create(uuid="b"), "no JSON")
        for address in ("summary/?data=copies", "summary.pdf?data=copies"):
            answer = viewer.get(f"/borrowers/b/{address}")
            assert answer.status_code == 422
            assert "This document can’t be created" in answer.content.decode()

    def test_a_total_with_a_missing_part_is_unknown(self) -> None:
        record = Borrower.objects.create(uuid="b")
        rows = [ROW, ROW | {"total": None}]
        save_answer(record, Kind.LOAN, LOAN | {"uuid": "loan", "installments": rows})
        (loan,) = document(record, account_copies_of(record), Options(), today=timezone.localdate()).content[
            "loans"
        ]
        assert loan["sums"]["total"] is None
        assert loan["sums"]["principal"] == Decimal("1800")
