"""The first page: what needs a person, and where they left off."""

from django.db.models import F
from django.http import HttpResponse
from django.utils import timezone

from portal.accounts.roles import requires
from portal.audit.intents import settle_stale
from portal.audit.models import Entry, WriteIntent
from portal.audit.sentences import sentence
from portal.borrowers.models import Draft
from portal.gateway import StaffRequest
from portal.registry.lists import known, with_borrowers
from portal.registry.models import Kind, Record
from portal.ui.htmx import render_page


@requires("home.index")
def index(request: StaffRequest) -> HttpResponse:
    """Unknown outcomes first, then accounts past due; beside it drafts, recent borrowers and the team's work."""
    settle_stale()
    unknown = WriteIntent.objects.filter(state=WriteIntent.State.UNKNOWN)
    trouble = Record.objects.filter(flagged=True, archived_at__isnull=True, kind__in=[Kind.LOAN, Kind.LINE])
    flagged_count = trouble.count()
    entries = Entry.objects.exclude(phase=Entry.Phase.ATTEMPT).exclude(action__startswith="accounts.")
    context = {
        "today": timezone.localdate(),
        "waiting": unknown.count() + flagged_count,
        "unknown": unknown[:20],
        "flagged": with_borrowers(trouble.order_by(F("past_due").desc(nulls_last=True), "-id")[:20]),
        "flagged_count": flagged_count,
        "recent": known(Kind.BORROWER).order_by("-updated_at", "-id")[:8],
        "drafts": Draft.objects.filter(owner=request.user).order_by("-updated_at")[:8],
        "activity": [(entry, sentence(entry)) for entry in entries[:15]],
    }
    return render_page(request, "home/index.html", context)
