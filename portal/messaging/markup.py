"""The long parts of the page of messages as HTML: the rows of its list, by day and in bursts, and its days."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import groupby
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from portal.gateway.client import StaffRequest
from portal.messaging.coverage import Coverage, DayBar
from portal.messaging.explorer import Explorer
from portal.messaging.links import LinkedMessage
from portal.messaging.models import DELIVERED
from portal.messaging.panel import Panel
from portal.messaging.store import ONE_DAY
from portal.ui import wording
from portal.ui.query_strings import query_string
from portal.ui.templatetags.ui import badge, event_words, explain_missing, human, icon, money, status_badge

MIN_BURST = 4
"""So many of a kind in a row are folded."""
DAY = '<tr class="sd-group"><th scope="rowgroup" colspan="5">{}</th></tr>'
BURST = """<tr data-row><th scope="rowgroup" colspan="5"><details{}><summary>
{}<span>{}, {}</span>{}</summary></details></th></tr>"""
ROW = """<tr data-row data-message="{uuid}"{css}><th scope="row" class="sd-nowrap"><a id="row-{key}" href="{url}"
hx-get="{beside}" hx-target="#message" hx-push-url="{beside}" title="{exact}"{mark}>{time}</a></th>
<td class="sd-event"><span class="sd-strong">{event}</span> {status}
<small>{owner} <code class="sd-widest">{start}</code>{gone}{changed}</small></td>{payment}</tr>"""
PAYMENT = """<td class="sd-widest sd-nowrap">{}</td><td class="sd-num">{}</td><td class="sd-wide">{}</td>"""
NO_PAYMENT = SafeString('<td class="sd-widest"></td><td></td><td class="sd-wide"></td>')


class Timed(NamedTuple):
    """A message with its day and time in the viewer's time zone, or as sent if the zone is uncertain."""

    row: LinkedMessage
    day: date
    time: str
    exact: str


class MessageRows:
    """The rows of the list at an address, one of which may be open beside it."""

    def __init__(self, request: StaffRequest, explorer: Explorer, panel: Panel | None) -> None:
        self._explorer = explorer
        self._opened = panel.message.uuid if panel else ""
        self._state, self._may_link = explorer.query_string(), request.can("messaging.link")
        changes = {"tab": request.GET.get("tab"), "source": explorer.source}
        self._beside = query_string(request.GET, ("message",), **changes).removeprefix("?")

    def __str__(self) -> SafeString:
        return SafeString(
            "".join(
                self._body(list(run), first=number == 0)
                for _, day in groupby(_with_times(self._explorer.rows), lambda one: one.day)
                for number, (_, run) in enumerate(groupby(day, lambda one: one.row.kind))
            )
        )

    __html__ = __str__

    def _body(self, run: Sequence[Timed], *, first: bool) -> str:
        """Messages of one kind in a row; the first of a day begin with the day."""
        is_burst = len(run) >= MIN_BURST
        head = format_html(DAY, wording.day(run[0].day, weekday=True)) if first else ""
        rows = "".join(map(self._row, run))
        burst = self._burst(run) if is_burst else ""
        css = ' class="sd-burst"' if is_burst else ""
        return f"<tbody{css}>{head}{burst}{rows}</tbody>"

    def _burst(self, run: Sequence[Timed]) -> str:
        newest, first, last = run[0].row.message, run[-1].time, run[0].time
        return format_html(
            BURST,
            SafeString(" open" if any(one.row.message.uuid == self._opened for one in run) else ""),
            icon("chevron-right"),
            event_words(newest.event, len(run)),
            first if first == last else f"{first} – {last}",
            _undelivered(newest.status),
        )

    def _row(self, timed: Timed) -> str:
        row, one = timed.row, timed.row.message
        is_open = one.uuid == self._opened
        return format_html(
            ROW,
            uuid=one.uuid,
            css=SafeString(' class="sd-selected"' if is_open else ""),
            key=one.pk,
            url=f"{reverse('messaging:detail', args=[one.uuid])}{self._state}",
            beside=f"?{self._beside}{'&' if self._beside else ''}{urlencode({'message': one.uuid})}",
            mark=SafeString(' aria-current="true"' if is_open else ""),
            exact=timed.exact,
            time=timed.time,
            event=event_words(one.event),
            status=_undelivered(one.status),
            owner=row.borrower or self._unlinked(row),
            start=one.uuid[:8],
            gone=format_html(" {}", badge("neutral", "Gone at the service")) if one.gone_at else "",
            changed=format_html(" {}", badge("warn", "Payload changed")) if one.changed_payload else "",
            payment=explain_missing(_payment(row), lambda: one.why_null),
        )

    def _unlinked(self, row: LinkedMessage) -> str:
        if not (row.can_be_linked and self._may_link):
            return "Unlinked"
        return format_html(
            'Unlinked <a href="{}">Link</a>', reverse("messaging:link", args=[row.message.uuid])
        )


def _with_times(rows: Iterable[LinkedMessage]) -> Iterator[Timed]:
    """Each row with its time. One whose time zone is uncertain may stay under the day before or after its own."""
    day = date.min
    for row in rows:
        created = row.message.created_at
        if created and created.at:
            at = timezone.localtime(created.at)
            day = at.date()
            yield Timed(row, day, wording.time_of_day(at), wording.time_of_day(at, seconds=True))
            continue
        text = created.text if created else "No time"
        own_day = row.message.local_day
        day = day if abs(day - own_day) <= ONE_DAY else own_day
        short = text.removeprefix(f"{day} ")
        yield Timed(row, day, short, f"{text}, time zone unknown" if created else text)


def _undelivered(status: str) -> str:
    return "" if status == DELIVERED else status_badge(status)


def _payment(row: LinkedMessage) -> SafeString:
    one = row.message
    if not (one.product or one.payment_status or one.amount is not None):
        return NO_PAYMENT
    return format_html(PAYMENT, human(one.product), money(one.amount), status_badge(one.payment_status))


# --- The days of the chart ---


def coverage_bars(coverage: Coverage) -> SafeString:
    """A bar for each day, and in words what it says."""
    bar = '<rect class="sd-bar-{}" x="{}" y="{}" width="88" height="{}"><title>{}</title></rect>'
    rows = ((one.state, one.x + 6, one.y, one.height, _bar_words(one)) for one in coverage.bars)
    return format_html_join("", bar, rows)


def _bar_words(bar: DayBar) -> str:
    reported = "not compared" if bar.claimed is None else f"{bar.claimed} reported"
    compared = f", compared {wording.clock(bar.compared_at)}" if bar.compared_at else ""
    doubt = " (not compared individually)" if bar.claimed is not None and not compared else ""
    return f"{wording.day(bar.day)}: {reported}, {bar.saved} saved{doubt}{compared}"


def coverage_days(coverage: Coverage) -> SafeString:
    """Below the bars: what is missing, and some of the dates."""
    labels = {bar.day for bar in coverage.ticks}
    return format_html_join(
        "",
        "<li>{}{}</li>",
        (
            (
                format_html("<b>{}</b>", bar.missing) if bar.missing else "",
                format_html("<span>{}</span>", f"{bar.day:%b} {bar.day.day}") if bar.day in labels else "",
            )
            for bar in coverage.bars
        ),
    )


def coverage_rows(coverage: Coverage) -> SafeString:
    """The same as a table, the newest day first."""
    number = '<td class="sd-num">{}</td>'
    row = f'<tr><th scope="row">{{}}</th>{number * 4}<td>{{}}</td></tr>'
    return format_html_join(
        "",
        row,
        (
            (
                wording.day(bar.day),
                "Not compared" if bar.claimed is None else bar.claimed,
                bar.saved,
                "" if bar.claimed is None else bar.missing,
                bar.gone,
                _comparison_words(bar),
            )
            for bar in reversed(coverage.bars)
        ),
    )


def _comparison_words(bar: DayBar) -> str:
    """When each message of a day was compared, and what that could not include."""
    if bar.compared_at is None:
        return "Not yet"
    unusable = f"; {bar.unusable} without a usable ID" if bar.unusable else ""
    since = bar.saved - bar.compared if bar.compared is not None else 0
    later = f"; {since} saved since" if since > 0 else ""
    return f"{wording.clock(bar.compared_at)}{unusable}{later}"
