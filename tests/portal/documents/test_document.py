"""Schedules, lines, offer sheets and statements of account: what stands in the preview, what stands in the PDF."""

import io
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from django.conf import LazySettings
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
from portal.live.reading import LiveCopy, account_records, read_live
from portal.registry import store
from portal.registry.models import Kind, Record, Source
from servicing import Application, codec
from servicing.sandbox import Sandbox
from servicing.sandbox.wire import dumps
from tests import given
from tests.portal.applications.answers import known, offer
from tests.portal.documents.test_pdf import end_worker
from tests.portal.pages import words

FIGURE = re.compile(r"[−-]?\$[\d,]+\.\d\d|\d+(?:\.\d+)?%|[A-Z][a-z]{2} \d{1,2}, \d{4}")


def text_of(pdf: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)


def figures_of(page: str) -> set[str]:
    """What the preview shows, without what only assistive technology or a pointer meets."""
    inside = page.partition('<div class="paper on-')[2].partition('<div class="sd-age')[0]
    return set(FIGURE.findall(re.sub(r"<[^>]*>", " ", inside)))


def read(record: Record) -> Record:
    for one in account_records(record):
        assert read_live(Actor.system("test"), one)
    return record


def every_address(portal_service: Sandbox) -> dict[str, str]:
    """One document of each kind, with everything that it can hold."""
    owner = given.borrower(portal_service)
    loan = given.loan(portal_service, owner, amount="24000.00", installments=36, paid=8)
    line = given.line(portal_service, owner, limit="20000.00", drawn="7600.00")
    portal_service.world.repayment(loan.uuid, amount="765.43")
    portal_service.world.repayment(
        line.uuid, amount="310.00", status="FAILED_AFTER_SUCCESS", error_description="R01"
    )
    read(loan), read(line)
    told = codec.decode(
        Application, dumps(portal_service.world.loan_application(owner.uuid, amount="25000.00"))
    )
    (application,) = store.save(store.observe(told, borrower_uuid=owner.uuid), source=Source.SERVICE)
    base = f"/borrowers/{owner.uuid}"
    return {
        "Loan schedule": f"{base}/loans/{loan.uuid}/schedule",
        "Line of credit": f"{base}/lines/{line.uuid}/summary",
        "Offer sheet": f"{base}/applications/{application.uuid}/offer-sheet",
        "Statement of account": f"{base}/statement-of-account",
    }


def test_each_pdf_has_every_figure_of_its_preview_and_leads_to_its_audit_entry(
    portal_service: Sandbox, viewer: Browser, settings: LazySettings
) -> None:
    for title, address in every_address(portal_service).items():
        page = viewer.get(f"{address}/?data=copies").content.decode()
        drawn = viewer.get(f"{address}.pdf?data=copies")
        pdf, text = PdfReader(io.BytesIO(drawn.content)), text_of(drawn.content)
        assert len(figures_of(page)) >= 3, title
        assert {figure for figure in figures_of(page) if figure not in text} == set()
        assert pdf.metadata is not None
        assert str(pdf.metadata.title).startswith(title)
        entry = Printed.objects.get(code=drawn["X-Document-Code"]).entry
        assert entry.detail["sha256"] == sha256(drawn.content).hexdigest()
        assert entry.detail["content_sha256"][:4] in text
        assert entry.detail["code"] in text
        assert f"Check it at {settings.ALLOWED_HOSTS[0]}/verify/{entry.detail['code']}/" in " ".join(
            text.split()
        )


def elements(node: Any) -> Iterator[Any]:
    """Every element of a structure tree."""
    if isinstance(node, DictionaryObject):
        yield node
        for kid in node.get("/K", []):
            yield from elements(kid.get_object())


def test_each_pdf_is_tagged_so_that_it_can_be_read_aloud(portal_service: Sandbox, viewer: Browser) -> None:
    addresses = every_address(portal_service)
    addresses["Borrower summary"] = f"{addresses['Offer sheet'].partition('/applications')[0]}/summary"
    for title, address in addresses.items():
        pdf = PdfReader(io.BytesIO(viewer.get(f"{address}.pdf?data=copies").content))
        root = pdf.root_object
        assert (root["/Lang"], root["/MarkInfo"]["/Marked"].value) == ("en", True)
        assert root["/ViewerPreferences"]["/DisplayDocTitle"].value is True
        assert [page["/Tabs"] for page in pdf.pages] == ["/S"] * len(pdf.pages)
        assert pdf.outline, title
        found = list(elements(root["/StructTreeRoot"]["/K"][0].get_object()))
        kinds = [one["/S"] for one in found]
        assert kinds.count("/H1") == 1
        assert {"/H2", "/Table", "/THead", "/TBody"} <= set(kinds)
        assert [one for one in found if one["/S"] == "/Figure" and not one.get("/Alt")] == []
        in_lists = [kid.get_object()["/S"] for one in found if one["/S"] == "/L" for kid in one["/K"]]
        assert set(in_lists) == {"/LI"}
        assert b"pdfuaid:part" in root["/Metadata"].get_data()
        assert [one for one in found if one["/S"] == "/TD" and not one["/A"].get("/Headers")] == []


def test_a_schedule_has_a_subtotal_for_each_year_and_totals(portal_service: Sandbox, viewer: Browser) -> None:
    page = viewer.get(f"{every_address(portal_service)['Loan schedule']}/").content.decode()
    years = re.findall(r"Subtotal (\d{4})", page)
    assert len(years) >= 3
    assert "Total, 36 installments" in page


def test_an_offer_sheet_is_no_disclosure_and_turns_the_paper_for_a_fourth_offer(
    portal_service: Sandbox, viewer: Browser
) -> None:
    address = every_address(portal_service)["Offer sheet"]
    whole = PdfReader(io.BytesIO(viewer.get(f"{address}.pdf").content)).pages[0]
    fewer = PdfReader(io.BytesIO(viewer.get(f"{address}.pdf?offer=A&offer=B&paper=a4").content)).pages[0]
    assert "Not a legal disclosure" in whole.extract_text()
    assert [float(side) for side in whole.mediabox[2:]] == [792, 612]
    assert [round(float(side)) for side in fewer.mediabox[2:]] == [595, 842]


@pytest.mark.parametrize("mode", ["internal", "borrower"])
def test_an_offer_sheet_has_every_row_that_an_offer_has(
    portal_service: Sandbox, viewer: Browser, mode: str
) -> None:
    offers = [offer(n, installment=None if n else 1899.79) for n in range(4)]
    record = known(given.borrower(portal_service), *offers)
    page = viewer.get(
        f"{record.get_absolute_url()}offer-sheet/?rows=differing&empty=1&mode={mode}"
    ).content.decode()
    assert "Maturity" in page
    assert "Needs installment" in page
    assert "Interest-only" not in page


def test_a_statement_takes_the_filters_of_the_list(portal_service: Sandbox, viewer: Browser) -> None:
    address = every_address(portal_service)["Statement of account"]
    page = viewer.get(f"{address}/?error=yes").content.decode()
    assert "$310.00" in page
    assert "$765.43" not in page
    assert "Failed or with an error yes" in page
    assert "the service doesn’t provide the draws on a line of credit" in page
    other = given.loan(portal_service, given.borrower(portal_service)).borrower_uuid
    alone = viewer.get(f"/borrowers/{other}/statement-of-account/").content.decode()
    assert "Statement of account" in alone
    assert "draws" not in alone
    across = viewer.get("/repayments/statement-of-account.pdf?most=400")
    assert "$310.00" in text_of(across.content)
    assert "$765.43" not in text_of(across.content)


def test_a_statement_adds_up_parts_that_are_text(portal_service: Sandbox, viewer: Browser) -> None:
    loan = given.loan(portal_service, given.borrower(portal_service))
    for principal, fees in (("80.50", "0"), ("9.50", {"late": "none"})):
        portal_service.world.repayment(
            loan.uuid, amount="100.00", status="SUCCEEDED", principal=principal, interest=None, fees=fees
        )
    read(loan)
    address = f"/borrowers/{loan.borrower_uuid}/statement-of-account/"
    assert "Total, 2 succeeded $90.00 — — $200.00" in words(viewer.get(address).content.decode())


def test_the_same_inputs_give_the_same_bytes_and_another_print_the_same_content_hash(
    portal_service: Sandbox, viewer: Browser
) -> None:
    address = every_address(portal_service)["Loan schedule"]
    first, second = (viewer.get(f"{address}.pdf")["X-Document-Code"] for _ in range(2))
    hashes = [Printed.objects.get(code=code).entry.detail for code in (first, second)]
    assert first != second
    assert hashes[0]["content_sha256"] == hashes[1]["content_sha256"]
    assert hashes[0]["sha256"] != hashes[1]["sha256"]


@pytest.mark.parametrize("kind", [Kind.LOAN, Kind.LINE, Kind.APPLICATION])
def test_what_was_never_read_says_so_on_paper(portal_service: Sandbox, viewer: Browser, kind: Kind) -> None:
    record = given.account(kind, given.borrower(portal_service), "never-read")
    record.category = "LOAN"
    record.save()
    paths = {
        Kind.LOAN: "loans/never-read/schedule",
        Kind.LINE: "lines/never-read/summary",
        Kind.APPLICATION: "applications/never-read/offer-sheet",
    }
    drawn = viewer.get(f"/borrowers/{record.borrower_uuid}/{paths[kind]}.pdf?data=copies")
    assert "only the ID is on file" in text_of(drawn.content).replace("\n", " ")


def test_a_stamp_is_the_only_thing_that_makes_bytes_differ(portal_service: Sandbox, viewer: Browser) -> None:
    owner = given.borrower(portal_service)
    loan = read(given.loan(portal_service, owner, installments=12))
    loan.refresh_from_db()
    paper = document(LiveCopy(loan), [], owner, Options(), today=timezone.localdate())
    stamp = Stamp(timezone.now(), "Ana", "LS-20261121-ABCDEF")
    first = render(paper.html(stamp))
    time.sleep(1.1)  # fonts carry a time in seconds
    end_worker()
    assert render(paper.html(stamp)) == first
    assert render(paper.html(replace(stamp, by="Ben"))) != first
