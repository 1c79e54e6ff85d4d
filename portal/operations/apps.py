"""Maintains this deployment, and knows when a request failed because the database is away."""

import sys
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.signals import got_request_exception

from portal.core.database import is_unavailable
from portal.operations.logs import log_uncaught


class OperationsConfig(AppConfig):
    """Monitoring and maintenance of this deployment."""

    name = "portal.operations"

    def ready(self) -> None:
        """Register the check of labels, and listen for uncaught exceptions."""
        from portal.operations import labels as labels

        if settings.LOG_FORMAT == "json":
            log_uncaught()
        got_request_exception.connect(_mark_database_away)


def _mark_database_away(*, request: Any, **_: Any) -> None:
    """Mark a request that failed because the database is away."""
    from django.contrib.auth.models import AnonymousUser  # This module needs loaded apps.

    if is_unavailable(sys.exception()):
        request.is_database_away = True
        # Django's debug page would load the user again, and wait again.
        request.user = AnonymousUser()
