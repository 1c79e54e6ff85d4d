"""The service as a WSGI application.

Hides routing, the record of calls, the signature check, the header rule, bodies, error answers and faults.
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
from servicing.sandbox.endpoints import OPERATIONS, Choices, Operation, OperationRequest
from servicing.sandbox.faults import Faults
from servicing.sandbox.server import HEAD, HEADERS
from servicing.sandbox.signing import Signatures
from servicing.sandbox.store import RecordNotFound
from servicing.sandbox.wire import JSON, NotJSON, dumps, loads
from servicing.sandbox.world import World

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

MAX_CALLS = 10_000
IGNORED = "sandbox.ignored"
_ROUTES = Map(
    merge_slashes=False,
    rules=[Rule(op.path, methods=[op.method], endpoint=op) for op in OPERATIONS.values()],
)


@dataclass(kw_only=True)
class Call:
    """One request as received. ``status`` is None until it is answered, and if the connection was cut."""

    operation: str
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    status: int | None = None


class Service:
    """Serves the operations of the interface from a :class:`World`."""

    def __init__(
        self, world: World, cipher: FieldCipher, *, signatures: Signatures | None, choices: Choices
    ) -> None:
        self._world = world
        self._cipher = cipher
        self._signatures = signatures
        self._choices = choices
        self.faults = Faults()
        self.last_answers: dict[str, bytes] = {}
        self.calls: deque[Call] = deque(maxlen=MAX_CALLS)
        self.stopping = threading.Event()

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Serve a WSGI request."""
        return self.answer(Request(environ))(environ, start_response)

    def answer(self, request: Request) -> Response:
        """Record the call, find its operation and perform it, with the next fault if there is one."""
        call = _build_call(request)
        self.calls.append(call)
        try:
            operation, ids = _ROUTES.bind_to_environ(request.environ).match()
        except HTTPException as wrong:
            status = self._choices.unknown_path_status if wrong.code == HTTPStatus.NOT_FOUND else wrong.code
            response = error(status or 404, f"{request.method} {request.path}: {wrong.name}")
        else:
            call.operation = operation.name
            response = self._perform_with_fault(
                operation, request, lambda: self._perform(operation, ids, request)
            )
        call.status = response.status_code
        return response

    def _perform_with_fault(
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
            return self._perform_checked(operation, ids, request)
        except Invalid as invalid:
            return error(400, str(invalid))
        except RecordNotFound as not_found:
            return error(404, str(not_found))
        except Exception:
            traceback.print_exc()
            return error(500, "Internal server error")

    def _perform_checked(self, operation: Operation, ids: Mapping[str, str], request: Request) -> Response:
        problem = self._signature_problem(operation, request)
        if problem:
            return error(403, problem)
        is_breakable = operation.refuses_json_type and self._choices.json_type_breaks_reads
        if is_breakable and request.mimetype == "application/json":
            return error(500, "Internal server error")
        ignored = request.environ.get(IGNORED, ())
        operation_request = OperationRequest(
            world=self._world,
            cipher=self._cipher,
            choices=self._choices,
            query=_drop_ignored(ignored, request.args.to_dict()),
            body=_drop_ignored(ignored, _parse_body(request)),
            base_url=_base_url(request),
        )
        store = self._world.store
        with store.read_transaction() if operation.method == "GET" else store.write_transaction():
            result = operation.handler(operation_request, **ids)
        if isinstance(result, bytes):
            return Response(result, mimetype="application/pdf")
        return Response(dumps(result), mimetype="application/json")

    def _signature_problem(self, operation: Operation, request: Request) -> str | None:
        if self._signatures is None or not operation.is_signed:
            return None
        url = _base_url(request) + request.environ["REQUEST_URI"]
        return self._signatures.problem(url, request.get_data(), request.environ[HEADERS])


def error(status: int, message: str) -> Response:
    """An error answer in the service's form: an object with one message."""
    return Response(dumps({"message": message}), status, mimetype="application/json")


def _build_call(request: Request) -> Call:
    return Call(
        operation="",
        method=request.method,
        path=request.path,
        query=request.args.to_dict(),
        headers=request.environ[HEADERS],
        body=request.get_data(),
    )


def _base_url(request: Request) -> str:
    """The base URL that the caller used."""
    return f"http://{request.environ[HEADERS].get('Host', '')}"


def _drop_ignored(ignored: Collection[str], parameters: JSON) -> JSON:
    """The parameters without the ignored ones."""
    if not isinstance(parameters, dict):
        return parameters
    return {name: value for name, value in parameters.items() if name not in ignored}


def _parse_body(request: Request) -> JSON:
    """The parsed body, or None if it is empty."""
    body = request.get_data()
    try:
        return loads(body) if body else None
    except NotJSON:
        raise Invalid([("body", "must be JSON")]) from None
