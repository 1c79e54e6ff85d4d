"""The home page: what needs attention, and where people left off. Nothing here calls the service."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.accounts.roles import requires
from portal.audit.chain import AlreadySaved, append, is_saved
from portal.audit.models import Actor, Entry, PageView
from portal.audit.reading import VIEWS, sentence
from portal.audit.service_health import cached_health, summarize, with_durations
from portal.audit.view_log import log_list, log_page
from portal.borrowers.models import Draft
from portal.core.areas import help_pages
from portal.core.business_date import business_date
from portal.gateway.client import StaffRequest
from portal.home.attention import attention, count_waiting, item_kinds
from portal.home.forms import SnoozeForm
from portal.home.models import Snooze
from portal.home.numbers import numbers
from portal.home.pinned import choices, pin, pinned
from portal.notes.models import FollowUp
from portal.records.models import Borrower, Kind, Saved
from portal.records.rows import active_records, borrowers_by_uuid, with_borrowers
from portal.ui import wording
from portal.ui.attention import MAX_SHOWN
from portal.ui.frame import Frame
from portal.ui.help import NEWS_COOKIE, NEWS_COOKIE_SECONDS, VERSION, read_news
from portal.ui.htmx import finish_action, render_page, toast

MAX_RECENT = 8
MAX_VIEWS_READ = 100
MAX_ACTIVITY = 5
FIRST_ITEMS = 3
"""How many of each group are shown at first."""


@require_http_methods(["GET", "HEAD", "POST"])
@requires("home.index")
def index(request: StaffRequest) -> HttpResponse:
    """Show the page or a section that refreshes itself; a POST saves the pinned views."""
    if request.method == "POST":
        pin(request.user, request.POST.getlist("view"))
        return finish_action(request, request.get_full_path())
    user = request.user
    context: dict[str, Any] = {
        "now": timezone.localtime(),
        "today": business_date(),
        "name": user.preferred_name or user.first_name,
    }
    for name in [name for name in SECTIONS if name == request.htmx.target] or SECTIONS:
        context |= SECTIONS[name](request)
    log_list(request, count=context.get("every"))
    return render_page(request, "home/index.html", context, partial=tuple(SECTIONS))


def health_section(request: StaffRequest) -> dict[str, Any]:
    """The service's health by group of calls."""
    groups = cached_health()
    words = request.health = summarize(groups)  # The header shows the same words.
    has_failures = words is not None and words[0] in ("bad", "warn")
    services = with_durations(groups) if has_failures else ()
    return {"services": services, "health_words": words, "has_failures": has_failures}


def attention_section(request: StaffRequest) -> dict[str, Any]:
    """The items of the chosen group that need attention."""
    found = attention(request.user)
    chosen = request.GET.get("show", "")
    chosen = chosen if chosen in ("mine", "snoozed", *item_kinds()) else ""
    limit = MAX_SHOWN if chosen or "all" in request.GET else FIRST_ITEMS
    shown = [
        (
            group,
            [item for item in group.items if chosen != "mine" or item.owner_id == request.user.pk][:limit],
        )
        for group in found.groups
        if chosen in ("", "mine", group.name)
    ]
    borrowers = iter(with_borrowers([item for _, items in shown for item in items]))
    groups = [(group, [next(borrowers) for _ in items]) for group, items in shown if items]
    return {
        "attention": found,
        "chosen": chosen,
        # Each group has its own head and link; only the chosen one is a pill.
        "pills": [pill for pill in found.pills if pill[0] in ("", "mine", chosen)],
        "groups": groups,
        "items": [item for _, items in groups for item in items],
        "is_folded": limit == FIRST_ITEMS,
        "every": found.total,
    }


def work_section(request: StaffRequest) -> dict[str, Any]:
    """This person's recent borrowers, drafts and follow-ups."""
    views = choices(request.user)
    follow_ups = FollowUp.objects.filter(owner_id=request.user.pk, done_at=None)
    return {
        "drafts": Draft.objects.filter(owner=request.user)[:MAX_RECENT],
        "follow_ups": with_borrowers(follow_ups[:MAX_RECENT]),
        "recent": recent_borrowers(request.user.pk),
        "pinned": pinned(views),
        "choices": views,
    }


@require_safe
@requires("home.index")
def waiting(request: StaffRequest) -> HttpResponse:
    """The numbers of waiting items, which each page asks for after it has loaded."""
    found = count_waiting(request.user)
    numbers = [(one.key, found[one.url_name]) for one in Frame(request).entries if one.has_number]
    return render(request, "ui/frame.html#waiting-numbers", {"numbers": numbers})


def numbers_section(request: StaffRequest) -> dict[str, Any]:
    """Payments of the last seven days."""
    return {"numbers": numbers(business_date()), "as_table": request.GET.get("numbers") == "table"}


def activity_section(request: StaffRequest) -> dict[str, Any]:
    """The team's changes, without page views, sign-ins and background work."""
    entries = Entry.objects.exclude(phase=Entry.Phase.ATTEMPT).exclude(VIEWS)
    changes = entries.exclude(action__startswith="accounts.").exclude(actor_role="system")[:MAX_ACTIVITY]
    return {"activity": [(entry, sentence(entry)) for entry in changes]}


SECTIONS: dict[str, Callable[[StaffRequest], dict[str, Any]]] = {
    "home-health": health_section,
    "attention": attention_section,
    "work": work_section,
    "numbers": numbers_section,
    "activity": activity_section,
}


def recent_borrowers(user_id: int) -> list[tuple[Borrower, Any]]:
    """The borrowers this person viewed most recently, with the time."""
    views = PageView.objects.filter(actor_id=user_id).exclude(borrower_uuid="")
    viewed_at: dict[str, Any] = {}
    for borrower_uuid, last_at in views.values_list("borrower_uuid", "last_at")[:MAX_VIEWS_READ]:
        viewed_at.setdefault(borrower_uuid, last_at)
    found = borrowers_by_uuid(viewed_at)
    return [(found[uuid], at) for uuid, at in viewed_at.items() if uuid in found][:MAX_RECENT]


@requires("home.snooze")
def snooze(request: StaffRequest) -> HttpResponse:
    """Snooze an item until a day, with a reason that colleagues see."""
    key = request.GET.get("item", "")
    item = next((one for one in attention(request.user).items if one.key == key), None)
    actor = Actor.of(request)
    if item is None and is_saved(actor):  # This form snoozed it a moment ago.
        toast(request, str(AlreadySaved()))
        return finish_action(request, reverse("home:index"))
    if item is None:
        raise Http404("This item is no longer in the list.")
    form = SnoozeForm(request.POST or None)
    if form.is_valid():
        values = {"label": item.sentence[:300], "by_id": actor.id or 0, "by_name": actor.name}
        with suppress(AlreadySaved), transaction.atomic():
            Snooze.objects.update_or_create(key=item.key, defaults=values | form.cleaned_data)
            append(
                actor,
                "home.snooze",
                subject_label=item.sentence[:300],
                borrower_uuid=item.borrower_uuid,
                reason=form.cleaned_data["reason"],
            )
        toast(request, "Snoozed.")
        return finish_action(request, reverse("home:index"))
    log_page(
        request,
        subject_kind=Kind.BORROWER if item.borrower_uuid else "",
        subject_uuid=item.borrower_uuid or item.key,
        subject_label=item.sentence,
        borrower_uuid=item.borrower_uuid,
    )
    context = {
        "crumbs": [("Home", reverse("home:index"))],
        "crumb": "Snooze",
        "title": "Snooze",
        "text": wording.with_full_stop(item.sentence),
        "note": "Hides this item for everyone until that day. Anyone can see the reason and bring it back.",
        "action": request.get_full_path(),
        "act": "Snooze",
        "safe": "Cancel",
        "back": reverse("home:index"),
        "form": form,
    }
    status = 422 if form.is_bound else 200
    return render_page(request, "ui/question.html", context, partial="dialog", status=status)


@requires("home.snooze")
@require_POST
def wake(request: StaffRequest) -> HttpResponse:
    """Bring an item back before its day."""
    found = Snooze.objects.filter(key=request.POST.get("item", "")).first()
    if found:
        with transaction.atomic():
            found.delete()
            append(Actor.of(request), "home.wake", subject_label=found.label)
    return finish_action(request, reverse("home:index"))


@require_safe
@requires("home.help")
def show_help(request: StaffRequest, address: str = "") -> HttpResponse:
    """Show Help's first page with the terms, or another page."""
    if not address:
        return render_page(request, "home/help.html", {"pages": help_pages().values()}, partial="search-tips")
    page = help_pages().get(address)
    if page is None:
        raise Http404("Help has no such page.")
    context: dict[str, Any] = {"title": page.title, "part": f"home/help_pages.html#{address}"}
    if page.picture:
        context["picture"] = {"file": f"help/{address}.webp", "words": page.picture}
    context["grace_days"] = settings.PROMISE_GRACE_DAYS
    words = {"ssn": "SSN", "dob": "date of birth"}
    context["approval_acts"] = [words.get(act, act.replace("_", " ")) for act in settings.APPROVAL_ACTS]
    if address == "first-day":
        context["tasks"] = first_day_tasks(request.can)
    if address != "news":
        return render_page(request, "home/help_page.html", context, partial="keys")
    answer = render_page(request, "home/help_page.html", context | {"news": read_news()})
    answer.set_cookie(
        NEWS_COOKIE, VERSION, NEWS_COOKIE_SECONDS, secure=request.is_secure(), httponly=True, samesite="Lax"
    )
    return answer


def first_day_tasks(may: Callable[[str], bool]) -> list[tuple[str, str, str]]:
    """First tasks for new staff: a label, what to do, and the address of a record on file to try it on."""

    def example(kind: Kind) -> Saved | None:
        return active_records(kind).order_by("uuid").first()

    def url(record: Saved | None) -> str:
        return record.get_absolute_url() if record else ""

    borrower = example(Kind.BORROWER)
    edit = reverse("borrowers:edit", args=[borrower.uuid]) if borrower and may("borrowers.edit") else ""
    summary = reverse("documents:borrower", args=[borrower.uuid]) if borrower else ""
    trail = reverse("audit:history", args=[borrower.kind, borrower.uuid]) if borrower else ""
    return [
        (
            "Find a borrower",
            "press Ctrl+K and type part of a name or a phone number.",
            reverse("borrowers:index"),
        ),
        ("Read a loan", "see what is past due and due next.", url(example(Kind.LOAN))),
        (
            "Compare offers",
            "open an application and look at rows that differ.",
            url(example(Kind.APPLICATION)),
        ),
        ("Open a statement", "choose the newest statement on the line’s page.", url(example(Kind.LINE))),
        (
            "Explain a returned payment",
            "read its code and when it came back.",
            reverse("collections:returns"),
        ),
        ("Edit a phone number", "review the change; Cancel sends nothing.", edit or url(borrower)),
        ("Print a summary", "choose who it is for, then print.", summary),
        ("Audit trail", "find your own page views.", trail),
    ]
