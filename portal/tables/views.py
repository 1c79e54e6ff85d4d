"""Saves the state of a list as a view, and deletes one's own views."""

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.core.folding import folded_key
from portal.gateway.client import StaffRequest
from portal.tables.models import SavedView
from portal.tables.saved_views import SaveForm
from portal.ui.htmx import finish_action, render_page, toast


@requires("saved_views.save")
def save(request: StaffRequest) -> HttpResponse:
    """Save a state under a name, replacing one's own view of that name in any spelling."""
    form = SaveForm(request.POST or None, initial=request.GET.dict())
    if form.is_valid():
        place = {name: form.cleaned_data[name] for name in ("list", "name")}
        state = {name: form.cleaned_data[name] for name in ("query", "is_shared")}
        with transaction.atomic():
            # First, because it makes another save of this name wait.
            append(Actor.of(request), "saved_views.save", subject_label=place["name"], detail=place | state)
            own = SavedView.objects.filter(owner=request.user, list=place["list"])
            key = folded_key(place["name"])
            view = next((one for one in own if folded_key(one.name) == key), SavedView(owner=request.user))
            for name, value in (place | state).items():
                setattr(view, name, value)
            view.save()
        toast(request, f"The view “{view}” was saved.")
        return finish_action(request, view.get_absolute_url())
    return render_page(request, "lists/save_view.html", {"form": form}, status=422 if form.is_bound else 200)


@require_POST
@requires("saved_views.save")
def delete(request: StaffRequest, view_id: int) -> HttpResponse:
    """Delete one's own view; shared views of others can't be deleted."""
    view = get_object_or_404(SavedView, pk=view_id, owner=request.user)
    with transaction.atomic():
        append(Actor.of(request), "saved_views.delete", subject_label=view.name, detail={"list": view.list})
        view.delete()
    toast(request, f"The view “{view}” was deleted.")
    return finish_action(request, reverse(view.list))
