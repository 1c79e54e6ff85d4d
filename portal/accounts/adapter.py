"""How sign-in behaves here: nobody registers themselves, and a fragment leads the whole page to the sign-in."""

from collections.abc import Callable
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import resolve_url


class StaffAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Accounts are made by an administrator."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Never: staff accounts come from the admin or ``createsuperuser``."""
        return False

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        """Nobody whose account is deactivated; they are told no more than after a wrong password."""
        user = super().authenticate(request, **credentials)
        return user if user and user.is_active else None


class SignInMiddleware(LoginRequiredMiddleware):
    """Whoever is signed out signs in first, and then is back on the page where they were."""

    def handle_no_permission(self, request: Any, view_func: Callable[..., HttpResponseBase]) -> Any:
        if not request.htmx:
            return super().handle_no_permission(request, view_func)
        page = request.htmx.current_url_abs_path or resolve_url("home:index")
        sign_in = redirect_to_login(
            page, self.get_login_url(view_func), self.get_redirect_field_name(view_func)
        )
        return HttpResponse(status=204, headers={"HX-Redirect": sign_in.url})
