"""Webhook messages, from the service's list of events (sections 2.10, 4.10, 6)."""

from collections.abc import Iterator
from datetime import date, datetime
from functools import partial
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from msgspec import structs

from servicing.codec import Budget, Record
from servicing.errors import InvalidInput
from servicing.resource import OffsetUnit, Page, Resource, iterate, read_usable
from servicing.transport import Payload, Transport
from servicing.values import RemoteTime, is_same_word

PATH: Final = "/v1/webhooks/endpoints/messages"
MESSAGES_PER_PAGE: Final = 100


class Message(Record, frozen=True, kw_only=True):
    """A webhook message (sections 2.10 and 6); `event` is for example `payment.succeeded`.

    `payload` is the JSON value as received; for payments it has the fields of a repayment (section 2.9).
    """

    event: str | None = None
    payload: Any = None
    status: str | None = None
    created_at: RemoteTime | None = None


class Filters(NamedTuple):
    """Filters of the message list; both dates are inclusive."""

    start_date: date | None = None
    end_date: date | None = None
    event: str | None = None

    def matches(self, message: Message, zone: ZoneInfo) -> bool:
        """Whether a message fits the filters. One with an uncertain day fits any dates."""
        if self.event and message.event and not is_same_word(message.event, self.event):
            return False
        moment = message.created_at.at if message.created_at else None
        if moment is None or not (self.start_date or self.end_date):
            return True
        return (self.start_date or date.min) <= moment.astimezone(zone).date() <= (self.end_date or date.max)


class MessagesResource(Resource):
    """The list of messages, filtered by the service."""

    def __init__(
        self,
        transport: Transport,
        *,
        filters: Literal["query", "body"] = "query",
        content_type: bool = True,
        offset_counts: OffsetUnit | None = None,
        page_size: int = MESSAGES_PER_PAGE,
        time_zone: str = "US/Pacific",
    ) -> None:
        super().__init__(transport)
        self._in_body = filters == "body"
        self._content_type = "application/json" if content_type else ""
        self._offset_counts = offset_counts
        self._zone = ZoneInfo(time_zone)
        self.page_size = page_size

    def list(
        self,
        *,
        start_date: date | None = None,
        end_date: date | None = None,
        event: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[Message]:
        """One page of messages (section 4.10). Both dates are inclusive, in the service's time zone.

        `filters_ignored` of the page is True if one of its messages does not fit the dates or the event. What has no
        usable ID is in `unusable`, so that it hides no other message.
        Raises `InvalidInput`, `Rejected`, `Unavailable`, `ProtocolError` or `Unauthenticated`.
        """
        parameters = _to_parameters(
            start_date=start_date, end_date=end_date, event=event, limit=limit, offset=offset
        )
        return self._transport.call(
            "messages.list",
            "GET",
            PATH,
            ids={},
            query=None if self._in_body else {name: str(value) for name, value in parameters.items()},
            payload=self._body(parameters),
            read=partial(self._read_page, Filters(start_date, end_date, event)),
        )

    def iterate(
        self,
        *,
        start_date: date | None = None,
        end_date: date | None = None,
        event: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Message]:
        """Every message once, page by page, even while new ones arrive.

        `limit` is the size of a page, by default the client's `page_size`.

        If the service ignores the filters, messages that do not fit are left out here. Raises what `list` raises, as
        pages are read, and `IncompleteList` at the end if messages may be missing.
        """
        page_at = partial(
            self.list, start_date=start_date, end_date=end_date, event=event, limit=limit or self.page_size
        )
        filters = Filters(start_date, end_date, event)
        for message in iterate(lambda offset: page_at(offset=offset), self._offset_counts):
            if filters.matches(message, self._zone):
                yield message

    def _read_page(self, filters: Filters, value: Any, budget: Budget) -> Page[Message]:
        page = read_usable(Message, value, budget)
        is_ignored = not all(filters.matches(message, self._zone) for message in page)
        return structs.replace(page, filters_ignored=is_ignored)

    def _body(self, filters: dict[str, Any]) -> Payload | None:
        if not self._in_body or not filters:
            return None
        return Payload(filters, content_type=self._content_type)


def _to_parameters(**given: Any) -> dict[str, str | int]:
    """The given filters in the form that is sent; raise `InvalidInput` for invalid ones."""
    filters = {name: value for name, value in given.items() if value is not None}
    problems = {
        name: [reason] for name, value in filters.items() if (reason := _parameter_problem(name, value))
    }
    if not problems and filters.get("start_date", date.min) > filters.get("end_date", date.max):
        problems["end_date"] = ["The end date lies before the start date."]
    if problems:
        raise InvalidInput(problems)
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in filters.items()}


def _parameter_problem(name: str, value: object) -> str | None:
    if name == "event":
        return None if isinstance(value, str) and value else "The event must be its name as text."
    if name in ("limit", "offset"):
        minimum = 1 if name == "limit" else 0
        if isinstance(value, int) and not isinstance(value, bool) and value >= minimum:
            return None
        return f"The {name} must be a whole number from {minimum} up."
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return None if is_day else "The day must be a date without a time."
