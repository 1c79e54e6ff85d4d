"""Pages of changes that need a second person: the list, one change, and the decision on it."""

from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from portal.accounts.roles import RoleMissing, requires
from portal.approvals import lifecycle
from portal.approvals.models import Approval
from portal.audit.chain import same_subject
from portal.audit.models import Actor
from portal.audit.view_log import log_list, log_view
from portal.gateway.client import StaffRequest
from portal.ui.forms import StaffForm, TextField
from portal.ui.htmx import finish_action, render_page, toast

MAX_CLOSED = 100


class DecisionForm(StaffForm):
    """Approve or reject; a rejection needs a reason."""

    nothing_happened = "Nothing was decided."

    comment = TextField(
        label="Comment",
        required=False,
        max_length=200,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Shown to the requester and kept in the audit trail. Required to reject.",
    )

    def __init__(self, data: Any = None, *, approves: bool = True) -> None:
        super().__init__(data)
        if not approves:
            self.fields["comment"].required = True
            self.fields["comment"].error_messages["required"] = "Enter a reason."


@requires("approvals.index")
def index(request: StaffRequest) -> HttpResponse:
    """The open requests, and the latest closed ones."""
    waiting = lifecycle.open_approvals()
    closed = Approval.objects.exclude(state__in=[*Approval.OPEN, *Approval.IN_FLIGHT])[:MAX_CLOSED]
    log_list(request, count=len(waiting) + len(closed))
    return render_page(request, "approvals/index.html", {"waiting": waiting, "closed": closed})


@requires("approvals.index")
def detail(request: StaffRequest, approval_id: UUID) -> HttpResponse:
    """One request: its changes, its reason, and what this person may do."""
    lifecycle.expire_old()
    approval = get_object_or_404(Approval, pk=approval_id)
    log_view(Actor.of(request), "approvals.detail", **same_subject(approval, approval.label))
    return detail_page(request, approval)


@requires("approvals.decide")
@require_POST
def decide(request: StaffRequest, approval_id: UUID) -> HttpResponse:
    """Approve or reject somebody else's change."""
    lifecycle.expire_old()
    approval = get_object_or_404(Approval, pk=approval_id)
    if approval.maker_id == request.user.pk:
        raise RoleMissing("approvals.decide")
    approves = request.POST.get("decision") == "approve"
    form = DecisionForm(request.POST, approves=approves)
    if not form.is_valid():
        return detail_page(request, approval, form, status=422)
    if approves and lifecycle.is_outdated(approval):
        return detail_page(request, approval, form, status=409)
    try:
        lifecycle.decide(Actor.of(request), approval, approves=approves, comment=form.cleaned_data["comment"])
    except lifecycle.StateChanged as error:
        return detail_page(request, error.approval, status=409)
    toast(request, "Approved. The requester can send it now." if approves else "Rejected. Nothing is sent.")
    return finish_action(request, reverse("approvals:index"))


@requires("approvals.withdraw")
@require_POST
def withdraw(request: StaffRequest, approval_id: UUID) -> HttpResponse:
    approval = get_object_or_404(Approval, pk=approval_id, maker_id=request.user.pk, state__in=Approval.OPEN)
    try:
        lifecycle.withdraw(Actor.of(request), approval)
    except lifecycle.StateChanged as error:
        return detail_page(request, error.approval, status=409)
    toast(request, "Request withdrawn. Nothing is sent.")
    return finish_action(request, approval.url)


def detail_page(
    request: StaffRequest, approval: Approval, form: DecisionForm | None = None, *, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {
        "approval": approval,
        "form": form or DecisionForm(),
        "rows": approval.proposal.get("rows", []),
        "why_not": lifecycle.reason_against_deciding(request.user, approval),
        "is_mine": approval.maker_id == request.user.pk,
        "is_outdated": (approval.is_open or approval.may_be_sent) and lifecycle.is_outdated(approval),
    }
    return render_page(request, "approvals/detail.html", context, status=status)
