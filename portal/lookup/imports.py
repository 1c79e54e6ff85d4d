"""Reads a lender's own records: ids as CSV, user objects as JSON Lines, with a report line by line."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import IO, TextIO

from django.db import transaction

from portal.registry import memory
from portal.registry.memory import Known
from portal.registry.models import NAMED_KINDS, Kind, Record, Source
from portal.registry.planning import count_anew, is_much
from portal.registry.query import is_uuid, uuid_in
from portal.registry.rows import stored_of
from portal.ui.guard import number_problem
from servicing import Borrower, ServicingError, codec
from servicing.masking import masked_text

COLUMNS = ["kind", "uuid", "borrower_uuid", "label"]
KINDS = [kind.value for kind in NAMED_KINDS]
MAX_LINE = 1_000_000
STRANGERS_NAMED = 10
NO_OBJECT = (
    "not a user object: each line is one, between braces; identifiers as CSV belong into the other field"
)
# What reading puts in the place of bytes that are not UTF-8.
NOT_UTF_8 = "\ufffd"

# What a line gives: the records in it, or why it is refused.
Parsed = list[Known] | str


@dataclass
class Report:
    """What came of a file: how many lines were taken, and every refused line with its reason."""

    taken: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    strangers: Counter[str] = field(default_factory=Counter)
    """Borrowers that are not known here, each with how many of the taken lines name it."""

    @property
    def remark(self) -> str:
        """What is to be said of the lines that were taken, if anything."""
        if not self.strangers:
            return ""
        named, number = [*self.strangers][:STRANGERS_NAMED], len(self.strangers)
        more = f" and {number - len(named):,} more" if number > len(named) else ""
        lines = "1 line names" if self.strangers.total() == 1 else f"{self.strangers.total():,} lines name"
        borrowers = "a borrower that is" if number == 1 else f"{number:,} borrowers that are"
        return f"{lines} {borrowers} not known here: {', '.join(named)}{more}."

    @property
    def is_empty(self) -> bool:
        """Whether the file held nothing to take."""
        return not self.taken and not self.refused


def lines_of(file: IO[bytes]) -> TextIO:
    """The lines of a file as UTF-8, read over the mark that spreadsheets put before it."""
    return io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")


def import_ids(lines: Iterable[str], *, by: str, at: datetime | None = None) -> Report:
    """Take a CSV of known ids: ``kind,uuid,borrower_uuid,label``."""
    rest = iter(lines)
    head = next(rest, "")
    if _values(head.lower()) != COLUMNS:
        return Report(refused=[(1, f"the first line must be {','.join(COLUMNS)}{_hint(head)}")])
    return _take(_parsed_rows(rest), by=by, at=at)


def _hint(head: str) -> str:
    """What a spreadsheet may have done to the file, as far as its first line shows it."""
    if "\0" in head:
        return "; this file is in UTF-16: save it again as “CSV UTF-8”"
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if head.count(mark) == len(COLUMNS) - 1:
            return f"; here {name} stand between the values: save it again with commas"
    return ""


def import_profiles(lines: Iterable[str], *, by: str, at: datetime | None = None) -> Report:
    """Take user objects (interface 2.2), one JSON object a line, as copies marked *from file*."""
    parsed = ((number, _parsed_profile(line)) for number, line in enumerate(lines, 1) if line.strip())
    return _take(parsed, by=by, at=at)


def uuid_problem(text: str) -> str | None:
    """Why a text cannot be an identifier of the service, if it cannot."""
    if not text:
        return "is missing"
    if not memory.IDENTIFIER.fullmatch(text):
        return "may hold letters, digits, dashes and underscores only, at most 64"
    return None


def _take(parsed: Iterable[tuple[int, Parsed]], *, by: str, at: datetime | None) -> Report:
    report = Report()
    kinds: Counter[Kind] = Counter()
    batch: list[tuple[int, list[Known]]] = []
    size = 0  # In records: a profile brings several, and whoever writes waits for a whole batch.
    for number, found in parsed:
        if isinstance(found, str):
            report.refused.append((number, masked_text(found)))
            continue
        batch.append((number, found))
        size += len(found)
        kinds.update(item.kind for item in found)
        if size >= memory.BATCH:
            _keep(batch, report, by=by, at=at)
            batch, size = [], 0
    _keep(batch, report, by=by, at=at)
    if any(is_much(number, Record.objects.filter(kind=kind)) for kind, number in kinds.items()):
        count_anew()
    report.refused.sort()
    return report


def _keep(batch: list[tuple[int, list[Known]]], report: Report, *, by: str, at: datetime | None) -> None:
    accepted: list[Known] = []
    with transaction.atomic():
        stored = memory.held(item for _, items in batch for item in items)
        owners = {key: record.borrower_uuid for key, record in stored.items() if record.borrower_uuid}
        for number, items in batch:
            theirs = {
                (item.kind.value, item.uuid): item.borrower_uuid for item in items if item.borrower_uuid
            }
            if clash := [key for key, owner in theirs.items() if owners.get(key, owner) != owner]:
                report.refused.append((number, f"{clash[0][1]} is already known under another borrower"))
            else:
                owners |= theirs
                accepted += items
                report.taken += 1
        memory.remember(accepted, source=Source.FILE, at=at, by=by, stored=stored)
    _look_for_owners(accepted, report.strangers)


def _look_for_owners(items: list[Known], strangers: Counter[str]) -> None:
    """Count the lines whose borrower is not known so far. The file may still tell it: its order is free."""
    told = {item.uuid for item in items if item.kind == Kind.BORROWER}
    named = Counter(item.borrower_uuid for item in items if item.borrower_uuid not in told)
    for uuid in strangers.keys() & told:
        del strangers[uuid]
    asked = named.keys() - strangers.keys()
    known = set(stored_of((Kind.BORROWER, uuid) for uuid in asked).values_list("uuid", flat=True))
    strangers.update({uuid: number for uuid, number in named.items() if uuid not in known})


def _parsed_rows(lines: Iterable[str]) -> Iterator[tuple[int, Parsed]]:
    for number, line in enumerate(lines, 2):
        values = _values(line)
        if isinstance(values, str):
            yield number, values
        elif values:
            yield number, _parsed_id(values)


def _values(line: str) -> list[str] | str:
    """The values of one line of CSV, or why it has none. An open quotation mark would hide the lines behind it.

    Spreadsheets leave columns, and whole rows, of nothing but commas.
    """
    try:
        values = next(csv.reader([line], strict=True), [])
    except csv.Error as error:
        why = str(error).replace("unexpected end of data", "a quotation mark is left open")
        return f"not readable as CSV: {why}"
    while values and not values[-1].strip():
        values.pop()
    return values


def _parsed_id(values: list[str]) -> Parsed:
    if len(values) > len(COLUMNS):
        return "more than four values; a name that holds a comma needs quotes around it"
    kind, uuid, owner, label = (value.strip() for value, _ in zip_longest(values, COLUMNS, fillvalue=""))
    kind, uuid, owner = kind.lower(), _usual(uuid), _usual(owner)
    if kind not in KINDS:
        return f"kind {kind[:40]!r} is not one of {', '.join(KINDS)}"
    if problem := uuid_problem(uuid):
        return f"uuid {problem}"
    if kind == Kind.BORROWER:
        if owner not in ("", uuid):
            return "borrower_uuid of a borrower is its own uuid, or empty"
        owner = uuid
    if problem := uuid_problem(owner):
        return f"borrower_uuid {problem}"
    if NOT_UTF_8 in label:
        return "label holds a character that is not UTF-8: save the file again as “CSV UTF-8”"
    if "\0" in label:
        return "label holds a NUL character"
    if len(label) > 300:
        return "label is longer than 300 characters"
    if number_problem(label):
        return "label holds nine digits that may be an SSN or EIN"
    return [Known(kind=Kind(kind), uuid=uuid, borrower_uuid=owner, label=label)]


def _usual(text: str) -> str:
    """An identifier as the service writes it, and as it is looked for: other programs write capitals, or braces."""
    if is_uuid(text):
        return text
    found = uuid_in(text)
    return found if found and text.strip("{}").replace("-", "").lower() == found.replace("-", "") else text


def _parsed_profile(line: str) -> Parsed:
    if len(line) > MAX_LINE:
        return "the line is longer than a million characters"
    if NOT_UTF_8 in line:
        return "it holds a character that is not UTF-8"
    try:
        borrower = codec.decode(Borrower, line)
    except ServicingError as error:
        return f"not a user object: {error.message}" if line.lstrip().startswith("{") else NO_OBJECT
    items = memory.known(borrower)
    for item in items:
        if problem := uuid_problem(item.uuid):
            return f"uuid {problem}"
        if item.uuid != _usual(item.uuid):
            return f"uuid {item.uuid} is not written as the service does: small letters, with dashes"
    return items
