"""The support bundle: what the lending service's support needs to know of recent calls, without personal data.

Bodies keep their structure but only the values of IDs, states and times. Other values become their type and length,
and anything that still looks like a tax number is hidden.
"""

import json
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import django
from django.conf import settings
from django.db import connection
from django.utils import timezone

from portal.audit.models import RemoteCall
from portal.audit.service_health import measure_health, with_durations
from portal.operations import calls
from servicing import __version__
from servicing.masking import HIDDEN, masked, masked_text

MAX_CALLS = 100
# Fields whose values may be shown: they identify a record, a state or a time, never a person.
SHOWN_FIELDS = {
    "uuid", "user_uuid", "borrower_uuid", "loan_uuid", "status", "state", "decision", "product", "type", "event",
    "user_type", "entity", "created_at", "updated_at", "page", "limit", "offset", "total", "count", "code",
}  # fmt: skip
PACKAGES = ["Django", "requests", "urllib3", "msgspec", "cryptography", "gunicorn"]


def lines() -> Iterator[str]:
    yield f"Support bundle of {timezone.now():%Y-%m-%d %H:%M:%S} UTC"
    yield from _versions()
    yield from _groups()
    yield from _failures()
    yield f"\nLast {MAX_CALLS} calls, newest first"
    for call in RemoteCall.objects.all()[:MAX_CALLS]:
        yield from _call(call)


def _versions() -> Iterator[str]:
    database = f"{connection.display_name} {'.'.join(map(str, connection.get_database_version()))}"
    yield f"Portal {__version__}"
    yield f"Environment {settings.SERVICING_ENVIRONMENT}, signing {settings.SERVICING_AUTH}"
    yield f"Python {platform.python_version()} on {sys.platform}, Django {django.get_version()}, {database}"
    yield ", ".join(f"{name} {version(name)}" for name in PACKAGES)


def _groups() -> Iterator[str]:
    yield "\nCalls of the last 24 hours"
    for group in with_durations(measure_health()):
        durations = f"p50 {group.median} ms, p95 {group.p95} ms, " if group.calls else ""
        yield (
            f"{group.name}: {group.calls} calls, {group.failures} failed, {durations}"
            f"last success {_moment(group.last_success)}, last failure {_moment(group.last_failure)}"
        )


def _failures() -> Iterator[str]:
    yield "\nFailures of the last 24 hours"
    for one in calls.failures():
        status = one["status"] or "no status"
        yield f"{one['count']} x {one['operation']} {one['outcome']} {status}, last {_moment(one['last'])}"


def _call(call: RemoteCall) -> Iterator[str]:
    yield (
        f"\n{_moment(call.at)} {call.request_id} {call.method} {masked_text(call.path)} "
        f"{call.outcome} {call.status or 'no status'} {call.duration_ms} ms, tries {call.tries}"
    )
    if call.request_body:
        yield f"  sent     {redacted(call.request_body)}"
    if call.answer_body:
        yield f"  answered {redacted(call.answer_body)}"


def redacted(text: str) -> str:
    """Replace the values of a recorded body with their type and length."""
    try:
        body = json.loads(text)
    except ValueError:  # The body was truncated when it was recorded.
        return f"[{len(text):,} characters, cut]"
    return masked_text(json.dumps(_shape(masked(body)), ensure_ascii=False))[:4000]


def _shape(value: Any, name: str = "") -> Any:
    match value:
        case dict():
            return {masked_text(str(key)): _shape(item, str(key).casefold()) for key, item in value.items()}
        case list():
            more = [f"… {len(value)} in all"] if value[3:] else []
            return [_shape(item, name) for item in value[:3]] + more
        case None | bool():
            return value
        case _ if name in SHOWN_FIELDS or value == HIDDEN:
            return value
        case str():
            return f"[text of {len(value)}]"
    return "[number]"


def _moment(value: Any) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if value else "never"
