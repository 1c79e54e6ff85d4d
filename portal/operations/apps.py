"""Lets every call of the lending service be counted, whichever process makes it; names what a request failed with."""

import sys
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.signals import got_request_exception
from django.db.models.signals import post_save

from portal.operations.logs import log_uncaught
from portal.runtime.database import is_unavailable


class OperationsConfig(AppConfig):
    """How this desk is doing."""

    name = "portal.operations"

    def ready(self) -> None:
        """Listen to the calls as they are recorded, and to exceptions that nobody caught."""
        if settings.LOG_FORMAT == "json":
            log_uncaught()
        post_save.connect(_count_call, sender="audit.RemoteCall")
        got_request_exception.connect(_name_failure)


def _count_call(*, instance: Any, created: bool, **_: Any) -> None:
    from portal.operations import tallies

    if created:
        tallies.count(tallies.CALL, instance.operation, instance.outcome, instance.duration_ms)


def _name_failure(*, request: Any, **_: Any) -> None:
    """The type of an exception; its text may be about anybody."""
    from django.contrib.auth.models import AnonymousUser  # Its module needs the apps.

    error = sys.exception()
    request.failed_with = type(error).__qualname__
    if is_unavailable(error):
        request.is_database_away = True
        # Django's page for developers would ask for the person again, and wait again.
        request.user = AnonymousUser()
