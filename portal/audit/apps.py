"""Connects the trail to sign-ins."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """Audit trail."""

    name = "portal.audit"

    def ready(self) -> None:
        """Listen to sign-ins, sign-outs and failures."""
        from portal.audit import sign_ins

        sign_ins.listen()
