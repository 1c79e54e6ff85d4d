"""How allauth behaves here: nobody registers, second factors rest sealed, single sign-on meets known staff only."""

import ipaddress
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse

from portal.accounts.models import User
from portal.accounts.seal import seal, unseal


class StaffAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Accounts are made by an administrator."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": "Sign-in name and password do not belong together.",
        "too_many_login_attempts": "Too many attempts failed. Wait five minutes, then try again.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Never: staff accounts come from the admin or ``createsuperuser``."""
        return False

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        """Nobody whose account is deactivated; they are told no more than after a wrong password."""
        user = super().authenticate(request, **credentials)
        return user if user and user.is_active else None

    def get_client_ip(self, request: HttpRequest) -> str:
        """The address that throttling goes by; all browsers share one where the server listens on a file."""
        try:
            return str(ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")))
        except ValueError:
            return "0.0.0.0"  # noqa: S104  # Nothing is bound to it.

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("accounts:profile")


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """What an authenticator app and recovery codes are made from is of no use to whoever reads the database."""

    def encrypt(self, text: str) -> str:
        return seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(encrypted_text)

    def get_totp_label(self, user: User) -> str:
        return user.username


class SingleSignOnAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """The identity provider says who somebody is; whether they are staff, and as what, is said here."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Never."""
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Connect an identity the first time: its verified e-mail address is that of exactly one account."""
        if sociallogin.state.get("process", "login") != "login":
            raise PermissionDenied("An identity is connected by signing in with it")
        if sociallogin.is_existing:
            return
        told = [one.email for one in sociallogin.email_addresses if one.email and one.verified is True]
        staff = [user for email in told for user in User.objects.filter(email__iexact=email, is_active=True)]
        if len(staff) == 1:
            sociallogin.connect(request, staff[0])
