"""The search text of a record: a line for each value, between two marks, with another mark before the name.

So the beginning and the end of a line or a name are searched for like any other letter.
"""

from typing import Final

from portal.registry.models import Kind, Record
from portal.registry.query import MARK, MAX_LENGTH, UNMARKED
from portal.runtime.folding import fold

# The ranks of matches: the whole name, another whole line, the beginning of the name, of a line, of a word.
FORMS: Final = tuple(form.replace("|", MARK) for form in ("||{}|", "|{}|", "||{}", "|{}", " {}"))
TRIGRAM: Final = 3


def search_text(name: str | None = None, *others: str | None) -> str:
    """The normalized lines of a record, its name first. IDs are found without it.

    No line is longer than the text of a search, or than PostgreSQL's index of lines can store.
    """
    if not name and not any(others):
        return ""
    first, *rest = (
        " ".join(fold(part or "").translate(UNMARKED).split())[:MAX_LENGTH] for part in (name, *others)
    )
    return "".join([MARK if first else "", *(f"{MARK}{line}{MARK}\n" for line in (first, *rest) if line)])


def lines_of(record: Record) -> list[str]:
    """The lines by which a record can be found."""
    return [line for line in record.search_text.replace("\n", MARK).split(MARK) if line]


def forms_of(term: str) -> tuple[str, ...]:
    """The forms of a term to search for. A term too short for trigrams matches only at the beginning of a word."""
    is_form = term.startswith((MARK, " "))
    return (term,) if is_form or len(term) >= TRIGRAM else (f"{MARK}{term}", f" {term}")


def pieces_of(term: str) -> list[str]:
    """The fewest trigrams that cover a term."""
    starts = {*range(0, len(term) - TRIGRAM, TRIGRAM), len(term) - TRIGRAM}
    return [term[start : start + TRIGRAM] for start in sorted(starts)]


def index_of(kind: Kind) -> str:
    """The name of a kind's search table."""
    return f"registry_search_{kind.value}"
