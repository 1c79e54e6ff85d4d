"""The first day with a lender: every read tried, and a report that the operator and the lender can read together."""

from django import forms
from django.core.validators import RegexValidator
from django.http import HttpResponse

from portal.accounts.roles import requires
from portal.audit.chain import append
from portal.audit.models import Actor
from portal.gateway.client import StaffRequest, build_client
from portal.operations.doctor import known_ids
from portal.ui.forms import StaffForm, TextField
from portal.ui.htmx import render_page
from servicing.first_day import FirstDay

IS_ID = RegexValidator(r"^[A-Za-z0-9_-]+\Z", "Enter an ID of letters, digits, dashes and underscores.")
# The calls are made one after the other, and each may take this long.
CALL_SECONDS = 10


def run(ids: dict[str, str]) -> FirstDay:
    """Try every read; these calls are not recorded, because some may fail and would count as failures."""
    return build_client(None).with_time_limit(CALL_SECONDS).first_day(**ids)


class IDsForm(StaffForm):
    """Records that exist at the service; reads whose records are missing are left out."""

    borrower_id = TextField(label="Borrower ID", max_length=100, required=False, validators=[IS_ID])
    application_id = TextField(
        label="Application ID",
        max_length=100,
        required=False,
        validators=[IS_ID],
        help_text="Of a line of credit.",
    )
    loan_id = TextField(label="Loan ID", max_length=100, required=False, validators=[IS_ID])
    line_id = TextField(label="Line ID", max_length=100, required=False, validators=[IS_ID])

    def clean(self) -> dict[str, object]:
        data = super().clean() or {}
        if not data.get("borrower_id") and any(data.get(name) for name in self.fields):
            self.add_error(
                "borrower_id", forms.ValidationError("Enter the borrower that the records belong to.")
            )
        return data


@requires("operations.first_day")
def page(request: StaffRequest) -> HttpResponse:
    """Ask for records that exist, then show the report."""
    form = IDsForm(request.POST or None, initial=known_ids())
    report = None
    if request.method == "POST" and form.is_valid():
        append(Actor.of(request), "operations.first_day", subject_label="the first-day check")
        report = run(form.cleaned_data)
    status = 422 if form.errors else 200
    return render_page(request, "operations/first_day.html", {"form": form, "report": report}, status=status)
