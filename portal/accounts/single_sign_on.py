"""Single sign-on: the identity provider says who somebody is; the portal decides whether they are staff, and their
role.

Hides which of a provider's claims count, and that providers differ in where they put them.
"""

import re
import secrets
from http import HTTPStatus
from typing import Any, NoReturn
from urllib.parse import urlencode

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.app_settings import UID_MAX_LENGTH
from allauth.socialaccount.models import SocialAccount, SocialApp
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
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
from portal.accounts.models import LastAdministrator, User, keep_administrator
from portal.accounts.roles import Role

PROVIDER_ID = "sso"
SESSION_KEY = "identity_token"
"""The session key of the encrypted identity token, which providers need at sign-out."""
SOURCES = ("id_token", "userinfo")
TEXT_CLAIMS = ("sub", "nonce", "email", "preferred_username", "upn", "given_name", "family_name")
GROUPS = "groups"
"""Where the groups are in readable claims, whatever claim they came in."""
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
MAX_RECORDED_GROUPS = 20
MAX_SHOWN_CHARACTERS = 150
MAX_HINT_CHARACTERS = 6_000
REJECTED = "Single sign-on rejected"


class AnswerRejected(PermissionDenied):
    """The provider's answer can't be used for this sign-in."""

    def __init__(self, why: str, who: str) -> None:
        super().__init__(why)
        self.why = why
        self.who = who


class SignInRejected(Exception):
    """The provider's answer is valid, but leads to no account here.

    ``why`` completes "Your sign-in worked, but …", ``todo`` "Ask your administrator to …".
    """

    def __init__(self, code: str, why: str, todo: str, title: str = "No account here") -> None:
        super().__init__(code)
        self.code = code
        self.why = why
        self.todo = todo
        self.title = title


def readable_claims(source: Any) -> dict[str, Any]:
    """The claims used here, each in its own type; a claim of another type counts as missing."""
    source = source if isinstance(source, dict) else {}
    claims = {name: text for name in TEXT_CLAIMS if (text := storable_text(source.get(name)))}
    listed = source.get(settings.OIDC_GROUPS_CLAIM)
    groups = map(storable_text, listed if isinstance(listed, list) else [listed])
    verified = source.get("email_verified")
    # Some providers send the flag as text.
    flag = {"email_verified": str(verified).lower() == "true"} if verified is not None else {}
    return claims | flag | {GROUPS: list(filter(None, groups))}


def storable_text(value: Any) -> str:
    """A text without the characters that PostgreSQL can't store; SQLite compares only what is before a NUL."""
    return UNSTORABLE.sub("\ufffd", value).strip() if isinstance(value, str) else ""


class Claims:
    """The provider's claims about a person, from the identity token and the userinfo endpoint."""

    def __init__(self, data: dict[str, dict[str, Any]]) -> None:
        self.sources = [data[name] for name in SOURCES]

    def text(self, name: str) -> str:
        """A claim as text, preferably from the identity token."""
        return next((source[name] for source in self.sources if name in source), "")

    def who(self) -> str:
        """What the person is called in the trail."""
        return self.text(settings.OIDC_MATCH) or self.text("email") or self.text("sub")

    def subject(self) -> str:
        """The provider's ID of the person."""
        subjects = {source["sub"] for source in self.sources if "sub" in source}
        if not subjects:
            raise AnswerRejected("The identity provider sent no ID of the person (“sub”) as text", self.who())
        if len(subjects) > 1:
            why = "The identity token and the userinfo endpoint name different people"
            raise AnswerRejected(why, self.who())
        subject = self.text("sub")
        if len(subject) > UID_MAX_LENGTH:
            why = f"The ID of the person (“sub”) has {len(subject)} characters; {UID_MAX_LENGTH} are allowed"
            raise AnswerRejected(why, self.who())
        return subject

    def email(self) -> str:
        """The email address, if it is verified or the provider is trusted; otherwise empty."""
        having = [source for source in self.sources if "email" in source]
        if len({source["email"].casefold() for source in having}) != 1:
            return ""
        is_verified = [source["email_verified"] for source in having if "email_verified" in source]
        if not all(is_verified) or not (is_verified or settings.OIDC_TRUST_EMAIL):
            return ""
        return self.text("email")

    def groups(self) -> list[str]:
        """Names or IDs of the person's groups, in the provider's order."""
        return list(dict.fromkeys(group for source in self.sources for group in source[GROUPS]))

    def role(self) -> str:
        """The role of the first group in ``OIDC_ROLES`` that the person belongs to, or empty."""
        groups = set(self.groups())
        return next((role for group, role in settings.OIDC_ROLES if group in groups), "")


class SingleSignOnProvider(OpenIDConnectProvider):  # type: ignore[misc]
    """Sends a nonce, which must come back in the identity token of this sign-in."""

    def sociallogin_from_response(self, request: HttpRequest, response: Any) -> Any:
        """Pass on only readable claims: allauth expects each to be text, and stores them all."""
        claims = {name: readable_claims(response.get(name)) for name in SOURCES}
        return super().sociallogin_from_response(request, claims)

    def extract_uid(self, data: dict[str, Any]) -> str:
        return Claims(data).subject()

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
        claims = Claims(sociallogin.account.extra_data)
        nonce = sociallogin.state.get("nonce")
        if not nonce or sociallogin.account.extra_data["id_token"].get("nonce") != nonce:
            raise AnswerRejected("The identity token belongs to another sign-in", claims.subject())
        if sociallogin.state.get("process", "login") != "login":
            raise AnswerRejected("An identity is connected by signing in with it", claims.subject())
        role = claims.role()
        try:
            # Outside the transaction nothing of a rejected sign-in is left but its entry in the trail.
            with keep_administrator():
                sociallogin.user = find_user(sociallogin, claims, role)
                if role and sociallogin.user.is_active:
                    apply_role(sociallogin.user, role)
                if not sociallogin.account.pk:
                    sociallogin.connect(request, sociallogin.user)
        except LastAdministrator:
            why = (
                f"your groups give you the {Role(role).label.lower()} role, and you’re the only administrator"
            )
            todo = "make someone else an administrator first, or add you to a group with that role"
            reject_sign_in(request, claims, SignInRejected("last_administrator", why, todo, REJECTED))
        except SignInRejected as rejected:
            reject_sign_in(request, claims, rejected)

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, **kwargs: Any
    ) -> None:
        """Record an answer that can't be used. Being offline or giving up isn't a failed sign-in."""
        if isinstance(exception, AnswerRejected):
            record_rejection(request, exception.who, exception.why)
        elif isinstance(exception, OAuth2Error):  # Its own text may repeat the answer.
            record_rejection(request, "", "The identity provider’s answer is not valid")


def find_user(sociallogin: Any, claims: Claims, role: str) -> User:
    """The account of an identity, locked. At the first sign-in found by its claims, or created."""
    if settings.OIDC_ROLES and not role:
        why, todo = "none of your groups has a role here", "add you to a group that has one"
        if not claims.groups():
            why += f"; the identity provider sent none as text (“{settings.OIDC_GROUPS_CLAIM}”)"
            todo = "send the names or IDs of your groups in that claim"
        raise SignInRejected("no_role", why, todo)
    is_new = not sociallogin.is_existing
    found = find_or_create_account(claims, role) if is_new else sociallogin.user
    person: User = User.objects.select_for_update().get(pk=found.pk)
    person.changed_by = found.changed_by
    identities = SocialAccount.objects.filter(user=person, provider=sociallogin.account.provider)
    own = identities.filter(uid=sociallogin.account.uid).first()
    if is_new and own:  # It was connected a moment ago, from another tab.
        sociallogin.account = own
    elif is_new and identities.exists():
        raise SignInRejected(
            "connected",
            f"the account {person.username} is connected to another identity",
            "disconnect single sign-on from it if the account is yours",
            REJECTED,
        )
    return person


def apply_role(person: User, role: str) -> None:
    if person.role != role:
        person.role, person.changed_by = role, "single-sign-on"
        person.save(update_fields=["role"])
        person.changed_by = ""


def find_or_create_account(claims: Claims, role: str) -> User:
    """Find the one active account of a person at their first sign-in, or create one if the settings allow it."""
    by_email = settings.OIDC_MATCH == "email"
    key = claims.email() if by_email else claims.text(settings.OIDC_MATCH)
    if not key and by_email:
        why = "the identity provider sent no verified email address"
        raise SignInRejected("no_claim", why, "verify your email address there")
    if not key:
        why = f"the identity provider didn’t say who you are (“{settings.OIDC_MATCH}” is missing or not text)"
        raise SignInRejected("no_claim", why, "send that claim")
    name, shown = "email" if by_email else "username", key[:MAX_SHOWN_CHARACTERS]
    # Only "sub" is case-sensitive at providers.
    lookup = name if settings.OIDC_MATCH == "sub" else f"{name}__iexact"
    # PostgreSQL takes some letters for others, such as "ı" for "i".
    found = [one for one in User.objects.filter(**{lookup: key}) if getattr(one, name).lower() == key.lower()]
    active: list[User] = [one for one in found if one.is_active]
    if len(active) == 1:
        return active[0]
    if active:
        why = f"{len(active)} accounts have the {name} {shown}"
        raise SignInRejected("shared_email", why, "give each account its own")
    if found:
        raise SignInRejected("inactive", f"the account {shown} is inactive", "activate it", REJECTED)
    return create_account(claims, key, role)


def create_account(claims: Claims, key: str, role: str) -> User:
    """Create an account for a name and email that no account has."""
    person = User(
        username=key,
        email=claims.email(),
        first_name=claims.text("given_name")[:150],
        last_name=claims.text("family_name")[:150],
        role=role,
    )
    person.changed_by = "single-sign-on"
    person.set_unusable_password()
    is_name_only = not settings.OIDC_CREATE
    if not is_name_only or settings.OIDC_MATCH != "email":
        try:
            person.clean_fields(exclude={"role", "email"} if is_name_only else None)
        except ValidationError as error:
            field, [reason, *_] = next(iter(error.message_dict.items()))
            typed = getattr(person, field)[:MAX_SHOWN_CHARACTERS]
            why = f"“{typed}” can’t be the {field} of an account: {reason.rstrip('.')}"
            raise SignInRejected("name_not_allowed", why, "change it at the identity provider") from None
    if not settings.OIDC_CREATE:
        raise SignInRejected("no_account", f"{key[:MAX_SHOWN_CHARACTERS]} has no account here", "add you")
    # An account that may be someone else's is neither connected nor duplicated.
    for field, value in (("username", key), ("email", person.email)):
        if value and User.objects.filter(**{f"{field}__iexact": value}).exists():
            why = f"another account has the {field} {value}"
            todo = f"change the {field} of that account, or yours at the identity provider"
            raise SignInRejected(f"{field}_taken", why, todo)
    person.save()
    return person


def record_rejection(request: HttpRequest, who: str, code: str, **detail: Any) -> None:
    """Record a sign-in at the provider that is rejected here."""
    user_login_failed.send(
        sender=User,
        credentials={"username": who},
        request=request,
        at=f"single sign-on: {code}",
        detail=detail,
    )


def reject_sign_in(request: HttpRequest, claims: Claims, rejected: SignInRejected) -> NoReturn:
    """Record and explain a valid sign-in at the provider that leads to no account here."""
    groups = [group[:MAX_SHOWN_CHARACTERS] for group in claims.groups()[:MAX_RECORDED_GROUPS]]
    record_rejection(request, claims.who(), rejected.code, why=rejected.why, groups=groups)
    page = render(request, "socialaccount/no_account.html", {"rejected": rejected}, status=403)
    raise ImmediateHttpResponse(page)


# --- Coming back, and signing out ---


class ReturnAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """Stores the raw identity token for signing out."""

    def parse_token(self, data: dict[str, Any]) -> Any:
        """Read the access token only: the rest of the answer may be of any type, and isn't used."""
        self.request.identity_token = data.get("id_token", "")
        return super().parse_token({"access_token": data["access_token"]})

    def _decode_id_token(self, app: SocialApp, id_token: Any) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = super()._decode_id_token(app, id_token)
        except (TypeError, ValueError, OverflowError) as error:  # Of times that aren't numbers.
            raise OAuth2Error("Invalid id_token") from error
        return claims


def callback(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    try:
        answer: HttpResponseBase = OAuth2CallbackView.adapter_view(ReturnAdapter(request, provider_id))(
            request
        )
    except SocialApp.DoesNotExist:
        raise Http404 from None
    token = getattr(request, "identity_token", "")
    if token and answer.status_code == HTTPStatus.FOUND and request.user.is_authenticated:
        # A token with very many groups fits into no address; providers then ask before they sign out.
        request.session[SESSION_KEY] = encrypt(token if len(token) <= MAX_HINT_CHARACTERS else "")
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
    hint = {"id_token_hint": token} if token else {}
    words = hint | {
        "client_id": settings.OIDC_CLIENT_ID,
        "post_logout_redirect_uri": request.build_absolute_uri(reverse(settings.LOGIN_URL)),
    }
    return f"{address}{'&' if '?' in address else '?'}{urlencode(words)}"


def discover(request: HttpRequest | None = None) -> dict[str, Any]:
    """Fetch the issuer's OpenID configuration."""
    provider = get_adapter(request).get_provider(request, PROVIDER_ID)
    config: dict[str, Any] = provider.get_oauth2_adapter(request).openid_config
    return config
