"""Refreshes the selected records of a list one by one, each step on a request of the page.

Leaving the page stops it; nothing continues in the background.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.utils import timezone

from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.view_log import log_list
from portal.gateway.client import StaffRequest
from portal.gateway.reading import MAX_WAIT, account_copies, read_if_old
from portal.records.models import Account
from portal.records.store import IDENTIFIER
from portal.tables.pages import MAX_SELECTED, ListPage, Row
from portal.ui.htmx import render_page

PROGRESS = "refresh-progress"


@dataclass(frozen=True)
class Progress:
    items: Sequence[tuple[Row, str]]
    """Each selected record with its state: ``waiting``, ``asking``, ``read`` or ``failed``."""

    @property
    def done(self) -> int:
        return self.failed + sum(state == "read" for _, state in self.items)

    @property
    def failed(self) -> int:
        return sum(state == "failed" for _, state in self.items)

    @property
    def is_over(self) -> bool:
        return self.done == len(self.items)


def refresh_selected(request: StaffRequest, list_page: ListPage) -> HttpResponseBase:
    """Start with a POST, which redirects to the progress page; each request of that page refreshes one more."""
    if request.method == "POST":
        return _begin(request, list_page)
    since = parse_moment(request.GET.get("since", ""))
    records = _selected(list_page, request.GET.getlist("uuid"))
    if since is None or not 0 < len(records) <= MAX_SELECTED:
        return HttpResponseRedirect(list_page.url)
    without_script = not request.htmx and request.COOKIES.get("js") != "1"
    if without_script or request.htmx.target == PROGRESS:
        _refresh_next(request, _progress(list_page, records, since))
        records = _selected(list_page, request.GET.getlist("uuid"))
    progress = _progress(list_page, records, since)
    log_list(request, count=len(records))
    back = f"{list_page.url}?{QueryDict(request.GET.get('back', '')).urlencode()}"
    context = {"list_page": list_page, "progress": progress, "back": back}
    response = render_page(request, "lists/refresh.html", context, partial=PROGRESS)
    if without_script and not progress.is_over:
        response["Refresh"] = "1"
    return response


def _begin(request: StaffRequest, list_page: ListPage) -> HttpResponse:
    records = _selected(list_page, request.POST.getlist("uuid"))
    back = request.POST.get("back", "").removeprefix("?")
    if not 0 < len(records) <= MAX_SELECTED:
        context = {
            "list_page": list_page,
            "selected": len(records),
            "max_selected": MAX_SELECTED,
            "back": f"{list_page.url}?{QueryDict(back).urlencode()}",
        }
        return render_page(request, "lists/refresh.html", context, status=422)
    label = f"{len(records)} {list_page.noun}{'' if len(records) == 1 else 's'}"
    append(Actor.of(request), f"{list_page.area}.refresh", subject_label=label)
    state = [("uuid", record.uuid) for record in records]
    state += [("since", timezone.now().isoformat()), ("back", back)]
    return HttpResponseRedirect(f"{list_page.refresh_url}?{urlencode(state)}", status=303)


def _selected(list_page: ListPage, uuids: Sequence[str]) -> list[Account]:
    """The existing records in order of selection, up to one more than allowed, which shows that there are too many."""
    wanted = [uuid for uuid in dict.fromkeys(uuids) if IDENTIFIER.fullmatch(uuid)][:500]
    found = {
        record.uuid: record
        for record in list_page.records()
        .filter(uuid__in=wanted, kind__in=list_page.kinds)
        .select_related("answer")
    }
    return [found[uuid] for uuid in wanted if uuid in found]


def parse_moment(text: str) -> datetime | None:
    """Parse a time from an address. None if it is in the future, as no refresh would ever be later."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if timezone.is_aware(moment) and moment <= timezone.now() else None


def _progress(list_page: ListPage, records: Sequence[Account], since: datetime) -> Progress:
    return Progress([(row, _state(row.record, since)) for row in list_page.rows(records)])


def _state(record: Account, since: datetime) -> str:
    said, answered = record.answer, record.checked_at
    if not said or not said.asked_at or said.asked_at < since:
        return "waiting"
    failed = said.failed_at
    if answered and answered >= since and (not failed or failed <= answered):
        return "read"
    has_failed = (failed and failed >= since) or timezone.now() - said.asked_at > MAX_WAIT
    return "failed" if has_failed else "asking"


def _refresh_next(request: StaffRequest, progress: Progress) -> None:
    """Refresh the next record with its repayments, unless another one is still being refreshed."""
    if any(state == "asking" for _, state in progress.items):
        return
    if record := next((row.record for row, state in progress.items if state == "waiting"), None):
        read_if_old(Actor.of(request), account_copies(record), force=True)
