"""OAuth 2 client credentials (RFC 6749 section 4.4). Hides the token service, and when a token is renewed.

One token serves all threads of a client. It is kept in memory alone.
"""

import json
import threading
import time
from codecs import BOM_UTF8
from typing import Any, Final
from urllib.parse import quote_plus, urlsplit

import requests
from oauthlib.oauth2 import BackendApplicationClient, OAuth2Error
from requests.auth import AuthBase, HTTPBasicAuth

from servicing.auth import BearerAuth
from servicing.codec import parse
from servicing.connections import (
    EXPECTED_ERRORS,
    TOOK_TOO_LONG,
    Exchange,
    Session,
    describe_failure,
    guard_connections,
)
from servicing.errors import ConfigurationError, ProtocolError, ServicingError, Unauthenticated, Unavailable
from servicing.masking import Sensitive
from servicing.reasons import mentions_error, reasons_in, says_error
from servicing.version import __version__

MAX_ANSWER_BYTES: Final = 64 * 1024
RENEWED_BEFORE_SECONDS: Final = 60.0
"""A token is renewed this long before it ends, or after half its life if that is shorter than two minutes."""
UNKNOWN_LIFE_SECONDS: Final = 300.0
"""How long a token is used whose lifetime the token service doesn't say."""
_LONGEST_LIFE_SECONDS: Final = 86_400.0
_WAIT_SECONDS: Final = 20.0
_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "Content-Type": "application/x-www-form-urlencoded",
    "User-Agent": f"servicing/{__version__}",
}


class ClientCredentialsAuth(AuthBase):
    """A bearer token that the token service gives for the client's ID and secret."""

    def __init__(self, client_id: str, secret: str, token_url: str, *, scope: str, session: Session) -> None:
        if not client_id or not secret:
            raise ConfigurationError("oauth2 needs the client id and the secret.")
        if urlsplit(token_url).scheme not in ("http", "https") or not urlsplit(token_url).hostname:
            raise ConfigurationError(
                f"token_url must look like https://lender.example/token, not {token_url!r}."
            )
        guard_connections(session, token_url)
        self._client_id = client_id
        self._credentials = HTTPBasicAuth(quote_plus(client_id), Sensitive(quote_plus(secret)))
        self._url = token_url
        self._scope = scope.split() or None
        self._session = session
        self._lock = threading.Lock()
        self._token: BearerAuth | None = None
        self._renew_at = 0.0

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return self.current(time.monotonic() + _WAIT_SECONDS)(request)

    def current(self, deadline: float) -> BearerAuth:
        """The token as a scheme of its own, asked for if it is missing or about to end.

        Raises `Unauthenticated` if the token service rejects the credentials, `Unavailable` if it gives no token
        before `deadline` (monotonic clock).
        """
        if not self._lock.acquire(timeout=max(deadline - time.monotonic(), 0)):
            raise Unavailable("The token service didn’t respond: it took too long.")
        try:
            if self._token is None or time.monotonic() >= self._renew_at:
                started = time.monotonic()
                self._token, life = self._ask(deadline)
                self._renew_at = started + life - min(RENEWED_BEFORE_SECONDS, life / 2)
            return self._token
        finally:
            self._lock.release()

    def forget(self, token: BearerAuth) -> None:
        """Ask for another token next time, unless another thread already did: the service refused this one."""
        # Without the lock, which another thread holds for as long as the token service takes. At worst a new token is
        # lost, and asked for once more.
        if self._token is token:
            self._token = None

    def _ask(self, deadline: float) -> tuple[BearerAuth, float]:
        """A new token, and the seconds that it lives."""
        oauth = BackendApplicationClient(self._client_id)
        status, body = self._post(
            oauth.prepare_request_body(scope=self._scope, include_client_id=False), deadline
        )
        if status >= 500 or status in (408, 425, 429) or status in range(300, 400):
            raise Unavailable(f"The token service returned status {status}.")
        try:
            oauth.parse_request_body_response(_without_oddities(body))
        except (OAuth2Error, ValueError, TypeError, AttributeError, RecursionError):
            oauth.access_token = None  # It is no token, or an object of another kind.
        if status >= 400 or not isinstance(oauth.access_token, str):
            raise _refusal(status, body)
        if str(oauth.token_type or "bearer").casefold() != "bearer":
            raise Unauthenticated("The token service gave a token that isn’t a bearer token.")
        try:
            token = BearerAuth(Sensitive(oauth.access_token))
        except ConfigurationError:
            raise Unauthenticated("The token service gave a token that no header can hold.") from None
        return token, min(oauth.expires_in or UNKNOWN_LIFE_SECONDS, _LONGEST_LIFE_SECONDS)

    def _post(self, body: str, deadline: float) -> tuple[int, Sensitive]:
        """The status and the text of the answer, which no traceback may print: it has the token."""
        exchange = Exchange(deadline, needs_new_connection=True)
        try:
            with exchange:
                request = requests.Request(
                    "POST", self._url, data=body, headers=_HEADERS, auth=self._credentials
                )
                with self._session.send(
                    self._session.prepare_request(request),
                    stream=True,
                    timeout=exchange.seconds_left(),
                    allow_redirects=False,
                ) as response:
                    content = response.raw.read(MAX_ANSWER_BYTES, decode_content=True)
                    answer = (
                        response.status_code,
                        Sensitive(content.removeprefix(BOM_UTF8).decode("utf-8", "replace")),
                    )
        except EXPECTED_ERRORS as problem:
            why = TOOK_TOO_LONG if exchange.timed_out else describe_failure(problem)
            raise Unavailable(f"The token service didn’t respond: {why}.") from None
        if exchange.timed_out:  # The answer may be cut off.
            raise Unavailable(f"The token service didn’t respond: {TOOK_TOO_LONG}.")
        return answer


def _without_oddities(body: str) -> str:
    """The answer without what the library refuses beside a token: a lifetime that is no number, and an empty error."""
    try:
        fields: Any = json.loads(body)
    except ValueError:
        return body
    if not isinstance(fields, dict):
        return body
    if not fields.get("error"):
        fields.pop("error", None)
    try:
        life = int(float(fields.pop("expires_in", 0)))
    except (TypeError, ValueError, OverflowError):
        life = 0
    return json.dumps(fields | ({"expires_in": life} if life > 0 else {}))


def _refusal(status: int, body: str) -> ServicingError:
    """The error for an answer without a token: a rejection, unless it says nothing of the kind."""
    try:
        value = parse(body)
    except ProtocolError:
        value = None
    if status < 400 and not (isinstance(value, dict) and says_error(value)):
        return Unavailable("The token service’s response has no token.")
    # Without an error's own fields, every value would count as a reason, a token too.
    reasons = reasons_in(value) if mentions_error(value) else ()
    words = "; ".join(reasons) or f"status {status}"
    return Unauthenticated(f"The token service rejected these credentials: {words}.", reasons=reasons)
