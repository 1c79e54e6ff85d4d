"""The organization's logo."""

from base64 import b64decode
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client as Browser

from servicing.sandbox import Sandbox
from tests import given
from tests.portal.test_settings import refusal

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 4"><path d="M0 0H8V4H0z" fill="#0a6"/></svg>'
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
KINDS = [("logo.svg", SVG, "image/svg+xml"), ("LOGO.PNG", PNG, "image/png")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "content", "media_type"), KINDS, ids=["svg", "png"])
def test_the_logo_is_shown_on_screen_and_in_print(
    tmp_path: Path,
    settings: LazySettings,
    anonymous: Browser,
    servicer: Browser,
    portal_service: Sandbox,
    name: str,
    content: bytes,
    media_type: str,
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    settings.LOGO, settings.ORGANIZATION = str(path), "Northwind Credit"
    mark = '<img class="sd-own-logo" src="/logo?v='
    sign_in_page = anonymous.get("/sign-in/").content.decode()
    assert mark in sign_in_page
    assert '<link rel="icon" href="/logo?v=' in sign_in_page
    assert anonymous.get("/favicon.ico")["Location"].startswith("/logo?v=")
    page = servicer.get("/").content.decode()
    assert 'alt="Northwind Credit"' in page
    version = page.partition(mark)[2].partition('"')[0]
    served = anonymous.get(f"/logo?v={version}")
    assert (served.content, served["Content-Type"]) == (content, media_type)
    assert "default-src 'none'" in served["Content-Security-Policy"]
    assert "sandbox" in served["Content-Security-Policy"]
    owner = given.borrower(portal_service)
    assert (
        f'src="data:{media_type};base64,'
        in servicer.get(f"/borrowers/{owner.uuid}/summary/").content.decode()
    )
    printed = servicer.get(f"/borrowers/{owner.uuid}/summary.pdf?data=copies")
    assert printed["Content-Type"] == "application/pdf"


def test_the_product_logo_is_the_default(anonymous: Browser) -> None:
    assert '<span class="sd-logo">' in anonymous.get("/sign-in/").content.decode()
    assert anonymous.get("/logo").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [("logo.gif", b"GIF89a"), ("logo.png", SVG), ("big.svg", SVG * 2000)],
    ids=["gif", "not a png", "too large"],
)
def test_an_invalid_logo_file_is_rejected_at_startup(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert "PNG or SVG file of up to 100 KB" in refusal(DEBUG="on", DATA_DIR=str(tmp_path), LOGO=str(path))
    assert "PNG or SVG" in refusal(DEBUG="on", DATA_DIR=str(tmp_path), LOGO=str(tmp_path / "gone.svg"))
