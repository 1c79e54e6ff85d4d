"""Onboarding of a commercial borrower: five steps over one draft, of which the last one sends it.

Hides the status of each step, what the service requires of it, that every button saves what was typed first, and to
which field a rejection belongs. EIN and SSNs go from the last form into the request and are stored nowhere.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.text import Truncator
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import push_url, replace_url
from msgspec import structs

from portal.accounts.roles import requires
from portal.audit.models import WriteIntent
from portal.audit.view_log import log_list, log_page
from portal.audit.writes import AlreadySubmitted, Write
from portal.borrowers.duplicates import CREATION, IDENTITY_FIELDS, Match, find_matches, open_creations
from portal.borrowers.flow import Flow, field_just_left
from portal.borrowers.forms import (
    ADDRESS_FIELDS,
    NAMES,
    SEE_ABOVE,
    AddressForm,
    BusinessForm,
    LiveForm,
    OnboardingSendForm,
    PersonForm,
    ReportForm,
)
from portal.borrowers.models import Draft, Step, submit_ids
from portal.borrowers.reports import Report
from portal.gateway import StaffRequest
from portal.registry.models import Kind
from portal.ui import wording
from portal.ui.forms import ErrorSummary, StaffForm, summarize_errors
from portal.ui.htmx import finish_action, render_page, toast
from portal.ui.uploads import accepts_files
from servicing import Address, Client, InvalidInput, NewKeyPerson, Rejected, rules

State = WriteIntent.State
Rows = list[dict[str, str]]
"""For each form of a step its typed text."""
PAGE = "borrowers/create.html"
MAX_PEOPLE = 50
REJECTED = "The service rejected this. No borrower was created."
PREVIEW_EIN = "000000000"

FORMS: dict[Step, type[LiveForm]] = {
    Step.BUSINESS: BusinessForm,
    Step.ADDRESS: AddressForm,
    Step.PEOPLE: PersonForm,
    Step.REPORTS: ReportForm,
}
NAME_RULE = (
    "Names of letters, with one space, comma, period, apostrophe or hyphen between: no digits, accents or &"
)
# What the service requires of each step, and the fields that show whether it is met.
REQUIREMENTS: dict[Step, list[tuple[str, Sequence[str]]]] = {
    Step.BUSINESS: [
        ("A legal business name", ["first_name"]),
        ("One of six business types", ["entity"]),
        ("A business email address", ["email"]),
        ("A valid US phone number of 10 digits", ["phone"]),
        ("An incorporation date, if given, that is not in the future", ["incorporated_on"]),
    ],
    Step.ADDRESS: [
        ("A valid US address: street and city", ["line_1", "line_2", "line_3", "city"]),
        ("A state, DC or US territory", ["state"]),
        ("A 5- or 9-digit ZIP code in that state or next to it", ["zip"]),
    ],
    Step.PEOPLE: [
        ("At least one person in the list", []),
        (NAME_RULE, NAMES),
        ("Title: owner, director or beneficiary", ["title"]),
        ("Citizenship", ["citizenship"]),
        ("An email address and a US phone number of 10 digits", ["email", "phone"]),
        ("18 or older, if a date of birth is given", ["dob"]),
        ("A valid US address per person", ADDRESS_FIELDS),
    ],
    Step.REPORTS: [
        ("Optional", []),
        ("A JSON file", ["asset_report"]),
        ("Compressed automatically", []),
    ],
}


# --- Addresses ---


@require_safe
@requires("borrowers.create")
def create(request: StaffRequest) -> HttpResponse:
    """The first step of a draft that is saved once something is typed; and the drafts begun before."""
    Draft.objects.forget_old()
    first = {Step.BUSINESS: [{"first_name": request.GET.get("name", "")[: rules.MAX_LEGAL_NAME_CHARACTERS]}]}
    drafts = Draft.objects.filter(owner=request.user)
    log_list(request, count=len(drafts))
    return Onboarding(request, Draft(owner=request.user, data=first)).show_step(Step.BUSINESS, drafts=drafts)


@accepts_files(1)
@requires("borrowers.create")
def draft(request: StaffRequest, draft_id: UUID, step: str) -> HttpResponse:
    """One step: what was typed on it, or whatever one of its buttons does."""
    if step not in Step.values:
        raise Http404
    found = Draft.objects.filter(pk=draft_id).first()
    if found and found.owner_id != request.user.pk:
        raise Http404
    if not found and (request.method != "POST" or step != Step.BUSINESS):
        return gone(request, draft_id)
    onboarding = Onboarding(request, found or Draft(pk=draft_id, owner=request.user))
    if request.method == "POST":
        try:
            return onboarding.post(Step(step))
        except Draft.DoesNotExist:  # It was sent or discarded a moment ago.
            return gone(request, draft_id)
    title = onboarding.draft.title
    log_page(request, kind="draft", uuid=str(draft_id), label=f"draft of {title}", borrower_uuid="")
    return onboarding.show_step(Step(step))


@require_POST
@requires("borrowers.create")
def discard_draft(request: StaffRequest, draft_id: UUID) -> HttpResponse:
    """Forget a draft; nothing of it was sent."""
    for each in Draft.objects.filter(pk=draft_id, owner=request.user):
        each.delete()
        toast(request, f"Draft of {each.title} discarded.")
    return finish_action(request, reverse("borrowers:index"))


def gone(request: StaffRequest, draft_id: UUID) -> HttpResponse:
    """The draft was sent or discarded: lead to the borrower it created, or say so."""
    sent = WriteIntent.objects.filter(submit_id__in=submit_ids(draft_id), actor_id=request.user.pk)
    if intent := sent.filter(state=State.CONFIRMED).first():
        return show_created(request, intent)
    if request.htmx.target == "draft-state":
        return render_page(request, PAGE, {"draft": None}, partial="draft-state", status=409)
    if request.htmx:
        return finish_action(request, request.path)
    return render_page(request, "borrowers/gone.html", status=404)


def show_created(request: StaffRequest, intent: WriteIntent) -> HttpResponse:
    messages.info(request, f"{intent.label} was created before; nothing was sent twice.")
    is_known = intent.subject_kind == Kind.BORROWER and intent.subject_uuid
    url = reverse("borrowers:detail", args=[intent.subject_uuid]) if is_known else intent.get_absolute_url()
    return finish_action(request, url)


# --- The flow ---


@dataclass(frozen=True)
class NewBorrower:
    """What a complete draft says, parsed once. EIN, SSNs and the report come with the sending."""

    business: Mapping[str, Any]
    address: Address
    people: Sequence[NewKeyPerson]

    def arguments(self, *, ein: str, ssns: Sequence[str | None]) -> dict[str, Any]:
        """What the library is asked to create."""
        people = [structs.replace(person, ssn=ssn) for person, ssn in zip(self.people, ssns, strict=True)]
        return dict(self.business, ein=ein, address=self.address, key_people=people)


class StepLine(NamedTuple):
    """The status of a step, as its line beside the wizard."""

    step: Step
    url: str
    state: str
    words: str


class Onboarding(Flow):
    """One draft in one request, read step by step."""

    def __init__(self, request: StaffRequest, draft: Draft) -> None:
        super().__init__(request)
        self.draft = draft
        self.final: OnboardingSendForm | None = None
        self._forms: dict[Step, list[LiveForm]] = {}
        self._matches: dict[Step, list[Match]] = {}

    # --- How the steps stand ---

    def forms(self, step: Step) -> list[LiveForm]:
        """The forms of a step, bound to what was typed; a field that is not filled in yet is no error."""
        if step not in self._forms:
            is_new = step == Step.PEOPLE and not self.is_started(step)
            rows = [PersonForm.BLANK] if is_new else self.draft.typed(step)
            self._forms[step] = bound = bind_forms(step, rows, self.draft.url(step))
            for form in bound:
                form.forgive_missing()
            self.add_service_errors(step, bound)
        return self._forms[step]

    @property
    def business(self) -> BusinessForm:
        return cast(BusinessForm, self.forms(Step.BUSINESS)[0])

    @property
    def address(self) -> AddressForm:
        return cast(AddressForm, self.forms(Step.ADDRESS)[0])

    @property
    def people(self) -> list[PersonForm]:
        return cast(list[PersonForm], self.forms(Step.PEOPLE))

    def is_started(self, step: Step) -> bool:
        """Whether anything was typed there."""
        return any(self.draft.data.get(step, []))

    def is_complete(self, step: Step) -> bool:
        """Whether the step can be sent as it is."""
        return all(form.is_complete for form in self.forms(step)) and not self._quotes(step)

    @property
    def lines(self) -> list[StepLine]:
        """The status of each step."""
        return [StepLine(step, self.draft.url(step), *self._status(step)) for step in Step]

    @property
    def unfinished(self) -> list[StepLine]:
        """The steps that keep the draft from being sent."""
        return [line for line in self.lines if line.step in FORMS and not self.is_complete(line.step)]

    def _status(self, step: Step) -> tuple[str, str]:
        if wrong := sum(len(form.errors) for form in self._all_forms(step)):
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

    def _goal(self, step: Step) -> str:
        """The status that the last step needs of another one."""
        is_without = step == Step.REPORTS and not self.draft.asset_report_size and not self.refused_report
        return "none" if is_without else "complete"

    def _all_forms(self, step: Step) -> Sequence[StaffForm]:
        """The forms of a step, that of the last one included once it is on the page."""
        return self.forms(step) if step in FORMS else [self.final] if self.final else []

    def requirements(self, step: Step) -> list[tuple[str, bool]]:
        """What the service requires of a step, each with whether it is met."""
        if step == Step.REVIEW:
            complete = [(f"{each.label}: {self._goal(each)}", self.is_complete(each)) for each in FORMS]
            return [
                *complete,
                ("An EIN of nine digits, encrypted", False),
                ("SSNs, if given, encrypted", True),
            ]
        forms = self.forms(step)
        return [
            (text, all(form.is_requirement_met(name) for form in forms for name in names))
            for text, names in REQUIREMENTS[step]
        ]

    # --- What the service rejected: {"problems": [[step, number, field, reason]], "quotes": [[step, words]]} ---

    def _quotes(self, step: Step) -> list[str]:
        return [words for named, words in self.draft.refusal.get("quotes", []) if named == step]

    def summary(self, step: Step) -> ErrorSummary | None:
        """What is wrong with a step; the service's own words first."""
        found = summarize_errors(self._all_forms(step))
        quotes = self._quotes(step)
        return ErrorSummary(REJECTED, found.items if found else [], quotes) if quotes else found

    def add_service_errors(self, step: Step, bound: Sequence[StaffForm]) -> None:
        """Put what was rejected at the last sending on the fields it concerns."""
        for named, number, field, reason in self.draft.refusal.get("problems", []):
            if named == step:
                form = bound[min(number, len(bound) - 1)]
                form.add_error(field if field in form.fields else None, reason)

    # --- Duplicates ---

    def matches(self, step: Step) -> list[Match]:
        """Records with an email, phone or name that was typed on this step; on the last one, of the business."""
        if step not in self._matches:
            self._matches[step] = find_matches(self._contacts(step))
        return self._matches[step]

    def _contacts(self, step: Step) -> list[str]:
        if step in (Step.BUSINESS, Step.REVIEW):
            return typed_values(self.business, *IDENTITY_FIELDS)
        people = self.people if step == Step.PEOPLE else []
        return [value for form in people for value in typed_values(form, "email", "phone")]

    @property
    def similar_borrowers(self) -> list[Match]:
        """Borrowers on file that this one may be."""
        return [match for match in self.matches(Step.REVIEW) if match.record.kind == Kind.BORROWER]

    @cached_property
    def unconfirmed_duplicates(self) -> list[tuple[WriteIntent, list[str]]]:
        """Similar creations whose outcome is unknown. Equal ones are left out: they are blocked on sending."""
        if not self.is_complete(Step.BUSINESS):
            return []
        fingerprint = self._write().fingerprint(CREATION)
        found = open_creations(self._contacts(Step.REVIEW), except_for=str(self.draft.submit_id))
        return [(intent, shared) for intent, shared in found if intent.fingerprint != fingerprint]

    def _annotate_people(self) -> None:
        """Say on each person's card who has the same email or phone, and what the business's address is."""
        first: dict[str, int] = {}
        for form in self.people:
            if self.address.one_line:
                form["same_address"].label = f"Same address as the business: {self.address.one_line}"
            for field in ("email", "phone"):
                for value in map(str.casefold, typed_values(form, field)):
                    if form.number != first.setdefault(value, form.number):
                        form.warn(field, f"Also entered for person {first[value] + 1}.")
                    for match in self.matches(Step.PEOPLE):
                        if value in match.shared:
                            form.warn(field, f"Also on {wording.with_full_stop(match.who)} Same person?")

    # --- The pages ---

    def show_step(self, step: Step, *, status: int = 200, **more: Any) -> HttpResponse:
        """One step of the wizard."""
        if step == Step.REVIEW:
            return self.show_review(status=status)
        context = self._context(step) | more
        return render_page(self.request, PAGE, context, partial="wizard", status=status)

    def _context(self, step: Step) -> dict[str, Any]:
        if step == Step.PEOPLE:
            self._annotate_people()
        return {
            "onboarding": self,
            "draft": self.draft,
            "step": step,
            "forms": self.forms(step) if step in FORMS else [],
            "summary": self.summary(step),
            "requirements": self.requirements(step),
            "matches": self.matches(step),
            "states": rules.US_STATES,
            "countries": rules.COUNTRIES,
            "max_people": MAX_PEOPLE,
            "upload_limit": settings.UPLOAD_LIMIT_MB,
        }

    def show_review(
        self, final: OnboardingSendForm | None = None, *, status: int = 200, **notice: Any
    ) -> HttpResponse:
        """Everything in reading order, and what is typed last."""
        earlier = WriteIntent.objects.filter(submit_id=str(self.draft.submit_id)).first()
        if earlier and earlier.state == State.CONFIRMED:
            return self.follow(earlier)
        if earlier and earlier.state in WriteIntent.WITHOUT_EFFECT:
            self.draft.renew_submit_id()
        open_intent = earlier if earlier and earlier.state in WriteIntent.OPEN else None
        self.final = final or self._final_form()
        if final:
            self.add_service_errors(Step.REVIEW, [final])
        similar = self.similar_borrowers
        context = self._context(Step.REVIEW)
        context |= {
            "form": self.final,
            "similar": similar,
            "matches": [match for match in context["matches"] if match not in similar],
            "open_intent": open_intent,
            "about": open_intent or notice.get("blocked_by") or notice.get("without_effect"),
            "preview": None if self.unfinished else self._preview(),
        }
        return render_page(self.request, PAGE, context | notice, partial="wizard", status=status)

    def _final_form(self, data: Any = None) -> OnboardingSendForm:
        typed = [self.draft.data.get(step) for step in FORMS]
        one = self.draft
        report = (one.asset_report_name, one.asset_report_size, one.asset_report_compressed)
        own = [person for person in self.people if not person.cleaned_data.get("same_address")]
        return OnboardingSendForm(
            data,
            # It changes with all that would be sent, so nothing is sent that was not on the page.
            version=hashlib.sha256(json.dumps([typed, report]).encode()).hexdigest()[:16],
            people=[
                Truncator(person.name or person.subject.capitalize()).chars(32) for person in self.people
            ],
            must_explain=bool(self.similar_borrowers or self.unconfirmed_duplicates),
            zip_warnings=[text for form in (self.address, *own) for text in form.zip_warnings],
            initial=self.draft.typed(Step.REVIEW)[0],
        )

    def _preview(self) -> Any:
        """The request as it would be recorded: EIN, SSN, dates of birth and the report masked."""
        arguments = self.parsed.arguments(ein=PREVIEW_EIN, ssns=[None] * len(self.people))
        report = self._report()
        try:
            return self.request.servicing.preview(
                lambda it: it.borrowers.create_commercial(**arguments, asset_report=report)
            ).body
        except InvalidInput:  # It is shown once it is sent.
            return None

    # --- Saving a step ---

    def post(self, step: Step) -> HttpResponse:
        """Save what was posted of a step, whatever is wrong with it; then do what its button says."""
        if step == Step.REVIEW:
            return self._post_review()
        act, number = self._act()
        self._forms[step] = forms = self._posted_forms(step)
        if act == "check":
            return self._check_field(step)
        is_valid = not [form for form in forms if form.errors]  # Every form is checked.
        if act == "next" and not is_valid and not self.draft.is_saved:
            return self.show_step(step, status=422)
        rows = [{name: text for name, text in form.typed.items() if text} for form in forms]
        if step == Step.REPORTS and act != "clear" and (refused := self._refused_report(forms[0])):
            rows[0]["refused"] = refused
        if step == Step.PEOPLE:
            rows, number = apply_row_action(rows, act, number)
        report = Report("", 0, b"") if act == "clear" else forms[0].cleaned_data.get("asset_report")
        resume_at = (act == "next" and is_valid and step.after) or step
        self.draft = self.draft.save_step(step, rows, resume_at=resume_at, report=report)
        if act in ("next", "try", "upload") and resume_at == step:
            return self.show_step(step, status=200 if is_valid else 422, act=act)
        return self._go_on(step, act, number)

    def _refused_report(self, form: LiveForm) -> str:
        """The name of the file and why it was refused, until another one is accepted or it is removed."""
        if form.cleaned_data.get("asset_report"):
            return ""
        file = self.request.FILES.get("asset_report")
        if file and form.errors:
            reason = " ".join(map(str, form.errors.get("asset_report", ())))
            return f"{Truncator(str(file.name)).chars(80)}: {reason}"
        return self.refused_report

    @property
    def refused_report(self) -> str:
        """The asset report that was refused last, with the reason."""
        return self.draft.typed(Step.REPORTS)[0].get("refused", "")

    def _act(self) -> tuple[str, int]:
        """What to do, and with which of the people."""
        if self.request.htmx.target == "draft-state":
            return "autosave", 0
        act, _, number = self.request.POST.get("act", "next").partition("-")
        return act, int(number) if re.fullmatch("[0-9]{1,2}", number) else 0

    def _posted_forms(self, step: Step) -> list[LiveForm]:
        request, url = self.request, self.draft.url(step)
        if step != Step.PEOPLE:
            return [FORMS[step](request.POST, request.FILES, url=url)]
        numbers = {
            int(found[1]) for name in request.POST if (found := re.match("person-([0-9]{1,2})-", name))
        }
        count = next(number for number in range(101) if number not in numbers)
        return [PersonForm(request.POST, number=n, url=url) for n in range(min(max(count, 1), MAX_PEOPLE))]

    def _check_field(self, step: Step) -> HttpResponse:
        """One field as it was left, with its note, and what the service requires of its present value."""
        for form in self.forms(step):
            form.forgive_missing()
        context = self._context(step)
        if field := field_just_left(self.request, self.forms(step)):
            return render_page(self.request, f"{PAGE}#checked-field", context | {"field": field})
        return HttpResponse(status=204)

    def _go_on(self, step: Step, act: str, number: int) -> HttpResponse:
        """Where a button leads once everything is saved."""
        request, draft = self.request, self.draft
        match act:
            case "autosave" if request.htmx.target == "draft-state":
                response = render_page(request, PAGE, {"draft": draft}, partial="draft-state")
                replace_url(response, draft.get_absolute_url())
                return response
            case "leave":
                toast(
                    request,
                    f"Draft of {draft.title} saved. Find it on Home and under New borrower.",
                )
                return finish_action(request, reverse("borrowers:index"))
            case "next":
                return finish_action(request, draft.get_absolute_url())
            case "back" if step.before:
                return finish_action(request, draft.url(step.before))
        if request.htmx:
            return Onboarding(request, draft).show_step(step, look_at=number)
        return finish_action(request, f"{draft.url(step)}#person-{number}")

    # --- Sending ---

    def _post_review(self) -> HttpResponse:
        """Send the draft once; the reason is saved before, EIN and SSNs never."""
        final = self._final_form(self.request.POST)
        is_valid = final.is_valid()  # First, because it records which numbers are neither SSN nor EIN.
        reason = {"reason": final.data.get("reason", "")}
        self.draft = self.draft.save_step(Step.REVIEW, [reason], resume_at=Step.REVIEW)
        act, _ = self._act()
        if act in ("leave", "back"):
            return self._go_on(Step.REVIEW, act, 0)
        if not is_valid or self.unfinished:
            return self.show_review(final, status=422)
        return self.send_once(final)

    @cached_property
    def parsed(self) -> NewBorrower:
        """The frozen value of a complete draft."""
        address = self.address.address
        people = tuple(form.key_person(address) for form in self.people)
        return NewBorrower(self.business.cleaned_data, address, people)

    def _report(self) -> bytes | None:
        return gzip.decompress(self.draft.asset_report) if self.draft.asset_report else None

    def _write(self, submit_id: str = "", reason: str = "") -> Write:
        business = self.business.cleaned_data
        return Write(
            submit_id=submit_id,
            label=self.draft.title,
            reason=reason,
            subject_kind=Kind.BORROWER,
            identity={name: business[name] for name in IDENTITY_FIELDS},
        )

    def describe_write(self, final: OnboardingSendForm) -> Write:
        return self._write(str(final.cleaned_data["submit_id"]), final.cleaned_data.get("reason", ""))

    def call_service(self, client: Client, final: OnboardingSendForm) -> None:
        arguments = self.parsed.arguments(ein=final.cleaned_data["ein"], ssns=final.ssns)
        client.borrowers.create_commercial(**arguments, asset_report=self._report())
        self.draft.delete()

    def show_rejection(self, error: InvalidInput | Rejected, final: OnboardingSendForm) -> HttpResponse:
        """Back to the step that owns what was rejected."""
        if isinstance(error, InvalidInput):
            refusal = refusal_from_problems(error.problems)
        else:
            refusal = refusal_from_messages(error.reasons or [error.message])
        named = {row[0] for rows in refusal.values() for row in rows}
        step = next((step for step in Step if step in named), Step.REVIEW)
        self.draft.save_refusal(refusal, resume_at=step)
        now = Onboarding(self.request, self.draft)
        if step == Step.REVIEW:
            return now.show_review(final, status=422)
        response = now.show_step(step, status=422)
        push_url(response, self.draft.url(step))
        return response

    def show_success(self, intent: WriteIntent) -> HttpResponse:
        toast(self.request, f"{intent.label} was created.", url=intent.get_absolute_url())
        return finish_action(self.request, reverse("borrowers:detail", args=[intent.subject_uuid]))

    def follow(self, intent: WriteIntent) -> HttpResponse:
        if intent.state == State.CONFIRMED:
            self.draft.delete()
            return show_created(self.request, intent)
        if intent.state in WriteIntent.OPEN:
            raise AlreadySubmitted(intent)
        return self.show_review(status=409, without_effect=intent)


def typed_values(form: LiveForm, *names: str) -> list[str]:
    return [value for name in names if (value := form.cleaned_data.get(name))]


def bind_forms(step: Step, rows: Sequence[Mapping[str, str]], url: str) -> list[LiveForm]:
    """The forms of a step, holding typed text."""
    if step != Step.PEOPLE:
        return [FORMS[step](dict(row), url=url) for row in rows]
    return [
        PersonForm({f"person-{number}-{name}": text for name, text in row.items()}, number=number, url=url)
        for number, row in enumerate(rows)
    ]


def apply_row_action(rows: Rows, act: str, number: int) -> tuple[Rows, int]:
    """The people after an action on one of them, and which of them to look at then."""
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


# --- Which step and field a rejection is about ---


class FieldPath(NamedTuple):
    """A field of one of a step's forms; an empty field is the form as a whole."""

    step: Step
    number: int
    field: str


# The names that the client and the service use, in small letters.
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
    """The field that each clause of a text is about; where it names several, the first."""
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


def refusal_from_problems(problems: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
    """What the client's own rules found, by the names of its arguments."""
    whole_page = FieldPath(Step.REVIEW, 0, "")
    found = [[*next(paths_in(key), whole_page), reason] for key, why in problems.items() for reason in why]
    return {"problems": found, "quotes": []}


def refusal_from_messages(texts: Sequence[str]) -> dict[str, list[Any]]:
    """What the service said; what names no field belongs to the last step."""
    problems: list[Any] = []
    quotes: list[Any] = []
    for text in texts:
        paths = list(dict.fromkeys(paths_in(text)))
        problems += [[*path, SEE_ABOVE] for path in paths if path.field]
        quotes += [[step, text] for step in dict.fromkeys(path.step for path in paths) or [Step.REVIEW]]
    return {"problems": problems, "quotes": quotes}
