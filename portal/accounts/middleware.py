"""What happens to every request before its view: client address, session limits, a required second factor.

Hides that a session expires (idle too long, or too old), that background requests of a page don't extend it, and that
a form posted too late is stored encrypted until the same person signs in again.
"""

from collections.abc import Callable
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.core.exceptions import ReauthenticationRequired
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.deprecation import MiddlewareMixin
from django_htmx.http import HttpResponseClientRedirect

from portal.accounts import expired_forms, sessions
from portal.accounts.models import User
from portal.ui.htmx import current_address
from servicing.masking import masked_text

View = Callable[..., HttpResponseBase]
MAX_AGENT_CHARACTERS = 500


class AddressMiddleware(MiddlewareMixin):
    """Sets the browser's address, as trusted proxies report it, and masks EIN and SSN in its user agent.

    Throttling goes by the address; sessions and the audit trail store both.
    """

    def process_request(self, request: HttpRequest) -> None:
        forwarded = [one.strip() for one in request.headers.get("X-Forwarded-For", "").split(",")]
        if 0 < settings.TRUSTED_PROXIES <= len(forwarded):
            request.META["REMOTE_ADDR"] = forwarded[-settings.TRUSTED_PROXIES]
        if agent := request.META.get("HTTP_USER_AGENT"):
            request.META["HTTP_USER_AGENT"] = masked_text(agent[:MAX_AGENT_CHARACTERS])


class SessionMiddleware(MiddlewareMixin):
    """Ends expired sessions, tells every page how long its session lasts, and forbids caching."""

    def process_request(self, request: Any) -> None:
        request.expired_user = None
        if request.user.is_authenticated:
            person = request.user
            request.session_left = sessions.seconds_left(request)
            if request.session_left <= 0:
                sessions.end_session(request)
                request.user, request.expired_user = AnonymousUser(), person

    def process_response(self, request: Any, response: HttpResponse) -> HttpResponse:
        if request.user.is_authenticated and hasattr(request, "session_left"):
            response["X-Session-Left"] = str(int(request.session_left))
        if not response.has_header("Cache-Control"):
            patch_cache_control(response, no_store=True)
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Ask the person to confirm their identity. What they posted is not stored, so they type it again."""
        if not isinstance(error, ReauthenticationRequired):
            return None
        methods = get_adapter().get_reauthentication_methods(request.user)
        confirm = methods[0]["url"] if methods else settings.LOGIN_URL
        return redirect_to_login(request.path, confirm)


class SignInMiddleware(LoginRequiredMiddleware):
    """Requires signing in, and returns people to their page afterwards."""

    def process_view(
        self, request: Any, view_func: View, view_args: tuple[Any, ...], view_kwargs: dict[str, Any]
    ) -> HttpResponseBase | None:
        refused = super().process_view(request, view_func, view_args, view_kwargs)
        if refused or request.user.is_anonymous or not lacks_second_factor(request):
            return refused
        needed = ("mfa_", "account_", "accounts:session", "accounts:theme")
        if request.resolver_match.view_name.startswith(needed):
            return None
        return redirect_whole_page(request, reverse("mfa_index"))

    def handle_no_permission(self, request: Any, view_func: View) -> Any:
        if request.method == "POST" and expired_forms.save_expired_form(request):
            return redirect_whole_page(request, redirect_to_login(reverse("accounts:resume")).url)
        if not request.htmx:
            return super().handle_no_permission(request, view_func)
        page = current_address(request) or resolve_url("home:index")
        return redirect_whole_page(request, redirect_to_login(page).url)


def redirect_whole_page(request: Any, url: str) -> HttpResponse:
    """Redirect the whole page, even if htmx asked for a fragment."""
    return HttpResponseClientRedirect(url) if request.htmx else HttpResponseRedirect(url)


def lacks_second_factor(request: Any) -> bool:
    """Whether this person must set up a second factor; single sign-on has its own checks."""
    person: User = request.user
    required = settings.SECOND_FACTOR_REQUIRED
    if "all" not in required and person.role not in required:
        return False
    kinds = [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]
    return not sessions.is_single_sign_on(request) and not is_mfa_enabled(person, kinds)
