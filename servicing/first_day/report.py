"""The report of the first day: what was found, and its text. Hides what its text looks like."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

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
    """One of the reads. `problem` says why nothing was decoded; empty if an answer was.

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
        return setting_lines(self.settings)

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
        """Whether nothing is wrong; something may not have been tried."""
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


def differs(words: str, settings: Mapping[str, Any], grade: Grade = "bad") -> Finding:
    """A finding whose words end with the settings to try."""
    return Finding(grade, f"{words}: set {' and '.join(setting_lines(settings))}.", settings)


def setting_lines(settings: Mapping[str, Any]) -> list[str]:
    """Arguments of `Client` as settings of the portal."""
    return [f"SERVICING_{name.upper()}={_setting_text(value)}" for name, value in settings.items()]


def _setting_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(value) if isinstance(value, tuple) else str(value)


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
