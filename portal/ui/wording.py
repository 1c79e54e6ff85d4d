"""Values as text: money, rates, days, moments, ages, phone numbers, the service's enumerations.

Plain functions without HTML. ``None`` gives ``None``: the template tags alone decide what is shown for a value that
the service did not provide.
"""

import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from django.conf import settings
from django.utils import timezone

from portal.core.business_date import business_date
from servicing.figures import DueSince, PastDue
from servicing.words import normal_word

MINUS = "−"
CENT = Decimal("0.01")
_HALF_UP = Context(prec=100, rounding=ROUND_HALF_UP, traps=[])
MASK = "••••"
RETURNED = ("failed after success", "returned after posting")
"""What the service's events call a return, and what the status of the payment says."""
# What is wrong with the two ends of a range filter.
DATES_REVERSED = "The end is before the start."
AMOUNTS_REVERSED = "Must be at least the minimum."

WORDS = {
    "BUSINESS": "Business",
    "PERSON": "Individual",
    "INDIVIDUAL": "Individual",
    "SOLE_PROPRIETORSHIP": "Sole proprietorship",
    "GENERAL_PARTNERSHIP": "General partnership",
    "LIMITED_PARTNERSHIP": "Limited partnership",
    "CORPORATION": "Corporation",
    "LIMITED_LIABILITY_COMPANY": "Limited liability company",
    "LIMITED_LIABILITY_PARTNERSHIP": "Limited liability partnership",
    "OWNER": "Owner",
    "DIRECTOR": "Director",
    "BENEFICIARY": "Beneficiary",
    "LOAN": "Loan",
    "LOC": "Line of credit",
    "BUILD_CREDIT": "Credit builder",
    "BNPL": "Buy now, pay later",
    "MONTHLY": "monthly",
    "SINGLE_PAYMENT": "Single payment",
    "RETURNED": "Returned",
    "PAYOFF": "Payoff",
    "REFUNDED": "Refunded",
    "DISPUTED": "Disputed",
    "MERCHANT_RETURN": "Merchant return",
}


class Status(NamedTuple):
    """The look of a status: its state (ok, waiting, warn, bad, neutral), word and icon."""

    state: str
    word: str
    icon: str


STATUSES = {
    "ACTIVE": Status("ok", "Active", "check"),
    "APPROVED": Status("ok", "Approved", "check"),
    "SUCCEEDED": Status("ok", "Succeeded", "check"),
    "SUCCESS": Status("ok", "Success", "check"),
    "PAID": Status("ok", "Paid", "check"),
    "SCHEDULED": Status("waiting", "Scheduled", "clock"),
    "PENDING": Status("waiting", "Pending", "clock"),
    "FAILED": Status("bad", "Failed", "alert-circle"),
    "FAILED_AFTER_SUCCESS": Status("bad", "Returned after posting", "arrow-back-up"),
    "RETURNED": Status("bad", "Returned", "arrow-back-up"),
    "REJECTED": Status("bad", "Rejected", "alert-circle"),
    # The portal's own statuses of writes and calls.
    "SENDING": Status("waiting", "Sending", "clock"),
    "ANSWERED": Status("ok", "Responded", "check"),
    "CONFIRMED": Status("ok", "Confirmed", "check"),
    "NOT_SENT": Status("warn", "Not sent", "alert-triangle"),
    "UNKNOWN": Status("bad", "Outcome unknown", "help-circle"),
    "RELEASED": Status("warn", "Not carried out", "x"),
    "UNBROKEN": Status("ok", "OK", "shield-check"),
    "BROKEN": Status("bad", "Broken", "alert-circle"),
    "UNAVAILABLE": Status("bad", "No response", "cloud-off"),
    "FORBIDDEN": Status("bad", "Access denied", "lock"),
    "PROTOCOL": Status("bad", "Unreadable response", "alert-circle"),
    "NO_CHANGE": Status("neutral", "No change", "minus"),
}


def money(value: Decimal | int | None) -> str | None:
    """An amount with two decimals and the currency sign; the minus is a real minus, not a hyphen.

    Half a cent is rounded up, because it counts as owed.
    """
    if value is None:
        return None
    digits = f"{Decimal(value).quantize(CENT, context=_HALF_UP):,}"
    is_negative = digits.startswith("-") and digits.strip("-0.") != ""
    return f"{MINUS if is_negative else ''}${digits.removeprefix('-')}"


def rate(value: Decimal | int | None, *, places: int | None = None) -> str | None:
    """A rate with the configured unit and these decimals; without them as sent."""
    if value is None:
        return None
    if places is None:
        exponent = Decimal(value).as_tuple().exponent
        places = max(0, -exponent) if isinstance(exponent, int) else 0
    return f"{value:.{places}f}{settings.SERVICING_RATE_UNIT}"


def day(value: Any, *, weekday: bool = False) -> str | None:
    """A calendar day, never moved by a time zone; for a moment, the day in the viewer's zone. Others stay unchanged."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value[:10])
        except ValueError:
            return str(value)
    if isinstance(value, datetime):
        value = timezone.localtime(value)
    if not isinstance(value, date):
        return None if value is None else str(value)
    return f"{f'{value:%A}, ' if weekday else ''}{value:%b} {value.day}, {value.year}"


def short_day(value: date) -> str:
    """A day without its year, where the rest of a page has it."""
    return f"{value:%b} {value.day}"


def days(first: date, last: date) -> str:
    """Days such as "Oct 5", "Oct 5–8" or "Oct 31 – Nov 6"."""
    if first == last:
        return short_day(first)
    is_one_month = (first.year, first.month) == (last.year, last.month)
    return f"{short_day(first)}–{last.day}" if is_one_month else f"{short_day(first)} – {short_day(last)}"


def moment(value: datetime) -> str:
    """A moment in the viewer's time zone, to the second."""
    local = timezone.localtime(value)
    return f"{day(local)}, {time_of_day(local, seconds=True)} {local:%Z}"


def written_time(text: str) -> str:
    """A time as the service wrote it, in its own unknown or ambiguous zone; any other text unchanged."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)\s*([A-Za-z]{0,5})", text)
    try:
        written = datetime.fromisoformat(found[1]) if found else None
    except ValueError:
        written = None
    if not found or not written:
        return text
    zone = f" {found[2]}" if found[2] else ", time zone not given"
    return f"{day(written.date())}, {time_of_day(written)}{zone}"


def time_of_day(value: datetime | time, *, seconds: bool = False) -> str:
    """A time on a 12-hour clock, in its own time zone."""
    return f"{value.hour % 12 or 12}:{value:%M}{f':{value:%S}' if seconds else ''} {value:%p}"


def not_provided(call: str, at: datetime) -> str:
    """Why a value is missing: the call that didn't provide it, and when."""
    return f"Not provided by the service ({call}, {moment(at)})"


def clock(value: datetime, *, seconds: bool = False) -> str:
    """The time of day, with the date unless it is today."""
    local = timezone.localtime(value)
    time_words = time_of_day(local, seconds=seconds)
    return time_words if local.date() == timezone.localdate() else f"{day(local)}, {time_words}"


def ago(value: datetime | date | None) -> str | None:
    """The time between now and a moment or a calendar day."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        return _days_away((value - business_date()).days)
    seconds = (timezone.now() - value) / timedelta(seconds=1)
    if abs(seconds) < 1:
        return "just now"
    amount = _duration(abs(seconds))
    return f"{amount} ago" if seconds >= 0 else f"in {amount}"


def phone(value: str | None) -> str | None:
    """Ten digits, with or without the country code, in the usual US format; anything else unchanged."""
    if not value:
        return None
    found = re.fullmatch(r"(?:\+?1)?([0-9]{3})([0-9]{3})([0-9]{4})", value)
    return "({}) {}-{}".format(*found.groups()) if found else value


def human(value: str | None) -> str | None:
    """An enumeration value of the service in words; an unknown one raw."""
    return WORDS.get(normal_word(value), value) if value else None


def term(periods: Any, frequency: str | None) -> str | None:
    """A term with its unit: monthly periods are months; any other frequency follows the number."""
    number = None if periods is None else str(periods)
    if number and number.isdecimal() and normal_word(frequency) == "MONTHLY":
        return f"{number} month{'' if number == '1' else 's'}"
    return ", ".join(filter(None, (number, human(frequency)))) or None


def event(value: str | None) -> str | None:
    """The event of a message in words; the service's users are the borrowers."""
    if not value:
        return None
    words = re.sub(r"[._]+", " ", value).strip().capitalize()
    return re.sub("^User ", "Borrower ", words.replace(*RETURNED))


def status(value: str) -> Status:
    """Look up a status; an unknown one is neutral."""
    return STATUSES.get(normal_word(value), Status("neutral", _spell_out(value), "circle-dot"))


def status_word(value: str) -> str:
    return status(value).word


def whole_percent(share: Decimal | None) -> int | None:
    """A percentage without decimals, rounded down: 99.9 % is not yet 100 %."""
    return None if share is None else int(share)


def past_due(total: PastDue) -> str | None:
    """A past due total over several accounts with its unknown parts: "$310.00, plus 1 account without a figure"."""
    number = total.unknown_loans + total.unknown_lines
    unknown = f"{count(number, 'account')} without a figure" if number else ""
    if total.amount is not None:
        return f"{money(total.amount)}, plus {unknown}" if unknown else money(total.amount)
    return f"Not known, {unknown}" if unknown else None


def due_since(found: DueSince, copied_on: date | None) -> str:
    """What fell due since the copy: "$310.00 due Nov 26, 2026, not updated since Nov 25, 2026"."""
    return f"{money(found.amount) or 'An amount not known'} {due_days(found, copied_on)}"


def due_days(found: DueSince, copied_on: date | None) -> str:
    """The due date, or the first of several, and the day of the copy."""
    several = "" if found.number == 1 else f"{found.number} payments since "
    return f"due {several}{day(found.day)}{f', not updated since {day(copied_on)}' if copied_on else ''}"


def due_since_total(total: PastDue) -> str:
    """What fell due since the copies of several accounts: "$310.00 due since the copy"; empty if nothing did."""
    if not total.due_since:
        return ""
    known = sum((one.amount for one in total.due_since if one.amount is not None), Decimal(0))
    unknown = sum(one.amount is None for one in total.due_since)
    amount = money(known) if known else ""
    missing = f"{count(unknown, 'account')} without a figure" if unknown else ""
    return f"{', plus '.join(filter(None, (amount, missing)))} due since the copy"


def count(number: int, noun: str) -> str:
    """A number with its noun: "1 day", "12 days"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def with_full_stop(text: object) -> str:
    """The end of a sentence with exactly one period; names may end in one themselves."""
    words = str(text)
    return words if words.endswith((".", "!", "?", "…")) else f"{words}."


def monogram(name: str) -> str:
    words = [word for word in re.split(r"[\W_]+", name) if word]
    letters = [word[0] for word in words[:2]] if len(words) > 1 else words[:1]
    return "".join(letters)[:2].upper()


def differences(old: str, new: str) -> list[tuple[str, bool]]:
    before, after = _words(old), _words(new)
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [("".join(after[start:end]), tag != "equal") for tag, _, _, start, end in blocks if end > start]


def _spell_out(value: str) -> str:
    """An enumeration value as words; other text unchanged."""
    return value.replace("_", " ").capitalize() if value.isupper() else value


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", text)


def _days_away(days: int) -> str:
    if days in (-1, 0, 1):
        return ("yesterday", "today", "tomorrow")[days + 1]
    return f"in {days} days" if days > 0 else f"{-days} days ago"


def _duration(seconds: float) -> str:
    minutes, hours, days = seconds / 60, seconds / 3600, seconds / 86400
    if minutes < 1:
        return f"{seconds:.0f} s"
    if hours < 1:
        return f"{minutes:.0f} min"
    if days < 1:
        return f"{hours:.0f} h"
    return f"{days:.0f} day{'' if round(days) == 1 else 's'}"
