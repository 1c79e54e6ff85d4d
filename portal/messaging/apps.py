"""The app of webhook messages: keeps the triggers of its search index through migrations."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class MessagingConfig(AppConfig):
    """The lending service's messages."""

    name = "portal.messaging"

    def ready(self) -> None:
        """Create lost triggers after every migration, and offer messages as evidence about lost answers."""
        from portal.audit.evidence import SOURCES
        from portal.messaging.evidence import messages_since
        from portal.messaging.search_index import create_missing_triggers

        SOURCES.append(messages_since)
        post_migrate.connect(create_missing_triggers, sender=self)
