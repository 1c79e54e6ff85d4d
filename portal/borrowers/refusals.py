"""Where a refusal belongs: which step and field of onboarding a problem, or the service's own words, speak of.

Hides the names under which the client and the lending service know the fields, and how a sentence is searched for them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from portal.borrowers.forms import ADDRESS_FIELDS
from portal.borrowers.models import Step

SEE_ABOVE = "The lending service did not accept this; its words stand above."


class Place(NamedTuple):
    """A field of one of a step's forms; an empty field is the form as a whole."""

    step: Step
    number: int
    field: str


# The names in use, in small letters, to the field of the wizard.
_NAMES: dict[Step, dict[str, str]] = {
    Step.BUSINESS: {name: name for name in ("first_name", "entity", "email", "phone", "incorporated_on")}
    | {"start_date": "incorporated_on", "incorporation": "incorporated_on", "e-mail": "email"},
    Step.ADDRESS: {name: name for name in ADDRESS_FIELDS} | {"address": "", "country": ""},
    Step.REPORTS: {"asset_report": "asset_report", "asset_report_json_gzip": "asset_report"},
    Step.REVIEW: {"ein": "ein"},
}
_PERSON = ("first_name", "middle_name", "last_name", "title", "citizenship", "dob", "email", "phone")
_PEOPLE = re.compile(r"key[_ ]?(?:people|persons?)(?:\W{1,2}(\d{1,2})\W{0,2}(?:address\W)?([a-z_0-9]*))?")
_WORDS = re.compile(r"[a-z][a-z_0-9]*(?:-mail)?")


def place_of(key: str) -> Place:
    """Where a problem of the client's own rules belongs: ``ein``, ``address.zip``, ``key_people.1.phone``."""
    return next(places_in(key), Place(Step.REVIEW, 0, ""))


def places_in(text: str) -> Iterator[Place]:
    """The field that each clause of a text speaks of; where it names several, the first."""
    for clause in re.split(r"[;\n]", text.casefold()):
        places = [_of_person(found) for found in _PEOPLE.finditer(clause)] or list(_of_business(clause))
        if places:
            yield next((place for place in places if place.field), places[0])


def _of_business(clause: str) -> Iterator[Place]:
    for word in _WORDS.findall(clause):
        for step, names in _NAMES.items():
            if word in names:
                yield Place(step, 0, names[word])


def _of_person(found: re.Match[str]) -> Place:
    number, name = int(found[1] or 0), found[2] or ""
    if name == "ssn":
        return Place(Step.REVIEW, 0, f"ssn_{number}")
    return Place(Step.PEOPLE, number, name if name in (*_PERSON, *ADDRESS_FIELDS) else "")


# --- What a draft keeps of a refusal: {"problems": [[step, number, field, reason]], "quotes": [[step, words]]} ---

Refusal = dict[str, list[list[Any]]]


def from_problems(problems: Mapping[str, Iterable[str]]) -> Refusal:
    """Our own rules refused."""
    return {
        "problems": [[*place_of(key), reason] for key, reasons in problems.items() for reason in reasons],
        "quotes": [],
    }


def from_words(words: Iterable[str]) -> Refusal:
    """The service refused, in these words; what names no field belongs to the last step."""
    problems, quotes = [], []
    for text in words:
        places = list(dict.fromkeys(places_in(text)))
        problems += [[*place, SEE_ABOVE] for place in places if place.field]
        quotes += [[step, text] for step in dict.fromkeys(place.step for place in places) or [Step.REVIEW]]
    return {"problems": problems, "quotes": quotes}


def without(refusal: Refusal, step: Step) -> Refusal:
    """What is left of a refusal once a step was gone over again."""
    return {part: [row for row in rows if row[0] != step] for part, rows in refusal.items()}


def first_step(refusal: Refusal) -> Step:
    """Where to go back to."""
    named = {row[0] for rows in refusal.values() for row in rows}
    return next((step for step in Step if step in named), Step.REVIEW)
