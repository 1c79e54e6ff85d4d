"""Changes that wait for a second person: the list, one of them, and the words on it."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from portal.accounts.roles import RoleMissing, requires
from portal.approvals import steps
from portal.approvals.forms import DecideForm
from portal.approvals.models import Approval
from portal.audit.models import Actor
from portal.audit.sightings import log_list, saw
from portal.gateway import StaffRequest
from portal.ui.htmx import done, render_page, toast

SHOWN = 100


@requires("approvals.index")
def index(request: StaffRequest) -> HttpResponse:
    """What waits, and what came of the latest."""
    waiting = steps.open_ones()
    ended = Approval.objects.exclude(state__in=[*Approval.OPEN, *Approval.IN_FLIGHT])[:SHOWN]
    log_list(request, count=len(waiting) + len(ended))
    return render_page(request, "approvals/index.html", {"waiting": waiting, "ended": ended})


@requires("approvals.index")
def detail(request: StaffRequest, approval_id: UUID) -> HttpResponse:
    """One change: what it is, why, and what this person may do about it."""
    steps.expire_old()
    approval = get_object_or_404(Approval, pk=approval_id)
    saw(
        Actor.of(request),
        "approvals.detail",
        kind=approval.subject_kind,
        uuid=approval.subject_uuid,
        label=approval.label,
        borrower_uuid=approval.borrower_uuid,
    )
    return _page(request, approval, DecideForm())


@requires("approvals.decide")
@require_POST
def decide(request: StaffRequest, approval_id: UUID) -> HttpResponse:
    """Approve or refuse somebody else's change."""
    steps.expire_old()
    approval = get_object_or_404(Approval, pk=approval_id)
    if approval.maker_id == request.user.pk:
        raise RoleMissing("approvals.decide")
    approves = request.POST.get("decision") == "approve"
    form = DecideForm(request.POST, approves=approves)
    if not form.is_valid():
        return _page(request, approval, form, status=422)
    if approves and steps.has_moved(approval):
        return _page(request, approval, form, status=409)
    try:
        steps.decide(Actor.of(request), approval, approves=approves, comment=form.cleaned_data["comment"])
    except steps.Gone as error:
        return _page(request, error.approval, DecideForm(), status=409)
    toast(request, "Approved: its maker can send it now." if approves else "Refused: nothing is sent.")
    return done(request, reverse("approvals:index"))


@requires("approvals.withdraw")
@require_POST
def withdraw(request: StaffRequest, approval_id: UUID) -> HttpResponse:
    """Take back one's own change."""
    approval = get_object_or_404(Approval, pk=approval_id, maker_id=request.user.pk, state__in=Approval.OPEN)
    try:
        steps.withdraw(Actor.of(request), approval)
    except steps.Gone as error:
        return _page(request, error.approval, DecideForm(), status=409)
    toast(request, "Withdrawn: nothing is sent.")
    return done(request, approval.url)


def _page(request: StaffRequest, approval: Approval, form: DecideForm, *, status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {
        "approval": approval,
        "form": form,
        "rows": approval.proposal.get("rows", []),
        "why_not": steps.why_not(request.user, approval),
        "is_mine": approval.maker_id == request.user.pk,
        "has_moved": (approval.is_open or approval.may_be_sent) and steps.has_moved(approval),
    }
    return render_page(request, "approvals/detail.html", context, status=status)
