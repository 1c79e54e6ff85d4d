"""What the main pages transfer, as deployed: static files by Brotli from disk, everything else by gzip."""

import gzip
from pathlib import Path
from urllib.parse import urlsplit

import brotli
import pytest
from django.contrib.staticfiles import finders
from playwright.sync_api import Page, Response

from portal.records.models import Account, Kind
from servicing.sandbox import Sandbox
from tests import given

pytestmark = pytest.mark.browser
MAX_FIRST_VISIT, MAX_NEXT_VISIT = 130_000, 12_000
HEADERS = 500
"""About what the headers of a response weigh."""
READY_TO_SEND = (".woff2", ".webp", ".png")


class Transfers:
    """The bytes of the responses to a page since the last look, and the static files that a browser has by now."""

    def __init__(self, page: Page) -> None:
        self.cached: set[str] = set()
        self.responses: list[Response] = []
        page.on("response", self._add)

    def _add(self, response: Response) -> None:
        self.responses.append(response)

    def weigh(self) -> int:
        found = sum(map(self._weight, self.responses))
        self.responses.clear()
        return found

    def _weight(self, response: Response) -> int:
        path = urlsplit(response.url).path
        if not path.startswith("/static/"):
            return HEADERS + len(gzip.compress(response.body(), compresslevel=6))
        if path in self.cached:
            return 0
        self.cached.add(path)
        name = finders.find(path.removeprefix("/static/"))
        assert name
        body = Path(name).read_bytes()
        return HEADERS + len(body if path.endswith(READY_TO_SEND) else brotli.compress(body))


@pytest.fixture
def addresses(portal_service: Sandbox) -> list[str]:
    """The main pages, with lists that fill a page."""
    for number in range(30):
        owner = given.borrower(portal_service, first_name=f"Harbor Bakery {number:02} LLC")
        given.loan(portal_service, owner)
        given.line(portal_service, owner)
        portal_service.world.message("payment.succeeded", {"amount": number})
    return [
        *("/", "/borrowers/", "/collections/", "/messages/", "/portfolio/", "/search/?q=harbor"),
        owner.get_absolute_url(),
        *(Account.objects.filter(kind=kind)[0].get_absolute_url() for kind in (Kind.LOAN, Kind.LINE)),
    ]


def test_a_first_visit_and_the_next_are_light(page: Page, addresses: list[str]) -> None:
    transfers, heavy = Transfers(page), []
    for address in addresses:
        transfers.cached.clear()
        for visit, most in (("first", MAX_FIRST_VISIT), ("next", MAX_NEXT_VISIT)):
            page.goto(address)
            page.wait_for_load_state("networkidle")
            weight = transfers.weigh()
            if weight > most:
                heavy.append(f"{address}: the {visit} visit transfers {weight:,} bytes")
    assert heavy == []
