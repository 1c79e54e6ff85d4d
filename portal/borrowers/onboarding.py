"""Onboarding of a commercial borrower: from what is typed in steps to one request of the lending service.

Hides how each step stands, what the service requires of it, how a draft is kept and changed, and what a refused or
lost sending leaves behind. EIN and SSNs pass through ``send`` and are kept nowhere.
"""

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

from django.db import transaction

from portal.audit.intents import Write
from portal.audit.models import WriteIntent
from portal.borrowers import refusals
from portal.borrowers.duplicates import CREATION, IDENTITY, Match, OpenCreation, known_here, open_creations
from portal.borrowers.forms import (
    ADDRESS_FIELDS,
    AddressForm,
    BusinessForm,
    PersonForm,
    ReportForm,
    ReviewForm,
    StepForm,
)
from portal.borrowers.models import Draft, Step
from portal.borrowers.reports import Report
from portal.registry.models import Kind
from portal.ui import wording
from portal.ui.forms import ErrorSummary, StaffForm, summarise
from portal.ui.guard import number_problem
from servicing import Borrower, Client, InvalidInput, Rejected

Rows = list[dict[str, str]]
"""For each form of a step its typed text."""
MAX_PEOPLE = 50
REFUSED = "The lending service refused this. No borrower was created."

FORMS: dict[Step, type[StepForm]] = {
    Step.BUSINESS: BusinessForm,
    Step.ADDRESS: AddressForm,
    Step.PEOPLE: PersonForm,
    Step.REPORTS: ReportForm,
}

# What the lending service requires of each step, and the fields that show whether it is met.
REQUIREMENTS: dict[Step, list[tuple[str, Sequence[str]]]] = {
    Step.BUSINESS: [
        ("A legal business name", ["first_name"]),
        ("One of six business types", ["entity"]),
        ("A business e-mail address", ["email"]),
        ("A valid US phone number of 10 digits", ["phone"]),
        ("An incorporation date, if given, that is not in the future", ["incorporated_on"]),
    ],
    Step.ADDRESS: [
        ("A valid US address: street and city", ["line_1", "line_2", "line_3", "city"]),
        ("A state, DC or a US territory, sent as its two-letter code", ["state"]),
        ("A ZIP code of 5 or 9 digits in the state or a bordering one", ["zip"]),
    ],
    Step.PEOPLE: [
        ("At least one person in the list", []),
        (
            "Names of letters, with one space, comma, period, apostrophe or hyphen between: no digits, accents or &",
            ["first_name", "middle_name", "last_name"],
        ),
        ("Title: owner, director or beneficiary", ["title"]),
        ("Citizenship: a country, sent as its two-letter code", ["citizenship"]),
        ("An e-mail address and a US phone number of 10 digits", ["email", "phone"]),
        ("18 or older, if a date of birth is given", ["dob"]),
        ("A valid US address per person", ADDRESS_FIELDS),
    ],
    Step.REPORTS: [
        ("Nothing: a report is optional", []),
        ("If given, JSON that holds an object or a list", ["asset_report"]),
        ("Compressed with gzip, then base64: done on sending", []),
    ],
}


@dataclass(frozen=True)
class StepLine:
    """How a step stands, as its line beside the wizard."""

    step: Step
    url: str
    state: str
    words: str


class Onboarding:
    """One draft, read step by step. Forms of the step at hand may be given as they were posted."""

    def __init__(self, draft: Draft, posted: Mapping[Step, list[StepForm]] | None = None) -> None:
        self.draft = draft
        self.review: ReviewForm | None = None
        self._forms = dict(posted or {})
        self._matches: dict[Step, list[Match]] = {}

    def forms(self, step: Step) -> list[StepForm]:
        """The forms of a step, bound to what was typed; what is not typed yet is not held against them."""
        if step not in self._forms:
            rows = (
                [PersonForm.BLANK]
                if step == Step.PEOPLE and not self.is_started(step)
                else self.draft.typed(step)
            )
            self._forms[step] = bound = bind(step, rows, self.draft.url(step))
            self.hold_refusal_against(step, bound)
        return self._forms[step]

    def is_started(self, step: Step) -> bool:
        """Whether anything was typed there."""
        return any(self.draft.data.get(step, []))

    def is_complete(self, step: Step) -> bool:
        """Whether the step can be sent as it is."""
        return not any(form.errors or form.left_out for form in self.forms(step)) and not self._quotes(step)

    @property
    def unfinished(self) -> list[StepLine]:
        """The steps that keep the draft from being sent."""
        return [self.line(step) for step in FORMS if not self.is_complete(step)]

    def line(self, step: Step) -> StepLine:
        """How a step stands."""
        return StepLine(step, self.draft.url(step), *self._standing(step))

    def _standing(self, step: Step) -> tuple[str, str]:
        if wrong := sum(len(form.errors) for form in self.all_forms(step)):
            return "bad", f"Needs attention: {wrong} field{'' if wrong == 1 else 's'}"
        if self._quotes(step):
            return "bad", "Refused by the service"
        if step == Step.REPORTS and not self.draft.asset_report_size:
            return "", "Optional, not started"
        if step in FORMS and self.is_complete(step):
            return "ok", "Complete"
        return "", "In progress" if step in FORMS and self.is_started(step) else "Not started"

    def requirements(self, step: Step) -> list[tuple[str, bool]]:
        """What the service requires of a step, each with whether it is met."""
        if step == Step.REVIEW:
            complete = [(f"{each.label}: complete", self.is_complete(each)) for each in FORMS]
            return [
                *complete,
                ("An EIN of nine digits, encrypted", False),
                ("SSNs, if given, encrypted", True),
            ]
        forms = self.forms(step)
        return [
            (text, all(form.is_met(name) for form in forms for name in names))
            for text, names in REQUIREMENTS[step]
        ]

    def all_forms(self, step: Step) -> Sequence[StaffForm]:
        """The forms of a step, the last one's included once it is on the page."""
        if step != Step.REVIEW:
            return self.forms(step)
        return [self.review] if self.review else []

    def summary(self, step: Step) -> ErrorSummary | None:
        """What is wrong with a step; the service's own words first."""
        found = summarise(self.all_forms(step))
        quotes = self._quotes(step)
        return ErrorSummary(REFUSED, found.items if found else [], quotes) if quotes else found

    def _quotes(self, step: Step) -> list[str]:
        return [words for named, words in self.draft.refusal.get("quotes", []) if named == step]

    def hold_refusal_against(self, step: Step, bound: Sequence[StaffForm]) -> None:
        """Put what was refused at the last sending on the fields it concerns."""
        for named, number, field, reason in self.draft.refusal.get("problems", []):
            if named == step:
                form = bound[min(number, len(bound) - 1)]
                form.add_error(field if field in form.fields else None, reason)

    @property
    def people(self) -> list[PersonForm]:
        return cast(list[PersonForm], self.forms(Step.PEOPLE))

    @property
    def business(self) -> BusinessForm:
        return cast(BusinessForm, self.forms(Step.BUSINESS)[0])

    @property
    def address(self) -> AddressForm:
        """The business's own."""
        return cast(AddressForm, self.forms(Step.ADDRESS)[0])

    @property
    def zip_warnings(self) -> list[str]:
        """What is confirmed about the ZIP codes of all addresses before they are sent."""
        own = [person for person in self.people if not person.cleaned_data.get("same_address")]
        return [text for form in (self.address, *own) for text in form.zip_warnings]

    # --- Known here already ---

    def matches(self, step: Step) -> list[Match]:
        """Who is known here under what was typed on this step; before sending, under what was typed of the business."""
        if step not in self._matches:
            self._matches[step] = known_here(self._contacts(step))
        return self._matches[step]

    def _contacts(self, step: Step) -> list[str]:
        if step in (Step.BUSINESS, Step.REVIEW):
            return _values(self.business, "email", "phone", "first_name")
        people = self.people if step == Step.PEOPLE else []
        return [value for form in people for value in _values(form, "email", "phone")]

    def similar(self) -> list[Match]:
        """Borrowers known here that this one may be."""
        return [match for match in self.matches(Step.REVIEW) if match.record.kind == Kind.BORROWER]

    def in_the_air(self) -> list[OpenCreation]:
        """Creations like this one whose outcome is not known. An equal one is no question: it is refused on sending."""
        if not self.is_complete(Step.BUSINESS):
            return []
        equal = self.write("").fingerprint(CREATION)
        found = open_creations(self._contacts(Step.REVIEW), besides=str(self.draft.submit_id))
        return [one for one in found if one.intent.fingerprint != equal]

    def annotate_people(self, matches: Iterable[Match]) -> None:
        """Say on each person's card who has the same e-mail or phone, and what the business's address is."""
        first: dict[str, int] = {}
        for form in self.people:
            if self.address.one_line:
                form["same_address"].label = f"Same address as the business: {self.address.one_line}"
            for field in ("email", "phone"):
                for value in map(str.casefold, _values(form, field)):
                    if form.number != first.setdefault(value, form.number):
                        form.warn(field, f"Also entered for person {first[value] + 1}.")
                    for match in matches:
                        if value in match.shared:
                            form.warn(field, f"Also on {wording.ended(match.who)} Same person?")

    # --- Sending ---

    @property
    def version(self) -> str:
        """Changes with everything that would be sent, so that nothing is sent that was not on the page."""
        typed = [self.draft.data.get(step) for step in FORMS]
        report = (
            self.draft.asset_report_name,
            self.draft.asset_report_size,
            self.draft.asset_report_compressed,
        )
        return hashlib.sha256(json.dumps([typed, report]).encode()).hexdigest()[:16]

    def write(self, submit_id: str, reason: str = "") -> Write:
        """What staff know of the sending; equal ones are told by name, e-mail and phone."""
        business = self.business.cleaned_data
        return Write(
            submit_id=submit_id,
            label=self.draft.title,
            reason=reason,
            subject_kind=Kind.BORROWER,
            identity={name: business[name] for name in IDENTITY},
        )

    def arguments(self, *, ein: str, ssns: Sequence[str | None]) -> dict[str, Any]:
        """What the library is asked to create."""
        address = self.address.address()
        people = [form.key_person(address, ssn) for form, ssn in zip(self.people, ssns, strict=True)]
        report = gzip.decompress(self.draft.asset_report) if self.draft.asset_report else None
        business = self.business.cleaned_data
        return dict(business, ein=ein, address=address, key_people=people, asset_report=report)


def bind(step: Step, rows: Iterable[Mapping[str, str]], action: str) -> list[StepForm]:
    """The forms of a step, holding typed text."""
    if step == Step.PEOPLE:
        forms: list[StepForm] = [
            PersonForm(
                {f"person-{number}-{name}": text for name, text in row.items()},
                number=number,
                action=action,
            )
            for number, row in enumerate(rows)
        ]
    else:
        forms = [FORMS[step](dict(row), action=action) for row in rows]
    for form in forms:
        form.forgive_missing()
    return forms


# --- Keeping a draft ---


def keep(draft: Draft, step: Step, rows: Rows, *, resume_at: Step, report: Report | None = None) -> Draft:
    """Keep what was typed on a step but for EIN and SSN, and what was refused of the others.

    ``Draft.DoesNotExist`` when it was sent or discarded meanwhile: then nothing brings it back.
    """
    with transaction.atomic():
        rows_in_use = Draft.objects.select_for_update()
        if draft.is_kept:
            kept = rows_in_use.get(pk=draft.pk)
        else:
            kept, _ = rows_in_use.get_or_create(pk=draft.pk, defaults={"owner": draft.owner})
        kept.data[step] = [
            {name: text for name, text in row.items() if not number_problem(text)} for row in rows
        ]
        kept.refusal = refusals.without(kept.refusal, step)
        kept.step = resume_at
        if report:
            _attach(kept, report)
        kept.save()
    return kept


def detach(draft: Draft) -> None:
    """Take the report away again."""
    _attach(draft, Report(name="", size=0, compressed=b""))
    draft.save()


def _attach(draft: Draft, report: Report) -> None:
    draft.asset_report = report.compressed
    draft.asset_report_name = report.name
    draft.asset_report_size = report.size
    draft.asset_report_compressed = len(report.compressed)


def rearranged(rows: Rows, act: str, number: int) -> tuple[Rows, int]:
    """The people after an act on one of them, and which of them to look at then."""
    rows = list(rows)
    if number >= len(rows):
        return rows, 0
    match act:
        case "add" if len(rows) < MAX_PEOPLE:
            rows.append(dict(PersonForm.BLANK))
            number = len(rows) - 1
        case "duplicate" if len(rows) < MAX_PEOPLE:
            number += 1
            rows.insert(number, dict(rows[number - 1]))
        case "remove" if len(rows) > 1:
            del rows[number]
            number = min(number, len(rows) - 1)
        case "up" | "down":
            other = number + (1 if act == "down" else -1)
            if 0 <= other < len(rows):
                rows[number], rows[other] = rows[other], rows[number]
                number = other
    return rows, number


# --- Sending ---


def send(client: Client, onboarding: Onboarding, *, ein: str, ssns: Sequence[str | None]) -> Borrower:
    """Create the borrower and let go of the draft. A refusal is kept on it and raised."""
    draft = onboarding.draft
    try:
        borrower = client.borrowers.create_commercial(**onboarding.arguments(ein=ein, ssns=ssns))
    except InvalidInput as error:
        _keep_refusal(draft, refusals.from_problems(error.problems))
        raise
    except Rejected as error:
        _keep_refusal(draft, refusals.from_words(error.reasons or [error.message]))
        raise
    draft.delete()
    return borrower


def _keep_refusal(draft: Draft, refusal: refusals.Refusal) -> None:
    draft.refusal = refusal
    draft.step = refusals.first_step(refusal)
    draft.submit_id = uuid4()
    draft.save(update_fields=["refusal", "step", "submit_id", "updated_at"])


def earlier(submit_id: Any) -> WriteIntent | None:
    """What became of a sending under this id, if there was one."""
    return WriteIntent.objects.filter(submit_id=str(submit_id)).first()


def renew(draft: Draft) -> None:
    """Nothing came of the last sending: let it be sent again."""
    draft.submit_id = uuid4()
    draft.save(update_fields=["submit_id"])


def _values(form: StepForm, *names: str) -> list[str]:
    return [value for name in names if (value := form.cleaned_data.get(name))]
