"""Appends an entry for every sign-in and every change of an account, its second factors, sessions and identities.

Hides who acts: the person behind the current request, or the system in a command.
"""

from typing import Any, TypeAlias

from allauth.core import context
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authentication_failed
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models.signals import post_delete, post_save, pre_save
from django.dispatch import receiver
from django.http import HttpRequest

from portal.accounts import signals
from portal.accounts.models import PREFERENCES, User
from portal.audit.chain import append
from portal.audit.models import Actor, Entry
from portal.ui.guard import number_found

Credential: TypeAlias = Authenticator | SocialAccount
ADDED = {Authenticator: "accounts.second_factor_added", SocialAccount: "accounts.single_sign_on_connected"}
CHANGED = {Authenticator: "accounts.second_factor_changed", SocialAccount: "accounts.single_sign_on_changed"}
REMOVED = {Authenticator: "accounts.second_factor_removed", SocialAccount: "accounts.single_sign_on_removed"}
SECRETS = ("secret", "seed", "migrated_codes", "credential")
"""The secret parts of a second factor's data, which also has a name and the used recovery codes."""


# --- Sign-ins ---


@receiver(user_logged_in, dispatch_uid="audit")
def record_sign_in(request: HttpRequest, user: Any, **kwargs: Any) -> None:
    append(Actor.of(request, user), "accounts.sign_in")


@receiver(user_logged_out, dispatch_uid="audit")
def record_sign_out(request: HttpRequest, user: Any, **kwargs: Any) -> None:
    if user is not None:
        append(Actor.of(request, user), "accounts.sign_out")


@receiver(user_login_failed, dispatch_uid="audit")
def record_failed_sign_in(
    credentials: dict[str, Any],
    request: HttpRequest | None = None,
    at: str = "",
    detail: dict[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    if request is not None:
        tried = str(credentials.get("username") or credentials.get("login") or "")[:150]
        said = ({"at": at} if at else {}) | (detail or {})
        append(Actor.of(request), "accounts.sign_in_failed", subject_label=tried, detail=said)


@receiver(authentication_failed, dispatch_uid="audit")
def record_failed_second_factor(request: HttpRequest, user: User, **kwargs: Any) -> None:
    detail = {"at": "second factor"}
    append(Actor.of(request), "accounts.sign_in_failed", subject_label=user.username, detail=detail)


@receiver(signals.session_ended, dispatch_uid="audit")
def record_session_end(request: HttpRequest, user: User, count: int, why: str, **kwargs: Any) -> None:
    detail = {"sessions": count, "why": why}
    append(Actor.of(request), "accounts.session_ended", subject_label=user.username, detail=detail)


@receiver(signals.password_link_requested, dispatch_uid="audit")
def record_password_link_request(request: HttpRequest, address: str, **kwargs: Any) -> None:
    append(Actor.of(request), "accounts.password_link_requested", subject_label=address[:150])


@receiver(signals.password_link_sent, dispatch_uid="audit")
def record_password_link(user: User, **kwargs: Any) -> None:
    _record("accounts.password_link_sent", user)


@receiver(number_found, dispatch_uid="audit")
def is_confirmed_number(digest: str, answered: bool, field: str, **kwargs: Any) -> bool:
    """Whether somebody confirmed that these digits are neither SSN nor EIN; a new confirmation is recorded."""
    if Entry.objects.filter(action="accounts.keep_number", subject_uuid=digest).exists():
        return True
    if answered and context.request:
        detail = {"field": field, "at": context.request.path}
        append(Actor.of(context.request), "accounts.keep_number", subject_uuid=digest, detail=detail)
    return answered


# --- Accounts ---


@receiver(signals.staff_changed, dispatch_uid="audit")
def record_staff_change(user: User, changes: dict[str, Any], created: bool, **kwargs: Any) -> None:
    if created:
        _record("accounts.staff_created", user, changes=changes)
    elif set(changes) == {"password"}:
        _record("accounts.password_changed", user)
    else:
        is_own = set(changes) <= PREFERENCES
        _record("accounts.profile" if is_own else "accounts.staff_changed", user, changes=changes)


@receiver(post_delete, sender=User, dispatch_uid="audit")
def record_deletion(instance: User, **kwargs: Any) -> None:
    _record("accounts.staff_deleted", instance)


# --- Second factors and identities of single sign-on: rows, because allauth's signals cover its own pages only ---


@receiver(pre_save, sender=Authenticator, dispatch_uid="audit")
@receiver(pre_save, sender=SocialAccount, dispatch_uid="audit")
def record_changed_credential(sender: type[Credential], instance: Credential, **kwargs: Any) -> None:
    before = sender._base_manager.filter(pk=instance.pk).first() if instance.pk else None
    if before and _identity(before) != _identity(instance):
        _record_credential(CHANGED[sender], instance)


@receiver(post_save, sender=Authenticator, dispatch_uid="audit")
@receiver(post_save, sender=SocialAccount, dispatch_uid="audit")
def record_added_credential(
    sender: type[Credential], instance: Credential, created: bool, **kwargs: Any
) -> None:
    if created:
        _record_credential(ADDED[sender], instance)


@receiver(post_delete, sender=Authenticator, dispatch_uid="audit")
@receiver(post_delete, sender=SocialAccount, dispatch_uid="audit")
def record_removed_credential(sender: type[Credential], instance: Credential, **kwargs: Any) -> None:
    _record_credential(REMOVED[sender], instance)


def _identity(credential: Credential) -> tuple[Any, ...]:
    """The owner, and the identity that opens the account."""
    if isinstance(credential, SocialAccount):
        return credential.user_id, credential.provider, credential.uid
    secrets = (credential.data.get(name) for name in SECRETS)
    return credential.user_id, credential.type, *secrets


def _record_credential(action: str, credential: Credential) -> None:
    kind = credential.provider if isinstance(credential, SocialAccount) else credential.type
    _record(action, credential.user, detail={"kind": kind})


def _record(action: str, user: User, **fields: Any) -> None:
    """Append an entry about an account. Until a sign-in is complete, the actor is that person."""
    request: HttpRequest | None = context.request
    if request is None or user.changed_by:
        actor = Actor.system(user.changed_by or "accounts")
    else:
        actor = Actor.of(request, None if request.user.is_authenticated else user)
    append(actor, action, subject_label=user.username, **fields)
