"""How tests read a page: as a browser with scripts gets it, one of its panels, or without scripts."""

import json
import re
from datetime import timedelta
from html import unescape

from django.test import Client as Browser

from portal.audit.models import RecordView
from portal.live.panels import LOADER
from portal.live.reading import PANEL_WAIT_SECONDS
from portal.registry.models import Record
from tests.conftest import htmx


def page(browser: Browser, address: str) -> str:
    """The page from saved copies; its panels refresh themselves."""
    browser.cookies["js"] = "1"
    return plain(browser, address)


def plain(browser: Browser, address: str) -> str:
    """The page as whoever asks gets it."""
    answer = browser.get(address)
    assert answer.status_code == 200
    return checked(answer.content.decode())


def checked(shown: str) -> str:
    """The same HTML, if no attribute holds markup."""
    assert re.findall(r'="[^"<>]*<[^"]*"', shown) == []
    return shown


def panel(browser: Browser, address: str, name: str, **headers: str) -> str:
    """One panel once it has its answer: as in a browser it looks again while that is on its way."""
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
    """The answer for all panels of a page, or of an answer, that wait for the service."""
    loader = re.search(r'<div id="panels" hidden[^>]* hx-get="([^"]+)" hx-headers="([^"]+)"', shown)
    assert loader, "no panel waits"
    return panel(browser, unescape(loader[1]), LOADER, **json.loads(unescape(loader[2])))


def words(shown: str) -> str:
    """What a person reads, in one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", shown)).split())


def forget(record: Record) -> None:
    """Half a minute passes: the record may be asked for again."""
    Record.objects.filter(uuid=record.uuid).update(asked_at=None)


def an_hour_later() -> None:
    """The looks up to now were an hour ago."""
    for one in RecordView.objects.all():
        RecordView.objects.filter(pk=one.pk).update(
            first_at=one.first_at - timedelta(hours=1), last_at=one.last_at - timedelta(hours=1)
        )
