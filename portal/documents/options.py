"""A document's options, all in the query string: readers, sections, paper."""

from dataclasses import dataclass
from typing import Final, Self

from django.db.models import TextChoices
from django.http import QueryDict


class Mode(TextChoices):
    INTERNAL = "internal", "Internal"
    BORROWER = "borrower", "Borrower copy"


class Paper(TextChoices):
    LETTER = "letter", "Letter"
    A4 = "a4", "A4"


SECTIONS: Final = {
    "people": "Key people",
    "position": "Position",
    "loans": "Loans",
    "lines": "Lines of credit",
    "repayments": "Last repayments",
    "application": "Latest application",
    "internal": "Notes and checks",
}
# The form's choices, and the names of its fields in a query string.
CHOICES: Final = {"modes": dict(Mode.choices), "papers": dict(Paper.choices), "sections": SECTIONS}
FIELDS: Final = ("mode", "paper", "data", "section", "schedules", "statements", "chosen")
# The default sections for borrowers, which fit a few accounts on one page.
BORROWER_DEFAULT: Final = frozenset({"position", "repayments"})


@dataclass(frozen=True)
class Options:
    """The options of one document; invalid values are ignored."""

    mode: Mode = Mode.INTERNAL
    paper: Paper = Paper.LETTER
    sections: frozenset[str] = frozenset(SECTIONS)
    has_schedules: bool = False
    """Whether loans show their whole schedule instead of the next installments."""
    has_statements: bool = True
    """Whether lines show the days of their statements."""
    is_from_copies: bool = False
    """Whether the saved copies are used without asking the service."""
    can_refresh: bool = True
    """Whether the service can be asked at all."""

    @classmethod
    def of(cls, query: QueryDict, *, mode: Mode = Mode.INTERNAL, can_refresh: bool = True) -> Self:
        """Read a query string.

        ``chosen`` says that checkboxes were shown, so that a missing one means no. It names the mode they were shown
        for; another mode starts with its own defaults.
        """
        named = query.get("mode", "")
        mode = Mode(named) if named in Mode.values else mode
        is_chosen = query.get("chosen") in ("1", mode)
        default = frozenset(SECTIONS) if mode == Mode.INTERNAL else BORROWER_DEFAULT
        wanted = frozenset(SECTIONS).intersection(query.getlist("section")) if is_chosen else default
        return cls(
            mode=mode,
            paper=Paper.A4 if query.get("paper") == Paper.A4 else Paper.LETTER,
            sections=wanted - {"internal"} if mode == Mode.BORROWER else wanted,
            has_schedules="schedules" in query,
            has_statements="statements" in query or not is_chosen,
            is_from_copies=query.get("data") == "copies" or not can_refresh,
            can_refresh=can_refresh,
        )

    @property
    def is_internal(self) -> bool:
        return self.mode == Mode.INTERNAL

    def as_detail(self) -> dict[str, object]:
        """The options as the audit trail stores them."""
        return {
            "mode": self.mode.value,
            "paper": self.paper.value,
            "sections": sorted(self.sections),
            "schedules": self.has_schedules,
            "statements": self.has_statements,
        }
