"""What a document shows: for whom, which sections, on which paper. All choices are in the query string."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from django.http import QueryDict


class Mode(StrEnum):
    """Who reads a document."""

    INTERNAL = "internal"
    BORROWER = "borrower"


class Paper(StrEnum):
    """Paper sizes."""

    LETTER = "letter"
    A4 = "a4"


MODES: Final[Mapping[str, str]] = {Mode.INTERNAL: "Internal", Mode.BORROWER: "Borrower-safe"}
PAPERS: Final[Mapping[str, str]] = {Paper.LETTER: "Letter", Paper.A4: "A4"}
SECTIONS: Final[Mapping[str, str]] = {
    "people": "Key people",
    "position": "Position",
    "loans": "Loans",
    "lines": "Lines of credit",
    "repayments": "Last repayments",
    "application": "Latest application",
    "internal": "Notes and checks",
}
# Names of the choices in a query string.
CHOICES: Final = ("mode", "paper", "data", "section", "schedules", "statements", "chosen")
INTERNAL_ONLY: Final = frozenset({"internal"})
# What a borrower gets unless more is chosen: one page for a few accounts.
BORROWER_DEFAULT: Final = frozenset({"position", "repayments"})


@dataclass(frozen=True)
class Options:
    """The choices of one document; a value that is not understood is ignored."""

    mode: Mode = Mode.INTERNAL
    paper: Paper = Paper.LETTER
    sections: frozenset[str] = frozenset(SECTIONS)
    has_schedules: bool = False
    """Whether loans show their whole schedule instead of the next installments."""
    has_statements: bool = True
    """Whether lines show the days of their statements."""
    is_from_copies: bool = False
    """Whether the saved copies are used without asking the service."""

    @classmethod
    def of(cls, query: QueryDict, *, mode: Mode = Mode.INTERNAL) -> Self:
        """Read a query string. ``chosen`` says that checkboxes were shown, so that a missing one means no.

        It names the mode that they were shown for: another mode begins with its own.
        """
        named = query.get("mode", "")
        mode = Mode(named) if named in MODES else mode
        is_chosen = query.get("chosen") in ("1", mode)
        default = frozenset(SECTIONS) if mode == Mode.INTERNAL else BORROWER_DEFAULT
        wanted = frozenset(query.getlist("section")) if is_chosen else default
        return cls(
            mode=mode,
            paper=Paper.A4 if query.get("paper") == Paper.A4 else Paper.LETTER,
            sections=(wanted & frozenset(SECTIONS))
            - (INTERNAL_ONLY if mode == Mode.BORROWER else frozenset()),
            has_schedules="schedules" in query,
            has_statements="statements" in query or not is_chosen,
            is_from_copies=query.get("data") == "copies",
        )

    @property
    def is_internal(self) -> bool:
        return self.mode == Mode.INTERNAL

    def as_detail(self) -> dict[str, object]:
        """The choices as the audit trail stores them."""
        return {
            "mode": self.mode.value,
            "paper": self.paper.value,
            "sections": sorted(self.sections),
            "schedules": self.has_schedules,
            "statements": self.has_statements,
        }
