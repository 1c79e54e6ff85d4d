"""The app of webhook messages."""

from django.apps import AppConfig


class MessagingConfig(AppConfig):
    """The lending service's messages."""

    name = "portal.messaging"

    def ready(self) -> None:
        """Offer messages as evidence about lost answers."""
        from portal.audit.evidence import SOURCES
        from portal.messaging.evidence import messages_since

        SOURCES.append(messages_since)
