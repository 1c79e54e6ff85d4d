"""The only way from the portal to the lending service: the client, the watcher that records its calls, the middleware.

Hides that one client serves the whole process; that each write gets an intent and an attempt before it is sent and one
outcome afterwards; and that every answer becomes a record's saved copy.
"""

import functools
import secrets
import zoneinfo
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string
from django_htmx.middleware import HtmxDetails

import servicing
from portal.accounts.models import User
from portal.accounts.roles import can
from portal.audit import writes
from portal.audit.models import Actor, RemoteCall, WriteIntent
from portal.audit.service_health import CircuitBreaker
from portal.audit.writes import SavedTo, Write, WriteResult, json_text
from portal.records import store
from portal.records.models import Source
from servicing import AnswerNotSaved, Call, Client, Outcome
from servicing.masking import masked_text
from servicing.transport import Gate


class StaffRequest(HttpRequest):
    """A request with what middleware adds: the signed-in person, HTMX details and the lending service."""

    user: User
    htmx: HtmxDetails
    servicing: Client
    request_id: str
    can: Callable[[str], bool]
    health: tuple[str, str] | None


@functools.cache
def client() -> Client:
    """The client of this process; raises :class:`servicing.ConfigurationError` if the settings are invalid."""
    return build_client(CircuitBreaker())


def build_client(circuit_breaker: Gate | None) -> Client:
    """A client from the settings; without a breaker it always calls."""
    chosen: Any = settings  # Each is one of a fixed list, checked when read.
    return Client(
        settings.SERVICING_URL,
        client_id=settings.SERVICING_CLIENT_ID,
        secret=settings.SERVICING_SECRET,
        auth=chosen.SERVICING_AUTH,
        token=settings.SERVICING_TOKEN,
        token_url=settings.SERVICING_TOKEN_URL,
        scope=settings.SERVICING_SCOPE,
        auth_headers=settings.SERVICING_AUTH_HEADERS,
        epoch_unit=chosen.SERVICING_EPOCH_UNIT,
        field_key=settings.SERVICING_FIELD_KEY,
        value_encoding=chosen.SERVICING_VALUE_ENCODING,
        value_iv=settings.SERVICING_VALUE_IV,
        value_key=chosen.SERVICING_VALUE_KEY,
        cipher=_imported("SERVICING_CIPHER", "a class"),
        envelope=settings.SERVICING_ENVELOPE,
        list_envelope=settings.SERVICING_LIST_ENVELOPE,
        page_size=settings.SERVICING_PAGE_SIZE,
        timeout=(3.05, settings.SERVICING_TIMEOUT),
        time_limit=writes.call_time_limit_seconds(),
        country=settings.SERVICING_COUNTRY,
        incorporation_field=settings.SERVICING_INCORPORATION_FIELD,
        message_filters=chosen.SERVICING_MESSAGE_FILTERS,
        message_content_type=settings.SERVICING_MESSAGE_CONTENT_TYPE,
        offset_counts=chosen.SERVICING_OFFSET_COUNTS,
        time_zone=settings.SERVICING_TIME_ZONE,
        gate=circuit_breaker,
        **_connection_options(),
    )


def _connection_options() -> dict[str, Any]:
    """The configured session, or the certificates and proxy for the client's own."""
    if make_session := _imported("SERVICING_SESSION", "a function"):
        return {"session": make_session()}
    cert, key = settings.SERVICING_CLIENT_CERT, settings.SERVICING_CLIENT_CERT_KEY
    proxy = settings.SERVICING_PROXY
    return {
        "verify": settings.SERVICING_CA_BUNDLE or True,
        "cert": (cert, key) if cert and key else cert or None,
        "proxies": {"http": proxy, "https": proxy} if proxy else None,
    }


def _imported(setting: str, what: str) -> Callable[..., Any] | None:
    """What a setting names by its dotted path, if it is set."""
    path = getattr(settings, setting)
    try:
        found: Callable[..., Any] | None = import_string(path) if path else None
    except ImportError as error:
        raise servicing.ConfigurationError(f"{setting} doesn’t name {what}: {error}.") from None
    if found is not None and not callable(found):
        raise servicing.ConfigurationError(f"{setting} doesn’t name {what}, but {path}.")
    return found


def client_for_write(request: StaffRequest, write: Write) -> Client:
    """The client for one write: its intent is committed before it is sent, its outcome recorded afterwards.

    Raises :class:`AlreadySubmitted` or :class:`Blocked` from the call when nothing may be sent.
    """
    return client().with_watcher(_watch_request(request, write), request_id=request.request_id)


def client_for(actor: Actor, *, ignore_breaker: bool = False) -> Client:
    """The client for a command or a background task."""
    chosen = build_client(None) if ignore_breaker else client()
    return chosen.with_watcher(Watcher(actor), request_id=actor.request_id)


def _watch_request(request: Any, write: Write | None = None) -> "Watcher":
    """A watcher, kept on the request because an error page must not deny a write."""
    watcher = Watcher(Actor.of(request), write)
    request.watchers = [*getattr(request, "watchers", []), watcher]
    return watcher


class Watcher:
    """Records the calls of one request or task, each together with the copy of its answer."""

    def __init__(self, actor: Actor, write: Write | None = None) -> None:
        self.actor = actor
        self.write = write
        self.intent: WriteIntent | None = None
        self.result: WriteResult | None = None
        self.saved_to: SavedTo | None = None

    def before(self, call: Call) -> None:
        """Commit a write's intent before it is sent."""
        write = self.write or Write(submit_id=secrets.token_hex(16), label=call.operation)
        self.result = self.saved_to = None
        self.intent = writes.open_intent(write, self.actor, call)

    def after(self, call: Call, outcome: Outcome) -> None:
        """Record the call, its answer and a write's outcome in one transaction."""
        row = self._row(call, outcome)  # Mask before the transaction: SQLite allows one writer.
        items = [] if outcome.error else store.records_in_answer(call.operation, outcome.answer, call.ids)
        if call.kind == "write" and self.intent:
            self.result = self._result(self.intent, call, outcome, row, items)
            self.intent.state = self.result.state
            self.saved_to = writes.save_result(self.result, items)
            if self.saved_to != SavedTo.DATABASE:
                raise AnswerNotSaved(f"{row.request_id}: the answer is in the {self.saved_to.value} alone")
            return
        row.answer_body = json_text(outcome.body)
        with transaction.atomic():
            row.save(force_insert=True)
            store.save(items, source=Source.SERVICE, operation=call.operation, by=self.actor.name)

    def _result(
        self,
        intent: WriteIntent,
        call: Call,
        outcome: Outcome,
        row: RemoteCall,
        items: list[store.Observation],
    ) -> WriteResult:
        state = row.outcome if row.outcome in WriteIntent.State.values else WriteIntent.State.REJECTED
        message = "; ".join(outcome.error.reasons) if outcome.error else ""
        own = items[0] if items else None
        left_out = ("id", "at", "answer_body")
        names = [field.attname for field in RemoteCall._meta.concrete_fields if field.attname not in left_out]
        return WriteResult(
            intent_id=str(intent.pk),
            actor=self.actor,
            state=str(state),
            status=outcome.status,
            message=masked_text(message),
            kind=str(own.kind) if own else "",
            uuid=own.uuid if own else "",
            call={name: getattr(row, name) for name in names} | {"intent_id": str(intent.pk)},
            body=outcome.body,
            ids=dict(call.ids),
            answer=store.canonical_json(own.answer) if own and own.answer is not None else "",
        )

    def _row(self, call: Call, outcome: Outcome) -> RemoteCall:
        return RemoteCall(
            operation=call.operation,
            method=call.method,
            path=call.path[:500],
            outcome=call_outcome(outcome.error) if outcome.error or call.kind == "write" else "answered",
            status=outcome.status,
            duration_ms=round(outcome.seconds * 1000),
            tries=outcome.tries,
            request_id=call.request_id,
            actor_id=self.actor.id,
            actor_name=self.actor.name,
            error=masked_text(outcome.error.message) if outcome.error else "",
            request_body=json_text(call.body),
        )


def call_outcome(error: servicing.ServicingError | None) -> str:
    """How a call ended, in one word. For most writes it is the intent's state."""
    match error:
        case None:
            return WriteIntent.State.CONFIRMED
        case servicing.NotSent():
            return WriteIntent.State.NOT_SENT
        case servicing.OutcomeUnknown():
            return WriteIntent.State.UNKNOWN
        case servicing.Forbidden() | servicing.Unauthenticated():
            return "forbidden"
        case servicing.Rejected():
            return WriteIntent.State.REJECTED
        case servicing.Unavailable():
            return "unavailable"
        case _:
            return "protocol"


class GatewayMiddleware:
    """Gives each request its time zone, its permissions and the lending service."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> HttpResponse:
        request.can = functools.partial(can, request.user)
        request.servicing = SimpleLazyObject(
            lambda: client().with_watcher(_watch_request(request), request_id=request.request_id)
        )
        zone = getattr(request.user, "time_zone", "") or str(settings.BUSINESS_TIME_ZONE)
        with timezone.override(zoneinfo.ZoneInfo(zone)):
            return self.get_response(request)
