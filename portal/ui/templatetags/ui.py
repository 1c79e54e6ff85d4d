"""Template tags and filters for values, badges, icons and small parts (available in every template).

This module alone decides what is shown for a value that the lending service did not provide.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import uuid4

from django import template
from django.conf import settings
from django.contrib.messages.storage.base import Message
from django.core.paginator import Page
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from portal.ui import json_view as json_lines
from portal.ui import wording
from portal.ui.icons import ICONS
from portal.ui.logo import icon_url, logo
from portal.ui.paging import counted
from servicing.figures import DueSince, PastDue, percent_of_limit
from servicing.rules import COUNTRIES
from servicing.values import decimal_or_none

register = template.Library()

register.simple_tag(lambda: settings.PRODUCT_NAME, name="product_name")


@register.simple_tag
def brand_mark() -> SafeString:
    """The organization's logo, or the product's mark."""
    if found := logo():
        return format_html('<img class="sd-own-logo" src="{}" alt="{}">', found.url, settings.ORGANIZATION)
    return format_html('<span class="sd-logo">{}</span>', icon("stack-2"))


register.simple_tag(icon_url)


@register.simple_tag
def organization() -> str:
    """The organization's name, unless the product has the same one."""
    return "" if settings.ORGANIZATION == settings.PRODUCT_NAME else str(settings.ORGANIZATION)


UNSOURCED = 'title="not provided by the service"'
NOT_PROVIDED = mark_safe('<span class="sd-null" title="not provided by the service">—</span>')

NOT_KNOWN = "Not known"
HIGH_USE, HIGHEST_USE = 75, 90  # Percent of a credit limit.

SHORT = 3
_BREAKS = re.compile(r"(?<=@)|(?=\.[^\W\d_])")

LONGEST_BADGE = 24  # A longer word wraps.
STATE_ICONS = {"ok": "check", "waiting": "clock", "warn": "alert-triangle", "bad": "alert-circle"}


def _or_dash(text: str | None) -> str:
    return NOT_PROVIDED if text is None else text


# --- Values ---


@register.filter
def or_dash(value: Any) -> Any:
    """The value itself, or the mark of a missing value. Zero and False are values."""
    return NOT_PROVIDED if value is None or value in ("", (), []) else value


@register.filter
def breakable(value: Any) -> SafeString:
    """A text whose long email addresses break after an @ or before a dot, not within a word."""
    parts = _BREAKS.split(str(value))
    return format_html_join(mark_safe("<wbr>"), "{}", ((part,) for part in parts))  # our own tag


@register.filter
def code_point(character: str) -> str:
    """The number of a character in Unicode, such as ``U+65E5``."""
    return f"U+{ord(character):04X}"


@register.simple_tag
def unknown(until: str) -> SafeString:
    """The mark of a value that isn't loaded yet: ``{% unknown "the loan is read" %}``."""
    return format_html('<span class="sd-null">unknown until {}</span>', until)


@register.filter
def money(value: Any) -> str:
    """An amount; anything else that the service sent in its place is shown as is."""
    number = decimal_or_none(value)
    return _or_dash(wording.money(number)) if value in (None, "") or number is not None else str(value)


@register.filter
def known_money(value: Any) -> str:
    """An amount owed. If it is unknown it says so, because a dash may be read as zero."""
    return NOT_KNOWN if value is None else money(value)


@register.filter
def past_due_words(total: PastDue) -> tuple[str, str, str]:
    """The past due amount, then a comma and the parts that are unknown."""
    return (wording.past_due(total) or "").partition(", ")


@register.simple_tag
def save_id() -> SafeString:
    """A hidden input for a form that saves something here, so that it saves it once however often it is posted."""
    return format_html('<input type="hidden" name="save_id" value="{}">', uuid4())


@register.filter
def due_since(found: DueSince, copied_on: date | None) -> str:
    """What fell due since the copy of this day."""
    return wording.due_since(found, copied_on)


@register.filter
def due_since_total(total: PastDue) -> str:
    """What fell due since the copies of several accounts."""
    return wording.due_since_total(total)


@register.filter
def rate(value: Decimal | int | str | None) -> str:
    return _or_dash(None if value is None or isinstance(value, str) else wording.rate(value))


@register.filter
def day(value: date | str | None, form: str = "") -> str:
    """A day: ``|day``, ``|day:"weekday"`` if someone must act on it, ``|day:"unbroken"`` in a line of text."""
    words = _or_dash(wording.day(value or None, weekday=form == "weekday"))
    return words.replace(" ", "\N{NO-BREAK SPACE}") if form == "unbroken" else words


@register.filter
def day_month(value: date) -> str:
    """A day without its year, where a title has it."""
    return wording.short_day(value)


@register.filter
def percent(value: Decimal | None, form: str = "") -> str:
    """A percentage with one decimal, or ``|percent:"whole"``."""
    return NOT_PROVIDED if value is None else f"{value:.{0 if form == 'whole' else 1}f}%"


@register.filter
def moment(value: datetime | None) -> str:
    """A moment with its time zone, and UTC on hover."""
    return NOT_PROVIDED if value is None else _time(value, wording.moment(value))


@register.filter
def clock(value: datetime | None, form: str = "") -> str:
    """The time of day, with the date unless it is today; ``|clock:"seconds"`` if the order matters."""
    return NOT_PROVIDED if value is None else _time(value, wording.clock(value, seconds=form == "seconds"))


@register.filter
def ago(value: datetime | date | None) -> str:
    """How long ago, updated while the page is open; for a calendar day, in days."""
    if not isinstance(value, datetime):
        return _or_dash(wording.ago(value))
    return format_html('<time data-ago datetime="{}">{}</time>', _iso(value), wording.ago(value))


@register.filter
def remote_time(value: Any) -> str:
    """A time from the service, converted if its time zone is certain, else as written."""
    if value is None:
        return NOT_PROVIDED
    if value.at is None:
        words = wording.written_time(value.text)
        return format_html('<span title="No certain time zone; sent as {}">{}</span>', value.text, words)
    return _time(value.at, wording.clock(value.at), sent=value.text)


@register.filter
def phone(value: str | None) -> str:
    return _or_dash(wording.phone(value))


@register.filter
def human(value: str | None) -> str:
    """An enumeration value in words, raw on hover."""
    return _in_words(value, wording.human(value or None))


@register.filter
def term(periods: int | None, frequency: str | None) -> str:
    """A term with its unit: ``{{ loan.term|term:loan.term_frequency }}``."""
    return _or_dash(wording.term(periods, frequency))


@register.filter
def event_words(value: str | None, count: int = 1) -> str:
    """The event of a message in words, its code on hover: ``Payment scheduled``, ``32 payments scheduled``."""
    words = wording.event(value)
    if words and count > 1:
        words = f"{count} payments {words[8:]}" if words.startswith("Payment ") else f"{count} × {words}"
    return _in_words(value, words)


@register.filter
def country(value: str | None) -> str:
    """The country's name for a two-letter code, with the code on hover."""
    return _in_words(value, COUNTRIES.get(value.upper(), value) if value else None)


def _in_words(value: str | None, words: str | None) -> str:
    if words is None or words == value:
        return _or_dash(words)
    return format_html('<span title="{}">{}</span>', value, words)


@register.filter
def yes_no(value: bool | None) -> str:
    return _or_dash(None if value is None else "Yes" if value else "No")


@register.filter
def masked(value: Any) -> SafeString:
    html = '<span class="sd-nowrap">{} masked</span>'
    return format_html(html, wording.MASK) if value else NOT_PROVIDED


@register.filter
def monogram(name: str) -> str:
    return wording.monogram(name)


def _time(value: datetime, text: str, sent: str = "") -> SafeString:
    hover = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC{f'; sent as {sent}' if sent else ''}"
    return format_html('<time datetime="{}" title="{}">{}</time>', _iso(value), hover, text)


def _iso(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


# --- Where nothing was provided ---


def explain_missing(html: SafeString, why: Callable[[], str]) -> SafeString:
    """Add the reason to missing values. Escaped text has no quotation marks, so it can't be mistaken for their mark."""
    if UNSOURCED not in html or not (reason := why()):
        return html
    return mark_safe(html.replace(UNSOURCED, format_html('title="{}"', reason)))  # noqa: S308 - both are safe


class Nulls(template.Node):
    """A part of a page whose missing values say which call didn't provide them, and when."""

    def __init__(self, nodelist: template.NodeList, why: template.base.FilterExpression) -> None:
        self.nodelist = nodelist
        self.why = why

    def render(self, context: template.Context) -> str:
        html = self.nodelist.render(context)
        return explain_missing(html, lambda: str(self.why.resolve(context) or ""))


@register.tag
def nulls(parser: template.base.Parser, token: template.base.Token) -> Nulls:
    """``{% nulls record.why_null %} … {% endnulls %}``: add this hover text to the missing values inside."""
    why = parser.compile_filter(token.split_contents()[1])
    nodelist = parser.parse(["endnulls"])
    parser.delete_first_token()
    return Nulls(nodelist, why)


# --- Marks in text ---


@register.filter
def highlight(text: str, terms: str | Sequence[str]) -> SafeString:
    """Mark every occurrence of one or several search terms; short ones only at the beginning of words."""
    wanted = sorted([terms] if isinstance(terms, str) else terms, key=len, reverse=True)
    found = "|".join(
        rf"(?<!\w){re.escape(term)}" if len(term) < SHORT else re.escape(term) for term in wanted if term
    )
    parts = re.split(f"({found})", text, flags=re.IGNORECASE) if found else [text]
    return _marked(((part, number % 2 == 1) for number, part in enumerate(parts)), "<mark>{}</mark>")


@register.filter
def removed(old: str, new: str) -> SafeString:
    """The old text of a change, with the removed words marked."""
    mark = '<del class="sd-removed"><span class="visually-hidden">removed: </span>{}</del>'
    return _marked(wording.differences(new, old), mark)


@register.filter
def added(new: str, old: str) -> SafeString:
    """The new text of a change, with the added words marked."""
    mark = '<ins class="sd-added"><span class="visually-hidden">added: </span>{}</ins>'
    return _marked(wording.differences(old, new), mark)


def _marked(pieces: Any, mark: str) -> SafeString:
    html = (_mark(text, mark) if is_marked else breakable(text) for text, is_marked in pieces)
    return format_html_join("", "{}", ((piece,) for piece in html))


def _mark(text: str, mark: str) -> SafeString:
    """Mark the words without the space and the line ends around them."""
    before, words, after = text.partition(text.strip() or text)
    return format_html("{}{}{}", before, format_html(mark, breakable(words)), after)


# --- Pieces ---


@register.simple_tag
@cache
def icon(name: str, size: int = 16) -> SafeString:
    """An icon of the sprite, 13, 16 or 18 pixels wide. It is decoration, so it needs words beside it."""
    if name not in ICONS:
        raise template.TemplateSyntaxError(
            f"No icon {name!r}: add it to portal/ui/icons.py and run docker/vendor.py."
        )
    size_class = "" if size == 16 else f" sd-icon-{size}"
    href = f"{static('vendor/icons/icons.svg')}#{name}"
    return format_html('<svg class="sd-icon{}" aria-hidden="true"><use href="{}"/></svg>', size_class, href)


@register.simple_tag
def badge(state: str, words: str, icon_name: str = "") -> SafeString:
    """A state (ok, waiting, warn, bad) with icon and word, or a kind (neutral, accent) with its word."""
    name = icon_name or STATE_ICONS.get(state, "")
    return format_html(
        '<span class="sd-badge sd-{}">{}{}</span>', state, icon(name, 13) if name else "", words
    )


@register.filter
def status_badge(value: str | None) -> SafeString:
    """A status of the service as a badge; an unknown one is neutral."""
    if not value:
        return NOT_PROVIDED
    look = wording.status(value)
    size = SafeString(' class="sd-long"' if len(look.word) > LONGEST_BADGE else "")
    return format_html('<span title="{}"{}>{}</span>', value, size, badge(look.state, look.word, look.icon))


@register.simple_tag
def loan_status(status: str | None, is_late: bool, days: int | None = None) -> SafeString:
    """The worst that is known of a loan, as one badge; below it a status that says more than "Active"."""
    if not is_late:
        return status_badge(status)
    shown = badge("bad", f"{wording.count(days, 'day')} past due" if days else "Past due")
    look = wording.status(status or "ACTIVE")
    return (
        shown
        if look.state == "ok"
        else format_html('{}<small title="{}">{}</small>', shown, status, look.word)
    )


@register.filter
def with_full_stop(text: object) -> str:
    """The end of a sentence with exactly one period."""
    return wording.with_full_stop(text)


register.filter(counted)


@register.filter
def with_commas(number: int) -> str:
    """A count with thousands separators."""
    return f"{number:,}"


@register.filter
def status_word(value: str) -> str:
    return wording.status_word(value)


@register.filter
def short_id(value: Any) -> SafeString:
    """The first eight characters of an ID, and a button that copies all of it."""
    if not value:
        return NOT_PROVIDED
    text = str(value)
    return format_html(
        '<span class="sd-id"><code title="{}">{}</code>{}</span>', text, text[:8], copy_button(text)
    )


@register.simple_tag
def copy_button(text: str, what: str = "the ID") -> SafeString:
    html = '<button class="sd-copy" type="button" data-copy="{}" aria-label="Copy {}">{}</button>'
    return format_html(html, text, what, icon("copy"))


@register.simple_tag
@cache
def render_once(template_name: str) -> SafeString:
    """A part of the frame that is the same for everyone, rendered once per process."""
    return render_to_string(template_name)


@register.simple_tag
def toast_link(message: Message | str) -> str:
    """The link of a toast; see ``portal.ui.htmx.toast``."""
    url, _, words = (getattr(message, "extra_tags", "") or "").partition(" ")
    return format_html('<a href="{}">{}</a>', url, words) if words else ""


@register.inclusion_tag("ui/panels.html#meter")
def meter(
    used: Decimal | None, limit: Decimal | None, label: str = "Principal of the limit"
) -> dict[str, Any]:
    """A share as a bar with marks at the high thresholds; no bar if a value is missing."""
    percent = wording.whole_percent(percent_of_limit(used, limit))
    if percent is None:
        return {"percent": None}
    state = "bad" if percent >= HIGHEST_USE else "warn" if percent >= HIGH_USE else "ok"
    width = max(0, min(100, percent))
    return {
        "percent": percent,
        "width": width,
        "state": state,
        "label": label,
        "marks": (HIGH_USE, HIGHEST_USE),
    }


@register.inclusion_tag("ui/panels.html#page-links")
def page_links(page: Page[Any], target: str, total: str = "") -> dict[str, Any]:
    """The footer of a list: the range of rows, and links that replace ``target`` with other pages.

    If not all rows were counted, ``total`` says so.
    """
    return {"page": page, "target": target, "total": total or with_commas(page.paginator.count)}


@register.filter
def json_view(value: Any, label: str = "JSON") -> SafeString:
    """Decoded JSON as numbered, colored lines, in a region with this name."""
    return json_lines.render(value, label)
