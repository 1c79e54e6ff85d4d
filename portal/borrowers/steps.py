"""The current state of a draft's steps: their forms, the service's requirements, and the progress.

Hides that an empty field is no error yet, and that the service's reasons are put back on their fields.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from portal.borrowers.forms import ADDRESS_FIELDS, NAMES, AddressForm, LiveForm
from portal.borrowers.models import Draft, Step
from portal.borrowers.onboarding_forms import BusinessForm, OnboardingSendForm, PersonForm, ReportForm
from portal.gateway.client import StaffRequest
from portal.ui.forms import ErrorSummary, StaffForm, summarize_errors

MAX_PEOPLE = 50
REJECTED = "The service rejected this. No borrower was created."
FORMS: dict[Step, type[LiveForm]] = {
    Step.BUSINESS: BusinessForm,
    Step.ADDRESS: AddressForm,
    Step.PEOPLE: PersonForm,
    Step.REPORTS: ReportForm,
}
NAME_RULE = "Names: letters A to Z, with single spaces, commas, periods, apostrophes or hyphens"
# The service's requirements by step, and the fields that decide whether each is met.
REQUIREMENTS: dict[Step, list[tuple[str, Sequence[str]]]] = {
    Step.BUSINESS: [
        ("A legal business name", ["first_name"]),
        ("A business type", ["entity"]),
        ("A business email address", ["email"]),
        ("A valid 10-digit US phone number", ["phone"]),
        ("If given, an incorporation date that isn’t in the future", ["incorporated_on"]),
    ],
    Step.ADDRESS: [
        ("A valid US address: street and city", ["line_1", "line_2", "line_3", "city"]),
        ("A state, DC or US territory", ["state"]),
        ("A 5- or 9-digit ZIP code in that state or a bordering one", ["zip"]),
    ],
    Step.PEOPLE: [
        ("At least one person", []),
        (NAME_RULE, NAMES),
        ("Title: owner, director or beneficiary", ["title"]),
        ("Citizenship", ["citizenship"]),
        ("An email address and a 10-digit US phone number", ["email", "phone"]),
        ("If a date of birth is given, 18 or older", ["dob"]),
        ("A valid US address for each person", ADDRESS_FIELDS),
    ],
}


class StepLine(NamedTuple):
    """The status of a step, for its line beside the wizard."""

    step: Step
    url: str
    state: str
    words: str


class DraftSteps:
    """The steps of one draft, each parsed on first use."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.final: OnboardingSendForm | None = None
        """The form of the last step, once shown."""
        self._forms: dict[Step, list[LiveForm]] = {}

    # --- Forms ---

    def forms(self, step: Step) -> Sequence[Any]:
        if step == Step.REVIEW:
            return [self.final] if self.final else []
        if step not in self._forms:
            self._forms[step] = bound = self._saved_forms(step)
            for form in bound:
                form.forgive_missing()
            self.add_service_errors(step, bound)
            if step == Step.PEOPLE:
                _refuse_too_many(bound)
        return self._forms[step]

    def _saved_forms(self, step: Step) -> list[LiveForm]:
        url, rows = self.draft.url(step), self.draft.typed(step)
        if step != Step.PEOPLE:
            return [FORMS[step](rows[0], url=url)]
        return [
            PersonForm(
                {f"person-{number}-{name}": text for name, text in row.items()}, number=number, url=url
            )
            for number, row in enumerate(rows if self.is_started(step) else [PersonForm.BLANK])
        ]

    def read_posted(self, request: StaffRequest, step: Step) -> list[LiveForm]:
        url = self.draft.url(step)
        if step != Step.PEOPLE:
            forms = [FORMS[step](request.POST, request.FILES, url=url)]
        else:
            found = (re.match("person-(0|[1-9][0-9]{0,3})-", name) for name in request.POST)
            numbers = sorted({int(each[1]) for each in found if each}) or [0]
            forms = [PersonForm(request.POST, number=number, url=url) for number in numbers]
            _refuse_too_many(forms)
        self._forms[step] = forms
        return forms

    @property
    def business(self) -> BusinessForm:
        return cast(BusinessForm, self.forms(Step.BUSINESS)[0])

    @property
    def address(self) -> AddressForm:
        return cast(AddressForm, self.forms(Step.ADDRESS)[0])

    @property
    def people(self) -> list[PersonForm]:
        return cast(list[PersonForm], self.forms(Step.PEOPLE))

    @property
    def refused_report(self) -> str:
        """The latest rejected asset report, with the reason."""
        return self.draft.typed(Step.REPORTS)[0].get("refused", "")

    # --- How far they are ---

    def is_started(self, step: Step) -> bool:
        return any(self.draft.data.get(step, []))

    def is_complete(self, step: Step) -> bool:
        """Whether the step can be sent as it is."""
        return all(form.is_complete for form in self.forms(step)) and not self._quotes(step)

    @property
    def lines(self) -> list[StepLine]:
        return [StepLine(step, self.draft.url(step), *self._status(step)) for step in Step]

    @property
    def unfinished(self) -> list[StepLine]:
        return [line for line in self.lines if line.step in FORMS and not self.is_complete(line.step)]

    def _status(self, step: Step) -> tuple[str, str]:
        if wrong := sum(len(form.errors) for form in self.forms(step)):
            return "bad", f"Needs attention: {wrong} field{'' if wrong == 1 else 's'}"
        if self._quotes(step):
            return "bad", "Rejected by the service"
        if step == Step.REPORTS and self.refused_report:
            return "bad", "Report rejected"
        if step == Step.REPORTS and not self.draft.asset_report_size:
            return "", "Optional, not started"
        if step in FORMS and self.is_complete(step):
            return "ok", "Complete"
        return "", "In progress" if step in FORMS and self.is_started(step) else "Not started"

    def requirements(self, step: Step) -> list[tuple[str, bool]]:
        """The service's requirements for a step, each with whether it is met."""
        if step == Step.REVIEW:
            goals = dict.fromkeys(FORMS, "complete")
            if not self.draft.asset_report_size and not self.refused_report:
                goals[Step.REPORTS] = "none"
            return [
                *((f"{each.label}: {goals[each]}", self.is_complete(each)) for each in FORMS),
                ("A 9-digit EIN, encrypted", False),
                ("SSNs, if given, encrypted", True),
            ]
        forms = self.forms(step)
        return [
            (text, all(form.is_requirement_met(name) for form in forms for name in names))
            for text, names in REQUIREMENTS.get(step, [])
        ]

    # --- What the service rejected: {"problems": [[step, number, field, reason]], "quotes": [[step, words]]} ---

    def _quotes(self, step: Step) -> list[str]:
        return [words for named, words in self.draft.refusal.get("quotes", []) if named == step]

    def summary(self, step: Step) -> ErrorSummary | None:
        """The errors of a step, the service's own words first."""
        found = summarize_errors(self.forms(step))
        quotes = self._quotes(step)
        return ErrorSummary(REJECTED, found.items if found else [], quotes) if quotes else found

    def add_service_errors(self, step: Step, bound: Sequence[StaffForm]) -> None:
        """Add the reasons of the last rejection to the fields they concern."""
        for named, number, field, reason in self.draft.refusal.get("problems", []):
            if named == step:
                form = bound[min(number, len(bound) - 1)]
                form.add_error(field if field in form.fields else None, reason)


def _refuse_too_many(people: Sequence[StaffForm]) -> None:
    """Say on the first person beyond the limit how many to remove; nobody is left out without a word."""
    if len(people) > MAX_PEOPLE:
        form, number = people[MAX_PEOPLE], len(people) - MAX_PEOPLE
        form.full_clean()
        form.add_error(None, f"Up to {MAX_PEOPLE} people can be sent. Remove {number}.")
