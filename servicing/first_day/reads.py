"""The reads, and the members in which their records are wrapped."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from servicing.applications import Application
from servicing.codec import Budget, Model
from servicing.credit_lines import Statement
from servicing.errors import NotFound, ProtocolError, ServicingError
from servicing.first_day.fields import (
    UNCERTAIN_TIME,
    describe_fields,
    known_values,
    quoted,
    seen_fields,
    shown_name,
)
from servicing.first_day.probe import RUN_AGAIN, Probe, is_credential_problem
from servicing.first_day.report import Finding, FirstDay, Grade, ReadTried, differs
from servicing.loans import Loan
from servicing.messages import PATH as MESSAGES_PATH
from servicing.messages import Message
from servicing.repayments import Repayment
from servicing.resource import read_record, read_records
from servicing.transport import Transport


class Read(NamedTuple):
    """One of the reads; `ids` are the arguments in its path."""

    name: str
    operation: str
    path: str
    model: type[Model]
    is_list: bool
    ids: tuple[str, ...] = ()
    own_id: str = ""
    """The argument with the uuid of the record, if it has one."""


MAX_NAMED: Final = 20
"""How many fields or values of one answer are named."""
MESSAGES: Final = Read("messages", "messages.list", MESSAGES_PATH, Message, True)
_LOAN, _LINE = ("borrower_id", "loan_id"), ("borrower_id", "line_id")
READS: Final = (
    Read(
        "application",
        "applications.get_for_line",
        "/v1/users/{borrower_id}/loc/applications/{application_id}",
        Application,
        False,
        ("borrower_id", "application_id"),
        "application_id",
    ),
    Read("loan", "loans.get", "/v1/users/{borrower_id}/loan/{loan_id}", Loan, False, _LOAN, "loan_id"),
    Read(
        "loan repayments",
        "repayments.of_loan",
        "/v1/users/{borrower_id}/loans/{loan_id}/payments",
        Repayment,
        True,
        _LOAN,
    ),
    Read(
        "statement",
        "credit_lines.statement",
        "/v1/users/{borrower_id}/loc/{line_id}/statements",
        Statement,
        False,
        _LINE,
    ),
    Read(
        "line repayments",
        "repayments.of_line",
        "/v1/users/{borrower_id}/loc/{line_id}/payments",
        Repayment,
        True,
        _LINE,
    ),
)


def not_tried(read: Read, why: str) -> ReadTried:
    return ReadTried(name=read.name, operation=read.operation, problem=f"Not tried. {why}")


def describe_answer(read: Read, records: Sequence[Model], envelope: str = "") -> ReadTried:
    """The read with what its records show and how they differ from the interface."""
    unknown: dict[str, None] = {}
    unreadable: dict[str, None] = {}
    new_values: dict[str, None] = {}
    absent: set[str] | None = None
    for record in records:
        unknown |= dict.fromkeys(_unknown_fields(record))
        unreadable |= dict.fromkeys(f"{shown_name(issue.path)} {issue.problem}" for issue in record.issues)
        missing = set(record.__struct_encode_fields__) - record.raw.keys()
        absent = missing if absent is None else absent & missing
        for seen in seen_fields(record.raw):
            known = known_values(seen.name)
            if known and seen.value and seen.value.upper() not in known:
                new_values[f"{seen.name}: {seen.value}"] = None
    return ReadTried(
        name=read.name,
        operation=read.operation,
        count=len(records) if read.is_list else None,
        envelope=envelope,
        fields=describe_fields([record.raw for record in records]),
        unknown=list(unknown)[:MAX_NAMED],
        absent=sorted(absent or ()),
        unreadable=list(unreadable)[:MAX_NAMED],
        new_values=list(new_values)[:MAX_NAMED],
    )


def _unknown_fields(model: Model, prefix: str = "") -> Iterator[str]:
    """The fields that the interface doesn't describe, in inner records too."""
    yield from (f"{prefix}{shown_name(name)}" for name in model.extra)
    for name in model.__struct_fields__:
        value = getattr(model, name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Model):
                yield from _unknown_fields(inner, f"{prefix}{name}.")


def try_read(probe: Probe, report: FirstDay, read: Read, known_ids: Mapping[str, str]) -> Iterator[Finding]:
    """Make one read, and add it to the report."""
    missing = [name.removesuffix("_id") for name in read.ids if not known_ids.get(name)]
    if missing:
        report.reads.append(not_tried(read, f"No {' and no '.join(missing)} was given."))
        return
    if not probe.may_be_refused:
        report.reads.append(not_tried(read, RUN_AGAIN))
        return
    ids = {name: known_ids[name] for name in read.ids}
    raw = None
    try:
        raw = probe.raw(read.operation, read.path, ids)
        records, envelope = _decode(read, raw, ids.get(read.own_id, ""), probe.transport)
    except ServicingError as problem:
        words = quoted(problem.message)
        fields = describe_fields([raw] if isinstance(raw, dict) else [])
        report.reads.append(ReadTried(name=read.name, operation=read.operation, problem=words, fields=fields))
        grade: Grade = "bad"
        if isinstance(problem, NotFound):
            grade, words = "warn", f"{words} Check its IDs."
        elif is_credential_problem(problem):
            words = f"{words} Ask the lender to let this client read it."
        yield Finding(grade, f"The {read.name} can’t be read: {words}")
        return
    report.reads.append(seen := describe_answer(read, records, envelope))
    yield from record_findings(read, seen)


def _decode(read: Read, raw: Any, uuid: str, transport: Transport) -> tuple[list[Any], str]:
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


def _records(read: Read, raw: Any, uuid: str, envelope: str) -> list[Any]:
    if read.is_list:
        return read_records(read.model, raw, Budget(), envelope)
    return [read_record(read.model, uuid, envelope, raw, Budget())]


def check_envelopes(reads: Sequence[ReadTried]) -> Iterator[Finding]:
    """The members in which objects and lists are wrapped, if no setting names them."""
    list_names = {read.name for read in READS if read.is_list}
    for setting, title in (("envelope", "Objects are"), ("list_envelope", "Lists of repayments are")):
        wrapped = [
            read
            for read in reads
            if read.envelope and (read.name in list_names) == (setting == "list_envelope")
        ]
        names = list(dict.fromkeys(shown_name(read.envelope) for read in wrapped))
        if len(names) == 1:
            yield differs(f"{title} wrapped in “{names[0]}”", {setting: wrapped[0].envelope})
        elif names:
            members = ", ".join(f"the {read.name} in “{shown_name(read.envelope)}”" for read in wrapped)
            yield Finding(
                "bad",
                f"{title} wrapped in different members: {members}. SERVICING_{setting.upper()} can name one; a session "
                "of your own (SERVICING_SESSION) can open the others.",
            )


def record_findings(read: Read, seen: ReadTried) -> Iterator[Finding]:
    """Whether the records of an answer can be read."""
    if seen.unreadable:
        has = "have" if read.is_list else "has"
        fields = "; ".join(seen.unreadable)
        yield Finding("bad", f"The {read.name} {has} fields of another type: {fields}.")
    uncertain = [field.name for field in seen.fields if UNCERTAIN_TIME in field.kind]
    if uncertain:
        words = f"The zone of {', '.join(uncertain)} in the {read.name} isn’t certain."
        yield Finding("warn", f"{words} Such times are shown as they were sent.")
    if seen.count == 0:
        yield Finding("warn", f"The list of {read.name} is empty, so its records couldn’t be compared.")
    elif not seen.unreadable:
        yield Finding("ok", f"The {read.name} can be read.")
