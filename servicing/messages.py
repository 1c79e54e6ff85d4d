"""Webhook messages: the service's own list of events (sections 2.10, 4.10, 6)."""

from collections.abc import Iterator
from datetime import date, datetime
from functools import partial
from typing import Any, Final, Literal

from servicing.codec import Record
from servicing.errors import InvalidInput
from servicing.resource import Counts, Page, Resource, iterate, read_page
from servicing.transport import Payload, Transport
from servicing.values import RemoteTime

PATH: Final = "/v1/webhooks/endpoints/messages"
WALK_LIMIT: Final = 100


class Message(Record, frozen=True, kw_only=True):
    """A webhook message (sections 2.10 and 6): `event` is its name, such as `payment.succeeded`.

    `payload` is the JSON value as it came; for payments it has the fields of a repayment (section 2.9).
    """

    event: str | None = None
    payload: Any = None
    status: str | None = None
    created_at: RemoteTime | None = None


class MessagesResource(Resource):
    """The list of messages, filtered by the service."""

    def __init__(
        self,
        transport: Transport,
        *,
        filters: Literal["query", "body"] = "query",
        content_type: bool = True,
        offset_counts: Counts | None = None,
    ) -> None:
        super().__init__(transport)
        self._in_body = filters == "body"
        self._content_type = "application/json" if content_type else ""
        self._offset_counts = offset_counts

    def list(
        self,
        *,
        start_date: date | None = None,
        end_date: date | None = None,
        event: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[Message]:
        """One page of messages (section 4.10). Both dates are included, in the service's time zone.

        Raises `InvalidInput`, `Rejected`, `Unavailable`, `ProtocolError` or `Unauthenticated`.
        """
        filters = _filters(start_date=start_date, end_date=end_date, event=event, limit=limit, offset=offset)
        return self._transport.call(
            "messages.list",
            "GET",
            PATH,
            ids={},
            query=None if self._in_body else {name: str(value) for name, value in filters.items()},
            payload=self._body(filters),
            read=partial(read_page, Message),
        )

    def iterate(
        self,
        *,
        start_date: date | None = None,
        end_date: date | None = None,
        event: str | None = None,
        limit: int = WALK_LIMIT,
    ) -> Iterator[Message]:
        """Every message once, page by page, while new ones may arrive. `limit` is the size of a page.

        Raises what `list` raises, as the pages are read.
        """
        page_at = partial(self.list, start_date=start_date, end_date=end_date, event=event, limit=limit)
        return iterate(lambda offset: page_at(offset=offset), self._offset_counts)

    def _body(self, filters: dict[str, Any]) -> Payload | None:
        if not self._in_body or not filters:
            return None
        return Payload(filters, content_type=self._content_type)


def _filters(**given: Any) -> dict[str, str | int]:
    """The filters that were given, in the form in which they are sent."""
    filters = {name: value for name, value in given.items() if value is not None}
    problems = {name: [reason] for name, value in filters.items() if (reason := _problem(name, value))}
    if not problems and filters.get("start_date", date.min) > filters.get("end_date", date.max):
        problems["end_date"] = ["The end date lies before the start date."]
    if problems:
        raise InvalidInput(problems)
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in filters.items()}


def _problem(name: str, value: object) -> str | None:
    if name == "event":
        return None if isinstance(value, str) and value else "The event must be its name as text."
    if name in ("limit", "offset"):
        least = 1 if name == "limit" else 0
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return None
        return f"The {name} must be a whole number from {least} up."
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return None if is_day else "The day must be a date without a time."
