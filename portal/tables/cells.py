"""Cells that several lists share, as HTML with every value escaped."""

from datetime import date
from decimal import Decimal
from typing import Any

from django.template.defaultfilters import truncatechars
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

from portal.core.business_date import business_date
from portal.records.figures import copy_day, days_of, due_since_of
from portal.records.models import Account, Borrower
from portal.ui import wording
from portal.ui.templatetags import ui
from servicing.figures import DueSince, NotKnown

LONGEST_WORD = 24
"""Longer words of the service are cut; the record's page shows them whole."""

BEFORE_PARTIAL_PAYMENTS = "partials not deducted"


def account_link(row: Any, noun: str) -> SafeString:
    """The account, with when it was opened, and its borrower where there is no room for that column."""
    record = row.record
    opened_on = record.opened_on if isinstance(record, Account) else None
    return format_html(
        '<a href="{}" title="{}"><b>{} {}</b></a>{}<small class="sd-on-phone">{}</small>',
        record.get_absolute_url(),
        record.label or record.uuid,
        noun,
        record.uuid[:8],
        format_html('<small class="sd-widest">opened {}</small>', wording.day(opened_on))
        if opened_on
        else "",
        borrower_name(row),
    )


def borrower_name(row: Any) -> str:
    return str(row.borrower or row.record.borrower_uuid[:8] or "Not confirmed")


def borrower_link(row: Any) -> SafeString:
    name = borrower_name(row)
    if not row.borrower:
        return format_html('<span class="sd-text-2">{}</span>', name)
    return format_html('<a href="{}" title="{}">{}</a>', row.borrower.get_absolute_url(), name, name)


def word(value: str) -> str:
    """An enumeration value in words, cut if absurdly long."""
    return str(ui.or_dash(ui.human(truncatechars(value, LONGEST_WORD))))


def status(value: str) -> SafeString:
    return ui.status_badge(truncatechars(value, LONGEST_WORD))


def past_due(row: Any) -> str:
    """An account's past due amount, blank if zero, and what fell due since its copy."""
    record, since = row.record, due_since_of(row.record)
    shown = _past_due_amount(record)
    if record.is_past_due:
        shown = with_note(shown, as_of(copy_day(record)))
    return shown + _due_since(since, None if record.is_past_due else copy_day(record)) if since else shown


def _past_due_amount(record: Account) -> SafeString:
    amount = record.past_due
    if amount is None:
        if record.has_no_schedule_yet:
            return format_html('<span class="sd-null">{}</span>', NotKnown.NO_SCHEDULE_YET)
        css = "sd-bad sd-strong" if record.is_past_due else "sd-null"
        return format_html('<span class="{}">{}</span>', css, ui.NOT_KNOWN)
    if not amount:
        return SafeString("")
    css = "sd-bad sd-strong" if record.is_past_due else ""
    shown = format_html('<span class="{}">{}</span>', css, ui.money(amount))
    shown = with_note(shown, BEFORE_PARTIAL_PAYMENTS if record.is_partly_paid else "")
    days = days_of(record) or 0  # A phone has no room for their column.
    words = format_html('<small class="sd-narrow">{} day{}</small>', f"{days:,}", "" if days == 1 else "s")
    return join_badges(shown, words if days > 0 else "")


def _due_since(since: DueSince, copied_on: date | None) -> SafeString:
    amount = ui.NOT_KNOWN if since.amount is None else ui.money(since.amount)
    if not copied_on:
        return with_note("", format_html("{} due {}", amount, short_day(since.day)))
    return with_note(amount, f"due {short_day(since.day)}, not updated since {short_day(copied_on)}")


def as_of(day: date | None) -> str:
    """The day of a copy, unless that is today."""
    return f"as of {short_day(day)}" if day and day < business_date() else ""


def past_due_total(row: Any) -> str:
    """A borrower's past due total with its unknown parts; blank if zero."""
    total = row.totals.past_due
    if not total.amount and not total.unknown:
        return wording.due_since_total(total)
    amount, _, rest = (wording.past_due(total) or "").partition(", ")
    look = "sd-bad sd-strong" if total.is_late else "sd-null"
    oldest = as_of(row.totals.oldest_late_copy) if total.is_late else ""
    notes = [rest, oldest, wording.due_since_total(total)]
    return with_note(format_html('<span class="{}">{}</span>', look, amount), ", ".join(filter(None, notes)))


def short_day(day: date) -> str:
    """A day, without the year if that is the current one."""
    return str(wording.day(day)).removesuffix(f", {business_date().year}")


def days_past_due(row: Any) -> str:
    """The days past due, if any. A line's are those of the day of its copy."""
    record, days = row.record, days_of(row.record)
    if days is None:
        return ui.NOT_KNOWN if record.is_past_due else ""
    return f"{days:,}" if days > 0 else ""


def due_next(row: Any) -> str:
    """The next due date of an account, and the amount."""
    record = row.record
    if not record.next_due_on:
        return "" if record.answer_at else str(ui.or_dash(None))
    amount = ui.NOT_KNOWN if record.due_amount is None else ui.money(record.due_amount)
    return stack(ui.day(record.next_due_on), amount)


def rate(value: Decimal | int | None) -> str:
    """A rate with two decimals; all of them on hover."""
    if value is None:
        return ui.rate(value)
    return format_html('<span title="{}">{}</span>', wording.rate(value), wording.rate(value, places=2))


def count(number: int) -> str:
    """A number; blank if zero."""
    return f"{number:,}" if number else ""


def age(moment: Any) -> SafeString:
    """How long ago, or "never"."""
    return format_html('<span class="sd-nowrap">{}</span>', ui.ago(moment) if moment else "never")


def last_checked(row: Any) -> SafeString:
    """When the service last answered for a record, with a note if it doesn't answer now."""
    said = row.record.answer
    failing = format_html(" {}", ui.badge("warn", "Not responding")) if said and said.failing_since else ""
    return format_html("{}{}", age(row.record.checked_at), failing)


def choice(record: Account, noun: str, is_chosen: bool) -> SafeString:
    """The checkbox that selects a row."""
    return format_html(
        '<td class="sd-choice"><input type="checkbox" name="uuid" value="{}" form="refresh-chosen" '
        'aria-label="Select {} {}"{}></td>',
        record.uuid,
        noun,
        record.uuid[:8],
        SafeString(" checked") if is_chosen else "",
    )


def menu_button(record: Account) -> SafeString:
    """The button that opens the shared menu for its row."""
    return format_html(
        '<td class="sd-row-tools"><a class="sd-btn sd-btn-quiet sd-btn-sm sd-btn-icon" href="{}" role="button" '
        'data-menu-of="{}" aria-label="More for {}">{}</a></td>',
        record.get_absolute_url(),
        record.uuid,
        record,
        ui.icon("dots"),
    )


def changed_badge(has_changed: bool) -> SafeString:
    """A badge if the record changed since this person saw it."""
    words = '<span class="visually-hidden"> since you looked</span>'
    return format_html(" {}" + words, ui.badge("accent", "Changed")) if has_changed else SafeString()


def record_name(record: Account | Borrower, meta: str) -> SafeString:
    """The name of a record, linked, with a line about it below."""
    return format_html(
        '<a href="{0}" title="{1}"><b>{1}</b></a><small title="{2}">{2}</small>',
        record.get_absolute_url(),
        record,
        meta or record.uuid[:8],
    )


def no_wrap(words: Any) -> SafeString:
    return format_html('<span class="sd-nowrap">{}</span>', words)


def with_note(value: Any, note: str) -> SafeString:
    """A value with a smaller line below it, if there is one."""
    return format_html("{}<small>{}</small>", value, note) if note else conditional_escape(value)


def stack(value: Any, note: Any) -> SafeString:
    """A value that never wraps, with a smaller line below it."""
    return format_html('<span class="sd-nowrap">{}</span><small>{}</small>', value, note)


def join_badges(*parts: Any) -> SafeString:
    return format_html_join(" ", "{}", ((part,) for part in parts if part))
