"""A person's own preferences."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.utils.http import url_has_allowed_host_and_scheme

from portal.accounts.forms import ProfileForm, ThemeForm
from portal.accounts.models import User
from portal.accounts.roles import requires
from portal.ui.htmx import done, render_page, toast


@requires("accounts.profile")
def profile(request: HttpRequest) -> HttpResponse:
    """Name, time zone, theme, density and shortcuts of the person who is signed in."""
    person = cast(User, request.user)
    form = ProfileForm(request.POST or None, instance=person)
    if form.is_valid():
        form.save()
        toast(request, "Your settings were saved.")
        return done(request, request.path)
    context = {"form": form, "person": person}
    return render_page(request, "accounts/profile.html", context, status=422 if form.is_bound else 200)


@requires("accounts.profile")
def theme(request: HttpRequest) -> HttpResponse:
    """Light or dark, from the menu of every page; goes back to where it was asked."""
    form = ThemeForm(request.POST, instance=cast(User, request.user))
    if form.is_valid():
        form.save()
    back = request.headers.get("Referer", "")
    safe = url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure())
    return done(request, back if safe else resolve_url("home:index"))
