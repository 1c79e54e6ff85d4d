"""Loan schedules, line of credit summaries, offer sheets and payment histories: previews and PDFs."""

import io
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import call_command
from django.test import Client as Browser
from django.utils import timezone
from pypdf import PdfReader
from pypdf.generic import DictionaryObject

from portal.audit.models import Actor
from portal.documents.document import Stamp
from portal.documents.loan_schedule import document
from portal.documents.models import Printed
from portal.documents.options import Options
from portal.documents.pdf import render
from portal.gateway.reading import LiveCopy, account_copies, read_live
from portal.records import store
from portal.records.models import Account, Borrower, Kind, Source
from servicing import Application, codec
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps
from tests import given
from tests.portal.applications.answers import offer, saved_application
from tests.portal.pages import visible_text

FIGURE = re.compile(r"[−-]?\$[\d,]+\.\d\d|\d+(?:\.\d+)?%|[A-Z][a-z]{2} \d{1,2}, \d{4}")


def text_of(pdf: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)


def download(browser: Browser, address: str) -> bytes:
    """Return a PDF, however long it takes."""
    answer = browser.get(address)
    if answer.status_code == 303:
        call_command("work", batch=True)
        answer = browser.get(f"{answer['Location']}download/")
    assert answer["Content-Type"] == "application/pdf"
    return bytes(answer.content)


def figures_of(page: str) -> set[str]:
    """Return the figures in the preview, without those that only screen readers or tooltips show."""
    inside = page.partition('<div class="paper on-')[2].partition('<div class="sd-age')[0]
    return set(FIGURE.findall(re.sub(r"<[^>]*>", " ", inside)))


def load_accounts(record: Account) -> Account:
    for copy in account_copies(record):
        assert read_live(Actor.system("test"), copy)
    return record


def document_addresses(portal_service: Sandbox) -> dict[str, str]:
    """Create a borrower with one of each account, and return its documents' addresses by title."""
    owner = given.borrower(portal_service)
    loan = given.loan(portal_service, owner, amount="24000.00", installments=36, paid=8)
    line = given.line(portal_service, owner, limit="20000.00", drawn="7600.00")
    portal_service.world.repayment(loan.uuid, amount="765.43")
    portal_service.world.repayment(
        line.uuid, amount="310.00", status="FAILED_AFTER_SUCCESS", error_description="R01"
    )
    load_accounts(loan), load_accounts(line)
    decoded = codec.decode(
        Application, dumps(portal_service.world.loan_application(owner.uuid, amount="25000.00"))
    )
    (application,) = store.save(store.observe(decoded, borrower_uuid=owner.uuid), source=Source.SERVICE)
    base = f"/borrowers/{owner.uuid}"
    return {
        "Loan schedule": f"{base}/loans/{loan.uuid}/schedule",
        "Line of credit": f"{base}/lines/{line.uuid}/summary",
        "Offer sheet": f"{base}/applications/{application.uuid}/offer-sheet",
        "Payment history": f"{base}/statement-of-account",
    }


@pytest.mark.slow
def test_each_pdf_matches_its_preview_and_its_audit_entry(
    portal_service: Sandbox, viewer: Browser, settings: LazySettings
) -> None:
    settings.PORTAL_URL = "https://desk.example:8443"
    for title, address in document_addresses(portal_service).items():
        page = viewer.get(f"{address}/?data=copies").content.decode()
        response = viewer.get(f"{address}.pdf?data=copies")
        pdf, text = PdfReader(io.BytesIO(response.content)), text_of(response.content)
        assert len(figures_of(page)) >= 3, title
        assert {figure for figure in figures_of(page) if figure not in text} == set()
        assert pdf.metadata is not None
        assert str(pdf.metadata.title).startswith(title)
        entry = Printed.objects.get(code=response["X-Document-Code"]).entry
        assert entry.detail["sha256"] == sha256(response.content).hexdigest()
        assert entry.detail["content_sha256"][:4] in text
        assert entry.detail["code"] in text
        # On one line, so that it can be copied.
        assert f"Verify at desk.example:8443/verify/{entry.detail['code']}/, code " in text


def elements(node: Any) -> Iterator[Any]:
    """Generate all elements of a structure tree."""
    if isinstance(node, DictionaryObject):
        yield node
        for kid in node.get("/K", []):
            yield from elements(kid.get_object())


@pytest.mark.slow
def test_each_pdf_is_tagged_for_screen_readers(portal_service: Sandbox, viewer: Browser) -> None:
    addresses = document_addresses(portal_service)
    addresses["Borrower summary"] = f"{addresses['Offer sheet'].partition('/applications')[0]}/summary"
    for title, address in addresses.items():
        pdf = PdfReader(io.BytesIO(viewer.get(f"{address}.pdf?data=copies").content))
        root = pdf.root_object
        assert (root["/Lang"], root["/MarkInfo"]["/Marked"].value) == ("en", True)
        assert root["/ViewerPreferences"]["/DisplayDocTitle"].value is True
        assert [page["/Tabs"] for page in pdf.pages] == ["/S"] * len(pdf.pages)
        assert pdf.outline, title
        found = list(elements(root["/StructTreeRoot"]["/K"][0].get_object()))
        kinds = [element["/S"] for element in found]
        assert kinds.count("/H1") == 1
        assert {"/H2", "/Table", "/THead", "/TBody"} <= set(kinds)
        assert [figure for figure in found if figure["/S"] == "/Figure" and not figure.get("/Alt")] == []
        in_lists = [
            kid.get_object()["/S"] for element in found if element["/S"] == "/L" for kid in element["/K"]
        ]
        assert set(in_lists) == {"/LI"}
        assert b"pdfuaid:part" in root["/Metadata"].get_data()
        assert [cell for cell in found if cell["/S"] == "/TD" and not cell["/A"].get("/Headers")] == []


@pytest.mark.parametrize("name", ["Line of credit", "Loan schedule", "Offer sheet"])
def test_a_preview_names_the_borrower(portal_service: Sandbox, viewer: Browser, name: str) -> None:
    page = visible_text(viewer.get(f"{document_addresses(portal_service)[name]}/").content.decode())
    borrower = Borrower.objects.get()
    assert f"Borrowers {borrower} " in page
    assert f"{name}: {borrower}, " in page


def test_a_schedule_has_yearly_subtotals_and_a_total(portal_service: Sandbox, viewer: Browser) -> None:
    page = viewer.get(f"{document_addresses(portal_service)['Loan schedule']}/").content.decode()
    scale = page.partition("Scale of the balance")[2].partition("</svg>")[0]
    assert len(re.findall(r"<text[^>]*>\$[^<]+</text>", scale)) == 3
    years = re.findall(r"Subtotal (\d{4})", page)
    assert len(years) >= 3
    assert "Total, 36 installments" in page


@pytest.mark.slow
def test_an_offer_sheet_has_a_disclaimer_and_widens_for_four_offers(
    portal_service: Sandbox, viewer: Browser
) -> None:
    address = document_addresses(portal_service)["Offer sheet"]
    four_offers = PdfReader(io.BytesIO(viewer.get(f"{address}.pdf").content)).pages[0]
    two_offers = PdfReader(io.BytesIO(viewer.get(f"{address}.pdf?offer=A&offer=B&paper=a4").content)).pages[0]
    assert "Not a legal disclosure" in four_offers.extract_text()
    assert [float(side) for side in four_offers.mediabox[2:]] == [792, 612]
    assert [round(float(side)) for side in two_offers.mediabox[2:]] == [595, 842]


@pytest.mark.parametrize("mode", ["internal", "borrower"])
def test_an_offer_sheet_shows_every_row_with_a_value(
    portal_service: Sandbox, viewer: Browser, mode: str
) -> None:
    offers = [offer(n, installment=None if n else 1899.79) for n in range(4)]
    record = saved_application(given.borrower(portal_service), *offers)
    page = viewer.get(
        f"{record.get_absolute_url()}offer-sheet/?rows=differing&empty=1&mode={mode}"
    ).content.decode()
    assert "Maturity" in page
    assert "Needs installment" in page
    assert "Interest-only" not in page
    assert f"Prepared by {'Viewer (viewer)' if mode == 'internal' else 'Viewer'}</p>" in page


@pytest.mark.slow
def test_a_statement_uses_the_filters_of_the_list(portal_service: Sandbox, viewer: Browser) -> None:
    address = document_addresses(portal_service)["Payment history"]
    page = viewer.get(f"{address}/?error=yes").content.decode()
    assert "$310.00" in page
    assert "$765.43" not in page
    assert "Only: Failed or with an error." in page
    assert "the service doesn’t provide the draws on a line of credit" in page
    other = given.loan(portal_service, given.borrower(portal_service)).borrower_uuid
    loan_only = viewer.get(f"/borrowers/{other}/statement-of-account/").content.decode()
    assert "Payment history" in loan_only
    assert "draws" not in loan_only
    all_borrowers = viewer.get("/repayments/statement-of-account.pdf?most=400")
    assert "$310.00" in text_of(all_borrowers.content)
    assert "$765.43" not in text_of(all_borrowers.content)


def test_a_statement_adds_up_amounts_sent_as_text(portal_service: Sandbox, viewer: Browser) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    for principal, fees in (("80.50", "0"), ("9.50", {"late": "none"})):
        portal_service.world.repayment(
            loan.uuid, amount="100.00", status="SUCCEEDED", principal=principal, interest=None, fees=fees
        )
    load_accounts(loan)
    address = f"/borrowers/{loan.borrower_uuid}/statement-of-account/"
    assert "Total, 2 succeeded $90.00 — — $200.00" in visible_text(viewer.get(address).content.decode())


def test_totals_leave_out_every_payment_that_did_not_succeed(
    portal_service: Sandbox, viewer: Browser
) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    today = timezone.localdate()
    first = today.replace(day=1) - timedelta(days=20)
    for amount, status, day in (
        ("100.00", "SUCCEEDED", first), ("20.10", "SUCCEEDED", first), ("3.00", "FAILED", first),
        ("5.00", "FAILED_AFTER_SUCCESS", first), ("7.00", "CANCELED", first), ("11.00", "RETURNED", first),
        ("13.00", "SCHEDULED", today - timedelta(days=1)), ("17.00", "SCHEDULED", today), ("0.40", None, first),
    ):  # fmt: skip
        portal_service.world.repayment(
            loan.uuid, amount=amount, principal=amount, status=status, effective_date=str(day)
        )
    load_accounts(loan)
    page = viewer.get(f"/borrowers/{loan.borrower_uuid}/statement-of-account/").content.decode()
    past, _, scheduled = page.partition('aria-label="Scheduled repayments"')
    assert "Total, 2 succeeded $120.10 — — $120.10" in visible_text(past)
    assert f"{first:%B} {first.year}: 2 of 7 succeeded $120.10" in visible_text(past)
    amounts = re.findall(r"\$\d+\.\d\d", scheduled.partition("</table>")[0])
    assert set(amounts) == {"$17.00"}
    assert "$13.00" in past.partition('aria-label="Repayments"')[2]


@pytest.mark.slow
def test_a_second_print_has_a_new_code_but_the_same_content_hash(
    portal_service: Sandbox, viewer: Browser
) -> None:
    address = document_addresses(portal_service)["Loan schedule"]
    first, second = (viewer.get(f"{address}.pdf")["X-Document-Code"] for _ in range(2))
    hashes = [Printed.objects.get(code=code).entry.detail for code in (first, second)]
    assert first != second
    assert hashes[0]["content_sha256"] == hashes[1]["content_sha256"]
    assert hashes[0]["sha256"] != hashes[1]["sha256"]


@pytest.mark.parametrize("kind", [Kind.LOAN, Kind.LINE, Kind.APPLICATION])
def test_a_pdf_says_when_only_the_id_is_on_file(portal_service: Sandbox, viewer: Browser, kind: Kind) -> None:
    record = given.account(kind, given.borrower(portal_service), "never-read")
    if kind == Kind.APPLICATION:
        record.product = "LOAN"
        record.save()
    paths = {
        Kind.LOAN: "loans/never-read/schedule",
        Kind.LINE: "lines/never-read/summary",
        Kind.APPLICATION: "applications/never-read/offer-sheet",
    }
    response = viewer.get(f"/borrowers/{record.borrower_uuid}/{paths[kind]}.pdf?data=copies")
    assert "only the ID is on file" in text_of(response.content).replace("\n", " ")


@pytest.mark.slow
def test_the_bytes_of_a_pdf_differ_only_with_its_stamp(portal_service: Sandbox, viewer: Browser) -> None:
    owner = given.borrower(portal_service)
    loan = load_accounts(given.loan(portal_service, owner, installments=12))
    loan.refresh_from_db()
    paper = document(LiveCopy(loan), [], owner, Options(), today=timezone.localdate())
    stamp = Stamp(timezone.now(), "Ana", "LS-20261121-ABCDEF")
    first = render(paper.html(stamp))
    time.sleep(1.1)  # Embedded fonts have a timestamp in seconds.
    assert render(paper.html(stamp)) == first
    assert render(paper.html(replace(stamp, by="Ben"))) != first


def balance_cells(page: str) -> list[str] | None:
    """The cells of the ending balances in a payment history; None without that column."""
    table = page.partition('aria-label="Repayments"')[2].partition("</table>")[0]
    if ">Ending balance</th>" not in table:
        return None
    body = table.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = [row for row in body.split("<tr") if "subtotal" not in row]
    return [cells[-1] for row in rows if (cells := re.findall(r'<td class="num">([^<]*)</td>', row))]


def pay(sandbox: Sandbox, account: Account, *payments: tuple[str, str | None, str | None, str]) -> None:
    """Add payments, one a day: amount, principal, ending balance and status."""
    for number, (amount, principal, balance, status) in enumerate(payments):
        day = timezone.localdate() - timedelta(days=20 - number)
        sandbox.world.repayment(
            account.uuid,
            amount=amount,
            principal=principal,
            ending_balance=balance,
            status=status,
            effective_date=str(day),
        )


PAID, LOST = "SUCCEEDED", "FAILED_AFTER_SUCCESS"


@pytest.mark.parametrize(
    ("payments", "cells"),
    [
        ([("100", "80", "920", PAID), ("100", "81", "839", PAID)], ["$920.00", "$839.00"]),
        ([("100", None, "900", PAID), ("50.5", None, "849.5", PAID)], ["$900.00", "$849.50"]),
        ([("100", "80", "920", PAID), ("9", "9", "920", LOST), ("1", "1", "919", PAID)], ["$920.00"] * 2 + ["$919.00"]),
        ([("100", "80", "920", PAID)], ["$920.00"]),
        ([("100", "80", "920", PAID), ("100", "81", "1420", PAID)], None),  # a draw between them
        ([("100", "80", "920", PAID), ("100", "81", "839.01", PAID)], None),
        ([("100", "80", "920", PAID), ("100", "81", None, PAID), ("1", "1", "838", PAID)], None),
        ([("100", "80", None, PAID), ("100", "81", None, PAID)], None),
    ],
)  # fmt: skip
def test_balances_are_printed_only_if_they_follow_one_another(
    portal_service: Sandbox,
    viewer: Browser,
    payments: list[tuple[str, str | None, str | None, str]],
    cells: list[str] | None,
) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    pay(portal_service, loan, *payments)
    load_accounts(loan)
    page = viewer.get(f"/borrowers/{loan.borrower_uuid}/statement-of-account/").content.decode()
    assert balance_cells(page) == cells
    is_told = "Ending balances that don’t follow" in page
    assert is_told == (cells is None and any(balance for _, _, balance, _ in payments))


def test_only_the_account_without_a_break_keeps_its_balances(
    portal_service: Sandbox, viewer: Browser
) -> None:
    owner = given.borrower(portal_service)
    loan, line = given.loan(portal_service, owner), given.line(portal_service, owner, limit="9000.00")
    pay(portal_service, loan, ("100", "80", "920", PAID), ("100", "81", "839", PAID))
    pay(portal_service, line, ("100", "80", "500", PAID), ("100", "81", "700", PAID))
    load_accounts(loan), load_accounts(line)
    page = viewer.get(f"/borrowers/{owner.uuid}/statement-of-account/").content.decode()
    assert sorted(balance_cells(page) or []) == ["", "", "$839.00", "$920.00"]
    summary = viewer.get(f"{line.get_absolute_url()}summary/?data=copies").content.decode()
    assert balance_cells(summary) is None


def test_nothing_is_printed_for_a_request_of_headers_alone(portal_service: Sandbox, viewer: Browser) -> None:
    for address in document_addresses(portal_service).values():
        assert viewer.head(f"{address}/").status_code == 200
        assert viewer.head(f"{address}.pdf").status_code == 405
    assert not Printed.objects.exists()
