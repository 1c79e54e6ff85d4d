"""Connects the audit trail to account signals, and maintains the database triggers that guard it through migrations."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AuditConfig(AppConfig):
    name = "portal.audit"

    def ready(self) -> None:
        """Listen for sign-ins and account changes; restore the triggers after every migration."""
        from portal.audit import events, integrity  # noqa: F401

        post_migrate.connect(integrity.restore_triggers, sender=self)
