"""The news of this version, from the changelog."""

import re
from functools import cache

from django.conf import settings
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from portal.ui import wording
from servicing.version import __version__

NEWS_COOKIE = "news"
"""The cookie with the version whose news this browser opened last."""
MAX_LINES = 10
"""The most entries of a release that staff read."""
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
        items = format_html_join("", "<li>{}</li>", ((_marked_up(entry),) for entry in entries[:MAX_LINES]))
        news.append((name, format_html("<ul>{}</ul>", items)))
    return news


def _marked_up(entry: str) -> SafeString:
    """An entry as HTML with bold words and code."""
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(" ".join(entry.split())))
    return mark_safe(re.sub(r"`(.+?)`", r"<code>\1</code>", text))  # noqa: S308 - escaped above
