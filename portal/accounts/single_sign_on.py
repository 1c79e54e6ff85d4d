"""Single sign-on: the identity provider says who somebody is; the portal decides whether they are staff, and their
role.

Hides which of a provider's claims count, and that providers differ in where they put them.
"""

import json
import secrets
from typing import Any, NoReturn
from urllib.parse import urlencode

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from portal.accounts.encryption import CannotDecrypt, decrypt, encrypt
from portal.accounts.models import User
from portal.accounts.roles import Role

PROVIDER_ID = "sso"
SESSION_KEY = "identity_token"
"""The session key of the encrypted identity token, which providers need at sign-out."""


class Claims:
    """The provider's claims about a person, from the identity token and the userinfo endpoint."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.sources: list[dict[str, Any]] = [data.get(name) or {} for name in ("id_token", "userinfo")]
        if len({str(source["sub"]) for source in self.sources if source.get("sub")}) != 1:
            raise PermissionDenied("The identity token and the userinfo endpoint name different people")

    def text(self, name: str) -> str:
        """A claim as text, preferably from the identity token."""
        values = (source.get(name) for source in self.sources)
        texts = (value.strip() for value in values if isinstance(value, str))
        return next(filter(None, texts), "")

    def email(self) -> str:
        """The email address, if it is verified or the provider is trusted; otherwise empty."""
        having = [source for source in self.sources if source.get("email")]
        if len({str(source["email"]).casefold() for source in having}) != 1:
            return ""
        said = [source.get("email_verified") for source in having]
        # Some providers send the flag as text.
        is_verified = [str(one).lower() == "true" for one in said if one is not None]
        if not all(is_verified) or not (is_verified or settings.OIDC_TRUST_EMAIL):
            return ""
        return self.text("email")

    def role(self) -> str:
        """The role of the first group in ``OIDC_ROLES`` that the person belongs to, or empty."""
        groups: set[str] = set()
        for source in self.sources:
            listed = source.get(settings.OIDC_GROUPS_CLAIM)
            groups |= {
                one for one in (listed if isinstance(listed, list) else [listed]) if isinstance(one, str)
            }
        return next((role for group, role in settings.OIDC_ROLES if group in groups), "")


class SingleSignOnProvider(OpenIDConnectProvider):  # type: ignore[misc]
    """Sends a nonce, which must come back in the identity token of this sign-in."""

    def sociallogin_from_response(self, request: HttpRequest, response: Any) -> Any:
        """Read the claims with NULs replaced: PostgreSQL can't store them, and SQLite compares only what is before."""
        claims = json.loads(json.dumps(response).replace(r"\u0000", r"\ufffd"))
        return super().sociallogin_from_response(request, claims)

    def redirect(self, request: HttpRequest, process: str, *args: Any, **kwargs: Any) -> Any:
        nonce = secrets.token_urlsafe(24)
        params = kwargs.pop("auth_params", None) or self.get_auth_params()
        return super().redirect(
            request, process, *args, auth_params=params | {"nonce": nonce}, nonce=nonce, **kwargs
        )


class SingleSignOnAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Finds or creates the account of an identity, and sets its role from its groups."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """Return only identity providers from the settings, not from the database."""
        apps = super().list_apps(request, provider=provider, client_id=client_id)
        return [app for app in apps if app.pk is None]

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Return False: an account that may be created exists before allauth asks."""
        return False

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: str | None = None
    ) -> SingleSignOnProvider:
        found = super().get_provider(request, provider, client_id=client_id)
        return SingleSignOnProvider(request, app=found.app)

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Check that the answer belongs to this sign-in, connect a new identity, and apply the role of its groups."""
        data = sociallogin.account.extra_data
        nonce = sociallogin.state.get("nonce")
        why = ""
        if not nonce or (data.get("id_token") or {}).get("nonce") != nonce:
            why = "The identity token belongs to another sign-in"
        elif sociallogin.state.get("process", "login") != "login":
            why = "An identity is connected by signing in with it"
        if why:
            record_rejection(request, sociallogin.account.uid, why)
            raise PermissionDenied(why)
        claims = Claims(data)
        role = claims.role()
        if settings.OIDC_ROLES and not role:
            reject_sign_in(request, claims, "no_role")
        if not sociallogin.is_existing:
            sociallogin.connect(request, find_or_create_account(request, claims, role))
        person: User = sociallogin.user
        if role and person.is_active and person.role != role:
            person.role, person.changed_by = role, "single-sign-on"
            person.save(update_fields=["role"])


def find_or_create_account(request: HttpRequest, claims: Claims, role: str) -> User:
    """Find the one active account of a person at their first sign-in, or create one if the settings allow it."""
    by_email = settings.OIDC_MATCH == "email"
    key = claims.email() if by_email else claims.text(settings.OIDC_MATCH)
    if not key:
        reject_sign_in(request, claims, "no_claim")
    # Only "sub" is case-sensitive at providers.
    field = (
        "email__iexact" if by_email else "username" if settings.OIDC_MATCH == "sub" else "username__iexact"
    )
    matching = User.objects.filter(**{field: key}, is_active=True)
    # PostgreSQL takes some letters for others, such as "ı" for "i".
    name = field.partition("__")[0]
    found: list[User] = [one for one in matching if getattr(one, name).lower() == key.lower()]
    if len(found) == 1:
        return found[0]
    if found or not settings.OIDC_CREATE:
        reject_sign_in(request, claims, "no_account")
    email = claims.email()
    # A deactivated account, or one that may be someone else's, is neither connected nor duplicated.
    if (
        User.objects.filter(username__iexact=key).exists()
        or (email and User.objects.filter(email__iexact=email).exists())
    ):  # fmt: skip
        reject_sign_in(request, claims, "no_account")
    person = User(
        username=key,
        email=email,
        first_name=claims.text("given_name")[:150],
        last_name=claims.text("family_name")[:150],
        role=Role(role),
    )
    person.changed_by = "single-sign-on"
    person.set_unusable_password()
    try:
        person.full_clean()
    except ValidationError:
        reject_sign_in(request, claims, "no_account")
    person.save()
    return person


def record_rejection(request: HttpRequest, who: str, why: str) -> None:
    """Record a sign-in at the provider that is rejected here."""
    user_login_failed.send(
        sender=User, credentials={"username": who}, request=request, at=f"single sign-on: {why}"
    )


def reject_sign_in(request: HttpRequest, claims: Claims, why: str) -> NoReturn:
    """Record and explain a valid sign-in at the provider that leads to no account here."""
    who = claims.text(settings.OIDC_MATCH) or claims.text("email") or claims.text("sub")
    record_rejection(request, who, why)
    words = {"why": why, "match": settings.OIDC_MATCH, "who": who}
    raise ImmediateHttpResponse(render(request, "socialaccount/no_account.html", words, status=403))


# --- Coming back, and signing out ---


class ReturnAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """Stores the raw identity token for signing out."""

    def parse_token(self, data: dict[str, Any]) -> Any:
        self.request.identity_token = data.get("id_token", "")
        return super().parse_token(data)


def callback(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Handle the return from the identity provider."""
    try:
        answer: HttpResponseBase = OAuth2CallbackView.adapter_view(ReturnAdapter(request, provider_id))(
            request
        )
    except SocialApp.DoesNotExist:
        raise Http404 from None
    token = getattr(request, "identity_token", "")
    if token and request.user.is_authenticated:
        request.session[SESSION_KEY] = encrypt(token)
    return answer


def provider_sign_out(request: HttpRequest) -> str:
    """The address that ends the session at the identity provider too; empty if there is none."""
    sealed = request.session.get(SESSION_KEY)
    if not sealed or not settings.OIDC_SIGN_OUT:
        return ""
    try:
        token, address = decrypt(sealed), discover(request).get("end_session_endpoint")
    except (CannotDecrypt, SocialApp.DoesNotExist, OSError, ValueError):
        return ""  # Signing out here does not depend on the provider.
    if not isinstance(address, str) or not address:
        return ""
    words = {
        "id_token_hint": token,
        "client_id": settings.OIDC_CLIENT_ID,
        "post_logout_redirect_uri": request.build_absolute_uri(reverse(settings.LOGIN_URL)),
    }
    return f"{address}{'&' if '?' in address else '?'}{urlencode(words)}"


def discover(request: HttpRequest | None = None) -> dict[str, Any]:
    """Fetch the issuer's OpenID configuration."""
    provider = get_adapter(request).get_provider(request, PROVIDER_ID)
    config: dict[str, Any] = provider.get_oauth2_adapter(request).openid_config
    return config
