"""The Help pages by address, and the news of this version from the changelog."""

import re
from functools import cache

from django.conf import settings
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from portal.ui import wording
from servicing.version import __version__

# An area's page has the area's name. templates/home/help_pages.html has each page under its address.
HELP_PAGES = {
    "first-day": "First day",
    "home": "Home",
    "borrowers": "Borrowers",
    "onboarding": "Onboarding and editing",
    "applications": "Applications and offers",
    "loans": "Loans",
    "credit_lines": "Lines of credit and statements",
    "collections": "Collections",
    "repayments": "Repayments",
    "portfolio": "Portfolio",
    "messaging": "Messages",
    "approvals": "Approvals",
    "audit": "Audit",
    "operations": "Integration status",
    "keyboard": "Keyboard shortcuts",
    "news": "What’s new",
}
# What each picture shows: “static/help/<address>.webp”, taken by tests/pictures.py.
PICTURES = {
    "home": "Home: items that need attention by kind, with their sums",
    "borrowers": "A borrower’s page: contact details, a data check and what is past due",
    "onboarding": "New borrower: its five steps, open at the business",
    "applications": "Offers of an application side by side",
    "loans": "A loan: past due, due next, remaining payments and principal",
    "credit_lines": "A line of credit: payoff, available credit and what is due next",
    "collections": "Collections: accounts past due by aging, with their promises",
    "repayments": "Repayments: totals by status above the list",
    "portfolio": "Portfolio: figures of a day above the aging of its past due accounts",
    "messaging": "Messages: events by day with status, amount and borrower",
    "approvals": "Review of a new legal name, which needs an approval",
    "audit": "Audit trail: who did what and when, with references",
    "operations": "Integration status: each group of calls with its response times",
}
NEWS_COOKIE = "news"
"""The cookie with the version whose news this browser opened last."""
NEWS_COOKIE_SECONDS = 365 * 24 * 60 * 60
VERSION = __version__


@cache
def read_news() -> list[tuple[str, SafeString]]:
    """The latest two sections of the changelog, each with its title and its entries for staff."""
    parts = re.split(r"(?m)^## ", (settings.BASE_DIR / "CHANGELOG.md").read_text())[1:]
    news = []
    for part in parts[:2]:
        title, _, text = part.partition("\n")
        for_staff = text.partition("### For operators")[0]
        entries = re.findall(r"(?ms)^- (.*?)(?=\n- |\n\n|\n#|\Z)", for_staff)
        version, _, day = title.replace("[", "").partition("] - ")
        name = f"Version {version}, {wording.day(day)}" if day else "Newest changes"
        items = format_html_join("", "<li>{}</li>", ((_marked_up(entry),) for entry in entries))
        news.append((name, format_html("<ul>{}</ul>", items)))
    return news


def _marked_up(entry: str) -> SafeString:
    """An entry as HTML with bold words and code."""
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(" ".join(entry.split())))
    return mark_safe(re.sub(r"`(.+?)`", r"<code>\1</code>", text))  # noqa: S308 - escaped above
