"""Fixtures for the portal's tests: a mock identity provider."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from tests.portal.jobs.test_worker import wait_until
from tests.portal.operations.test_demo import is_listening


@pytest.fixture(scope="session")
def provider_url() -> Iterator[str]:
    # Each test process uses its own port, below the range that the system assigns, so that it stays free.
    port = 20_000 + os.getpid() % 10_000
    server = subprocess.Popen(
        [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: is_listening(port))
        assert server.poll() is None
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait(10)


def use_provider(settings: LazySettings, url: str) -> None:
    settings.OIDC_URL, settings.OIDC_CLIENT_ID = url, "desk"
    app = {"provider_id": "sso", "name": "Acme", "client_id": "desk", "secret": "s"}
    apps = [app | {"settings": {"server_url": url}}]
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": apps}}
