"""The app of webhook messages: keeps the triggers of its search index through migrations."""

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class MessagingConfig(AppConfig):
    """The lending service's messages."""

    name = "portal.messaging"

    def ready(self) -> None:
        """Create lost triggers after every migration."""
        post_migrate.connect(_create_missing_triggers, sender=self)


def _create_missing_triggers(*, using: str, **_: Any) -> None:
    from portal.messaging.search_index import create_missing_triggers

    create_missing_triggers(connections[using])
