"""Names a wrong task backend at the start, before Django's own checks meet it."""

from importlib import import_module

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Background jobs."""

    name = "portal.jobs"

    def ready(self) -> None:
        """Load the engine, which ends the start with a sentence if there is none."""
        import_module("portal.jobs.engine")
