"""How long people stay signed in: an idle limit and a limit for the whole session, both from settings.

Each session has a row of allauth's, which its owner sees in a list and can end from anywhere.
"""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.utils import timezone

from portal.accounts.signals import session_ended

SAVE_INTERVAL = timedelta(minutes=1)
BACKGROUND_HEADER = "X-Background"
"""The header of requests that a page makes by itself."""


def seconds_left(request: Any) -> float:
    """The seconds until the session expires; a request made by a person extends it."""
    row = session_row(request)
    now = timezone.now()
    idle = timedelta(minutes=settings.SESSION_IDLE_MINUTES)
    whole = row.created_at + timedelta(hours=settings.SESSION_HOURS)
    is_over = now >= min(whole, row.last_seen_at + idle)
    if not is_over and BACKGROUND_HEADER not in request.headers and now - row.last_seen_at > SAVE_INTERVAL:
        row.last_seen_at = now
        row.save(update_fields=["last_seen_at"])
    left: timedelta = min(whole, row.last_seen_at + idle) - now
    return left.total_seconds()


def session_row(request: Any) -> UserSession:
    found = UserSession.objects.filter(session_key=request.session.session_key).first()
    if found is None:
        UserSession.objects.create_from_request(request)
        found = UserSession.objects.get(session_key=request.session.session_key)
    return found


def end_session(request: Any) -> None:
    UserSession.objects.filter(session_key=request.session.session_key).delete()
    session_ended.send(sender=UserSession, request=request, user=request.user, count=1, why="expired")
    request.session.flush()


def end_other_sessions(request: Any, user: Any, rows: Iterable[UserSession], why: str) -> int:
    """End and announce these sessions of a person; return how many there were."""
    sessions = list(rows)
    for row in sessions:
        row.end()
    session_ended.send(sender=UserSession, request=request, user=user, count=len(sessions), why=why)
    return len(sessions)


def is_single_sign_on(request: Any) -> bool:
    methods = request.session.get(AUTHENTICATION_METHODS_SESSION_KEY, [])
    return any(one.get("method") == "socialaccount" for one in methods)


BROWSERS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "Chrome": "Chrome", "Safari": "Safari"}
SYSTEMS = {
    "Windows": "Windows",
    "iPhone|iPad": "iOS",
    "Android": "Android",
    "Mac OS": "macOS",
    "Linux": "Linux",
}


def browser_in_words(user_agent: str) -> str:
    """The browser and its operating system, as in "Firefox on Windows"."""
    name, system = (
        next((words for mark, words in known.items() if re.search(mark, user_agent)), "")
        for known in (BROWSERS, SYSTEMS)
    )
    return " on ".join(filter(None, [name, system])) or "Unknown browser"
