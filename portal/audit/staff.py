"""Writes an entry for every change of an account: role and data, password, second factors, sessions, single sign-on.

Hides who made it: the person behind the request that is being answered, or the system where a command runs.
"""

from typing import Any, TypeAlias

from allauth.core import context
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authentication_failed
from allauth.socialaccount.models import SocialAccount
from django.db.models.signals import post_delete, post_save, pre_save
from django.http import HttpRequest

from portal.accounts.models import PREFERENCES, User
from portal.accounts.signals import session_ended, staff_changed
from portal.audit.chain import append
from portal.audit.models import Actor, Entry
from portal.ui.guard import number_found

Credential: TypeAlias = Authenticator | SocialAccount
ADDED = {Authenticator: "accounts.second_factor_added", SocialAccount: "accounts.single_sign_on_connected"}
CHANGED = {
    Authenticator: "accounts.second_factor_changed",
    SocialAccount: "accounts.single_sign_on_changed",
}
REMOVED = {
    Authenticator: "accounts.second_factor_removed",
    SocialAccount: "accounts.single_sign_on_removed",
}
SECRETS = ("secret", "seed", "migrated_codes", "credential")
"""What a second factor is made from; beside them stand a name and which recovery codes are used."""


def listen() -> None:
    """Connect to what allauth and the accounts announce."""
    staff_changed.connect(_record_staff_change, dispatch_uid="audit")
    post_delete.connect(_record_deletion, sender=User, dispatch_uid="audit")
    session_ended.connect(_session_ended, dispatch_uid="audit")
    authentication_failed.connect(_factor_failed, dispatch_uid="audit")
    number_found.connect(_is_kept_number, dispatch_uid="audit")
    # Rows, not allauth's signals: those tell only of its own pages.
    for model in ADDED:
        pre_save.connect(_record_changed_credential, sender=model, dispatch_uid="audit")
        post_save.connect(_record_added_credential, sender=model, dispatch_uid="audit")
        post_delete.connect(_record_removed_credential, sender=model, dispatch_uid="audit")


def _record_staff_change(user: User, changes: dict[str, Any], created: bool, **kwargs: Any) -> None:
    if created:
        action = "accounts.staff_created"
    elif set(changes) == {"password"}:
        action, changes = "accounts.password_changed", {}
    else:
        action = "accounts.profile" if set(changes) <= PREFERENCES else "accounts.staff_changed"
    _record(action, user, changes=changes)


def _record_deletion(instance: User, **kwargs: Any) -> None:
    _record("accounts.staff_deleted", instance)


def _session_ended(request: HttpRequest, user: User, count: int, why: str, **kwargs: Any) -> None:
    detail = {"sessions": count, "why": why}
    append(Actor.of(request), "accounts.session_ended", subject_label=user.username, detail=detail)


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


# --- Second factors and identities of single sign-on ---


def _record_changed_credential(sender: type[Credential], instance: Credential, **kwargs: Any) -> None:
    before = sender._base_manager.filter(pk=instance.pk).first() if instance.pk else None
    if before and _proof(before) != _proof(instance):
        _record_credential(CHANGED[sender], instance)


def _record_added_credential(
    sender: type[Credential], instance: Credential, created: bool, **kwargs: Any
) -> None:
    if created:
        _record_credential(ADDED[sender], instance)


def _record_removed_credential(sender: type[Credential], instance: Credential, **kwargs: Any) -> None:
    _record_credential(REMOVED[sender], instance)


def _proof(credential: Credential) -> tuple[Any, ...]:
    """Whose it is, and what opens the account."""
    if isinstance(credential, SocialAccount):
        return credential.user_id, credential.provider, credential.uid
    secrets = (credential.data.get(name) for name in SECRETS)
    return credential.user_id, credential.type, *secrets


def _record_credential(action: str, credential: Credential) -> None:
    kind = credential.provider if isinstance(credential, SocialAccount) else credential.type
    _record(action, credential.user, detail={"kind": kind})


def _record(action: str, user: User, **fields: Any) -> None:
    """Append an entry about an account. Before a sign-in is complete its own person acts."""
    request: HttpRequest | None = context.request
    if request is None:
        actor = Actor.system("accounts")
    else:
        actor = Actor.of(request, None if request.user.is_authenticated else user)
    append(actor, action, subject_label=user.username, **fields)
