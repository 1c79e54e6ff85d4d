"""Who may do what: the five roles and the whole permission table in one place."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

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


_EVERYBODY = frozenset(Role)
_WRITERS = frozenset({Role.SERVICER, Role.SUPERVISOR})
_OVERSIGHT = frozenset({Role.SUPERVISOR, Role.AUDITOR, Role.ADMIN})

# Administrators manage staff and settings; they do not lend.
ACTS: dict[str, frozenset[Role]] = {
    "home.index": _EVERYBODY,
    "home.snooze": _WRITERS,
    "borrowers.index": _EVERYBODY,
    "borrowers.create": _WRITERS,
    "borrowers.edit": _WRITERS,
    "applications.index": _EVERYBODY,
    "applications.detail": _EVERYBODY,
    "applications.submit": _WRITERS,
    "applications.open": _WRITERS,
    "applications.prefer": _WRITERS,
    "loans.index": _EVERYBODY,
    "loans.detail": _EVERYBODY,
    "credit_lines.index": _EVERYBODY,
    "credit_lines.detail": _EVERYBODY,
    "credit_lines.pdf": _EVERYBODY,
    "repayments.index": _EVERYBODY,
    "repayments.detail": _EVERYBODY,
    "messaging.index": _EVERYBODY,
    "messaging.sync": _WRITERS | {Role.ADMIN},
    "messaging.link": _WRITERS,
    "notes.add": _WRITERS,
    "approvals.index": _WRITERS | {Role.AUDITOR},
    "approvals.decide": frozenset({Role.SUPERVISOR}),
    "approvals.withdraw": _WRITERS,
    "saved_views.save": _EVERYBODY,
    "lookup.search": _EVERYBODY,
    "lookup.add": _WRITERS,
    "lookup.correct": _WRITERS,
    "lookup.archive": frozenset({Role.SUPERVISOR}),
    "lookup.refresh_portfolio": frozenset({Role.SUPERVISOR, Role.ADMIN}),
    "lookup.import_records": frozenset({Role.SUPERVISOR, Role.ADMIN}),
    "audit.index": _OVERSIGHT,
    "audit.detail": _OVERSIGHT,
    "audit.export": _OVERSIGHT,
    "audit.history": _EVERYBODY,
    "audit.write": _EVERYBODY,
    "audit.resolve": frozenset({Role.SUPERVISOR}),
    "operations.status": _EVERYBODY,
    "operations.job": _EVERYBODY,
    "operations.cancel": _EVERYBODY,
    "operations.support_bundle": _WRITERS | _OVERSIGHT,
    "summaries.borrower": _EVERYBODY,
    "summaries.document": _EVERYBODY,
    "summaries.verify": _EVERYBODY,
    "summaries.batch": _WRITERS | {Role.AUDITOR},
    "accounts.profile": _EVERYBODY,
    "accounts.staff": frozenset({Role.ADMIN}),
}
# Acts on what somebody began: to that of others these alone may do them.
OF_OTHERS: dict[str, frozenset[Role]] = {"operations.cancel": frozenset({Role.SUPERVISOR, Role.ADMIN})}


class RoleMissing(PermissionDenied):
    """A signed-in person asked for an act that their role does not include, at all or to what others began."""

    def __init__(self, act: str, reason: str = "") -> None:
        super().__init__(reason or reason_for(act))
        self.act = act


def can(user: "User | AnonymousUser", act: str) -> bool:
    """Whether this person's role includes the act. An act that is not in the table is a mistake in the code."""
    roles = ACTS[act]
    return user.is_authenticated and user.is_active and user.role in roles


def reason_for(act: str) -> str:
    """Why a button is disabled, as words beside it."""
    return _needs(ACTS[act])


def why_not_to(user: "User | AnonymousUser", act: str, began_by: int | None) -> str:
    """Why this person may not do an act to what somebody began; empty if they may."""
    if not can(user, act):
        return reason_for(act)
    is_theirs = began_by == user.pk or getattr(user, "role", "") in OF_OTHERS[act]
    return "" if is_theirs else f"Somebody else started it. {_needs(OF_OTHERS[act])}"


def _needs(roles: frozenset[Role]) -> str:
    names = [role.label.lower() for role in Role if role in roles]
    return f"Needs role {' or '.join(names)}"


def requires(act: str) -> Callable[[View], View]:
    """Let only the roles of ``act`` into a view."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not can(request.user, act):
                raise RoleMissing(act)
            return view(request, *args, **kwargs)

        guarded.act = act  # type: ignore[attr-defined]  # read by the test that walks the URL map
        return guarded  # type: ignore[return-value]

    return decorate
