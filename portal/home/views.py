"""The first page: what needs a person, and where they left off. All of it is known here; nothing asks the service."""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.health import in_words, lately
from portal.audit.models import Actor, Entry, Sighting
from portal.audit.sentences import sentence
from portal.audit.sightings import log_list, log_page
from portal.borrowers.models import Draft
from portal.gateway import StaffRequest
from portal.home.attention import attention, borrowers_of, count_again
from portal.home.forms import SnoozeForm
from portal.home.lines import GROUPS, Item
from portal.home.models import Snooze
from portal.home.numbers import numbers
from portal.home.pinned import choices, pin, pinned
from portal.notes.models import FollowUp
from portal.registry.models import Kind, Record
from portal.ui.htmx import done, render_page, toast

RECENT = 8
LOOKS = 100
ACTIVITY = 15
# Of what waits so many lines are shown at first, the worst.
FIRST = 10


@require_http_methods(["GET", "HEAD", "POST"])
@requires("home.index")
def index(request: StaffRequest) -> HttpResponse:
    """The page, or the one of its sections that refreshes itself. A choice of views is posted, and kept."""
    if request.method == "POST":
        pin(request.user, request.POST.getlist("view"))
        return done(request, request.get_full_path())
    wanted = [name for name in SECTIONS if name == request.htmx.target] or list(SECTIONS)
    context: dict[str, Any] = {
        "now": timezone.localtime(),
        "name": request.user.preferred_name or request.user.first_name,
    }
    for name in wanted:
        context |= SECTIONS[name](request)
    log_list(request, count=context.get("every"))
    return render_page(request, "home/index.html", context, partial=tuple(SECTIONS))


def health_section(request: StaffRequest) -> dict[str, Any]:
    """How each group of calls is answered."""
    groups = lately()
    return {"groups": groups, "health_words": in_words(groups)}


def attention_section(request: StaffRequest) -> dict[str, Any]:
    """What waits, of the group that is chosen."""
    found = attention(request.user)
    group = request.GET.get("show", "")
    group = group if group in ("mine", "snoozed", *GROUPS) else ""
    items = found.shown(group)
    shown = items if "all" in request.GET else items[:FIRST]
    borrowers = borrowers_of(shown)
    return {
        "attention": found,
        "group": group,
        "items": [(item, borrowers.get(item.borrower_uuid)) for item in shown],
        "folded": len(items) - len(shown),
        "every": len(items),
        "left_out": found.left_out(group),
        "may_snooze": request.can("home.snooze"),
    }


def work_section(request: StaffRequest) -> dict[str, Any]:
    """Where this person left off."""
    return {
        "drafts": Draft.objects.filter(owner=request.user)[:RECENT],
        "follow_ups": _with_borrower(
            FollowUp.objects.filter(owner_id=request.user.pk, done_at=None)[:RECENT]
        ),
        "recent": recent_borrowers(request.user.pk),
        "pinned": pinned(request.user),
        "choices": choices(request.user),
    }


def numbers_section(request: StaffRequest) -> dict[str, Any]:
    """Payments of today and of two weeks."""
    return {"numbers": numbers(timezone.localdate()), "as_table": request.GET.get("numbers") == "table"}


def activity_section(request: StaffRequest) -> dict[str, Any]:
    """What people of the team changed; what goes on by itself, and who looked or signed in, stands in the audit."""
    entries = Entry.objects.exclude(phase=Entry.Phase.ATTEMPT).filter(sighting__isnull=True)
    acts = entries.exclude(action__startswith="accounts.").exclude(actor_role="system")[:ACTIVITY]
    return {"activity": [(entry, sentence(entry)) for entry in acts]}


SECTIONS: dict[str, Callable[[StaffRequest], dict[str, Any]]] = {
    "home-health": health_section,
    "attention": attention_section,
    "work": work_section,
    "numbers": numbers_section,
    "activity": activity_section,
}


def recent_borrowers(user_id: int) -> list[tuple[Record, Any]]:
    """The borrowers this person looked at last, with when."""
    looks = Sighting.objects.filter(actor_id=user_id).exclude(entry__borrower_uuid="")
    looks = looks.select_related("entry")[:LOOKS]
    last: dict[str, Any] = {}
    for look in looks:
        last.setdefault(look.entry.borrower_uuid, look.last_at)
    found = {one.uuid: one for one in Record.objects.filter(kind=Kind.BORROWER, uuid__in=last)}
    return [(found[uuid], at) for uuid, at in last.items() if uuid in found][:RECENT]


def _with_borrower(follow_ups: Any) -> list[tuple[FollowUp, Record | None]]:
    rows = list(follow_ups)
    uuids = {one.borrower_uuid for one in rows}
    found = {one.uuid: one for one in Record.objects.filter(kind=Kind.BORROWER, uuid__in=uuids)}
    return [(one, found.get(one.borrower_uuid)) for one in rows]


@requires("home.snooze")
def snooze(request: StaffRequest) -> HttpResponse:
    """Put a line aside up to a day, with a reason that colleagues read."""
    item = _item(request)
    form = SnoozeForm(request.POST or None)
    if form.is_valid():
        actor = Actor.of(request)
        values = {"label": item.sentence[:300], "by_id": actor.id or 0, "by_name": actor.name}
        with transaction.atomic():
            Snooze.objects.update_or_create(key=item.key, defaults=values | form.cleaned_data)
            _record(actor, "home.snooze", item.sentence, item.borrower_uuid, form.cleaned_data["reason"])
        count_again(request.user)
        toast(request, "The line was put aside.")
        return done(request, reverse("home:index"))
    kind = Kind.BORROWER if item.borrower_uuid else ""
    log_page(
        request,
        kind=kind,
        uuid=item.borrower_uuid or item.key,
        label=item.sentence,
        borrower_uuid=item.borrower_uuid,
    )
    context = {"form": form, "item": item}
    return render_page(request, "home/snooze.html", context, status=422 if form.is_bound else 200)


@requires("home.snooze")
@require_POST
def wake(request: StaffRequest) -> HttpResponse:
    """Bring a line back before its day."""
    found = Snooze.objects.filter(key=request.POST.get("item", "")).first()
    if found:
        with transaction.atomic():
            found.delete()
            _record(Actor.of(request), "home.wake", found.label)
        count_again(request.user)
    return done(request, reverse("home:index"))


def _item(request: StaffRequest) -> Item:
    """The line that is meant, if it is still there."""
    key = request.GET.get("item", "")
    item = next((one for one in attention(request.user).shown("") if one.key == key), None)
    if item is None:
        raise Http404("This line is no longer in the list.")
    return item


def _record(actor: Actor, action: str, label: str, borrower_uuid: str = "", reason: str = "") -> None:
    append(actor, action, subject_label=label[:300], borrower_uuid=borrower_uuid, reason=reason)
