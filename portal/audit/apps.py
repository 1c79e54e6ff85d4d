"""Connects the trail to what happens to accounts, and maintains the database's guard of it through migrations."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class AuditConfig(AppConfig):
    """Audit trail."""

    name = "portal.audit"

    def ready(self) -> None:
        """Listen to sign-ins and changes of accounts; inspect and repair the guard around every migration."""
        from portal.audit import events, integrity  # noqa: F401

        pre_migrate.connect(integrity.inspect_guard, sender=self)
        post_migrate.connect(integrity.repair_guard, sender=self)
