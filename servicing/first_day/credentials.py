"""Whether the service takes the credentials, and which settings to try if it doesn't.

Hides what the headers of an answer say about them, and the calls that try other signatures.
"""

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, Literal

from servicing.auth import HeaderAuth, HmacAuth, SeveralSignatures
from servicing.errors import Forbidden, Rejected, ServicingError
from servicing.first_day.fields import quoted
from servicing.first_day.probe import Probe
from servicing.first_day.report import Finding, differs
from servicing.reasons import plain_name

AGREEING_CLOCK_SECONDS: Final = 5
USABLE_CLOCK_SECONDS: Final = 30
_OWN_SETTINGS: Final = {
    "hmac": "SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_AUTH_HEADERS and SERVICING_EPOCH_UNIT",
    "bearer": "SERVICING_TOKEN",
    "header": "SERVICING_TOKEN and SERVICING_AUTH_HEADERS",
    "basic": "SERVICING_CLIENT_ID and SERVICING_SECRET",
    "oauth2": "SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_TOKEN_URL and SERVICING_SCOPE",
}
_SCHEMES: Final = {
    "hmac": "a signature: SERVICING_AUTH=hmac",
    "bearer": "a bearer token: SERVICING_AUTH=bearer with SERVICING_TOKEN",
    "oauth2": "a token from OAuth 2: SERVICING_AUTH=oauth2 with SERVICING_TOKEN_URL",
    "basic": "a user and password: SERVICING_AUTH=basic with SERVICING_CLIENT_ID and SERVICING_SECRET",
    "header": "an API key: SERVICING_AUTH=header with SERVICING_TOKEN and SERVICING_AUTH_HEADERS",
}
# What `WWW-Authenticate` names.
_CHALLENGES: Final = {
    "hmac": ("hmac",),
    "bearer": ("bearer", "oauth2"),
    "basic": ("basic",),
    "apikey": ("header",),
}


def find_signature(probe: Probe, place: str) -> Finding | None:
    """The settings with which the service accepts the same secret; the probe uses them from then on.

    Two more calls are refused at most: the first sends both sets of header names, the second in another unit.
    """
    scheme = probe.transport.auth
    is_late = abs(_seconds_fast(probe) or 0) > USABLE_CLOCK_SECONDS
    if not isinstance(scheme, HmacAuth) or is_late or _wanted_scheme(probe) not in ("", "hmac"):
        return None
    unit: Literal["ms", "s"] = "s" if scheme.epoch_unit == "ms" else "ms"
    names = tuple(name.replace("-", "_") for name in scheme.header_names)
    moment = time.time()  # One for both signatures, because they may share the header of the time.
    renamed = scheme.with_choices(auth_headers=names, clock=lambda: moment)
    converted = scheme.with_choices(epoch_unit=unit, clock=lambda: moment)
    both = renamed.with_choices(epoch_unit=unit)

    def is_accepted(*schemes: HmacAuth) -> bool:
        probe.use_auth(SeveralSignatures(*schemes))
        _, refusal = probe.messages(place)
        return refusal is None or (isinstance(refusal, Rejected) and not isinstance(refusal, Forbidden))

    settings: dict[str, Any] = {}
    if is_accepted(scheme.with_choices(clock=lambda: moment), renamed):
        settings = {"auth_headers": names}
    elif is_accepted(converted, both):
        settings = (
            {"epoch_unit": unit} if is_accepted(converted) else {"epoch_unit": unit, "auth_headers": names}
        )
    probe.use_auth(scheme.with_choices(**settings))
    return differs("The service takes another signature", settings) if settings else None


def credential_words(probe: Probe, auth: str, refusal: ServicingError | None) -> str:
    words = f"The service rejects these credentials: {quoted(refusal.message if refusal else '')}"
    wanted = _wanted_scheme(probe)
    fitting = _CHALLENGES.get(wanted, ())
    if wanted and auth not in fitting:
        if not fitting:
            return f"{words} It asks for “{wanted}”, which needs a session of your own: SERVICING_SESSION."
        return (
            f"{words} It asks for {', or '.join(_SCHEMES[name] for name in fitting)}.{_named_header(probe)}"
        )
    if auth == "hmac" and abs(_seconds_fast(probe) or 0) > USABLE_CLOCK_SECONDS:
        return f"{words} Correct the clock first."
    own = f" Check {_OWN_SETTINGS[auth]}." if auth in _OWN_SETTINGS else ""
    if auth == "header":
        own += _named_header(probe)
    others = "; ".join(text for name, text in _SCHEMES.items() if name != auth)
    return f"{words}{own} Or the lender wants something else: {others}."


def _wanted_scheme(probe: Probe) -> str:
    """The scheme that the last answer asks for, without its parameters."""
    name = probe.header("WWW-Authenticate").partition(" ")[0]
    return plain_name(name) if re.fullmatch(r"[A-Za-z0-9-]{1,30}", name) else ""


def _named_header(probe: Probe) -> str:
    """The header for an API key, where the answer names another one than the configured."""
    found = re.search(r'\b(?:header|name)="?([\w-]{1,60})"?', probe.header("WWW-Authenticate"), re.ASCII)
    scheme = probe.transport.auth
    configured = scheme.header_name if isinstance(scheme, HeaderAuth) else ""
    if not found or found[1].casefold() == configured.casefold():
        return ""
    return f" Its header: SERVICING_AUTH_HEADERS={found[1]}."


def address_words(probe: Probe, auth: str) -> str:
    """What to check if there is no message list."""
    if probe.status is None:
        token_url = "SERVICING_TOKEN_URL, " if auth == "oauth2" else ""
        return f"Check SERVICING_URL, {token_url}SERVICING_PROXY and SERVICING_CA_BUNDLE."
    if probe.status in range(300, 400):
        found = re.match(r"https?://[\w.:\[\]-]{1,100}", probe.header("Location"), re.ASCII)
        return f"It redirects to {found[0]}. Check SERVICING_URL." if found else "Check SERVICING_URL."
    is_page = not probe.outcome or isinstance(probe.outcome.body, str)
    return "Check SERVICING_URL." if is_page or probe.status == HTTPStatus.NOT_FOUND else ""


def check_clock(probe: Probe, auth: str) -> Iterator[Finding]:
    seconds_fast = _seconds_fast(probe)
    if probe.outcome is None or probe.status is None:
        return
    if seconds_fast is None:
        yield Finding("warn", "The service’s responses have no date, so its clock can’t be compared.")
        return
    if abs(seconds_fast) <= AGREEING_CLOCK_SECONDS:
        yield Finding("ok", "This machine's clock agrees with the service's.")
        return
    side = "behind" if seconds_fast > 0 else "ahead of"
    words = f"This machine's clock is {abs(seconds_fast):,.0f} seconds {side} the service's."
    if auth != "hmac":
        yield Finding("warn", words)
        return
    yield Finding(
        "warn" if abs(seconds_fast) <= USABLE_CLOCK_SECONDS else "bad",
        f"{words} Signatures expire after 60 seconds.",
    )


def _seconds_fast(probe: Probe) -> float | None:
    """Seconds by which the service's clock is ahead of this machine's, according to the last answer."""
    try:
        return (
            parsedate_to_datetime(probe.header("Date")).astimezone(UTC) - datetime.now(UTC)
        ).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
