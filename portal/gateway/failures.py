"""What each failure looks like on screen, and Django's handlers of 400, 403, 404 and 500.

Hides which failures have a page of their own, that htmx gets a notice instead of a page, that pages for a lost database
need none, and that a page never denies a write that may have been sent.
"""

import logging
from dataclasses import replace
from http import HTTPStatus
from typing import Any, NamedTuple

from django.core.exceptions import PermissionDenied
from django.db import Error as DatabaseFailure
from django.http import Http404, HttpRequest, HttpResponse
from django.template import loader
from django.utils.deprecation import MiddlewareMixin

import servicing
from portal.audit.chain import AlreadySaved, append
from portal.audit.models import Actor, WriteIntent
from portal.audit.writes import NotOpened, RecordBusy, SavedTo
from portal.core.database import is_unavailable
from portal.gateway.client import Watcher
from portal.ui.frame import Frame
from portal.ui.htmx import finish_action, page_before, render_page, toast

logger = logging.getLogger(__name__)


class Failure(NamedTuple):
    """A failure on screen: what happened, what did not change, what to do."""

    status: HTTPStatus
    title: str
    advice: str
    unchanged: str = "Nothing was changed."


ALREADY_SENT = Failure(
    HTTPStatus.CONFLICT,
    "Already sent",
    "Open the earlier request to see its outcome.",
    unchanged="Nothing was sent now.",
)
RECORD_BUSY = Failure(
    HTTPStatus.CONFLICT,
    "Another change to this record is being sent",
    "Open that change to see its outcome, then review and send yours.",
    unchanged="Nothing was sent now.",
)
OUTCOME_UNKNOWN = Failure(
    HTTPStatus.GATEWAY_TIMEOUT,
    "Outcome unknown",
    "The request record says whether the request can be sent again and what to ask the lending service.",
    unchanged="The request was sent, but no clear response came back. It may or may not have gone through.",
)
FAILURES: dict[type[servicing.ServicingError], Failure] = {
    servicing.InvalidInput: Failure(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "This can’t be sent",
        "Fix the fields named and try again.",
        unchanged="Nothing was sent.",
    ),
    servicing.NotFound: Failure(
        HTTPStatus.NOT_FOUND,
        "Record not found at the service",
        "Check the ID and whether the record belongs to this borrower.",
    ),
    servicing.Forbidden: Failure(
        HTTPStatus.FORBIDDEN, "The service denied access", "Give your administrator the reference."
    ),
    servicing.Conflict: Failure(
        HTTPStatus.CONFLICT,
        "The service has different data now",
        "Review what the service has now, then try again.",
    ),
    servicing.Rejected: Failure(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "The service rejected this",
        "Fix what the service names and send again.",
    ),
    servicing.Busy: Failure(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The service is busy",
        servicing.Busy.advice,
        unchanged="Nothing was sent.",
    ),
    servicing.NotSent: Failure(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The service can’t be reached",
        "Try again in a moment.",
        unchanged="Nothing was sent.",
    ),
    servicing.Unavailable: Failure(
        HTTPStatus.SERVICE_UNAVAILABLE, "The service isn’t responding", "Try again in a moment."
    ),
    servicing.Unauthenticated: Failure(
        HTTPStatus.BAD_GATEWAY,
        "The service rejects our credentials",
        "The credentials or the clock are wrong. Give your administrator the reference.",
        unchanged="Nothing was changed. Drafts are saved.",
    ),
    servicing.ServicingError: Failure(
        HTTPStatus.BAD_GATEWAY,
        "The service sent an unreadable response",
        "Give your administrator the reference.",
        unchanged="No known changes.",
    ),
}


WRITE_TITLES = {
    "confirmed": "Done at the service",
    "rejected": "The service rejected this",
    "not_sent": "Nothing was sent",
}
"""The title of a write whose own page can't be shown, by its state."""
READS = ("GET", "HEAD")
WITH_A_PAGE = (
    servicing.AnswerNotSaved,
    PermissionDenied,
    Http404,
    NotOpened,
    servicing.ServicingError,
)


class FailureMiddleware(MiddlewareMixin):
    """Turns an exception from a view into a page, or into a notice for htmx."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Show our own page for an address that leads nowhere."""
        if response.status_code == HTTPStatus.NOT_FOUND and request.resolver_match is None:
            return page_404(request, Http404())  # Under DEBUG, Django would show its own page.
        return response

    def process_view(self, request: Any, view: Any, args: Any, kwargs: dict[str, Any]) -> HttpResponse | None:
        """Treat an address with a NUL as not found: PostgreSQL fails on it."""
        return page_404(request, Http404()) if "\0" in request.path_info else None

    def process_exception(self, request: Any, error: Exception) -> HttpResponse | None:
        """The page of a failure; ``None`` if Django handles it."""
        write = write_to_report(request)
        if write and _has_page(error) and not isinstance(error, servicing.OutcomeUnknown):
            return write_result_page(request, write)
        match error:
            case PermissionDenied() if request.user.is_authenticated:  # The admin raises plain ones.
                label, detail = getattr(error, "act", "admin"), {"path": request.path[:300]}
                actor = replace(Actor.of(request), save_id="")  # Nothing was saved.
                append(actor, "accounts.refused", subject_label=label, detail=detail)
                return None
            case Http404():
                return page_404(request, error)
            case AlreadySaved():
                toast(request, str(error))
                return finish_action(request, page_before(request))
            case DatabaseFailure() if is_unavailable(error):
                return database_unavailable(request)
            case RecordBusy():
                return failure_page(request, RECORD_BUSY, intent=error.intent)
            case NotOpened():
                return failure_page(request, ALREADY_SENT, intent=error.intent)
            case servicing.OutcomeUnknown():
                if write and write.intent and write.saved_to == SavedTo.DATABASE:
                    # A page of its own, so that Back and reloading send nothing again.
                    return finish_action(request, write.intent.get_absolute_url())
                intent = write.intent if write else None
                return failure_page(request, OUTCOME_UNKNOWN, error=error, intent=intent)
            case servicing.ServicingError():
                failure = next(failure for kind, failure in FAILURES.items() if isinstance(error, kind))
                if isinstance(error, servicing.Busy):
                    failure = failure._replace(advice=error.advice)
                if failure.status == HTTPStatus.BAD_GATEWAY:
                    logger.error("%s", error)
                return failure_page(request, failure, error=error)
        return None


def _has_page(error: Exception) -> bool:
    """Whether a failure has its own page; Django logs any other, and shows it under DEBUG."""
    return is_unavailable(error) if isinstance(error, DatabaseFailure) else isinstance(error, WITH_A_PAGE)


def write_to_report(request: Any) -> Watcher | None:
    """The latest write of this request that may have changed something at the service or wasn't saved."""
    watchers: list[Watcher] = getattr(request, "watchers", [])
    for watcher in reversed(watchers):
        state = watcher.result.state if watcher.result else WriteIntent.State.SENDING
        if watcher.intent and (
            watcher.saved_to != SavedTo.DATABASE or state not in WriteIntent.WITHOUT_EFFECT
        ):
            return watcher
    return None


# --- Pages ---


def failure_page(
    request: HttpRequest,
    failure: Failure,
    *,
    error: servicing.ServicingError | None = None,
    intent: WriteIntent | None = None,
) -> HttpResponse:
    context = {"failure": failure, "error": error, "intent": intent}
    return error_page(request, "failure.html", failure.status, context)


def error_page(
    request: HttpRequest, template: str, status: int, context: dict[str, Any] | None = None
) -> HttpResponse:
    """A whole page, or a notice if htmx asked for a fragment."""
    return render_page(request, _page_or_notice(request, template), context, status=status)


def write_result_page(
    request: Any, write: Watcher, status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE
) -> HttpResponse:
    """The outcome of a write whose own page failed. It needs no database."""
    result = write.result
    return _bare_page(
        request,
        "write_result.html",
        status,
        title=WRITE_TITLES.get(result.state if result else "", OUTCOME_UNKNOWN.title),
        result=result,
        intent=write.intent,
        is_saved=write.saved_to == SavedTo.DATABASE,
        is_in_file=write.saved_to == SavedTo.FILE,
    )


def database_unavailable(request: HttpRequest) -> HttpResponse:
    """The page for a database that is down, locked, full or read-only."""
    watchers: list[Watcher] = getattr(request, "watchers", [])
    intent = next((watcher.intent for watcher in watchers if watcher.intent), None)
    context: dict[str, Any] = {"intent": intent, "only_reads": request.method in READS}
    response = _bare_page(request, "database_away.html", HTTPStatus.SERVICE_UNAVAILABLE, **context)
    response["Retry-After"] = "10"
    return response


def _bare_page(request: HttpRequest, template: str, status: int, **context: Any) -> HttpResponse:
    """A page that needs neither the database nor the middleware."""
    reference = {"request_id": getattr(request, "request_id", "")}
    frame = {"environment": Frame(request).environment}
    text = loader.render_to_string(
        _page_or_notice(request, template), {"request": reference, "frame": frame} | context
    )
    return HttpResponse(text, status=status)


def _page_or_notice(request: HttpRequest, template: str) -> str:
    """The notice template for a fragment, else the page's. A request that failed early has no htmx details."""
    htmx = getattr(request, "htmx", None)
    is_fragment = htmx and not htmx.boosted and not htmx.history_restore_request
    return f"{template}#notice" if is_fragment else template


# --- Django's handlers ---


def page_400(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _bare_page(request, "400.html", HTTPStatus.BAD_REQUEST)


def page_403(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_page(request, "403.html", HTTPStatus.FORBIDDEN, {"exception": exception})


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The page for a form with a missing or outdated CSRF token."""
    return error_page(request, "403_csrf.html", HTTPStatus.FORBIDDEN)


def page_404(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for an unknown address."""
    return error_page(request, "404.html", HTTPStatus.NOT_FOUND)


def page_500(request: HttpRequest) -> HttpResponse:
    """The page for a defect of ours. It reports a write that came before."""
    if write := write_to_report(request):
        return write_result_page(request, write, HTTPStatus.INTERNAL_SERVER_ERROR)
    only_reads = request.method in READS
    return _bare_page(request, "500.html", HTTPStatus.INTERNAL_SERVER_ERROR, only_reads=only_reads)
