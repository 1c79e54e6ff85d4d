"""The only door from the portal to the lending service.

It hides one client for the process, bound to whoever is asking (``request.servicing``); the audit entries around every
write and the row for every call; the memory of what was answered; and what each way of failing looks like on screen.
"""

import functools
import logging
import secrets
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.template import loader
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string
from django_htmx.middleware import HtmxDetails

import servicing
from portal import tracing
from portal.accounts.models import User
from portal.accounts.roles import RoleMissing, can
from portal.audit import intents, outcomes
from portal.audit.breaker import Breaker
from portal.audit.chain import append
from portal.audit.health import FAILED
from portal.audit.intents import AlreadySubmitted, Blocked, RecordBusy, Write
from portal.audit.models import Actor, RemoteCall, WriteIntent
from portal.audit.outcomes import Place, WriteResult, json_text
from portal.cache import CacheAway
from portal.disk import hasty, is_unavailable
from portal.registry import memory
from portal.registry.models import Source
from portal.ui.frame import Frame
from portal.ui.htmx import render_page
from servicing import AnswerNotSaved, Call, Client, Outcome
from servicing.masking import masked_text
from servicing.transport import Gate

logger = logging.getLogger(__name__)


class StaffRequest(HttpRequest):
    """What views get: a signed-in person, HTMX details, and the lending service."""

    user: User
    htmx: HtmxDetails
    servicing: Client
    request_id: str
    can: Callable[[str], bool]


@functools.cache
def client() -> Client:
    """The client of this process, made from the settings; :class:`servicing.ConfigurationError` if they cannot be."""
    return made(Breaker())


def made(gate: Gate | None) -> Client:
    """A client that asks whenever its gate lets it, and without one in any case."""
    chosen: Any = settings  # one of a closed list each, checked where they are read
    return Client(
        settings.SERVICING_URL,
        client_id=settings.SERVICING_CLIENT_ID,
        secret=settings.SERVICING_SECRET,
        auth=chosen.SERVICING_AUTH,
        token=settings.SERVICING_TOKEN,
        auth_headers=settings.SERVICING_AUTH_HEADERS,
        epoch_unit=chosen.SERVICING_EPOCH_UNIT,
        field_key=settings.SERVICING_FIELD_KEY,
        timeout=(3.05, settings.SERVICING_TIMEOUT),
        time_limit=intents.time_limit_seconds(),
        max_values=settings.SERVICING_MAX_VALUES,
        max_records=settings.SERVICING_MAX_RECORDS,
        country=settings.SERVICING_COUNTRY,
        incorporation_field=settings.SERVICING_INCORPORATION_FIELD,
        message_filters=chosen.SERVICING_MESSAGE_FILTERS,
        message_content_type=settings.SERVICING_MESSAGE_CONTENT_TYPE,
        offset_counts=chosen.SERVICING_OFFSET_COUNTS,
        time_zone=settings.SERVICING_TIME_ZONE,
        gate=gate,
        **_connection_options(),
    )


def _connection_options() -> dict[str, Any]:
    """A ready session, or the certificates and the proxy of one that the client makes."""
    if settings.SERVICING_SESSION:
        return {"session": import_string(settings.SERVICING_SESSION)()}
    cert, key, proxy = (
        settings.SERVICING_CLIENT_CERT,
        settings.SERVICING_CLIENT_CERT_KEY,
        settings.SERVICING_PROXY,
    )
    return {
        "verify": settings.SERVICING_CA_BUNDLE or True,
        "cert": (cert, key) if cert and key else cert or None,
        "proxies": {"http": proxy, "https": proxy} if proxy else None,
    }


def writing(request: StaffRequest, write: Write) -> Client:
    """The client for one write: its intent is committed before anything is sent, its outcome recorded after.

    Raises :class:`AlreadySubmitted` or :class:`Blocked` from the call itself when nothing may be sent.
    """
    return client().watched_by(_watcher(request, write), request_id=request.request_id)


def reading(actor: Actor, *, in_any_case: bool = False) -> Client:
    """The client for work that no request asked for: a command or a background task."""
    return (made(None) if in_any_case else client()).watched_by(Watcher(actor), request_id=actor.request_id)


def _watcher(request: Any, write: Write | None = None) -> "Watcher":
    """The watcher of what a request asks; the request keeps it, for a page must not deny what was written."""
    watcher = Watcher(Actor.of(request), write)
    request.watchers = [*getattr(request, "watchers", []), watcher]
    return watcher


class Watcher:
    """Records every call of one click; remembers every answer in the same transaction as its audit entry."""

    def __init__(self, actor: Actor, write: Write | None = None) -> None:
        self.actor = actor
        self.write = write
        self.intent: WriteIntent | None = None
        self.result: WriteResult | None = None
        self.place: Place | None = None

    def before(self, call: Call) -> None:
        """A write goes out only once its intent is committed."""
        write = self.write or Write(submit_id=secrets.token_hex(16), label=call.operation)
        self.result = self.place = None
        self.intent = intents.open_intent(
            write, self.actor, operation=call.operation, method=call.method, path=call.path, body=call.body
        )

    def after(self, call: Call, outcome: Outcome) -> None:
        """Row, memory and the write's outcome, all or nothing; an answer that the database does not take is spooled."""
        row = self._row(call, outcome)  # Masked here: SQLite lets one write at a time.
        items = [] if outcome.error else memory.records_in_answer(call.operation, outcome.answer, call.ids)
        if call.kind == "write" and self.intent:
            self.result = self._result(self.intent, call, outcome, row, items)
            self.intent.state = self.result.state
            self.place = outcomes.save(self.result, items)
            _trace(row)
            if self.place != Place.DATABASE:
                raise AnswerNotSaved(f"{row.request_id}: the answer is in the {self.place.value} alone")
            return
        _trace(row)
        row.answer_body = json_text(outcome.body)
        with hasty(), transaction.atomic():  # What was read can be read again.
            row.save(force_insert=True)
            memory.remember(items, source=Source.SERVICE, by=self.actor.name)

    def _result(
        self, intent: WriteIntent, call: Call, outcome: Outcome, row: RemoteCall, items: list[memory.Known]
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
            answer=memory.text_of(own.answer) if own and own.answer is not None else "",
        )

    def _row(self, call: Call, outcome: Outcome) -> RemoteCall:
        return RemoteCall(
            operation=call.operation,
            method=call.method,
            path=call.path[:500],
            outcome=ending(outcome.error) if outcome.error or call.kind == "write" else "answered",
            status=outcome.status,
            duration_ms=milliseconds(outcome),
            tries=outcome.tries,
            request_id=call.request_id,
            actor_id=self.actor.id,
            actor_name=self.actor.name,
            error=masked_text(outcome.error.message) if outcome.error else "",
            request_body=json_text(call.body),
        )


def _trace(row: RemoteCall) -> None:
    told: tracing.Told = {
        "http.request.method": row.method,
        "http.response.status_code": row.status,
        "desk.request_id": row.request_id,
        "desk.outcome": row.outcome,
        "desk.tries": row.tries,
    }
    span = tracing.Span(row.operation, told)
    if row.outcome in FAILED:
        span.fail(row.outcome)
    tracing.past(span, row.duration_ms, kind="client")


def ending(error: servicing.ServicingError | None) -> str:
    """How a call ended in one word; for a write it is the state of its intent, or it was refused."""
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


def milliseconds(outcome: Outcome) -> int:
    """How long the call took."""
    return round(outcome.seconds * 1000)


class GatewayMiddleware:
    """Gives each request its time zone and the lending service, and turns failures into pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> HttpResponse:
        request.can = functools.partial(can, request.user)
        request.servicing = SimpleLazyObject(
            lambda: client().watched_by(_watcher(request), request_id=request.request_id)
        )
        with timezone.override(zoneinfo.ZoneInfo(zone_of(request.user))):
            response = self.get_response(request)
            if response.status_code == HTTPStatus.NOT_FOUND and request.resolver_match is None:
                response = missing(request, Http404())  # Under DEBUG Django has a page of its own for it.
        return response

    def process_view(self, request: Any, view: Any, args: Any, kwargs: dict[str, Any]) -> HttpResponse | None:
        """Nothing has a name with a NUL in it, and PostgreSQL does not even look for it."""
        return missing(request, Http404()) if "\0" in request.path_info else None

    def process_exception(self, request: Any, error: Exception) -> HttpResponse | None:
        """The page, or the notice for HTMX, of what a view let through."""
        write = _written(request)
        if write and _is_named(error):
            return write_page(request, write)
        match error:
            case RoleMissing():
                append(
                    Actor.of(request),
                    "accounts.refused",
                    subject_label=error.act,
                    detail={"path": request.path[:300]},
                )
                return None
            case Http404():
                return missing(request, error)
            case DatabaseFailure() if is_unavailable(error):
                return database_away(request)
            case CacheAway():  # Only the throttling asks what nothing but the cache knows.
                return error_page(request, "503.html", HTTPStatus.SERVICE_UNAVAILABLE)
            case RecordBusy():
                return trouble(request, BUSY, intent=error.intent)
            case AlreadySubmitted() | Blocked():
                return trouble(request, ALREADY, intent=error.intent)
            case servicing.OutcomeUnknown():
                return trouble(request, UNKNOWN, error=error, intent=write.intent if write else None)
            case servicing.ServicingError():
                page = next(page for kind, page in PAGES.items() if isinstance(error, kind))
                if page.status == HTTPStatus.BAD_GATEWAY:
                    logger.error("%s", error)
                return trouble(request, page, error=error)
        return None


@dataclass(frozen=True)
class Trouble:
    """One way of failing on screen: what happened, what did not change, what to do."""

    status: HTTPStatus
    title: str
    unchanged: str
    advice: str


ALREADY = Trouble(
    HTTPStatus.CONFLICT,
    "This was sent before",
    "Nothing was sent this time.",
    "Open the earlier one to see what came of it.",
)
BUSY = Trouble(
    HTTPStatus.CONFLICT,
    "Another change to this record is being sent",
    "Nothing was sent this time.",
    "Open that change to see its outcome, then review yours and send it.",
)
UNKNOWN = Trouble(
    HTTPStatus.GATEWAY_TIMEOUT,
    "We do not know whether it went through",
    "The request left this desk, and the answer was lost: it may or may not have been done.",
    "Open the record of this write: it says whether it may be sent again, and what to ask the lending service.",
)
PAGES: dict[type[servicing.ServicingError], Trouble] = {
    servicing.InvalidInput: Trouble(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "This cannot be sent",
        "Nothing was sent.",
        "Correct what is named here and try again.",
    ),
    servicing.NotFound: Trouble(
        HTTPStatus.NOT_FOUND,
        "The lending service does not have this record",
        "Nothing was changed.",
        "Check the identifier, and whether the record belongs to this borrower.",
    ),
    servicing.Forbidden: Trouble(
        HTTPStatus.FORBIDDEN,
        "The lending service refused access",
        "Nothing was changed.",
        "Ask whoever looks after the connection; the reference helps them.",
    ),
    servicing.Conflict: Trouble(
        HTTPStatus.CONFLICT,
        "The lending service has this otherwise meanwhile",
        "Nothing was changed.",
        "Look at what the service has now, then decide again.",
    ),
    servicing.Rejected: Trouble(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "The lending service refused this",
        "Nothing was changed.",
        "Correct what the service names and send again.",
    ),
    servicing.NotSent: Trouble(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The lending service cannot be reached",
        "Nothing was sent.",
        "Try again in a moment.",
    ),
    servicing.Unavailable: Trouble(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The lending service is not answering",
        "Nothing was changed.",
        "Try again in a moment.",
    ),
    servicing.Unauthenticated: Trouble(
        HTTPStatus.BAD_GATEWAY,
        "The lending service does not accept this desk’s credentials",
        "Nothing was changed; what was typed in a draft is kept.",
        "Ask whoever looks after the connection: the credentials or the clock are wrong. The reference helps them.",
    ),
    servicing.ServicingError: Trouble(
        HTTPStatus.BAD_GATEWAY,
        "The lending service gave an answer that cannot be read",
        "Nothing was changed that we know of.",
        "Ask whoever looks after the connection; the reference helps them.",
    ),
}


# What became of a write whose own page cannot be shown, by the state of its result.
WRITE_TITLES = {
    "confirmed": "Done at the service",
    "rejected": "The lending service rejected this",
    "not_sent": "Nothing was sent",
}


def _written(request: Any) -> Watcher | None:
    """What this request may have changed at the service, or could not save; none where nothing is to be told."""
    watchers: list[Watcher] = getattr(request, "watchers", [])
    begun = [one for one in watchers if one.intent]
    for one in reversed(begun):
        state = one.result.state if one.result else WriteIntent.State.SENDING
        if one.place != Place.DATABASE or state not in WriteIntent.CAME_TO_NOTHING:
            return one
    return None


def _is_named(error: Exception) -> bool:
    """Whether this is a failure with a page of its own; Django logs any other, and shows it under DEBUG."""
    if isinstance(error, servicing.OutcomeUnknown):
        return False  # Its page says the same.
    if isinstance(error, DatabaseFailure):
        return is_unavailable(error)
    named = (
        AnswerNotSaved,
        RoleMissing,
        Http404,
        CacheAway,
        RecordBusy,
        AlreadySubmitted,
        Blocked,
        servicing.ServicingError,
    )
    return isinstance(error, named)


def write_page(
    request: Any, write: Watcher, status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE
) -> HttpResponse:
    """What became of a write, where the page that should say so failed. It needs no database."""
    result = write.result
    title = WRITE_TITLES.get(result.state, "") if result else ""
    return _bare_page(
        request,
        "write_result.html",
        status,
        title=title or UNKNOWN.title,
        result=result,
        intent=write.intent,
        is_saved=write.place == Place.DATABASE,
        is_spooled=write.place == Place.SPOOL,
    )


def trouble(
    request: Any,
    page: Trouble,
    *,
    error: servicing.ServicingError | None = None,
    intent: WriteIntent | None = None,
) -> HttpResponse:
    """The page of a failed call."""
    return error_page(
        request, "trouble.html", page.status, {"trouble": page, "error": error, "intent": intent}
    )


def error_page(
    request: HttpRequest, template: str, status: int, context: dict[str, Any] | None = None
) -> HttpResponse:
    """A page of its own, or its notice where a fragment was asked for, which a whole page would spoil."""
    name = f"{template}#notice" if wants_notice(request) else template
    return render_page(request, name, context, status=status)


def wants_notice(request: HttpRequest) -> bool:
    """Whether HTMX asked for a part of a page; false where the request failed before that was known."""
    htmx: HtmxDetails | None = getattr(request, "htmx", None)
    return bool(htmx and not htmx.boosted and not htmx.history_restore_request)


def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler of 403."""
    return error_page(request, "403.html", HTTPStatus.FORBIDDEN, {"exception": exception})


def expired(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's handler of a form whose token is not, or no longer, the browser's."""
    return error_page(request, "403_csrf.html", HTTPStatus.FORBIDDEN)


def missing(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler of 404."""
    return error_page(request, "404.html", HTTPStatus.NOT_FOUND)


def unreadable(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler of 400."""
    return _bare_page(request, "400.html", HTTPStatus.BAD_REQUEST)


def broken(request: HttpRequest) -> HttpResponse:
    """Django's handler of 500."""
    if write := _written(request):
        return write_page(request, write, HTTPStatus.INTERNAL_SERVER_ERROR)
    return _bare_page(request, "500.html", HTTPStatus.INTERNAL_SERVER_ERROR)


def database_away(request: HttpRequest) -> HttpResponse:
    """The page of a request for which the database was away, locked, full or read-only."""
    watchers: list[Watcher] = getattr(request, "watchers", [])
    intent = next((watcher.intent for watcher in watchers if watcher.intent), None)
    context: dict[str, Any] = {"intent": intent, "only_reads": request.method in ("GET", "HEAD")}
    response = _bare_page(request, "database_away.html", HTTPStatus.SERVICE_UNAVAILABLE, **context)
    response["Retry-After"] = "10"
    return response


def _bare_page(request: HttpRequest, template: str, status: int, **more: Any) -> HttpResponse:
    """Nothing that it shows needs the database, or a request that got as far as that."""
    name = f"{template}#notice" if wants_notice(request) else template
    shown = {"request_id": getattr(request, "request_id", "")}
    known = {"request": shown, "frame": {"environment": Frame(request).environment}}
    return HttpResponse(loader.render_to_string(name, known | more), status=status)


def zone_of(user: Any) -> str:
    """The zone in which this person reads times."""
    return getattr(user, "time_zone", "") or str(settings.BUSINESS_TIME_ZONE)
