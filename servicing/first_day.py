"""The first day with a service: tries every read and reports what fits, what differs, and the setting to try.

Hides which calls show what. It sends no change, never sends the secret in another form than the configured one, and
makes at most three calls that the service refuses. A point that the calls can't decide is reported as open, never
guessed. The report contains no value of a record but its enumerations.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from servicing.applications import Application
from servicing.auth import HmacAuth
from servicing.codec import Budget, Cipher, Model, parse
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
from servicing.resource import Page, iterate_pages, read_record, read_records
from servicing.transport import Call, Outcome, Transport
from servicing.values import RemoteTime

MAX_REFUSED_CALLS: Final = 3
AGREEING_CLOCK_SECONDS: Final = 5
USABLE_CLOCK_SECONDS: Final = 30
UNTYPED: Final = "body without a content type"
PARAMETER_PLACES: Final = ("query", "body", UNTYPED)
SMALLER_PAGES: Final = (50, 25)
LONG_AGO: Final = date(1970, 1, 1)
TEST_VALUE: Final = "123456789"
TEST_IV: Final = bytes(range(BLOCK))
MAX_NAMED: Final = 20
_SHOWN_NAME: Final = 60

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
    """A field of a real answer: its dotted name, the kind of its value, and the value if it is an enumeration."""

    name: str
    kind: str
    value: str = ""


@dataclass(frozen=True, kw_only=True)
class ReadTried:
    """One of the six reads. `problem` says why nothing was decoded; empty if an answer was.

    `fields` are those of the first record. `unknown` fields are not in the interface, `absent` ones are missing in
    every record, `unreadable` ones have another type. `new_values` are enumerations that the interface doesn't show.
    """

    name: str
    operation: str
    problem: str = ""
    count: int | None = None
    """How many records a list has."""
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
    test_value: str = ""
    """What a test value becomes, to compare with the lender; empty without a key."""

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `Client` that fit this service, as far as they were found out."""
        return {name: value for found in self.findings for name, value in found.settings.items()}

    @property
    def setting_lines(self) -> list[str]:
        """The same as settings of the portal, such as `SERVICING_ENVELOPE=data`."""
        return [f"SERVICING_{name.upper()}={_setting_text(value)}" for name, value in self.settings.items()]

    @property
    def is_usable(self) -> bool:
        return all(found.grade != "bad" for found in self.findings)

    @property
    def verdict(self) -> str:
        """One line: ready, or what is left."""
        left = [found.words for found in self.findings if found.grade == "bad"]
        if left:
            return f"Not ready. Left: {' '.join(left)}"
        missing = [read.name for read in self.reads if read.problem]
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
    cipher: Cipher | None,
) -> FirstDay:
    """Try every read. Reads whose IDs are missing in `known_ids` are left out.

    `auth` and `place` (of the message filters) are the configured ones.
    """
    report = FirstDay(test_value=_encrypted_test_value(cipher))
    probe = _Probe(transport)
    report.findings += _check_messages(probe, report, auth, place, page_size)
    if probe.is_accepted:
        for read in _READS:
            report.findings += _try_read(probe, report, read, known_ids)
    else:
        report.reads += [_not_tried(read, "The service refuses our credentials.") for read in _READS]
    if probe.messages_page is not None:  # Last, because these calls may be refused.
        report.findings += _check_filters(probe, place, probe.messages_page, page_size)
    return report


class _Probe:
    """Makes the calls, remembers the last outcome, and counts the calls that were refused."""

    def __init__(self, transport: Transport) -> None:
        self._plain = transport
        self.transport = transport.with_watcher(self)
        self.outcome: Outcome | None = None
        self.refused = 0
        self.is_accepted = False
        self.asked = 0
        """The size of the page that was asked for last."""
        self.messages_page: Page[Message] | None = None
        """The first page of messages."""

    def before(self, call: Call) -> None:
        raise AssertionError("The first day only reads.")

    def after(self, call: Call, outcome: Outcome) -> None:
        self.outcome = outcome
        self.refused += outcome.status is not None and 400 <= outcome.status < 500

    @property
    def may_be_refused(self) -> bool:
        """Whether a call may still be refused."""
        return self.refused < MAX_REFUSED_CALLS

    def use_auth(self, auth: Any) -> None:
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
            return self.resource(place).list(**filters), None
        except ServicingError as problem:
            return None, problem

    def resource(self, place: str) -> MessagesResource:
        filters: Literal["query", "body"] = "query" if place == "query" else "body"
        return MessagesResource(self.transport, filters=filters, content_type=place == "body")


# The message list, which needs no ID


def _check_messages(
    probe: _Probe, report: FirstDay, auth: str, place: str, page_size: int
) -> Iterator[Finding]:
    probe.asked = page_size
    page, refusal = probe.messages(place, limit=page_size)
    if (
        _is_credential_problem(refusal)
        and auth == "hmac"
        and (settings := _find_signature(probe, place, page_size))
    ):
        page, refusal = probe.messages(place, limit=page_size)
        words = " and ".join(f"SERVICING_{name.upper()}" for name in settings)
        yield Finding("bad", f"The service accepts another {words} than configured.", settings)
    if _is_credential_problem(refusal):
        yield Finding("bad", _credential_words(probe, auth, refusal))
        yield from _check_clock(probe, auth)
        report.reads.append(_not_tried(_MESSAGES, "The service refuses our credentials."))
        return
    probe.is_accepted = probe.status is not None
    if page is not None:
        yield Finding("ok", "The service accepts these credentials.")
    yield from _check_clock(probe, auth)
    if _is_refused_page(refusal):
        page, refusal, findings = _find_page_size(probe, place, page_size, refusal)
        yield from findings
    if page is None:
        words = refusal.message if refusal else "it has no usable answer."
        yield Finding(
            "bad", f"The message list can’t be read: {_sentence(words)} {_address_words(probe)}".strip()
        )
        report.reads.append(_not_tried(_MESSAGES, _sentence(words)))
        return
    raw = parse(probe.outcome.content) if probe.outcome else None
    report.reads.append(seen := _seen(_MESSAGES, raw, page.data))
    yield from _record_findings(_MESSAGES, seen)
    if page.unusable:
        yield Finding("bad", f"{len(page.unusable)} of {len(page)} messages have no usable ID.")
    probe.messages_page = page


def _find_page_size(
    probe: _Probe, place: str, page_size: int, refusal: ServicingError | None
) -> tuple[Page[Message] | None, ServicingError | None, list[Finding]]:
    """A smaller page, after one of `page_size` was refused; or the refusal again."""
    page = None
    for size in (size for size in SMALLER_PAGES if size < page_size):
        if not probe.may_be_refused:
            break
        page, refusal = probe.messages(place, limit=size)
        if not _is_refused_page(refusal):
            probe.asked = size
            words = f"The service refuses pages of {page_size} messages, but not of {size}."
            return page, refusal, [Finding("bad", words, {"page_size": size})]
    smallest = SMALLER_PAGES[-1]
    if probe.may_be_refused or smallest >= page_size:
        return page, refusal, []
    words = f"The service refuses pages of {page_size} messages, and {MAX_REFUSED_CALLS} calls were refused."
    return page, refusal, [Finding("bad", f"{words} Try {smallest}.", {"page_size": smallest})]


class _Both:
    """Two signatures of the same request, under their own header names."""

    def __init__(self, one: HmacAuth, other: HmacAuth) -> None:
        self._schemes = (one, other)

    def __call__(self, request: Any) -> Any:
        for scheme in self._schemes:
            scheme(request)
        return request


def _find_signature(probe: _Probe, place: str, page_size: int) -> dict[str, Any]:
    """The settings with which the service accepts the same secret; the probe uses them from then on.

    Two more calls are refused at most: the first sends both sets of header names, the second in another unit.
    """
    scheme = probe.transport.auth
    if not isinstance(scheme, HmacAuth) or abs(_seconds_fast(probe) or 0) > USABLE_CLOCK_SECONDS:
        return {}

    def is_accepted(*schemes: HmacAuth) -> bool:
        probe.use_auth(_Both(schemes[0], schemes[-1]))
        return not _is_credential_problem(probe.messages(place, limit=page_size)[1])

    unit: Literal["ms", "s"] = "s" if scheme.epoch_unit == "ms" else "ms"
    names = tuple(name.replace("-", "_") for name in scheme.header_names)
    renamed, converted = scheme.with_choices(auth_headers=names), scheme.with_choices(epoch_unit=unit)
    both = renamed.with_choices(epoch_unit=unit)
    settings: dict[str, Any] = {}
    found = scheme
    if is_accepted(scheme, renamed):
        found, settings = renamed, {"auth_headers": names}
    elif is_accepted(converted, both):
        found, settings = converted, {"epoch_unit": unit}
        if not is_accepted(converted):
            found, settings = both, settings | {"auth_headers": names}
    probe.use_auth(found)
    return settings


def _is_credential_problem(refusal: ServicingError | None) -> bool:
    return isinstance(refusal, Unauthenticated | Forbidden)


def _is_refused_page(refusal: ServicingError | None) -> bool:
    return isinstance(refusal, Rejected) and not isinstance(refusal, Forbidden | NotFound)


_OWN_SETTINGS: Final = {
    "hmac": "SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_AUTH_HEADERS and SERVICING_EPOCH_UNIT",
    "bearer": "SERVICING_TOKEN",
    "header": "SERVICING_TOKEN and SERVICING_AUTH_HEADERS",
    "basic": "SERVICING_CLIENT_ID and SERVICING_SECRET",
    "oauth2": "SERVICING_CLIENT_ID, SERVICING_SECRET, SERVICING_TOKEN_URL and SERVICING_SCOPE",
    "none": "",
}
_ASKED_FOR: Final = {
    "bearer": (
        ("bearer", "oauth2"),
        "a bearer token: SERVICING_AUTH=bearer with SERVICING_TOKEN, or oauth2 with SERVICING_TOKEN_URL",
    ),
    "basic": (("basic",), "a user and password: SERVICING_AUTH=basic"),
    "apikey": (
        ("header",),
        "an API key: SERVICING_AUTH=header with SERVICING_TOKEN and SERVICING_AUTH_HEADERS",
    ),
    "hmac": (("hmac",), "a signature: SERVICING_AUTH=hmac"),
}


def _credential_words(probe: _Probe, auth: str, refusal: ServicingError | None) -> str:
    words = f"The service rejects these credentials: {_sentence(refusal.message if refusal else '')}"
    asked = plain_name(probe.header("WWW-Authenticate").partition(" ")[0])
    fits, wanted = _ASKED_FOR.get(asked, ((auth,), ""))
    if auth not in fits:
        return f"{words} It asks for {wanted}."
    own = f" Check {_OWN_SETTINGS[auth]}." if _OWN_SETTINGS[auth] else ""
    others = ", ".join(name for name in _OWN_SETTINGS if name not in (auth, "none"))
    return (
        f"{words}{own} If the lender says that requests carry something else, set SERVICING_AUTH to {others}."
    )


def _address_words(probe: _Probe) -> str:
    """What to check if there is no message list."""
    if probe.status in (None, HTTPStatus.NOT_FOUND) or probe.status in range(300, 400):
        return "Check SERVICING_URL."
    return ""


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


def _check_page(page: Page[Message], asked: int) -> Iterator[Finding]:
    granted = page.pagination.limit
    if granted is not None and granted < asked:
        yield Finding("ok", f"A page has up to {granted:,} messages; a larger limit is lowered.")
    else:
        yield Finding("ok", f"A page can have {asked:,} messages.")
    if page.pagination.total is None:
        yield Finding("ok", "The message list says no total; it is read until nothing new comes.")


class _ParameterPlace(NamedTuple):
    """One place for the parameters of the message list, and what the service reads there."""

    name: str
    reads_limit: bool | None
    reads_dates: bool | None
    """None if there is no message that shows it."""
    problem: str

    @classmethod
    def examine(cls, probe: _Probe, name: str, first_page: Page[Message]) -> "_ParameterPlace":
        page, refusal = probe.messages(name, limit=1)
        filtered, second_refusal = probe.messages(name, end_date=LONG_AGO)
        problem = refusal or second_refusal
        if page is None or filtered is None:
            return cls(name, False, False, problem.message if problem else "")
        reads_limit = len(page) == 1 if len(first_page) > 1 else page.pagination.limit == 1 or None
        return cls(name, reads_limit, not filtered.data if first_page.data else None, "")


def _check_filters(
    probe: _Probe, preferred: str, first_page: Page[Message], page_size: int
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
        if None in (place.reads_limit, place.reads_dates):
            yield Finding(
                "ok", f"Whether filters are read in the {name} isn’t known until there are messages."
            )
            yield from _check_page(first_page, probe.asked)
            return
        yield Finding("bad" if settings else "ok", f"Message filters are read in the {name}.", settings)
        yield from _check_offset(probe, name)
        page: Page[Message] | None = first_page
        if settings and probe.may_be_refused:  # Where the limit wasn't read, no page was too large.
            probe.asked = page_size
            page, refusal = probe.messages(name, limit=page_size)
            if _is_refused_page(refusal):
                page, _, findings = _find_page_size(probe, name, page_size, refusal)
                yield from findings
        if page is not None:
            yield from _check_page(page, probe.asked)
        return
    partial_readers = [
        f"{place.name} ({'limit, no dates' if place.reads_limit else 'dates, no limit'})"
        for place in examined
        if place.reads_limit or place.reads_dates
    ]
    if partial_readers:
        yield Finding(
            "bad",
            f"No single place accepts all message filters: {', '.join(partial_readers)}. The client notices messages "
            "that a filter excludes (`filters_ignored`).",
        )
        place_with_limit = next((place.name for place in examined if place.reads_limit), None)
        if place_with_limit:
            yield from _check_offset(probe, place_with_limit)
        return
    problems = "; ".join(dict.fromkeys(place.problem for place in examined if place.problem))
    why = f" The service said: {_sentence(problems)}" if problems else ""
    yield Finding("bad", f"The service reads message filters in neither the query nor the body.{why}")


def _check_offset(probe: _Probe, place: str) -> Iterator[Finding]:
    resource = probe.resource(place)

    def page_at(offset: int) -> Page[Message]:
        return resource.list(limit=2, offset=offset)

    try:
        steps = islice(iterate_pages(page_at), 4)
        counts = next((step.cursor.counts for step in steps if step.cursor.counts), None)
        is_ignored = counts == "pages1" and page_at(2).data == page_at(0).data
    except ServicingError as problem:
        yield Finding("warn", f"What offset counts isn’t known: {_sentence(problem.message)}")
        return
    if is_ignored:
        yield Finding("bad", "Offset is ignored: every page is the first page.")
    elif counts is None:
        yield Finding(
            "ok", "What offset counts isn’t known until there are more messages; the client detects it."
        )
    else:
        words = {"rows": "messages", "pages0": "pages, from 0", "pages1": "pages, from 1"}[counts]
        yield Finding("ok", f"Offset counts {words}.", {"offset_counts": counts})


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
        report.reads.append(_not_tried(read, f"{MAX_REFUSED_CALLS} calls were refused already."))
        return
    ids = {name: known_ids[name] for name in read.ids}
    try:
        raw = probe.raw(read.operation, read.path, ids)
        records, envelope = _decode(read, raw, ids.get(read.own_id, ""), probe.transport)
    except ServicingError as problem:
        report.reads.append(
            ReadTried(name=read.name, operation=read.operation, problem=_sentence(problem.message))
        )
        grade: Grade = "warn" if isinstance(problem, NotFound) else "bad"
        advice = " Check its IDs." if isinstance(problem, NotFound) else ""
        yield Finding(grade, f"The {read.name} can’t be read: {_sentence(problem.message)}{advice}")
        return
    if envelope:
        setting = "list_envelope" if read.is_list else "envelope"
        yield Finding("bad", f"The {read.name} is wrapped in “{envelope}”.", {setting: envelope})
    report.reads.append(seen := _seen(read, raw, records))
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


def _seen(read: _Read, raw: Any, records: Sequence[Model]) -> ReadTried:
    unknown: dict[str, None] = {}
    unreadable: dict[str, None] = {}
    new_values: dict[str, None] = {}
    absent: set[str] | None = None
    for record in records:
        unknown |= dict.fromkeys(_shown(name) for name in record.extra)
        unreadable |= dict.fromkeys(f"{_shown(issue.path)} {issue.problem}" for issue in record.issues)
        missing = _field_names(read.model) - record.raw.keys()
        absent = missing if absent is None else absent & missing
        for seen in _fields(record.raw):
            known = _ENUMERATIONS.get(_INNER.sub("", seen.name))
            if known and seen.value and seen.value.upper() not in known:
                new_values[f"{seen.name}: {seen.value}"] = None
    return ReadTried(
        name=read.name,
        operation=read.operation,
        count=len(records) if read.is_list else None,
        fields=list(_fields(records[0].raw)) if records else (),
        unknown=list(unknown)[:MAX_NAMED],
        absent=sorted(absent or ()),
        unreadable=list(unreadable)[:MAX_NAMED],
        new_values=list(new_values)[:MAX_NAMED],
    )


def _record_findings(read: _Read, seen: ReadTried) -> Iterator[Finding]:
    if seen.unreadable:
        yield Finding("bad", f"The {read.name} has fields of another type: {'; '.join(seen.unreadable)}.")
    uncertain = [field.name for field in seen.fields if field.kind.startswith("time in an uncertain zone")]
    if uncertain:
        yield Finding("warn", f"The zone of {', '.join(uncertain)} in the {read.name} isn’t certain.")
    if seen.count == 0:
        yield Finding("warn", f"The list of {read.name} is empty, so its records couldn’t be compared.")
    elif not seen.unreadable:
        yield Finding("ok", f"The {read.name} can be read.")


def _field_names(model: type[Model]) -> set[str]:
    return set(model.__struct_encode_fields__)


def _fields(raw: Mapping[str, Any], prefix: str = "") -> Iterator[FieldSeen]:
    """Every field of an object, with the first element of each list and the fields of inner objects."""
    for name, value in raw.items():
        path = f"{prefix}{_shown(name)}"
        if isinstance(value, dict):
            yield FieldSeen(path, f"object of {len(value)} fields")
            yield from _fields(value, f"{path}.")
        elif isinstance(value, list):
            yield FieldSeen(path, f"list of {len(value)}")
            if value and isinstance(value[0], dict):
                yield from _fields(value[0], f"{path}[0].")
        elif _INNER.sub("", path) in _ENUMERATIONS and isinstance(value, str):
            yield FieldSeen(path, "text", value[:_SHOWN_NAME])
        else:
            yield FieldSeen(path, _kind(value))


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
        zone = re.sub(r"^[\d:.T -]+(?=[A-Za-z+-]|$)", "", text).strip() or "none"
        return (
            f"time, zone {zone[:30]}" if RemoteTime(text).at else f"time in an uncertain zone ({zone[:30]})"
        )
    if re.fullmatch(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", text):
        return "ID"
    return f"text, {len(text)} character{'' if len(text) == 1 else 's'}"


def _number_kind(text: str) -> str:
    decimals = len(text.partition(".")[2])
    return f"number, {decimals} decimal{'' if decimals == 1 else 's'}"


def _shown(name: str) -> str:
    return name[:_SHOWN_NAME]


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
    if report.test_value:
        yield from ("", f"Encrypted test value: {report.test_value}")
    for read in report.reads:
        yield from ("", f"{read.name} ({read.operation})")
        yield from (f"  {line}" for line in _read_lines(read))
    yield from ("", report.verdict)


def _read_lines(read: ReadTried) -> Iterable[str]:
    if read.problem:
        yield read.problem
        return
    if read.count is not None:
        yield f"{read.count} record{'' if read.count == 1 else 's'}"
    width = max((len(seen.name) for seen in read.fields), default=0)
    for seen in read.fields:
        yield f"{seen.name:{width}}  {seen.value or seen.kind}"
    for title, names in read.remarks:
        yield f"{title}: {', '.join(names)}"


def _setting_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _sentence(words: str) -> str:
    return words if words.endswith((".", "!", "?")) else f"{words}."
