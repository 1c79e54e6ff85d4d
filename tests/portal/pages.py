"""Helpers that read a page with scripts, without scripts, or one of its panels."""

import re
from datetime import timedelta
from html import unescape

from django.test import Client as Browser

from portal.audit.models import PageView
from portal.records.models import Account, Answer
from tests.conftest import htmx


def page(browser: Browser, address: str) -> str:
    """Return the page with scripts on, built from saved copies; its panels load themselves."""
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
    """Return a panel after it loaded itself."""
    answer = browser.get(address, headers=htmx(name) | headers)
    assert answer.status_code == 200
    return checked(answer.content.decode().strip())


def load_panels(browser: Browser, address: str, shown: str | None = None) -> dict[str, str]:
    """Load the panels of a page that load themselves, and return each answer by the panel's ID."""
    shown = page(browser, address) if shown is None else shown
    due = re.findall(r'id="([\w-]+)" hx-get="([^"]*)" hx-trigger="due"', shown)
    return {name: panel(browser, unescape(url) or own_address(address, name), name) for name, url in due}


def own_address(address: str, panel: str) -> str:
    """Return the address from which a panel of the page loads itself."""
    return f"{address}{'&' if '?' in address else '?'}panel={panel}"


def visible_text(shown: str) -> str:
    """Return the visible text in one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", shown)).split())


def allow_refresh(record: Account) -> None:
    """Clear the time of the last request, so that the record may be requested again."""
    Answer.objects.filter(uuid=record.uuid).update(asked_at=None)


def age_record_views() -> None:
    """Move all recorded views back by an hour."""
    for one in PageView.objects.all():
        PageView.objects.filter(pk=one.pk).update(
            first_at=one.first_at - timedelta(hours=1), last_at=one.last_at - timedelta(hours=1)
        )


def card(shown: str, title: str) -> str:
    """Return the visible text of the card with this heading, or "" if the page has none."""
    for section in re.findall(r"<section[^>]*>.*?</section>", shown, re.DOTALL):
        if any(visible_text(head) == title for head in re.findall(r"<h2[^>]*>.*?</h2>", section, re.DOTALL)):
            return visible_text(section)
    return ""


def cells(shown: str, caption: str) -> list[dict[str, str]]:
    """Return the rows of the table with this caption, as text by column head."""
    table = next(one for one in re.findall(r"<table.*?</table>", shown, re.DOTALL) if f">{caption}<" in one)
    heads = [visible_text(one) for one in re.findall(r'<th scope="col".*?</th>', table, re.DOTALL)]
    table = re.sub(r'<td class="sd-(choice|row-tools)">.*?</td>', "", table, flags=re.DOTALL)
    rows = re.findall(r"<tr data-row.*?</tr>", table, re.DOTALL)
    return [
        dict(
            zip(
                heads,
                map(visible_text, re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.DOTALL)),
                strict=True,
            )
        )
        for row in rows
    ]
