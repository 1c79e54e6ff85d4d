"""A form that came after its session had ended: kept for the same person to send again, sealed, without secrets."""

import json
import time
from typing import Any, NamedTuple

from django.middleware.csrf import CsrfViewMiddleware
from django.views.generic import View

from portal.accounts.models import User
from portal.accounts.seal import Broken, seal, unseal
from servicing.masking import masked_text

KEY = "kept_form"
MINUTES = 15
MOST = 200_000
NEVER_KEPT = ("password", "code", "credential", "csrf", "ssn", "ein")
"""Parts of the names of fields that are typed again."""


class KeptForm(NamedTuple):
    """Where it was posted to, and what was in it."""

    user_id: int
    path: str
    fields: list[tuple[str, str]]
    until: float


def keep(request: Any) -> bool:
    """Keep what was posted, if this session ended by itself and the form was this browser's own."""
    is_plain = request.content_type == "application/x-www-form-urlencoded"
    if not request.ended_for or not is_plain or not _is_own(request):
        return False
    fields = [
        (name, value)
        for name, values in request.POST.lists()
        if not any(part in name.lower() for part in NEVER_KEPT)
        for value in values
        if masked_text(value) == value
    ]
    form = KeptForm(request.ended_for.pk, request.get_full_path(), fields, time.time() + MINUTES * 60)
    text = json.dumps(form)
    if len(text) > MOST:
        return False
    request.session[KEY] = seal(text)
    return True


def take(request: Any, person: User) -> KeptForm | None:
    """What this person posted too late; it can be taken once."""
    sealed = request.session.pop(KEY, "")
    try:
        form = KeptForm(*json.loads(unseal(sealed))) if sealed else None
    except Broken:
        return None
    is_in_time = form and 0 < form.until - time.time() <= MINUTES * 60
    return form if form and is_in_time and form.user_id == person.pk else None


def _is_own(request: Any) -> bool:
    """Whether the form carries the browser's token, also where a view looks at that itself."""
    check = CsrfViewMiddleware(lambda _: None)  # type: ignore[arg-type]
    return check.process_view(request, View.as_view(), (), {}) is None
