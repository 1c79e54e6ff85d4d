"""Keeps the search index in step through migrations."""

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class RegistryConfig(AppConfig):
    """Records of the lending service and their saved answers."""

    name = "portal.registry"

    def ready(self) -> None:
        """Check the index after every migration."""
        post_migrate.connect(_keep_in_step, sender=self)


def _keep_in_step(*, using: str, **_: Any) -> None:
    from portal.registry.search.index import create_missing_triggers

    create_missing_triggers(connections[using])
