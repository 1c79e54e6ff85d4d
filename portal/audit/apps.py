"""Connects the trail to sign-ins, and keeps the database's own guard of it through migrations."""

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class AuditConfig(AppConfig):
    """Audit trail."""

    name = "portal.audit"

    def ready(self) -> None:
        """Listen to sign-ins, sign-outs and failures; look at the guard after every migration."""
        from portal.audit import sign_ins

        sign_ins.listen()
        post_migrate.connect(_keep_guard, sender=self)


def _keep_guard(*, using: str, **_: Any) -> None:
    from portal.audit import guard

    guard.install(connections[using])
