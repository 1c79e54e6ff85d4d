"""Imports a lender's own records: IDs as CSV, user objects as JSON Lines, with a report for each line."""

import csv
import io
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import IO, Any, TextIO

from django.db import transaction

from portal.records import store
from portal.records.models import NAMED_KINDS, Kind, Source
from portal.records.query import is_uuid, uuid_in
from portal.records.rows import records_of
from portal.records.search import begins_with
from portal.records.store import Observation
from portal.ui.guard import number_problem
from servicing import Borrower, KeyPerson, ServicingError, codec
from servicing.masking import HIDDEN, masked_text, tax_numbers
from servicing.resource import has_fields

COLUMNS = ["kind", "uuid", "borrower_uuid", "label"]
KINDS = [kind.value for kind in NAMED_KINDS]
MAX_LINE_CHARACTERS = 1_000_000
MAX_ROW_LINES, MAX_ROW_CHARACTERS = 20, 10_000
"""How far a quoted line break may take one row of a CSV file."""
NOT_CLOSED = "not readable as CSV: a quotation mark isn’t closed"
MAX_BORROWERS_NAMED = 10
TAX_NUMBER = "contains nine digits that may be an SSN or EIN"
NOT_AN_OBJECT = "not a user object: each line needs one in braces. Upload CSV IDs in the other field"
UUID_CHARACTERS = 36
SHORT_ID = re.compile("[0-9a-f]{8}(-[0-9a-f-]*)?")
# Decoding replaces bytes that are not UTF-8 with this.
REPLACEMENT_CHARACTER = "\ufffd"

# The records in a line, or the reason for rejecting it.
Parsed = list[Observation] | str


@dataclass
class ImportReport:
    """The result of an import: the imported records, and every rejected line with its reason."""

    keys: set[tuple[str, str]] = field(default_factory=set)
    """Kind and ID of each line's record."""
    refused: list[tuple[int, str]] = field(default_factory=list)
    unknown_borrowers: Counter[str] = field(default_factory=Counter)
    """Borrowers that are not on file, with the number of imported lines that name them."""

    @property
    def taken(self) -> int:
        """The number of imported records, however many lines are about each."""
        return len(self.keys)

    @property
    def remark(self) -> str:
        """A sentence about the imported lines; empty if there is nothing to say."""
        if not self.unknown_borrowers:
            return ""
        named, number = [*self.unknown_borrowers][:MAX_BORROWERS_NAMED], len(self.unknown_borrowers)
        total = self.unknown_borrowers.total()
        more = f" and {number - len(named):,} more" if number > len(named) else ""
        lines = "1 line names" if total == 1 else f"{total:,} lines name"
        borrowers = "a borrower that is" if number == 1 else f"{number:,} borrowers that are"
        shown = ", ".join(uuid[:8] if is_uuid(uuid) else uuid for uuid in named)
        return f"{lines} {borrowers} not on file: {shown}{more}."


def open_lines(file: IO[bytes]) -> TextIO:
    """Read the lines of a file as UTF-8, without the byte order mark of spreadsheets."""
    return io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")


def import_ids(lines: Iterable[str], *, by: str, at: datetime | None = None) -> ImportReport:
    """Import a CSV of known IDs: ``kind,uuid,borrower_uuid,label``."""
    rest = iter(lines)
    if problem := header_problem(next(rest, "")):
        return ImportReport(refused=[(1, problem)])
    return _import_records(_parse_rows(rest), by=by, at=at)


def header_problem(head: str) -> str:
    """Why a file with this first line isn't a CSV of IDs; empty if it is."""
    if _csv_values(head.lower()) == COLUMNS:
        return ""
    return f"the first line must be {','.join(COLUMNS)}{_hint(head)}"


def _hint(head: str) -> str:
    """Guess from the header line what a spreadsheet did to the file."""
    letters = head.replace("\0", "")
    if letters != head and COLUMNS[0] in letters.lower():
        return "; this file is in UTF-16: save the file again as “CSV UTF-8”"
    if letters != head or REPLACEMENT_CHARACTER in head:
        return "; this file isn’t CSV: export it again as “CSV UTF-8”"
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if head.count(mark) == len(COLUMNS) - 1:
            return f"; this file uses {name} instead: save the file again with commas"
    return ""


def import_profiles(lines: Iterable[str], *, by: str, at: datetime | None = None) -> ImportReport:
    """Import user objects (interface 2.2), one JSON object a line, as copies marked *from file*."""
    parsed = ((number, _parse_profile(line)) for number, line in enumerate(lines, 1) if line.strip())
    return _import_records(parsed, by=by, at=at)


def uuid_problem(text: str) -> str | None:
    """Why a text can't be an ID of the service; ``None`` if it can."""
    if not text:
        return "is missing"
    if is_uuid(text):  # Nine digits are part of many by chance.
        return None
    if not store.IDENTIFIER.fullmatch(text):
        return "can have only letters, digits, dashes and underscores, up to 64"
    return TAX_NUMBER if any(tax_numbers(text)) else None


def record_with_short_id(kind: str, text: str) -> Any:
    """The record on file whose UUID only begins with this text, as pages show it. Other IDs may have any form."""
    start = text.lower()
    if len(start) >= UUID_CHARACTERS or not SHORT_ID.fullmatch(start):
        return None
    records = records_of(kind).filter(begins_with("uuid", start))
    found = records.order_by("uuid").first()  # First a record that has the text as its ID.
    return found if found and is_uuid(found.uuid) else None


def _import_records(parsed: Iterable[tuple[int, Parsed]], *, by: str, at: datetime | None) -> ImportReport:
    report = ImportReport()
    batch: list[tuple[int, list[Observation]]] = []
    size = 0  # Count records, of which a profile has several, because other writers wait for a whole batch.
    for number, found in parsed:
        if isinstance(found, str):
            report.refused.append((number, masked_text(found)))
            continue
        batch.append((number, found))
        size += len(found)
        if size >= store.BATCH_SIZE:
            _save_batch(batch, report, by=by, at=at)
            batch, size = [], 0
    _save_batch(batch, report, by=by, at=at)
    report.refused.sort()
    return report


def _save_batch(
    batch: list[tuple[int, list[Observation]]], report: ImportReport, *, by: str, at: datetime | None
) -> None:
    accepted: list[Observation] = []
    with transaction.atomic():
        stored = store.lock_existing(item for _, items in batch for item in items)
        owners = {key: record.borrower_uuid for key, record in stored.items() if record.borrower_uuid}
        for number, items in batch:
            line_owners = {
                (item.kind.value, item.uuid): item.borrower_uuid for item in items if item.borrower_uuid
            }
            if clash := [key for key, owner in line_owners.items() if owners.get(key, owner) != owner]:
                report.refused.append((number, f"{clash[0][1]} is already on file under another borrower"))
            elif short := next(filter(None, map(_short_id_problem, items)), ""):
                report.refused.append((number, short))
            else:
                owners |= line_owners
                accepted += items
                report.keys.add((items[0].kind.value, items[0].uuid))
        store.save(accepted, source=Source.FILE, at=at, by=by, stored=stored)
    _count_unknown_borrowers(accepted, report.unknown_borrowers)


def _short_id_problem(item: Observation) -> str:
    for kind, uuid in dict.fromkeys([(item.kind, item.uuid), (Kind.BORROWER, item.borrower_uuid)]):
        if found := record_with_short_id(kind, uuid):
            return f"{uuid} is the short ID of a {kind.label.lower()} on file: write {found.uuid}"
    return ""


def _count_unknown_borrowers(items: list[Observation], unknown: Counter[str]) -> None:
    """Count the lines whose borrower is not on file. Lines may be in any order, so it may still follow."""
    imported = {item.uuid for item in items if item.kind == Kind.BORROWER}
    named = Counter(item.borrower_uuid for item in items if item.borrower_uuid not in imported)
    for uuid in unknown.keys() & imported:
        del unknown[uuid]
    new = named.keys() - unknown.keys()
    known = set(records_of(Kind.BORROWER).filter(uuid__in=new).values_list("uuid", flat=True))
    unknown.update({uuid: number for uuid, number in named.items() if uuid not in known})


def _parse_rows(lines: Iterable[str]) -> Iterator[tuple[int, Parsed]]:
    numbered = enumerate(lines, 2)
    waiting: deque[tuple[int, str]] = deque()
    while first := waiting.popleft() if waiting else next(numbered, None):
        number, text = first
        values, more = _csv_values(text), list[tuple[int, str]]()
        while values == NOT_CLOSED and len(more) < MAX_ROW_LINES and len(text) < MAX_ROW_CHARACTERS:
            if not (following := waiting.popleft() if waiting else next(numbered, None)):
                break
            more.append(following)
            text += following[1]
            values = _csv_values(text)
        if isinstance(values, str):
            waiting.extendleft(reversed(more))  # An open quotation mark must not hide the lines after it.
            yield number, values
        elif values:
            yield number, _parse_id(values)


def _csv_values(line: str) -> list[str] | str:
    """Read the values of one row, or why there are none.

    Spreadsheets leave empty columns and rows of nothing but commas.
    """
    try:
        values = next(csv.reader(line.splitlines(keepends=True), strict=True), [])
    except csv.Error as error:
        return NOT_CLOSED if "unexpected end of data" in str(error) else f"not readable as CSV: {error}"
    while values and not values[-1].strip():
        values.pop()
    return values


def _parse_id(values: list[str]) -> Parsed:
    if len(values) > len(COLUMNS):
        return "more than four values; put quotes around a name that contains a comma"
    kind, uuid, owner, label = (
        " ".join(value.split()) for value, _ in zip_longest(values, COLUMNS, fillvalue="")
    )
    kind, uuid, owner = kind.lower(), _canonical_id(uuid), _canonical_id(owner)
    if kind not in KINDS:
        return f"kind {kind[:40]!r} is not one of {', '.join(KINDS)}"
    if problem := uuid_problem(uuid):
        return f"uuid {problem}"
    if kind == Kind.BORROWER:
        if owner not in ("", uuid):
            return "borrower_uuid of a borrower must be its own uuid or empty"
        owner = uuid
    if problem := uuid_problem(owner):
        return f"borrower_uuid {problem}"
    if REPLACEMENT_CHARACTER in label:
        return "label contains a character that isn’t UTF-8: save the file again as “CSV UTF-8”"
    if "\0" in label:
        return "label contains a NUL character"
    if len(label) > 300:
        return "label is longer than 300 characters"
    if label and number_problem(label):
        return f"label {TAX_NUMBER}"
    return [Observation(kind=Kind(kind), uuid=uuid, borrower_uuid=owner, label=label)]


def _canonical_id(text: str) -> str:
    """The ID in the service's form; other programs use capitals or braces."""
    if is_uuid(text):
        return text
    found = uuid_in(text)
    return found if found and text.strip("{}").replace("-", "").lower() == found.replace("-", "") else text


def _parse_profile(line: str) -> Parsed:
    if len(line) > MAX_LINE_CHARACTERS:
        return "the line is longer than a million characters"
    if REPLACEMENT_CHARACTER in line:
        return "the line contains a character that isn’t UTF-8"
    try:
        borrower = codec.decode(Borrower, line)
    except ServicingError as error:
        return f"not a user object: {error.message}" if line.lstrip().startswith("{") else NOT_AN_OBJECT
    if not has_fields(borrower):
        return "not a user object: it has no field of one"
    people: list[Borrower | KeyPerson] = [borrower, *borrower.key_people]
    for person in people:
        name = " ".join(filter(None, (person.first_name, person.middle_name, person.last_name)))
        if HIDDEN in name or number_problem(name):
            return f"name {TAX_NUMBER}"
    items = store.observe(borrower)
    for item in items:
        if problem := uuid_problem(item.uuid):
            return f"uuid {problem}"
        if item.uuid != _canonical_id(item.uuid):
            return f"uuid {item.uuid} must be lower case with dashes, as the service writes it"
    return items
