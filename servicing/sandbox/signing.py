"""Checks of request signatures. Hides how a signature is computed.

The signature covers the absolute URL as sent, the digest of the body and the epoch, concatenated; its key is the
secret. The digest is the MD5 of the body without any white space.
"""

import hashlib
import hmac
import re
import time
from collections.abc import Mapping, Sequence

from servicing.errors import ConfigurationError
from servicing.sandbox.choices import require_choice

SIGNATURE_SECONDS = 60
"""Seconds for which a signature is valid, in either direction."""
FIRST_MILLISECOND_EPOCH = 10**11
"""The first epoch that counts milliseconds; in seconds it would be in the year 5138."""
EPOCHS = ("both", "ms", "s")
"""The units of an epoch that can be accepted."""
DEFAULT_HEADERS = ("X-Client-Id", "X-Signature", "Epoch", "Content-MD5")

WHITE_SPACE = re.compile(
    "[\u0009-\u000d\u0020\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+"
)


class Signatures:
    """Checks requests against the ID and secret of one client.

    ``headers`` names the headers of client ID, signature, epoch and digest. ``epoch_unit`` is one of ``EPOCHS``.
    ``skew`` is the seconds by which the service's clock is fast.
    """

    status = 403
    challenge = ""

    def __init__(
        self,
        client_id: str,
        secret: str,
        headers: Sequence[str] = DEFAULT_HEADERS,
        *,
        epoch_unit: str = EPOCHS[0],
        skew: float = 0,
    ) -> None:
        require_choice("epoch_unit", epoch_unit, EPOCHS)
        if len(headers) != len(DEFAULT_HEADERS):
            raise ConfigurationError(
                "auth_headers must name four headers: for client ID, signature, epoch and digest."
            )
        self._client_id = client_id
        self._key = secret.encode()
        self._headers = headers
        self._epoch_unit = epoch_unit
        self._skew = skew

    def problem(self, url: str, body: bytes, headers: Mapping[str, str]) -> str | None:
        """The reason to reject a request, or None."""
        client_id, signature, epoch, sent_digest = (headers.get(name) or "" for name in self._headers)
        try:
            digest = body_digest(body)
        except UnicodeDecodeError:
            return "The body is not UTF-8 text"
        if not _is_equal(client_id, self._client_id):
            return "The client is not known"
        if not _is_fresh(epoch, self._epoch_unit, time.time() + self._skew):
            return "The signature has expired"
        if not _is_equal(sent_digest, digest):
            return "The digest does not match the body"
        expected_signature = hmac.new(self._key, f"{url}{digest}{epoch}".encode(), hashlib.sha256).hexdigest()
        return None if _is_equal(signature, expected_signature) else "The signature is not valid"


def body_digest(body: bytes) -> str:
    """The MD5 hex digest of a text without white space; empty for no body."""
    if not body:
        return ""
    compact = WHITE_SPACE.sub("", body.decode())
    return hashlib.md5(compact.encode(), usedforsecurity=False).hexdigest()


def _is_fresh(epoch: str, unit: str, now: float) -> bool:
    if not re.fullmatch("[0-9]{1,16}", epoch):
        return False
    counts_milliseconds = unit == "ms" or (unit == "both" and int(epoch) >= FIRST_MILLISECOND_EPOCH)
    seconds = int(epoch) / 1000 if counts_milliseconds else int(epoch)
    return abs(now - seconds) <= SIGNATURE_SECONDS


def _is_equal(first: str, second: str) -> bool:
    return hmac.compare_digest(first.encode(), second.encode())
