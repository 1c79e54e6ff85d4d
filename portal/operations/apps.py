"""Lets every call of the lending service be counted, whichever process makes it."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_save


class OperationsConfig(AppConfig):
    """How this desk is doing."""

    name = "portal.operations"

    def ready(self) -> None:
        """Listen to the calls as they are recorded."""
        post_save.connect(_count, sender="audit.RemoteCall")


def _count(*, instance: Any, created: bool, **_: Any) -> None:
    from portal.operations import tallies

    if created:
        tallies.count(tallies.CALL, instance.operation, instance.outcome, instance.duration_ms)
