"""The pages of onboarding: five steps over one draft, of which the last one sends.

Hides that every step is one address for page and fragment, that whatever a button does what was typed is kept first,
and how a sending that was repeated, refused or lost finds its way back to the page.
"""

import re
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.forms.boundfield import BoundField
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.text import Truncator
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.roles import requires
from portal.audit.intents import AlreadySubmitted, Blocked
from portal.audit.models import WriteIntent
from portal.audit.sightings import log_list, log_page
from portal.borrowers import onboarding
from portal.borrowers.forms import PersonForm, ReviewForm, StepForm
from portal.borrowers.models import Draft, Step
from portal.borrowers.onboarding import FORMS, MAX_PEOPLE, Onboarding
from portal.borrowers.reports import Report
from portal.gateway import StaffRequest, writing
from portal.registry.models import Kind
from portal.ui.htmx import done, render_page, toast
from portal.ui.uploads import takes_files
from servicing import InvalidInput, NotSent, Rejected, rules

State = WriteIntent.State
PAGE = "borrowers/create.html"
SHOWN_MASKED = "000000000"
"""Stands in for an EIN where the request is only previewed."""


@require_safe
@requires("borrowers.create")
def create(request: StaffRequest) -> HttpResponse:
    """The first step of a draft that is kept once something is typed; and the drafts begun before."""
    Draft.objects.forget_old()
    begun = {Step.BUSINESS: [{"first_name": request.GET.get("name", "")[: rules.MAX_LEGAL_NAME]}]}
    new, drafts = Onboarding(Draft(owner=request.user, data=begun)), Draft.objects.filter(owner=request.user)
    log_list(request, count=len(drafts))
    return step_page(request, new, Step.BUSINESS, drafts=drafts)


@takes_files(1)
@requires("borrowers.create")
def draft(request: StaffRequest, draft_id: UUID, step: str) -> HttpResponse:
    """One step: what was typed on it, or whatever one of its buttons does."""
    if step not in Step.values:
        raise Http404
    at = Step(step)
    found = Draft.objects.filter(pk=draft_id).first()
    if found and found.owner_id != request.user.pk:
        raise Http404
    if request.method == "POST":
        try:
            return sent(request, found) if at == Step.REVIEW else saved(request, found, draft_id, at)
        except Draft.DoesNotExist:  # it is gone, perhaps since a moment ago
            return sent_before(request)
    if not found:
        return gone(request)
    log_page(request, kind="draft", uuid=str(found.pk), label=f"draft of {found.title}", borrower_uuid="")
    return (
        review_page(request, Onboarding(found))
        if at == Step.REVIEW
        else step_page(request, Onboarding(found), at)
    )


@require_POST
@requires("borrowers.create")
def discard_draft(request: StaffRequest, draft_id: UUID) -> HttpResponse:
    """Forget a draft; nothing of it was sent."""
    for each in Draft.objects.filter(pk=draft_id, owner=request.user):
        each.delete()
        toast(request, f"The draft of {each.title} was discarded.")
    return done(request, reverse("borrowers:index"))


# --- Saving a step ---


def saved(request: StaffRequest, found: Draft | None, draft_id: UUID, step: Step) -> HttpResponse:
    """Keep what was posted of a step, whatever is wrong with it; then do what its button says."""
    if not found and step != Step.BUSINESS:
        raise Draft.DoesNotExist
    kept = found or Draft(pk=draft_id, owner=request.user)
    act, number = act_of(request)
    forms = posted(request, kept, step)
    if act == "check":
        return checked(request, Onboarding(kept, {step: forms}), step)
    is_valid = not [form for form in forms if form.errors]
    if act == "next" and not is_valid and not found:
        return step_page(request, Onboarding(kept, {step: forms}), step, status=422)
    rows = [form.typed() for form in forms]
    if step == Step.PEOPLE:
        rows, number = onboarding.rearranged(rows, act, number)
    resume_at = step.after if act == "next" and is_valid else step
    kept = onboarding.keep(kept, step, rows, resume_at=resume_at or step, report=report_of(forms))
    if act == "clear":
        onboarding.detach(kept)
    if act in ("next", "try", "upload") and resume_at == step:
        return step_page(
            request, Onboarding(kept, {step: forms}), step, status=200 if is_valid else 422, act=act
        )
    return answered(request, kept, step, act, number)


def answered(request: StaffRequest, kept: Draft, step: Step, act: str, number: int) -> HttpResponse:
    """Where a button leads once everything is kept."""
    match act:
        case "autosave" if request.htmx.target == "draft-state":
            response = render_page(request, PAGE, {"draft": kept}, partial="draft-state")
            response["HX-Replace-Url"] = kept.get_absolute_url()
            return response
        case "leave":
            toast(request, f"The draft of {kept.title} is saved. It waits under Home and under New borrower.")
            return done(request, reverse("borrowers:index"))
        case "next":
            return done(request, kept.get_absolute_url())
        case "back" if step.before:
            return done(request, kept.url(step.before))
    if request.htmx:
        return step_page(request, Onboarding(kept), step, look_at=number)
    return done(request, f"{kept.url(step)}#person-{number}")


def posted(request: StaffRequest, kept: Draft, step: Step) -> list[StepForm]:
    """The forms of a step as they were posted."""
    url = kept.url(step)
    if step != Step.PEOPLE:
        return [FORMS[step](request.POST, request.FILES, action=url)]
    numbers = {int(found[1]) for name in request.POST if (found := re.match("person-([0-9]{1,2})-", name))}
    count = next(number for number in range(101) if number not in numbers)
    return [
        PersonForm(request.POST, number=number, action=url)
        for number in range(min(max(count, 1), MAX_PEOPLE))
    ]


def act_of(request: StaffRequest) -> tuple[str, int]:
    """What to do, and with which of the people."""
    if request.htmx.target == "draft-state":
        return "autosave", 0
    act, _, number = request.POST.get("act", "next").partition("-")
    return act, int(number) if re.fullmatch("[0-9]{1,2}", number) else 0


def report_of(forms: list[StepForm]) -> Report | None:
    """The report that came with a step, if one did and it passed."""
    report: Report | None = forms[0].cleaned_data.get("asset_report")
    return report


def checked(request: StaffRequest, found: Onboarding, step: Step) -> HttpResponse:
    """One field as it was left, with its note, and what the service requires as it stands now."""
    for form in found.forms(step):
        form.forgive_missing()
    context = step_context(found, step)
    named = request.htmx.trigger_name or ""
    for field in (field for form in found.forms(step) for field in form):
        if field.html_name in (named, named.rpartition("_")[0]) and not is_half_typed(field):
            return render_page(request, "borrowers/checked_field.html", context | {"field": field})
    return HttpResponse(status=204)


def is_half_typed(field: BoundField) -> bool:
    """Whether only some of a day's boxes are filled: too early to say anything."""
    return isinstance(field.data, list) and not all(field.data)


# --- Pages ---


def step_page(
    request: StaffRequest, found: Onboarding, step: Step, *, status: int = 200, **more: Any
) -> HttpResponse:
    """One step of the wizard."""
    return render_page(request, PAGE, step_context(found, step) | more, partial="wizard", status=status)


def step_context(found: Onboarding, step: Step) -> dict[str, Any]:
    """What every page of the wizard shows."""
    matches = found.matches(step)
    if step == Step.PEOPLE:
        found.annotate_people(matches)
    return {
        "onboarding": found,
        "draft": found.draft,
        "step": step,
        "body": f"borrowers/steps/{step.value}.html",
        "lines": [found.line(each) for each in Step],
        "forms": found.forms(step) if step in FORMS else [],
        "summary": found.summary(step),
        "requirements": found.requirements(step),
        "matches": matches,
        "states": rules.US_STATES,
        "countries": rules.COUNTRIES,
        "max_people": MAX_PEOPLE,
        "upload_limit": settings.UPLOAD_LIMIT_MB,
    }


def review_page(
    request: StaffRequest,
    found: Onboarding,
    form: ReviewForm | None = None,
    *,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    """Everything in reading order, and what is typed last."""
    form = form or review_form(found)
    earlier = onboarding.earlier(found.draft.submit_id)
    if earlier and earlier.state == State.CONFIRMED:
        return follow(request, found, earlier)
    if earlier and earlier.state in WriteIntent.CAME_TO_NOTHING:
        onboarding.renew(found.draft)
    found.review = form
    if form.is_bound:
        found.hold_refusal_against(Step.REVIEW, [form])
    unfinished, similar = found.unfinished, found.similar()
    context = step_context(found, Step.REVIEW)
    context |= {
        "form": form,
        "similar": similar,
        "in_the_air": found.in_the_air(),
        "matches": [match for match in context["matches"] if match not in similar],
        "open_intent": earlier if earlier and earlier.state in WriteIntent.OPEN else None,
        "unfinished": unfinished,
        "preview": None if unfinished else preview(request, found),
    }
    return render_page(request, PAGE, context | more, partial="wizard", status=status)


def review_form(found: Onboarding, data: Any = None) -> ReviewForm:
    """The form of the last step; what is kept of it is the reason for creating an equal borrower."""
    names = [Truncator(person.name or person.subject.capitalize()).chars(32) for person in found.people]
    return ReviewForm(
        data,
        version=found.version,
        people=names,
        must_explain=bool(found.similar() or found.in_the_air()),
        zip_warnings=found.zip_warnings,
        initial=found.draft.typed(Step.REVIEW)[0],
    )


def preview(request: StaffRequest, found: Onboarding) -> Any:
    """The request as it would be recorded: EIN, SSN, dates of birth and the report masked."""
    arguments = found.arguments(ein=SHOWN_MASKED, ssns=[None] * len(found.people))
    try:
        return request.servicing.preview(lambda it: it.borrowers.create_commercial(**arguments)).body
    except InvalidInput:  # told when it is sent
        return None


def gone(request: StaffRequest) -> HttpResponse:
    """This draft is no longer here, or never was."""
    if request.htmx.target == "draft-state":
        return render_page(request, PAGE, {"draft": None}, partial="draft-state", status=409)
    if request.htmx:
        return done(request, request.path)
    return render_page(request, "borrowers/gone.html", status=404)


# --- Sending ---


def sent(request: StaffRequest, found: Draft | None) -> HttpResponse:
    """Send the draft once; everything but EIN and SSNs is kept before."""
    if not found:
        raise Draft.DoesNotExist
    form = review_form(Onboarding(found), request.POST)
    is_valid = form.is_valid()  # Looked at first: it records what is said to be neither SSN nor EIN.
    last = {"reason": form.data.get("reason", "")}
    kept = onboarding.keep(found, Step.REVIEW, [last], resume_at=Step.REVIEW)
    act, _ = act_of(request)
    if act in ("leave", "back"):
        return answered(request, kept, Step.REVIEW, act, 0)
    now = Onboarding(kept)
    if not is_valid or now.unfinished:
        return review_page(request, now, form, status=422)
    return send(request, now, form)


def send(request: StaffRequest, now: Onboarding, form: ReviewForm) -> HttpResponse:
    """The one request; what cannot be corrected here goes up to the gateway."""
    submit_id = str(form.cleaned_data["submit_id"])
    write = now.write(submit_id, form.cleaned_data.get("reason", ""))
    try:
        borrower = onboarding.send(writing(request, write), now, ein=form.cleaned_data["ein"], ssns=form.ssns)
    except AlreadySubmitted as error:
        return follow(request, now, error.intent)
    except Blocked as error:
        return review_page(request, now, review_form(now), status=409, blocked_by=error.intent)
    except (InvalidInput, Rejected):
        return refused(request, Onboarding(Draft.objects.get(pk=now.draft.pk)), form)
    except NotSent as error:
        onboarding.renew(now.draft)
        return review_page(request, now, review_form(now), status=503, not_sent=error.message)
    intent = onboarding.earlier(submit_id)
    toast(request, f"{write.label} was created.", url=intent.get_absolute_url() if intent else "")
    return done(request, reverse("borrowers:detail", args=[borrower.uuid]))


def refused(request: StaffRequest, now: Onboarding, form: ReviewForm) -> HttpResponse:
    """Back on the step that owns what was refused."""
    step = Step(now.draft.step)
    if step == Step.REVIEW:
        return review_page(request, now, form, status=422)
    response = step_page(request, now, step, status=422)
    response["HX-Push-Url"] = now.draft.url(step)
    return response


def follow(request: StaffRequest, now: Onboarding, intent: WriteIntent) -> HttpResponse:
    """This page was sent before: go to what came of it."""
    if intent.state == State.CONFIRMED:
        now.draft.delete()
        return created_before(request, intent)
    if intent.state in WriteIntent.OPEN:
        raise AlreadySubmitted(intent)
    if now.draft.submit_id == UUID(intent.submit_id):
        onboarding.renew(now.draft)
    return review_page(request, now, review_form(now), status=409, came_to_nothing=intent)


def sent_before(request: StaffRequest) -> HttpResponse:
    """The draft is gone: if this very page sent it, go to what it created."""
    submit_id = re.fullmatch("[0-9a-f-]{36}", request.POST.get("submit_id", ""))
    intent = onboarding.earlier(submit_id[0]) if submit_id else None
    if intent and intent.actor_id == request.user.pk and intent.state == State.CONFIRMED:
        return created_before(request, intent)
    return gone(request)


def created_before(request: StaffRequest, intent: WriteIntent) -> HttpResponse:
    messages.info(request, f"{intent.label} was created before; nothing was sent twice.")
    is_known = intent.subject_kind == Kind.BORROWER and intent.subject_uuid
    url = reverse("borrowers:detail", args=[intent.subject_uuid]) if is_known else intent.get_absolute_url()
    return done(request, url)
