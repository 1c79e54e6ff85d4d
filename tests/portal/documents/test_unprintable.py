"""Characters that the documents' fonts lack: the document says so, and its preview before that."""

import re

import pytest
from django.test import Client as Browser

from portal.documents.options import Mode
from portal.documents.pdf import find_unprintable
from portal.notes.models import Note
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.documents.test_borrower import summary_html
from tests.portal.pages import visible_text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Café Ångström & Söhne — “Žižka” ≤ 5 €", ""),
        ("Ωmega Логистика", ""),
        ("東京 Bakery 東", "東京"),
        ("नमस्ते", "नमस्ते"),
        ("Kim \u200b\u00ad\ufeff\u2028 Lee\u0301", ""),
        ("\U00020000", "\U00020000"),
        ("<b>서울</b> &amp;", "서울"),
    ],
)
def test_only_characters_without_a_glyph_are_found(text: str, missing: str) -> None:
    assert find_unprintable(text) == "".join(dict.fromkeys(missing))


def notice(page: str) -> str:
    """The notice above the previewed paper."""
    found = re.search(r'<div class="sd-honest sd-honest-first" role="alert">(.*?)</div>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", found[1]).split()) if found else ""


@pytest.mark.slow
def test_the_preview_and_the_document_say_which_characters_are_boxes(
    portal_service: Sandbox, viewer: Browser
) -> None:
    owner = given.borrower(portal_service, first_name="東京 Bakery LLC")
    Note.objects.create(borrower_uuid=owner.uuid, text="서", author_id=1, author_name="Ana")
    address = f"/borrowers/{owner.uuid}/summary"
    internal = viewer.get(f"{address}/?data=copies&mode=internal").content.decode()
    assert notice(internal).endswith("don’t have them: 東 京 서")
    assert notice(viewer.get(f"{address}/?data=copies&mode=borrower").content.decode()).endswith("東 京")
    text = visible_text(summary_html(owner, Mode.INTERNAL))  # pypdf can't read a font that lacks glyphs.
    assert viewer.get(f"{address}.pdf?data=copies&mode=internal").content.startswith(b"%PDF-")
    assert "3 characters can’t be printed and appear as boxes: U+6771, U+4EAC, U+C11C." in text


@pytest.mark.slow
def test_a_document_without_such_characters_says_nothing(portal_service: Sandbox, viewer: Browser) -> None:
    owner = given.borrower(portal_service, first_name="Åström & Søn Логистика LLC")
    page = viewer.get(f"/borrowers/{owner.uuid}/summary/?data=copies").content.decode()
    assert notice(page) == ""
    assert "can’t be printed" not in page
