"""Collects static files, and reports in one sentence if they can't be written."""

from typing import Any

from django.conf import settings
from django.contrib.staticfiles.management.commands.collectstatic import Command as Collect
from django.core.management.base import CommandError


class Command(Collect):
    """``manage.py collectstatic``, as Django's."""

    def collect(self) -> dict[str, Any]:
        try:
            return super().collect()
        except OSError as problem:
            raise CommandError(
                f"Styles and scripts can’t be written to {settings.STATIC_ROOT}: {problem.strerror}. "
                "Run collectstatic as a user who can write there."
            ) from None
