"""Authentication schemes for requests, one class each, chosen by a setting. Hides how requests are signed.

Each class signs a prepared request just before it is sent, so every try carries a fresh signature.
"""

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal

from requests import PreparedRequest
from requests.auth import AuthBase, HTTPBasicAuth

from servicing.errors import ConfigurationError

HEADER_NAMES: Final = ("X-Client-Id", "X-Signature", "Epoch", "Content-MD5")
# The white space that the digest ignores. Python's `\s` matches a different set.
_WHITE_SPACE: Final = [
    *range(0x09, 0x0E), 0x20, 0xA0, 0x1680, *range(0x2000, 0x200B),
    0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF,
]  # fmt: skip
_WITHOUT_SPACE: Final = dict.fromkeys(_WHITE_SPACE)
Scheme = AuthBase
_TOKEN: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)


def body_digest(body: str) -> str:
    """The MD5 hex digest of a JSON text without any white space, inside strings included; empty for no body."""
    if not body:
        return ""
    return hashlib.md5(body.translate(_WITHOUT_SPACE).encode(), usedforsecurity=False).hexdigest()


def sign(secret: str, url: str, digest: str, epoch: str) -> str:
    """The hex signature of the URL as sent, the digest of the body and the time."""
    return hmac.new(secret.encode(), f"{url}{digest}{epoch}".encode(), hashlib.sha256).hexdigest()


class NoAuth(AuthBase):
    """No authentication."""

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        return request


class BearerAuth(AuthBase):
    """A fixed bearer token."""

    def __init__(self, token: str) -> None:
        _require_header_text(token, "The token")
        self._token = token

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class HeaderAuth(AuthBase):
    """A fixed token, such as an API key, in a header of its own."""

    def __init__(self, token: str, header_names: Sequence[str]) -> None:
        _require_header_text(token, "The token")
        self._token = token
        (self.header_name,) = _checked_names(
            header_names, 1, "auth_headers must be one header name for auth=header, such as X-Api-Key."
        )

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        request.headers[self.header_name] = self._token
        return request


class BasicAuth(HTTPBasicAuth):
    """Client ID and secret as user and password (RFC 7617)."""

    def __init__(self, client_id: str, secret: str) -> None:
        _require_header_text(client_id, "The client id")
        if ":" in client_id:
            raise ConfigurationError("The client id can’t contain “:” with auth=basic.")
        if not secret:
            raise ConfigurationError("The secret is missing; auth=basic needs it.")
        super().__init__(client_id.encode(), secret.encode())


class HmacAuth(AuthBase):
    """A signature valid for a minute, in four headers: client ID, signature, time and body digest."""

    def __init__(
        self,
        client_id: str,
        secret: str,
        *,
        header_names: Sequence[str] = HEADER_NAMES,
        epoch_unit: Literal["ms", "s"] = "ms",
        clock: Callable[[], float] = time.time,
    ) -> None:
        _require_header_text(client_id, "The client id")
        if not secret:
            raise ConfigurationError("The secret is missing; requests cannot be signed without it.")
        if epoch_unit not in ("ms", "s"):
            raise ConfigurationError(f"The epoch unit must be ms or s, not {epoch_unit!r}.")
        self._client_id, self._secret = client_id, secret
        self.header_names = _checked_names(
            header_names,
            4,
            "The signing headers must be four header names: for client id, signature, time and digest.",
        )
        self.epoch_unit: Literal["ms", "s"] = epoch_unit
        self._clock = clock

    def with_choices(
        self,
        *,
        auth_headers: Sequence[str] = (),
        epoch_unit: Literal["ms", "s"] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> "HmacAuth":
        """The same credentials under other header names, with another unit of the time, or by another clock."""
        return HmacAuth(
            self._client_id,
            self._secret,
            header_names=auth_headers or self.header_names,
            epoch_unit=epoch_unit or self.epoch_unit,
            clock=clock or self._clock,
        )

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        epoch = str(int(self._clock() * (1000 if self.epoch_unit == "ms" else 1)))
        body = request.body or ""
        digest = body_digest(body.decode() if isinstance(body, bytes) else body)
        signature = sign(self._secret, request.url or "", digest, epoch)
        values = (self._client_id, signature, epoch, digest)
        request.headers.update(zip(self.header_names, values, strict=True))
        return request


class SeveralSignatures(AuthBase):
    """Signatures of one request under header names of their own, to find out which one the service takes."""

    def __init__(self, *schemes: HmacAuth) -> None:
        self._schemes = schemes

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        for scheme in self._schemes:
            scheme(request)
        return request


def _checked_names(names: object, number: int, problem: str) -> tuple[str, ...]:
    checked = tuple(names) if isinstance(names, list | tuple) else ()
    if len(checked) != number or not all(
        isinstance(name, str) and _TOKEN.fullmatch(name) for name in checked
    ):
        raise ConfigurationError(problem)
    return checked


def _require_header_text(value: str, what: str) -> None:
    if not value:
        raise ConfigurationError(f"{what} is missing.")
    if not (value.isascii() and value.isprintable()) or value != value.strip():
        raise ConfigurationError(
            f"{what} can contain only printable ASCII characters, with no spaces at either end."
        )
