"""How the connection to the lending service is doing, and the platform's health check."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from portal.accounts.roles import requires
from portal.audit.models import RemoteCall
from portal.gateway import StaffRequest
from portal.ui.htmx import render_page

GROUPS = {
    "Users": ["borrowers.create_commercial", "borrowers.update", "borrowers.update_key_person"],
    "Applications": ["applications.submit", "applications.get_for_line"],
    "Loans": ["loans.get"],
    "Statements": ["credit_lines.statement"],
    "Repayments": ["repayments.of_loan", "repayments.of_line"],
    "Messages": ["messages.list"],
}
CONFIGURATION = [
    "SERVICING_URL",
    "SERVICING_CLIENT_ID",
    "SERVICING_SECRET",
    "SERVICING_TOKEN",
    "SERVICING_FIELD_KEY",
]


@dataclass
class Health:
    """One group of calls over the last day."""

    name: str
    last_success: datetime | None = None
    last_failure: datetime | None = None
    failures: int = 0
    durations: list[int] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return len(self.durations)

    @property
    def median(self) -> int | None:
        return sorted(self.durations)[len(self.durations) // 2] if self.durations else None

    @property
    def state(self) -> str:
        if not self.calls:
            return "neutral"
        failing = self.last_failure and (not self.last_success or self.last_failure > self.last_success)
        return "bad" if failing else "ok"


@requires("operations.status")
def status(request: StaffRequest) -> HttpResponse:
    """Each group of calls, the latest calls, and which settings are set."""
    day = RemoteCall.objects.filter(at__gte=timezone.now() - timedelta(days=1))
    rows = day.order_by("-id").values_list("operation", "at", "outcome", "duration_ms")[:5000]
    context = {
        "groups": health(rows),
        "calls": RemoteCall.objects.all()[:50],
        "configuration": [(name, bool(getattr(settings, name))) for name in CONFIGURATION],
        "auth": settings.SERVICING_AUTH,
    }
    return render_page(request, "operations/status.html", context)


def health(rows: Iterable[tuple[str, datetime, str, int]]) -> list[Health]:
    """The state of each group from its calls, newest first."""
    found = {name: Health(name) for name in GROUPS}
    group_of = {operation: name for name, operations in GROUPS.items() for operation in operations}
    for operation, at, outcome, duration in rows:
        if operation not in group_of:
            continue
        group = found[group_of[operation]]
        group.durations.append(duration)
        if outcome in FAILED:
            group.failures += 1
            group.last_failure = group.last_failure or at
        else:
            group.last_success = group.last_success or at
    return list(found.values())


# A refusal is an answer: the service is well. But who is refused as a stranger gets no answer at all.
FAILED = {"unavailable", "unknown", "not_sent", "protocol", "forbidden"}


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; no data."""
    return HttpResponse("ok\n", content_type="text/plain")
