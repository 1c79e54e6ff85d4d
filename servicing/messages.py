"""Webhook messages: the service's own list of events (sections 2.10, 4.10, 6)."""

from collections.abc import Iterator
from datetime import date, datetime
from functools import partial
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from msgspec import structs

from servicing.codec import Budget, Record
from servicing.errors import InvalidInput
from servicing.resource import Counts, Page, Resource, iterate, read_page
from servicing.transport import Payload, Transport
from servicing.values import RemoteTime, same_word

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


class Filters(NamedTuple):
    """What a list of messages is narrowed to; both dates are included."""

    start_date: date | None = None
    end_date: date | None = None
    event: str | None = None

    def admit(self, message: Message, zone: ZoneInfo) -> bool:
        """Whether the message may be in the list. One whose day is uncertain agrees with any date."""
        if self.event and message.event and not same_word(message.event, self.event):
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
        offset_counts: Counts | None = None,
        time_zone: str = "US/Pacific",
    ) -> None:
        super().__init__(transport)
        self._in_body = filters == "body"
        self._content_type = "application/json" if content_type else ""
        self._offset_counts = offset_counts
        self._zone = ZoneInfo(time_zone)

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

        `filters_ignored` of the page says whether a message in it contradicts the dates or the event.
        Raises `InvalidInput`, `Rejected`, `Unavailable`, `ProtocolError` or `Unauthenticated`.
        """
        sent = _sent(start_date=start_date, end_date=end_date, event=event, limit=limit, offset=offset)
        return self._transport.call(
            "messages.list",
            "GET",
            PATH,
            ids={},
            query=None if self._in_body else {name: str(value) for name, value in sent.items()},
            payload=self._body(sent),
            read=partial(self._read_page, Filters(start_date, end_date, event)),
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

        Messages that contradict the filters are left out, should the service ignore the filters. Raises what
        `list` raises, as the pages are read, and `IncompleteList` at the end where messages may be missing.
        """
        page_at = partial(self.list, start_date=start_date, end_date=end_date, event=event, limit=limit)
        filters = Filters(start_date, end_date, event)
        for message in iterate(lambda offset: page_at(offset=offset), self._offset_counts):
            if filters.admit(message, self._zone):
                yield message

    def _read_page(self, filters: Filters, value: Any, budget: Budget) -> Page[Message]:
        page = read_page(Message, value, budget)
        is_ignored = not all(filters.admit(message, self._zone) for message in page)
        return structs.replace(page, filters_ignored=is_ignored)

    def _body(self, filters: dict[str, Any]) -> Payload | None:
        if not self._in_body or not filters:
            return None
        return Payload(filters, content_type=self._content_type)


def _sent(**given: Any) -> dict[str, str | int]:
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
