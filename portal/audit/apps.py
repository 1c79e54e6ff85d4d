"""Connects the audit trail to account signals, and maintains the database triggers that guard it through migrations."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class AuditConfig(AppConfig):
    """Audit trail."""

    name = "portal.audit"

    def ready(self) -> None:
        """Listen for sign-ins and account changes; inspect and repair the triggers around every migration."""
        from portal.audit import events, integrity  # noqa: F401

        pre_migrate.connect(integrity.inspect_guard, sender=self)
        post_migrate.connect(integrity.repair_guard, sender=self)
