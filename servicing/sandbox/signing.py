"""Whether a request was signed by the one client this service knows. Hides the recipe.

Signed is the absolute URL as sent, the digest of the body and the epoch, one after the other; the key is
the secret as it was given out. The digest is the MD5 of the body's text without any white space.
"""

import hashlib
import hmac
import re
import time
from collections.abc import Mapping

LIFE = 60
"""Seconds for which a signature is good, either way."""
MILLISECONDS_FROM = 10**11
"""An epoch this large counts milliseconds: as seconds it would lie in the year 5138."""
DEFAULT_HEADERS = ("X-Client-Id", "X-Signature", "Epoch", "Content-MD5")

WHITE_SPACE = re.compile(
    "[\u0009-\u000d\u0020\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+"
)


class Signatures:
    """Checks requests against one client's id and secret.

    ``headers`` names the headers of client id, signature, epoch and digest. ``skew`` is by how many seconds the
    service's clock is fast.
    """

    def __init__(
        self,
        client_id: str,
        secret: str,
        headers: tuple[str, str, str, str] = DEFAULT_HEADERS,
        *,
        skew: float = 0,
    ) -> None:
        self._client_id = client_id
        self._key = secret.encode()
        self._headers = headers
        self._skew = skew

    def problem(self, url: str, body: bytes, headers: Mapping[str, str]) -> str | None:
        """Why the request is refused, or None."""
        client_id, signature, epoch, claimed = (headers.get(name) or "" for name in self._headers)
        try:
            expected = body_digest(body)
        except UnicodeDecodeError:
            return "The body is not UTF-8 text"
        if not _same(client_id, self._client_id):
            return "The client is not known"
        if not _is_fresh(epoch, time.time() + self._skew):
            return "The signature has expired"
        if not _same(claimed, expected):
            return "The digest does not belong to the body"
        made = hmac.new(self._key, f"{url}{expected}{epoch}".encode(), hashlib.sha256).hexdigest()
        return None if _same(signature, made) else "The signature is not valid"


def body_digest(body: bytes) -> str:
    """MD5 of the text without white space, in lower-case hex; nothing for no body."""
    if not body:
        return ""
    bare = WHITE_SPACE.sub("", body.decode())
    return hashlib.md5(bare.encode(), usedforsecurity=False).hexdigest()


def _is_fresh(epoch: str, now: float) -> bool:
    if not re.fullmatch("[0-9]{1,16}", epoch):
        return False
    seconds = int(epoch) / 1000 if int(epoch) >= MILLISECONDS_FROM else int(epoch)
    return abs(now - seconds) <= LIFE


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
