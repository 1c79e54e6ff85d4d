"""Checks how a service handles the points that its interface leaves open, with reads only.

Hides which calls show what. A point that the calls can't decide is reported as open, never guessed.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from servicing.errors import (
    Forbidden,
    NotSent,
    ProtocolError,
    Rejected,
    ServicingError,
    Unauthenticated,
    Unavailable,
)
from servicing.messages import MESSAGES_PER_PAGE, Message, MessagesResource
from servicing.resource import Page, iterate_pages
from servicing.transport import Call, Outcome, Payload, Transport

MAX_PROBED_LIMIT: Final = 10_000
AGREEING_CLOCK_SECONDS: Final = 5
USABLE_CLOCK_SECONDS: Final = 30
UNTYPED: Final = "body without a content type"
PARAMETER_PLACES: Final = ("query", "body", UNTYPED)
LONG_AGO: Final = date(1970, 1, 1)
UNKNOWN_PATH: Final = "/v1/first-day-check"
# A JSON content type breaks these reads (section 4).
_READS: Final = {
    "applications.get_for_line": "/v1/users/{borrower_id}/loc/applications/{application_id}",
    "loans.get": "/v1/users/{borrower_id}/loan/{loan_id}",
    "credit_lines.statement": "/v1/users/{borrower_id}/loc/{line_id}/statements",
    "repayments.of_line": "/v1/users/{borrower_id}/loc/{line_id}/payments",
}


@dataclass(frozen=True)
class Finding:
    """One result of `Client.check`.

    `grade` is `ok`, `warn` or `bad`; `words` is a sentence or two for staff. `settings` are arguments of `Client`
    with the values that fit this service.
    """

    grade: Literal["ok", "warn", "bad"]
    words: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def check(transport: Transport, known_ids: Mapping[str, str], preferred_place: str) -> Iterator[Finding]:
    """Yield the findings one by one.

    An ID that is missing in `known_ids` is replaced by a random one. `preferred_place` wins if the service reads
    message filters in several places.
    """
    try:
        yield from _findings(_Probe(transport), known_ids, preferred_place)
    except (Unavailable, NotSent) as problem:
        yield Finding("bad", f"The check stopped: {problem.message}")


def _findings(probe: "_Probe", known_ids: Mapping[str, str], preferred_place: str) -> Iterator[Finding]:
    first_page, refusal = probe.messages("query")
    yield _check_signature(refusal)
    yield _check_clock(probe.seconds_fast)
    if first_page is None:
        return
    yield _check_unknown_path(probe)
    yield _check_content_type(probe, known_ids)
    places = [
        _ParameterPlace.examine(probe, name, first_page)
        for name in sorted(PARAMETER_PLACES, key=lambda name: name != preferred_place)
    ]
    yield _check_filters(places, first_page)
    place = next((place for place in places if place.reads_limit), None)
    if place:
        yield _check_offset(probe, place.name)
        yield _check_page_cap(probe, place)


class _Probe:
    """Makes the calls and remembers the last outcome."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport.with_watcher(self)
        self._outcome: Outcome | None = None
        self.seconds_fast: float | None = None
        """Seconds by which the service's clock is ahead of this machine's, according to the last answer."""

    def before(self, call: Call) -> None:
        raise AssertionError("The check only reads.")

    def after(self, call: Call, outcome: Outcome) -> None:
        self._outcome = outcome
        self.seconds_fast = _seconds_ahead(outcome.headers.get("Date", ""), datetime.now(UTC))

    def status(self, path: str, payload: Payload | None = None) -> int:
        """The status of the answer to a GET."""
        self._outcome, problem = None, None
        try:
            self._transport.call(
                "first_day.check", "GET", path, ids={}, payload=payload, read=lambda *_: None
            )
        except ServicingError as error:
            problem = error
        status = self._outcome.status if self._outcome else None
        if status is None:
            raise problem or Unavailable("The lending service didn’t respond.")
        return status

    def messages(self, place: str, **filters: Any) -> tuple[Page[Message] | None, ServicingError | None]:
        """A page of messages, or the error instead of it; raise `Unavailable` only if there is no answer at all."""
        try:
            return self.resource(place).list(**filters), None
        except (Rejected, Unauthenticated, ProtocolError) as refusal:
            return None, refusal
        except Unavailable as problem:
            if problem.status is None:
                raise
            return None, problem

    def resource(self, place: str) -> MessagesResource:
        filters: Literal["query", "body"] = "query" if place == "query" else "body"
        return MessagesResource(self._transport, filters=filters, content_type=place == "body")


class _TypeOnlyPayload(Payload):
    """A JSON content type without a body."""

    def __init__(self) -> None:
        super().__init__({})

    def text(self) -> bytes:
        return b""


class _ParameterPlace(NamedTuple):
    """One place for the parameters of the message list, and what the service reads there."""

    name: str
    reads_limit: bool
    reads_dates: bool | None
    """None if there is no message that a date could exclude."""
    problem: str

    @classmethod
    def examine(cls, probe: _Probe, name: str, first_page: Page[Message]) -> "_ParameterPlace":
        page, refusal = probe.messages(name, limit=1)
        filtered, second_refusal = probe.messages(name, end_date=LONG_AGO)
        problem = refusal or second_refusal
        if page is None or filtered is None:
            return cls(name, False, False, problem.message if problem else "")
        has_one = len(page) == 1 < len(first_page)
        return cls(
            name, has_one or page.pagination.limit == 1, not filtered.data if first_page.data else None, ""
        )


def _check_signature(refusal: ServicingError | None) -> Finding:
    if refusal is None:
        return Finding("ok", "The service accepts these credentials.")
    if isinstance(refusal, Unauthenticated | Forbidden):
        return Finding("bad", f"The service rejects these credentials: {_sentence(refusal.message)}")
    return Finding("bad", f"The service doesn’t return the message list: {_sentence(refusal.message)}")


def _check_clock(seconds_fast: float | None) -> Finding:
    if seconds_fast is None:
        return Finding("warn", "The service’s responses have no date, so its clock can’t be compared.")
    if abs(seconds_fast) <= AGREEING_CLOCK_SECONDS:
        return Finding("ok", "This machine's clock agrees with the service's.")
    side = "behind" if seconds_fast > 0 else "ahead of"
    words = f"This machine's clock is {abs(seconds_fast):,.0f} seconds {side} the service's."
    return Finding(
        "warn" if abs(seconds_fast) <= USABLE_CLOCK_SECONDS else "bad",
        f"{words} Signatures expire after 60 seconds.",
    )


def _check_unknown_path(probe: _Probe) -> Finding:
    status = probe.status(UNKNOWN_PATH)
    if status == 404:
        return Finding("ok", "An unknown path returns 404.")
    return Finding(
        "warn",
        f"An unknown path returns {status}, not 404: a wrong base URL will look like a different problem.",
    )


def _check_content_type(probe: _Probe, known_ids: Mapping[str, str]) -> Finding:
    random_ids = {name: str(uuid.uuid4()) for name in ("borrower_id", "application_id", "loan_id", "line_id")}
    broken, open_points = [], []
    for operation, path in _READS.items():
        path = path.format_map(random_ids | {name: text for name, text in known_ids.items() if text})
        status_without_type, status_with_type = probe.status(path), probe.status(path, _TypeOnlyPayload())
        if status_without_type < 500 <= status_with_type:
            broken.append(operation)
        elif status_without_type != 200:
            open_points.append(operation)
    if len(broken) == len(_READS):
        return Finding("ok", "A JSON content type breaks the four reads of section 4; the client sends none.")
    if broken:
        return Finding("ok", f"A JSON content type breaks {', '.join(broken)}; the client sends none.")
    if not open_points:
        return Finding("ok", "A JSON content type breaks none of the four reads of section 4.")
    return Finding(
        "ok",
        f"Whether a JSON content type breaks {', '.join(open_points)} isn’t known: "
        "check again with IDs of existing records.",
    )


def _check_filters(places: list[_ParameterPlace], first_page: Page[Message]) -> Finding:
    usable = [place for place in places if place.reads_limit and place.reads_dates is not False]
    if usable:
        name = usable[0].name
        settings = {"message_filters": "query"} if name == "query" else {"message_filters": "body"}
        content_type = {"message_content_type": False} if name == UNTYPED else {}
        names = [place.name for place in usable if place.name != UNTYPED] or [UNTYPED]
        read_in = " and in ".join(f"the {name}" for name in names)
        open_point = (
            "" if first_page.data else " Whether dates are read isn’t known: there are no messages yet."
        )
        return Finding("ok", f"Message filters are read in {read_in}.{open_point}", settings | content_type)
    partial_readers = [
        f"{place.name} ({_describe_place(place)})"
        for place in places
        if place.reads_limit or place.reads_dates
    ]
    if partial_readers:
        return Finding(
            "bad",
            f"No single place accepts all message filters: {', '.join(partial_readers)}. The client notices messages "
            "that a filter excludes (`filters_ignored`).",
        )
    problems = "; ".join(dict.fromkeys(place.problem for place in places if place.problem))
    why = f" The service said: {_sentence(problems)}" if problems else ""
    return Finding("bad", f"The service reads message filters in neither the query nor the body.{why}")


def _describe_place(place: _ParameterPlace) -> str:
    return "limit, no dates" if place.reads_limit else "dates, no limit"


def _check_offset(probe: _Probe, place: str) -> Finding:
    resource = probe.resource(place)

    def page_at(offset: int) -> Page[Message]:
        return resource.list(limit=2, offset=offset)

    try:
        steps = islice(iterate_pages(page_at), 4)
        counts = next((step.cursor.counts for step in steps if step.cursor.counts), None)
        is_ignored = counts == "pages1" and page_at(2).data == page_at(0).data
    except (Rejected, ProtocolError) as problem:
        return Finding("warn", f"What offset counts isn’t known: {_sentence(problem.message)}")
    if is_ignored:
        return Finding("bad", "Offset is ignored: every page is the first page.")
    if counts is None:
        return Finding(
            "ok", "What offset counts isn’t known until there are more messages; the client detects it."
        )
    words = {"rows": "messages", "pages0": "pages, from 0", "pages1": "pages, from 1"}[counts]
    return Finding("ok", f"Offset counts {words}.", {"offset_counts": counts})


def _check_page_cap(probe: _Probe, place: _ParameterPlace) -> Finding:
    filters = {"end_date": LONG_AGO} if place.reads_dates else {}
    # Without a date filter, the answer really has that many messages.
    largest = MAX_PROBED_LIMIT if place.reads_dates else 1_000

    def granted_limit(limit: int) -> int | None:
        """The limit that the service says it used; 0 if it rejects the request."""
        page, _ = probe.messages(place.name, limit=limit, **filters)
        return 0 if page is None else page.pagination.limit

    lowest, highest, limit = 1, largest + 1, granted_limit(largest)
    if limit is None:
        return Finding("warn", "The service doesn’t report how many messages a page can have.")
    if limit >= largest:
        return Finding("ok", f"A page can have {largest:,} messages or more.")
    if limit:
        return Finding("ok", f"A page has up to {limit:,} messages; a larger limit is lowered.")
    while highest - lowest > 1:
        middle = (lowest + highest) // 2
        lowest, highest = (middle, highest) if granted_limit(middle) != 0 else (lowest, middle)
    words = f"A page has up to {lowest:,} messages; a larger limit is rejected."
    if lowest >= MESSAGES_PER_PAGE:
        return Finding("ok", words)
    return Finding("bad", f"{words} `messages.iterate` asks for {MESSAGES_PER_PAGE}: pass `limit={lowest}`.")


def _seconds_ahead(text: str, now: datetime) -> float | None:
    try:
        return (parsedate_to_datetime(text).astimezone(UTC) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None


def _sentence(words: str) -> str:
    return words if words.endswith(".") else f"{words}."
