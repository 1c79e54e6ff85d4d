"""The message list: the size of its pages, where it reads filters, and what its offset counts."""

from collections.abc import Iterator, Sequence
from datetime import date
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from servicing.errors import Forbidden, NotFound, ProtocolError, Rejected, ServicingError
from servicing.first_day.credentials import address_words, check_clock, credential_words, find_signature
from servicing.first_day.fields import quoted
from servicing.first_day.probe import RUN_AGAIN, Probe, is_credential_problem
from servicing.first_day.reads import MESSAGES, describe_answer, not_tried, record_findings
from servicing.first_day.report import Finding, FirstDay, ReadTried, differs
from servicing.messages import Message
from servicing.resource import OffsetUnit, Page

UNTYPED: Final = "body without a content type"
PARAMETER_PLACES: Final = ("query", "body", UNTYPED)
SMALLER_PAGE: Final = 50
SMALLEST_PAGE: Final = 25
LONG_AGO: Final = date(1970, 1, 1)


def read_messages(probe: Probe, report: FirstDay, auth: str, place: str, page_size: int) -> Iterator[Finding]:
    """Read the first page, which needs no ID, and find the credentials and the page size that the service takes."""
    page, refusal = probe.messages(place, limit=page_size)
    if is_credential_problem(refusal) and auth == "oauth2" and probe.status:
        page, refusal = probe.messages(place, limit=page_size)  # The token had perhaps ended early.
    if is_credential_problem(refusal) and auth == "hmac" and (found := find_signature(probe, place)):
        yield found
        if probe.may_be_refused:
            page, refusal = probe.messages(place, limit=page_size)
        else:
            page, refusal = probe.messages(place)
            report.untried.append("page size")
    if is_credential_problem(refusal):
        probe.obstacle = "The service rejects these credentials."
        yield from check_clock(probe, auth)
        yield Finding("bad", credential_words(probe, auth, refusal))
        report.reads.append(not_tried(MESSAGES, probe.obstacle))
        return
    smaller = None
    if _is_refused_page(refusal):
        page, refusal, smaller = _find_page_size(probe, place, page_size, refusal)
    if probe.status is None:
        probe.obstacle = "The service didn’t respond."
    elif page is not None:
        yield Finding("ok", "The service accepts these credentials.")
    yield from check_clock(probe, auth)
    if smaller:
        yield smaller
    if page is None:
        words = quoted(refusal.message if refusal else "")
        yield Finding("bad", f"The message list can’t be read: {words} {address_words(probe, auth)}".strip())
        report.reads.append(ReadTried(name="messages", operation="messages.list", problem=words))
        return
    report.reads.append(seen := describe_answer(MESSAGES, page.data))
    yield from record_findings(MESSAGES, seen)
    if page.unusable:
        yield Finding("bad", f"{len(page.unusable)} of {len(page)} messages have no usable ID.")
    if page.pagination.total is None:
        yield Finding("ok", "The message list says no total; it is read until nothing new comes.")
    probe.first_page = page


def _is_refused_page(refusal: ServicingError | None) -> bool:
    """Whether the size of a page may be why there is none; an answer without messages may hold an error."""
    if isinstance(refusal, ProtocolError):
        return refusal.status == HTTPStatus.OK
    return isinstance(refusal, Rejected) and not isinstance(refusal, Forbidden | NotFound)


def _find_page_size(
    probe: Probe, place: str, page_size: int, refusal: ServicingError | None
) -> tuple[Page[Message] | None, ServicingError | None, Finding | None]:
    """A page that the service gives after it refused one of `page_size`, and the size to ask for.

    Without either, the refusal has another cause.
    """
    page, size = None, probe.default_size
    if not size and page_size > SMALLER_PAGE and probe.may_be_refused:
        page, refusal = probe.messages(place, limit=SMALLER_PAGE)
        size = SMALLER_PAGE if page is not None else None
    if page is None and (size or probe.may_be_refused):
        page, refusal = probe.messages(place)
        size = probe.default_size
        # A list with few messages doesn't show how many a page can have.
        shows_size = (
            page is None
            or page.pagination.limit is not None
            or len(page) >= SMALLEST_PAGE
            or len(page) < (page.pagination.total or 0)
        )
        if not shows_size and page_size > SMALLEST_PAGE:
            fuller = probe.messages(place, limit=SMALLEST_PAGE)[0] if probe.may_be_refused else None
            page, size = (page, size) if fuller is None else (fuller, SMALLEST_PAGE)
    if page is None:
        return None, refusal, None
    words = f"The service refuses pages of {page_size} messages"
    if not size or size >= page_size:
        return page, None, Finding("bad", f"{words}: ask the lender for SERVICING_PAGE_SIZE.")
    return page, None, differs(f"{words}, but not of {size}", {"page_size": size})


class _ParameterPlace(NamedTuple):
    """One place for the parameters of the message list, and what the service reads there."""

    name: str
    reads_limit: bool | None
    reads_dates: bool | None
    """None if there is no message that shows it."""
    problem: str = ""

    @classmethod
    def examine(cls, probe: Probe, name: str, first_page: Page[Message]) -> "_ParameterPlace":
        page, problem = probe.messages(name, limit=1)
        filtered = None
        if page is not None and probe.may_be_refused:
            filtered, problem = probe.messages(name, end_date=LONG_AGO)
        if page is None or filtered is None:
            return cls(name, False, False, problem.message if problem else "")
        reads_limit = len(page) == 1 if len(first_page) > 1 else page.pagination.limit == 1 or None
        return cls(name, reads_limit, not filtered.data if first_page.data else None)


def check_filters(
    probe: Probe,
    report: FirstDay,
    first_page: Page[Message],
    preferred: str,
    page_size: int,
    offset_counts: OffsetUnit | None,
) -> Iterator[Finding]:
    """Where the list reads its parameters, and what they mean there. Last, because these calls may be refused."""
    examined: list[_ParameterPlace] = []
    for name in sorted(PARAMETER_PLACES, key=lambda name: name != preferred):
        if not probe.may_be_refused:
            break
        examined.append(place := _ParameterPlace.examine(probe, name, first_page))
        if place.reads_limit is False or place.reads_dates is False:
            continue
        if name != preferred:
            settings: dict[str, Any] = {"message_filters": "query" if name == "query" else "body"}
            if UNTYPED in (name, preferred):
                settings["message_content_type"] = name != UNTYPED
            yield differs(f"Message filters are read in the {name}", settings)
        elif None in (place.reads_limit, place.reads_dates):
            words = f"Whether filters are read in the {name} isn’t known until there are messages."
            yield Finding("ok", words)
        else:
            yield Finding("ok", f"Message filters are read in the {name}.")
        yield from _check_offset(probe, report, name, offset_counts)
        if name != preferred:  # Where the limit wasn’t read, any size was accepted.
            yield from _check_page_size(probe, report, name, page_size)
        return
    if len(examined) < len(PARAMETER_PLACES):
        report.untried.append("message filters")
        yield Finding("warn", f"Where message filters are read isn’t known: {RUN_AGAIN}")
        return
    yield _unread_filters(examined)
    yield from _check_offset(
        probe, report, next((one.name for one in examined if one.reads_limit), preferred), offset_counts
    )


def _check_page_size(probe: Probe, report: FirstDay, place: str, page_size: int) -> Iterator[Finding]:
    """The size to ask for, if the service refuses `page_size` in this place."""
    if not probe.may_be_refused:
        report.untried.append("page size")
        return
    _, refusal = probe.messages(place, limit=page_size)
    if _is_refused_page(refusal):
        _, _, smaller = _find_page_size(probe, place, page_size, refusal)
        if smaller:
            yield smaller


def _unread_filters(examined: Sequence[_ParameterPlace]) -> Finding:
    """The finding that no place accepts all filters."""
    partial_readers = [
        f"{place.name} ({'limit, no dates' if place.reads_limit else 'dates, no limit'})"
        for place in examined
        if place.reads_limit or place.reads_dates
    ]
    if partial_readers:
        words = f"No single place accepts all message filters: {', '.join(partial_readers)}."
        return Finding("warn", f"{words} Messages that don’t fit are left out here.")
    problems = "; ".join(dict.fromkeys(place.problem for place in examined if place.problem))
    why = f" The service said: {quoted(problems)}" if problems else ""
    words = "The service reads message filters in neither the query nor the body."
    return Finding("bad", f"{words}{why} Ask the lender where limit, offset, start_date and end_date go.")


_OFFSETS: Final[dict[OffsetUnit, str]] = {
    "rows": "messages",
    "pages0": "pages, from 0",
    "pages1": "pages, from 1",
}


def _check_offset(
    probe: Probe, report: FirstDay, place: str, configured: OffsetUnit | None
) -> Iterator[Finding]:
    if not probe.may_be_refused:
        report.untried.append("offset")
        yield Finding("warn", f"What offset counts isn’t known: {RUN_AGAIN}")
        return
    resource = probe.resource(place)
    try:
        pages = [resource.list(limit=2, offset=offset) for offset in (None, 1, 2, None)]
    except ServicingError as problem:
        yield Finding("warn", f"What offset counts isn’t known: {quoted(problem.message)}")
        return
    first, second, third, again = (page.order for page in pages)
    if first != again:
        words = "What offset counts isn’t known, because messages arrived in between. Run this again."
        yield Finding("warn", words)
        return
    if first and first == second == third:
        words = "Offset is ignored, so only the first page can be read. Ask the lender for the others."
        yield Finding("bad", words)
        return
    counts = _offset_unit(first, second)
    if counts is None:
        yield Finding("ok", "What offset counts isn’t known until there are more messages.")
        return
    words = f"Offset counts {_OFFSETS[counts]}"
    settings = {"offset_counts": counts}
    if configured not in (None, counts):
        yield differs(words, settings)
    elif configured is None and counts == "rows" and pages[0].pagination.total is None:
        yield differs(f"{words}, and without a total the client is slow to notice", settings, "warn")
    else:
        yield Finding("ok", f"{words}.", settings)


def _offset_unit(first: Sequence[str], second: Sequence[str]) -> OffsetUnit | None:
    """What offset counts, according to the first page of two messages and the one at offset 1."""
    if first and second == first:
        return "pages1"
    if len(first) < 2:
        return None
    if second[:1] == first[1:]:
        return "rows"
    return None if set(first) & set(second) else "pages0"
