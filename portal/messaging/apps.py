"""Keeps the index behind the search in payloads true through migrations."""

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class MessagingConfig(AppConfig):
    """The lending service's messages."""

    name = "portal.messaging"

    def ready(self) -> None:
        """Look at the index after every migration."""
        post_migrate.connect(_keep_in_step, sender=self)


def _keep_in_step(*, using: str, **_: Any) -> None:
    from portal.messaging.search_index import keep_in_step

    keep_in_step(connections[using])
