"""Audit entries as table rows in HTML (``{% load entries %}``), which would be slow in a template."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from portal.audit.models import Entry
from portal.audit.reading import EntryLine
from portal.records.changes import FieldChange
from portal.ui.templatetags.ui import badge, clock, status_badge

register = template.Library()
ROW = """<tr data-row>
<td class="sd-nowrap">{}</td>
<td>{}{}<small class="sd-folded">{}</small><span class="sd-narrow">{}</span></td>
{}</tr>
"""
COLUMNS = (
    ("Borrower", "sd-widest"),
    ("Reason", "sd-widest"),
    ("Result", "sd-wide"),
    ("Reference", "sd-wide"),
)
"""Columns besides the sentence; those that are empty in every row are left out."""
FOLDED_COLUMNS = 2
"""On a narrow screen the first of them are below the sentence instead."""
TABLE = """<thead><tr><th scope="col">When</th><th scope="col">Who and what</th>{}</tr></thead>
<tbody>{}</tbody>"""
HEAD, CELL = '<th scope="col" class="{1}">{0}</th>', '<td class="{1}">{0}</td>'
LINK = '<a class="sd-said" href="{}">{}</a>'
REMOVED = '<del class="sd-removed"><span class="visually-hidden">was: </span>{}</del>'
ADDED = '<ins class="sd-added"><span class="visually-hidden">is: </span>{}</ins>'
SHOWN_CHANGES, SHOWN_CHARACTERS = 4, 80


@register.simple_tag
def entry_rows(lines: Sequence[EntryLine], may_read: bool, is_history: bool = False) -> SafeString:
    """The header and the rows, each linked to its page if this person may read it.

    A history is about one borrower, so its rows don't name it.
    """
    # One address is resolved instead of one for each row.
    page = reverse("audit:detail", args=[0])
    trail = reverse("admin:audit_entry_changelist")
    beside = [_beside(line, trail if may_read else "") for line in lines]
    first = 1 if is_history else 0
    shown = [index for index in range(first, len(COLUMNS)) if any(cells[index] for cells in beside)]
    rows = (
        (
            *_cells(line, page if may_read else "", cells[_first_folded(line, first) : FOLDED_COLUMNS]),
            format_html_join("", CELL, ((cells[index], COLUMNS[index][1]) for index in shown)),
        )
        for line, cells in zip(lines, beside, strict=True)
    )
    heads = format_html_join("", HEAD, (COLUMNS[index] for index in shown))
    return format_html(TABLE, heads, format_html_join("", ROW, rows))


def _result(entry: Entry) -> SafeString:
    if entry.result:
        return status_badge(entry.result)
    return badge("neutral", "Started") if entry.phase == Entry.Phase.ATTEMPT else SafeString("")


def _beside(line: EntryLine, trail: str) -> tuple[SafeString | str, ...]:
    """The cells of :data:`COLUMNS`."""
    entry, owner = line.entry, line.borrower
    borrower = format_html('<a href="{}">{}</a>', owner.get_absolute_url(), owner) if owner else ""
    reference = _reference(entry, trail)
    code = format_html('<code class="sd-mono">{}</code>', reference) if reference else ""
    return borrower, entry.reason, _result(entry), code


def _cells(line: EntryLine, page: str, folded: Sequence[SafeString | str]) -> Iterator[str]:
    """The cells of the time and the sentence; below it what has no column of its own on a narrow screen."""
    entry = line.entry
    said = format_html('<b class="sd-strong">{}</b> {}', entry.actor_name, line.sentence)
    yield clock(entry.at, "seconds")
    yield format_html(LINK, page.replace("/0/", f"/{entry.pk}/"), said) if page else said
    yield _changes(line.changes)
    yield format_html_join(" · ", "{}", ((words,) for words in folded if words))
    yield _result(entry)


def _first_folded(line: EntryLine, first: int) -> int:
    """The first of :data:`COLUMNS` to fold: not the borrower that the sentence names already."""
    return 1 if str(line.borrower) in line.sentence else first


def _changes(changes: Sequence[FieldChange]) -> SafeString:
    shown = (
        (
            change.label,
            format_html(REMOVED, _cut(change.old)) if change.old else "",
            format_html(ADDED, _cut(change.new)) if change.new else "",
        )
        for change in changes[:SHOWN_CHANGES]
    )
    rest = len(changes) - SHOWN_CHANGES
    more = format_html("<small>and {} more</small>", rest) if rest > 0 else mark_safe("")
    return format_html_join("", "<small>{}: {}{}</small>", shown) + more


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def _reference(entry: Entry, trail: str) -> SafeString | str:
    """The reference, linked to everything from the same request, or to the write."""
    if trail and entry.request_id:
        link = '<a href="{}?request={}" title="Everything from this request">{}</a>'
        return format_html(link, trail, quote(entry.request_id, safe=""), entry.request_id)
    if entry.intent_id:
        address = reverse("audit:write", args=[entry.intent_id])
        return format_html('<a href="{}">{}</a>', address, entry.request_id)
    return entry.request_id
