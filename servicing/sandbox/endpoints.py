"""One handler for each operation of the interface. Hides what each reads and writes.

A handler does only what the service does when asked; what it does by itself is ``world``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from servicing.crypto import FieldCipher
from servicing.sandbox import checks, documents, shapes
from servicing.sandbox.store import Record, Store
from servicing.sandbox.wire import JSON
from servicing.sandbox.world import World

DEFAULT_PAGE = 25
OFFSETS = ("pages", "pages-from-1", "rows")
"""What the message list's offset may count; plain pages count from 0."""
FILTERS = ("both", "query", "body")
"""Where the message list may look for its parameters."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the interface leaves open, as one service has it."""

    offset: str = OFFSETS[0]
    filters: str = FILTERS[0]
    page_cap: int = 1000
    refuses_larger_pages: bool = True
    json_type_breaks_reads: bool = True
    unknown_path_status: int = 404
    clock_skew: float = 0


@dataclass(frozen=True, kw_only=True)
class Inbound:
    """What a handler is given of the request and of the service."""

    world: World
    cipher: FieldCipher
    choices: Choices
    query: Mapping[str, str]
    body: JSON
    base_url: str

    def check(self, rule: Callable[..., dict[str, Any]]) -> dict[str, Any]:
        """The body as the rule accepts it."""
        return rule(self.body, today=self.world.clock.today(), cipher=self.cipher)

    @property
    def store(self) -> Store:
        """Where the service keeps everything."""
        return self.world.store


Handler = Callable[..., JSON | bytes]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A handler and the request it answers."""

    name: str
    method: str
    path: str
    handler: Handler
    refuses_json_type: bool
    signed: bool


OPERATIONS: dict[str, Operation] = {}
"""Every operation by its name, ``<module>.<method>`` of the client."""


def operation(
    name: str, method: str, path: str, *, refuses_json_type: bool = False, signed: bool = True
) -> Callable[[Handler], Handler]:
    """Enter a handler in :data:`OPERATIONS`."""

    def enter(handler: Handler) -> Handler:
        OPERATIONS[name] = Operation(
            name=name,
            method=method,
            path=path,
            handler=handler,
            refuses_json_type=refuses_json_type,
            signed=signed,
        )
        return handler

    return enter


# Users


@operation("borrowers.create_commercial", "POST", "/v1/users")
def create_commercial(inbound: Inbound) -> JSON:
    """Section 4.2."""
    values = inbound.check(checks.commercial_user)
    return inbound.world.add_business(values)


@operation("borrowers.update", "PUT", "/v1/users/<user_id>")
def update(inbound: Inbound, user_id: str) -> JSON:
    """Section 4.3."""
    user = inbound.store.require("user", user_id)
    inbound.world.change(user, inbound.check(checks.user_changes))
    return inbound.world.user(user_id)


@operation("borrowers.update_key_person", "PUT", "/v1/users/<user_id>/key_people/<key_person_id>")
def update_key_person(inbound: Inbound, user_id: str, key_person_id: str) -> JSON:
    """Section 4.4."""
    person = inbound.store.require("key_person", key_person_id, owner=user_id)
    inbound.world.change(person, inbound.check(checks.key_person_changes))
    return person.body


# Applications


@operation("applications.submit", "POST", "/v1/users/<user_id>/loans/applications")
def submit(inbound: Inbound, user_id: str) -> JSON:
    """Section 4.1."""
    inbound.store.require("user", user_id)
    amount = checks.loan_application(inbound.body)["amount"]
    return inbound.world.loan_application(user_id, amount=amount)


@operation(
    "applications.get_for_line",
    "GET",
    "/v1/users/<user_id>/loc/applications/<application_id>",
    refuses_json_type=True,
)
def get_for_line(inbound: Inbound, user_id: str, application_id: str) -> JSON:
    """Section 4.5."""
    return inbound.store.require("line_application", application_id, owner=user_id).body


# Loans and lines of credit


@operation("loans.get", "GET", "/v1/users/<user_id>/loan/<loan_id>", refuses_json_type=True)
def get_loan(inbound: Inbound, user_id: str, loan_id: str) -> JSON:
    """Section 4.6."""
    return inbound.store.require("loan", loan_id, owner=user_id).body


@operation(
    "credit_lines.statement", "GET", "/v1/users/<user_id>/loc/<line_id>/statements", refuses_json_type=True
)
def statement(inbound: Inbound, user_id: str, line_id: str) -> JSON:
    """Section 4.7; the links follow the address the service is called under."""
    line = inbound.store.require("line", line_id, owner=user_id)
    papers = inbound.store.all("statement", owner=line_id)
    return line.body | {"statements": [_linked(paper, inbound.base_url) for paper in papers]}


def _linked(paper: Record, base_url: str) -> JSON:
    return {"billing_date": paper.body["billing_date"], "url": base_url + paper.body["url"]}


@operation("documents.fetch", "GET", "/documents/<document_id>.pdf", signed=False)
def fetch(inbound: Inbound, document_id: str) -> bytes:
    """The document behind a link of section 2.8. Whoever has the link may read it."""
    paper = inbound.store.require("statement", document_id)
    line = inbound.store.require("line", paper.owner)
    return documents.statement(paper.private, borrower=inbound.world.user(line.owner), line_uuid=line.uuid)


# Repayments


@operation("repayments.of_line", "GET", "/v1/users/<user_id>/loc/<line_id>/payments", refuses_json_type=True)
def repayments_of_line(inbound: Inbound, user_id: str, line_id: str) -> JSON:
    """Section 4.8."""
    inbound.store.require("line", line_id, owner=user_id)
    return [payment.body for payment in inbound.store.all("repayment", owner=line_id)]


@operation("repayments.of_loan", "GET", "/v1/users/<user_id>/loans/<loan_id>/payments")
def repayments_of_loan(inbound: Inbound, user_id: str, loan_id: str) -> JSON:
    """Section 4.9."""
    inbound.store.require("loan", loan_id, owner=user_id)
    return [payment.body for payment in inbound.store.all("repayment", owner=loan_id)]


# Messages


@operation("messages.list", "GET", "/v1/webhooks/endpoints/messages")
def list_messages(inbound: Inbound) -> JSON:
    """Section 4.10. The filters may stand in the query or in a body."""
    choices = inbound.choices
    filters = checks.message_filters(
        inbound.query if choices.filters != "body" else {},
        inbound.body if choices.filters != "query" else None,
        largest_page=choices.page_cap if choices.refuses_larger_pages else checks.LARGEST_NUMBER,
    )
    limit, offset = filters.get("limit", DEFAULT_PAGE), filters.get("offset", 0)
    limit = min(limit, choices.page_cap)
    total, messages = inbound.store.messages(
        start=filters.get("start_date"),
        end=filters.get("end_date"),
        event=filters.get("event"),
        skip=_rows_before(offset, limit, choices.offset),
        limit=limit,
    )
    return shapes.message_page(messages, offset=offset, limit=limit, total=total)


def _rows_before(offset: int, limit: int, reading: str) -> int:
    """What an offset skips: rows, or pages counted from 0 or from 1."""
    if reading == "rows":
        return offset
    return max(offset - (reading == "pages-from-1"), 0) * limit
