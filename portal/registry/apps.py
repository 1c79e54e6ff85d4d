"""Keeps the search index in step through migrations."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class RegistryConfig(AppConfig):
    """Records of the lending service and their saved answers."""

    name = "portal.registry"

    def ready(self) -> None:
        """Check the index after every migration."""
        from portal.registry.search.index import create_missing_triggers

        post_migrate.connect(create_missing_triggers, sender=self)
