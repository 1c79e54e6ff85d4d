"""Helpers that read a page with scripts, without scripts, or one of its panels."""

import json
import re
from datetime import timedelta
from html import unescape

from django.test import Client as Browser

from portal.audit.models import PageView
from portal.live.panels import LOADER
from portal.live.reading import PANEL_WAIT_SECONDS
from portal.registry.models import Record
from tests.conftest import htmx


def page(browser: Browser, address: str) -> str:
    """Return the page with scripts on, built from saved copies; its panels refresh themselves."""
    browser.cookies["js"] = "1"
    return plain(browser, address)


def plain(browser: Browser, address: str) -> str:
    """Return the page with the browser's current cookies."""
    answer = browser.get(address)
    assert answer.status_code == 200
    return checked(answer.content.decode())


def checked(shown: str) -> str:
    """Return the HTML after checking that no attribute contains markup."""
    assert re.findall(r'="[^"<>]*<[^"]*"', shown) == []
    return shown


def panel(browser: Browser, address: str, name: str, **headers: str) -> str:
    """Return a panel after its answer arrived, polling for it as a browser does."""
    browser.cookies["js"] = "1"
    for _ in range(20):
        answer = browser.get(address, headers=htmx(name) | headers)
        assert answer.status_code == 200
        shown = checked(answer.content.decode().strip())
        if 'hx-trigger="load delay:1s"' not in shown:
            return shown
        address = address.replace("&refresh=1", "").replace("?refresh=1", "")
    raise AssertionError(f"{name} has no answer after {PANEL_WAIT_SECONDS * 20} s")


def load_panels(browser: Browser, shown: str) -> str:
    """Load all panels of a page that wait for the service, and return the response."""
    loader = re.search(r'<div id="panels" hidden[^>]* hx-get="([^"]+)" hx-headers="([^"]+)"', shown)
    assert loader, "no panel waits"
    return panel(browser, unescape(loader[1]), LOADER, **json.loads(unescape(loader[2])))


def visible_text(shown: str) -> str:
    """Return the visible text in one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", shown)).split())


def allow_refresh(record: Record) -> None:
    """Clear the time of the last request, so that the record may be requested again."""
    Record.objects.filter(uuid=record.uuid).update(asked_at=None)


def age_record_views() -> None:
    """Move all recorded views back by an hour."""
    for one in PageView.objects.all():
        PageView.objects.filter(pk=one.pk).update(
            first_at=one.first_at - timedelta(hours=1), last_at=one.last_at - timedelta(hours=1)
        )
