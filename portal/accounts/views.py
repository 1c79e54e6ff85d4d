"""A person's preferences and sessions, password links, and pages after single sign-on and expired forms."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from allauth.mfa.models import Authenticator
from allauth.socialaccount.helpers import render_authentication_error
from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import SetPasswordForm
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
)
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from portal.accounts import expired_forms, password_links
from portal.accounts.adapter import forget_wrong_passwords, is_below_limit
from portal.accounts.forms import ForgottenPasswordForm, PreferencesForm, ThemeForm
from portal.accounts.models import User
from portal.accounts.roles import requires
from portal.accounts.sessions import browser_in_words, end_other_sessions
from portal.ui.htmx import finish_action, page_before, render_page, toast
from portal.ui.keys import row_key


@requires("accounts.profile")
def profile(request: HttpRequest) -> HttpResponse:
    """The signed-in person's name, time zone, theme, density and shortcuts."""
    person = cast(User, request.user)
    form = PreferencesForm(request.POST or None, instance=person)
    if form.is_valid():
        form.save()
        toast(request, "Settings saved.")
        return finish_action(request, request.path)
    context = {"form": form, "person": person, "factors": Authenticator.objects.filter(user=person)}
    return render_page(request, "accounts/profile.html", context, status=422 if form.is_bound else 200)


@requires("accounts.profile")
def theme(request: HttpRequest) -> HttpResponse:
    """Save the theme chosen in the menu, and return to the same page."""
    form = ThemeForm(request.POST, instance=cast(User, request.user))
    if form.is_valid():
        form.save()
    return finish_action(request, page_before(request))


@requires("accounts.profile")
@require_safe
def without_scripts(request: HttpRequest) -> HttpResponse:
    """Forget that this browser ran scripts, and return to the same page."""
    response = HttpResponseRedirect(page_before(request))
    response.delete_cookie("js")
    return response


# --- Sessions ---


@requires("accounts.profile")
def session(request: HttpRequest) -> HttpResponse:
    """The time left in this session and a CSRF token; a POST means that the person is still there."""
    left: float = request.session_left  # type: ignore[attr-defined]
    return JsonResponse({"left": int(left), "token": get_token(request), "person": request.user.pk})


@requires("accounts.profile")
def sessions(request: HttpRequest) -> HttpResponse:
    """Where this person is signed in."""
    found = UserSession.objects.purge_and_list(request.user)
    found.sort(key=lambda one: (not one.is_current(), -one.last_seen_at.timestamp()))
    rows = [(one, browser_in_words(one.user_agent)) for one in found]
    return render_page(request, "accounts/sessions.html", {"sessions": rows})


@requires("accounts.profile")
@require_POST
def end_sessions(request: HttpRequest) -> HttpResponse:
    """End one of this person's other sessions, or all of them."""
    others = UserSession.objects.filter(user=request.user).exclude(session_key=request.session.session_key)
    wanted = request.POST.get("session", "")
    chosen = others if wanted == "all" else others.filter(pk=row_key(wanted))
    count = end_other_sessions(request, request.user, chosen, "ended by the user") if chosen else 0
    toast(request, f"{count} session{pluralize(count)} ended.")
    return finish_action(request, reverse("accounts:sessions"))


@requires("accounts.profile")
def resume(request: HttpRequest) -> HttpResponse:
    """The form that was posted after its session expired, ready to send."""
    expired = expired_forms.take_expired_form(request, cast(User, request.user))
    return render_page(request, "accounts/resume.html", {"expired": expired})


@requires("accounts.profile")
def no_password(request: HttpRequest) -> HttpResponse:
    """Say why a single sign-on account has no password, in place of allauth's page."""
    toast(request, "This account uses single sign-on. An administrator can set a password.")
    return finish_action(request, reverse("accounts:profile"))


# --- Without a session ---


@login_not_required
def forgot_password(request: HttpRequest) -> HttpResponse:
    """Request a link by email; the response is the same whether or not the address has an account."""
    if not password_links.are_enabled():
        raise Http404
    form = ForgottenPasswordForm(request.POST or None)
    is_sent = form.is_valid()
    if is_sent and not is_below_limit(request, "reset_password"):
        form.add_error(None, "Too many requests. Wait a minute, then try again.")
        is_sent = False
    if is_sent:
        password_links.request_link(request, form.cleaned_data["email"])
    context = {"form": form, "is_sent": is_sent, "hours": password_links.LINK_HOURS}
    status = 422 if form.is_bound and not is_sent else 200
    return render(request, "account/forgot_password.html", context, status=status)


@sensitive_post_parameters()
@login_not_required
def choose_password(request: HttpRequest, pk: int, token: str) -> HttpResponse:
    """Set a password with a link from an email."""
    if not password_links.are_enabled():
        raise Http404
    person = password_links.find_person(pk, token)
    form = SetPasswordForm(person, request.POST or None) if person else None
    if person and form and form.is_valid():
        if password_links.use_link(pk, token, form.cleaned_data["new_password1"]):
            forget_wrong_passwords(request, person.username)
            messages.success(request, "Your password is set. Sign in with it.", extra_tags="sign-in")
            return HttpResponseRedirect(reverse("account_login"))
        form = None
    context = {"form": form, "person": person}
    status = 404 if not form else 422 if form.is_bound else 200
    return render(request, "account/choose_password.html", context, status=status)


def single_sign_on(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Show a page instead of failing if the identity provider is down or sends an invalid answer."""

    @login_not_required
    @wraps(view)
    def guarded(request: HttpRequest, provider_id: str, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, provider_id, **kwargs)
        # OSError covers all network failures; an answer nested too deeply for Python is a RecursionError.
        except (OSError, KeyError, ValueError, RecursionError) as error:
            answer: HttpResponseBase = render_authentication_error(request, provider_id, exception=error)
            return answer

    return guarded


def readable_passkeys(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Show an error if a stored passkey can't be read; allauth would fail on it."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except (ValidationError, KeyError, TypeError, AttributeError, ValueError) as error:
            words = "A passkey of this account can't be read; an administrator can remove it"
            raise PermissionDenied(words) from error

    return guarded
