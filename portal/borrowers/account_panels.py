"""The accounts of a borrower's page, each of which loads itself, and the job that refreshes all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.roles import requires
from portal.audit.chain import entry_subject
from portal.audit.models import Actor
from portal.audit.view_log import log_view
from portal.borrowers import tasks
from portal.core.business_date import business_date
from portal.gateway.client import StaffRequest
from portal.gateway.panels import Freshness, read_copies, tell_account_read
from portal.gateway.reading import LiveCopy, account_copies
from portal.jobs.queue import start_job
from portal.records.models import Account, Borrower, Kind
from portal.ui.htmx import finish_action, page_before, render_page


@dataclass(frozen=True)
class AccountPanel:
    """A loan or line, with those of its lists that were ever asked for."""

    copy: LiveCopy
    lists: Sequence[LiveCopy] = ()

    @property
    def name(self) -> str:
        """Its id where no row shows it."""
        return f"{self.copy.record.kind}-{self.copy.record.uuid}"

    @property
    def row_name(self) -> str:
        return f"row-{self.name}"

    @property
    def url(self) -> str:
        """Where it and its row load from."""
        record = self.copy.record
        return reverse("borrowers:account", args=[record.borrower_uuid, record.kind, record.uuid])

    @property
    def fresh(self) -> Freshness:
        return Freshness([self.copy, *self.lists])

    @property
    def days_past_due(self) -> int | None:
        return self.copy.figures.days_past_due(business_date())


def account_panels(accounts: Sequence[LiveCopy], lists: Sequence[LiveCopy]) -> list[AccountPanel]:
    return [
        AccountPanel(one, [each for each in lists if each.record.pk == one.record.pk]) for one in accounts
    ]


@require_safe
@requires("borrowers.index")
def account(request: StaffRequest, borrower_uuid: str, kind: str, account_uuid: str) -> HttpResponse:
    """Read one account and its repayments, and show it as the row or the panel that asked for it."""
    owner = get_object_or_404(Borrower, uuid=borrower_uuid)
    active = Account.objects.select_related("answer").filter(
        kind__in=[Kind.LOAN, Kind.LINE], archived_at__isnull=True
    )
    record = get_object_or_404(active, kind=kind, uuid=account_uuid, borrower_uuid=borrower_uuid)
    if not request.htmx:
        return redirect(record)
    log_view(Actor.of(request), "borrowers.detail", is_repeat=True, **entry_subject(owner))
    copy, *lists = read_copies(request, account_copies(record))
    panel = AccountPanel(copy, lists)
    partial = "account-row" if request.htmx.target == panel.row_name else "account"
    response = render_page(request, f"borrowers/detail.html#{partial}", {"account": panel})
    return tell_account_read(response, panel.fresh)


@require_POST
@requires("borrowers.index")
def refresh(request: StaffRequest, borrower_uuid: str) -> HttpResponse:
    get_object_or_404(Borrower, uuid=borrower_uuid)
    start_job(tasks.refresh_accounts, by=Actor.of(request), about=borrower_uuid, borrower=borrower_uuid)
    return finish_action(request, page_before(request))
