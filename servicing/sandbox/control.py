"""Buttons for hand use, under ``/_sandbox/``; only a sandbox that was started with them has them.

    POST   /_sandbox/faults   {"operation": "loans.get", "status": 503, "times": 2}
    DELETE /_sandbox/faults
    POST   /_sandbox/advance  {"days": 30}
    POST   /_sandbox/reset    {}
    GET    /_sandbox/calls

They ask for no signature, so a body must be sent as JSON: a page in a browser cannot do that unasked.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from werkzeug import Request, Response

from servicing.sandbox.app import Service, error
from servicing.sandbox.checks import Invalid, whole_number
from servicing.sandbox.endpoints import OPERATIONS
from servicing.sandbox.faults import ANY, Fault
from servicing.sandbox.wire import JSON, NotJSON, dumps, fit, loads
from servicing.sandbox.world import World

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PREFIX = "/_sandbox/"
MOST_DAYS = 3660


def with_control(service: Service, world: World, reset: Callable[[], None]) -> "WSGIApplication":
    """The service with its buttons."""
    acts: dict[tuple[str, str], Callable[[Any], JSON]] = {
        ("POST", "faults"): lambda body: _add_fault(service, body),
        ("DELETE", "faults"): lambda body: service.faults.clear(),
        ("POST", "advance"): lambda body: world.advance(whole_number(1, MOST_DAYS, body.get("days"))),
        ("POST", "reset"): lambda body: reset(),
        ("GET", "calls"): lambda body: _calls(service),
    }

    def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        request = Request(environ)
        if not request.path.startswith(PREFIX):
            return service(environ, start_response)
        act = acts.get((request.method, request.path.removeprefix(PREFIX)))
        return _answer(request, act)(environ, start_response)

    return application


def _answer(request: Request, act: Callable[[Any], JSON] | None) -> Response:
    if act is None:
        return error(404, "There is no such button")
    if request.method == "POST" and request.mimetype != "application/json":
        return error(415, "Send the body as application/json")
    try:
        body = loads(request.get_data() or b"{}")
        if not isinstance(body, dict):
            raise Invalid.because("The body must be an object")
        return Response(dumps(act(body)), mimetype="application/json")
    except (NotJSON, Invalid) as refused:
        return error(400, str(refused))


@dataclass(frozen=True, kw_only=True)
class Order(Fault):
    """A fault, and what it is for."""

    operation: str
    times: int | None = 1


def _add_fault(service: Service, body: dict[str, Any]) -> None:
    order, known = fit(body, Order), [field.name for field in fields(Order)]
    if order.operation not in (*OPERATIONS, ANY):
        raise Invalid.because(f"operation must be one of {', '.join((*OPERATIONS, ANY))}")
    if not set(body) <= set(known):
        raise Invalid.because(f"An order is made of {', '.join(known)}")
    service.faults.add(order.operation, order, times=order.times)


def _calls(service: Service) -> JSON:
    """What was asked and answered; neither headers nor bodies, which are somebody's."""
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
