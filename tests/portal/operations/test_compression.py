"""Compression of pages and static files."""

import gzip

from django.conf import LazySettings
from django.test import Client as Browser

from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox

GZIP = {"Accept-Encoding": "gzip"}


def test_pages_are_compressed(viewer: Browser, portal_service: Sandbox) -> None:
    plain, small = viewer.get("/borrowers/"), viewer.get("/borrowers/", headers=GZIP)
    assert small.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in small.headers["Vary"]
    assert len(small.content) < len(plain.content) / 3
    assert b"<h1>Borrowers</h1>" in gzip.decompress(small.content)


def test_the_compressed_length_is_randomized(viewer: Browser, portal_service: Sandbox) -> None:
    lengths = {len(viewer.get("/help/nowhere/", headers=GZIP).content) for _ in range(8)}
    assert len(lengths) > 1


def test_exports_are_not_compressed(viewer: Browser, portal_service: Sandbox) -> None:
    answer = viewer.get("/borrowers/export/", headers=GZIP)
    assert answer.status_code == 200
    assert "Content-Encoding" not in answer.headers


def test_static_files_are_compressed_in_local_use(anonymous: Browser, settings: LazySettings) -> None:
    settings.DEBUG = True
    answer = anonymous.get("/static/css/base.css", headers=GZIP)
    received = b"".join(answer.streaming_content)
    assert gzip.decompress(received) == (BASE_DIR / "static/css/base.css").read_bytes()
