"""The service as a WSGI application.

Hides routing, the record of calls, the check of credentials, the header rule, bodies, error answers and faults.
"""

import threading
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule

from servicing.crypto import FieldCipher
from servicing.sandbox import envelopes
from servicing.sandbox.checks import Invalid
from servicing.sandbox.choices import Choices
from servicing.sandbox.credentials import Scheme, TokenRefused, Tokens
from servicing.sandbox.endpoints import OPERATIONS, TOKEN, Operation, OperationRequest
from servicing.sandbox.faults import Faults
from servicing.sandbox.server import HEAD, HEADERS
from servicing.sandbox.store import RecordNotFound
from servicing.sandbox.wire import JSON, NotJSON, dumps, loads
from servicing.sandbox.world import World

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

MAX_CALLS = 10_000
IGNORED = "sandbox.ignored"
FORM = "application/x-www-form-urlencoded"


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
    """Serves the operations of the interface from a :class:`World`.

    Requests are checked by ``scheme``; if that is ``tokens``, the service also gives them.
    """

    def __init__(
        self, world: World, cipher: FieldCipher, *, scheme: Scheme, tokens: Tokens, choices: Choices
    ) -> None:
        self._world = world
        self._cipher = cipher
        self._scheme = scheme
        self._tokens = tokens
        self._routes = _build_routes(gives_tokens=scheme is tokens)
        self.choices = choices
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
            operation, ids = self._routes.bind_to_environ(request.environ).match()
        except HTTPException as wrong:
            status = self.choices.unknown_path_status if wrong.code == HTTPStatus.NOT_FOUND else wrong.code
            response = _error(status or 404, f"{request.method} {request.path}: {wrong.name}", self.choices)
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
        response = fault.answer(perform, self.stopping.wait, self._choices_for(operation))
        if fault.swapped:
            response.set_data(self.last_answers.get(operation.name, b""))
        return response

    def _perform(self, operation: Operation, ids: Mapping[str, str], request: Request) -> Response:
        choices = self._choices_for(operation)
        try:
            return self._perform_checked(operation, ids, request)
        except Invalid as invalid:
            return _error(200 if choices.errors == "ok" else 400, str(invalid), choices)
        except TokenRefused as refused:
            return _token_refusal(refused)
        except RecordNotFound as not_found:
            return _error(404, str(not_found), choices)
        except Exception:
            traceback.print_exc()
            return _error(500, "Internal server error", choices)

    def _choices_for(self, operation: Operation) -> Choices:
        """The service's choices. Errors of the token endpoint have the form of RFC 6749 whatever the service's own."""
        is_token = operation.name == TOKEN
        return replace(self.choices, errors="oauth", wrap_errors="") if is_token else self.choices

    def _perform_checked(self, operation: Operation, ids: Mapping[str, str], request: Request) -> Response:
        problem = self._credentials_problem(operation, request)
        if problem:
            return _with_challenge(_error(self._scheme.status, problem, self.choices), self._scheme.challenge)
        is_breakable = operation.refuses_json_type and self.choices.json_type_breaks_reads
        if is_breakable and request.mimetype == "application/json":
            return _error(500, "Internal server error", self.choices)
        ignored = request.environ.get(IGNORED, ())
        operation_request = OperationRequest(
            world=self._world,
            cipher=self._cipher,
            tokens=self._tokens,
            choices=self.choices,
            headers=request.environ[HEADERS],
            query=_drop_ignored(ignored, request.args.to_dict()),
            body=_drop_ignored(ignored, _parse_body(operation, request)),
            base_url=_base_url(request),
        )
        store = self._world.store
        with store.read_transaction() if operation.method == "GET" else store.write_transaction():
            result = operation.handler(operation_request, **ids)
        return self._build_answer(operation, result)

    def _build_answer(self, operation: Operation, result: JSON | bytes) -> Response:
        if isinstance(result, bytes):
            return Response(result, mimetype="application/pdf")
        body = envelopes.wrap(result, self.choices) if operation.is_wrapped else result
        response = Response(dumps(body), mimetype="application/json")
        return _not_stored(response) if operation.name == TOKEN else response

    def _credentials_problem(self, operation: Operation, request: Request) -> str | None:
        if not operation.is_signed:
            return None
        url = _base_url(request) + request.environ["REQUEST_URI"]
        return self._scheme.problem(url, request.get_data(), request.environ[HEADERS])


def _build_routes(*, gives_tokens: bool) -> Map:
    operations = [op for op in OPERATIONS.values() if gives_tokens or op.name != TOKEN]
    return Map(
        merge_slashes=False, rules=[Rule(op.path, methods=[op.method], endpoint=op) for op in operations]
    )


def _error(status: int, message: str, choices: Choices) -> Response:
    """An error answer in the form of the service."""
    body = envelopes.error_body(status, message, choices)
    return Response(dumps(body), status, mimetype="application/json")


def _token_refusal(refused: TokenRefused) -> Response:
    """An error answer of the token endpoint (RFC 6749, section 5.2)."""
    body = {"error": refused.code, "error_description": refused.description}
    response = Response(dumps(body), refused.status, mimetype="application/json")
    return _not_stored(_with_challenge(response, refused.challenge))


def _with_challenge(response: Response, challenge: str) -> Response:
    if challenge:
        response.headers["WWW-Authenticate"] = challenge
    return response


def _not_stored(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    return response


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


def _parse_body(operation: Operation, request: Request) -> JSON:
    """The parsed body, or None if it is empty."""
    if operation.name == TOKEN:
        return _parse_form(request)
    body = request.get_data()
    try:
        return loads(body) if body else None
    except NotJSON:
        raise Invalid([("body", "must be JSON")]) from None


def _parse_form(request: Request) -> list[tuple[str, str]]:
    """The parameters of a form, in order."""
    if request.mimetype != FORM:
        raise TokenRefused("invalid_request", f"The body must be {FORM}")
    try:
        return parse_qsl(request.get_data().decode(), keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise TokenRefused("invalid_request", "The body can't be read as a form") from None
