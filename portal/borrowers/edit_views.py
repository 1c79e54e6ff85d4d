"""The pages of editing a borrower or a key person: form, check, sending, proof; one address for all of them.

Hides how a step that is repeated, too late, refused or lost finds its way back with everything that was typed.
"""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import ValidationError
from django.core.signing import BadSignature
from django.forms.boundfield import BoundField
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from portal.accounts.roles import requires
from portal.approvals import steps as approvals
from portal.approvals.models import Approval
from portal.audit.chain import append
from portal.audit.intents import AlreadySubmitted, RecordBusy, settle_stale
from portal.audit.models import Actor, WriteIntent
from portal.audit.sightings import saw
from portal.borrowers import editing
from portal.borrowers.edit_forms import LATER, ProfileForm, SendForm
from portal.borrowers.editing import Attempt, Subject, Verdict
from portal.borrowers.reports import InMemory
from portal.gateway import StaffRequest, writing
from portal.registry.models import Kind, Record
from portal.ui.htmx import done, render_page, toast
from portal.ui.uploads import takes_files
from servicing import Conflict, Forbidden, InvalidInput, NotFound, NotSent, Rejected, rules

PAGE = "borrowers/edit.html"
State = WriteIntent.State
View = Callable[..., HttpResponse]


def uploading(view: View) -> View:
    """Keep uploaded reports in memory. Who handles an upload is settled before CSRF looks at what was posted."""

    protected = csrf_protect(view)

    @csrf_exempt
    @takes_files(len(LATER))
    @wraps(view)
    def prepared(request: StaffRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        request.upload_handlers = [InMemory(request, frozenset(LATER))]
        return protected(request, *args, **kwargs)

    return prepared


@uploading
@require_http_methods(["GET", "HEAD", "POST"])
@requires("borrowers.edit")
def edit(request: StaffRequest, borrower_uuid: str) -> HttpResponse:
    """Change the profile of a borrower."""
    record = get_object_or_404(Record, kind=Kind.BORROWER, uuid=borrower_uuid)
    return step(request, Subject(record=record, borrower=record))


@uploading
@require_http_methods(["GET", "HEAD", "POST"])
@requires("borrowers.edit")
def edit_person(request: StaffRequest, borrower_uuid: str, person_uuid: str) -> HttpResponse:
    """Change a key person of a borrower."""
    borrower = get_object_or_404(Record, kind=Kind.BORROWER, uuid=borrower_uuid)
    record = get_object_or_404(Record, kind=Kind.KEY_PERSON, uuid=person_uuid, borrower_uuid=borrower_uuid)
    return step(request, Subject(record=record, borrower=borrower))


def step(request: StaffRequest, subject: Subject) -> HttpResponse:
    """Whatever was asked for."""
    if request.method != "POST":
        if sent := request.GET.get("sent"):
            return result_page(request, subject, sent)
        if approval := request.GET.get("approval"):
            return approved_page(request, subject, approval)
        return form_page(request, subject, subject.form())
    match request.POST.get("action"):
        case "check":
            return checked_field(request, subject)
        case "measure":
            return measured_report(request)
        case "send" | "ask":
            return sent_once(request, subject)
        case "edit":
            return back(request, subject)
    return checked(request, subject, editing.attempt(subject, request.POST))


# --- 1. The form ---


def note_look(request: StaffRequest, subject: Subject) -> None:
    """The form shows what is known of a person to whoever never opened their page."""
    record = subject.record
    saw(
        Actor.of(request),
        "borrowers.edit",
        kind=record.kind,
        uuid=record.uuid,
        label=str(record),
        borrower_uuid=record.borrower_uuid or record.uuid,
        is_repeat=request.method == "POST",
    )


def form_page(
    request: StaffRequest, subject: Subject, form: ProfileForm, *, status: int = 200, **more: Any
) -> HttpResponse:
    """What may be changed, with the last known values."""
    settle_stale()
    context = {
        "form": form,
        "states": rules.US_STATES,
        "unsettled": subject.unsettled(),
        "approvals": approvals.open_ones(subject_uuid=subject.record.uuid),
    }
    return page(request, subject, "form", context | more, status=status)


def page(
    request: StaffRequest, subject: Subject, body: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """One step of the edit."""
    note_look(request, subject)
    frame = {"subject": subject, "record": subject.record, "body": f"borrowers/edit/{body}.html", "at": body}
    return render_page(request, PAGE, frame | context, partial="edit-step", status=status)


def checked_field(request: StaffRequest, subject: Subject) -> HttpResponse:
    """One field as it was left, with its note."""
    form = editing.attempt(subject, request.POST).form
    named = request.htmx.trigger_name or ""
    for field in (form[name] for name in form.typed_names):
        if field.html_name in (named, named.rpartition("_")[0]) and not is_half_typed(field):
            form.is_valid()
            return render_page(request, f"{PAGE}#checked-field", {"field": field})
    return HttpResponse(status=204)


def is_half_typed(field: BoundField) -> bool:
    """Whether only some of a day's boxes are filled: too early to say anything."""
    return isinstance(field.data, list) and not all(field.data)


def back(request: StaffRequest, subject: Subject) -> HttpResponse:
    """The form again, with everything that was typed."""
    typed = proposed(request, subject)[0]
    return form_page(request, subject, editing.attempt(subject, typed).form if typed else subject.form())


# --- 2. The check ---


def checked(request: StaffRequest, subject: Subject, attempt: Attempt) -> HttpResponse:
    """The preview of what was typed, or what stands in its way."""
    form = attempt.form
    if attempt.clashes:
        context = {"form": form, "clashes": attempt.clashes, "is_undecided": attempt.is_undecided}
        return page(request, subject, "conflict", context, status=409)
    if not form.is_valid():
        return form_page(request, subject, form, status=422)
    if not form.changes and not form.later:
        return nothing_to_send(request, subject)
    approval = approval_for(request, subject, form)
    initial = {"reason": form.data.get("reason")}
    return preview_page(request, subject, form, send_form(form, approval, initial=initial), approval=approval)


def approval_for(request: StaffRequest, subject: Subject, form: ProfileForm) -> Approval | None:
    """The approval of these very changes, where one is needed and given."""
    if not editing.waits_for(form):
        return None
    return approvals.approved(request.user, subject.record, editing.meaning(form))


def approved_page(request: StaffRequest, subject: Subject, approval_id: str) -> HttpResponse:
    """Check once more what was approved, before it is sent."""
    try:
        found = Approval.objects.get(
            pk=approval_id, maker_id=request.user.pk, subject_uuid=subject.record.uuid
        )
    except (Approval.DoesNotExist, ValidationError):
        raise Http404 from None
    typed = found.proposal.get("typed")
    if not typed:
        return done(request, found.get_absolute_url())
    return checked(request, subject, editing.attempt(subject, typed))


def nothing_to_send(request: StaffRequest, subject: Subject) -> HttpResponse:
    """Nothing differs: nothing is sent, and the trail says that somebody looked."""
    append(
        Actor.of(request),
        "borrowers.no_change",
        result="no_change",
        subject_kind=subject.record.kind,
        subject_uuid=subject.record.uuid,
        subject_label=subject.label,
        borrower_uuid=subject.borrower.uuid,
    )
    return form_page(request, subject, subject.form(), nothing_to_send=True)


def send_form(form: ProfileForm, approval: Approval | None, *args: Any, **kwargs: Any) -> SendForm:
    """What is typed last for these changes; where a second person comes first, the reason alone."""
    waits = bool(editing.waits_for(form)) and approval is None
    explain = editing.must_explain(form)
    return SendForm(
        *args,
        later=form.later,
        must_explain=explain,
        url=form.url,
        waits=waits,
        is_repeated=unknown_write(approval) is not None,
        zip_warnings=form.zip_warnings,
        **kwargs,
    )


def unknown_write(approval: Approval | None) -> WriteIntent | None:
    """What was sent under this approval before, if its outcome is unknown."""
    if approval is None or approval.intent_id is None or approval.state != Approval.State.UNKNOWN:
        return None
    return WriteIntent.objects.filter(pk=approval.intent_id).first()


def preview_page(
    request: StaffRequest,
    subject: Subject,
    form: ProfileForm,
    final: SendForm,
    *,
    approval: Approval | None = None,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    """Field, now, new; the body that will be sent; and what is typed last."""
    try:
        body = editing.preview(request.servicing, subject, form)
    except InvalidInput as error:
        form.add_problems(error.problems)
        return form_page(request, subject, form, status=422)
    proposal, valid_until = editing.sign(subject, request.user, form.typed)
    context = {
        "form": form,
        "final": final,
        "changes": editing.changed(form),
        "unchanged": editing.unchanged(form),
        "payload": body,
        "payload_text": json.dumps(body, indent=2, ensure_ascii=False),
        "proposal": proposal,
        "valid_until": valid_until,
        "approval": approval,
        "unknown": unknown_write(approval),
        "waits_for": editing.waits_for(form) if approval is None else [],
    }
    return page(request, subject, "preview", context | more, status=status)


def measured_report(request: StaffRequest) -> HttpResponse:
    """How long a chosen file is before and after compression, or why it is refused. Nothing of it is kept."""
    for name, file in request.FILES.items():
        try:
            found: dict[str, Any] = {"sizes": SendForm.base_fields[name].clean(file).sizes}
        except ValidationError as error:
            found = {"problems": error.messages}
        return render_page(request, f"{PAGE}#measured-report", found)
    return HttpResponse(status=204)


# --- 3. The sending ---


def proposed(request: StaffRequest, subject: Subject) -> tuple[dict[str, str], bool]:
    """What was typed on the form, and whether it was checked too long ago; empty if there is no such thing."""
    try:
        typed, is_late = editing.unsign(subject, request.user, request.POST.get("proposal", ""))
    except BadSignature:
        return {}, False
    return typed | {"reason": request.POST.get("reason", "")}, is_late


def sent_once(request: StaffRequest, subject: Subject) -> HttpResponse:
    """Send what was checked, or ask for approval, unless it was sent before, is too old, or the copy moved."""
    if earlier := earlier_write(request):
        return follow(request, subject, earlier)
    typed, is_late = proposed(request, subject)
    if not typed:
        return form_page(request, subject, subject.form(), status=422, is_lost=True)
    attempt = editing.attempt(subject, typed)
    form = attempt.form
    if attempt.clashes or not form.is_valid() or not (form.changes or form.later):
        return checked(request, subject, attempt)
    approval = approval_for(request, subject, form)
    must_ask = bool(editing.waits_for(form)) and approval is None
    final = send_form(form, approval, request.POST, request.FILES)
    is_other = must_ask != (
        request.POST["action"] == "ask"
    )  # It was approved, or the approval ended, in between.
    if is_late or is_other or not final.is_valid():
        return preview_page(request, subject, form, final, approval=approval, status=422, is_late=is_late)
    if must_ask:
        return ask(request, subject, form, final.cleaned_data["reason"])
    return send(request, subject, form, final, approval)


def ask(request: StaffRequest, subject: Subject, form: ProfileForm, reason: str) -> HttpResponse:
    """Let the changes wait for a second person."""
    approval = editing.asked(subject, form, request.user, reason)
    approvals.ask(Actor.of(request), approval, editing.recorded(form, {}))
    toast(request, "Asked for approval. Nothing was sent yet.")
    return done(request, approval.get_absolute_url())


def earlier_write(request: StaffRequest) -> WriteIntent | None:
    """What this very form sent before."""
    submit_id = request.POST.get("submit_id", "").replace("\0", "")
    return WriteIntent.objects.filter(submit_id=submit_id).first() if submit_id else None


def send(
    request: StaffRequest, subject: Subject, form: ProfileForm, final: SendForm, approval: Approval | None
) -> HttpResponse:
    """The one request; what cannot be corrected here goes up to the gateway."""
    given = final.cleaned_data
    write = editing.write(subject, form, given, approval)
    try:
        editing.send(writing(request, write), subject, form, given)
    except approvals.Gone as error:
        return done(request, error.approval.get_absolute_url())
    except AlreadySubmitted as error:
        return follow(request, subject, error.intent)
    except RecordBusy as error:
        again = send_form(form, approval, initial={"reason": given["reason"]})
        return preview_page(request, subject, form, again, approval=approval, status=409, busy=error.intent)
    except (NotFound, Forbidden):
        raise
    except InvalidInput as error:
        form.add_problems(error.problems)
        return form_page(request, subject, form, status=422)
    except Rejected as error:
        form.add_refusal(error.reasons or [error.message])
        return form_page(request, subject, form, status=409 if isinstance(error, Conflict) else 422)
    except NotSent as error:
        approvals.follow_writes()
        again = send_form(form, approval, initial={"reason": given["reason"]})
        return preview_page(
            request, subject, form, again, approval=approval, status=503, not_sent=error.message
        )
    approvals.follow_writes()
    intent = WriteIntent.objects.get(submit_id=write.submit_id)
    if intent.state == State.CONFIRMED:
        toast(request, summary(editing.proof(subject, intent)), url=intent.get_absolute_url())
    return follow(request, subject, intent)


def summary(proof: list[editing.Proof]) -> str:
    """How the fields came back: "2 fields confirmed, 1 altered by the service"."""
    counts = {verdict: sum(each.verdict == verdict for each in proof) for verdict in Verdict}
    told = [f"{count} {verdict.value.lower()}" for verdict, count in counts.items() if count]
    return f"Sent: {', '.join(told)}"


def follow(request: StaffRequest, subject: Subject, intent: WriteIntent) -> HttpResponse:
    """On to what came of a sending."""
    if (intent.operation, intent.subject_uuid) != (subject.operation, subject.record.uuid):
        raise AlreadySubmitted(intent)
    return done(request, f"{subject.url}?sent={intent.pk}")


# --- 4. The result ---


def result_page(request: StaffRequest, subject: Subject, sent: str) -> HttpResponse:
    """What came of one sending: each field as it was sent and as it was answered."""
    try:
        intent = WriteIntent.objects.get(
            pk=sent, operation=subject.operation, subject_uuid=subject.record.uuid
        )
    except (WriteIntent.DoesNotExist, ValidationError):
        raise Http404 from None
    proof = editing.proof(subject, intent) if intent.state == State.CONFIRMED else []
    context = {"intent": intent, "proof": proof, "summary": summary(proof)}
    return page(request, subject, "result", context)
