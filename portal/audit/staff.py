"""Writes an entry for every change of an account: role and data, password, second factors, sessions, single sign-on."""

from typing import Any

from allauth.account.signals import password_changed
from allauth.core import context
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authentication_failed
from allauth.socialaccount.signals import social_account_added
from django.db.models.signals import post_delete, post_save
from django.http import HttpRequest

from portal.accounts.models import User
from portal.accounts.signals import profile_changed, session_ended, staff_changed
from portal.audit.chain import append
from portal.audit.models import Actor, Entry
from portal.ui.guard import number_found


def listen() -> None:
    """Connect to what allauth and the accounts tell."""
    staff_changed.connect(_staff_changed, dispatch_uid="audit")
    profile_changed.connect(_profile_changed, dispatch_uid="audit")
    session_ended.connect(_session_ended, dispatch_uid="audit")
    password_changed.connect(_password_changed, dispatch_uid="audit")
    social_account_added.connect(_connected, dispatch_uid="audit")
    authentication_failed.connect(_factor_failed, dispatch_uid="audit")
    number_found.connect(_is_kept_number, dispatch_uid="audit")
    # In the same transaction as the change, which allauth's own signals are not.
    post_save.connect(_factor_added, sender=Authenticator, dispatch_uid="audit")
    post_delete.connect(_factor_removed, sender=Authenticator, dispatch_uid="audit")


def _staff_changed(
    request: HttpRequest, user: User, changes: dict[str, Any], created: bool, **kwargs: Any
) -> None:
    _record(request, "accounts.staff_created" if created else "accounts.staff_changed", user, changes=changes)


def _profile_changed(request: HttpRequest, user: User, changes: dict[str, Any], **kwargs: Any) -> None:
    _record(request, "accounts.profile", user, changes=changes)


def _session_ended(request: HttpRequest, user: User, count: int, why: str, **kwargs: Any) -> None:
    detail = {"sessions": count, "why": why}
    _record(request, "accounts.session_ended", user, detail=detail)


def _password_changed(request: HttpRequest, user: User, **kwargs: Any) -> None:
    _record(request, "accounts.password_changed", user)


def _connected(request: HttpRequest, sociallogin: Any, **kwargs: Any) -> None:
    actor = Actor.of(request, sociallogin.user)
    append(actor, "accounts.single_sign_on_connected", subject_label=sociallogin.user.username)


def _factor_added(instance: Authenticator, created: bool, **kwargs: Any) -> None:
    if created:
        _factor("accounts.second_factor_added", instance)


def _factor_removed(instance: Authenticator, **kwargs: Any) -> None:
    _factor("accounts.second_factor_removed", instance)


def _factor(action: str, instance: Authenticator) -> None:
    actor = Actor.of(context.request) if context.request else Actor.system("second-factor")
    append(actor, action, subject_label=instance.user.username, detail={"kind": instance.type})


def _is_kept_number(digest: str, answered: bool, field: str, **kwargs: Any) -> bool:
    """Whether somebody said that these digits are neither SSN nor EIN; said now, it is recorded."""
    if Entry.objects.filter(action="accounts.keep_number", subject_uuid=digest).exists():
        return True
    if answered and context.request:
        detail = {"field": field, "at": context.request.path}
        append(Actor.of(context.request), "accounts.keep_number", subject_uuid=digest, detail=detail)
    return answered


def _factor_failed(request: HttpRequest, user: User, **kwargs: Any) -> None:
    append(
        Actor.of(request),
        "accounts.sign_in_failed",
        subject_label=user.username,
        detail={"at": "second factor"},
    )


def _record(request: HttpRequest, action: str, user: User, **fields: Any) -> None:
    append(Actor.of(request), action, subject_label=user.username, **fields)
