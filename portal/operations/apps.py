"""Names what a request failed with, for the log."""

import sys
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.signals import got_request_exception

from portal.operations.logs import log_uncaught
from portal.runtime.database import is_unavailable


class OperationsConfig(AppConfig):
    """Monitoring and maintenance of this deployment."""

    name = "portal.operations"

    def ready(self) -> None:
        """Listen for uncaught exceptions."""
        if settings.LOG_FORMAT == "json":
            log_uncaught()
        got_request_exception.connect(_name_failure)


def _name_failure(*, request: Any, **_: Any) -> None:
    """Save the exception's type for the log, not its text, which may be about a person."""
    from django.contrib.auth.models import AnonymousUser  # This module needs loaded apps.

    error = sys.exception()
    request.failed_with = type(error).__qualname__
    if is_unavailable(error):
        request.is_database_away = True
        # Django's debug page would load the user again, and wait again.
        request.user = AnonymousUser()
