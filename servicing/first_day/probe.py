"""Makes the calls of the first day. Hides how many of them the service refused."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from servicing.auth import Scheme
from servicing.errors import Forbidden, ServicingError, Unauthenticated
from servicing.messages import Message, MessagesResource
from servicing.resource import Page
from servicing.transport import Call, Outcome, Transport

MAX_REFUSED_CALLS: Final = 3
RUN_AGAIN: Final = (
    f"{MAX_REFUSED_CALLS} calls were refused already. Set what is named here, and run this again."
)


class Probe:
    """Makes the calls, remembers the last outcome, and counts the calls that were refused."""

    def __init__(self, transport: Transport) -> None:
        self._plain = transport.with_single_try()
        self.transport = self._plain.with_watcher(self)
        self.outcome: Outcome | None = None
        self.refused = 0
        self.obstacle = ""
        """Why no other read can be tried."""
        self.first_page: Page[Message] | None = None
        self.default_size: int | None = None
        """How many messages a page has if none is asked for, once that is known."""

    def before(self, call: Call) -> None:
        raise AssertionError("The first day only reads.")

    def after(self, call: Call, outcome: Outcome) -> None:
        self.outcome = outcome
        is_refused = outcome.status is not None and 400 <= outcome.status < 500
        self.refused += is_refused or isinstance(outcome.error, Unauthenticated)

    @property
    def may_be_refused(self) -> bool:
        """Whether a call may still be refused."""
        return self.refused < MAX_REFUSED_CALLS

    def use_auth(self, auth: Scheme) -> None:
        self.transport = self._plain.with_auth(auth).with_watcher(self)

    def header(self, name: str) -> str:
        return self.outcome.headers.get(name, "") if self.outcome else ""

    @property
    def status(self) -> int | None:
        return self.outcome.status if self.outcome else None

    def raw(self, operation: str, path: str, ids: Mapping[str, str]) -> Any:
        """The JSON of a read; raises its error."""
        self.outcome = None
        return self.transport.call(operation, "GET", path, ids=ids, read=lambda value, _: value)

    def messages(self, place: str, **filters: Any) -> tuple[Page[Message] | None, ServicingError | None]:
        """A page of messages, or the error instead of it."""
        self.outcome = None
        try:
            page = self.resource(place).list(**filters)
        except ServicingError as problem:
            return None, problem
        if not filters:
            self.default_size = page.pagination.limit or len(page) or None
        return page, None

    def resource(self, place: str) -> MessagesResource:
        filters: Literal["query", "body"] = "query" if place == "query" else "body"
        return MessagesResource(self.transport, filters=filters, content_type=place == "body")


def is_credential_problem(refusal: ServicingError | None) -> bool:
    return isinstance(refusal, Unauthenticated | Forbidden)
