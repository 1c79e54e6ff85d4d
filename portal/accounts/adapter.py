"""How allauth behaves here: no registration, throttled passwords, encrypted second factors."""

import ipaddress
import math
import time
from typing import Any
from urllib.parse import unquote_plus

from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.core.internal import ratelimit
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.contrib.auth.signals import user_login_failed
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import pluralize
from django.urls import reverse

from portal.accounts.encryption import decrypt, encrypt
from portal.accounts.models import User
from portal.accounts.single_sign_on import provider_sign_out
from servicing.masking import tax_numbers

APP = "allauth.account"
TOO_MANY = "too_many_login_attempts"
MAX_ADDRESS_CHARACTERS = 2_000


def account_with_second_factor(name: str) -> User | None:
    """The active account with this sign-in name, if it has a second factor."""
    account = User.objects.filter(username__iexact=name, is_active=True).first()
    kinds = [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]
    return account if account and is_mfa_enabled(account, kinds) else None


def is_below_limit(request: HttpRequest, action: str, key: str = "", *, dry_run: bool = False) -> bool:
    """Count one try against a limit of ``ACCOUNT_RATE_LIMITS``, or with ``dry_run`` only check it."""
    return ratelimit.consume(request, app=APP, action=action, key=key, dry_run=dry_run) is not None


def too_many_attempts(request: HttpRequest, *limits: tuple[str, str]) -> ValidationError:
    """The error past one of these limits (action and key), with the time until all of them allow another try."""
    seconds = 1.0
    for action, key in limits:
        for rate in ratelimit.get_rates(app=APP, action=action):
            cache_key = ratelimit.get_cache_key(request, app=APP, action=action, rate=rate, key=key)
            tries: list[float] = cache.get(cache_key, [])  # The newest first.
            if len(tries) >= rate.amount:
                seconds = max(seconds, tries[rate.amount - 1] + rate.duration - time.time())
    minutes = math.ceil(seconds / 60)
    words = f"Too many attempts. Try again in {minutes} minute{pluralize(minutes)}."
    return ValidationError(words, code=TOO_MANY)


def forget_wrong_passwords(request: HttpRequest, name: str) -> None:
    """Reset the throttle, so that a person with a new password can sign in immediately from this address."""
    key = get_adapter(request)._get_login_attempts_cache_key(request, username=name)
    ratelimit.clear(request, app=APP, action="login_failed", key=key)


class StaffAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Sign-in for accounts that only administrators create.

    Wrong passwords count by name and address, so that nobody can lock out a person from elsewhere, and for an address
    the names count, so that nobody there locks out the others. The right password together with a second factor always
    works; past a limit, only both together get an answer.
    """

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": "Incorrect username or password.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return False: administrators create accounts."""
        return False

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        """Authenticate active accounts only. Others see the same message as after a wrong password."""
        user = super().authenticate(request, **credentials)
        if user:
            self._uncount_name()
        elif self.exceeded:
            raise too_many_attempts(request, *self.exceeded)
        return user if user and user.is_active else None

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Past a limit, check the password only if the account has a second factor."""
        # Counted before the password is checked, because guesses may arrive at once; a right one isn't counted.
        key = self._get_login_attempts_cache_key(request, **credentials)
        self.exceeded: list[tuple[str, str]] = []
        if not self._count_name(request, key):
            self.exceeded.append(("names_failed_at_address", ""))
        try:
            super().pre_authenticate(request, **credentials)
        except ValidationError:
            self.exceeded.append(("login_failed", key))
        if self.exceeded and not account_with_second_factor(str(credentials.get("username", ""))):
            self._rollback_login_failed_rl_usage()
            raise too_many_attempts(request, *self.exceeded)

    def _count_name(self, request: HttpRequest, key: str) -> bool:
        """Count a name once at this address, however often it fails. False if too many others failed there."""
        self.counted = [ratelimit.consume(request, app=APP, action="name_failed_at_address", key=key)]
        if self.counted == [None]:
            return True
        self.counted.append(ratelimit.consume(request, app=APP, action="names_failed_at_address"))
        if self.counted[-1]:
            return True
        self._uncount_name()
        return False

    def _uncount_name(self) -> None:
        for usage in filter(None, self.counted):
            usage.rollback()
        self.counted = []

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        """Record a sign-in to a deactivated account with a passkey or single sign-on."""
        credentials = {"username": user.username}
        user_login_failed.send(sender=User, credentials=credentials, request=request, at="inactive account")
        response: HttpResponse = super().respond_user_inactive(request, user)
        return response

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Count a wrong password against the name, from any address."""
        is_below_limit(request, "login_failed_by_name", str(credentials.get("username", "")).casefold())

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        name = super()._get_login_attempts_cache_key(request, **credentials)
        return f"{name}:{self.get_client_ip(request)}"

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """allauth's ways to confirm, with our word for a passkey."""
        found: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        for way in found:
            if way["id"] == "mfa_reauthenticate:webauthn":
                way["description"] = "Use a passkey"
        return found

    def get_client_ip(self, request: HttpRequest) -> str:
        """The address used for throttling; all browsers share one if the server listens on a socket file."""
        try:
            return str(ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")))
        except ValueError:
            return "0.0.0.0"  # noqa: S104  # Nothing is bound to it.

    def is_safe_url(self, url: str) -> bool:
        """Reject addresses with an SSN or EIN: the session would store them until the second factor is entered."""
        if not url or len(url) > MAX_ADDRESS_CHARACTERS:
            return False
        return bool(super().is_safe_url(url)) and not any(tax_numbers(unquote_plus(url)))

    def get_logout_redirect_url(self, request: HttpRequest) -> str:
        return provider_sign_out(request) or str(super().get_logout_redirect_url(request))

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("accounts:profile")


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Encrypts the secrets of authenticator apps and recovery codes in the database, and names passkeys."""

    def encrypt(self, text: str) -> str:
        return encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return decrypt(encrypted_text)

    def generate_authenticator_name(self, user: User, type: Authenticator.Type) -> str:
        number = Authenticator.objects.filter(user_id=user.pk, type=type).count()
        return f"Passkey {number + 1}" if number else "Passkey"

    def get_totp_label(self, user: User) -> str:
        return user.username
