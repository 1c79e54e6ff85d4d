"""The five roles and the whole table of permissions."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponseBase

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

    from portal.accounts.models import User

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class Role(models.TextChoices):
    VIEWER = "viewer", "Viewer"
    SERVICER = "servicer", "Servicer"
    SUPERVISOR = "supervisor", "Supervisor"
    AUDITOR = "auditor", "Auditor"
    ADMIN = "admin", "Administrator"


_EVERYONE = frozenset(Role)
_WRITERS = frozenset({Role.SERVICER, Role.SUPERVISOR})
_OVERSIGHT = frozenset({Role.SUPERVISOR, Role.AUDITOR, Role.ADMIN})


class Act(NamedTuple):
    """An action that needs a role."""

    words: str
    """Completes "was not allowed to …"."""
    roles: frozenset[Role]


# Administrators manage staff and settings; they do no loan servicing.
ACTS: dict[str, Act] = {
    "home.index": Act("open Home", _EVERYONE),
    "home.help": Act("open help", _EVERYONE),
    "home.snooze": Act("snooze items on Home", _WRITERS),
    "borrowers.index": Act("open the list of borrowers", _EVERYONE),
    "borrowers.create": Act("create borrowers", _WRITERS),
    "borrowers.edit": Act("change profiles", _WRITERS),
    "applications.index": Act("open the list of applications", _EVERYONE),
    "applications.detail": Act("open applications", _EVERYONE),
    "applications.submit": Act("submit applications", _WRITERS),
    "applications.open": Act("open applications by ID", _WRITERS),
    "applications.prefer": Act("mark an offer as preferred", _WRITERS),
    "loans.index": Act("open the list of loans", _EVERYONE),
    "loans.detail": Act("open loans", _EVERYONE),
    "credit_lines.index": Act("open the list of lines of credit", _EVERYONE),
    "credit_lines.detail": Act("open lines of credit", _EVERYONE),
    "credit_lines.pdf": Act("open statements", _EVERYONE),
    "repayments.index": Act("open the list of repayments", _EVERYONE),
    "repayments.detail": Act("open repayments", _EVERYONE),
    "collections.index": Act("open collections", _EVERYONE),
    "collections.log": Act("log contacts and promises", _WRITERS),
    "collections.update": Act("update accounts of the worklist", _EVERYONE),
    "collections.take": Act("take accounts", _WRITERS),
    "collections.assign": Act("assign accounts", frozenset({Role.SUPERVISOR})),
    "portfolio.index": Act("open the portfolio", _EVERYONE),
    "portfolio.accounts": Act("open the accounts of a day", _EVERYONE),
    "portfolio.demo_past": Act("add days to a demo", _WRITERS),
    "messaging.index": Act("open messages", _EVERYONE),
    "messaging.sync": Act("sync messages", _WRITERS | {Role.ADMIN}),
    "messaging.link": Act("link bank accounts", _WRITERS),
    "notes.add": Act("write notes and follow-ups", _WRITERS),
    "approvals.index": Act("open approvals", _WRITERS | {Role.AUDITOR}),
    "approvals.decide": Act("approve or reject changes", frozenset({Role.SUPERVISOR})),
    "approvals.withdraw": Act("withdraw changes", _WRITERS),
    "saved_views.save": Act("save views", _EVERYONE),
    "lookup.search": Act("search", _EVERYONE),
    "lookup.add": Act("add records", _WRITERS),
    "lookup.correct": Act("correct records", _WRITERS),
    "lookup.archive": Act("archive records", frozenset({Role.SUPERVISOR})),
    "lookup.refresh_portfolio": Act("refresh all accounts", frozenset({Role.SUPERVISOR, Role.ADMIN})),
    "lookup.import_records": Act("import records", frozenset({Role.SUPERVISOR, Role.ADMIN})),
    "audit.index": Act("open the audit trail", _OVERSIGHT),
    "audit.detail": Act("open entries of the audit trail", _OVERSIGHT),
    "audit.history": Act("open the history of records", _EVERYONE),
    "audit.write": Act("open request records", _EVERYONE),
    "audit.resolve": Act("resolve unknown outcomes", frozenset({Role.SUPERVISOR})),
    "operations.status": Act("open the integration status", _EVERYONE),
    "operations.first_day": Act("run the first-day check", frozenset({Role.SUPERVISOR, Role.ADMIN})),
    "operations.job": Act("open background jobs", _EVERYONE),
    "operations.cancel": Act("cancel background jobs", _EVERYONE),
    "operations.support_bundle": Act("download the support bundle", _WRITERS | _OVERSIGHT),
    "summaries.borrower": Act("open summaries", _EVERYONE),
    "summaries.document": Act("open documents", _EVERYONE),
    "summaries.verify": Act("compare a file with its document", _EVERYONE),
    "summaries.batch": Act("print many summaries at once", _WRITERS | {Role.AUDITOR}),
    "accounts.profile": Act("open their own settings", _EVERYONE),
    "accounts.staff": Act("manage accounts", frozenset({Role.ADMIN})),
}
# The roles that may cancel a job that someone else started.
_CANCELS_FOR_OTHERS = frozenset({Role.SUPERVISOR, Role.ADMIN})


class RoleMissing(PermissionDenied):
    """The person's role does not include the act, or not for a job that someone else started."""

    def __init__(self, act: str, reason: str = "") -> None:
        super().__init__(reason or reason_for(act))
        self.act = act


def can(user: "User | AnonymousUser", act: str) -> bool:
    """Whether this person's role includes the act. An act missing from the table is a mistake in the code."""
    roles = ACTS[act].roles
    return user.is_authenticated and user.is_active and user.role in roles


def reason_for(act: str) -> str:
    """Why a button is disabled, to show beside it."""
    return _needs(ACTS[act].roles)


def reason_not_to_cancel(user: "User | AnonymousUser", started_by: int | None) -> str:
    """Why this person may not cancel a job; empty if they may."""
    may_cancel = started_by == user.pk or getattr(user, "role", "") in _CANCELS_FOR_OTHERS
    return "" if may_cancel else f"Someone else started this job. {_needs(_CANCELS_FOR_OTHERS)}"


def _needs(roles: frozenset[Role]) -> str:
    *most, last = [role.label.lower() for role in Role if role in roles]
    return f"Requires the {', '.join(most)}{' or ' if most else ''}{last} role"


def requires(act: str) -> Callable[[View], View]:
    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not can(request.user, act):
                raise RoleMissing(act)
            return view(request, *args, **kwargs)

        guarded.act = act  # type: ignore[attr-defined]  # read by the test that walks the URL map
        return guarded  # type: ignore[return-value]

    return decorate
