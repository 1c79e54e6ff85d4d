"""The webhook message explorer: the list with one message beside it, files, and links of bank accounts."""

from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.view_log import log_list, log_page, log_view
from portal.gateway.client import StaffRequest
from portal.jobs.models import Job
from portal.jobs.queue import start_job
from portal.jobs.status import live_workers
from portal.messaging import tasks
from portal.messaging.coverage import check_days, coverage
from portal.messaging.explorer import FILE_COLUMNS, Explorer, values_in_use
from portal.messaging.filters import LinkForm, time_presets
from portal.messaging.links import LinkedMessage, link_messages
from portal.messaging.markup import MessageRows, coverage_bars, coverage_days, coverage_rows
from portal.messaging.models import BankAccount, Message, Run
from portal.messaging.panel import TABS, Panel
from portal.messaging.query import count_stored_since
from portal.messaging.store import service_zone, storage_uuid
from portal.messaging.sync import FiltersIgnored, read_front
from portal.notes.views import add_note
from portal.tables.saved_views import saved_views_menu
from portal.ui.exports import file_headers, list_file
from portal.ui.frame import zone_name
from portal.ui.htmx import finish_action, render_page, toast
from servicing import Client, ServicingError

BUILT_IN_VIEWS = {
    "Successful": "status=SUCCESS&source=copy",
    "Not successful": "status=FAILED&status=PENDING&source=copy",
    "Returned after posting": "payment=FAILED_AFTER_SUCCESS",
    "Unlinked": "link=unlinked",
    "Gone at the service": "gone=gone",
    "Needs a data check": "changed=changed",
}
NO_TIME = dict.fromkeys(("start_date", "start_time", "end_date", "end_time"))
TOO_LONG = "Large exports use the local copy, shown now. If it isn’t complete, sync first."
PAGE_WAIT_SECONDS = 0.8
PARTIALS = ("messages", "message", "message-claim", "message-news")


@require_safe
@requires("messaging.index")
def index(request: StaffRequest) -> HttpResponse:
    """Show the list. With JavaScript, the list itself calls the service, so that the page appears at once."""
    explorer = Explorer(request.GET)
    target = request.htmx.target if request.htmx else None
    context: dict[str, Any] = {"explorer": explorer, "form": explorer.form, "loaded_at": timezone.now()}
    if target == "message-news":
        context["news"] = news(request, explorer)
    elif target == "message-claim":
        context |= remote_count(request, explorer)
    elif target != "message":
        context |= list_context(request, explorer)
    if target not in PARTIALS or target == "messages":
        context |= heading_context(request, explorer)
    if target in (None, "message", "messages"):
        uuid = request.GET.get("message", "")
        found = link_messages(Message.objects.filter(uuid=storage_uuid(uuid))) if uuid else []
        context["panel"] = panel = open_panel(request, found[0], explorer) if found else None
        context["message_rows"] = MessageRows(request, explorer, panel)
    status = 422 if explorer.form.errors and target in (None, "messages") else 200
    return render_page(request, "messaging/index.html", context, partial=PARTIALS, status=status)


def list_context(request: StaffRequest, explorer: Explorer) -> dict[str, Any]:
    """The list, its filters and the coverage of its days."""
    has_scripts = request.htmx or request.COOKIES.get("js") == "1"
    is_loading = not request.htmx and has_scripts and not explorer.wants_copy
    if not is_loading:
        explorer.load(client_in_time(request))
        log_list(request, count=explorer.total)
    period = explorer.filters.get("start_date"), explorer.filters.get("end_date")
    days = coverage(*period)
    context: dict[str, Any] = {
        "is_loading": is_loading,
        "coverage": days,
        "bars": coverage_bars(days),
        "days": coverage_days(days),
        "day_rows": coverage_rows(days),
        "values": values_in_use(),
        "presets": [
            (name, explorer.query_string(**(NO_TIME | days)), explorer.has_params(NO_TIME | days))
            for name, days in time_presets().items()
        ],
        "service_zone": zone_name(service_zone()),
    }
    is_counted_now = explorer.wants_copy and not has_scripts
    return context | (remote_count(request, explorer) if is_counted_now else {})


def heading_context(request: StaffRequest, explorer: Explorer) -> dict[str, Any]:
    """The saved views and the state of syncing."""
    views = BUILT_IN_VIEWS | {"Today": urlencode(time_presets()["Today"])}
    return {
        "views": saved_views_menu(request.user, "messaging:index", explorer.query_string(), views),
        **sync_context(),
    }


def sync_context() -> dict[str, Any]:
    """The last sync, its open job, and whether a worker is alive; usually one query."""
    names = [tasks.sync.name, tasks.compare.name]
    open_jobs = Job.objects.filter(name__in=names, state__in=Job.OPEN)
    run = Run.objects.annotate(has_job=Exists(open_jobs), has_worker=Exists(live_workers())).first()
    return {
        "run": run,
        "job": open_jobs.first() if run is None or run.has_job else None,
        "is_working": live_workers().exists() if run is None else run.has_worker,
    }


def client_in_time(request: StaffRequest) -> Client:
    """The service's client: a whole page waits no longer for it than other pages do, a fragment may take its time."""
    return request.servicing if request.htmx else request.servicing.with_time_limit(PAGE_WAIT_SECONDS)


def remote_count(request: StaffRequest, explorer: Explorer) -> dict[str, Any]:
    """The service's message count; if it does not answer, the list is shown anyway."""
    try:
        return {"count": explorer.remote_count(client_in_time(request))}
    except ServicingError as error:
        return {"count_failure": error}


def news(request: StaffRequest, explorer: Explorer) -> dict[str, Any]:
    """The number of messages of this list that arrived since it was loaded."""
    try:
        since = datetime.fromisoformat(request.GET.get("since", "")).astimezone(UTC)
    except (ValueError, OverflowError):
        since = timezone.now()
    try:
        read_front(request.servicing)
    except ServicingError as error:
        return {"failure": error, "since": since}
    return {"number": count_stored_since(explorer.matches, since), "since": since}


def find_message(uuid: str) -> LinkedMessage:
    (row,) = link_messages([get_object_or_404(Message, uuid=uuid)])
    return row


def open_panel(request: StaffRequest, row: LinkedMessage, explorer: Explorer) -> Panel:
    log_view(Actor.of(request), "messaging.detail", **message_subject(row))
    tab = request.GET.get("tab", "")
    return Panel(row, tab if tab in TABS else next(iter(TABS)), explorer)


def message_subject(row: LinkedMessage) -> dict[str, Any]:
    """The fields that tie the log of a view to a message."""
    uuid, label, owner = row.message.uuid, row.message.label, row.borrower_uuid
    return {"subject_kind": "message", "subject_uuid": uuid, "subject_label": label, "borrower_uuid": owner}


@require_safe
@requires("messaging.index")
def detail(request: StaffRequest, message_uuid: str) -> HttpResponse:
    explorer = Explorer(request.GET)
    panel = open_panel(request, find_message(message_uuid), explorer)
    return render_page(request, "messaging/detail.html", {"panel": panel, "explorer": explorer})


@require_safe
@requires("messaging.index")
def json(request: StaffRequest, message_uuid: str) -> HttpResponse:
    message = get_object_or_404(Message, uuid=message_uuid)
    append(
        Actor.of(request),
        "messaging.download",
        subject_kind="message",
        subject_uuid=message.uuid,
        subject_label=message.uuid[:8],
    )
    headers = file_headers(f"message-{message.uuid[:8]}.json")
    return HttpResponse(message.body, content_type="application/json", headers=headers)


@require_safe
@requires("messaging.index")
def export(request: StaffRequest) -> HttpResponseBase:
    """Export the shown page, or with ``all`` the whole list."""
    explorer = Explorer(request.GET)
    is_whole = "all" in request.GET
    if explorer.form.problems:  # A file can't say that a filter was ignored.
        reasons = " ".join(f"{label}: {reason}" for _, label, reason in explorer.form.problems)
        toast(request, f"Nothing was exported. {reasons}")
        return finish_action(request, reverse("messaging:index") + explorer.query_string())
    explorer.load(request.servicing)
    if explorer.failure:
        raise explorer.failure
    if is_whole and explorer.is_too_long:
        toast(request, f"The service has {explorer.total_words} of them. {TOO_LONG}")
        return finish_action(request, reverse("messaging:index") + explorer.query_string(source="copy"))
    append(
        Actor.of(request),
        "messaging.export",
        subject_label="all that match" if is_whole else "one page",
        detail={
            "filters": {name: str(value) for name, value in explorer.filters.items()},
            "source": "copy" if explorer.wants_copy else "service",
            "rows": explorer.total if is_whole else len(explorer.shown),
        },
    )
    lines = explorer.file_lines(request.servicing, is_whole=is_whole)
    start = explorer.text_start  # Of a text without a period, only the days since then were searched.
    return list_file(request, f"messages-since-{start}-until" if start else "messages", FILE_COLUMNS, lines)


@require_POST
@requires("messaging.index")
def check(request: StaffRequest) -> HttpResponse:
    """Compare each shown day with the service."""
    explorer = Explorer(request.GET)
    days = explorer.filters.get("start_date"), explorer.filters.get("end_date")
    try:
        toast(request, f"{check_days(request.servicing, *days)} days compared with the service.")
    except FiltersIgnored:
        toast(request, "The service ignores dates, so single days can't be checked. Use “Recheck”.")
    return finish_action(request, reverse("messaging:index") + explorer.query_string())


@require_POST
@requires("messaging.sync")
def sync(request: StaffRequest) -> HttpResponse:
    """Read new messages in the background, or with ``whole`` compare each message of the chosen days, or of all."""
    actor = Actor.of(request)
    if "whole" not in request.POST:
        job = start_job(tasks.sync, by=actor)
    else:
        filters = Explorer(request.GET).filters
        days = {"since": filters.get("start_date"), "until": filters.get("end_date")}
        arguments = {name: day.isoformat() for name, day in days.items() if day} or {"all_days": True}
        job = start_job(tasks.compare, by=actor, **arguments)
        if job.arguments != arguments:
            toast(request, "Other days are being compared. Recheck these once that is done.")
    return finish_action(request, reverse("operations:job", args=[job.pk]))


@requires("notes.add")
def note(request: StaffRequest, message_uuid: str) -> HttpResponse:
    """Add a note to a message, and to its borrower if that is known."""
    row = find_message(message_uuid)
    return add_note(
        request,
        row.message,
        ("Messages", reverse("messaging:index")),
        subject_kind="message",
        subject_uuid=row.message.uuid,
        borrower_uuid=row.borrower_uuid,
    )


@requires("messaging.link")
def link(request: StaffRequest, message_uuid: str) -> HttpResponseBase:
    """Link a message's bank account, and so all messages from it, to a borrower."""
    row = find_message(message_uuid)
    message, address = row.message, row.message.get_absolute_url()
    if not message.bank_account or (row.borrower and not row.manual_link):
        toast(request, "Nothing to link: the borrower is known, or there’s no bank account.")
        return finish_action(request, address)
    form = LinkForm(request.POST or None, initial={"borrower": request.GET.get("of", "")})
    form.fields["borrower"].required = not row.manual_link  # Without a link there is nothing to remove.
    if form.is_valid():
        save_link(request, row, form)
        return finish_action(request, address)
    log_page(request, **message_subject(row))
    context = {"row": row, "form": form}
    return render_page(request, "messaging/link.html", context, status=422 if form.is_bound else 200)


def save_link(request: HttpRequest, row: LinkedMessage, form: LinkForm) -> None:
    """Save or remove the link, with an audit entry."""
    actor, account, borrower = Actor.of(request), row.message.bank_account, form.cleaned_data["borrower"]
    before = row.manual_link.borrower_uuid if row.manual_link else ""
    after = borrower.uuid if borrower else ""
    with transaction.atomic():
        if borrower:
            values = {"borrower_uuid": after, "linked_by": actor.name}
            BankAccount.objects.update_or_create(uuid=account, defaults=values)
        else:
            BankAccount.objects.filter(uuid=account).delete()
        append(
            actor,
            "messaging.link",
            subject_kind="bank_account",
            subject_uuid=account,
            subject_label=f"bank account {account[:8]}",
            borrower_uuid=after or before,
            changes={"borrower_uuid": [before, after]},
        )
    words = f"is now linked to {borrower}" if borrower else "is no longer linked"
    toast(request, f"Bank account {account[:8]} {words}.")
