"""The app of webhook messages: keeps the triggers of its search index through migrations."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class MessagingConfig(AppConfig):
    """The lending service's messages."""

    name = "portal.messaging"

    def ready(self) -> None:
        """Create lost triggers after every migration."""
        from portal.messaging.search_index import create_missing_triggers

        post_migrate.connect(create_missing_triggers, sender=self)
