"""The first day with a service: tries every read and reports what fits, what differs, and the setting to try.

Hides which calls show what. It sends no change, never sends the secret in another form than the configured one, and
makes at most three calls that the service refuses. A point that the calls can't decide is reported as open, never
guessed. The report contains no value of a record but its enumerations.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple

from servicing.applications import Application
from servicing.auth import HmacAuth, Scheme, SeveralSignatures
from servicing.codec import Budget, Cipher, Model
from servicing.credit_lines import Statement
from servicing.crypto import BLOCK, FieldCipher
from servicing.errors import (
    Forbidden,
    NotFound,
    ProtocolError,
    Rejected,
    ServicingError,
    Unauthenticated,
)
from servicing.loans import Loan
from servicing.masking import HIDDEN
from servicing.messages import PATH as MESSAGES_PATH
from servicing.messages import Message, MessagesResource
from servicing.reasons import plain_name
from servicing.repayments import Repayment
from servicing.resource import OffsetUnit, Page, read_record, read_records
from servicing.transport import Call, Outcome, Transport
from servicing.values import RemoteTime

MAX_REFUSED_CALLS: Final = 3
AGREEING_CLOCK_SECONDS: Final = 5
USABLE_CLOCK_SECONDS: Final = 30
UNTYPED: Final = "body without a content type"
PARAMETER_PLACES: Final = ("query", "body", UNTYPED)
SMALLER_PAGE: Final = 50
SMALLEST_PAGE: Final = 25
LONG_AGO: Final = date(1970, 1, 1)
TEST_VALUE: Final = "123456789"
TEST_IV: Final = bytes(range(BLOCK))
MAX_NAMED: Final = 20
MAX_KINDS: Final = 3
"""How many kinds and values of one field are shown."""
_SHOWN_NAME: Final = 60
_RUN_AGAIN: Final = (
    f"{MAX_REFUSED_CALLS} calls were refused already. Set what is named here, and run this again."
)

Grade = Literal["ok", "warn", "bad"]
_GRADE_LABELS: Final[Mapping[Grade, str]] = {"ok": "ok", "warn": "look", "bad": "WRONG"}


@dataclass(frozen=True)
class Finding:
    """One result of `Client.first_day`.

    `grade` is `ok`, `warn` or `bad`; `words` is a sentence or two for staff. `settings` are arguments of `Client`
    with the values that fit this service.
    """

    grade: Grade
    words: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The grade in a word."""
        return _GRADE_LABELS[self.grade]


class FieldSeen(NamedTuple):
    """A field of real answers: its dotted name, the kinds of its values, and the values if it is an enumeration."""

    name: str
    kind: str
    value: str = ""


@dataclass(frozen=True, kw_only=True)
class ReadTried:
    """One of the six reads. `problem` says why nothing was decoded; empty if an answer was.

    `fields` are those of all records, or of the answer that wasn't decoded. `unknown` fields are not in the
    interface, `absent` ones are missing in every record, `unreadable` ones have another type. `new_values` are
    enumerations that the interface doesn't show.
    """

    name: str
    operation: str
    problem: str = ""
    count: int | None = None
    """How many records a list has."""
    envelope: str = ""
    """The member that holds the answer, if no setting names it."""
    fields: Sequence[FieldSeen] = ()
    unknown: Sequence[str] = ()
    absent: Sequence[str] = ()
    unreadable: Sequence[str] = ()
    new_values: Sequence[str] = ()

    @property
    def remarks(self) -> list[tuple[str, Sequence[str]]]:
        """What differs from the interface, each with its title."""
        all_remarks = (
            ("Unknown", self.unknown),
            ("Expected and absent", self.absent),
            ("Of another type", self.unreadable),
            ("Values not in the interface", self.new_values),
        )
        return [(title, names) for title, names in all_remarks if names]


@dataclass(kw_only=True)
class FirstDay:
    """What `Client.first_day` found."""

    findings: list[Finding] = field(default_factory=list)
    reads: list[ReadTried] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)
    """Points beside the reads that could not be tried."""
    test_value: str = ""
    """What a test value becomes, to compare with the lender; empty without a key."""

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `Client` that fit this service, as far as they were found out."""
        return {name: value for found in self.findings for name, value in found.settings.items()}

    @property
    def setting_lines(self) -> list[str]:
        """The same as settings of the portal, such as `SERVICING_ENVELOPE=data`."""
        return _setting_lines(self.settings)

    @property
    def questions(self) -> list[str]:
        """What no read shows, to ask the lender."""
        key = (
            f"Is an EIN encrypted like this? {self.test_value} (if not: SERVICING_FIELD_KEY, SERVICING_VALUE_KEY, "
            "SERVICING_VALUE_ENCODING, SERVICING_VALUE_IV or SERVICING_CIPHER)"
        )
        return [
            key if self.test_value else "Which key encrypts EIN and SSN? SERVICING_FIELD_KEY is not set.",
            "What is the incorporation date of a new borrower called? SERVICING_INCORPORATION_FIELD.",
            "How is the country of an address spelled? SERVICING_COUNTRY.",
            "In which time zone are the days of message filters? SERVICING_TIME_ZONE.",
        ]

    @property
    def is_usable(self) -> bool:
        return all(found.grade != "bad" for found in self.findings)

    @property
    def verdict(self) -> str:
        """One line: ready, or what is left."""
        left = [found.words for found in self.findings if found.grade == "bad"]
        if left:
            return f"Not ready. Left: {' '.join(left)}"
        missing = [read.name for read in self.reads if read.problem] + self.untried
        return f"Ready, as far as it was tried. Left: {', '.join(missing)}." if missing else "Ready."

    def text(self) -> str:
        """The report as plain text."""
        return "\n".join(_text_lines(self)) + "\n"


def first_day(
    transport: Transport,
    known_ids: Mapping[str, str],
    *,
    auth: str,
    place: str,
    page_size: int,
    offset_counts: OffsetUnit | None,
    cipher: Cipher | None,
) -> FirstDay:
    """Try every read. Reads whose IDs are missing in `known_ids` are left out.

    `auth`, `place` (of the message filters), `page_size` and `offset_counts` are the configured ones.
    """
    report = FirstDay()
    probe = _Probe(transport)
    report.findings += _check_messages(probe, report, auth, place, page_size)
    for read in _READS:
        if probe.obstacle:
            report.reads.append(_not_tried(read, probe.obstacle))
        else:
            report.findings += _try_read(probe, report, read, known_ids)
    report.findings += _check_envelopes(report.reads)
    if (first_page := probe.first_page) is not None:  # Last, because these calls may be refused.
        report.findings += _check_filters(probe, report, first_page, place, page_size, offset_counts)
    report.findings += _check_cipher(report, cipher)
    return report


class _Probe:
    """Makes the calls, remembers the last outcome, and counts the calls that were refused."""

    def __init__(self, transport: Transport) -> None:
        self._plain = transport.with_single_try()
        self.transport = self._plain.with_watcher(self)
        self.outcome: Outcome | None = None
        self.refused = 0
        self.obstacle = ""
        """Why no other read can be tried."""
        self.first_page: Page[Message] | None = None
        self.asked: int | None = None
        """The size that was asked for when it came; None if it came without a limit."""
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


def _differs(words: str, settings: Mapping[str, Any], grade: Grade = "bad") -> Finding:
    """A finding whose words end with the settings to try."""
    return Finding(grade, f"{words}: set {' and '.join(_setting_lines(settings))}.", settings)


def _check_cipher(report: FirstDay, cipher: Cipher | None) -> Iterator[Finding]:
    try:
        report.test_value = _encrypted_test_value(cipher)
    except Exception:
        yield Finding("bad", "SERVICING_CIPHER fails to encrypt a test value.")


# The message list, which needs no ID


def _check_messages(
    probe: _Probe, report: FirstDay, auth: str, place: str, page_size: int
) -> Iterator[Finding]:
    asked: int | None = page_size
    page, refusal = probe.messages(place, limit=page_size)
    if _is_credential_problem(refusal) and auth == "oauth2" and probe.status:
        page, refusal = probe.messages(place, limit=page_size)  # The token had perhaps ended early.
    if _is_credential_problem(refusal) and auth == "hmac" and (found := _find_signature(probe, place)):
        yield found
        if probe.may_be_refused:
            page, refusal = probe.messages(place, limit=page_size)
        else:  # A page without a limit has to do.
            asked = None
            page, refusal = probe.messages(place)
    if _is_credential_problem(refusal):
        probe.obstacle = "The service rejects these credentials."
        yield from _check_clock(probe, auth)
        yield Finding("bad", _credential_words(probe, auth, refusal))
        report.reads.append(_not_tried(_MESSAGES, probe.obstacle))
        return
    smaller = None
    if _is_refused_page(refusal):
        page, refusal, smaller = _find_page_size(probe, place, page_size, refusal)
    if probe.status is None:
        probe.obstacle = "The service didn’t respond."
    elif page is not None:
        yield Finding("ok", "The service accepts these credentials.")
    yield from _check_clock(probe, auth)
    if smaller:
        yield smaller
        asked = smaller.settings.get("page_size")
    if page is None:
        words = _quoted(refusal.message if refusal else "")
        yield Finding("bad", f"The message list can’t be read: {words} {_address_words(probe, auth)}".strip())
        report.reads.append(ReadTried(name="messages", operation="messages.list", problem=words))
        return
    report.reads.append(seen := _seen(_MESSAGES, page.data))
    yield from _record_findings(_MESSAGES, seen)
    if page.unusable:
        yield Finding("bad", f"{len(page.unusable)} of {len(page)} messages have no usable ID.")
    probe.asked = asked
    if page.pagination.total is None:
        yield Finding("ok", "The message list says no total; it is read until nothing new comes.")
    probe.first_page = page


def _find_page_size(
    probe: _Probe, place: str, page_size: int, refusal: ServicingError | None
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
        shows_size = page is None or page.pagination.limit is not None or len(page) >= SMALLEST_PAGE
        if not shows_size and page_size > SMALLEST_PAGE:
            fuller = probe.messages(place, limit=SMALLEST_PAGE)[0] if probe.may_be_refused else None
            page, size = (page, size) if fuller is None else (fuller, SMALLEST_PAGE)
    if page is None:
        return None, refusal, None
    words = f"The service refuses pages of {page_size} messages"
    if not size or size >= page_size:
        return page, None, Finding("bad", f"{words}: ask the lender for SERVICING_PAGE_SIZE.")
    return page, None, _differs(f"{words}, but not of {size}", {"page_size": size})


def _find_signature(probe: _Probe, place: str) -> Finding | None:
    """The settings with which the service accepts the same secret; the probe uses them from then on.

    Two more calls are refused at most: the first sends both sets of header names, the second in another unit.
    """
    scheme = probe.transport.auth
    is_late = abs(_seconds_fast(probe) or 0) > USABLE_CLOCK_SECONDS
    if not isinstance(scheme, HmacAuth) or is_late or _wanted_scheme(probe) not in ("", "hmac"):
        return None
    unit: Literal["ms", "s"] = "s" if scheme.epoch_unit == "ms" else "ms"
    names = tuple(name.replace("-", "_") for name in scheme.header_names)
    moment = time.time()  # One for both signatures, because they may share the header of the time.
    renamed = scheme.with_choices(auth_headers=names, clock=lambda: moment)
    converted = scheme.with_choices(epoch_unit=unit, clock=lambda: moment)
    both = renamed.with_choices(epoch_unit=unit)

    def is_accepted(*schemes: HmacAuth) -> bool:
        probe.use_auth(SeveralSignatures(*schemes))
        _, refusal = probe.messages(place)
        return refusal is None or (isinstance(refusal, Rejected) and not isinstance(refusal, Forbidden))

    settings: dict[str, Any] = {}
    if is_accepted(scheme.with_choices(clock=lambda: moment), renamed):
        settings = {"auth_headers": names}
    elif is_accepted(converted, both):
        settings = (
            {"epoch_unit": unit} if is_accepted(converted) else {"epoch_unit": unit, "auth_headers": names}
        )
    probe.use_auth(scheme.with_choices(**settings))
    return _differs("The service takes another signature", settings) if settings else None


def _is_credential_problem(refusal: ServicingError | None) -> bool:
    return isinstance(refusal, Unauthenticated | Forbidden)


def _is_refused_page(refusal: ServicingError | None) -> bool:
    """Whether the size of a page may be why there is none; an answer without messages may hold an error."""
    if isinstance(refusal, ProtocolError):
        return refusal.status == HTTPStatus.OK
    return isinstance(refusal, Rejected) and not isinstance(refusal, Forbidden | NotFound)


_OWN_SETTINGS: Final = {
    "hmac": "SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_AUTH_HEADERS and SERVICING_EPOCH_UNIT",
    "bearer": "SERVICING_TOKEN",
    "header": "SERVICING_TOKEN and SERVICING_AUTH_HEADERS",
    "basic": "SERVICING_CLIENT_ID and SERVICING_SECRET",
    "oauth2": "SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_TOKEN_URL and SERVICING_SCOPE",
}
_SCHEMES: Final = {
    "hmac": "a signature: SERVICING_AUTH=hmac",
    "bearer": "a bearer token: SERVICING_AUTH=bearer with SERVICING_TOKEN",
    "oauth2": "a token from OAuth 2: SERVICING_AUTH=oauth2 with SERVICING_TOKEN_URL",
    "basic": "a user and password: SERVICING_AUTH=basic with SERVICING_CLIENT_ID and SERVICING_SECRET",
    "header": "an API key: SERVICING_AUTH=header with SERVICING_TOKEN and SERVICING_AUTH_HEADERS",
}
# What `WWW-Authenticate` names.
_CHALLENGES: Final = {
    "hmac": ("hmac",),
    "bearer": ("bearer", "oauth2"),
    "basic": ("basic",),
    "apikey": ("header",),
}


def _wanted_scheme(probe: _Probe) -> str:
    """The scheme that the last answer asks for, without its parameters."""
    name = probe.header("WWW-Authenticate").partition(" ")[0]
    return plain_name(name) if re.fullmatch(r"[A-Za-z0-9-]{1,30}", name) else ""


def _credential_words(probe: _Probe, auth: str, refusal: ServicingError | None) -> str:
    words = f"The service rejects these credentials: {_quoted(refusal.message if refusal else '')}"
    wanted = _wanted_scheme(probe)
    fitting = _CHALLENGES.get(wanted, ())
    if wanted and auth not in fitting:
        if not fitting:
            return f"{words} It asks for “{wanted}”, which needs a session of your own: SERVICING_SESSION."
        return (
            f"{words} It asks for {', or '.join(_SCHEMES[name] for name in fitting)}.{_named_header(probe)}"
        )
    if auth == "hmac" and abs(_seconds_fast(probe) or 0) > USABLE_CLOCK_SECONDS:
        return f"{words} Correct the clock first."
    own = f" Check {_OWN_SETTINGS[auth]}." if auth in _OWN_SETTINGS else ""
    others = "; ".join(text for name, text in _SCHEMES.items() if name != auth)
    return f"{words}{own} Or the lender wants something else: {others}."


def _named_header(probe: _Probe) -> str:
    """The header for an API key, where the answer names it."""
    found = re.search(r'\b(?:header|name)="?([\w-]{1,60})"?', probe.header("WWW-Authenticate"), re.ASCII)
    return f" Its header: SERVICING_AUTH_HEADERS={found[1]}." if found else ""


def _address_words(probe: _Probe, auth: str) -> str:
    """What to check if there is no message list."""
    if probe.status is None:
        token_url = "SERVICING_TOKEN_URL, " if auth == "oauth2" else ""
        return f"Check SERVICING_URL, {token_url}SERVICING_PROXY and SERVICING_CA_BUNDLE."
    if probe.status in range(300, 400):
        found = re.match(r"https?://[\w.:\[\]-]{1,100}", probe.header("Location"), re.ASCII)
        return f"It redirects to {found[0]}. Check SERVICING_URL." if found else "Check SERVICING_URL."
    is_page = not probe.outcome or isinstance(probe.outcome.body, str)
    return "Check SERVICING_URL." if is_page or probe.status == HTTPStatus.NOT_FOUND else ""


def _check_clock(probe: _Probe, auth: str) -> Iterator[Finding]:
    seconds_fast = _seconds_fast(probe)
    if probe.outcome is None or probe.status is None:
        return
    if seconds_fast is None:
        yield Finding("warn", "The service’s responses have no date, so its clock can’t be compared.")
        return
    if abs(seconds_fast) <= AGREEING_CLOCK_SECONDS:
        yield Finding("ok", "This machine's clock agrees with the service's.")
        return
    side = "behind" if seconds_fast > 0 else "ahead of"
    words = f"This machine's clock is {abs(seconds_fast):,.0f} seconds {side} the service's."
    if auth != "hmac":
        yield Finding("warn", words)
        return
    yield Finding(
        "warn" if abs(seconds_fast) <= USABLE_CLOCK_SECONDS else "bad",
        f"{words} Signatures expire after 60 seconds.",
    )


def _seconds_fast(probe: _Probe) -> float | None:
    """Seconds by which the service's clock is ahead of this machine's, according to the last answer."""
    try:
        return (
            parsedate_to_datetime(probe.header("Date")).astimezone(UTC) - datetime.now(UTC)
        ).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None


def _page_finding(page: Page[Message], asked: int) -> Finding:
    granted, total = page.pagination.limit, page.pagination.total
    if granted is None and total is not None and len(page) < min(asked, total):
        granted = len(page)
    if granted is not None and granted < asked:
        return Finding("ok", f"A page has up to {granted:,} messages; a larger limit is lowered.")
    return Finding("ok", f"A page can have {asked:,} messages.")


class _ParameterPlace(NamedTuple):
    """One place for the parameters of the message list, and what the service reads there."""

    name: str
    reads_limit: bool | None
    reads_dates: bool | None
    """None if there is no message that shows it."""
    problem: str = ""

    @classmethod
    def examine(cls, probe: _Probe, name: str, first_page: Page[Message]) -> "_ParameterPlace":
        page, problem = probe.messages(name, limit=1)
        filtered = None
        if page is not None and probe.may_be_refused:
            filtered, problem = probe.messages(name, end_date=LONG_AGO)
        if page is None or filtered is None:
            return cls(name, False, False, problem.message if problem else "")
        reads_limit = len(page) == 1 if len(first_page) > 1 else page.pagination.limit == 1 or None
        return cls(name, reads_limit, not filtered.data if first_page.data else None)


def _check_filters(
    probe: _Probe,
    report: FirstDay,
    first_page: Page[Message],
    preferred: str,
    page_size: int,
    offset_counts: OffsetUnit | None,
) -> Iterator[Finding]:
    examined: list[_ParameterPlace] = []
    for name in sorted(PARAMETER_PLACES, key=lambda name: name != preferred):
        if not probe.may_be_refused:
            break
        examined.append(place := _ParameterPlace.examine(probe, name, first_page))
        if place.reads_limit is False or place.reads_dates is False:
            continue
        settings: dict[str, Any] = {}
        if name != preferred:
            settings["message_filters"] = "query" if name == "query" else "body"
            if name == UNTYPED or preferred == UNTYPED:
                settings["message_content_type"] = name != UNTYPED
        if settings:
            yield _differs(f"Message filters are read in the {name}", settings)
        elif None in (place.reads_limit, place.reads_dates):
            words = f"Whether filters are read in the {name} isn’t known until there are messages."
            yield Finding("ok", words)
        else:
            yield Finding("ok", f"Message filters are read in the {name}.")
        yield from _check_offset(probe, report, name, offset_counts)
        page: Page[Message] | None = first_page
        asked, smaller = probe.asked, None
        if settings and probe.may_be_refused:  # Where the limit wasn't read, any size was accepted.
            page, refusal = probe.messages(name, limit=page_size)
            asked = page_size
            if _is_refused_page(refusal):
                probe.default_size = first_page.pagination.limit or len(first_page) or None
                page, _, smaller = _find_page_size(probe, name, page_size, refusal)
        elif settings:
            asked = None
        if smaller:
            yield smaller
            asked = smaller.settings.get("page_size")
        if page is not None and asked:
            yield _page_finding(page, asked)
        elif not smaller:
            report.untried.append("page size")
        return
    if len(examined) < len(PARAMETER_PLACES):
        report.untried += ["message filters", *(["page size"] if probe.asked is None else [])]
        yield Finding("warn", f"Where message filters are read isn’t known: {_RUN_AGAIN}")
        return
    yield _unread_filters(examined)
    yield from _check_offset(
        probe, report, next((one.name for one in examined if one.reads_limit), preferred), offset_counts
    )


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
    why = f" The service said: {_quoted(problems)}" if problems else ""
    words = "The service reads message filters in neither the query nor the body."
    return Finding("bad", f"{words}{why} Ask the lender where limit, offset, start_date and end_date go.")


_OFFSETS: Final[dict[OffsetUnit, str]] = {
    "rows": "messages",
    "pages0": "pages, from 0",
    "pages1": "pages, from 1",
}


def _check_offset(
    probe: _Probe, report: FirstDay, place: str, configured: OffsetUnit | None
) -> Iterator[Finding]:
    if not probe.may_be_refused:
        report.untried.append("offset")
        yield Finding("warn", f"What offset counts isn’t known: {_RUN_AGAIN}")
        return
    resource = probe.resource(place)
    try:
        pages = [resource.list(limit=2, offset=offset) for offset in (None, 1, 2, None)]
    except ServicingError as problem:
        yield Finding("warn", f"What offset counts isn’t known: {_quoted(problem.message)}")
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
        yield _differs(words, settings)
    elif configured is None and counts == "rows" and pages[0].pagination.total is None:
        yield _differs(f"{words}, and without a total the client is slow to notice", settings, "warn")
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


# The reads that need IDs


class _Read(NamedTuple):
    name: str
    operation: str
    path: str
    model: type[Model]
    is_list: bool
    ids: tuple[str, ...] = ()
    own_id: str = ""
    """The argument with the uuid of the record, if it has one."""


_MESSAGES: Final = _Read("messages", "messages.list", MESSAGES_PATH, Message, True)
_LOAN, _LINE = ("borrower_id", "loan_id"), ("borrower_id", "line_id")
_READS: Final = (
    _Read(
        "application",
        "applications.get_for_line",
        "/v1/users/{borrower_id}/loc/applications/{application_id}",
        Application,
        False,
        ("borrower_id", "application_id"),
        "application_id",
    ),
    _Read("loan", "loans.get", "/v1/users/{borrower_id}/loan/{loan_id}", Loan, False, _LOAN, "loan_id"),
    _Read(
        "loan repayments",
        "repayments.of_loan",
        "/v1/users/{borrower_id}/loans/{loan_id}/payments",
        Repayment,
        True,
        _LOAN,
    ),
    _Read(
        "statement",
        "credit_lines.statement",
        "/v1/users/{borrower_id}/loc/{line_id}/statements",
        Statement,
        False,
        _LINE,
    ),
    _Read(
        "line repayments",
        "repayments.of_line",
        "/v1/users/{borrower_id}/loc/{line_id}/payments",
        Repayment,
        True,
        _LINE,
    ),
)


def _not_tried(read: _Read, why: str) -> ReadTried:
    return ReadTried(name=read.name, operation=read.operation, problem=f"Not tried. {why}")


def _try_read(
    probe: _Probe, report: FirstDay, read: _Read, known_ids: Mapping[str, str]
) -> Iterator[Finding]:
    missing = [name.removesuffix("_id") for name in read.ids if not known_ids.get(name)]
    if missing:
        report.reads.append(_not_tried(read, f"No {' and no '.join(missing)} was given."))
        return
    if not probe.may_be_refused:
        report.reads.append(_not_tried(read, _RUN_AGAIN))
        return
    ids = {name: known_ids[name] for name in read.ids}
    raw = None
    try:
        raw = probe.raw(read.operation, read.path, ids)
        records, envelope = _decode(read, raw, ids.get(read.own_id, ""), probe.transport)
    except ServicingError as problem:
        words = _quoted(problem.message)
        fields = _merge_fields([raw] if isinstance(raw, dict) else [])
        report.reads.append(ReadTried(name=read.name, operation=read.operation, problem=words, fields=fields))
        grade: Grade = "bad"
        if isinstance(problem, NotFound):
            grade, words = "warn", f"{words} Check its IDs."
        elif _is_credential_problem(problem):
            words = f"{words} Ask the lender to let this client read it."
        yield Finding(grade, f"The {read.name} can’t be read: {words}")
        return
    report.reads.append(seen := _seen(read, records, envelope))
    yield from _record_findings(read, seen)


def _decode(read: _Read, raw: Any, uuid: str, transport: Transport) -> tuple[list[Any], str]:
    """The records of an answer, and the envelope that had to be opened for them, if that is not the configured one."""
    configured = transport.list_envelope if read.is_list else transport.envelope
    try:
        return _records(read, raw, uuid, configured), ""
    except ProtocolError:
        for envelope, item in raw.items() if isinstance(raw, dict) else ():
            if isinstance(item, dict | list):
                with suppress(ProtocolError):
                    return _records(read, raw, uuid, envelope), envelope
        raise


def _records(read: _Read, raw: Any, uuid: str, envelope: str) -> list[Any]:
    if read.is_list:
        return read_records(read.model, raw, Budget(), envelope)
    return [read_record(read.model, uuid, envelope, raw, Budget())]


def _check_envelopes(reads: Sequence[ReadTried]) -> Iterator[Finding]:
    """The members in which objects and lists are wrapped, if no setting names them."""
    list_names = {read.name for read in _READS if read.is_list}
    for setting, title in (("envelope", "Objects are"), ("list_envelope", "Lists of repayments are")):
        wrapped = [
            read
            for read in reads
            if read.envelope and (read.name in list_names) == (setting == "list_envelope")
        ]
        names = list(dict.fromkeys(_shown(read.envelope) for read in wrapped))
        if len(names) == 1:
            yield _differs(f"{title} wrapped in “{names[0]}”", {setting: wrapped[0].envelope})
        elif names:
            members = ", ".join(f"the {read.name} in “{_shown(read.envelope)}”" for read in wrapped)
            yield Finding(
                "bad",
                f"{title} wrapped in different members: {members}. SERVICING_{setting.upper()} can name one; a session "
                "of your own (SERVICING_SESSION) can open the others.",
            )


# What an answer shows


_ENUMERATIONS: Final[dict[str, frozenset[str]]] = {
    "product": frozenset({"LOAN", "LOC", "BUILD_CREDIT"}),
    "status": frozenset({"ACTIVE", "SCHEDULED", "SUCCEEDED", "FAILED_AFTER_SUCCESS", "SUCCESS"}),
    "status.decision": frozenset({"APPROVED"}),
    "term_frequency": frozenset({"MONTHLY"}),
    "payment_type": frozenset({"RETURNED", "SINGLE_PAYMENT"}),
    "event": frozenset({"PAYMENT.SUCCEEDED"}),
}
"""The enumerations of sections 2 and 3, with the values seen there."""
# The offers of an application and the repayment in a message have the enumerations, too.
_INNER: Final = re.compile(r"^(payload|offers\[0\])\.")


def _seen(read: _Read, records: Sequence[Model], envelope: str = "") -> ReadTried:
    unknown: dict[str, None] = {}
    unreadable: dict[str, None] = {}
    new_values: dict[str, None] = {}
    absent: set[str] | None = None
    for record in records:
        unknown |= dict.fromkeys(_unknown_fields(record))
        unreadable |= dict.fromkeys(f"{_shown(issue.path)} {issue.problem}" for issue in record.issues)
        missing = set(record.__struct_encode_fields__) - record.raw.keys()
        absent = missing if absent is None else absent & missing
        for seen in _fields(record.raw):
            known = _ENUMERATIONS.get(_INNER.sub("", seen.name))
            if known and seen.value and seen.value.upper() not in known:
                new_values[f"{seen.name}: {seen.value}"] = None
    return ReadTried(
        name=read.name,
        operation=read.operation,
        count=len(records) if read.is_list else None,
        envelope=envelope,
        fields=_merge_fields([record.raw for record in records]),
        unknown=list(unknown)[:MAX_NAMED],
        absent=sorted(absent or ()),
        unreadable=list(unreadable)[:MAX_NAMED],
        new_values=list(new_values)[:MAX_NAMED],
    )


def _unknown_fields(model: Model, prefix: str = "") -> Iterator[str]:
    """The fields that the interface doesn't describe, in inner records too."""
    yield from (f"{prefix}{_shown(name)}" for name in model.extra)
    for name in model.__struct_fields__:
        value = getattr(model, name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Model):
                yield from _unknown_fields(inner, f"{prefix}{name}.")


def _record_findings(read: _Read, seen: ReadTried) -> Iterator[Finding]:
    if seen.unreadable:
        has = "have" if read.is_list else "has"
        fields = "; ".join(seen.unreadable)
        yield Finding("bad", f"The {read.name} {has} fields of another type: {fields}.")
    uncertain = [field.name for field in seen.fields if _UNCERTAIN in field.kind]
    if uncertain:
        words = f"The zone of {', '.join(uncertain)} in the {read.name} isn’t certain."
        yield Finding("warn", f"{words} Such times are shown as they were sent.")
    if seen.count == 0:
        yield Finding("warn", f"The list of {read.name} is empty, so its records couldn’t be compared.")
    elif not seen.unreadable:
        yield Finding("ok", f"The {read.name} can be read.")


def _merge_fields(raws: Sequence[Mapping[str, Any]]) -> list[FieldSeen]:
    """Every field of several objects, with the first few kinds and values that it has in them."""
    kinds: dict[str, dict[str, None]] = {}
    values: dict[str, dict[str, None]] = {}
    for raw in raws:
        for seen in _fields(raw):
            kinds.setdefault(seen.name, {})[seen.kind] = None
            if seen.value:
                values.setdefault(seen.name, {})[seen.value] = None
    return [
        FieldSeen(name, _few(found, " or "), _few(values.get(name, {}), ", "))
        for name, found in kinds.items()
    ]


def _few(words: Iterable[str], separator: str) -> str:
    shown = list(words)
    return separator.join(shown[:MAX_KINDS] + ["…"] * (len(shown) > MAX_KINDS))


def _fields(raw: Mapping[str, Any], prefix: str = "") -> Iterator[FieldSeen]:
    """Every field of an object, with the first element of each list and the fields of inner objects."""
    for name, value in raw.items():
        path = f"{prefix}{_shown(name)}"
        if isinstance(value, dict):
            yield FieldSeen(path, "object")
            yield from _fields(value, f"{path}.")
        elif isinstance(value, list):
            yield FieldSeen(path, f"list of {len(value)}")
            if value and isinstance(value[0], dict):
                yield from _fields(value[0], f"{path}[0].")
        elif _INNER.sub("", path) in _ENUMERATIONS and isinstance(value, str) and _CODE.fullmatch(value):
            yield FieldSeen(path, "text", value)
        else:
            yield FieldSeen(path, _kind(value))


_UNCERTAIN: Final = "time in an uncertain zone"
# What an enumeration looks like; anything else could be a value of a person.
_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:/ -]{0,39}", re.ASCII)
_ZONE: Final = re.compile(r"[A-Za-z]+(/[A-Za-z_]+)*|[+-]\d\d:?\d\d", re.ASCII)


def _kind(value: Any) -> str:
    """The form of a value, without the value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "whole number"
        case Decimal():
            return _number_kind(str(value))
    text = str(value)
    if text == HIDDEN:
        return "hidden: a personal number"
    if re.fullmatch(r"-?\d+\.\d+", text, re.ASCII):
        return f"{_number_kind(text)}, as text"
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return "date, YYYY-MM-DD"
    if re.fullmatch(r"\d{4}/\d\d/\d\d", text, re.ASCII):
        return "date, YYYY/MM/DD"
    if re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d", text, re.ASCII):
        zone = re.sub(r"^[\d:.T -]+?(?=[A-Za-z]|[+-]\d\d:?\d\d$|$)", "", text).strip() or "none"
        zone = zone if _ZONE.fullmatch(zone) else "other text"
        return f"time, zone {zone}" if RemoteTime(text).at else f"{_UNCERTAIN} ({zone})"
    if _ID.fullmatch(text):
        return "ID"
    return f"text, {len(text)} character{'' if len(text) == 1 else 's'}"


def _number_kind(text: str) -> str:
    decimals = len(text.partition(".")[2])
    return f"number, {decimals} decimal{'' if decimals == 1 else 's'}"


def _shown(name: str) -> str:
    return name[:_SHOWN_NAME]


_ID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
# Values of a record in the service's own words: IDs, emails, amounts, long numbers.
_PERSONAL: Final = re.compile(
    rf"{_ID.pattern}|[^\s@<>,;:'\"]+@[^\s@<>,;:'\"]+|\$?\d[\d,]*\.\d\d\b|[\d-]{{6,}}"
)


def _quoted(words: str) -> str:
    """A sentence of an error without values of a record."""
    words = _PERSONAL.sub("[hidden]", words.strip()) or "it has no usable response"
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _encrypted_test_value(cipher: Cipher | None) -> str:
    if isinstance(cipher, FieldCipher):
        return f"{TEST_VALUE} with the IV {TEST_IV.hex()} is {cipher.encrypt(TEST_VALUE, iv=TEST_IV)}"
    return f"{TEST_VALUE} is {cipher.encrypt(TEST_VALUE)}" if cipher else ""


# The report as text


def _text_lines(report: FirstDay) -> Iterator[str]:
    yield "First day with the lending service"
    yield ""
    for found in report.findings:
        yield f"{found.label:5}  {found.words}"
    if report.setting_lines:
        yield from ("", "Settings that fit this service:")
        yield from (f"  {line}" for line in report.setting_lines)
    yield from ("", "No read shows this; ask the lender:")
    yield from (f"  {line}" for line in report.questions)
    for read in report.reads:
        yield from ("", f"{read.name} ({read.operation})")
        yield from (f"  {line}" for line in _read_lines(read))
    yield from ("", report.verdict)


def _read_lines(read: ReadTried) -> Iterable[str]:
    if read.problem:
        yield read.problem
    if read.count is not None:
        yield f"{read.count} record{'' if read.count == 1 else 's'}"
    width = max((len(seen.name) for seen in read.fields), default=0)
    for seen in read.fields:
        yield f"{seen.name:{width}}  {seen.value or seen.kind}"
    for title, names in read.remarks:
        yield f"{title}: {', '.join(names)}"


def _setting_lines(settings: Mapping[str, Any]) -> list[str]:
    return [f"SERVICING_{name.upper()}={_setting_text(value)}" for name, value in settings.items()]


def _setting_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(value) if isinstance(value, tuple) else str(value)
