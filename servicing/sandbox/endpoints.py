"""One handler for each operation of the interface. Hides what each reads and writes.

A handler does what a request asks for; what the service does on its own is in ``world``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from servicing.crypto import FieldCipher
from servicing.sandbox import checks, documents, envelopes
from servicing.sandbox.choices import Choices
from servicing.sandbox.credentials import Tokens
from servicing.sandbox.store import Record, Store
from servicing.sandbox.wire import JSON
from servicing.sandbox.world import World

DEFAULT_PAGE_LIMIT = 25


@dataclass(frozen=True, kw_only=True)
class OperationRequest:
    """The parts of the request and of the service that a handler uses."""

    world: World
    cipher: FieldCipher
    tokens: Tokens
    choices: Choices
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: JSON
    base_url: str

    def check(self, rule: Callable[..., dict[str, Any]]) -> dict[str, Any]:
        """The body, checked by a function of ``checks``."""
        return rule(self.body, today=self.world.clock.today(), cipher=self.cipher)

    @property
    def store(self) -> Store:
        """The service's store."""
        return self.world.store


Handler = Callable[..., JSON | bytes]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A handler and the request it answers."""

    name: str
    method: str
    path: str
    handler: Handler
    refuses_json_type: bool = False
    is_signed: bool = True
    is_wrapped: bool = True


OPERATIONS: dict[str, Operation] = {}
"""Every operation by name, which is ``<module>.<method>`` of the client."""
TOKEN = "oauth2.token"  # noqa: S105 - the name of an operation.
"""The operation that gives tokens; it has a path only if the service uses them."""


def operation(name: str, method: str, path: str, **traits: bool) -> Callable[[Handler], Handler]:
    """Register a handler in :data:`OPERATIONS`; ``traits`` are the flags of :class:`Operation`."""

    def register(handler: Handler) -> Handler:
        OPERATIONS[name] = Operation(name=name, method=method, path=path, handler=handler, **traits)
        return handler

    return register


# Tokens


@operation(TOKEN, "POST", "/oauth/token", is_signed=False, is_wrapped=False)
def give_token(request: OperationRequest) -> JSON:
    """Give an access token to the client."""
    return request.tokens.give(request.headers, request.body)


# Users


@operation("borrowers.create_commercial", "POST", "/v1/users")
def create_commercial(request: OperationRequest) -> JSON:
    """Create a business (section 4.2)."""
    values = request.check(checks.commercial_user)
    return request.world.add_business(values)


@operation("borrowers.update", "PUT", "/v1/users/<user_id>")
def update(request: OperationRequest, user_id: str) -> JSON:
    """Change a user (section 4.3)."""
    user = request.store.require("user", user_id)
    request.world.change(user, request.check(checks.user_changes))
    return request.world.user(user_id)


@operation("borrowers.update_key_person", "PUT", "/v1/users/<user_id>/key_people/<key_person_id>")
def update_key_person(request: OperationRequest, user_id: str, key_person_id: str) -> JSON:
    """Change a key person (section 4.4)."""
    person = request.store.require("key_person", key_person_id, owner=user_id)
    request.world.change(person, request.check(checks.key_person_changes))
    return person.body


# Applications


@operation("applications.submit", "POST", "/v1/users/<user_id>/loans/applications")
def submit(request: OperationRequest, user_id: str) -> JSON:
    """Apply for a loan (section 4.1)."""
    request.store.require("user", user_id)
    amount = checks.loan_application(request.body)["amount"]
    return request.world.loan_application(user_id, amount=amount)


@operation(
    "applications.get_for_line",
    "GET",
    "/v1/users/<user_id>/loc/applications/<application_id>",
    refuses_json_type=True,
)
def get_for_line(request: OperationRequest, user_id: str, application_id: str) -> JSON:
    """Read an application for a line of credit (section 4.5)."""
    return request.store.require("line_application", application_id, owner=user_id).body


# Loans and lines of credit


@operation("loans.get", "GET", "/v1/users/<user_id>/loan/<loan_id>", refuses_json_type=True)
def get_loan(request: OperationRequest, user_id: str, loan_id: str) -> JSON:
    """Read a loan (section 4.6)."""
    return request.store.require("loan", loan_id, owner=user_id).body


@operation(
    "credit_lines.statement", "GET", "/v1/users/<user_id>/loc/<line_id>/statements", refuses_json_type=True
)
def statement(request: OperationRequest, user_id: str, line_id: str) -> JSON:
    """Read the balances and statements of a line (section 4.7), with links to the host that was called."""
    line = request.store.require("line", line_id, owner=user_id)
    records = request.store.all("statement", owner=line_id)
    return line.body | {"statements": [_statement_link(record, request.base_url) for record in records]}


def _statement_link(record: Record, base_url: str) -> JSON:
    return {"billing_date": record.body["billing_date"], "url": base_url + record.body["url"]}


@operation("documents.fetch", "GET", "/documents/<document_id>.pdf", is_signed=False)
def fetch(request: OperationRequest, document_id: str) -> bytes:
    """Read the document behind a link of section 2.8, for which the link alone is enough."""
    record = request.store.require("statement", document_id)
    line = request.store.require("line", record.owner)
    return documents.statement(record.private, borrower=request.world.user(line.owner), line_uuid=line.uuid)


# Repayments


@operation("repayments.of_line", "GET", "/v1/users/<user_id>/loc/<line_id>/payments", refuses_json_type=True)
def repayments_of_line(request: OperationRequest, user_id: str, line_id: str) -> JSON:
    """List the repayments on a line of credit (section 4.8)."""
    request.store.require("line", line_id, owner=user_id)
    return [payment.body for payment in request.store.all("repayment", owner=line_id)]


@operation("repayments.of_loan", "GET", "/v1/users/<user_id>/loans/<loan_id>/payments")
def repayments_of_loan(request: OperationRequest, user_id: str, loan_id: str) -> JSON:
    """List the repayments on a loan (section 4.9)."""
    request.store.require("loan", loan_id, owner=user_id)
    return [payment.body for payment in request.store.all("repayment", owner=loan_id)]


# Messages


@operation("messages.list", "GET", "/v1/webhooks/endpoints/messages", is_wrapped=False)
def list_messages(request: OperationRequest) -> JSON:
    """List messages (section 4.10), with filters in the query or in a body."""
    choices = request.choices
    filters = checks.message_filters(
        request.query if choices.filters != "body" else {},
        request.body if choices.filters != "query" else None,
        largest_page=choices.page_cap if choices.refuses_larger_pages else checks.MAX_OFFSET,
    )
    limit, offset = filters.get("limit", DEFAULT_PAGE_LIMIT), filters.get("offset", 0)
    limit = min(limit, choices.page_cap)
    total, messages = request.store.messages(
        start=filters.get("start_date"),
        end=filters.get("end_date"),
        event=filters.get("event"),
        skip=_rows_before(offset, limit, choices.offset),
        limit=limit,
    )
    return envelopes.message_page(messages, offset=offset, limit=limit, total=total, choices=choices)


def _rows_before(offset: int, limit: int, counts: str) -> int:
    """The number of rows that an offset skips."""
    if counts == "rows":
        return offset
    return max(offset - (counts == "pages-from-1"), 0) * limit
