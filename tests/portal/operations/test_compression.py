"""Pages travel compressed; what is no page goes as it is."""

import gzip

from django.conf import LazySettings
from django.test import Client as Browser

from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox

GZIP = {"Accept-Encoding": "gzip"}


def test_a_page_travels_compressed_and_says_the_same(viewer: Browser, portal_service: Sandbox) -> None:
    plain, small = viewer.get("/borrowers/"), viewer.get("/borrowers/", headers=GZIP)
    assert small.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in small.headers["Vary"]
    assert len(small.content) < len(plain.content) / 3
    assert b"<h1>Borrowers</h1>" in gzip.decompress(small.content)


def test_how_long_a_page_becomes_is_blurred(viewer: Browser, portal_service: Sandbox) -> None:
    lengths = {len(viewer.get("/help/nowhere/", headers=GZIP).content) for _ in range(8)}
    assert len(lengths) > 1


def test_a_file_goes_as_it_is(viewer: Browser, portal_service: Sandbox) -> None:
    answer = viewer.get("/borrowers/export/", headers=GZIP)
    assert answer.status_code == 200
    assert "Content-Encoding" not in answer.headers


def test_styles_and_scripts_travel_compressed_for_local_use(
    anonymous: Browser, settings: LazySettings
) -> None:
    settings.DEBUG = True
    answer = anonymous.get("/static/css/base.css", headers=GZIP)
    received = b"".join(answer.streaming_content)
    assert gzip.decompress(received) == (BASE_DIR / "static/css/base.css").read_bytes()
