"""Editing a borrower or a key person: form, review, sending and result, at one address.

Hides that what was typed travels from the form to the sending signed, for one person and one record, for 15 minutes
and without SSN and reports; that values changed in between are merged; and that some changes need a second person's
approval.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

import servicing
from portal.accounts.roles import requires
from portal.approvals import lifecycle as approvals
from portal.approvals.models import Approval
from portal.audit.chain import append, audit_subject, entry_subject
from portal.audit.models import Actor, Entry, WriteIntent
from portal.audit.view_log import log_view
from portal.audit.writes import AlreadySubmitted, RecordBusy, Write, close_stale_writes
from portal.borrowers.flow import Flow, field_just_left
from portal.borrowers.forms import ADDRESS_FIELDS, NAMES
from portal.borrowers.profile_forms import (
    GIVEN_LATER,
    REPORTS,
    BusinessProfile,
    IndividualProfile,
    KeyPersonProfile,
    KnownValues,
    ProfileForm,
    ProfileSendForm,
    UnknownProfile,
)
from portal.borrowers.profile_rows import (
    NEVER_RETURNED,
    Clash,
    ConfirmationCheck,
    FieldResult,
    changes_of,
    compare,
    find_clashes,
    known_values,
    summary_of,
    text_of,
    unit_of,
)
from portal.borrowers.reports import Report
from portal.gateway.client import StaffRequest
from portal.records import store
from portal.records.models import Borrower, KeyPerson, Snapshot
from portal.ui.htmx import finish_action, render_page, toast
from portal.ui.uploads import accepts_files
from servicing import (
    Client,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Rejected,
    codec,
    rules,
)
from servicing.masking import masked_text

State = WriteIntent.State
PAGE = "borrowers/edit.html"
VALID_FOR = timedelta(minutes=15)
REVIEWED_AT = "reviewed_at"
SINGLE_FIELDS = {"phone", "email"}
"""Fields that can be edited alone in a dialog; all others use the whole form."""
PREVIEW_VALUES: dict[str, Any] = {"ssn": "000000000", "credit_report": b"<r/>", "asset_report": b"{}"}
"""Placeholders in the preview for secrets that are not entered yet; they are shown masked."""


# --- Addresses ---


@accepts_files(len(GIVEN_LATER))
@require_http_methods(["GET", "HEAD", "POST"])
@requires("borrowers.edit")
def edit(request: StaffRequest, borrower_uuid: str, person_uuid: str = "") -> HttpResponse:
    """Change the profile of a borrower, or of one of its key people."""
    borrower = get_object_or_404(Borrower.objects.select_related("answer"), uuid=borrower_uuid)
    if person_uuid:
        people = KeyPerson.objects.select_related("answer").filter(borrower_uuid=borrower_uuid)
        return ProfileEdit(request, get_object_or_404(people, uuid=person_uuid), borrower).respond()
    return ProfileEdit(request, borrower, borrower).respond()


# --- The flow ---


class ProfileEdit(Flow):
    stays_on_review = RecordBusy

    form: ProfileForm
    """What was typed, once bound."""
    clashes: Sequence[Clash] = ()
    """The fields with conflicting changes, once bound."""
    is_undecided = False
    """Whether conflicts were shown and not all were decided."""

    def __init__(self, request: StaffRequest, record: Borrower | KeyPerson, borrower: Borrower) -> None:
        super().__init__(request)
        self.record, self.borrower = record, borrower
        self.is_key_person = isinstance(record, KeyPerson)
        self.operation = "borrowers.update_key_person" if self.is_key_person else "borrowers.update"
        self.version = store.answer_version(record)

    @property
    def label(self) -> str:
        """The name of the write in the audit trail."""
        return f"{self.record} of {self.borrower}" if self.is_key_person else str(self.record)

    @property
    def url(self) -> str:
        if self.is_key_person:
            return reverse("borrowers:edit_person", args=[self.borrower.uuid, self.record.uuid])
        return reverse("borrowers:edit", args=[self.record.uuid])

    @property
    def single_field(self) -> str:
        """The one field edited in a dialog; empty for the whole form."""
        name = self.request.GET.get("field", "")
        return name if name in SINGLE_FIELDS else ""

    @property
    def is_in_dialog(self) -> bool:
        return bool(self.request.htmx and self.single_field)

    @property
    def post_url(self) -> str:
        """The address to post to, which names the field of a dialog."""
        return f"{self.url}?field={self.single_field}" if self.is_in_dialog else self.url

    @property
    def _writes(self) -> QuerySet[WriteIntent]:
        """All writes to this record, latest first."""
        return WriteIntent.objects.filter(operation=self.operation, subject_uuid=self.record.uuid)

    def respond(self) -> HttpResponse:
        request = self.request
        if request.method != "POST":
            if write := request.GET.get("sent"):
                return self._show_result(write)
            if approval := request.GET.get("approval"):
                return self._show_approved(approval)
            return self._show_form(self._form())
        match request.POST.get("action"):
            case "check":
                return self._check_field()
            case "measure":
                return self._measure_report()
            case "send" | "ask":
                return self._send_or_ask()
            case "edit":
                typed, _ = self._signed()
                return self._show_form(self._read(typed) if typed else self._form())
        return self._show_check(self._read(request.POST))

    # --- 1. The form ---

    @cached_property
    def _answer(self) -> servicing.Borrower | servicing.KeyPerson | None:
        """The last known answer; None if only the ID is known."""
        text = store.saved_text(self.record)
        return self._decode(text) if text else None

    def _decode(self, answer: str) -> servicing.Borrower | servicing.KeyPerson:
        if self.is_key_person:
            return codec.decode(servicing.KeyPerson, answer)
        return codec.decode(servicing.Borrower, answer)

    @cached_property
    def _known(self) -> KnownValues:
        return known_values(self._answer)

    def _known_at(self, version: str) -> KnownValues | None:
        """The values in a form of that version; None if that answer isn't stored any more."""
        if version == self.version:
            return self._known
        if version == store.answer_version(Borrower()):
            return {}  # Only the ID was known.
        if not re.fullmatch("[0-9a-f]{16}", version):
            return None
        earlier = Snapshot.objects.filter(answer=self.record.answer, digest__startswith=version)
        snapshot = earlier.first()
        return known_values(self._decode(snapshot.body)) if snapshot else None

    def _form(self, typed: Any = None, *, known: KnownValues | None = None, version: str = "") -> ProfileForm:
        form: type[ProfileForm] = UnknownProfile
        if self.is_key_person:
            form = KeyPersonProfile
        elif isinstance(self._answer, servicing.Borrower):
            form = BusinessProfile if self._answer.is_business else IndividualProfile
        known = self._known if known is None else known
        return form(typed, known=known, version=version or self.version, url=self.url)

    def _read(self, typed: Mapping[str, Any]) -> ProfileForm:
        """Bind what was typed; if the record changed since, ``choice-<field>`` says whose value counts."""
        version = typed.get("version") or ""
        base = self._known_at(version)
        form = self._form(typed, known=base, version=version)
        if version == self.version or not form.is_valid():
            return form
        was_seen = typed.get("seen") == self.version
        clashes = find_clashes(form, base, self._known, typed if was_seen else {})
        if not any(clash.has_moved for clash in clashes):
            clashes = []  # Only fields that can't be edited here differ.
        if clashes and not (was_seen and all(clash.choice for clash in clashes)):
            self.clashes, self.is_undecided = clashes, was_seen
            return form
        merged = form.typed | {"version": self.version}
        for unit in (clash.unit for clash in clashes if clash.choice == "theirs"):
            names = ADDRESS_FIELDS if unit == "address" else [unit]
            merged |= {name: self._form().shown(name) for name in names}
        form = self._form(merged)
        form.is_valid()
        return form

    def _show_form(self, form: ProfileForm, *, status: int = 200, **more: Any) -> HttpResponse:
        """Render the editable fields with the last known values."""
        close_stale_writes()
        groups = form.groups
        if self.is_in_dialog:
            form.fields[self.single_field].widget.attrs["autofocus"] = True
            groups = [("", [row for _, rows in groups for row in rows if row[0].name == self.single_field])]
        context = {
            "form": form,
            "groups": groups,
            "states": rules.US_STATES,
            "unknown_writes": self._writes.filter(state__in=WriteIntent.OPEN)[:3],
            "approvals": approvals.open_approvals(subject_uuid=self.record.uuid),
        }
        return self._page("form", context | more, status=status)

    def _page(self, step: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
        """Render a step of the edit. It shows personal data, so it is logged as a view."""
        record = self.record
        is_repeat = self.request.method == "POST"
        log_view(Actor.of(self.request), "borrowers.edit", is_repeat=is_repeat, **entry_subject(record))
        context |= {"edit": self, "record": record, "step": step}
        return render_page(self.request, PAGE, context, partial=("edit-step", "dialog"), status=status)

    def _check_field(self) -> HttpResponse:
        """Render one field as left, with its note."""
        form = self._read(self.request.POST)
        field = field_just_left(self.request, [form])
        if field is None:
            return HttpResponse(status=204)
        form.is_valid()
        return render_page(self.request, f"{PAGE}#checked-field", {"field": field})

    def _measure_report(self) -> HttpResponse:
        """The size of a chosen file before and after compression, or why it is rejected. It isn't stored."""
        for name in REPORTS.intersection(self.request.FILES):
            try:
                report = ProfileSendForm.base_fields[name].clean(self.request.FILES[name])
                found: dict[str, Any] = {"sizes": report.sizes}
            except ValidationError as error:
                found = {"problems": error.messages}
            return render_page(self.request, f"{PAGE}#measured-report", found)
        return HttpResponse(status=204)

    # --- 2. The review ---

    def _show_check(self, form: ProfileForm) -> HttpResponse:
        """Render the review of what was typed, or the form with what prevents it."""
        self.form = form
        if self.clashes:
            return self._page("conflict", {"form": form}, status=409)
        if not form.is_valid():
            return self._show_form(form, status=422)
        if form.sent_units:
            return self.show_review()
        subject = entry_subject(self.record, self.label)
        append(Actor.of(self.request), "borrowers.no_change", result="no_change", **subject)
        return self._show_form(self._form(), nothing_to_send=True)

    def _show_approved(self, approval_id: str) -> HttpResponse:
        """Render the review of an approved change, before it is sent."""
        approvals.expire_old()
        own = Approval.objects.filter(maker_id=self.request.user.pk, subject_uuid=self.record.uuid)
        found = find_or_404(own, pk=approval_id)
        typed = found.proposal.get("typed")
        if not typed or found.state == Approval.State.SENDING:
            return finish_action(self.request, found.get_absolute_url())
        return self._show_check(self._read(typed))

    @property
    def changes_to_approve(self) -> list[str]:
        """The names of the changes that need a second person."""
        acts = {unit: "legal_name" if unit in NAMES else unit for unit in self.form.sent_units}
        return [self.form.label_of(unit) for unit, act in acts.items() if act in settings.APPROVAL_ACTS]

    @cached_property
    def approval(self) -> Approval | None:
        """The approval of exactly these changes, if needed and given."""
        if not self.changes_to_approve:
            return None
        return approvals.find_approved(self.request.user, self.record, self._meaning)

    @property
    def needs_approval(self) -> bool:
        return bool(self.changes_to_approve) and self.approval is None

    @property
    def _meaning(self) -> str:
        """A text that is equal for equal changes, however they were typed."""
        changes = {unit: str(value) for unit, value in self.form.changes.items()}
        return json.dumps([changes, self.form.later], sort_keys=True)

    @property
    def _unknown_write(self) -> WriteIntent | None:
        """The latest write to any of these fields with an unknown outcome."""
        close_stale_writes()
        units, unknown = set(self.form.sent_units), self._writes.filter(state=State.UNKNOWN)
        return next((one for one in unknown if units & {*map(unit_of, one.request_body or {})}), None)

    def _final_form(self, *args: Any, **kwargs: Any) -> ProfileSendForm:
        is_repeated = not self.needs_approval and self._unknown_write is not None
        return ProfileSendForm(
            *args, profile=self.form, needs_approval=self.needs_approval, is_repeated=is_repeated, **kwargs
        )

    def show_review(
        self, final: ProfileSendForm | None = None, *, status: int = 200, **notice: Any
    ) -> HttpResponse:
        """Render current and new values, the body that will be sent, and the final form."""
        form = self.form
        if final is None:
            self.__dict__.pop("approval", None)  # A write may have changed the approval's state.
            final = self._final_form(initial={"reason": form.data.get("reason")})
        else:
            final.mark_cleared()
        try:
            body = self._preview()
        except InvalidInput as error:
            form.add_problems(error.problems)
            return self._show_form(form, status=422)
        context = {
            "form": form,
            "final": final,
            "changes": changes_of(form),
            "unchanged": [
                (form.label_of(unit), text_of(unit, form.new_value(unit)))
                for unit in form.units
                if unit not in form.changes and unit != "dob"
            ],
            "payload": body,
            "payload_text": json.dumps(body, indent=2, ensure_ascii=False),
            "proposal": signing.dumps(
                form.typed | {REVIEWED_AT: time.time()}, salt=self._salt, compress=True
            ),
            "valid_until": timezone.now() + VALID_FOR,
            "approval": self.approval,
            "unknown": self._unknown_write,
            "waits_for": self.changes_to_approve if self.needs_approval else [],
        }
        return self._page("preview", context | notice, status=status)

    def _preview(self) -> dict[str, Any]:
        """The body that will be sent, masked as it would be recorded."""
        values = self.form.changes | {name: PREVIEW_VALUES[name] for name in self.form.later}
        body: dict[str, Any] = self.request.servicing.preview(lambda it: self._update(it, values)).body
        return body | {key: "[the chosen file]" for key in body if key.endswith("_gzip")}

    # --- 3. The sending ---

    @property
    def _salt(self) -> str:
        return f"borrowers.edit:{self.request.user.pk}:{self.record.kind}:{self.record.uuid}"

    def _signed(self) -> tuple[dict[str, str], bool]:
        """The signed text from the form, and whether the review expired; empty if it can't be read."""
        try:
            typed = signing.loads(self.request.POST.get("proposal", ""), salt=self._salt)
        except signing.BadSignature:
            return {}, False
        reviewed_at = datetime.fromtimestamp(typed.pop(REVIEWED_AT, 0), UTC)
        is_over = timezone.now() - reviewed_at > VALID_FOR
        return typed | {"reason": self.request.POST.get("reason", "")}, is_over

    def _send_or_ask(self) -> HttpResponse:
        """Send what was reviewed or request approval, unless it was already sent, expired, or the record changed."""
        request = self.request
        submit_id = request.POST.get("submit_id", "").replace("\0", "")
        if submit_id and (earlier := WriteIntent.objects.filter(submit_id=submit_id).first()):
            return self.follow(earlier)
        typed, is_late = self._signed()
        if not typed:
            return self._show_form(self._form(), status=422, is_lost=True)
        self.form = form = self._read(typed)
        if self.clashes or not form.is_valid() or not form.sent_units:
            return self._show_check(form)
        final = self._final_form(request.POST, request.FILES)
        # The approval may have been given or expired in between.
        is_other_button = self.needs_approval != (request.POST["action"] == "ask")
        if is_late or is_other_button or not final.is_valid():
            return self.show_review(final, status=422, is_late=is_late)
        if self.needs_approval:
            return self._request_approval(final.cleaned_data["reason"])
        try:
            return self.send_once(final)
        except approvals.StateChanged as error:
            return finish_action(request, error.approval.get_absolute_url())

    def _request_approval(self, reason: str) -> HttpResponse:
        """Request approval of these changes, without the secrets that are entered when sending."""
        user = self.request.user
        approval = Approval(
            operation=self.operation,
            label=self.label[:300],
            url=self.url,
            version=self.version,
            acts=self.changes_to_approve,
            reason=reason,
            maker_id=user.pk,
            maker_name=user.display_name(),
            **audit_subject(self.record),
        )
        rows = [(change.label, change.now, change.new) for change in changes_of(self.form)]
        typed = self.form.typed | {"reason": reason}
        approval.store_proposal({"typed": typed, "rows": rows, "meaning": self._meaning})
        approvals.request_approval(Actor.of(self.request), approval, self._audit_changes({}))
        toast(self.request, "Approval requested. Nothing was sent yet.")
        return finish_action(self.request, approval.get_absolute_url())

    def _audit_changes(self, given: Mapping[str, Any]) -> dict[str, list[str]]:
        """The changes for the audit trail; for sensitive data, only that it was sent."""
        recorded = {}
        for change in changes_of(self.form):
            recorded[change.unit] = [masked_text(change.now), masked_text(change.new)]
            if change.unit in NEVER_RETURNED:
                sent = given.get(change.unit)
                recorded[change.unit] = ["", f"sent, {sent.sizes}" if isinstance(sent, Report) else "sent"]
        return recorded

    def describe_write(self, final: ProfileSendForm) -> Write:
        given = final.cleaned_data
        return Write(
            submit_id=str(given["submit_id"]),
            label=self.label,
            reason=given["reason"],
            changes=self._audit_changes(given),
            bind=approvals.bind_to_write(self.approval),
            **audit_subject(self.record),
        )

    def call_service(self, client: Client, final: ProfileSendForm) -> None:
        later = {name: final.cleaned_data[name] for name in self.form.later}
        contents = {name: one.content if isinstance(one, Report) else one for name, one in later.items()}
        self._update(client, self.form.changes | contents)

    def _update(self, client: Client, values: Mapping[str, Any]) -> servicing.Borrower | servicing.KeyPerson:
        if self.is_key_person:
            return client.borrowers.update_key_person(self.borrower.uuid, self.record.uuid, **values)
        return client.borrowers.update(self.record.uuid, **values)

    def show_rejection(self, error: InvalidInput | Rejected, final: ProfileSendForm) -> HttpResponse:
        if isinstance(error, (NotFound, Forbidden)):
            raise error
        if isinstance(error, InvalidInput):
            self.form.add_problems(error.problems)
        else:
            self.form.add_service_errors(error.reasons or [error.message])
        return self._show_form(self.form, status=409 if isinstance(error, Conflict) else 422)

    def show_success(self, intent: WriteIntent) -> HttpResponse:
        approvals.sync_with_writes()
        if intent.state == State.CONFIRMED:
            results = self._results(intent)
            toast(self.request, summary_of(results), url=intent.get_absolute_url())
            if self.single_field and all(each.check == ConfirmationCheck.CONFIRMED for each in results):
                return finish_action(self.request, self.record.get_absolute_url())
        return self.follow(intent)

    def follow(self, intent: WriteIntent) -> HttpResponse:
        if (intent.operation, intent.subject_uuid) != (self.operation, self.record.uuid):
            raise AlreadySubmitted(intent)
        return finish_action(self.request, f"{self.url}?sent={intent.pk}")

    # --- 4. The result ---

    def _show_result(self, write_id: str) -> HttpResponse:
        """Show each field as sent and as answered."""
        intent = find_or_404(self._writes, pk=write_id)
        results = self._results(intent) if intent.state == State.CONFIRMED else []
        return self._page("result", {"intent": intent, "results": results, "summary": summary_of(results)})

    def _results(self, intent: WriteIntent) -> list["FieldResult"]:
        """Compare each field of a confirmed write with the recorded answer."""
        entries = {entry.phase: entry for entry in Entry.objects.filter(intent_id=intent.pk)}
        answer = entries[Entry.Phase.OUTCOME].detail.get("answer")
        changes = entries[Entry.Phase.ATTEMPT].changes
        sent, form = intent.request_body or {}, self._form()
        order = [*form.units, *GIVEN_LATER, *sent]
        return [
            compare(form, name, sent, answer if isinstance(answer, dict) else {}, changes)
            for name in sorted(sent, key=order.index)
        ]


def find_or_404(objects: QuerySet[Any], pk: str) -> Any:
    try:
        return get_object_or_404(objects, pk=pk)
    except ValidationError:  # It is no UUID.
        raise Http404 from None
