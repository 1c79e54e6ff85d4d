"""Writes an entry for every sign-in, sign-out and failed attempt."""

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest

from portal.audit import staff
from portal.audit.chain import append
from portal.audit.models import Actor


def listen() -> None:
    """Connect the three signals, and those of the accounts themselves."""
    staff.listen()
    user_logged_in.connect(_signed_in, dispatch_uid="audit")
    user_logged_out.connect(_signed_out, dispatch_uid="audit")
    user_login_failed.connect(_failed, dispatch_uid="audit")


def _signed_in(request: HttpRequest, user: Any, **kwargs: Any) -> None:
    append(Actor.of(request, user), "accounts.sign_in")


def _signed_out(request: HttpRequest, user: Any, **kwargs: Any) -> None:
    if user is not None:
        append(Actor.of(request, user), "accounts.sign_out")


def _failed(credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any) -> None:
    if request is not None:
        tried = str(credentials.get("username") or credentials.get("login") or "")[:150]
        append(Actor.of(request), "accounts.sign_in_failed", subject_label=tried)
