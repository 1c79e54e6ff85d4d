"""What somebody wants printed: for whose eyes, which parts, on which paper. All of it stands in the query string."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from django.http import QueryDict


class Mode(StrEnum):
    """For whose eyes a document is."""

    INTERNAL = "internal"
    BORROWER = "borrower"


class Paper(StrEnum):
    """The two sizes."""

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
# The names under which the choices stand in a query string.
CHOICES: Final = ("mode", "paper", "data", "section", "schedules", "statements", "chosen")
INTERNAL_ONLY: Final = frozenset({"internal"})


@dataclass(frozen=True)
class Options:
    """The choices of one document; whatever is not understood is as if it had not been said."""

    mode: Mode = Mode.INTERNAL
    paper: Paper = Paper.LETTER
    sections: frozenset[str] = frozenset(SECTIONS)
    has_schedules: bool = False
    """Whether loans come with their whole schedule, not only with the next installments."""
    has_statements: bool = True
    """Whether lines come with the days of their statements."""
    is_from_copies: bool = False
    """Whether the service is left alone."""

    @classmethod
    def of(cls, query: QueryDict, *, mode: Mode = Mode.INTERNAL) -> Self:
        """What the query string says. ``chosen`` marks that boxes were shown: one without a tick is then a no."""
        is_chosen = "chosen" in query
        said = query.get("mode", "")
        mode = Mode(said) if said in MODES else mode
        wanted = frozenset(query.getlist("section")) if is_chosen else frozenset(SECTIONS)
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

    def told(self) -> dict[str, object]:
        """The choices as the audit keeps them."""
        return {
            "mode": self.mode.value,
            "paper": self.paper.value,
            "sections": sorted(self.sections),
            "schedules": self.has_schedules,
            "statements": self.has_statements,
        }
