"""Control endpoints under ``/_sandbox/``, for a sandbox that is started with ``control``.

    POST   /_sandbox/faults   {"operation": "loans.get", "status": 503, "times": 2}
    DELETE /_sandbox/faults
    POST   /_sandbox/advance  {"days": 30}
    POST   /_sandbox/reset    {}
    GET    /_sandbox/calls
    GET    /_sandbox/date

They need no signature. A body must be sent as JSON, which a foreign web page in a browser cannot do.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from werkzeug import Request, Response

from servicing.sandbox.app import Service
from servicing.sandbox.checks import Invalid, whole_number
from servicing.sandbox.endpoints import OPERATIONS
from servicing.sandbox.faults import ANY, Fault
from servicing.sandbox.wire import JSON, NotJSON, convert, dumps, loads
from servicing.sandbox.world import World

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PREFIX = "/_sandbox/"
MAX_ADVANCE_DAYS = 3660


def with_control(service: Service, world: World, reset: Callable[[], None]) -> "WSGIApplication":
    """The service together with the control endpoints."""
    handlers: dict[tuple[str, str], Callable[[Any], JSON]] = {
        ("POST", "faults"): lambda body: _add_fault(service, body),
        ("DELETE", "faults"): lambda body: service.faults.clear(),
        ("POST", "advance"): lambda body: world.advance(whole_number(1, MAX_ADVANCE_DAYS, body.get("days"))),
        ("POST", "reset"): lambda body: reset(),
        ("GET", "calls"): lambda body: _calls(service),
        ("GET", "date"): lambda body: {"date": world.clock.today().isoformat()},
    }

    def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        request = Request(environ)
        if not request.path.startswith(PREFIX):
            return service(environ, start_response)
        handle = handlers.get((request.method, request.path.removeprefix(PREFIX)))
        return _answer(request, handle)(environ, start_response)

    return application


def _answer(request: Request, handle: Callable[[Any], JSON] | None) -> Response:
    if handle is None:
        return _error(404, "There is no such control endpoint")
    if request.method == "POST" and request.mimetype != "application/json":
        return _error(415, "Send the body as application/json")
    try:
        body = loads(request.get_data() or b"{}")
        if not isinstance(body, dict):
            raise Invalid.because("The body must be an object")
        return Response(dumps(handle(body)), mimetype="application/json")
    except (NotJSON, Invalid) as problem:
        return _error(400, str(problem))


@dataclass(frozen=True, kw_only=True)
class FaultRequest(Fault):
    """A fault together with its operation and how often it happens."""

    operation: str
    times: int | None = 1


def _add_fault(service: Service, body: dict[str, Any]) -> None:
    fault_request, field_names = convert(body, FaultRequest), [field.name for field in fields(FaultRequest)]
    if fault_request.operation not in (*OPERATIONS, ANY):
        raise Invalid.because(f"operation must be one of {', '.join((*OPERATIONS, ANY))}")
    if not set(body) <= set(field_names):
        raise Invalid.because(f"The only fields are {', '.join(field_names)}")
    service.faults.add(fault_request.operation, fault_request, times=fault_request.times)


def _calls(service: Service) -> JSON:
    """The recorded calls, without headers and bodies, which may be confidential."""
    return [
        {
            "operation": call.operation,
            "method": call.method,
            "path": call.path,
            "query": dict(call.query),
            "status": call.status,
        }
        for call in service.calls
    ]


def _error(status: int, message: str) -> Response:
    return Response(dumps({"message": message}), status, mimetype="application/json")
