"""The header `Permissions-Policy` on pages, files and errors."""

import re
from pathlib import Path

import pytest
from django.test import Client as Browser

from portal.settings import BASE_DIR
from servicing.sandbox import Sandbox
from tests import given

USED = {"clipboard-write": "navigator.clipboard.writeText", "publickey-credentials-get": "credentials.get"}


@pytest.mark.parametrize(
    "address", ["/", "/sign-in/", "/healthz", "/readyz", "/nowhere/", "/static/icon.svg"]
)
def test_device_features_are_denied(viewer: Browser, portal_service: Sandbox, address: str) -> None:
    answer = viewer.get(address)
    answer.close()
    policy = answer.headers["Permissions-Policy"]
    for feature in ("camera", "microphone", "geolocation", "payment", "usb"):
        assert f"{feature}=()" in policy
    assert "*" not in policy


@pytest.mark.parametrize("address", ["/static/css/base.css", "/static/js/portal.js", "/help/"])
def test_parts_of_a_page_have_no_policy(viewer: Browser, portal_service: Sandbox, address: str) -> None:
    answer = viewer.get(address, headers={"HX-Request": "true", "HX-Target": "search-tips"})
    answer.close()
    assert answer.status_code == 200
    assert "Permissions-Policy" not in answer.headers


@pytest.mark.slow
def test_a_pdf_has_the_policy(viewer: Browser, portal_service: Sandbox) -> None:
    answer = viewer.get(f"/borrowers/{given.borrower(portal_service).uuid}/summary.pdf?data=copies")
    assert "camera=()" in answer.headers["Permissions-Policy"]


@pytest.mark.parametrize("feature", USED)
def test_features_used_by_scripts_are_allowed(viewer: Browser, feature: str) -> None:
    scripts = "".join(file.read_text() for file in Path(BASE_DIR / "static/js").glob("*.js"))
    assert USED[feature] in scripts
    assert re.search(rf"{feature}=\(self\)", viewer.get("/sign-in/").headers["Permissions-Policy"])
