"""The explorer of webhook messages: the list with one message beside it, what arrives, files, and links by hand."""

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.roles import reason_for, requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.audit.sightings import log_list, log_page, saw
from portal.gateway import StaffRequest
from portal.jobs.models import Job
from portal.jobs.queue import start
from portal.jobs.state import state
from portal.messaging import tasks
from portal.messaging.coverage import check as check_days
from portal.messaging.coverage import coverage
from portal.messaging.explorer import Explorer, seen
from portal.messaging.files import COLUMNS, table
from portal.messaging.forms import NO_TIME, PRESETS, LinkForm, last_day_and_night, last_days
from portal.messaging.keeping import kept_as
from portal.messaging.links import Row, rows_of
from portal.messaging.models import BankAccount, Message, Run
from portal.messaging.panel import TABS, Panel
from portal.messaging.query import COLUMNS as FILTERED
from portal.messaging.sync import FiltersIgnored, read_front
from portal.notes.views import write as write_note
from portal.readings import DEADLINE
from portal.saved_views.menu import menu
from portal.ui.exports import list_file
from portal.ui.htmx import done, render_page, toast
from servicing import Client, ServicingError

VIEWS = {
    "Successful": "status=SUCCESS&source=copy",
    "Not successful": "status=FAILED&status=PENDING&source=copy",
    "Failed after success": "payment=FAILED_AFTER_SUCCESS",
    "Unlinked": "link=unlinked",
}
TOO_LONG = (
    "So many are exported from the local copy, which is shown now; sync it first where it is not complete."
)
PARTIALS = ("messages", "message", "message-claim", "message-news")


@require_safe
@requires("messaging.index")
def index(request: StaffRequest) -> HttpResponse:
    """The list; with JavaScript the service is asked by the list itself, so that it holds nobody up."""
    explorer = Explorer(request.GET)
    target = request.htmx.target if request.htmx else None
    context: dict[str, Any] = {"explorer": explorer, "form": explorer.form, "loaded_at": timezone.now()}
    match target:
        case "message":
            pass
        case "message-news":
            context["news"] = news(request, explorer)
        case "message-claim":
            context |= claim_of(request, explorer)
        case _:
            waits = not request.htmx and request.COOKIES.get("js") == "1" and not explorer.is_copy
            context |= listed(request, explorer, waits=waits)
    if target in (None, "message", "messages"):
        context["panel"] = opened(request, explorer)
    status = 422 if explorer.form.errors and target in (None, "messages") else 200
    return render_page(request, "messaging/index.html", context, partial=PARTIALS, status=status)


def listed(request: StaffRequest, explorer: Explorer, *, waits: bool) -> dict[str, Any]:
    """The list with all that stands around it."""
    explorer.is_loading = waits
    if not waits:
        explorer.load(within_deadline(request))
        log_list(request, count=explorer.total)
    days = explorer.asked.get("start_date"), explorer.asked.get("end_date")
    context: dict[str, Any] = {
        "coverage": coverage(*days),
        "seen": {name: seen(column) for name, column in FILTERED.items()},
        "presets": presets(explorer),
        "views": menu(request.user, "messaging:index", explorer.query_string(), views()),
        "run": Run.objects.first(),
        "job": Job.latest("messaging.sync"),
        "may_sync": request.can("messaging.sync"),
        "is_working": state().is_working,
        "may_link": request.can("messaging.link"),
        "service_zone": settings.SERVICING_TIME_ZONE,
        "why_not_sync": reason_for("messaging.sync"),
    }
    asks = explorer.is_copy and request.COOKIES.get("js") != "1" and not request.htmx
    return context | (claim_of(request, explorer) if asks else {})


def within_deadline(request: StaffRequest) -> Client:
    """The service, for whoever asks: a whole page waits for it no longer than others, a region may take its time."""
    return request.servicing if request.htmx else request.servicing.within(DEADLINE)


def views() -> dict[str, str]:
    """The views that everybody has."""
    return VIEWS | {"Today": urlencode(last_days(1))}


def presets(explorer: Explorer) -> list[tuple[str, str, bool]]:
    """The usual stretches of time: name, address, and whether it is the one in view."""
    stretches = {"Today": last_days(1), "24 h": last_day_and_night()}
    stretches |= {f"{number} days": last_days(number) for number in PRESETS}
    return [
        (name, explorer.query_string(**(NO_TIME | days)), explorer.is_of(NO_TIME | days))
        for name, days in stretches.items()
    ]


def claim_of(request: StaffRequest, explorer: Explorer) -> dict[str, Any]:
    """How many messages the service says it has; that it does not say so is no failure of the list."""
    try:
        return {"claim": explorer.claim(within_deadline(request))}
    except ServicingError as error:
        return {"claim_failure": error}


def news(request: StaffRequest, explorer: Explorer) -> dict[str, Any]:
    """How many messages of this list arrived since it was drawn."""
    try:
        since = datetime.fromisoformat(request.GET.get("since", "")).astimezone(UTC)
    except (ValueError, OverflowError):
        since = timezone.now()
    try:
        read_front(request.servicing)
    except ServicingError as error:
        return {"failure": error, "since": since}
    return {"number": explorer.found.arrived(since), "since": since}


def opened(request: StaffRequest, explorer: Explorer) -> Panel | None:
    """The message beside the list."""
    asked = request.GET.get("message")
    message = Message.objects.filter(uuid=kept_as(asked)).first() if asked else None
    return look(request, message, explorer) if message else None


@require_safe
@requires("messaging.index")
def detail(request: StaffRequest, message_uuid: str) -> HttpResponse:
    """One message on its own page."""
    message = get_object_or_404(Message, uuid=message_uuid)
    explorer = Explorer(request.GET)
    context = {"panel": look(request, message, explorer), "explorer": explorer}
    return render_page(request, "messaging/detail.html", context)


def look(request: StaffRequest, message: Message, explorer: Explorer) -> Panel:
    """Somebody reads a payload."""
    (row,) = rows_of([message])
    borrower = row.borrower.uuid if row.borrower else ""
    label = f"message {message.uuid[:8]}"
    saw(
        Actor.of(request),
        "messaging.detail",
        kind="message",
        uuid=message.uuid,
        label=label,
        borrower_uuid=borrower,
    )
    tab = request.GET.get("tab", "")
    return Panel(
        row,
        tab if tab in TABS else next(iter(TABS)),
        explorer,
        may_link=request.can("messaging.link"),
        why_not=reason_for("messaging.link"),
        may_note=request.can("notes.add"),
        why_no_note=reason_for("notes.add"),
    )


@require_safe
@requires("messaging.index")
def json(request: StaffRequest, message_uuid: str) -> HttpResponse:
    """The message as it was received, as a file."""
    message = get_object_or_404(Message, uuid=message_uuid)
    append(
        Actor.of(request),
        "messaging.download",
        subject_kind="message",
        subject_uuid=message.uuid,
        subject_label=message.uuid[:8],
    )
    answer = HttpResponse(message.body, content_type="application/json")
    answer["Content-Disposition"] = f'attachment; filename="message-{message.uuid[:8]}.json"'
    answer["Cache-Control"] = "no-store"
    return answer


@require_safe
@requires("messaging.index")
def export(request: StaffRequest) -> HttpResponseBase:
    """The shown page, or with ``all`` everything that the filters leave."""
    explorer = Explorer(request.GET)
    is_whole = "all" in request.GET
    explorer.load(request.servicing)
    if explorer.failure:
        raise explorer.failure
    if is_whole and explorer.is_too_long:
        toast(request, f"The service has {explorer.total_words} of them. {TOO_LONG}")
        return done(request, reverse("messaging:index") + explorer.query_string(source="copy"))
    append(
        Actor.of(request),
        "messaging.export",
        subject_label="all that match" if is_whole else "one page",
        detail={
            "filters": {name: str(value) for name, value in explorer.asked.items()},
            "source": "copy" if explorer.is_copy else "service",
            "rows": explorer.total if is_whole else len(explorer.shown),
        },
    )
    rows = explorer.everything(request.servicing) if is_whole else iter([list(explorer.shown)])
    return list_file(request, "messages", COLUMNS, table(explorer, rows))


@require_POST
@requires("messaging.index")
def check(request: StaffRequest) -> HttpResponse:
    """Ask the service how many messages it has of each day in view."""
    explorer = Explorer(request.GET)
    try:
        number = check_days(
            request.servicing, explorer.asked.get("start_date"), explorer.asked.get("end_date")
        )
        toast(request, f"{number} days were compared with the service.")
    except FiltersIgnored:
        toast(request, "The service ignores dates, so single days can't be checked. Use “Compare all”.")
    return done(request, reverse("messaging:index") + explorer.query_string())


@require_POST
@requires("messaging.sync")
def sync(request: StaffRequest) -> HttpResponse:
    """Read what is missing in the background, or with ``whole`` compare every message; join a run under way."""
    is_whole = "whole" in request.POST
    job = start(
        tasks.sync,
        by=Actor.of(request),
        **({"read_before": timezone.now().isoformat()} if is_whole else {}),
    )
    if is_whole and "read_before" not in job.arguments:
        toast(request, "A sync is running. Compare all messages once it is done.")
    return done(request, reverse("operations:job", args=[job.pk]))


@requires("notes.add")
def note(request: StaffRequest, message_uuid: str) -> HttpResponse:
    """A note on a message; where its borrower is known it stands among theirs too."""
    message = get_object_or_404(Message, uuid=message_uuid)
    (row,) = rows_of([message])
    return write_note(
        request,
        message,
        ("Messages", reverse("messaging:index")),
        subject_kind="message",
        subject_uuid=message.uuid,
        borrower_uuid=row.borrower.uuid if row.borrower else "",
    )


@requires("messaging.link")
def link(request: StaffRequest, message_uuid: str) -> HttpResponseBase:
    """Say whose bank account a message comes from; it holds for every message from there."""
    message = get_object_or_404(Message, uuid=message_uuid)
    (row,) = rows_of([message])
    if not message.bank_account or (row.borrower and not row.by_hand):
        toast(
            request,
            "Nothing can be linked here: whose this message is is known, or it names no bank account.",
        )
        return done(request, message.get_absolute_url())
    form = LinkForm(request.POST or None, initial={"borrower": request.GET.get("of", "")})
    form.fields["borrower"].required = not row.by_hand  # Where nothing is said, nothing can be taken back.
    if form.is_valid():
        remember(request, row, form)
        return done(request, message.get_absolute_url())
    log_page(
        request,
        kind="message",
        uuid=message.uuid,
        label=f"message {message.uuid[:8]}",
        borrower_uuid=row.borrower.uuid if row.borrower else "",
    )
    context = {"row": row, "form": form}
    return render_page(request, "messaging/link.html", context, status=422 if form.is_bound else 200)


def remember(request: StaffRequest, row: Row, form: LinkForm) -> None:
    """Keep the link, or take it away, with an audit entry."""
    actor, account, borrower = Actor.of(request), row.message.bank_account, form.cleaned_data["borrower"]
    before = row.by_hand.borrower_uuid if row.by_hand else ""
    with transaction.atomic():
        if borrower:
            told = {"borrower_uuid": borrower.uuid, "linked_by": actor.name}
            BankAccount.objects.update_or_create(uuid=account, defaults=told)
        else:
            BankAccount.objects.filter(uuid=account).delete()
        append(
            actor,
            "messaging.link",
            subject_kind="bank_account",
            subject_uuid=account,
            subject_label=f"bank account {account[:8]}",
            borrower_uuid=borrower.uuid if borrower else before,
            changes={"borrower_uuid": [before, borrower.uuid if borrower else ""]},
        )
    words = f"now belongs to {borrower}" if borrower else "belongs to nobody any more"
    toast(request, f"Bank account {account[:8]} {words}.")
