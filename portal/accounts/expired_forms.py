"""Form posts that arrived after the session expired, stored encrypted so that the same person can send them again."""

import json
import time
from typing import Any, NamedTuple

from django.middleware.csrf import CsrfViewMiddleware
from django.views.generic import View

from portal.accounts.encryption import CannotDecrypt, decrypt, encrypt
from portal.accounts.models import User
from servicing.masking import masked_text

SESSION_KEY = "kept_form"
VALID_MINUTES = 15
MAX_CHARACTERS = 200_000
RETYPED_FIELDS = ("password", "code", "credential", "csrf", "ssn", "ein")
"""Fields with these in their names are never stored."""


class ExpiredForm(NamedTuple):
    """The address and the fields of a posted form."""

    user_id: int
    path: str
    fields: list[tuple[str, str]]
    until: float


def save_expired_form(request: Any) -> bool:
    """Store a posted form if this session just expired and the form came from this browser."""
    is_plain = request.content_type == "application/x-www-form-urlencoded"
    if not request.expired_user or not is_plain or not _is_own(request):
        return False
    if sum(len(value) for values in request.POST.lists() for value in values[1]) > MAX_CHARACTERS:
        return False
    fields = [
        (name, value)
        for name, values in request.POST.lists()
        if not any(part in name.lower() for part in RETYPED_FIELDS)
        for value in values
        if masked_text(value) == value
    ]
    form = ExpiredForm(
        request.expired_user.pk, request.get_full_path(), fields, time.time() + VALID_MINUTES * 60
    )
    text = json.dumps(form)
    if len(text) > MAX_CHARACTERS:
        return False
    request.session[SESSION_KEY] = encrypt(text)
    return True


def take_expired_form(request: Any, person: User) -> ExpiredForm | None:
    encrypted = request.session.pop(SESSION_KEY, "")
    try:
        form = ExpiredForm(*json.loads(decrypt(encrypted))) if encrypted else None
    except CannotDecrypt:
        return None
    is_in_time = form and 0 < form.until - time.time() <= VALID_MINUTES * 60
    return form if form and is_in_time and form.user_id == person.pk else None


def _is_own(request: Any) -> bool:
    """Whether the form carries the browser's CSRF token, also if the view checks that itself."""
    check = CsrfViewMiddleware(lambda _: None)  # type: ignore[arg-type]
    return check.process_view(request, View.as_view(), (), {}) is None
