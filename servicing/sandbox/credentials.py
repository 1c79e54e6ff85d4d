"""How a request shows who sends it: one class per scheme, and the tokens of the scheme ``oauth2``.

The signatures of the scheme ``hmac`` are in ``signing``.
"""

import base64
import hmac
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import unquote_plus

from servicing.errors import ConfigurationError
from servicing.sandbox.choices import require_choice
from servicing.sandbox.signing import DEFAULT_HEADERS, Signatures

AUTHS = ("hmac", "none", "bearer", "header", "basic", "oauth2")
"""The schemes."""
DEFAULT_TOKEN_HEADER = "X-Api-Key"  # noqa: S105 - the name of a header.
REALM = 'realm="lending service"'

Headers = Mapping[str, str]


class Scheme(Protocol):
    """A check of requests. ``status`` and ``challenge`` (WWW-Authenticate) are those of a refusal."""

    status: int
    challenge: str

    def problem(self, url: str, body: bytes, headers: Headers) -> str | None:
        """The reason to reject a request, or None."""


def build_scheme(
    auth: str,
    *,
    client_id: str,
    secret: str,
    token: str,
    tokens: "Tokens",
    headers: Sequence[str],
    epoch_unit: str,
    skew: float,
) -> Scheme:
    """The scheme of this name; `ConfigurationError` if there is none, or if it cannot be used."""
    require_choice("auth", auth, AUTHS)
    match auth:
        case "bearer":
            return BearerToken(token)
        case "header":
            return HeaderToken(headers or (DEFAULT_TOKEN_HEADER,), token)
        case "basic":
            return BasicCredentials(client_id, secret)
        case "oauth2":
            return tokens
        case "none":
            return NoCredentials()
    return Signatures(client_id, secret, headers or DEFAULT_HEADERS, epoch_unit=epoch_unit, skew=skew)


class NoCredentials:
    """Accepts every request."""

    status = 401
    challenge = ""

    def problem(self, url: str, body: bytes, headers: Headers) -> str | None:
        """None, whatever the request."""
        return None


class BearerToken:
    """Checks for a fixed bearer token."""

    status = 401
    challenge = f"Bearer {REALM}"

    def __init__(self, token: str) -> None:
        self._token = _require_token(token)

    def problem(self, url: str, body: bytes, headers: Headers) -> str | None:
        """The reason to reject a request, or None."""
        return None if _is_equal(_authorization(headers, "Bearer"), self._token) else "The token is not valid"


class HeaderToken:
    """Checks for a fixed token in a header of its own."""

    status = 401

    def __init__(self, headers: Sequence[str], token: str) -> None:
        if len(headers) != 1:
            raise ConfigurationError("auth_headers must name one header, for the token.")
        self._name = headers[0]
        self._token = _require_token(token)
        self.challenge = f'ApiKey {REALM}, header="{self._name}"'

    def problem(self, url: str, body: bytes, headers: Headers) -> str | None:
        """The reason to reject a request, or None."""
        return None if _is_equal(headers.get(self._name) or "", self._token) else "The token is not valid"


class BasicCredentials:
    """Checks for a client ID and secret (RFC 7617)."""

    status = 401
    challenge = f'Basic {REALM}, charset="UTF-8"'

    def __init__(self, client_id: str, secret: str) -> None:
        if ":" in client_id:
            raise ConfigurationError("A client ID with a colon can't be sent with basic authentication.")
        self._client = f"{client_id}:{secret}"

    def problem(self, url: str, body: bytes, headers: Headers) -> str | None:
        """The reason to reject a request, or None."""
        return None if _is_equal(_basic(headers), self._client) else "The client ID or secret is not valid"


class TokenRefused(Exception):
    """No token is given; ``code`` is one of RFC 6749, section 5.2."""

    def __init__(self, code: str, description: str, *, status: int = 400, challenge: str = "") -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.status = status
        self.challenge = challenge


class Tokens:
    """Checks for access tokens, and gives them for client credentials (RFC 6749, section 4.4).

    The client must ask for ``scope`` if it is not empty. Tokens are kept in memory, for ``seconds``.
    """

    status = 401
    challenge = BearerToken.challenge

    def __init__(self, client_id: str, secret: str, *, scope: str = "", seconds: int = 3600) -> None:
        if seconds < 1:
            raise ConfigurationError("token_seconds must be 1 or more.")
        self._client_id, self._secret = client_id, secret
        self._scope = set(scope.split())
        self._seconds = seconds
        self._lock = threading.Lock()
        self._ends: dict[str, float] = {}

    def problem(self, url: str, body: bytes, headers: Headers) -> str | None:
        """The reason to reject a request, or None."""
        with self._lock:
            end = self._ends.get(_authorization(headers, "Bearer"), 0)
        return None if end > time.time() else "The token is not valid or has expired"

    def give(self, headers: Headers, form: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """A new token; raises :class:`TokenRefused`."""
        client_id, _, secret = _basic(headers).partition(":")
        if not (
            _is_equal(unquote_plus(client_id), self._client_id)
            and _is_equal(unquote_plus(secret), self._secret)
        ):
            raise TokenRefused(
                "invalid_client",
                "The client ID or secret is not valid",
                status=401,
                challenge=BasicCredentials.challenge,
            )
        self._check_form(form)
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._ends[token] = time.time() + self._seconds
        return {"access_token": token, "token_type": "Bearer", "expires_in": self._seconds}

    def _check_form(self, form: Sequence[tuple[str, str]]) -> None:
        values = dict(form)
        if len(values) < len(form):
            raise TokenRefused("invalid_request", "A parameter is repeated")
        if not values.get("grant_type"):
            raise TokenRefused("invalid_request", "grant_type is required")
        if values["grant_type"] != "client_credentials":
            raise TokenRefused("unsupported_grant_type", "grant_type must be client_credentials")
        if self._scope and set(values.get("scope", "").split()) != self._scope:
            raise TokenRefused("invalid_scope", f"scope must be {' '.join(sorted(self._scope))}")

    def expire_all(self) -> None:
        """End all tokens now."""
        with self._lock:
            self._ends.clear()


def _authorization(headers: Headers, scheme: str) -> str:
    """What follows the scheme in the Authorization header; empty if it names another scheme."""
    name, _, value = (headers.get("Authorization") or "").partition(" ")
    return value.strip() if name.lower() == scheme.lower() else ""


def _basic(headers: Headers) -> str:
    """The ``<ID>:<password>`` of basic authentication; empty if there is none."""
    try:
        return base64.b64decode(_authorization(headers, "Basic"), validate=True).decode()
    except ValueError:
        return ""


def _require_token(token: str) -> str:
    if not token:
        raise ConfigurationError("The token is missing.")
    return token


def _is_equal(first: str, second: str) -> bool:
    return hmac.compare_digest(first.encode(), second.encode())
