"""Finds the onboarding step and field that a rejection is about.

The client names arguments, the service writes sentences. Both become what a draft stores: ``problems`` (step, number
of the form, field, reason) and ``quotes`` (step, words).
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from portal.borrowers.forms import ADDRESS_FIELDS, SEE_ABOVE
from portal.borrowers.models import Step
from portal.borrowers.onboarding_forms import BusinessForm, PersonForm
from servicing import InvalidInput, Rejected


class FieldPath(NamedTuple):
    """A field of one of a step's forms; an empty field means the whole form."""

    step: Step
    number: int
    field: str


# The names that the client and the service use, in lower case.
FIELD_PATHS = {
    **{name: FieldPath(Step.BUSINESS, 0, name) for name in BusinessForm.base_fields},
    **{name: FieldPath(Step.ADDRESS, 0, name) for name in ADDRESS_FIELDS},
    "start_date": FieldPath(Step.BUSINESS, 0, "incorporated_on"),
    "incorporation": FieldPath(Step.BUSINESS, 0, "incorporated_on"),
    "e-mail": FieldPath(Step.BUSINESS, 0, "email"),
    "address": FieldPath(Step.ADDRESS, 0, ""),
    "country": FieldPath(Step.ADDRESS, 0, ""),
    "asset_report": FieldPath(Step.REPORTS, 0, "asset_report"),
    "asset_report_json_gzip": FieldPath(Step.REPORTS, 0, "asset_report"),
    "ein": FieldPath(Step.REVIEW, 0, "ein"),
}
PERSON_PATTERN = re.compile(
    r"key[_ ]?(?:people|persons?)(?:\W{1,2}(\d{1,2})\W{0,2}(?:address\W)?([a-z_0-9]*))?"
)
WORD_PATTERN = re.compile(r"[a-z][a-z_0-9]*(?:-mail)?")


def paths_in(text: str) -> Iterator[FieldPath]:
    """The field that each clause of a text is about; if it names several, the first."""
    for clause in re.split(r"[;\n]", text.casefold()):
        paths = [_person_path(found) for found in PERSON_PATTERN.finditer(clause)]
        paths = paths or [FIELD_PATHS[word] for word in WORD_PATTERN.findall(clause) if word in FIELD_PATHS]
        if paths:
            yield next((path for path in paths if path.field), paths[0])


def _person_path(found: re.Match[str]) -> FieldPath:
    number, name = int(found[1] or 0), found[2] or ""
    if name == "ssn":
        return FieldPath(Step.REVIEW, 0, f"ssn_{number}")
    return FieldPath(Step.PEOPLE, number, name if name in PersonForm.base_fields else "")


def refusal_of(error: InvalidInput | Rejected) -> dict[str, list[Any]]:
    """The fields that a rejection is about; reasons without a field belong to the last step."""
    if isinstance(error, InvalidInput):
        whole_page = FieldPath(Step.REVIEW, 0, "")
        found = ((next(paths_in(name), whole_page), reasons) for name, reasons in error.problems.items())
        return {"problems": [[*path, reason] for path, reasons in found for reason in reasons], "quotes": []}
    refusal: dict[str, list[Any]] = {"problems": [], "quotes": []}
    for text in error.reasons or [error.message]:
        paths = list(dict.fromkeys(paths_in(text)))
        steps = dict.fromkeys(path.step for path in paths) or [Step.REVIEW]
        refusal["problems"] += [[*path, SEE_ABOVE] for path in paths if path.field]
        refusal["quotes"] += [[step, text] for step in steps]
    return refusal
