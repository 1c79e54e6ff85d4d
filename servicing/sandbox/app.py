"""The service as a WSGI application: what happens between a request and its operation.

Hides routing, the record of calls, the signature check, the header rule, bodies, error answers and accidents.
"""

import threading
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule

from servicing.crypto import FieldCipher
from servicing.sandbox.checks import Invalid
from servicing.sandbox.endpoints import OPERATIONS, Choices, Inbound, Operation
from servicing.sandbox.faults import Faults
from servicing.sandbox.server import HEAD, HEADERS
from servicing.sandbox.signing import Signatures
from servicing.sandbox.store import Missing
from servicing.sandbox.wire import JSON, NotJSON, dumps, loads
from servicing.sandbox.world import World

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

CALLS_KEPT = 10_000
IGNORED = "sandbox.ignored"


@dataclass(kw_only=True)
class Call:
    """One request as it came. ``status`` is None while it runs and after a connection was cut."""

    operation: str
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    status: int | None = None


class Service:
    """Answers the interface's operations from a :class:`World`."""

    def __init__(
        self, world: World, cipher: FieldCipher, *, signatures: Signatures | None, choices: Choices
    ) -> None:
        self._world = world
        self._cipher = cipher
        self._signatures = signatures
        self._choices = choices
        self._routes = Map(
            merge_slashes=False,
            rules=[Rule(op.path, methods=[op.method], endpoint=op) for op in OPERATIONS.values()],
        )
        self.faults = Faults()
        self.last_answers: dict[str, bytes] = {}
        self.calls: deque[Call] = deque(maxlen=CALLS_KEPT)
        self.stopping = threading.Event()

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """WSGI."""
        return self.answer(Request(environ))(environ, start_response)

    def answer(self, request: Request) -> Response:
        """Record the call, find its operation, let a waiting accident happen."""
        call = _call(request)
        self.calls.append(call)
        try:
            operation, ids = self._routes.bind_to_environ(request.environ).match()
        except HTTPException as wrong:
            status = self._choices.unknown_path_status if wrong.code == HTTPStatus.NOT_FOUND else wrong.code
            response = error(status or 404, f"{request.method} {request.path}: {wrong.name}")
        else:
            call.operation = operation.name
            response = self._with_accident(operation, request, lambda: self._perform(operation, ids, request))
        call.status = response.status_code
        return response

    def _with_accident(
        self, operation: Operation, request: Request, perform: Callable[[], Response]
    ) -> Response:
        fault = self.faults.take(operation.name)
        if fault is None:
            response = perform()
            if response.status_code == HTTPStatus.OK:
                self.last_answers[operation.name] = response.get_data()
            return response
        request.environ[IGNORED] = fault.ignored_parameters
        request.environ[HEAD] = lambda head: fault.head(head, self.stopping.wait)
        response = fault.answer(perform, self.stopping.wait)
        if fault.swapped:
            response.set_data(self.last_answers.get(operation.name, b""))
        return response

    def _perform(self, operation: Operation, ids: Mapping[str, str], request: Request) -> Response:
        try:
            return self._checked(operation, ids, request)
        except Invalid as refused:
            return error(400, str(refused))
        except Missing as missing:
            return error(404, str(missing))
        except Exception:
            traceback.print_exc()
            return error(500, "Internal server error")

    def _checked(self, operation: Operation, ids: Mapping[str, str], request: Request) -> Response:
        problem = self._signature_problem(operation, request)
        if problem:
            return error(403, problem)
        is_breakable = operation.refuses_json_type and self._choices.json_type_breaks_reads
        if is_breakable and request.mimetype == "application/json":
            return error(500, "Internal server error")
        ignored = request.environ.get(IGNORED, ())
        inbound = Inbound(
            world=self._world,
            cipher=self._cipher,
            choices=self._choices,
            query=_without(ignored, request.args.to_dict()),
            body=_without(ignored, _json(request)),
            base_url=_base_url(request),
        )
        store = self._world.store
        with store.reading() if operation.method == "GET" else store.writing():
            done = operation.handler(inbound, **ids)
        if isinstance(done, bytes):
            return Response(done, mimetype="application/pdf")
        return Response(dumps(done), mimetype="application/json")

    def _signature_problem(self, operation: Operation, request: Request) -> str | None:
        if self._signatures is None or not operation.signed:
            return None
        url = _base_url(request) + request.environ["REQUEST_URI"]
        return self._signatures.problem(url, request.get_data(), request.environ[HEADERS])


def error(status: int, message: str) -> Response:
    """An error as the service words it: an object with one text."""
    return Response(dumps({"message": message}), status, mimetype="application/json")


def _call(request: Request) -> Call:
    return Call(
        operation="",
        method=request.method,
        path=request.path,
        query=request.args.to_dict(),
        headers=request.environ[HEADERS],
        body=request.get_data(),
    )


def _base_url(request: Request) -> str:
    """What the caller called the service."""
    return f"http://{request.environ[HEADERS].get('Host', '')}"


def _without(ignored: Collection[str], parameters: JSON) -> JSON:
    """Parameters as an operation sees them that does not read all of them."""
    if not isinstance(parameters, dict):
        return parameters
    return {name: value for name, value in parameters.items() if name not in ignored}


def _json(request: Request) -> JSON:
    """The body, None when there is none."""
    body = request.get_data()
    try:
        return loads(body) if body else None
    except NotJSON:
        raise Invalid([("body", "must be JSON")]) from None
