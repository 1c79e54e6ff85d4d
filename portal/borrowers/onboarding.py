"""Onboarding of a commercial borrower: five steps with one draft; the last step sends it.

Hides that every button first saves what was typed. EIN and SSNs go from the last form into the request and are never
stored.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
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
from portal.audit.view_log import count_suggestions, log_list, log_page
from portal.audit.writes import AlreadySubmitted, Write
from portal.borrowers.duplicates import CREATION, IDENTITY_FIELDS, Match, find_matches, open_creations
from portal.borrowers.flow import Flow, field_just_left
from portal.borrowers.forms import LiveForm
from portal.borrowers.models import Draft, DraftChanged, Step, submit_ids
from portal.borrowers.onboarding_forms import OnboardingSendForm, PersonForm
from portal.borrowers.rejections import refusal_of
from portal.borrowers.reports import Report
from portal.borrowers.steps import FORMS, MAX_PEOPLE, DraftSteps
from portal.gateway.client import StaffRequest
from portal.records.models import Kind
from portal.ui import wording
from portal.ui.htmx import finish_action, render_page, toast
from portal.ui.uploads import accepts_files
from servicing import Address, Client, InvalidInput, NewKeyPerson, Rejected, rules

State = WriteIntent.State
Rows = list[dict[str, str]]
"""The typed text of each form of a step."""
PAGE = "borrowers/create.html"
PREVIEW_EIN = "000000000"

# --- Addresses ---


@require_safe
@requires("borrowers.create")
def create(request: StaffRequest) -> HttpResponse:
    """The first step of a new draft, which is saved once something is typed, and the person's earlier drafts."""
    Draft.objects.forget_old()
    first = {Step.BUSINESS: [{"first_name": request.GET.get("name", "")[: rules.MAX_LEGAL_NAME_CHARACTERS]}]}
    drafts = Draft.objects.filter(owner=request.user)
    log_list(request, count=len(drafts))
    return Onboarding(request, Draft(owner=request.user, data=first)).show_step(Step.BUSINESS, drafts=drafts)


@accepts_files(1)
@requires("borrowers.create")
def draft(request: StaffRequest, draft_id: UUID, step: str) -> HttpResponse:
    """Show a step with what was typed, or do what its buttons say."""
    if step not in Step.values:
        raise Http404
    found = Draft.objects.filter(pk=draft_id).first()
    if found and found.owner_id != request.user.pk:
        raise Http404
    if not found and (request.method != "POST" or step != Step.BUSINESS):
        return redirect_gone_draft(request, draft_id)
    onboarding = Onboarding(request, found or Draft(pk=draft_id, owner=request.user))
    if request.method == "POST":
        try:
            return onboarding.post(Step(step))
        except Draft.DoesNotExist:  # It was just sent or discarded.
            return redirect_gone_draft(request, draft_id)
    title = onboarding.draft.title
    subject = {"subject_kind": "draft", "subject_uuid": str(draft_id), "subject_label": f"draft of {title}"}
    log_page(request, **subject)
    return onboarding.show_step(Step(step))


@require_POST
@requires("borrowers.create")
def discard_draft(request: StaffRequest, draft_id: UUID) -> HttpResponse:
    for each in Draft.objects.filter(pk=draft_id, owner=request.user):
        each.delete()
        toast(request, f"Draft of {each.title} discarded.")
    return finish_action(request, reverse("borrowers:index"))


def redirect_gone_draft(request: StaffRequest, draft_id: UUID) -> HttpResponse:
    """Redirect from a draft that was sent or discarded to the borrower it created, or say what happened."""
    sent = WriteIntent.objects.filter(submit_id__in=submit_ids(draft_id), actor_id=request.user.pk)
    if intent := sent.filter(state=State.CONFIRMED).first():
        return show_created(request, intent)
    if request.htmx.target == "draft-state":
        return render_page(request, PAGE, {"draft": None}, partial="draft-state", status=409)
    if request.htmx:
        return finish_action(request, request.path)
    return render_page(request, "borrowers/gone.html", status=404)


def show_created(request: StaffRequest, intent: WriteIntent) -> HttpResponse:
    messages.info(request, f"{intent.label} was already created. Nothing was sent twice.")
    is_known = intent.subject_kind == Kind.BORROWER and intent.subject_uuid
    url = reverse("borrowers:detail", args=[intent.subject_uuid]) if is_known else intent.get_absolute_url()
    return finish_action(request, url)


# --- The flow ---


@dataclass(frozen=True)
class NewBorrower:
    """A complete draft, parsed once. EIN, SSNs and the report are added when it is sent."""

    business: Mapping[str, Any]
    address: Address
    people: Sequence[NewKeyPerson]

    def arguments(self, *, ein: str, ssns: Iterable[str | None]) -> dict[str, Any]:
        """The arguments of the client's call."""
        people = [structs.replace(person, ssn=ssn) for person, ssn in zip(self.people, ssns, strict=True)]
        return dict(self.business, ein=ein, address=self.address, key_people=people)


class Onboarding(Flow):
    """One draft in one request."""

    def __init__(self, request: StaffRequest, draft: Draft) -> None:
        super().__init__(request)
        self.steps = DraftSteps(draft)

    @property
    def draft(self) -> Draft:
        return self.steps.draft

    # --- Duplicates ---

    def matches(self, step: Step) -> list[Match]:
        """Records with an email, phone or name typed on this step; on the last step, with those of the business."""
        if step == Step.PEOPLE:
            people = self.steps.people
            return find_matches(value for form in people for value in typed_values(form, "email", "phone"))
        return self._business_matches if step in (Step.BUSINESS, Step.REVIEW) else []

    @cached_property
    def _business_matches(self) -> list[Match]:
        return find_matches(typed_values(self.steps.business, *IDENTITY_FIELDS))

    @property
    def similar_borrowers(self) -> list[Match]:
        return [match for match in self._business_matches if match.record.kind == Kind.BORROWER]

    @cached_property
    def unconfirmed_duplicates(self) -> list[tuple[WriteIntent, list[str]]]:
        """Similar creations with an unknown outcome. Equal ones are left out, since sending blocks them."""
        if not self.steps.is_complete(Step.BUSINESS):
            return []
        fingerprint = self._write().fingerprint(CREATION)
        contacts = typed_values(self.steps.business, *IDENTITY_FIELDS)
        found = open_creations(contacts, except_for=str(self.draft.submit_id))
        return [(intent, shared) for intent, shared in found if intent.fingerprint != fingerprint]

    def _annotate_people(self, matches: Sequence[Match]) -> None:
        """Add to each person's card the matches of email and phone, and the business's address."""
        first: dict[str, int] = {}
        for form in self.steps.people:
            if address := self.steps.address.one_line:
                form["same_address"].label = f"Same address as the business: {address}"
            for field in ("email", "phone"):
                for value in map(str.casefold, typed_values(form, field)):
                    if form.number != first.setdefault(value, form.number):
                        form.warn(field, f"Also entered for person {first[value] + 1}.")
                    for match in matches:
                        if value in match.shared:
                            form.warn(
                                field, f"Also on {wording.with_full_stop(match.description)} Same person?"
                            )

    # --- The pages ---

    def show_step(self, step: Step, *, status: int = 200, **more: Any) -> HttpResponse:
        if step == Step.REVIEW:
            return self.show_review(status=status)
        context = self._context(step) | more
        return render_page(self.request, PAGE, context, partial="wizard", status=status)

    def _context(self, step: Step) -> dict[str, Any]:
        if matches := self.matches(step):
            count_suggestions(self.request)
        if step == Step.PEOPLE:
            self._annotate_people(matches)
        return {
            "onboarding": self,
            "steps": self.steps,
            "draft": self.draft,
            "opened": self.draft.page_version(step),
            "step": step,
            "forms": self.steps.forms(step),
            "summary": self.steps.summary(step),
            "requirements": self.steps.requirements(step),
            "matches": matches,
            "states": rules.US_STATES,
            "countries": rules.COUNTRIES,
            "max_people": MAX_PEOPLE,
            "upload_limit": settings.UPLOAD_LIMIT_MB,
        }

    def show_review(
        self, final: OnboardingSendForm | None = None, *, status: int = 200, **notice: Any
    ) -> HttpResponse:
        """Render everything in reading order, and the final form."""
        earlier = WriteIntent.objects.filter(submit_id=str(self.draft.submit_id)).first()
        if earlier and earlier.state == State.CONFIRMED:
            return self.follow(earlier)
        if earlier and earlier.state in WriteIntent.WITHOUT_EFFECT:
            self.draft.renew_submit_id()
        open_intent = earlier if earlier and earlier.state in WriteIntent.OPEN else None
        if final:
            self.steps.add_service_errors(Step.REVIEW, [final])
            final.mark_cleared()
        self.steps.final = final or self._final_form()
        context = self._context(Step.REVIEW)
        similar = self.similar_borrowers
        context |= {
            "form": self.steps.final,
            "similar": similar,
            "matches": [match for match in context["matches"] if match not in similar],
            "open_intent": open_intent,
            "about": open_intent or notice.get("blocked_by") or notice.get("without_effect"),
            "preview": None if self.steps.unfinished else self._preview(),
        }
        return render_page(self.request, PAGE, context | notice, partial="wizard", status=status)

    def _final_form(self, data: Any = None) -> OnboardingSendForm:
        draft, people = self.draft, self.steps.people
        typed = [draft.data.get(step) for step in FORMS]
        report = (draft.asset_report_name, draft.asset_report_size, draft.asset_report_compressed)
        own = [person for person in people if not person.cleaned_data.get("same_address")]
        return OnboardingSendForm(
            data,
            # The version covers everything that would be sent, so nothing is sent that was not on the page.
            version=hashlib.sha256(json.dumps([typed, report]).encode()).hexdigest()[:16],
            people=[Truncator(person.name or person.subject.capitalize()).chars(32) for person in people],
            must_explain=bool(self.similar_borrowers or self.unconfirmed_duplicates),
            zip_warnings=[text for form in (self.steps.address, *own) for text in form.zip_warnings],
            phone_warnings=[text for form in (self.steps.business, *people) for text in form.phone_warnings],
            initial=draft.typed(Step.REVIEW)[0],
        )

    def _preview(self) -> Any:
        """The request as it would be recorded, with EIN, SSN, dates of birth and the report masked."""
        arguments = self._new_borrower.arguments(ein=PREVIEW_EIN, ssns=[None] * len(self.steps.people))
        report = self._report()
        try:
            return self.request.servicing.preview(
                lambda it: it.borrowers.create_commercial(**arguments, asset_report=report)
            ).body
        except InvalidInput:  # The errors are shown when it is sent.
            return None

    # --- Saving a step ---

    def post(self, step: Step) -> HttpResponse:
        """Save the posted step, even with errors, then do what its button says."""
        if step == Step.REVIEW:
            return self._post_review()
        act, number = self._act()
        forms = self.steps.read_posted(self.request, step)
        if act == "check":
            return self._check_field(step, forms)
        if step == Step.REPORTS and act == "upload" and not self.request.FILES:
            forms[0].add_error("asset_report", "Choose a file.")
        is_valid = not [form for form in forms if form.errors]  # Every form is checked.
        if act == "next" and not is_valid and not self.draft.is_saved:
            return self.show_step(step, status=422)
        rows = [{name: text for name, text in form.typed.items() if text} for form in forms]
        if step == Step.REPORTS and act != "clear" and (refused := self._refused_report(forms[0])):
            rows[0]["refused"] = refused
        if step == Step.PEOPLE:
            if act in ("add", "duplicate") and len(rows) >= MAX_PEOPLE:
                toast(self.request, f"Up to {MAX_PEOPLE} people can be sent.")
            numbers = [form.number for form in forms if isinstance(form, PersonForm)]
            rows, number = apply_row_action(
                rows, act, numbers.index(number) if number in numbers else len(rows)
            )
        report = Report("", 0, b"") if act == "clear" else forms[0].cleaned_data.get("asset_report")
        resume_at = (act == "next" and is_valid and step.after) or step
        if act == "copy" and self.draft.is_saved:
            saved = self.draft.copy().save_step(step, rows, resume_at=step, report=report)
            toast(self.request, "Saved as a separate draft.")
            return finish_action(self.request, saved.url(step))
        opened = self.request.POST.get("opened", "")
        try:
            self.steps.draft = self.draft.save_step(
                step, rows, resume_at=resume_at, report=report, opened=opened
            )
        except DraftChanged as changed:
            return self._show_both(step, act, changed.latest)
        if act in ("next", "try", "upload") and resume_at == step:
            return self.show_step(step, status=200 if is_valid else 422, act=act)
        return self._go_on(step, act, number)

    def _show_both(self, step: Step, act: str, latest: Draft) -> HttpResponse:
        """Show what was typed and not saved, because another page saved the step since. The person decides."""
        self.steps.draft = latest
        if act == "autosave":
            context = {"draft": latest, "is_behind": True}
            return render_page(self.request, PAGE, context, partial="draft-state", status=409)
        return self.show_step(step, status=409, is_behind=True)

    def _refused_report(self, form: LiveForm) -> str:
        """The name of a rejected file and the reason, until another file is accepted or this one removed."""
        if form.cleaned_data.get("asset_report"):
            return ""
        file = self.request.FILES.get("asset_report")
        if file and form.errors:
            reason = " ".join(map(str, form.errors.get("asset_report", ())))
            return f"{Truncator(str(file.name)).chars(80)}: {reason}"
        return self.steps.refused_report

    def _act(self) -> tuple[str, int]:
        """The posted action and the number of the person it is about."""
        if self.request.htmx.target == "draft-state":
            return "autosave", 0
        act, _, number = self.request.POST.get("act", "next").partition("-")
        return act, int(number) if re.fullmatch("[0-9]{1,4}", number) else 0

    def _check_field(self, step: Step, forms: Sequence[LiveForm]) -> HttpResponse:
        """Render one field as left, with its note, and the requirements that its value meets."""
        for form in forms:
            form.forgive_missing()
        field = field_just_left(self.request, forms)
        if field is None:
            return HttpResponse(status=204)
        return render_page(self.request, f"{PAGE}#checked-field", self._context(step) | {"field": field})

    def _go_on(self, step: Step, act: str, number: int) -> HttpResponse:
        """Go where the button leads, once everything is saved."""
        request, draft = self.request, self.draft
        match act:
            case "autosave" if request.htmx.target == "draft-state":
                response = render_page(request, PAGE, {"draft": draft}, partial="draft-state")
                replace_url(response, draft.get_absolute_url())
                return response
            case "leave":
                toast(request, f"Draft of {draft.title} saved. Find it on Home and under New borrower.")
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
        """Send the draft once. The reason, and whose SSN was typed, are saved first; EIN and SSNs never."""
        final = self._final_form(self.request.POST)
        is_valid = final.is_valid()  # First, because it records which numbers are neither SSN nor EIN.
        typed = {"reason": final.data.get("reason", ""), "cleared": "\n".join(final.typed_people)}
        self.steps.draft = self.draft.save_step(Step.REVIEW, [typed], resume_at=Step.REVIEW)
        act, _ = self._act()
        if act in ("leave", "back"):
            return self._go_on(Step.REVIEW, act, 0)
        if not is_valid or self.steps.unfinished:
            return self.show_review(final, status=422)
        return self.send_once(final)

    @cached_property
    def _new_borrower(self) -> NewBorrower:
        address = self.steps.address.address
        people = tuple(form.key_person(address) for form in self.steps.people)
        return NewBorrower(self.steps.business.cleaned_data, address, people)

    def _report(self) -> bytes | None:
        return gzip.decompress(self.draft.asset_report) if self.draft.asset_report_size else None

    def _write(self, submit_id: str = "", reason: str = "") -> Write:
        business = self.steps.business.cleaned_data
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
        arguments = self._new_borrower.arguments(ein=final.cleaned_data["ein"], ssns=final.ssns)
        client.borrowers.create_commercial(**arguments, asset_report=self._report())
        self.draft.delete()

    def show_rejection(self, error: InvalidInput | Rejected, final: OnboardingSendForm) -> HttpResponse:
        """Go back to the first step with a rejected field."""
        refusal = refusal_of(error)
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


def apply_row_action(rows: Rows, act: str, number: int) -> tuple[Rows, int]:
    """Add, copy, remove or move a person; return the people and the number of the one to show."""
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
